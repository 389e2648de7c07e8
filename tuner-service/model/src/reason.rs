//! Why a run gets its parametrization: data for the store, and one sentence for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::assessment::ElapsedBeside;
use crate::choice::Chosen;
use crate::exploring::OverBudget;
use crate::run::{Phase, Role};
use crate::space::Parametrization;
use crate::text::{different, seconds};

/// The parametrization of the next run, with its role and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    /// The phase of the epoch.
    pub phase: Phase,
    /// The run's role.
    pub role: Role,
    /// The parametrization. It always fits the space.
    pub parametrization: Parametrization,
    /// The reason.
    pub reason: Reason,
    /// The probability with which this run of a settled epoch was to be a control run. None if
    /// nothing was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_chance: Option<f64>,
}

impl Suggestion {
    /// The same suggestion with the frozen parameters in its reason. Unchanged for roles that give
    /// the default or a parametrization that an admin chose.
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

    /// The same suggestion in a job for which the site's default accelerator cannot matter.
    #[must_use]
    pub fn of_accelerator(self, chosen: Chosen) -> Self {
        let reason = Box::new(self.reason);
        Suggestion {
            reason: Reason::Accelerator { reason, chosen },
            ..self
        }
    }

    /// The same suggestion with a reason that says how many users' runs it rests on. Unchanged for
    /// roles that give the default or a parametrization that an admin chose.
    #[must_use]
    pub fn by_users(self, users: usize) -> Self {
        match self.role {
            Role::Design | Role::Search | Role::BestKnown | Role::Settled => Suggestion {
                reason: Reason::Shared {
                    reason: Box::new(self.reason),
                    users,
                },
                ..self
            },
            _ => self,
        }
    }

    /// The same suggestion in an epoch that ranks parametrizations by another study's results; its
    /// reason says so.
    #[must_use]
    pub fn of_another_study(mut self) -> Self {
        let reason = match &mut self.reason {
            Reason::DefaultLost { reason, .. } => reason,
            reason => reason,
        };
        if let Reason::Inherited { another_study, .. }
        | Reason::BestKnown {
            inherited: true,
            another_study,
            ..
        } = reason
        {
            *another_study = true;
        }
        self
    }
}

/// Why a run gets its parametrization. `Display` is one sentence. Times are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The default is measured first.
    Baseline {
        /// The number of this baseline run, from 1.
        number: u64,
        /// The number of baseline runs there will be.
        of: u64,
    },
    /// A point of the Latin hypercube.
    DesignPoint {
        /// The point's number, from 1; point 1 is the nearest to the default.
        number: u64,
        /// The number of points.
        of: u64,
    },
    /// One of the best parametrizations of the previous epoch.
    Inherited {
        /// The parametrization's rank, from 1.
        number: u64,
        /// The number of inherited parametrizations that run.
        of: u64,
        /// True if the ranks are another study's, not those of an earlier epoch of this study.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        another_study: bool,
    },
    /// The reason within a space restricted by frozen parameters.
    #[serde(alias = "holding")]
    Restricted {
        /// The reason for the other parameters.
        reason: Box<Reason>,
        /// The parameters frozen at their defaults, by name.
        #[serde(alias = "held")]
        frozen: Vec<String>,
    },
    /// The reason where the decision rests on the runs of several users.
    Shared {
        /// The reason.
        reason: Box<Reason>,
        /// The number of users whose runs count, including this one.
        users: usize,
    },
    /// The reason in a study whose baseline is given up, because the default does not complete.
    DefaultLost {
        /// The reason.
        reason: Box<Reason>,
        /// How the default's runs ended.
        default: LostDefault,
    },
    /// A setting that was published for the accelerator, before this study's own design.
    Recipe {
        /// Its name in the accelerator's file.
        name: String,
        /// Why it should help.
        why: String,
        /// Where it was published.
        source: String,
    },
    /// The setting that an admin made the site's default, before anything else is explored.
    SiteDefault,
    /// A parametrization that other studies of the space found fast, before this study's own
    /// design.
    Promised {
        /// The number of these studies.
        studies: u64,
        /// The predicted elapsed, as a share of the default's.
        predicted: f64,
        /// The number of other users whose studies find it harmless, so that it runs without small
        /// steps before it. None if it is itself a small step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        users: Option<u64>,
    },
    /// The reason where the decision also rests on a prior from other studies of the space.
    Prior {
        /// The reason.
        reason: Box<Reason>,
        /// The number of these studies.
        studies: u64,
        /// How much the prediction rests on them, from 0 to 1.
        lean: f64,
    },
    /// A new child of two tested parametrizations.
    Child {
        /// The parents; the first segment comes from the first.
        parents: [Parametrization; 2],
        /// The crossover cuts, before the parameters of these indices.
        cuts: Vec<usize>,
        /// The parameters that mutated, by name.
        mutated: Vec<String>,
        /// How many known children were drawn before this one.
        redraws: u32,
    },
    /// A neighbour of a child: all drawn children are known already.
    Neighbour {
        /// The child.
        of: Parametrization,
    },
    /// The number of children that were drawn before this one and were known already.
    Resample {
        /// The run's number of this parametrization, from 1, runs in flight included.
        number: u64,
        /// The standard error of its mean; none under two runs.
        standard_error: Option<f64>,
        /// The sufficient standard error, `th_se`.
        threshold: f64,
    },
    /// Every child runs equally often.
    Average {
        /// The run's number of this parametrization, from 1, runs in flight included.
        number: u64,
        /// The number of runs that every child gets.
        of: u64,
    },
    /// Drawn at random.
    Drawn,
    /// A step of simulated annealing.
    Step {
        /// The start of the step.
        from: Parametrization,
        /// The parameters that the step changes, by name.
        changed: Vec<String>,
        /// The number of the step, from 1, steps to known parametrizations included.
        step: u64,
        /// The temperature in seconds.
        temperature: f64,
    },
    /// An action of a reinforcement-learning agent.
    Action {
        /// The agent's state.
        from: Parametrization,
        /// The parameters that the action changes, by name.
        changed: Vec<String>,
        /// True if the action was drawn at random. Otherwise it is the one with the highest value.
        random: bool,
        /// The number of experiences that the values were learnt from.
        experiences: u64,
    },
    /// The untested candidate with the best acquisition value.
    Acquired {
        /// The acquisition function.
        acquisition: Acquisition,
        /// The number of candidates.
        candidates: u64,
        /// The candidate's predicted elapsed.
        predicted: f64,
        /// One standard deviation of the prediction, as a factor.
        factor: f64,
        /// The predicted elapsed of the best known parametrization.
        best: f64,
        /// The measures that the surrogate also learnt from, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        measures: Vec<String>,
    },
    /// The candidate child with the best acquisition value.
    Promising {
        /// The parents; twice the same one for a mutation alone.
        parents: [Parametrization; 2],
        /// The parameters that mutated, by name.
        mutated: Vec<String>,
        /// The number of candidates.
        candidates: u64,
        /// The child's predicted elapsed.
        predicted: f64,
        /// One standard deviation of the prediction, as a factor.
        factor: f64,
        /// The predicted elapsed of the best known parametrization.
        best: f64,
    },
    /// A known parametrization again: its acquisition value is better than any child's.
    Repeat {
        /// The run's number of this parametrization, from 1, runs in flight included.
        number: u64,
        /// The number of candidates.
        candidates: u64,
        /// The predicted elapsed of this parametrization.
        predicted: f64,
        /// One standard deviation of the prediction, as a factor.
        factor: f64,
        /// The predicted elapsed of the best known parametrization.
        best: f64,
    },
    /// The lowest mean rests on one run, so it is confirmed before it is recommended.
    Confirm {
        /// The mean so far.
        mean: f64,
        /// The mean of the default, if known.
        default_mean: Option<f64>,
    },
    /// A control run: the default, interleaved.
    Control {
        /// The run's number of the default, from 1, runs in flight included.
        number: u64,
        /// The number of the epoch's runs before it, runs in flight included.
        runs: u64,
    },
    /// The recommended parametrization.
    Settled {
        /// The parametrization's mean; none for the default while fewer than two of its runs have
        /// finished.
        mean: Option<f64>,
        /// The number of runs that the mean rests on.
        n: u64,
        /// The mean of the default, if known.
        default_mean: Option<f64>,
        /// True if the default itself is the best known parametrization.
        is_default: bool,
        /// The criterion that ended the search before its budget was spent, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped: Option<Stopped>,
        /// A parametrization that is better by the study's objective, but makes elapsed worse.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vetoed: Option<ElapsedBeside>,
    },
    /// The best known parametrization, which is compared with control runs before the search goes on.
    Proof {
        /// The parametrization's mean, if known.
        mean: Option<f64>,
        /// The number of runs that the mean rests on.
        n: u64,
        /// The mean of the default, if known.
        default_mean: Option<f64>,
    },
    /// The best known parametrization, because this run may not explore.
    BestKnown {
        /// Why it may not explore.
        because: BestKnownBecause,
        /// The mean of its parametrization, if known.
        mean: Option<f64>,
        /// The number of runs that the mean rests on.
        n: u64,
        /// True if the previous epoch's best is used because this epoch knows no better one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inherited: bool,
        /// True if the best of another study is used instead of that of this study's previous
        /// epoch.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        another_study: bool,
    },
    /// The reason in a job that names no accelerator and for which the site's default one cannot
    /// matter.
    Accelerator {
        /// The reason within the study.
        reason: Box<Reason>,
        /// The chosen accelerator, with the reason.
        chosen: Chosen,
    },
    /// An admin or the user pinned the study to this parametrization.
    Pinned,
    /// Nothing is applied; the run is only measured.
    Observe,
    /// An order turned tuning off.
    Off,
    /// Nothing is applied, because the study's work is mixed.
    Mixed {
        /// The coefficient of variation of the latest runs of the default.
        cv: f64,
        /// The number of judged runs of the default.
        runs: u64,
        /// The number of runs of another parametrization that were judged with them.
        #[serde(default, skip_serializing_if = "is_zero")]
        tuned: u64,
        /// The two modes, in seconds of the default, if the runs have two.
        modes: Option<(f64, f64)>,
    },
}

fn other_studies(studies: u64) -> String {
    match studies {
        1 => "1 other study".to_owned(),
        studies => format!("{studies} other studies"),
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Reason {
    /// Returns true if a person decided by an order or a pin, not the search.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        match self {
            Reason::Pinned | Reason::Off => true,
            Reason::BestKnown { because, .. } => *because == BestKnownBecause::Frozen,
            Reason::Restricted { reason, .. } | Reason::DefaultLost { reason, .. } => {
                reason.is_ordered()
            }
            _ => false,
        }
    }
}

/// The criterion that ended a search early: one of `[study.stop]`, or the regret budget,
/// `[study.loss]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stopped {
    /// The expected regret is so far over budget that a pause would not end in time.
    #[serde(alias = "loss_bound")]
    RegretBudget {
        /// The expected regret, in runs of the default.
        #[serde(alias = "loss")]
        regret: f64,
        /// The regret budget by now, in runs of the default.
        bound: f64,
    },
    /// Too little can be won to be worth a search.
    LittleToWin {
        /// The bound on what can be won, as a share of the default's time.
        most: f64,
        /// The number of counted runs that it rests on.
        runs: u64,
    },
    /// I/O takes too small a part of the runs to be worth tuning.
    LittleIo {
        /// Bytes that a typical run of the default read and wrote.
        bytes: f64,
        /// Calls and waits in which it did so.
        calls: f64,
        /// The mean elapsed of the default, in seconds.
        elapsed: f64,
        /// The largest share of elapsed that this I/O can have taken.
        most: f64,
    },
    /// Nothing in the job reads the files that carry parametrizations.
    Unread {
        /// The number of runs that were given such files.
        runs: u64,
    },
    /// A criterion that only an earlier version had.
    #[serde(other)]
    Earlier,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::RegretBudget { regret, bound } => write!(
                f,
                "it is expected to have cost {}, where {} may be lost",
                default_runs(*regret),
                default_runs(*bound)
            ),
            Stopped::LittleToWin { most, runs } => write!(
                f,
                "there is nothing to win: at most {:.1} % can be won here, with 95 % confidence, after {runs} runs",
                100.0 * most
            ),
            Stopped::LittleIo {
                bytes,
                calls,
                elapsed,
                most,
            } => write!(
                f,
                "there is nothing to win: the default reads and writes {:.1} MB in {calls:.0} calls and waits, and takes \
                 {}, of which I/O is at most {:.1} %",
                bytes / 1e6,
                seconds(*elapsed),
                100.0 * most
            ),
            Stopped::Unread { runs } => write!(
                f,
                "there is nothing to win: in {runs} runs nothing read the accelerator's settings, so the program does \
                 not use this accelerator"
            ),
            Stopped::Earlier => f.write_str("it met a criterion that only an earlier version had"),
        }
    }
}

/// Why a run gets the best known parametrization and does not explore.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BestKnownBecause {
    /// The number of exploring runs in flight is at its limit.
    ExploringFull {
        /// The limit.
        exploring: u32,
    },
    /// The expected regret has used up the budget so far.
    #[serde(alias = "loss_bound")]
    RegretBudget {
        /// The expected regret, in runs of the default.
        #[serde(alias = "loss")]
        regret: f64,
        /// The regret budget by now, in runs of the default.
        bound: f64,
    },
    /// It is not this run's turn to explore.
    Between,
    /// A restarted job never explores.
    Restarted,
    /// Other starts kept the study locked until the deadline.
    Busy,
    /// No time-limit headroom for a slow parametrization.
    #[serde(alias = "no_room")]
    NoHeadroom(NoHeadroom),
    /// A budget for exploring has no room for the run.
    ExploringBudget(OverBudget),
    /// An admin froze the study.
    Frozen,
    /// No run of the design has finished yet, so the search cannot begin.
    AwaitingDesign,
    /// The last exploring runs are in flight, and the choice waits for them.
    AwaitingResults,
    /// No run of this epoch has finished yet.
    NothingFinished,
}

/// How the runs of a default ended that does not complete.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostDefault {
    /// The number of runs that completed all the same.
    pub completed: u64,
    /// The number of runs that failed.
    pub failed: u64,
    /// The number of runs that their time limit cut short.
    pub cut_short: u64,
    /// The longest of the cut runs, in seconds: the default takes at least as long. None if none
    /// was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
}

impl fmt::Display for LostDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = match self.completed + self.failed + self.cut_short {
            1 => "its only run".to_owned(),
            all => format!("its {all} runs"),
        };
        match self.completed {
            0 => write!(f, "the default has not completed yet: of {runs} ")?,
            completed => write!(
                f,
                "the default seldom completes: of {runs} {completed} did, "
            )?,
        }
        match (self.failed, self.at_least) {
            (0, None) => f.write_str("none ended well"),
            (failed, None) => write!(f, "{failed} failed"),
            (0, Some(bound)) => cut(f, self.cut_short, bound),
            (failed, Some(bound)) => {
                write!(f, "{failed} failed and ")?;
                cut(f, self.cut_short, bound)
            }
        }
    }
}

fn cut(f: &mut fmt::Formatter<'_>, runs: u64, bound: f64) -> fmt::Result {
    let bound = seconds(bound);
    write!(
        f,
        "{runs} reached the time limit, so it takes at least {bound}"
    )
}

/// A lack of time-limit headroom. Times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoHeadroom {
    /// The job's time limit.
    pub limit: f64,
    /// The limit that would suffice; none while no run of the default has counted.
    pub needed: Option<f64>,
    /// The most that a run may take, in multiples of the default's elapsed.
    pub most: f64,
    /// True if the default does not complete, so that `most` is a multiple of the elapsed of the
    /// best parametrization that does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_best: bool,
}

impl fmt::Display for NoHeadroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoHeadroom {
            limit,
            needed,
            most,
            of_best,
        } = self;
        let limit = seconds(*limit);
        let what = match of_best {
            true => "the best that completes",
            false => "the default",
        };
        match needed {
            Some(needed) => write!(
                f,
                "the time limit of {limit} leaves no room to explore: that may take {}, {most} times \
                 what {what} takes at most",
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

/// The acquisition function (robert2019, section II-B-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acquisition {
    /// The expected saving of time.
    #[default]
    ExpectedImprovement,
    /// The probability to be faster than the best known parametrization.
    ProbabilityOfImprovement,
    /// The expected time.
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
            BestKnownBecause::Between => {
                f.write_str("two runs of three get what is known to be faster")
            }
            BestKnownBecause::Restarted => f.write_str("a restarted job never explores"),
            BestKnownBecause::Busy => f.write_str("the study was busy with other starts"),
            BestKnownBecause::NoHeadroom(lack) => write!(f, "{lack}"),
            BestKnownBecause::ExploringBudget(over) => write!(f, "{over}"),
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
            Reason::Inherited {
                number,
                of,
                another_study: false,
            } => write!(
                f,
                "number {number} of the {of} that are run again of those that the epoch before ranked best"
            ),
            Reason::Inherited {
                number,
                of,
                another_study: true,
            } => write!(
                f,
                "number {number} of the {of} that are run first of those that another study ranked best"
            ),
            Reason::Restricted { reason, frozen } => write!(
                f,
                "{reason}; held at the default, because the application does not heed it: {}",
                frozen.join(", ")
            ),
            Reason::DefaultLost { reason, default } => write!(f, "{reason}; {default}"),
            Reason::Recipe { name, why, source } => {
                write!(f, "the recipe {name} of this accelerator: {why} ({source})")
            }
            Reason::SiteDefault => {
                f.write_str("an admin made it the default of this site for this accelerator")
            }
            Reason::Promised {
                predicted,
                users: Some(users),
                ..
            } => write!(
                f,
                "the studies of {users} other users of this accelerator at this site each find it \
                 harmless, and together they expect it to take {:.0} % of the default's time",
                100.0 * predicted
            ),
            Reason::Promised {
                studies, predicted, ..
            } => write!(
                f,
                "{} of this accelerator at this site expect{} it to take {:.0} % of the default's time",
                other_studies(*studies),
                if *studies == 1 { "s" } else { "" },
                100.0 * predicted
            ),
            Reason::Prior {
                reason,
                studies,
                lean,
            } => write!(
                f,
                "{reason}; {:.0} % of what {} of this accelerator showed is believed",
                100.0 * lean,
                other_studies(*studies)
            ),
            Reason::Shared { reason, users } => {
                write!(f, "{reason}; by the runs of {users} users who share them")
            }
            Reason::Accelerator { reason, chosen } => match chosen.instead {
                Some(_) => write!(f, "{reason}; its accelerator is {chosen}"),
                None => write!(f, "{reason}; {chosen}"),
            },
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
                vetoed,
            } => {
                settled(f, *mean, *n, *default_mean, *is_default)?;
                match stopped {
                    Some(stopped) => write!(f, "; the search ended early, because {stopped}")?,
                    None if *is_default => f.write_str("; nothing better was found")?,
                    None => {}
                }
                match vetoed {
                    Some(vetoed) => write!(f, "; not {}: {vetoed}", vetoed.parametrization),
                    None => Ok(()),
                }
            }
            Reason::Proof {
                mean,
                n,
                default_mean,
            } => {
                f.write_str("best known parametrization so far")?;
                beside_default(f, *mean, *n, *default_mean)?;
                f.write_str(": it is compared with the default before the search goes on")
            }
            Reason::BestKnown {
                because,
                mean,
                n,
                inherited,
                another_study,
            } => {
                write!(f, "best known parametrization")?;
                if *another_study {
                    write!(f, " of another study")?;
                } else if *inherited {
                    write!(f, " of the epoch before")?;
                }
                if let Some(mean) = mean {
                    write!(f, " (mean {} of {n})", seconds(*mean))?;
                }
                write!(f, ", because {because}")
            }
            Reason::Pinned => f.write_str("the study is pinned to this parametrization"),
            Reason::Observe => f.write_str("observed only: nothing is applied"),
            Reason::Off => f.write_str("its tuning is turned off: nothing is applied"),
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
        f.write_str("settled on the default")?;
    } else {
        f.write_str("settled on the best known parametrization")?;
    }
    beside_default(f, mean, n, default_mean.filter(|_| !is_default))
}

fn beside_default(
    f: &mut fmt::Formatter<'_>,
    mean: Option<f64>,
    n: u64,
    default_mean: Option<f64>,
) -> fmt::Result {
    let mean = mean.map(|mean| match n {
        1 => format!("{} in one run", seconds(mean)),
        _ => format!("{}, the mean of {n} runs", seconds(mean)),
    });
    let default = default_mean.map(|mean| format!("the default {}", seconds(mean)));
    match [mean, default].into_iter().flatten().collect::<Vec<_>>() {
        known if known.is_empty() => Ok(()),
        known => write!(f, " ({})", known.join("; ")),
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

fn default_runs(value: f64) -> String {
    format!("{value:.1} default runs")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            another_study: false,
        };
        assert_eq!(
            full.to_string(),
            "best known parametrization (mean 12.5 s of 3), because 8 runs explore already"
        );
        let json = serde_json::to_string(&full).unwrap();
        assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), full);
        let told = |reason: &Reason| {
            let suggestion = Suggestion {
                phase: Phase::Design,
                role: Role::Design,
                parametrization: Parametrization::default(),
                reason: reason.clone(),
                control_chance: None,
            };
            suggestion.of_another_study().reason
        };
        assert_eq!(told(&full), full, "it is not inherited");
        let first = Reason::Inherited {
            number: 1,
            of: 2,
            another_study: false,
        };
        assert_eq!(
            told(&first).to_string(),
            "number 1 of the 2 that are run first of those that another study ranked best"
        );
        let inherited = Reason::BestKnown {
            because: BestKnownBecause::Busy,
            mean: None,
            n: 0,
            inherited: true,
            another_study: false,
        };
        let text = told(&inherited).to_string();
        assert!(
            text.starts_with("best known parametrization of another study, because"),
            "{text}"
        );
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
        // The stored form of reasons without `tuned`.
        let earlier = r#"{"kind":"mixed","cv":0.83,"runs":8,"modes":null}"#;
        let read = serde_json::from_str::<Reason>(earlier).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), earlier);
    }

    #[test]
    fn what_a_person_decided_is_told_apart_from_what_the_search_did() {
        let best_known = |because| Reason::BestKnown {
            because,
            mean: None,
            n: 0,
            inherited: false,
            another_study: false,
        };
        let frozen = Reason::Restricted {
            reason: Box::new(best_known(BestKnownBecause::Frozen)),
            frozen: vec!["p".to_owned()],
        };
        for reason in [Reason::Pinned, Reason::Off, frozen] {
            assert!(reason.is_ordered(), "{reason}");
        }
        let restarted = best_known(BestKnownBecause::Restarted);
        for reason in [Reason::Observe, Reason::Drawn, restarted] {
            assert!(!reason.is_ordered(), "{reason}");
        }
    }

    /// The names in the code may change; stored ones change only while the earlier ones are read.
    #[test]
    fn stored_reasons_keep_their_words() {
        let budget = (3.5, 3.0);
        for (reason, stored) in [
            (
                Reason::Restricted {
                    reason: Box::new(Reason::Drawn),
                    frozen: vec!["p".to_owned()],
                },
                r#"{"kind":"restricted","reason":{"kind":"drawn"},"frozen":["p"]}"#,
            ),
            (
                Reason::Shared {
                    reason: Box::new(Reason::Drawn),
                    users: 5,
                },
                r#"{"kind":"shared","reason":{"kind":"drawn"},"users":5}"#,
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
                    another_study: false,
                },
                r#"{"kind":"best_known","because":{"kind":"regret_budget","regret":3.5,"bound":3.0},"mean":1.5,"n":2}"#,
            ),
            (
                Reason::BestKnown {
                    because: BestKnownBecause::NoHeadroom(NoHeadroom {
                        limit: 60.0,
                        needed: Some(90.0),
                        most: 1.5,
                        of_best: false,
                    }),
                    mean: None,
                    n: 0,
                    inherited: true,
                    another_study: false,
                },
                r#"{"kind":"best_known","because":{"kind":"no_headroom","limit":60.0,"needed":90.0,"most":1.5},"mean":null,"n":0,"inherited":true}"#,
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
                    vetoed: None,
                },
                r#"{"kind":"settled","mean":1.0,"n":2,"default_mean":null,"is_default":false,"stopped":{"kind":"regret_budget","regret":3.5,"bound":3.0}}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&reason).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Reason>(stored).unwrap(), reason);
            // 0.1.0's words.
            let earlier = stored
                .replace(r#""regret_budget","regret""#, r#""loss_bound","loss""#)
                .replace("no_headroom", "no_room")
                .replace(r#""restricted""#, r#""holding""#)
                .replace(r#""frozen""#, r#""held""#);
            assert_eq!(serde_json::from_str::<Reason>(&earlier).unwrap(), reason);
        }
    }
}
