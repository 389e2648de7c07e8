//! Everything that is wrong in a file, at once.
//!
//! serde ends with the first mistake. So what is mistaken is taken out of the parsed file, which is
//! read again, until nothing is wrong in the rest.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue, Deserializer, Error};

use crate::mistake::{explained, nearest};

/// No file has more mistakes that anybody wants to read at once.
const MOST: usize = 100;

/// One thing that is wrong in a TOML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where, in bytes.
    pub place: Range<usize>,
    /// What, with the word that may be meant.
    pub problem: String,
}

/// A file that was read as far as it can be.
#[derive(Clone, Debug)]
pub struct Every<T> {
    /// The file without what is wrong in it; none if too little is left. A text that is missing is
    /// empty.
    pub value: Option<T>,
    /// What is wrong, in the order of the lines.
    pub found: Vec<Found>,
}

/// Reads a text, and finds everything that is wrong in it.
#[must_use]
pub fn every<T: DeserializeOwned>(text: &str) -> Every<T> {
    let (mut root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Every {
            value: None,
            found: sorted(errors.iter().map(as_it_is).collect()),
        };
    }
    let mut found = Vec::new();
    let mut taken = Taken::default();
    for _ in 0..MOST {
        let error = match read::<T>(root.clone()) {
            Ok(value) => {
                return Every {
                    value: Some(value),
                    found: sorted(found),
                };
            }
            Err(error) => error,
        };
        let culprit = culprit::<T>(&root, &error);
        if !taken.explains(&error) {
            found.push(located(&root, &error, culprit.as_ref()));
        }
        // One that is misspelt is not missing besides.
        taken
            .keys
            .extend(nearest(error.message()).map(str::to_owned));
        if !taken.take(root.get_mut(), &error, culprit.as_ref()) {
            break;
        }
    }
    Every {
        value: None,
        found: sorted(found),
    }
}

fn read<T: DeserializeOwned>(root: Spanned<DeTable<'_>>) -> Result<T, Error> {
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

/// The element of a list in which an error is that names no place within it: the keys that lead to
/// the list, and the element's place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Culprit {
    list: Vec<String>,
    element: usize,
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

/// The keys of a list of tables that stands at a place.
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

/// An error at the key that it is about, as far as its message says which.
fn located(root: &Spanned<DeTable<'_>>, error: &Error, culprit: Option<&Culprit>) -> Found {
    let mut found = as_it_is(error);
    if let Some(Culprit { list, element }) = culprit
        && let Some(one) = array(root.get_ref(), list).and_then(|array| array.get(*element))
    {
        found.place = one.span();
        if let DeValue::Table(table) = one.get_ref()
            && let Some((key, _)) = key_of(table, error.message())
        {
            found.place = key.span();
        }
    }
    found
}

/// The entry of a table that a message speaks of: `unknown field `KEY``, or `SUBJECT: KEY ...`, or
/// `... has no KEY: remove it`.
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
    // A value is one of several.
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

fn missing_field(message: &str) -> Option<&str> {
    quoted(message, "missing field `")
}

fn quoted<'a>(message: &'a str, start: &str) -> Option<&'a str> {
    Some(message.strip_prefix(start)?.split_once('`')?.0)
}

/// What was taken out.
#[derive(Debug, Default)]
struct Taken {
    keys: Vec<String>,
}

impl Taken {
    /// Whether an error is a consequence of what was taken out.
    fn explains(&self, error: &Error) -> bool {
        missing_field(error.message()).is_some_and(|key| self.keys.iter().any(|one| one == key))
    }

    /// Takes out what an error is about; false if nothing can be.
    fn take(&mut self, root: &mut DeTable<'_>, error: &Error, culprit: Option<&Culprit>) -> bool {
        let message = error.message();
        if let Some(Culprit { list, element }) = culprit {
            let Some(array) = array_mut(root, list) else {
                return false;
            };
            if let Some(key) = unknown_field(message)
                && let Some(DeValue::Table(table)) = array.get_mut(*element).map(Spanned::get_mut)
                && table.remove(key).is_some()
            {
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
            (None, Some(key)) => fill(root, key),
            (place, _) => place.is_some_and(|span| self.take_at(root, &span)),
        }
    }

    /// Takes out the entry whose key or value stands at a place, the innermost.
    fn take_at(&mut self, table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
        let mut at = None;
        for (key, value) in table.iter_mut() {
            let taken = match value.get_mut() {
                DeValue::Table(table) => self.take_at(table, span),
                DeValue::Array(array) => self.take_in(array, span),
                _ => false,
            };
            if taken {
                return true;
            }
            let covers = |place: Range<usize>| place.start <= span.start && span.end <= place.end;
            if key.span() == *span || covers(value.span()) {
                at = Some(key.get_ref().to_string());
            }
        }
        let Some(key) = at else {
            return false;
        };
        table.remove(key.as_str());
        self.keys.push(key);
        true
    }

    fn take_in(&mut self, array: &mut DeArray<'_>, span: &Range<usize>) -> bool {
        for one in array.iter_mut() {
            if let DeValue::Table(table) = one.get_mut()
                && self.take_at(table, span)
            {
                return true;
            }
        }
        false
    }
}

/// Gives a file a text that it lacks, so that the rest can be read; false if it has it. If it is no
/// text that is missing, that is the next error, and the last.
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
        let found = every::<Sample>(text).found.into_iter();
        let line = |found: &Found| text[..found.place.start].matches('\n').count() + 1;
        found.map(|one| (line(&one), one.problem)).collect()
    }

    #[test]
    fn a_good_file_is_read() {
        let read = every::<Sample>("name = 'x'\n[[lists]]\nleast = 1\nmost = 2\n");
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
        // Nor what is only misspelt; the rest is read all the same.
        let misspelt = lines("nmae = 'x'\nsize = 'y'\n");
        let places: Vec<usize> = misspelt.iter().map(|(line, _)| *line).collect();
        assert_eq!(places, [1, 2], "{misspelt:?}");
        let read = every::<Sample>("nmae = 'x'\nsize = 1\n");
        assert_eq!(read.value.map(|value| value.name), Some(String::new()));
        assert_eq!(lines("[[lists]]\nleast = 'x'\nmost = 'y'\n").len(), 3);
        assert_eq!(lines("size = 1\n")[0].1, "missing field `name`");
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
