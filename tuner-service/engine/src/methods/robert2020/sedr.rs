//! Standard Error Dynamic Resampling (robert2020, section VI-A-b, after Di Pietro et al. 2004).

use crate::methods::{MethodContext, Proposal};
use crate::reason::Reason;
use crate::space::Point;
use crate::view::Known;

/// A child runs at least so often: one run has no standard error.
const LEAST_RUNS: u64 = 2;

/// The standard error that suffices, `th_se = p * mean of the design` (section VI-A-c), in seconds.
///
/// The mean is that of the means of the design points that are known. If none has and none can,
/// the default's mean stands in; none if that is not known either, or while exploring runs are in
/// flight that may still give one.
pub(super) fn threshold(context: &MethodContext<'_>) -> Option<f64> {
    let means: Vec<f64> = context
        .design
        .iter()
        .filter_map(|point| context.view.get(point)?.mean())
        .collect();
    let mean = if !means.is_empty() {
        // Divided before they are summed, so that the sum is finite.
        means.iter().map(|mean| mean / means.len() as f64).sum()
    } else if context.view.exploring() == 0 {
        context.view.default_known().mean()?
    } else {
        return None;
    };
    let threshold = context.settings.robert2020.resampling_share * mean;
    threshold.is_finite().then_some(threshold)
}

/// The resample that is due: the oldest child whose mean is not known well enough.
pub(super) fn resample(context: &MethodContext<'_>, threshold: f64) -> Option<Proposal> {
    context
        .view
        .iter()
        .filter(|(point, known)| is_child(context, point, known))
        .filter(|(_, known)| is_due(known, threshold))
        .min_by_key(|(point, known)| (known.first_ordinal, *point))
        .map(|(point, known)| Proposal::Run {
            point: point.clone(),
            reason: Reason::Resample {
                number: known
                    .count()
                    .saturating_add(known.in_flight)
                    .saturating_add(1),
                standard_error: known.elapsed.standard_error(),
                threshold,
            },
        })
}

/// Whether a point is a child, and not only a design point that ran once, or the default, which has
/// its control runs.
fn is_child(context: &MethodContext<'_>, point: &Point, known: &Known) -> bool {
    let ended = known.count() > 0 || known.censored() > 0 || known.failed > 0;
    *point != context.view.default
        && (known.search_in_flight > 0
            || known.count() >= LEAST_RUNS
            || (ended && !context.in_design(point)))
}

/// "The parametrization is reevaluated until the standard error of the mean is below a fixed
/// threshold" (section VI-A-b). Runs in flight count towards the first two runs; beyond these they
/// are waited for, because they may bring the standard error down. A child all of whose runs were cut
/// short, later than the default ends, is known to be slower: to run it again costs a user one more.
fn is_due(known: &Known, threshold: f64) -> bool {
    let only_slower = known.count() == 0 && known.mean().is_some();
    if known.given_up() || only_slower {
        return false;
    }
    if known.count().saturating_add(known.in_flight) < LEAST_RUNS {
        return true;
    }
    known.in_flight == 0
        && known
            .elapsed
            .standard_error()
            .is_none_or(|error| error >= threshold)
}
