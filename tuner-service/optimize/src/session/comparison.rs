//! The gain that the runs after the search show: by draws, as on a site.

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{Phase, Role};
use io_autotune_model::{Gain, GainVerdict};
use serde::Serialize;

use super::goal::{Better, Scale};
use super::needed_runs;
use super::record::Outcome;
use super::{Known, Run};

/// The gain of the chosen parametrization over the default, and what may be claimed of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gained {
    /// The claim.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
    /// How much better: as a share of the default, or as a difference in the value's own unit.
    pub unit: Unit,
    /// The estimate.
    pub estimate: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// The confidence level of the interval, however often one looks.
    pub level: f64,
    /// About how many more runs would show a gain of the estimated size; none where that is not known,
    /// and where nothing is left to show.
    pub runs_needed: Option<u64>,
    /// The compared runs of the default.
    pub default: Known,
    /// The compared runs of what was chosen.
    pub chosen: Known,
    /// How many compared runs have failed, which no mean has.
    pub failed: Failures,
    /// True if a gain is not shown for that reason alone, which `reason` says.
    #[serde(skip)]
    pub fails_more: bool,
}

/// How many compared runs have failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// Failed runs of the default.
    pub default: usize,
    /// Failed runs of the chosen parametrization.
    pub chosen: usize,
}

/// A claim about a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The chosen parametrization is better.
    Better,
    /// It is worse.
    Worse,
    /// The default was chosen, or any difference is too small to matter.
    NoEffect,
    /// The runs do not show it.
    NotShown,
}

/// The unit of a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share of the default's.
    Share,
    /// The value's own unit.
    Difference,
}

/// The gain by the ended runs, from the first one up to one that is open. `default` is the default's
/// key.
pub(super) fn gained(runs: &[Run], default: &str, scale: Scale) -> Gained {
    let keys: Vec<String> = runs
        .iter()
        .map(|run| run.asked.parametrization.key())
        .collect();
    let mut evidence = Evidence::default();
    let compared = |run: &&Run| run.asked.phase == Phase::Settled;
    for (run, key) in runs.iter().zip(&keys) {
        let Some(outcome) = run.outcome else {
            if compared(&run) {
                break;
            }
            continue;
        };
        let ordinal = i64::try_from(run.asked.id).unwrap_or(i64::MAX);
        let counts = |value: f64, cut_short| Counts {
            key,
            elapsed: scale.enter(value),
            // Sums of other numbers than seconds mean nothing.
            beside: (scale != Scale::AsTold).then(|| scale.enter(value)),
            cut_short,
        };
        evidence.record(&JudgedRun {
            ordinal,
            started: ordinal.saturating_mul(1_000_000),
            slowness: 0.0,
            phase: run.asked.phase,
            role: run.asked.role,
            control_chance: run.asked.control_chance,
            given: key,
            default,
            counts: match outcome {
                Outcome::Value(value) => Some(counts(value, false)),
                Outcome::Cut(value) => Some(counts(value, true)),
                Outcome::Failed => None,
            },
            nodes: 1,
        });
    }
    let side = |role: Role| {
        let of_side = runs.iter().filter(compared);
        Known::of(
            of_side
                .filter(|run| run.asked.role == role)
                .filter_map(|run| run.value()),
        )
    };
    let sides = [side(Role::Control), side(Role::Settled)];
    let told = told(evidence.gain(1), scale, sides);
    let drawn = runs.iter().filter(compared);
    let counted = drawn.filter(|run| !matches!(run.outcome, None | Some(Outcome::Failed)));
    let told = Gained {
        runs_needed: needed_runs::more(counted.count(), told.runs_needed),
        ..told
    };
    unless_it_fails(told, runs.iter().filter(compared))
}

/// Withholds a gain if the chosen parametrization fails more often than the default: it is not better,
/// however well its other runs do.
fn unless_it_fails<'a>(told: Gained, compared: impl Iterator<Item = &'a Run>) -> Gained {
    let mut failed = Failures::default();
    let mut ended = Failures::default();
    for run in compared {
        let side = |counts: &'_ mut Failures| match run.asked.role {
            Role::Control => counts.default += 1,
            _ => counts.chosen += 1,
        };
        if run.outcome.is_some() {
            side(&mut ended);
        }
        if run.outcome == Some(Outcome::Failed) {
            side(&mut failed);
        }
    }
    let fails_more = failed.chosen * ended.default > failed.default * ended.chosen;
    match told.verdict {
        Verdict::Better if fails_more => Gained {
            verdict: Verdict::NotShown,
            reason: format!(
                "{} of {} runs of what was chosen failed, and {} of {} of the default",
                failed.chosen, ended.chosen, failed.default, ended.default
            ),
            runs_needed: None,
            failed,
            fails_more,
            ..told
        },
        _ => Gained { failed, ..told },
    }
}

fn told(gain: Gain, scale: Scale, [default, chosen]: [Known; 2]) -> Gained {
    let better = |share: f64| scale.better(-libm::log(1.0 - share));
    let number = |better| match better {
        Better::Share(number) | Better::Difference(number) => number,
    };
    let told = |share: Option<f64>| share.map(|share| number(better(share)));
    Gained {
        verdict: match gain.verdict {
            GainVerdict::Faster => Verdict::Better,
            GainVerdict::Slower => Verdict::Worse,
            GainVerdict::NoEffect => Verdict::NoEffect,
            GainVerdict::NotYet | GainVerdict::Unclear => Verdict::NotShown,
        },
        reason: gain.reason,
        unit: match better(0.0) {
            Better::Share(_) => Unit::Share,
            Better::Difference(_) => Unit::Difference,
        },
        estimate: told(gain.share),
        low: told(gain.low),
        high: told(gain.high),
        level: gain.level,
        runs_needed: gain.runs_needed,
        default,
        chosen,
        failed: Failures::default(),
        fails_more: false,
    }
}
