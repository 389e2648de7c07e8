//! Slurm's id of a launch.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Characters after the `s`.
const DIGITS: usize = 13;

/// The SLUID of one launch of a job (Slurm 25.11 on). Slurm never gives it again: it is made of the
/// cluster's id and the time. `s` and 13 digits of Crockford's base 32, as Slurm's `sluid2str`
/// writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Sluid(String);

/// The error for a text that is not a [`Sluid`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no SLUID of Slurm's: an s and 13 digits of 0-9 and A-Z without I, L, O and U are expected"
)]
pub struct NoSluid(String);

impl Sluid {
    /// The SLUID as Slurm writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sluid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Sluid {
    type Err = NoSluid;

    fn from_str(text: &str) -> Result<Self, NoSluid> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Sluid {
    type Error = NoSluid;

    fn try_from(text: String) -> Result<Self, NoSluid> {
        let is_digit = |byte: u8| {
            byte.is_ascii_digit()
                || (byte.is_ascii_uppercase() && !matches!(byte, b'I' | b'L' | b'O' | b'U'))
        };
        match text.strip_prefix('s') {
            Some(digits) if digits.len() == DIGITS && digits.bytes().all(is_digit) => {
                Ok(Self(text))
            }
            _ => Err(NoSluid(text)),
        }
    }
}

impl From<Sluid> for String {
    fn from(sluid: Sluid) -> Self {
        sluid.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_slurm_writes_is_one() {
        // The example of Slurm's own test of `sluid2str`.
        let sluid: Sluid = "sBR1JB8J1YM400".parse().unwrap();
        assert_eq!(sluid.to_string(), "sBR1JB8J1YM400");
        for text in [
            "",
            "s",
            "sBR1JB8J1YM40",
            "sBR1JB8J1YM4000",
            "SBR1JB8J1YM400",
            "sbr1jb8j1ym400",
            "BR1JB8J1YM4000",
            "sBR1JB8J1YM40I",
            "sBR1JB8J1YM40U",
            "sBR1JB8J1YM40\n",
            "sBR1JB8J1YM4é",
            "../../etc/pass",
        ] {
            let refused = text.parse::<Sluid>().unwrap_err().to_string();
            assert!(refused.contains("is no SLUID"), "{refused}");
            assert!(!refused.contains(char::is_control), "{refused:?}");
        }
    }

    #[test]
    fn what_is_none_is_not_read_from_json() {
        let read: Result<Sluid, _> = serde_json::from_str(r#""sBR1JB8J1YM400""#);
        assert_eq!(
            serde_json::to_string(&read.unwrap()).unwrap(),
            r#""sBR1JB8J1YM400""#
        );
        assert!(serde_json::from_str::<Sluid>(r#""'; drop table runs""#).is_err());
        assert!(serde_json::from_str::<Sluid>("7").is_err());
    }
}
