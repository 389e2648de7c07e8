//! Parameters that a study tunes in vain: the application, or the library, has another value in force than runs are
//! given, whatever that is.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_protocol::{FinishRequest, Told};
use serde::Deserialize;
use serde_json::Value;

/// So many runs have to say so, and none may say otherwise.
const RUNS: usize = 2;

/// What each of some runs was told of parameters it was given a value for.
pub(crate) fn told(reports: &[Value]) -> Vec<Told> {
    let readable = reports
        .iter()
        .filter_map(|report| FinishRequest::deserialize(report).ok());
    readable
        .flat_map(|report| report.told)
        .filter(|one| one.asked.is_some())
        .collect()
}

/// The parameters that were never in force as given, each in a sentence.
pub(crate) fn sentences(runs: &[Vec<Told>]) -> Vec<String> {
    let mut by_parameter = BTreeMap::<&str, Vec<&Told>>::new();
    for one in runs.iter().flatten() {
        by_parameter.entry(&one.parameter).or_default().push(one);
    }
    by_parameter
        .into_iter()
        .filter(|(_, said)| said.len() >= RUNS && said.iter().all(|one| !one.as_asked))
        .map(|(parameter, said)| {
            let list = |values: BTreeSet<&str>| values.into_iter().collect::<Vec<_>>().join(", ");
            let asked = list(said.iter().filter_map(|one| one.asked.as_deref()).collect());
            let in_force = list(said.iter().map(|one| one.in_force.as_str()).collect());
            format!(
                "{parameter} has no effect here: {} of the latest runs were given {asked}, and {in_force} was in force; such \
                 runs do not count. Does the program set it itself? Then it has to leave {} to io-autotune, or the \
                 parameter out of the accelerator",
                said.len(),
                said[0].name
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(parameter: &str, asked: &str, in_force: &str) -> Told {
        Told {
            parameter: parameter.into(),
            name: parameter.into(),
            asked: Some(asked.into()),
            in_force: in_force.into(),
            as_asked: asked == in_force,
        }
    }

    #[test]
    fn a_parameter_that_is_never_as_given_has_no_effect() {
        let never = |asked| one("sieve", asked, "disable");
        let [only] = &sentences(&[
            vec![never("enable"), one("nodes", "2", "1")],
            vec![never("automatic"), one("nodes", "4", "4")],
        ])[..] else {
            panic!("one sentence")
        };
        assert!(
            only.starts_with("sieve has no effect here: 2 of the latest runs"),
            "{only}"
        );
        assert!(
            only.contains("given automatic, enable, and disable was in force"),
            "{only}"
        );
        assert!(
            sentences(&[vec![never("enable")]]).is_empty(),
            "one run is an accident"
        );
    }
}
