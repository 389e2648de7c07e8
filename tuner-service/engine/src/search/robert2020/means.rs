//! What resampling is set from, and which children it leaves out.

use crate::history::by_point::Known;
use crate::search::MethodContext;

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

/// Whether a child is not run again, however few its runs: one that is quarantined, and one all of whose
/// runs were cut short later than the default ends. That one is known to be slower, and to run it
/// again costs a user one more.
pub(super) fn is_out(known: &Known) -> bool {
    let only_slower = known.count() == 0 && known.mean().is_some();
    known.is_quarantined() || only_slower
}
