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
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_aligned() {
        let check = |name: &str, state| Check {
            name: name.to_owned(),
            state,
            detail: "words".to_owned(),
        };
        assert_eq!(
            checks(&[
                check("munge", CheckState::Ok),
                check("caches", CheckState::Failed),
                check("spool", CheckState::Warning),
            ]),
            "ok       munge   words\nFAILED   caches  words\nwarning  spool   words\n"
        );
    }
}
