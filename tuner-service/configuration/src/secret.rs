//! Secrets are never shown, not even in the line that a mistake is in.

/// The parser's message about a mistake in a TOML file, without a value in the quoted line that may
/// contain a password.
pub(crate) fn without_secrets(message: &str) -> String {
    let lines = message.split('\n').map(|line| match line.split_once('=') {
        Some((before, value)) if is_quoted(before) && may_be_secret(value) => {
            format!("{before}= ***")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// serde's message about a value, without one that may contain a password.
pub(crate) fn problem_without_secrets(problem: &str) -> String {
    match problem.split_once('"') {
        Some((before, value)) if may_be_secret(value) => format!("{before}***"),
        _ => problem.to_owned(),
    }
}

/// Returns true for a line of the file, which comes after its number.
fn is_quoted(line: &str) -> bool {
    line.split_once(" | ")
        .is_some_and(|(number, _)| number.trim().parse::<u32>().is_ok())
}

/// Returns true if a value may contain a password: in a URL, where any character may be encoded, or
/// in a list of `key=value`.
fn may_be_secret(value: &str) -> bool {
    value.contains("://") && value.contains(['@', '%'])
        || value.to_ascii_lowercase().contains("password")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::parse;

    /// A type that refuses any text.
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "String")]
    struct Refused;

    impl TryFrom<String> for Refused {
        type Error = &'static str;

        fn try_from(_: String) -> Result<Self, &'static str> {
            Err("it is refused")
        }
    }

    #[derive(Debug, Deserialize)]
    struct File {
        #[allow(dead_code, reason = "nothing is ever read into it")]
        url: Refused,
    }

    fn refused(line: &str) -> String {
        parse::<File>(&format!("# a comment\n{line}\n"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn no_password_is_shown() {
        for secret in [
            r#"url = "postgres://me:s3cret@db/io_autotune""#,
            r#"url = "postgres://me:s%33cret@db:5432/io_autotune?sslmode=require""#,
            r#"url = "postgres://db/io_autotune?user=me&password=s3cret""#,
            r#"url = "postgres://db/io_autotune?pass%77ord=s3cret""#,
            r#"url = "host=db password=s3cret""#,
            r#"url = "postgres://me:s3cret@db:port/io_autotune"#,
        ] {
            let shown = refused(secret);
            assert!(!shown.contains("cret"), "{secret}: {shown}");
            assert!(shown.contains("2 | url = ***"), "{secret}: {shown}");
        }
    }

    #[test]
    fn what_is_no_secret_is_shown_where_the_mistake_is() {
        let shown = refused(r#"url = "postgres:///io_autotune""#);
        assert!(
            shown.contains(r#"2 | url = "postgres:///io_autotune""#),
            "{shown}"
        );
    }
}
