//! The form of account names. They are untrusted: without enforced associations a user may submit
//! any text.

/// Returns true if a text may be an account's name: 1 to 64 ASCII letters, digits, `_`, `-`, `.`,
/// `+`.
#[must_use]
pub fn is_account(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_a_plain_name() {
        let longest = "a".repeat(64);
        for account in ["physics", "p-1.2_b+c", &longest] {
            assert!(is_account(account), "{account}");
        }
        let too_long = "a".repeat(65);
        for text in [
            "",
            "a b",
            "a\n4711 COMPLETED",
            "(null)",
            "größe",
            "a|b",
            &too_long,
        ] {
            assert!(!is_account(text), "{text:?}");
        }
    }
}
