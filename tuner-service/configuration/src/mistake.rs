//! Mistakes in a file, with the nearest word that is known.

use std::fmt;
use std::ops::Range;

use serde::de::DeserializeOwned;

use crate::nearest::nearest;
use crate::secret::without_secrets;

/// What is wrong in a TOML file, and where; with an unknown word the one that may be meant.
#[derive(Debug)]
pub struct Mistake(Box<toml::de::Error>);

impl Mistake {
    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> String {
        explained(self.0.message())
    }

    /// Where, in bytes.
    #[must_use]
    pub fn span(&self) -> Option<Range<usize>> {
        self.0.span()
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&explained(&without_secrets(self.0.to_string().trim_end())))
    }
}

impl std::error::Error for Mistake {}

/// Reads a text.
///
/// # Errors
///
/// With the line of the mistake.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    toml::from_str(text).map_err(|error| Mistake(Box::new(error)))
}

/// serde's message, followed by the nearest word if one is unknown.
#[must_use]
pub fn explained(message: &str) -> String {
    match meant(message) {
        Some(nearest) => format!("{message}; did you mean `{nearest}`?"),
        None => message.to_owned(),
    }
}

/// The nearest word of serde's "unknown field `x`, expected one of `a`, `b`", or variant.
pub(crate) fn meant(message: &str) -> Option<&str> {
    let (_, rest) = ["unknown field `", "unknown variant `"]
        .iter()
        .find_map(|start| message.split_once(start))?;
    let (unknown, known) = rest.rsplit_once("`, expected ")?;
    // Every other piece stands between two backticks.
    nearest(unknown, known.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[expect(dead_code, reason = "only its name matters")]
        endpoints: Option<u32>,
        #[expect(dead_code, reason = "only its name matters")]
        service_user: Option<u32>,
    }

    #[test]
    fn the_nearest_word_is_named_if_one_is_near() {
        let said = |text| parse::<Sample>(text).unwrap_err().to_string();
        let near = said("\nendpoint = 1\n");
        assert!(near.contains("line 2"), "{near}");
        assert!(near.ends_with("; did you mean `endpoints`?"), "{near}");
        let near = said("servce_user = 1\n");
        assert!(near.ends_with("; did you mean `service_user`?"), "{near}");
        let far = said("zzz = 1\n");
        assert!(far.contains("unknown field `zzz`"), "{far}");
        assert!(!far.contains("did you mean"), "{far}");
    }

    #[test]
    fn other_messages_stay() {
        for message in ["", "unknown field `a", "unknown field `a`, expected ", "x"] {
            assert_eq!(explained(message), message);
        }
        assert_eq!(
            explained("unknown variant `slrum`, expected `munge` or `slurm`"),
            "unknown variant `slrum`, expected `munge` or `slurm`; did you mean `slurm`?"
        );
    }
}
