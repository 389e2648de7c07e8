//! Simple averaging (robert2020, section VI-A-a, after Fitzpatrick and Grefenstette 1988).

use super::means::{self, is_out};
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;

/// `n = max(1, floor(s^2 / (p^2 m^2)))` (section VI-A-c), with the mean m and unbiased variance s^2
/// of the design's means; none while they are unknown. The paper's formula may give 0.
pub(super) fn runs(context: &MethodContext<'_>, share: f64) -> Option<u64> {
    let design = means::design_means(context)?;
    Some(repetitions(&design, share))
}

pub(super) fn repetitions(design: &[f64], share: f64) -> u64 {
    let mean = means::mean(design);
    // Relative to the mean, against overflow.
    let squares: f64 = design.iter().map(|one| (one / mean - 1.0).powi(2)).sum();
    let variance = squares / design.len().saturating_sub(1).max(1) as f64;
    // `as` saturates, and turns NaN into 0.
    ((variance / (share * share)).floor() as u64).max(1)
}

/// Returns true if the child runs again. Runs in flight count, because the number of runs is fixed.
pub(super) fn is_due(known: &Known, runs: u64) -> bool {
    !is_out(known) && known.count().saturating_add(known.in_flight) < runs
}

#[cfg(test)]
mod tests {
    use super::repetitions;

    #[test]
    fn robert2020_vi_a_averaging_repeats_as_the_design_scatters() {
        // Mean 100, unbiased variance 625: 6.25 at p = 10 %, 1.56 at 20 %, 0.39 at 40 %.
        let means = [75.0, 100.0, 125.0];
        assert_eq!(repetitions(&means, 0.1), 6);
        assert_eq!(repetitions(&means, 0.2), 1);
        assert_eq!(repetitions(&means, 0.4), 1, "at least once");
        assert_eq!(repetitions(&[100.0; 5], 0.1), 1);
        assert_eq!(repetitions(&[100.0], 0.1), 1);
    }
}
