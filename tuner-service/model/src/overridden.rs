//! Parameters that are overridden: the application, or its library, puts a value of its own in force.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::space::MAX_PARAMETERS;

/// A parameter is ineffective after this many runs with another value in force, where no run ever had the given one;
const RUNS: u32 = 2;
/// after this many in a row, where some run did.
const RUNS_AFTER_EFFECT: u32 = 12;
/// At most this many values of each kind are remembered.
const MOST_VALUES: usize = 8;

/// The value of one parameter that one node of a run observed in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedValue {
    /// The parameter.
    pub parameter: String,
    /// What the accelerator calls it.
    pub name: String,
    /// The value that the job was given; none where it was at its default.
    pub given: Option<String>,
    /// The value in force.
    pub in_force: String,
    /// Whether that is what was given, or nothing was.
    pub as_given: bool,
}

/// What the runs of an epoch show of one parameter's effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterEffect {
    /// What the accelerator calls it.
    pub name: String,
    /// How many runs had another value in force than they were given, since one had its own.
    pub against: u32,
    /// How many runs that were given none had a value in force that none of those had, the latest in a row.
    pub otherwise: u32,
    /// What those that had another were given.
    pub given: BTreeSet<String>,
    /// What those had in force.
    pub instead: BTreeSet<String>,
    /// What was in force in runs that had what they were given.
    #[serde(rename = "heeded")]
    pub effective: BTreeSet<String>,
}

/// A parameter without effect; it is frozen at its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IneffectiveParameter {
    /// The parameter.
    pub parameter: String,
    /// Whether no run of the epoch ever had it as given, so that runs that differ in it alone are runs of one
    /// parametrization. Otherwise those that had another value than the default are left out.
    pub pooled: bool,
}

/// What the runs of an epoch were told of each parameter that the accelerator could be asked for.
///
/// Like a history it is a cache over the runs: each enters once, when it gets its first verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterEffects(BTreeMap<String, ParameterEffect>);

impl ParameterEffect {
    /// Takes in what the nodes of one run were told.
    fn record(&mut self, run: &[&ObservedValue]) {
        let overridden: Vec<&&ObservedValue> =
            run.iter().filter(|observed| !observed.as_given).collect();
        let all_seen = |seen: &BTreeSet<String>| run.iter().all(|one| seen.contains(&one.in_force));
        if let Some(first) = overridden.first() {
            self.name.clone_from(&first.name);
            self.against = self.against.saturating_add(1);
            self.otherwise = 0;
            for observed in overridden {
                remember(&mut self.instead, &observed.in_force);
                if let Some(given) = &observed.given {
                    remember(&mut self.given, given);
                }
            }
        } else if run.iter().any(|observed| observed.given.is_some()) {
            // What is in force whatever is given, is so too where that is given.
            if !all_seen(&self.instead) {
                self.against = 0;
            }
            self.otherwise = 0;
            for observed in run {
                remember(&mut self.effective, &observed.in_force);
            }
        } else if self.against > 0 && !all_seen(&self.instead) {
            self.otherwise += 1;
            if self.otherwise >= RUNS {
                let instead = std::mem::take(&mut self.instead);
                self.effective.retain(|value| !instead.contains(value));
                (self.against, self.otherwise) = (0, 0);
                self.given.clear();
            }
        } else {
            self.otherwise = 0;
        }
    }

    /// Whether all that was ever in force as given is what is in force whatever is given.
    fn never_effective(&self) -> bool {
        self.effective.is_subset(&self.instead)
    }

    fn is_ineffective(&self) -> bool {
        let enough = match self.never_effective() {
            true => RUNS,
            false => RUNS_AFTER_EFFECT,
        };
        self.against >= enough
    }
}

fn remember(values: &mut BTreeSet<String>, value: &str) {
    if values.len() < MOST_VALUES {
        values.insert(value.to_owned());
    }
}

impl ParameterEffects {
    /// Takes in what all nodes of one run were told.
    pub fn record(&mut self, run: &[ObservedValue]) {
        let mut by_parameter = BTreeMap::<&str, Vec<&ObservedValue>>::new();
        for observed in run {
            by_parameter
                .entry(&observed.parameter)
                .or_default()
                .push(observed);
        }
        for (parameter, run) in by_parameter {
            if self.0.len() < MAX_PARAMETERS || self.0.contains_key(parameter) {
                self.0.entry(parameter.to_owned()).or_default().record(&run);
            }
        }
    }

    /// The parameters that the application does not heed, each with what is known of it.
    ///
    /// That is so where two runs at least were given a value and had another in force, and no run ever had what it was
    /// given; or the last twelve that were given one, where some did before. A value that is in force whatever is
    /// given proves nothing where just that is given. It ends when a run has what it was given, or
    /// when two runs that were given none have a value in force that none of those had that were given one: so it is
    /// noticed without varying the parameter that the application, or its library, is no longer the same.
    pub fn ineffective(&self) -> impl Iterator<Item = (IneffectiveParameter, &ParameterEffect)> {
        let ineffective = self.0.iter().filter(|(_, effect)| effect.is_ineffective());
        ineffective.map(|(parameter, effect)| {
            let ineffective = IneffectiveParameter {
                parameter: parameter.clone(),
                pooled: effect.never_effective(),
            };
            (ineffective, effect)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(given: Option<&str>, in_force: &str) -> ObservedValue {
        ObservedValue {
            parameter: "sieve".into(),
            name: "romio_ds_write".into(),
            given: given.map(str::to_owned),
            in_force: in_force.into(),
            as_given: given.is_none_or(|given| given == in_force),
        }
    }

    /// What is unheeded after each of these runs: `.` nothing, `p` it is and runs are pooled, `u` they are not.
    fn after_each(runs: &[(Option<&str>, &str)]) -> String {
        let mut effects = ParameterEffects::default();
        let standing = runs.iter().map(|(given, in_force)| {
            effects.record(&[run(*given, in_force)]);
            let json = serde_json::to_string(&effects).unwrap();
            assert_eq!(
                serde_json::from_str::<ParameterEffects>(&json).unwrap(),
                effects
            );
            let mut ineffective = effects.ineffective();
            match ineffective.next() {
                None => '.',
                Some((IneffectiveParameter { pooled: true, .. }, _)) => 'p',
                Some(_) => 'u',
            }
        });
        standing.collect()
    }

    const ON: Option<&str> = Some("enable");
    const OFF: Option<&str> = Some("disable");

    #[test]
    fn two_runs_that_had_another_value_are_enough_and_one_is_an_accident() {
        let runs = [(None, "disable"), (ON, "disable"), (ON, "disable")];
        assert_eq!(after_each(&runs), "..p");
        let runs = [(ON, "disable"), (ON, "enable"), (ON, "disable")];
        assert_eq!(after_each(&runs), "...", "one had what it was given");
    }

    #[test]
    fn a_value_that_is_in_force_whatever_is_given_proves_nothing() {
        for runs in [
            [(OFF, "disable"), (ON, "disable"), (ON, "disable")],
            [(ON, "disable"), (OFF, "disable"), (ON, "disable")],
        ] {
            assert_eq!(after_each(&runs), "..p");
        }
        let runs = [(ON, "disable"), (ON, "disable"), (OFF, "disable")];
        assert_eq!(after_each(&runs), ".pp");
    }

    #[test]
    fn an_application_that_heeded_it_once_needs_twelve_runs_and_nothing_is_pooled() {
        let mut runs = vec![(ON, "enable")];
        runs.extend([(ON, "disable"); 12]);
        assert_eq!(after_each(&runs), "............u");
        runs.push((ON, "enable"));
        assert_eq!(after_each(&runs), "............u.");
    }

    #[test]
    fn another_value_in_force_under_the_default_ends_it() {
        let held = [(ON, "disable"), (ON, "disable"), (None, "disable")];
        let after = |more: &[(Option<&str>, &str)]| after_each(&[&held[..], more].concat());
        let automatic = (None, "automatic");
        assert_eq!(after(&[automatic]), ".ppp");
        assert_eq!(after(&[automatic, automatic]), ".ppp.");
        assert_eq!(after(&[automatic, (None, "disable"), automatic]), ".ppppp");
        // Two more, and it is so again.
        let again = [automatic, automatic, (ON, "automatic"), (ON, "automatic")];
        assert_eq!(after(&again), ".ppp..p");
    }

    #[test]
    fn one_node_that_had_another_value_is_a_run_that_had() {
        let mut effects = ParameterEffects::default();
        for _ in 0..2 {
            effects.record(&[run(ON, "enable"), run(ON, "disable")]);
        }
        assert_eq!(effects.ineffective().count(), 1);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut effects = ParameterEffects::default();
        for n in 0..100 {
            let parameter = |m| ObservedValue {
                parameter: format!("p{}", n + m),
                ..run(ON, &n.to_string())
            };
            effects.record(&[parameter(0), parameter(1), run(Some(&n.to_string()), "x")]);
        }
        assert_eq!(effects.0.len(), MAX_PARAMETERS);
        let sieve = &effects.0["sieve"];
        assert_eq!((sieve.against, sieve.given.len()), (100, MOST_VALUES));
    }
}
