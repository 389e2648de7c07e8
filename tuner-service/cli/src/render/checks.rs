use io_autotune_protocol::{Check, CheckState};

pub(crate) fn checks(checks: &[Check]) -> String {
    let names = checks.iter().map(|check| check.name.chars().count());
    let width = names.max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let state = match check.state {
            CheckState::Ok => "ok",
            CheckState::Warning => "warning",
            CheckState::Failed => "FAILED",
        };
        text.push_str(&format!(
            "{state:<7}  {:<width$}  {}\n",
            check.name, check.detail
        ));
        if let Some(fix) = &check.fix {
            text.push_str(&format!("{:<9}{:<width$}  -> {fix}\n", "", ""));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_aligned() {
        assert_eq!(
            checks(&[
                Check::ok("munge", "words"),
                Check::failed("caches", "words", "mend it"),
                Check::warning("spool", "words", "look"),
            ]),
            "ok       munge   words\n\
             FAILED   caches  words\n                 -> mend it\n\
             warning  spool   words\n                 -> look\n"
        );
    }
}
