//! Means of positive numbers with two-sided 95 % intervals.

use io_autotune_model::Elapsed;
use io_autotune_search::history::Moments;
use io_autotune_search::math::Portable;
use statrs::distribution::{ContinuousCDF, StudentsT};

const UPPER: f64 = 0.975;
/// The 97.5 % quantile of the normal distribution, for the ends of a two-sided 95 % interval.
pub(crate) const NORMAL: f64 = 1.959_963_984_540_054;

/// The mean of positive numbers by their moments, such as the seconds of some runs; none if there
/// are no numbers.
///
/// The interval is symmetric on the log scale, so that a time is never negative: by the delta method the
/// standard error of the mean's logarithm is `s / (mean * sqrt(n))`, and the ends are
/// `mean * exp(± t(0.975, n - 1) * s / (mean * sqrt(n)))`.
#[must_use]
pub fn elapsed_of(moments: &Moments) -> Option<Elapsed> {
    (moments.count > 0).then(|| Elapsed {
        n: moments.count,
        mean: moments.mean,
        interval: interval(moments),
    })
}

fn interval(moments: &Moments) -> Option<(f64, f64)> {
    let quantile = quantile((moments.count.checked_sub(1)?) as f64)?;
    let factor = (quantile * moments.standard_error()? / moments.mean).exponential();
    let (low, high) = (moments.mean / factor, moments.mean * factor);
    (moments.mean > 0.0 && low.is_finite() && high.is_finite()).then_some((low, high))
}

/// The 97.5 % quantile of Student's t. The incomplete beta function loses digits beyond df = 10^4,
/// where `z + (z^3 + z) / (4 df)` is right to nine (Abramowitz and Stegun 1964, 26.7.5).
pub(crate) fn quantile(freedom: f64) -> Option<f64> {
    const LARGE: f64 = 1e4;
    if freedom > LARGE {
        return Some(NORMAL + (NORMAL * NORMAL * NORMAL + NORMAL) / (4.0 * freedom));
    }
    quantile_of(UPPER, freedom)
}

/// This quantile of Student's t, for at most some thousand degrees of freedom.
pub(crate) fn quantile_of(share: f64, freedom: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(share)).filter(|quantile| quantile.is_finite())
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

    fn of(numbers: &[f64]) -> Option<Elapsed> {
        let mut moments = Moments::default();
        for number in numbers {
            moments.push(*number).unwrap();
        }
        elapsed_of(&moments)
    }

    #[test]
    fn a_mean_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, s = sqrt(32 / 7), t(7) = 2.364624.
        let known = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        let half = 2.364_624_252 * (32.0_f64 / 7.0 / 8.0).sqrt() / 5.0;
        let (low, high) = known.interval.unwrap();
        assert_eq!(known.n, 8);
        close(known.mean, 5.0, 1e-12);
        close(low, 5.0 * (-half).exponential(), 1e-6);
        close(high, 5.0 * half.exponential(), 1e-6);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[1.0]).unwrap().interval, None);
        assert_eq!(of(&[3.0, 3.0]).unwrap().interval, Some((3.0, 3.0)));
    }

    #[test]
    fn no_time_is_negative_however_much_runs_scatter() {
        let (low, high) = of(&[1.0, 1.0, 8.0]).unwrap().interval.unwrap();
        assert!(0.0 < low && low < 1.0 && high > 8.0, "{low} .. {high}");
    }
}
