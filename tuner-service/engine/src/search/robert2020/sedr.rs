//! Standard Error Dynamic Resampling (robert2020, section VI-A-b, after Di Pietro et al. 2004).

use super::means::{self, is_out};
use crate::history::by_point::Known;
use crate::search::MethodContext;

/// A child runs at least so often: one run has no standard error.
pub(super) const LEAST_RUNS: u64 = 2;

/// The standard error that suffices, `th_se = p * mean of the design` (section VI-A-c), in seconds;
/// none while the design's mean is not known.
pub(super) fn threshold(context: &MethodContext<'_>) -> Option<f64> {
    let mean = means::mean(&means::design_means(context)?);
    let threshold = context.settings.robert2020.resampling_share * mean;
    threshold.is_finite().then_some(threshold)
}

/// "The parametrization is reevaluated until the standard error of the mean is below a fixed
/// threshold" (section VI-A-b). Runs in flight count towards the first two runs; beyond these they
/// are waited for, because they may bring the standard error down.
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
