//! Parameters without effect: the application, or the library, has another value in force than runs are given, whatever
//! that is.

use std::collections::BTreeSet;

use io_autotune_engine::{IneffectiveParameter, ObservedValue, ParameterEffect, ParameterEffects};
use io_autotune_protocol::Told;
use serde::Deserialize;
use serde_json::Value;

/// What the nodes of a run were told of its parameters.
pub(crate) fn observed_values(reports: &[Value]) -> Vec<ObservedValue> {
    // Most were told nothing, and every run is asked about on its way to a verdict.
    let told = reports.iter().filter_map(|report| report.get("told"));
    told.filter_map(|told| Vec::<Told>::deserialize(told).ok())
        .flatten()
        .map(|told| ObservedValue {
            parameter: told.parameter,
            name: told.name,
            given: told.asked,
            in_force: told.in_force,
            as_given: told.as_asked,
        })
        .collect()
}

/// The parameters that the application does not heed, each in a sentence.
pub(crate) fn sentences(effects: &ParameterEffects) -> Vec<String> {
    let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(", ");
    let sentence = |(ineffective, effect): (IneffectiveParameter, &ParameterEffect)| {
        format!(
            "{} has no effect here: {} of the latest runs were given {}, and {} was in force; such runs do not count. It is \
             held at its default, and no longer tuned. Does the program set it itself? Then it has to leave {} to \
             io-autotune, or the parameter out of the accelerator",
            ineffective.parameter,
            effect.against,
            list(&effect.given),
            list(&effect.instead),
            effect.name
        )
    };
    effects.ineffective().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(asked: &str) -> Value {
        let told = |parameter: &str, asked: &str, in_force: &str| {
            json!({ "parameter": parameter, "name": format!("romio_{parameter}"), "asked": asked,
                    "in_force": in_force, "as_asked": asked == in_force })
        };
        json!({
            "job": { "cluster": "c", "job_id": 1, "restart_count": 0, "uid": 1, "gid": 1, "node": "n1", "nodes": 1,
                     "partition": "main", "cpus_per_node": "8" },
            "request": {},
            "applied": { "kind": "default" },
            "steps": [],
            "told": [told("sieve", asked, "disable"), told("nodes", "4", "4")],
        })
    }

    #[test]
    fn a_parameter_that_is_never_as_given_has_no_effect() {
        let mut effects = ParameterEffects::default();
        effects.record(&observed_values(&[report("enable")]));
        assert!(sentences(&effects).is_empty(), "one run is an accident");
        effects.record(&observed_values(&[
            report("automatic"),
            json!("not a report"),
        ]));
        let [only] = &sentences(&effects)[..] else {
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
        assert!(only.contains("leave romio_sieve to"), "{only}");
    }
}
