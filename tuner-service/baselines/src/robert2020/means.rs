//! The basis of resampling, and the children that it leaves out.

use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;

/// The known means of design points, seconds (section VI-A-c); if there are none, the default's
/// mean. None if that is unknown too, or while exploring runs in flight may give one.
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

/// The mean; divided before the sum, against overflow.
pub(super) fn mean(means: &[f64]) -> f64 {
    means.iter().map(|mean| mean / means.len() as f64).sum()
}

/// Returns true if a child does not run again: it is quarantined, or all its runs are censored
/// above the default.
pub(super) fn is_out(known: &Known) -> bool {
    let only_slower = known.count() == 0 && known.mean().is_some();
    known.is_quarantined() || only_slower
}
