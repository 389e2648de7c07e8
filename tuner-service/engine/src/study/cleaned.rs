//! Estimates without the noise that how other runs fared meanwhile explains.

use io_autotune_search::math::Portable;

/// What is estimated of a parametrization where others fare as ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaned {
    /// How far the log of elapsed follows the log of how long others took meanwhile.
    pub slope: f64,
    /// The share of the noise's variance that this explains, 0 to 1.
    pub share: f64,
    /// The estimate, in seconds.
    pub mean: f64,
    /// The lower end of the surrogate's 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Cleaned {
    /// What a run of these seconds would have taken, had others not taken `ratio` of what they take.
    pub fn of_run(&self, seconds: f64, ratio: f64) -> f64 {
        seconds * (-self.slope * ratio.logarithm()).exponential()
    }
}
