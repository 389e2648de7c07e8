//! Mistakes in a file, with the nearest known word.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::all_mistakes::{Found, parse_recoverable};
use crate::nearest::explained;
use crate::secret::{problem_without_secrets, without_secrets};

/// The mistakes in a TOML file with their places; for an unknown word with the one that may be
/// meant.
#[derive(Debug)]
pub struct Mistake {
    /// The first one that was met, with its line as it is in the file.
    first: Box<toml::de::Error>,
    /// All others, each with its line and column.
    others: Vec<String>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first.to_string();
        f.write_str(&explained(&without_secrets(first.trim_end())))?;
        let mut others = self.others.iter();
        others.try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl std::error::Error for Mistake {}

/// Reads a text.
///
/// # Errors
///
/// With all mistakes, each with its line.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    toml::from_str(text)
        .map_err(|first| Mistake::of(text, first, parse_recoverable::<T>(text).found))
}

impl Mistake {
    /// The mistakes in a text that is no TOML; `first` is what stopped reading.
    pub(crate) fn in_syntax(text: &str, first: toml::de::Error) -> Self {
        Self::of(text, first, parse_recoverable::<toml::Table>(text).found)
    }

    /// The mistakes in a text, `found`, of which `first` was met before the others.
    pub(crate) fn of(text: &str, mut first: toml::de::Error, mut found: Vec<Found>) -> Self {
        first.set_input(Some(text));
        let same = explained(first.message());
        // In a list, the same mistake is found at a more exact place.
        if let Some(again) = found.iter().position(|other| other.problem == same) {
            found.remove(again);
        }
        Mistake {
            others: found.iter().map(|other| at_its_line(text, other)).collect(),
            first: Box::new(first),
        }
    }
}

/// The line of a place in a text.
pub(crate) fn line_of(text: &str, place: usize) -> usize {
    let before = text.get(..place).unwrap_or_default();
    before.matches('\n').count() + 1
}

fn at_its_line(text: &str, found: &Found) -> String {
    let before = text.get(..found.place.start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!(
        "line {}, column {}: {}",
        line_of(text, found.place.start),
        before[line_start..].chars().count() + 1,
        problem_without_secrets(&found.problem)
    )
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
    fn everything_that_is_wrong_is_told_with_its_line() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            #[expect(dead_code, reason = "only its name matters")]
            client: Sample,
            #[expect(dead_code, reason = "only its name matters")]
            other: Sample,
            #[serde(default)]
            #[expect(dead_code, reason = "only its name matters")]
            list: Vec<Sample>,
        }
        let text = "[client]\nendpoint = 1\n[othr]\nservice_user = 'postgres://a:secret@b'\n";
        let told = parse::<Whole>(text).unwrap_err().to_string();
        assert!(told.contains("did you mean `endpoints`?"), "{told}");
        assert!(
            told.contains("line 3, column 2: unknown field `othr`"),
            "{told}"
        );
        assert!(told.contains("did you mean `other`?"), "{told}");
        let text = text.replace("othr", "other");
        let told = parse::<Whole>(&text).unwrap_err().to_string();
        assert!(told.contains("\nline 4, column 16: "), "{told}");
        assert!(!told.contains("secret"), "{told}");
        for one in [
            "service_user = 'x'\n",
            "[[list]]\n[[list]]\nservce_user = 1\n",
            "x = \n",
        ] {
            let one = parse::<Whole>(&format!("[client]\n[other]\n{one}")).unwrap_err();
            assert!(one.others.is_empty(), "{one}");
        }
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
