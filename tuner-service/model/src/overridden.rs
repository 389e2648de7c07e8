//! Overridden parameters: the application or its library puts its own value in force.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::space::MAX_PARAMETERS;

/// The number of overridden runs that make a parameter ineffective if no run ever had the given
/// value.
const RUNS: u32 = 2;
/// The number of overridden runs in a row that make it ineffective if some run had the given value.
const RUNS_AFTER_EFFECT: u32 = 12;
/// The most values of each kind that are kept.
const MOST_VALUES: usize = 8;

/// The value of one parameter that one node of a run observed in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedValue {
    /// The parameter.
    pub parameter: String,
    /// The accelerator's name for it.
    pub name: String,
    /// The value that the job was given; none if it was given the default.
    pub given: Option<String>,
    /// The value in force.
    pub in_force: String,
    /// True if the value in force is the given one, or if none was given.
    pub as_given: bool,
}

/// The runs of an epoch that had or did not have the given values of one parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterEffect {
    /// The accelerator's name for it.
    pub name: String,
    /// The number of runs that were overridden since the last run that had the given value.
    pub against: u32,
    /// The number of latest runs in a row that were given no value and had a value in force that no
    /// overridden run had.
    pub otherwise: u32,
    /// The values that overridden runs were given.
    pub given: BTreeSet<String>,
    /// The values that overridden runs had in force.
    pub instead: BTreeSet<String>,
    /// The values in force in runs that had what they were given.
    #[serde(alias = "heeded")]
    pub effective: BTreeSet<String>,
}

/// An ineffective parameter. It is frozen at its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IneffectiveParameter {
    /// The parameter.
    pub parameter: String,
    /// True if no run of the epoch ever had the given value. Runs that differ only in this
    /// parameter are then pooled. Otherwise runs with another value than the default are left out.
    pub pooled: bool,
}

/// The effects of the parameters whose values in force the accelerator can report. A cache over the
/// runs: each run enters once, with its first verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ParameterEffects(BTreeMap<String, ParameterEffect>);

impl ParameterEffect {
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
            // A value that is also in force when another is given proves no effect.
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

    /// Returns true if no given value ever came in force, except values that were also in force in
    /// overridden runs.
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
    /// Adds what all nodes of one run observed.
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

    /// The ineffective parameters.
    ///
    /// A parameter is ineffective if at least 2 runs were overridden and no run had the given
    /// value, or if the last 12 runs were overridden although an earlier run was not. A given value
    /// that was also in force in overridden runs proves nothing. The parameter becomes effective
    /// again with a run that has the given value, or with 2 runs in a row that were given none and
    /// have a value that no overridden run had: the application or its library has changed.
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

    /// The state after each run: `.` effective, `p` ineffective and pooled, `u` ineffective and not
    /// pooled.
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
