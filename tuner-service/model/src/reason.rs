//! Why a run gets what it gets: data for the store, one plain sentence for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::mixture::different;
use crate::run::{Phase, Role};
use crate::space::Parametrization;

/// What the next run gets, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    /// The phase the epoch is in.
    pub phase: Phase,
    /// What the run is for.
    pub role: Role,
    /// What the run gets. It always fits the space.
    pub parametrization: Parametrization,
    /// Why.
    pub reason: Reason,
}

impl Suggestion {
    /// The same, saying that these parameters are held at their defaults, where it is not for the default's sake, or an
    /// admin's, that it is what it is.
    #[must_use]
    pub fn with_frozen(self, frozen: Vec<String>) -> Self {
        let chosen = match self.role {
            Role::Design | Role::Search | Role::BestKnown | Role::Settled => !frozen.is_empty(),
            _ => false,
        };
        if !chosen {
            return self;
        }
        let reason = Box::new(self.reason);
        Suggestion {
            reason: Reason::Restricted { reason, frozen },
            ..self
        }
    }
}

/// Why a run gets its parametrization, in data. `Display` is one plain sentence.
///
/// Means, standard errors and thresholds are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The default is measured first.
    Baseline {
        /// Which baseline run this is, from 1.
        number: u64,
        /// How many there will be.
        of: u64,
    },
    /// A point of the Latin hypercube.
    DesignPoint {
        /// Which point this is, from 1; 1 is the nearest to the default.
        number: u64,
        /// How many there are.
        of: u64,
    },
    /// One of the parametrizations that the epoch before ranked best.
    Inherited {
        /// Which of them this is, from 1.
        number: u64,
        /// How many are run.
        of: u64,
    },
    /// What it says, where the search leaves out parameters that the application does not heed.
    #[serde(rename = "holding")]
    Restricted {
        /// Why the run gets what is left.
        reason: Box<Reason>,
        /// The parameters that are held at their defaults, by name.
        #[serde(rename = "held")]
        frozen: Vec<String>,
    },
    /// A new child of two tested parametrizations.
    Child {
        /// The parents; the first part comes from the first.
        parents: [Parametrization; 2],
        /// Where the parents were cut: before the parameters of these indices.
        cuts: Vec<usize>,
        /// The parameters that mutated, by name.
        mutated: Vec<String>,
        /// How many children were drawn before this one and were known already.
        redraws: u32,
    },
    /// Every child that was drawn is known already: an untested parametrization near to one.
    Neighbour {
        /// The child it is near to.
        of: Parametrization,
    },
    /// A child is run again, because its mean is not known well enough.
    Resample {
        /// Which run of this parametrization this is, from 1, runs in flight included.
        number: u64,
        /// The standard error of its mean so far; none under two runs.
        standard_error: Option<f64>,
        /// The standard error that suffices, `th_se`.
        threshold: f64,
    },
    /// Every child runs equally often.
    Average {
        /// Which run of this parametrization this is, from 1, runs in flight included.
        number: u64,
        /// How often it runs.
        of: u64,
    },
    /// Drawn at random.
    Drawn,
    /// A step of simulated annealing.
    Step {
        /// Where it steps from.
        from: Parametrization,
        /// The parameters that the step changes, by name.
        changed: Vec<String>,
        /// Which step of the walk this is, from 1; those to known parametrizations count too.
        step: u64,
        /// The temperature, seconds.
        temperature: f64,
    },
    /// An action of a reinforcement-learning agent.
    Action {
        /// Where the agent stands.
        from: Parametrization,
        /// The parameters that the action changes, by name.
        changed: Vec<String>,
        /// Whether it was drawn; otherwise it is the one of the highest value.
        random: bool,
        /// From how many experiences those values were learnt.
        experiences: u64,
    },
    /// Of many untested parametrizations the one that a surrogate model rates highest.
    Acquired {
        /// What is rated.
        acquisition: Acquisition,
        /// How many parametrizations there were.
        candidates: u64,
        /// What it is predicted to take.
        predicted: f64,
        /// The factor by which that may be off, one standard deviation.
        factor: f64,
        /// What the best known parametrization is predicted to take.
        best: f64,
        /// The measures that say something of elapsed too, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        measures: Vec<String>,
    },
    /// Of many possible children the one whose run promises most.
    Promising {
        /// The parents, the same one twice for a single change of it.
        parents: [Parametrization; 2],
        /// The parameters that mutated, by name.
        mutated: Vec<String>,
        /// How many candidates there were.
        candidates: u64,
        /// What it is predicted to take.
        predicted: f64,
        /// The factor by which that may be off, one standard deviation.
        factor: f64,
        /// What the best known parametrization is predicted to take.
        best: f64,
    },
    /// A run of a known parametrization promises more than any child.
    Repeat {
        /// Which run of it this is, from 1, runs in flight included.
        number: u64,
        /// How many candidates there were.
        candidates: u64,
        /// What it is predicted to take.
        predicted: f64,
        /// The factor by which that may be off, one standard deviation.
        factor: f64,
        /// What the best known parametrization is predicted to take.
        best: f64,
    },
    /// The lowest mean rests on one run, so it is run again before anything is recommended.
    Confirm {
        /// The mean so far.
        mean: f64,
        /// The mean of the default, if known.
        default_mean: Option<f64>,
    },
    /// A run of the default, interleaved.
    Control {
        /// Which run of the default this is, from 1, runs in flight included.
        number: u64,
        /// How many runs the epoch has had before it, runs in flight included.
        runs: u64,
    },
    /// The recommended parametrization.
    Settled {
        /// Its mean; none if it is the default and no run of it has finished twice.
        mean: Option<f64>,
        /// How many runs the mean rests on.
        n: u64,
        /// The mean of the default, if known.
        default_mean: Option<f64>,
        /// Whether the default itself is the best known.
        is_default: bool,
        /// What ended the search before its budget was spent, if anything did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped: Option<Stopped>,
    },
    /// The best known parametrization, because this run may not explore.
    BestKnown {
        /// Why it may not.
        because: BestKnownBecause,
        /// The mean of what it gets, if known.
        mean: Option<f64>,
        /// How many runs the mean rests on.
        n: u64,
        /// Whether it is the best by the epoch before, because this one does not know better yet.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inherited: bool,
    },
    /// An admin or the user pinned the study to this parametrization.
    Pinned,
    /// Nothing is applied; the run is only measured.
    Observe,
    /// Nothing is applied, because the study's runs are too different to be one application's.
    Mixed {
        /// The coefficient of variation of the latest runs of the default.
        cv: f64,
        /// How many they are.
        runs: u64,
        /// How many runs of another parametrization were looked at beside them.
        #[serde(default, skip_serializing_if = "is_zero")]
        tuned: u64,
        /// The two times they gather around, in seconds of the default, if they do.
        modes: Option<(f64, f64)>,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What ended a search before its budget was spent: a criterion of `[study.stop]`, and how it was met,
/// or the bound of `[study.loss]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stopped {
    /// The lowest mean hardly fell.
    Improvement {
        /// Over how many runs.
        runs: u32,
        /// By which share.
        fell: f64,
    },
    /// There were few distinct parametrizations.
    Distinct {
        /// Among how many runs.
        runs: u32,
        /// How many.
        distinct: u32,
    },
    /// The search hardly moved.
    Distance {
        /// Over how many runs.
        runs: u32,
        /// How far on average from a run to the next, from 0 to 1.
        moved: f64,
    },
    /// Exploring is expected to have cost so much that a pause would not end in time.
    #[serde(rename = "loss_bound")]
    RegretBudget {
        /// The expected loss, in runs of the default.
        #[serde(rename = "loss")]
        regret: f64,
        /// What may be lost by now, in runs of the default.
        bound: f64,
    },
    /// Nothing is left to win.
    NothingLeft {
        /// The most that any parametrization is expected to improve on the best known, as a share.
        gain: f64,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Improvement { runs, fell } => write!(
                f,
                "the last {runs} runs lowered the lowest mean by {:.1} %",
                100.0 * fell
            ),
            Stopped::Distinct { runs, distinct } => {
                write!(f, "the last {runs} runs had {distinct} parametrizations")
            }
            Stopped::Distance { runs, moved } => {
                write!(f, "the last {runs} runs moved by {moved:.3} on average")
            }
            Stopped::RegretBudget { regret, bound } => write!(
                f,
                "it is expected to have cost {}, where {} may be lost",
                default_runs(*regret),
                default_runs(*bound)
            ),
            Stopped::NothingLeft { gain } => {
                let gain = 100.0 * gain;
                write!(
                    f,
                    "no parametrization is expected to gain more than {gain:.1} %"
                )
            }
        }
    }
}

/// Why a run gets the best known parametrization and explores nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BestKnownBecause {
    /// As many runs explore at once as may.
    ExploringFull {
        /// How many may.
        exploring: u32,
    },
    /// Exploring is expected to have cost as much as it may by now.
    #[serde(rename = "loss_bound")]
    RegretBudget {
        /// The expected loss, in runs of the default.
        #[serde(rename = "loss")]
        regret: f64,
        /// What may be lost by now, in runs of the default.
        bound: f64,
    },
    /// A restarted job never explores.
    Restarted,
    /// The study was locked by other starts until the deadline.
    Busy,
    /// The job's time limit leaves no room for a slow parametrization.
    #[serde(rename = "no_room")]
    NoHeadroom(NoHeadroom),
    /// An admin froze the study.
    Frozen,
    /// No run of the design has finished yet, so the search cannot begin.
    AwaitingDesign,
    /// The last exploring runs are in flight, and the choice waits for them.
    AwaitingResults,
    /// No run of this epoch has finished yet.
    NothingFinished,
}

/// What a time limit lacks. Seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoHeadroom {
    /// The time limit.
    pub limit: f64,
    /// The limit that would do; none while no run of the default has counted.
    pub needed: Option<f64>,
    /// So many times the default may be tried.
    pub most: f64,
}

impl fmt::Display for NoHeadroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoHeadroom {
            limit,
            needed,
            most,
        } = self;
        let limit = seconds(*limit);
        match needed {
            Some(needed) => write!(
                f,
                "the time limit of {limit} leaves no room to explore: that may take {}, {most} times \
                 what the default takes at most",
                seconds(*needed)
            ),
            None => write!(
                f,
                "whether the time limit of {limit} leaves room to explore is not known before a run of the \
                 default has counted"
            ),
        }
    }
}

/// What makes an untested point the most promising (robert2019, section II-B-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acquisition {
    /// The time that it is expected to save.
    #[default]
    ExpectedImprovement,
    /// The probability that it is quicker than the best known.
    ProbabilityOfImprovement,
    /// The time that is expected of it.
    PosteriorMinimum,
}

impl fmt::Display for BestKnownBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BestKnownBecause::ExploringFull { exploring } => {
                write!(f, "{exploring} runs explore already")
            }
            BestKnownBecause::RegretBudget { regret, bound } => write!(
                f,
                "exploring is expected to have cost {} of the {} that it may by now",
                default_runs(*regret),
                default_runs(*bound)
            ),
            BestKnownBecause::Restarted => f.write_str("a restarted job never explores"),
            BestKnownBecause::Busy => f.write_str("the study was busy with other starts"),
            BestKnownBecause::NoHeadroom(lack) => write!(f, "{lack}"),
            BestKnownBecause::Frozen => f.write_str("the study is frozen"),
            BestKnownBecause::AwaitingDesign => {
                f.write_str("no run of the design has finished yet")
            }
            BestKnownBecause::AwaitingResults => {
                f.write_str("the last exploring runs have not finished yet")
            }
            BestKnownBecause::NothingFinished => f.write_str("no run has finished yet"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Baseline { number, of } => write!(f, "baseline run {number} of {of}"),
            Reason::DesignPoint { number, of } => write!(f, "design point {number} of {of}"),
            Reason::Inherited { number, of } => write!(
                f,
                "number {number} of the {of} that are run again of those that the epoch before ranked best"
            ),
            Reason::Restricted { reason, frozen } => write!(
                f,
                "{reason}; held at the default, because the application does not heed it: {}",
                frozen.join(", ")
            ),
            Reason::Child {
                parents: [first, second],
                mutated,
                ..
            } => {
                write!(f, "child of ({first}) and ({second})")?;
                if !mutated.is_empty() {
                    write!(f, ", mutated in {}", mutated.join(", "))?;
                }
                Ok(())
            }
            Reason::Neighbour { of } => {
                write!(f, "nearest untested parametrization to the child ({of})")
            }
            Reason::Resample {
                number,
                standard_error: Some(error),
                threshold,
            } => write!(
                f,
                "resample {number} of this parametrization: standard error {} above threshold {}",
                seconds(*error),
                seconds(*threshold)
            ),
            Reason::Resample { number, .. } => write!(
                f,
                "resample {number} of this parametrization: every child runs at least twice"
            ),
            Reason::Average { number, of } => {
                write!(f, "run {number} of {of} of this parametrization")
            }
            Reason::Drawn => f.write_str("drawn at random"),
            Reason::Step {
                from,
                changed,
                step,
                temperature,
            } => write!(
                f,
                "step {step} of the annealing, from ({from}) in {}, at temperature {}",
                changed.join(", "),
                seconds(*temperature)
            ),
            Reason::Action {
                from,
                changed,
                random,
                experiences,
            } => {
                let changed = changed.join(", ");
                write!(f, "from ({from}) in {changed}, ")?;
                if *random {
                    return f.write_str("an action drawn at random");
                }
                write!(
                    f,
                    "the action of the highest value after {experiences} experiences"
                )
            }
            Reason::Acquired {
                acquisition,
                candidates,
                predicted,
                factor,
                best,
                measures,
            } => {
                let what = match acquisition {
                    Acquisition::ExpectedImprovement => "expected improvement",
                    Acquisition::ProbabilityOfImprovement => "probability of improvement",
                    Acquisition::PosteriorMinimum => "expectation",
                };
                write!(
                    f,
                    "of {candidates} parametrizations the one of the best {what}"
                )?;
                prediction(f, *predicted, *factor, *best)?;
                match measures.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; learnt from {} too", measures.join(", ")),
                }
            }
            Reason::Promising {
                parents: [one, other],
                mutated,
                candidates,
                predicted,
                factor,
                best,
            } => {
                write!(f, "of {candidates} candidates the one that promises most: ")?;
                if one == other {
                    write!(f, "a change of ({one})")?;
                } else {
                    write!(f, "child of ({one}) and ({other})")?;
                }
                if !mutated.is_empty() {
                    write!(f, ", mutated in {}", mutated.join(", "))?;
                }
                prediction(f, *predicted, *factor, *best)
            }
            Reason::Repeat {
                number,
                candidates,
                predicted,
                factor,
                best,
            } => {
                write!(
                    f,
                    "run {number} of a known parametrization: of {candidates} candidates it promises most"
                )?;
                prediction(f, *predicted, *factor, *best)
            }
            Reason::Confirm { mean, .. } => write!(
                f,
                "confirmation: the lowest mean, {}, rests on one run",
                seconds(*mean)
            ),
            Reason::Control { number, runs } => {
                write!(
                    f,
                    "control run: run {number} of the default after {runs} runs"
                )
            }
            Reason::Settled {
                mean,
                n,
                default_mean,
                is_default,
                stopped,
            } => {
                settled(f, *mean, *n, *default_mean, *is_default)?;
                match stopped {
                    Some(stopped) => write!(f, "; the search ended early, because {stopped}"),
                    None => Ok(()),
                }
            }
            Reason::BestKnown {
                because,
                mean,
                n,
                inherited,
            } => {
                write!(f, "best known parametrization")?;
                if *inherited {
                    write!(f, " of the epoch before")?;
                }
                if let Some(mean) = mean {
                    write!(f, " (mean {} of {n})", seconds(*mean))?;
                }
                write!(f, ", because {because}")
            }
            Reason::Pinned => f.write_str("the study is pinned to this parametrization"),
            Reason::Observe => f.write_str("observed only: nothing is applied"),
            Reason::Mixed {
                cv,
                runs,
                tuned,
                modes,
            } => {
                f.write_str("observed only: ")?;
                different(f, *cv, *runs, *tuned, *modes)?;
                f.write_str(
                    ", which looks like different work under one name: give each its own with \
                     app=NAME, or confirm that they are one application with `io-autotune accept APP`",
                )
            }
        }
    }
}

fn settled(
    f: &mut fmt::Formatter<'_>,
    mean: Option<f64>,
    n: u64,
    default_mean: Option<f64>,
    is_default: bool,
) -> fmt::Result {
    if is_default {
        f.write_str("settled on the default: nothing better was found")?;
    } else {
        f.write_str("settled on the best known parametrization")?;
    }
    if let Some(mean) = mean {
        write!(f, " ({} of {n})", seconds(mean))?;
    }
    match default_mean {
        Some(default) if !is_default => write!(f, ", default {}", seconds(default)),
        _ => Ok(()),
    }
}

fn prediction(f: &mut fmt::Formatter<'_>, predicted: f64, factor: f64, best: f64) -> fmt::Result {
    write!(
        f,
        "; predicted {} within a factor of {factor:.2}, the best known {}",
        seconds(predicted),
        seconds(best)
    )
}

/// A loss, in runs of the default.
fn default_runs(value: f64) -> String {
    format!("{value:.1} default runs")
}

/// Seconds with four significant digits and no idle zeros.
pub fn seconds(value: f64) -> String {
    let magnitude = if value == 0.0 || !value.is_finite() {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    let decimals = usize::try_from((3 - magnitude).clamp(0, 12)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_short() {
        for (value, text) in [
            (19.7, "19.7 s"),
            (0.0, "0 s"),
            (2.10004, "2.1 s"),
            (1234.56, "1235 s"),
            (100.0, "100 s"),
            (0.001_234_56, "0.001235 s"),
            (172.69, "172.7 s"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }

    #[test]
    fn sentences_and_data() {
        let resample = Reason::Resample {
            number: 3,
            standard_error: Some(2.1),
            threshold: 1.97,
        };
        assert_eq!(
            resample.to_string(),
            "resample 3 of this parametrization: standard error 2.1 s above threshold 1.97 s"
        );
        let json = serde_json::to_string(&resample).unwrap();
        assert_eq!(
            json,
            r#"{"kind":"resample","number":3,"standard_error":2.1,"threshold":1.97}"#
        );
        assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), resample);
        let action = Reason::Action {
            from: Parametrization([("cache".to_owned(), "on".into())].into()),
            changed: vec!["nodes".to_owned()],
            random: false,
            experiences: 12,
        };
        assert_eq!(
            action.to_string(),
            "from (cache=on) in nodes, the action of the highest value after 12 experiences"
        );
        let full = Reason::BestKnown {
            because: BestKnownBecause::ExploringFull { exploring: 8 },
            mean: Some(12.5),
            n: 3,
            inherited: false,
        };
        assert_eq!(
            full.to_string(),
            "best known parametrization (mean 12.5 s of 3), because 8 runs explore already"
        );
        let json = serde_json::to_string(&full).unwrap();
        assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), full);
        let two = Some((10.0, 21.5));
        for (tuned, modes, words) in [
            (0, two, "gather around two times, 10 s and 21.5 s"),
            (
                9,
                two,
                "and 9 of another parametrization, brought to its level, gather around two times, \
                 10 s and 21.5 s",
            ),
            (9, None, "vary by 83 %"),
        ] {
            let mixed = Reason::Mixed {
                cv: 0.83,
                runs: 8,
                tuned,
                modes,
            };
            let text = mixed.to_string();
            assert!(
                text.starts_with(&format!(
                    "observed only: the last 8 runs of the default {words}, "
                )),
                "{text}"
            );
            assert!(text.contains("app=NAME") && text.contains("`io-autotune accept APP`"));
            let json = serde_json::to_string(&mixed).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), mixed);
        }
        // As it was stored while only the default was looked at.
        let earlier = r#"{"kind":"mixed","cv":0.83,"runs":8,"modes":null}"#;
        let read = serde_json::from_str::<Reason>(earlier).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), earlier);
    }

    /// The names in code may change, those that are stored may not.
    #[test]
    fn stored_reasons_keep_their_words() {
        let budget = (3.5, 3.0);
        for (reason, stored) in [
            (
                Reason::Restricted {
                    reason: Box::new(Reason::Drawn),
                    frozen: vec!["p".to_owned()],
                },
                r#"{"kind":"holding","reason":{"kind":"drawn"},"held":["p"]}"#,
            ),
            (
                Reason::BestKnown {
                    because: BestKnownBecause::RegretBudget {
                        regret: budget.0,
                        bound: budget.1,
                    },
                    mean: Some(1.5),
                    n: 2,
                    inherited: false,
                },
                r#"{"kind":"best_known","because":{"kind":"loss_bound","loss":3.5,"bound":3.0},"mean":1.5,"n":2}"#,
            ),
            (
                Reason::BestKnown {
                    because: BestKnownBecause::NoHeadroom(NoHeadroom {
                        limit: 60.0,
                        needed: Some(90.0),
                        most: 1.5,
                    }),
                    mean: None,
                    n: 0,
                    inherited: true,
                },
                r#"{"kind":"best_known","because":{"kind":"no_room","limit":60.0,"needed":90.0,"most":1.5},"mean":null,"n":0,"inherited":true}"#,
            ),
            (
                Reason::Settled {
                    mean: Some(1.0),
                    n: 2,
                    default_mean: None,
                    is_default: false,
                    stopped: Some(Stopped::RegretBudget {
                        regret: budget.0,
                        bound: budget.1,
                    }),
                },
                r#"{"kind":"settled","mean":1.0,"n":2,"default_mean":null,"is_default":false,"stopped":{"kind":"loss_bound","loss":3.5,"bound":3.0}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&reason).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Reason>(stored).unwrap(), reason);
        }
    }
}
