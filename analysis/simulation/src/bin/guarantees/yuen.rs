//! An alternative test, for comparison only.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The share trimmed at each end (Yuen 1974).
const TRIM: f64 = 0.2;

/// Yuen's two-sided test of trimmed means: 1 if control runs take longer than tuned runs, -1 if
/// they take less time, 0 if neither. Both are ascending, with at least four runs.
pub(crate) fn claim(control: &[f64], tuned: &[f64], level: f64) -> i32 {
    let (one, other) = (Trimmed::new(control), Trimmed::new(tuned));
    let variance = one.variance + other.variance;
    let freedom = variance.powi(2)
        / (one.variance.powi(2) / one.freedom + other.variance.powi(2) / other.freedom);
    let apart = (one.mean - other.mean) / variance.sqrt();
    let probability = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t| 2.0 * t.cdf(-apart.abs()));
    match (probability < level, apart > 0.0) {
        (false, _) => 0,
        (true, true) => 1,
        (true, false) => -1,
    }
}

struct Trimmed {
    mean: f64,
    /// The variance of the mean.
    variance: f64,
    freedom: f64,
}

impl Trimmed {
    fn new(logs: &[f64]) -> Self {
        let runs = logs.len() as f64;
        let cut = (TRIM * runs) as usize;
        let kept = &logs[cut..logs.len() - cut];
        let size = kept.len() as f64;
        let winsorised = || {
            logs.iter()
                .map(|log| log.clamp(kept[0], kept[kept.len() - 1]))
        };
        let middle = winsorised().sum::<f64>() / runs;
        let squares = winsorised().map(|log| (log - middle).powi(2)).sum::<f64>();
        Trimmed {
            mean: kept.iter().sum::<f64>() / size,
            variance: squares / (size * (size - 1.0)),
            freedom: size - 1.0,
        }
    }
}
