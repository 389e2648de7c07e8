//! Secrets are never shown.

use url::Url;

const HIDDEN: &str = "***";

/// A database's URL without password and private key. One that is no URL is not shown at all: it
/// may hold a password anywhere.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return HIDDEN.to_owned();
    };
    let is_secret = |name: &str, value: &str| {
        name == "password" || (name == "sslkey" && value.contains("BEGIN"))
    };
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    if pairs.iter().any(|(name, value)| is_secret(name, value)) {
        let shown = pairs.iter().map(|(name, value)| {
            let value = if is_secret(name, value) {
                HIDDEN
            } else {
                value
            };
            (name, value)
        });
        url.query_pairs_mut().clear().extend_pairs(shown);
    } else if url.password().is_none() {
        return text.to_owned();
    }
    if url.password().is_some() && url.set_password(Some(HIDDEN)).is_err() {
        return HIDDEN.to_owned();
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for secret in [
            "postgres://me:s3cret@db/io_autotune",
            "postgres://me:s%33cret@db:5432/io_autotune?sslmode=require",
            "postgres://db/io_autotune?user=me&password=s3cret",
            "postgres://db/io_autotune?pass%77ord=s3cret",
            "postgres://db/x?sslkey=-----BEGIN%20PRIVATE%20KEY-----s3cret",
            "host=db password=s3cret",
            "postgres://me:s3cret@db:port/io_autotune",
        ] {
            let shown = without_secrets(secret);
            assert!(!shown.contains("cret"), "{secret}: {shown}");
            assert!(shown.contains("***"), "{secret}: {shown}");
        }
        let open = "postgres:///io_autotune?host=/var/run/postgresql&user=io-autotune";
        assert_eq!(without_secrets(open), open);
        let shown = without_secrets("postgres://me:s3cret@db/io_autotune?sslmode=require");
        assert_eq!(shown, "postgres://me:***@db/io_autotune?sslmode=require");
    }
}
