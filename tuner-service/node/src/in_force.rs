//! The profiling library's reports of values in force, which only the accelerator knows.
//!
//! The library (`spank-plugin/mpi-in-force/`) appends to a file [that the job
//! writes](crate::user_files). The text is the user's: a forged one can only make that user's own run
//! not count.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_protocol::{ObservedParameter, ReadBack};

pub(crate) const VARIABLE: &str = "MPI_IO_IN_FORCE";

const VALUE_LIMIT: usize = 256;
const VALUES_SHOWN: usize = 4;

/// The reported values by name; several if the opened files differ.
pub(crate) type Values = BTreeMap<String, BTreeSet<String>>;

/// Reads lines of two tokens and ignores other lines, because a user can write anything.
pub(crate) fn parse(text: &str) -> Values {
    let mut values = Values::new();
    for line in text.lines() {
        let mut tokens = line.split(' ');
        let (Some(name), Some(value), None) = (tokens.next(), tokens.next(), tokens.next()) else {
            continue;
        };
        let is_token = |text: &str| {
            !text.is_empty()
                && text.len() <= VALUE_LIMIT
                && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if is_token(name) && is_token(value) {
            let of_name = values.entry(name.to_owned()).or_default();
            if of_name.len() <= VALUES_SHOWN {
                of_name.insert(value.to_owned());
            }
        }
    }
    values
}

/// The reports on the parameters in `read_back` that have a value.
pub(crate) fn observed(read_back: &[ReadBack], values: &Values) -> Vec<ObservedParameter> {
    let found = read_back.iter().filter_map(|one| {
        let found = values.get(&one.name)?;
        let in_force: Vec<&str> = found.iter().map(String::as_str).collect();
        Some(ObservedParameter {
            parameter: one.parameter.clone(),
            name: one.name.clone(),
            asked: one.asked.clone(),
            in_force: in_force.join(", "),
            as_asked: one
                .asked
                .as_deref()
                .is_none_or(|asked| found.iter().all(|value| is_as_asked(one, asked, value))),
        })
    });
    found.collect()
}

fn is_as_asked(one: &ReadBack, asked: &str, in_force: &str) -> bool {
    let number = |text: &str| text.parse::<i64>().ok();
    let is_within = || Some(number(in_force)? <= number(asked)?);
    in_force == asked || (one.at_most && is_within().unwrap_or(false))
}

pub(crate) fn obstacle(observed: &[ObservedParameter]) -> Option<String> {
    let others: Vec<String> = observed
        .iter()
        .filter(|one| !one.as_asked)
        .map(|one| {
            let asked = one.asked.as_deref().unwrap_or_default();
            format!("{} was {} and not {asked}", one.parameter, one.in_force)
        })
        .collect();
    (!others.is_empty()).then(|| format!("not in force in the application: {}", others.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(asked: Option<&str>, at_most: bool) -> ReadBack {
        ReadBack {
            parameter: "sieve".into(),
            name: "romio_ds_write".into(),
            asked: asked.map(str::to_owned),
            at_most,
        }
    }

    fn one(asked: Option<&str>, at_most: bool, text: &str) -> Option<ObservedParameter> {
        observed(&[read_back(asked, at_most)], &parse(text)).pop()
    }

    #[test]
    fn what_was_asked_for_is_compared_with_every_opened_file() {
        let enabled = "cb_nodes 4\nromio_ds_write enable\n";
        assert!(one(Some("enable"), false, enabled).unwrap().as_asked);
        let other = one(Some("disable"), false, enabled).unwrap();
        assert!(!other.as_asked);
        assert_eq!(
            obstacle(&[other]).unwrap(),
            "not in force in the application: sieve was enable and not disable"
        );
        let both = one(
            Some("enable"),
            false,
            "romio_ds_write disable\nromio_ds_write enable\n",
        );
        let both = both.unwrap();
        assert!(!both.as_asked, "one file had another");
        assert_eq!(both.in_force, "disable, enable");
        let nothing_asked = one(None, false, enabled).unwrap();
        assert!(nothing_asked.as_asked);
        assert_eq!(obstacle(&[nothing_asked]), None);
        assert_eq!(one(Some("enable"), false, ""), None, "nobody said anything");
    }

    #[test]
    fn of_a_limit_a_smaller_number_is_as_asked() {
        for (asked, text, expected) in [
            ("8", "romio_ds_write 4\n", true),
            ("8", "romio_ds_write 8\n", true),
            ("8", "romio_ds_write 16\n", false),
            ("8", "romio_ds_write few\n", false),
        ] {
            assert_eq!(one(Some(asked), true, text).unwrap().as_asked, expected);
            assert_eq!(
                one(Some(asked), false, text).unwrap().as_asked,
                text.ends_with(" 8\n")
            );
        }
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_in_force() {
        io_autotune_fuzzing::Target::new("in_force", &["cb_nodes 4\nromio_ds_write enable\n"]).run(
            |input| {
                for (name, found) in parse(&String::from_utf8_lossy(input)) {
                    assert!(name.len() <= VALUE_LIMIT && found.len() <= VALUES_SHOWN + 1);
                    assert!(
                        found
                            .iter()
                            .all(|value| value.bytes().all(|byte| byte.is_ascii_graphic()))
                    );
                }
            },
        );
    }
}
