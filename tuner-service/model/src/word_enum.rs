//! Enums of plain words.

/// The error for a word that is not one of an enum's, such as a phase, a role or a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a {what}: it must be one of {known}")]
pub struct UnknownWord {
    /// The kind of word: `phase`, `role` or `method`.
    pub what: &'static str,
    /// The word.
    pub word: String,
    /// The valid words, separated by commas.
    pub known: String,
}

/// Gives an enum of plain words `ALL`, `Display` and `FromStr`, in serde's spelling. A word after a
/// bar is an older spelling that is still read.
#[macro_export]
macro_rules! word_enum {
    ($type:ident, $what:literal, $($variant:ident => $word:literal $(| $earlier:literal)?),+ $(,)?) => {
        impl $type {
            #[doc = concat!("Every ", $what, ", in order.")]
            pub const ALL: &[$type] = &[$($type::$variant),+];

            #[doc = concat!("The word for this ", $what, ", as in JSON.")]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $word),+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::word_enum::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                const EARLIER: &[(&str, $type)] =
                    &[$($(($earlier, $type::$variant),)?)+];
                let known = Self::ALL.iter().map(|known| (known.as_str(), *known));
                known
                    .chain(EARLIER.iter().copied())
                    .find_map(|(known, value)| (known == word).then_some(value))
                    .ok_or_else(|| $crate::word_enum::UnknownWord {
                        what: $what,
                        word: word.chars().take(64).collect(),
                        known: Self::ALL
                            .iter()
                            .map(|known| known.as_str())
                            .collect::<Vec<_>>()
                            .join(", "),
                    })
            }
        }
    };
}
