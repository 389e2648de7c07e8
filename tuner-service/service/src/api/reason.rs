//! The rule by which a change needs a reason, which is the same for all changes.

use io_autotune_protocol::is_deceptive;

use super::ApiError;
use crate::access::Caller;

/// The users whom a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concerns {
    /// Nobody but the user who makes it.
    Caller,
    /// Other users, or the site, who will ask for the reason.
    Others,
}

impl Concerns {
    /// The users concerned by a change of the studies of one owner, or of everyone's if `None`.
    pub(super) fn of(owner_uid: Option<u32>, caller: Caller) -> Self {
        match owner_uid == Some(caller.uid) {
            true => Self::Caller,
            false => Self::Others,
        }
    }
}

/// The reason of a change, as the audit keeps it. It may be left out only if nobody else is
/// concerned. Returns a refusal otherwise, and for a reason that is too long or has control or
/// invisible characters.
pub(super) fn reason(why: &str, concerns: Concerns) -> Result<&str, ApiError> {
    const NONE_GIVEN: &str = "no reason was given";
    let why = why.trim();
    if why.is_empty() {
        return match concerns {
            Concerns::Caller => Ok(NONE_GIVEN),
            Concerns::Others => Err(ApiError::bad_request(
                "say why, because this is about more than your own studies: --why \"...\"".into(),
            )),
        };
    }
    match why.chars().count() <= 500 && !why.chars().any(is_deceptive) {
        true => Ok(why),
        false => Err(ApiError::bad_request(
            "say why, in at most 500 characters, none of them a control character, invisible, or one that changes \
             the direction of text: --why \"...\""
                .into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack (units): A `--why` is too long, of several lines, or has escapes or invisible
    /// characters.
    /// Outcome: It is refused; a stored one is shown with question marks.
    #[test]
    fn a_reason_is_what_it_looks_like() {
        let long = "x".repeat(501);
        let bad = [
            "a\nb",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{200b}b",
            "\u{feff}",
            &long,
        ];
        for concerns in [Concerns::Caller, Concerns::Others] {
            assert_eq!(reason("  gr\u{fc}n ", concerns).unwrap(), "gr\u{fc}n");
            for why in bad {
                assert!(reason(why, concerns).is_err(), "{why:?}");
            }
        }
    }

    #[test]
    fn only_what_concerns_nobody_else_needs_no_reason() {
        for why in ["", " \t"] {
            assert_eq!(
                reason(why, Concerns::Caller).unwrap(),
                "no reason was given"
            );
            assert!(reason(why, Concerns::Others).is_err());
        }
    }
}
