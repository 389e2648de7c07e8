//! Which child runs again (robert2020, section VI-A), whatever says how often.

use super::{averaging, sedr};
use crate::history::by_point::Known;
use crate::reason::Reason;
use crate::search::{MethodContext, Proposal};
use crate::space::Point;
use crate::study::settings::Resampling;

/// How often a child runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// Once.
    Once,
    /// Until the standard error of its mean is below so many seconds.
    Sedr { threshold: f64 },
    /// So many times.
    Averaging { runs: u64 },
}

impl Rule {
    /// A child runs at least so often.
    pub(super) fn least_runs(self) -> u64 {
        match self {
            Rule::Once => 1,
            Rule::Sedr { .. } => sedr::LEAST_RUNS,
            Rule::Averaging { runs } => runs,
        }
    }

    fn is_due(self, known: &Known) -> bool {
        match self {
            Rule::Once => false,
            Rule::Sedr { threshold } => sedr::is_due(known, threshold),
            Rule::Averaging { runs } => averaging::is_due(known, runs),
        }
    }

    fn reason(self, known: &Known) -> Reason {
        let number = known
            .count()
            .saturating_add(known.in_flight)
            .saturating_add(1);
        match self {
            Rule::Sedr { threshold } => Reason::Resample {
                number,
                standard_error: known.elapsed.standard_error(),
                threshold,
            },
            Rule::Once | Rule::Averaging { .. } => Reason::Average {
                number,
                of: self.least_runs(),
            },
        }
    }
}

/// The rule that the settings ask for; none while the design, which it is made from, is not known.
pub(super) fn rule(context: &MethodContext<'_>) -> Option<Rule> {
    Some(match context.settings.robert2020.noise.resampling() {
        None => Rule::Once,
        Some(Resampling::Sedr) => Rule::Sedr {
            threshold: sedr::threshold(context)?,
        },
        Some(Resampling::Averaging) => Rule::Averaging {
            runs: averaging::runs(context)?,
        },
    })
}

/// The means of the design points that are known, seconds: what resampling is set from (section
/// VI-A-c). If none is and none can be, the default's stands in; none if that is not known either, or
/// while exploring runs are in flight that may still give one.
pub(super) fn design_means(context: &MethodContext<'_>) -> Option<Vec<f64>> {
    let means: Vec<f64> = context
        .design
        .iter()
        .filter_map(|point| context.view.get(point)?.mean())
        .collect();
    if !means.is_empty() {
        return Some(means);
    }
    let default = (context.view.exploring() == 0).then(|| context.view.default_known().mean());
    default.flatten().map(|mean| vec![mean])
}

/// The mean of some means; they are divided before they are summed, so that the sum is finite.
pub(super) fn mean(means: &[f64]) -> f64 {
    means.iter().map(|mean| mean / means.len() as f64).sum()
}

/// The run that is due: of the oldest child that has not run often enough.
pub(super) fn due(context: &MethodContext<'_>, rule: Rule) -> Option<Proposal> {
    context
        .view
        .iter()
        .filter(|(point, known)| is_child(context, point, known))
        .filter(|(_, known)| rule.is_due(known))
        .min_by_key(|(point, known)| (known.first_ordinal, *point))
        .map(|(point, known)| Proposal::Run {
            point: point.clone(),
            reason: rule.reason(known),
        })
}

/// Whether a point is a child, and not only a design point that ran once, or the default, which has
/// its control runs.
fn is_child(context: &MethodContext<'_>, point: &Point, known: &Known) -> bool {
    let ended = known.count() > 0 || known.censored() > 0 || known.failed > 0;
    *point != context.view.default
        && (known.search_in_flight > 0
            || known.count() >= 2
            || (ended && !context.in_design(point)))
}

/// Whether a child is not run again, however few its runs: one that is quarantined, and one all of whose
/// runs were cut short later than the default ends. That one is known to be slower, and to run it
/// again costs a user one more.
pub(super) fn is_out(known: &Known) -> bool {
    let only_slower = known.count() == 0 && known.mean().is_some();
    known.is_quarantined() || only_slower
}
