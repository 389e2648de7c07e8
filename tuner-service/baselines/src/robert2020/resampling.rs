//! Resampling: the children that run again (robert2020, section VI-A).

use super::settings::{Resampling, Robert2020};
use super::{averaging, sedr};
use io_autotune_model::reason::Reason;
use io_autotune_model::space::Point;
use io_autotune_search::history::by_point::Known;
use io_autotune_search::{MethodContext, Proposal};

/// The number of times that a child runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// Once.
    Once,
    /// Until the standard error of its mean is below the threshold, seconds.
    Sedr { threshold: f64 },
    /// This many times.
    Averaging { runs: u64 },
}

impl Rule {
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

/// The rule by the settings; none while the design that it needs is unknown.
pub(super) fn rule(settings: &Robert2020, context: &MethodContext<'_>) -> Option<Rule> {
    let share = settings.resampling_share;
    Some(match settings.noise.resampling() {
        None => Rule::Once,
        Some(Resampling::Sedr) => Rule::Sedr {
            threshold: sedr::threshold(context, share)?,
        },
        Some(Resampling::Averaging) => Rule::Averaging {
            runs: averaging::runs(context, share)?,
        },
    })
}

/// A run of the oldest child that needs one.
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

/// Returns true for a child: neither the default nor a design point that ran once.
fn is_child(context: &MethodContext<'_>, point: &Point, known: &Known) -> bool {
    let ended = known.count() > 0 || known.censored() > 0 || known.failed > 0;
    *point != context.view.default
        && (known.search_in_flight > 0
            || known.count() >= 2
            || (ended && !context.in_design(point)))
}
