//! Estimates without the noise that how other runs fared meanwhile explains.

use io_autotune_model::Estimate;
use io_autotune_model::space::Point;
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::Prediction;
use io_autotune_search::surrogate::posterior::Fitted;

use crate::settled::mean_interval::NORMAL;

/// What is estimated of a parametrization where others fare as ever.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaned {
    /// How far the log of elapsed follows the log of how long others took meanwhile.
    pub slope: f64,
    /// The share of the noise's variance that this explains, 0 to 1.
    pub share: f64,
    /// By the surrogate, in seconds.
    pub estimate: Estimate,
}

impl Cleaned {
    /// None where nothing is known of others.
    pub(super) fn new(fitted: &Fitted, point: &Point) -> Option<Self> {
        let explained = fitted.explained()?;
        let Prediction { mean, variance } = fitted.predict(point);
        // Of times, like the default's mean beside it, but of times where others fare as ever.
        let mean = mean - explained.raises;
        let doubt = NORMAL * variance.sqrt();
        Some(Cleaned {
            slope: explained.slope,
            share: explained.share,
            estimate: Estimate {
                mean: mean.exponential(),
                low: (mean - doubt).exponential(),
                high: (mean + doubt).exponential(),
            },
        })
    }

    /// What a run of these seconds would have taken, had others not taken `ratio` of what they take.
    pub fn of_run(&self, seconds: f64, ratio: f64) -> f64 {
        seconds * (-self.slope * ratio.logarithm()).exponential()
    }
}
