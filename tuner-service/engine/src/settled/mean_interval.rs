//! Means with two-sided 95 % intervals, for independent and nearly normal numbers.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use io_autotune_search::history::Moments;

const UPPER: f64 = 0.975;
/// That quantile of the normal distribution.
pub(crate) const NORMAL: f64 = 1.959_963_984_540_054;

/// An arithmetic mean with its 95 % interval, in the numbers' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanInterval {
    /// How many numbers.
    pub n: u64,
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A mean with its 95 % interval by Student's t: `mean ± t(0.975, n - 1) * s / sqrt(n)`. None under
/// two numbers, or if one is not finite.
pub fn mean_interval(numbers: &[f64]) -> Option<MeanInterval> {
    MeanInterval::of(&moments(numbers.iter().copied())?)
}

impl MeanInterval {
    /// [`mean_interval`] of the numbers with these moments.
    pub fn of(moments: &Moments) -> Option<Self> {
        let half = quantile((moments.count.checked_sub(1)?) as f64)? * moments.standard_error()?;
        let interval = MeanInterval {
            n: moments.count,
            mean: moments.mean,
            low: moments.mean - half,
            high: moments.mean + half,
        };
        (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
    }
}

fn moments(numbers: impl Iterator<Item = f64>) -> Option<Moments> {
    let mut moments = Moments::default();
    for number in numbers {
        moments.push(number).ok()?;
    }
    Some(moments)
}

/// The 97.5 % quantile of Student's t. The incomplete beta function loses digits beyond df = 10^4,
/// where `z + (z^3 + z) / (4 df)` is right to nine (Abramowitz and Stegun 1964, 26.7.5).
pub(crate) fn quantile(freedom: f64) -> Option<f64> {
    const LARGE: f64 = 1e4;
    if freedom > LARGE {
        return Some(NORMAL + (NORMAL * NORMAL * NORMAL + NORMAL) / (4.0 * freedom));
    }
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(UPPER)).filter(|quantile| quantile.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [
            (1.0, 12.706_205),
            (2.0, 4.302_653),
            (5.0, 2.570_582),
            (10.0, 2.228_139),
            (30.0, 2.042_272),
            (9_999.0, 1.960_201),
            (10_001.0, 1.960_201),
            (1e6, 1.959_966),
        ] {
            close(quantile(freedom).unwrap(), expected, 2e-6);
        }
    }

    #[test]
    fn a_mean_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, s = sqrt(32 / 7), t(7) = 2.364624.
        let interval = mean_interval(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        let half = 2.364_624_252 * (32.0_f64 / 7.0 / 8.0).sqrt();
        assert_eq!(interval.n, 8);
        close(interval.mean, 5.0, 1e-12);
        close(interval.low, 5.0 - half, 1e-6);
        close(interval.high, 5.0 + half, 1e-6);
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[1.0]), None);
        assert_eq!(mean_interval(&[1.0, f64::NAN]), None);
        assert_eq!(mean_interval(&[f64::MAX, -f64::MAX]), None);
        let flat = mean_interval(&[3.0, 3.0]).unwrap();
        assert_eq!((flat.low, flat.high), (3.0, 3.0));
    }
}
