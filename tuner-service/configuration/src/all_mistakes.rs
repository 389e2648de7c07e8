//! All mistakes in a file at once.
//!
//! serde stops at the first mistake. So mistaken entries are taken out of the parsed file, which is
//! read again, until the rest is correct.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer, Error};

use crate::nearest::{explained, meant};

/// The most mistakes that are reported at once.
const MOST: usize = 100;

/// A mistake in a TOML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The place, in bytes.
    pub place: Range<usize>,
    /// The problem, with the word that may be meant.
    pub problem: String,
}

/// A file that was read as far as possible.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The file without its mistakes; none if too little is left. A missing text is read as an
    /// empty one.
    pub value: Option<T>,
    /// The mistakes, in the order of the lines.
    pub found: Vec<Found>,
}

/// Reads a text, and finds all mistakes in it.
#[must_use]
pub fn parse_recoverable<T: DeserializeOwned>(text: &str) -> Parsed<T> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return recovered(root);
    }
    Parsed {
        value: None,
        found: sorted(errors.iter().map(as_it_is).collect()),
    }
}

/// Reads a file that is TOML, and finds all mistakes in it.
pub(crate) fn recovered<T: DeserializeOwned>(mut root: Spanned<DeTable<'_>>) -> Parsed<T> {
    let mut found = Vec::new();
    let mut taken = Taken::default();
    for _ in 0..MOST {
        let error = match read::<T>(root.clone()) {
            Ok(value) => {
                return Parsed {
                    value: Some(value),
                    found: sorted(found),
                };
            }
            Err(error) => error,
        };
        let culprit = culprit::<T>(&root, &error);
        if !taken.explains(&root, &error, culprit.as_ref()) {
            found.push(located(&root, &error, culprit.as_ref()));
        }
        if !taken.take(root.get_mut(), &error, culprit.as_ref()) {
            break;
        }
    }
    Parsed {
        value: None,
        found: sorted(found),
    }
}

pub(crate) fn read<T: DeserializeOwned>(root: Spanned<DeTable<'_>>) -> Result<T, Error> {
    T::deserialize(Deserializer::from(root))
}

fn as_it_is(error: &Error) -> Found {
    Found {
        place: error.span().unwrap_or(0..0),
        problem: explained(error.message()),
    }
}

fn sorted(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|one| one.place.start);
    found.dedup();
    found
}

/// The element of a list with an error that names no place within it: the keys that lead to the
/// list, and the element's place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Culprit {
    list: Vec<String>,
    element: usize,
}

impl Culprit {
    fn of<'a, 'i>(&self, root: &'a Spanned<DeTable<'i>>) -> Option<&'a Spanned<DeValue<'i>>> {
        array(root.get_ref(), &self.list)?.get(self.element)
    }
}

/// The first element with which a list has the error.
fn culprit<T: DeserializeOwned>(root: &Spanned<DeTable<'_>>, error: &Error) -> Option<Culprit> {
    let span = error.span()?;
    let list = list_at(root.get_ref(), &span)?;
    let length = array(root.get_ref(), &list)?.len();
    let same = |kept: usize| {
        let mut part = root.clone();
        if let Some(array) = array_mut(part.get_mut(), &list) {
            *array = array.clone().into_iter().take(kept).collect();
        }
        read::<T>(part)
            .err()
            .is_some_and(|other| other.message() == error.message())
    };
    let element = (0..length).find(|element| same(element + 1))?;
    Some(Culprit { list, element })
}

/// The keys of the list of tables at a place.
fn list_at(table: &DeTable<'_>, span: &Range<usize>) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let key = key.get_ref().to_string();
        let below = match value.get_ref() {
            DeValue::Array(array) if array.iter().any(|one| one.get_ref().is_table()) => {
                let is_here = value.span() == *span || array.iter().any(|one| one.span() == *span);
                is_here.then(Vec::new)
            }
            DeValue::Table(table) => list_at(table, span),
            _ => None,
        }?;
        Some([vec![key], below].concat())
    })
}

fn array<'a, 'i>(table: &'a DeTable<'i>, keys: &[String]) -> Option<&'a DeArray<'i>> {
    let (key, rest) = keys.split_first()?;
    match table.get(key.as_str())?.get_ref() {
        DeValue::Array(array) if rest.is_empty() => Some(array),
        DeValue::Table(table) => self::array(table, rest),
        _ => None,
    }
}

fn array_mut<'a, 'i>(table: &'a mut DeTable<'i>, keys: &[String]) -> Option<&'a mut DeArray<'i>> {
    let (key, rest) = keys.split_first()?;
    match table.get_mut(key.as_str())?.get_mut() {
        DeValue::Array(array) if rest.is_empty() => Some(array),
        DeValue::Table(table) => array_mut(table, rest),
        _ => None,
    }
}

/// An error at the key that it concerns, as far as its message names one.
fn located(root: &Spanned<DeTable<'_>>, error: &Error, culprit: Option<&Culprit>) -> Found {
    let mut found = as_it_is(error);
    if let Some(one) = culprit.and_then(|culprit| culprit.of(root)) {
        found.place = one.span();
        if let DeValue::Table(table) = one.get_ref()
            && let Some((key, _)) = key_of(table, error.message())
        {
            found.place = key.span();
        }
    }
    found
}

/// The entry of a table that a message names: `unknown field `KEY``, or `SUBJECT: KEY ...`, or `...
/// has no KEY: remove it`.
fn key_of<'a, 'i>(
    table: &'a DeTable<'i>,
    message: &str,
) -> Option<(
    &'a Spanned<toml::de::DeString<'i>>,
    &'a Spanned<DeValue<'i>>,
)> {
    let unknown = unknown_field(message);
    let surplus = message
        .strip_suffix(": remove it")
        .and_then(|told| told.rsplit_once(" has no "))
        .map(|(_, key)| key);
    let told = message.split_once(": ").map(|(_, told)| told);
    let first = told.and_then(|told| told.split([' ', ':']).next());
    // The value is one of several.
    let several = first.map(|first| format!("{first}s"));
    let named = [unknown, surplus, first, several.as_deref()];
    named
        .into_iter()
        .flatten()
        .find_map(|key| table.get_key_value(key))
}

fn unknown_field(message: &str) -> Option<&str> {
    quoted(message, "unknown field `")
}

/// The key that a table lacks, by the message: `missing field `KEY``, or `... needs KEY: add it`.
fn missing_field(message: &str) -> Option<&str> {
    let needed = || message.strip_suffix(": add it")?.rsplit_once(" needs ");
    quoted(message, "missing field `").or_else(|| Some(needed()?.1))
}

fn quoted<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    Some(message.strip_prefix(start)?.split_once('`')?.0)
}

/// The entries that were taken out.
#[derive(Debug, Default)]
struct Taken {
    /// The keys, each with the place of its table; with a misspelt key also the one that is meant.
    keys: Vec<(Range<usize>, String)>,
    /// True if an empty text was filled in where one was missing.
    filled: bool,
}

/// The place of a whole file.
const ROOT: Range<usize> = 0..0;

impl Taken {
    /// Returns true if an error follows from entries that were taken out of the same table: a
    /// missing key that is present but wrong, or an error of the table as a whole, which may be
    /// correct once the rest is.
    fn explains(
        &self,
        root: &Spanned<DeTable<'_>>,
        error: &Error,
        culprit: Option<&Culprit>,
    ) -> bool {
        let element = culprit.and_then(|culprit| culprit.of(root));
        let place = match element {
            Some(element) => element.span(),
            None => error.span().filter(|span| !span.is_empty()).unwrap_or(ROOT),
        };
        let mut keys = self.keys.iter().filter(|(table, _)| *table == place);
        match (
            missing_field(error.message()),
            element.map(Spanned::get_ref),
        ) {
            (Some(missing), _) => keys.any(|(_, key)| key == missing),
            // A filled-in text has no place in the file.
            (None, None) => place == ROOT && self.filled,
            (None, Some(DeValue::Table(table))) => {
                keys.next().is_some() && key_of(table, error.message()).is_none()
            }
            (None, Some(_)) => false,
        }
    }

    fn note(&mut self, table: Range<usize>, key: &str, message: &str) {
        let meant = meant(message).map(str::to_owned);
        let keys = [Some(key.to_owned()), meant].into_iter().flatten();
        self.keys.extend(keys.map(|key| (table.clone(), key)));
    }

    /// Takes out the entry that an error concerns. Returns false if there is none.
    fn take(&mut self, root: &mut DeTable<'_>, error: &Error, culprit: Option<&Culprit>) -> bool {
        let message = error.message();
        if let Some(Culprit { list, element }) = culprit {
            let Some(array) = array_mut(root, list) else {
                return false;
            };
            if let Some(key) = unknown_field(message)
                && let Some(one) = array.get_mut(*element)
                && let place = one.span()
                && let DeValue::Table(table) = one.get_mut()
                && table.remove(key).is_some()
            {
                self.note(place, key, message);
                return true;
            }
            let all = array.clone().into_iter().enumerate();
            let rest = all.filter(|(place, _)| place != element);
            *array = rest.map(|(_, one)| one).collect();
            return true;
        }
        // The whole file has no place of its own.
        let place = error.span().filter(|span| !span.is_empty());
        match (place, missing_field(message)) {
            (None, Some(key)) => {
                self.filled = true;
                fill(root, key)
            }
            (place, _) => place.is_some_and(|span| self.take_at(root, ROOT, &span, message)),
        }
    }

    /// Takes out the innermost entry whose key or value is at a place.
    fn take_at(
        &mut self,
        table: &mut DeTable<'_>,
        place: Range<usize>,
        span: &Range<usize>,
        message: &str,
    ) -> bool {
        let mut at = None;
        for (key, value) in table.iter_mut() {
            let stands_at = value.span();
            let taken = match value.get_mut() {
                DeValue::Table(table) => self.take_at(table, stands_at.clone(), span, message),
                DeValue::Array(array) => self.take_in(array, span, message),
                _ => false,
            };
            if taken {
                return true;
            }
            let covers = |place: Range<usize>| place.start <= span.start && span.end <= place.end;
            if key.span() == *span || covers(stands_at) {
                at = Some(key.get_ref().to_string());
            }
        }
        let Some(key) = at else {
            return false;
        };
        table.remove(key.as_str());
        self.note(place, &key, message);
        true
    }

    fn take_in(&mut self, array: &mut DeArray<'_>, span: &Range<usize>, message: &str) -> bool {
        for one in array.iter_mut() {
            let place = one.span();
            if let DeValue::Table(table) = one.get_mut()
                && self.take_at(table, place, span, message)
            {
                return true;
            }
        }
        false
    }
}

/// Fills in an empty text that a file lacks, so that the rest can be read. Returns false if the
/// file has the key. If the missing value is not a text, the next error says so, and is the last.
fn fill(root: &mut DeTable<'_>, key: &str) -> bool {
    let nothing = DeValue::String(DeString::from(String::new()));
    let is_new = !root.contains_key(key);
    let key = Spanned::new(0..0, DeString::from(key.to_owned()));
    is_new && root.insert(key, Spanned::new(0..0, nothing)).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default)]
        #[expect(dead_code, reason = "only its kind matters")]
        size: u32,
        #[serde(default)]
        lists: Vec<Spanned<Element>>,
        #[serde(default)]
        below: Below,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Below {
        #[serde(default)]
        lists: Vec<Element>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(try_from = "Raw")]
    struct Element;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Raw {
        least: u32,
        most: u32,
    }

    impl TryFrom<Raw> for Element {
        type Error = String;

        fn try_from(raw: Raw) -> Result<Self, String> {
            match raw.least <= raw.most {
                true => Ok(Element),
                false => Err("element: least is above most".to_owned()),
            }
        }
    }

    fn lines(text: &str) -> Vec<(usize, String)> {
        let found = parse_recoverable::<Sample>(text).found.into_iter();
        let line = |found: &Found| text[..found.place.start].matches('\n').count() + 1;
        found.map(|one| (line(&one), one.problem)).collect()
    }

    #[test]
    fn a_good_file_is_read() {
        let read = parse_recoverable::<Sample>("name = 'x'\n[[lists]]\nleast = 1\nmost = 2\n");
        assert_eq!(read.found, []);
        let value = read.value.unwrap();
        assert_eq!((value.name.as_str(), value.lists.len()), ("x", 1));
        assert!(value.below.lists.is_empty());
    }

    #[test]
    fn everything_that_is_wrong_is_found_at_its_line() {
        let text = "nmae = 'x'\nsize = 'y'\nname = 'x'\n[[lists]]\nleast = 1\nmost = 2\n[[lists]]\nmost = 1\nleast = 2\n\
            [[lists]]\nlaest = 1\nleast = 1\nmost = 2\n[[lists]]\nleast = 1\n[[below.lists]]\nmost = 3\nleast = 2\nx = 1\n\
            [[below.lists]]\nmost = 1\nleast = 2\n";
        let found = lines(text);
        let places: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(places, [1, 2, 9, 11, 14, 18, 19, 22], "{found:#?}");
        assert!(found[0].1.ends_with("did you mean `name`?"), "{found:?}");
        assert!(found[4].1.contains("missing field `most`"), "{found:?}");
        assert_eq!(found[7].1, "element: least is above most");
    }

    #[test]
    fn what_is_left_out_because_it_was_wrong_is_not_missed() {
        assert_eq!(lines("name = 1\n").len(), 1);
        // Nor is a misspelt key reported as missing; the rest is read in any case.
        let misspelt = lines("nmae = 'x'\nsize = 'y'\n");
        let places: Vec<usize> = misspelt.iter().map(|(line, _)| *line).collect();
        assert_eq!(places, [1, 2], "{misspelt:?}");
        let read = parse_recoverable::<Sample>("nmae = 'x'\nsize = 1\n");
        assert_eq!(read.value.map(|value| value.name), Some(String::new()));
        assert_eq!(lines("[[lists]]\nleast = 'x'\nmost = 'y'\n").len(), 3);
        assert_eq!(lines("size = 1\n")[0].1, "missing field `name`");
        #[derive(Debug, serde::Deserialize)]
        struct Listed {
            #[expect(dead_code, reason = "only its kind matters")]
            lists: Vec<Element>,
        }
        let missing = parse_recoverable::<Listed>("x = 1\n").found;
        assert_eq!(missing.len(), 1, "{missing:?}");
        // This applies only to the same table: another table still lacks the key.
        let other = lines("nmae = 'x'\n[[lists]]\nlaest = 1\nmost = 2\n[[lists]]\nmost = 2\n");
        let places: Vec<usize> = other.iter().map(|(line, _)| *line).collect();
        assert_eq!(places, [1, 3, 5], "{other:?}");
    }

    #[test]
    fn what_is_wrong_in_a_table_is_not_told_again_of_the_whole_table() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(try_from = "Either")]
        struct One;

        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Either {
            all: Option<u32>,
            least: Option<u32>,
            most: Option<u32>,
        }

        impl TryFrom<Either> for One {
            type Error = String;

            fn try_from(raw: Either) -> Result<Self, String> {
                match (raw.all, raw.least, raw.most) {
                    (Some(_), None, None) | (None, Some(_), Some(_)) => Ok(One),
                    (None, Some(_), None) => Err("one of a kind needs most: add it".to_owned()),
                    _ => Err("write all, or least and most".to_owned()),
                }
            }
        }

        #[derive(Debug, serde::Deserialize)]
        struct File {
            #[expect(dead_code, reason = "only its kind matters")]
            ones: Vec<Spanned<One>>,
        }

        for (one, told) in [
            ("least = 1\nmost = 'x'", vec!["invalid type"]),
            ("least = 1\nmots = 2", vec!["did you mean `most`?"]),
            (
                "laest = 1\nmots = 2",
                vec!["did you mean `least`?", "did you mean `most`?"],
            ),
            ("all = 'x'", vec!["invalid type"]),
            ("all = 1\nleast = 1", vec!["write all, or"]),
            ("least = 1", vec!["needs most"]),
        ] {
            let found = parse_recoverable::<File>(&format!("[[ones]]\n{one}\n")).found;
            assert_eq!(found.len(), told.len(), "{one}: {found:?}");
            for (one, told) in found.iter().zip(told) {
                assert!(one.problem.contains(told), "{one:?}");
            }
        }
    }

    #[test]
    fn all_that_is_no_toml_is_found() {
        let found = lines("name = 'x\nsize = \nlists = []\n[[x\n");
        assert!(found.len() >= 2, "{found:?}");
        let same = "name = 'x'\nname = 'y'\nsize = 1\nsize = 2\n";
        let places: Vec<usize> = lines(same).iter().map(|(line, _)| *line).collect();
        assert_eq!(places, [2, 4]);
    }
}
