//! Keys of earlier releases, in files that sites wrote then: they are read as what replaces them,
//! and each is named, so that no file has to be changed before an upgrade.

use std::ops::Range;

use serde::de::{DeserializeOwned, Error as _};
use toml::de::{DeArray, DeString, DeTable, DeValue, Error};
use toml::{Spanned, Table};

use crate::all_mistakes::{read, recovered};
use crate::mistake::{Mistake, line_of};

/// A key of an earlier release that is none any more, or whose values have another form.
#[derive(Clone, Copy, Debug)]
pub struct Earlier {
    /// The key behind those of its tables, joined by dots. In a list of tables each may have it.
    pub key: &'static str,
    /// What its value is read as.
    pub now: Now,
}

/// What replaces a key. Other keys are those of the same table.
#[derive(Clone, Copy, Debug)]
pub enum Now {
    /// This value, in TOML, holds whatever the file says.
    Always(&'static str),
    /// The value means nothing any more, because of what this text says.
    Nothing(&'static str),
    /// The value has another key.
    Key(&'static str),
    /// The elements are in the list of another key. There texts have this sign in front.
    Elements(&'static str, &'static str),
    /// The directory of the path that was the value has another key. The file in it has a fixed name.
    Directory(&'static str, &'static str),
    /// A table was the value, and this key of it is the value now.
    Member(&'static str),
}

/// A key of an earlier release in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// Its line in the file.
    pub line: usize,
    /// The key, and what is to be done, in a sentence.
    pub said: String,
}

/// Reads a text as [`parse`](crate::parse) does, and keys of earlier releases as what replaces them.
///
/// # Errors
///
/// With all mistakes, each with its line. An earlier key is one if what it said can no longer be said.
pub fn parse_with_earlier<T: DeserializeOwned>(
    text: &str,
    earlier: &[Earlier],
) -> Result<(T, Vec<Met>), Mistake> {
    let mut root = DeTable::parse(text).map_err(|first| Mistake::in_syntax(text, first))?;
    let mut met = Vec::new();
    for one in earlier {
        let mut met = |place: Range<usize>, said: String| {
            let line = line_of(text, place.start);
            met.push(Met { line, said });
        };
        let keys: Vec<&str> = one.key.split('.').collect();
        rewrite(root.get_mut(), &keys, one, text, &mut met)
            .map_err(|problem| Mistake::of(text, problem, Vec::new()))?;
    }
    met.sort_by_key(|one| one.line);
    match read(root.clone()) {
        Ok(value) => Ok((value, met)),
        Err(first) => Err(Mistake::of(text, first, recovered::<T>(root).found)),
    }
}

fn rewrite(
    table: &mut DeTable<'_>,
    keys: &[&str],
    one: &Earlier,
    text: &str,
    met: &mut impl FnMut(Range<usize>, String),
) -> Result<(), Error> {
    match keys {
        [] => Ok(()),
        [key] => {
            // What has the form of now stays where it is.
            if matches!(one.now, Now::Member(_))
                && table
                    .get(*key)
                    .is_some_and(|value| !value.get_ref().is_table())
            {
                return Ok(());
            }
            let Some((key, value)) = table.remove_entry(*key) else {
                return Ok(());
            };
            let place = key.span();
            let said = replace(table, key, value, one, text).map_err(|problem| {
                Error::custom(format!("line {}: {problem}", line_of(text, place.start)))
            })?;
            met(place, said);
            Ok(())
        }
        [first, rest @ ..] => match table.get_mut(*first).map(Spanned::get_mut) {
            Some(DeValue::Table(below)) => rewrite(below, rest, one, text, met),
            Some(DeValue::Array(rows)) => rows.iter_mut().try_for_each(|row| match row.get_mut() {
                DeValue::Table(below) => rewrite(below, rest, one, text, met),
                _ => Ok(()),
            }),
            _ => Ok(()),
        },
    }
}

/// Puts what replaces an entry into its table, and returns what to say about it.
fn replace<'i>(
    table: &mut DeTable<'i>,
    key: Spanned<DeString<'i>>,
    value: Spanned<DeValue<'i>>,
    one: &Earlier,
    text: &str,
) -> Result<String, String> {
    let name = one.key;
    let as_written = text.get(value.span()).unwrap_or_default().to_owned();
    let (span, place) = (key.span(), value.span());
    let called = |name: &'static str| Spanned::new(span.clone(), DeString::from(name));
    match one.now {
        Now::Always(always) if same(&as_written, always) => Ok(format!(
            "{name} is no setting any more, and is always as it is here: remove the line"
        )),
        Now::Always(always) => Ok(format!(
            "{name} is no setting any more: it is always {always}, and not {as_written}; remove the line"
        )),
        Now::Nothing(why) => Ok(format!("{name} is no setting any more: {why}")),
        Now::Key(now) => {
            if table.contains_key(now) {
                return Err(format!(
                    "{name} is now called {now}, which is there too: keep {now} alone"
                ));
            }
            table.insert(called(now), value);
            Ok(format!(
                "{name} is now called {now}: write {now} = {as_written}"
            ))
        }
        Now::Elements(now, sign) => {
            let DeValue::Array(elements) = value.into_inner() else {
                return Err(format!("{name} = {as_written}: a list is expected"));
            };
            let is_empty = elements.is_empty();
            let mut all = match table.remove(now).map(Spanned::into_inner) {
                Some(DeValue::Array(there)) => there,
                Some(_) => return Err(format!("{now} is no list")),
                None => DeArray::default(),
            };
            for element in elements {
                let at = element.span();
                all.push(Spanned::new(at, signed(element.into_inner(), sign)));
            }
            table.insert(called(now), Spanned::new(place, DeValue::Array(all)));
            Ok(match (is_empty, sign) {
                (true, _) => format!("{name} is part of {now} now: remove the line"),
                (false, "") => format!("{name} is part of {now} now: write its elements there"),
                (false, _) => {
                    format!(
                        "{name} is part of {now} now: write its elements there as \"{sign}NAME\""
                    )
                }
            })
        }
        Now::Directory(now, file) => {
            let path = value.get_ref().as_str().unwrap_or_default();
            let directory = path
                .strip_suffix(file)
                .and_then(|path| path.strip_suffix('/'));
            let there = table.get(now).and_then(|there| there.get_ref().as_str());
            let Some(directory) = directory else {
                return Err(format!(
                    "{name} = {as_written} cannot be: write {now} = DIRECTORY, in which it is called {file}"
                ));
            };
            match there {
                Some(other) if other != directory => {
                    return Err(format!(
                        "{name} = {as_written} and {other} are two directories: put links to all of Slurm's \
                         programs into one, and write {now} = DIRECTORY"
                    ));
                }
                _ => {}
            }
            let said = format!("{name} follows from {now} now: write {now} = {directory:?}");
            let directory = DeValue::String(DeString::from(directory.to_owned()));
            table.insert(called(now), Spanned::new(place, directory));
            Ok(said)
        }
        Now::Member(member) => {
            let DeValue::Table(mut parts) = value.into_inner() else {
                return Ok(String::new());
            };
            let Some((_, part)) = parts.remove_entry(member) else {
                return Ok(format!("{name} is no table any more: remove it"));
            };
            let as_written = text.get(part.span()).unwrap_or_default();
            let said = format!("{name} is no table any more: write {name} = {as_written}");
            table.insert(key, part);
            Ok(said)
        }
    }
}

fn signed<'i>(element: DeValue<'i>, sign: &str) -> DeValue<'i> {
    match element {
        DeValue::String(text) if !sign.is_empty() => {
            DeValue::String(DeString::from(format!("{sign}{text}")))
        }
        other => other,
    }
}

/// Returns true if two texts are the same value in TOML.
fn same(one: &str, other: &str) -> bool {
    let value = |text: &str| format!("it = {text}").parse::<Table>();
    match (value(one), value(other)) {
        (Ok(one), Ok(other)) => {
            let number = |table: &Table| {
                table["it"]
                    .as_float()
                    .or(table["it"].as_integer().map(|it| it as f64))
            };
            one == other || number(&one).is_some() && number(&one) == number(&other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        study: Study,
        #[serde(default)]
        admins: Vec<toml::Value>,
        #[serde(default)]
        slurm: Vec<Slurm>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Study {
        patience: u32,
        little: f64,
    }

    impl Default for Study {
        fn default() -> Self {
            Study {
                patience: 10,
                little: 0.03,
            }
        }
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Slurm {
        programs: String,
    }

    const EARLIER: &[Earlier] = &[
        Earlier {
            key: "study.points",
            now: Now::Always("15"),
        },
        Earlier {
            key: "study.own",
            now: Now::Nothing("the method has none; remove the table"),
        },
        Earlier {
            key: "study.wait",
            now: Now::Key("patience"),
        },
        Earlier {
            key: "study.little",
            now: Now::Member("share"),
        },
        Earlier {
            key: "admin_uids",
            now: Now::Elements("admins", ""),
        },
        Earlier {
            key: "admin_groups",
            now: Now::Elements("admins", "@"),
        },
        Earlier {
            key: "slurm.squeue",
            now: Now::Directory("programs", "squeue"),
        },
        Earlier {
            key: "slurm.sacct",
            now: Now::Directory("programs", "sacct"),
        },
    ];

    fn read_so(text: &str) -> (Sample, Vec<(usize, String)>) {
        let (sample, met) = parse_with_earlier(text, EARLIER).unwrap();
        (
            sample,
            met.into_iter().map(|one| (one.line, one.said)).collect(),
        )
    }

    #[test]
    fn an_earlier_file_is_read_and_each_key_says_what_replaces_it() {
        let earlier = "admin_uids = [7]\nadmin_groups = ['wheel']\n[study]\npoints = 15.0\nwait = 30\n\
             little = { share = 0.1, call_ms = 2 }\n[study.own]\nx = 1\n\
             [[slurm]]\nsqueue = '/opt/bin/squeue'\nsacct = '/opt/bin/sacct'\n";
        let now = "admins = [7, '@wheel']\n[study]\npatience = 30\nlittle = 0.1\n[[slurm]]\nprograms = '/opt/bin'\n";
        let (sample, met) = read_so(earlier);
        assert_eq!((sample, Vec::new()), read_so(now));
        let expected = [
            (
                1,
                "admin_uids is part of admins now: write its elements there",
            ),
            (
                2,
                "admin_groups is part of admins now: write its elements there as \"@NAME\"",
            ),
            (
                4,
                "study.points is no setting any more, and is always as it is here: remove the line",
            ),
            (5, "study.wait is now called patience: write patience = 30"),
            (
                6,
                "study.little is no table any more: write study.little = 0.1",
            ),
            (
                7,
                "study.own is no setting any more: the method has none; remove the table",
            ),
            (
                10,
                "slurm.squeue follows from programs now: write programs = \"/opt/bin\"",
            ),
            (
                11,
                "slurm.sacct follows from programs now: write programs = \"/opt/bin\"",
            ),
        ];
        assert_eq!(met, expected.map(|(line, said)| (line, said.to_owned())));
    }

    #[test]
    fn a_value_that_no_longer_holds_is_told_with_the_one_that_does() {
        let (_, met) = read_so("[study]\npoints = 6 # few\n");
        let said =
            "study.points is no setting any more: it is always 15, and not 6; remove the line";
        assert_eq!(met, [(2, said.to_owned())]);
    }

    #[test]
    fn what_can_no_longer_be_said_is_refused_with_its_line() {
        for (text, told) in [
            (
                "[study]\nwait = 1\npatience = 2\n",
                "line 2: study.wait is now called patience",
            ),
            (
                "[study]\n[[slurm]]\nsqueue = '/opt/bin/sq'\n",
                "line 3: slurm.squeue = '/opt/bin/sq' cannot be",
            ),
            (
                "[study]\n[[slurm]]\nsqueue = '/a/squeue'\nsacct = '/b/sacct'\n",
                "line 4: slurm.sacct = '/b/sacct' and /a are two directories",
            ),
            (
                "[study]\npoints = 6\npatiense = 2\n",
                "did you mean `patience`?",
            ),
            ("[study]\npoints = \n", "line 2"),
        ] {
            let refused = parse_with_earlier::<Sample>(text, EARLIER)
                .unwrap_err()
                .to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
