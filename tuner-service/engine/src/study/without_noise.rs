//! Estimates without the noise that is explained by how other runs fared at the same time.

use io_autotune_model::Estimate;
use io_autotune_model::space::Point;
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::Prediction;
use io_autotune_search::surrogate::posterior::Fitted;

use crate::settled::mean_interval::NORMAL;

/// An estimate of a parametrization for the case that other runs take as long as usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleaned {
    /// How strongly the log of elapsed follows the log of how long other runs took at the same
    /// time.
    pub slope: f64,
    /// The share of the noise's variance that other runs explain, from 0 to 1.
    pub share: f64,
    /// The surrogate's estimate, in seconds.
    pub estimate: Estimate,
}

impl Cleaned {
    /// The estimate for a point. None if nothing is known of other runs.
    pub(super) fn new(fitted: &Fitted, point: &Point) -> Option<Self> {
        let explained = fitted.explained()?;
        let Prediction { mean, variance } = fitted.predict(point);
        // A mean of times like the default's beside it, but of times while other runs take as long
        // as usual.
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

    /// The seconds that a run would have taken if other runs had taken as long as usual, and not
    /// `ratio` times as long.
    pub fn of_run(&self, seconds: f64, ratio: f64) -> f64 {
        seconds * (-self.slope * ratio.logarithm()).exponential()
    }
}
