//! The name of an application: as the user or a rule gives it, or made of a text that is not a
//! valid name.

use sha2::{Digest, Sha256};

use crate::printable::shown;
use crate::request::{is_name, is_name_byte};

/// The separator of the readable part of a made name from the hash. Neither a name that a user can
/// give nor a job's name that is used unchanged contains it, so a made name never equals one of
/// these.
const MARK: char = '~';

/// The number of hexadecimal digits of the hash: 40 bits keep the names of one user apart.
const DIGITS: usize = 10;

/// The most bytes of the readable part, so that a made name is no longer than a given one may be.
const READABLE: usize = 128 - DIGITS - MARK.len_utf8();

/// The readable part for a text without an ASCII letter or digit.
const UNREADABLE: &str = "job";

/// An application's name, and the text that it was made of.
///
/// A text that is a [name](is_name) is used unchanged. Of any other text the readable part is kept,
/// and a hash of the whole text keeps it apart from all texts that look the same in ASCII:
/// `calc_модель` is `calc_~cfe40eec2f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationName {
    name: String,
    full_name: Option<String>,
}

impl ApplicationName {
    /// The application that a text names: a job's name, or the result of a rule. `None` if the text
    /// does not begin with a letter or digit of any script, because it does not name a program
    /// then.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        if is_name(text) {
            return Some(Self {
                name: text.to_owned(),
                full_name: None,
            });
        }
        let says_something = |first: char| first.is_ascii_alphanumeric() || !first.is_ascii();
        text.starts_with(says_something).then(|| Self::made(text))
    }

    /// A made name for any text, also for one that is a valid name.
    #[must_use]
    pub fn made(text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            name: format!("{}{MARK}{}", readable(text), &hash[..DIGITS]),
            full_name: Some(text.to_owned()),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text that the name was made of; none if the name is that text.
    #[must_use]
    pub fn full_name(&self) -> Option<&str> {
        self.full_name.as_deref()
    }

    /// The name, and the text that it was made of.
    #[must_use]
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.name, self.full_name)
    }
}

/// An application as shown to people: its name, followed by its full name if that differs.
#[must_use]
pub fn called(name: &str, full_name: Option<&str>) -> String {
    full_name.map_or_else(
        || name.to_owned(),
        |full_name| format!("{name} ({})", shown(full_name)),
    )
}

/// Returns true if a text can be an application's name: a given name, or a made one.
#[must_use]
pub fn is_application(text: &str) -> bool {
    is_name(text)
        || text.split_once(MARK).is_some_and(|(readable, hash)| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            is_name(readable)
                && readable.len() <= READABLE
                && hash.len() == DIGITS
                && hash.bytes().all(is_digit)
        })
}

/// The readable part of a text in ASCII: each sequence of characters that a name cannot have is one
/// `_`.
fn readable(text: &str) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        match u8::try_from(c).is_ok_and(is_name_byte) {
            true => kept.push(c),
            false if kept.ends_with('_') => {}
            false => kept.push('_'),
        }
        if kept.len() > READABLE + 1 && kept.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            break;
        }
    }
    let kept = kept.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    match &kept[..kept.len().min(READABLE)] {
        "" => UNREADABLE.to_owned(),
        kept => kept.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn name(text: &str) -> Option<String> {
        ApplicationName::of(text).map(|application| application.name)
    }

    #[test]
    fn a_text_that_is_a_name_is_its_own() {
        for text in ["ocean", "nf-A_B", "a", "x.y+z@1-2_", &"a".repeat(128)] {
            let application = ApplicationName::of(text).unwrap();
            assert_eq!((application.name(), application.full_name()), (text, None));
        }
    }

    /// Attack (environment): Jobs have names that look alike, are equal in ASCII, are no UTF-8, or
    /// are made of another name.
    /// Outcome: Each is an application of its own, and shown harmlessly.
    #[test]
    fn what_differs_stays_apart() {
        let long = "a".repeat(128);
        let texts = [
            "calc_модель",
            "calc_физика",
            "calc_\u{fffd}ff",
            "calc_\u{fffd}fe",
            "calc_",
            "calc__",
            "calc_____________",
            "calc ",
            "calc  ",
            "calc",
            "calc/",
            "calc_\u{202e}x",
            "calc_x",
            "Calc_x",
            "модель",
            "Модель",
            "физика",
            "job",
            "模型",
            "é",
            "e\u{301}",
            "e",
            "🚀",
            &long,
            &format!("{long}a"),
            &format!("{long}b"),
            &format!("{long}é"),
        ];
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for text in texts {
            let application = ApplicationName::of(text).unwrap();
            assert!(is_application(application.name()), "{application:?}");
            let made = application.name() != text;
            assert_eq!(application.full_name(), made.then_some(text));
            assert_eq!(is_name(application.name()), !made);
            let other = known.insert(application.name, text);
            assert_eq!(other, None, "{text}");
            // A user who gives a job a name of this form gets a history of their own, too.
            let like = ApplicationName::of(text).unwrap().name;
            if made {
                assert_ne!(name(&like).as_deref(), Some(like.as_str()));
            }
        }
    }

    #[test]
    fn the_readable_part_stays_readable() {
        for (text, readable) in [
            ("calc_модель", "calc_"),
            ("calc модель (2)", "calc_2_"),
            ("модель_calc", "calc"),
            ("модель", "job"),
            ("模型", "job"),
            ("modèle", "mod_le"),
            ("a b/c", "a_b_c"),
        ] {
            let made = name(text).unwrap();
            assert_eq!(made.split_once('~').unwrap().0, readable, "{text}");
        }
        assert_eq!(name("calc_модель").as_deref(), Some("calc_~cfe40eec2f"));
        let long = name(&format!("{}é", "a".repeat(300))).unwrap();
        assert_eq!(long.len(), 128);
    }

    #[test]
    fn what_says_nothing_is_none() {
        for text in ["", " ", "_a", ".sh", " модель", "-J", "\u{1b}[2J", "\n"] {
            assert_eq!(name(text), None, "{text:?}");
        }
    }

    /// Attack (environment): A job's name or option has escapes, lines, a path, a shell's words,
    /// SQL, zero bytes, or 1,000,000 characters.
    /// Outcome: It becomes a short name of letters, digits and few signs, or is refused.
    #[test]
    fn what_is_said_beside_a_name_is_harmless() {
        assert_eq!(called("ocean", None), "ocean");
        assert_eq!(
            called("a~0123456789", Some("a\u{1b}[2J\u{202e}b\nc модель")),
            "a~0123456789 (a?[2J?b c модель)"
        );
    }

    #[test]
    fn an_applications_name_is_checked() {
        for text in ["ocean", "calc_~cfe40eec2f", "job~0123456789"] {
            assert!(is_application(text), "{text}");
        }
        for text in [
            "",
            "~cfe40eec2f",
            "a~",
            "a~16a0e74f2",
            "a~cfe40eec2fc",
            "a~CFE40EEC2F",
            "a~b~0123456789",
            "_~0123456789",
            "a b~0123456789",
            "модель",
        ] {
            assert!(!is_application(text), "{text}");
        }
    }
}
