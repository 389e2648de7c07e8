//! Standard Error Dynamic Resampling (robert2020, section VI-A-b, after Di Pietro et al. 2004).

use super::means::{self, is_out};
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;

/// The least number of runs of a child, because one run has no standard error.
pub(super) const LEAST_RUNS: u64 = 2;

/// `th_se = p * mean of the design` (section VI-A-c), seconds; none while the mean is unknown.
pub(super) fn threshold(context: &MethodContext<'_>, share: f64) -> Option<f64> {
    let mean = means::mean(&means::design_means(context)?);
    let threshold = share * mean;
    threshold.is_finite().then_some(threshold)
}

/// "The parametrization is reevaluated until the standard error of the mean is below a fixed
/// threshold" (section VI-A-b). After two runs, those in flight are awaited, because they may lower
/// it.
pub(super) fn is_due(known: &Known, threshold: f64) -> bool {
    if is_out(known) {
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
