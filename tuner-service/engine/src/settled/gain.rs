//! Means and gains with two-sided 95 % intervals, for independent and nearly normal (log) numbers.

use io_autotune_search::math::Portable;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use io_autotune_search::history::Moments;

const UPPER: f64 = 0.975;

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

/// The gain of tuned over control runs, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// The ratio of geometric means, tuned over control; below 1 is faster.
    pub ratio: f64,
    /// `1 - ratio`: 0.1 is ten per cent less time.
    pub gain: f64,
    /// The gain's lower end. Above zero: the gain is significant.
    pub low: f64,
    /// The gain's upper end.
    pub high: f64,
    /// The tuned runs.
    pub tuned_n: u64,
    /// The control runs.
    pub control_n: u64,
}

/// A mean with its 95 % interval by Student's t: `mean ± t(0.975, n - 1) * s / sqrt(n)`. None under
/// two numbers, or if one is not finite.
pub fn mean_interval(numbers: &[f64]) -> Option<MeanInterval> {
    let moments = moments(numbers.iter().copied())?;
    let half = quantile((moments.count.checked_sub(1)?) as f64)? * moments.standard_error()?;
    let interval = MeanInterval {
        n: moments.count,
        mean: moments.mean,
        low: moments.mean - half,
        high: moments.mean + half,
    };
    (interval.low.is_finite() && interval.high.is_finite()).then_some(interval)
}

/// The gain of tuned over control runs (seconds) with its 95 % interval.
///
/// It compares logarithms: `d = mean(a) - mean(b)` of tuned `a` and control `b` estimates the log
/// ratio of geometric means. Welch's standard error is `se^2 = va + vb` with `va = var(a) / na`,
/// `vb = var(b) / nb`; the degrees of freedom are Welch and Satterthwaite's, `df = se^4 / (va^2 /
/// (na - 1) + vb^2 / (nb - 1))` (Welch, Biometrika 34 (1947), 28-35). The interval's ends are `1 -
/// exp(d ± t(0.975, df) * se)`. Without any variation it is the gain itself. None under two runs on
/// either side, or if a time is not finite and positive.
pub fn gain(tuned: &[f64], control: &[f64]) -> Option<Gain> {
    let (a, b) = (log_moments(tuned)?, log_moments(control)?);
    let difference = a.mean - b.mean;
    let (va, vb) = (
        a.variance()? / a.count as f64,
        b.variance()? / b.count as f64,
    );
    let variance = va + vb;
    let half = if variance > 0.0 {
        // Shares of the variance, against underflow.
        let (share_a, share_b) = (va / variance, vb / variance);
        let freedom = 1.0
            / (share_a * share_a / (a.count - 1) as f64 + share_b * share_b / (b.count - 1) as f64);
        quantile(freedom)? * variance.sqrt()
    } else {
        0.0
    };
    let ratio = difference.exponential();
    let gain = Gain {
        ratio,
        gain: 1.0 - ratio,
        low: 1.0 - (difference + half).exponential(),
        high: 1.0 - (difference - half).exponential(),
        tuned_n: a.count,
        control_n: b.count,
    };
    (gain.low.is_finite() && gain.high.is_finite()).then_some(gain)
}

fn moments(numbers: impl Iterator<Item = f64>) -> Option<Moments> {
    let mut moments = Moments::default();
    for number in numbers {
        moments.push(number).ok()?;
    }
    Some(moments)
}

fn log_moments(times: &[f64]) -> Option<Moments> {
    let positive = times.iter().all(|time| time.is_finite() && *time > 0.0);
    positive.then(|| moments(times.iter().map(|time| time.logarithm())))?
}

/// The 97.5 % quantile of Student's t. The incomplete beta function loses digits beyond df = 10^4,
/// where `z + (z^3 + z) / (4 df)` is right to nine (Abramowitz and Stegun 1964, 26.7.5).
pub(crate) fn quantile(freedom: f64) -> Option<f64> {
    const LARGE: f64 = 1e4;
    const Z: f64 = 1.959_963_984_540_054;
    if freedom > LARGE {
        return Some(Z + (Z * Z * Z + Z) / (4.0 * freedom));
    }
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(distribution.inverse_cdf(UPPER)).filter(|quantile| quantile.is_finite())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::testing::normal;

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

    #[test]
    fn a_gain_by_hand() {
        // Logarithms 0, 1, 2 against 2, 3, 4, 5, 6, in units of ln 2: means 1 and 4, variances 1
        // and 2.5, va = 1/3, vb = 1/2, se^2 = 5/6, df = (25/36) / (1/18 + 1/16) = 100/17.
        // t(0.975, 100/17) = 2.458824, by Simpson's rule on the density.
        let gain = gain(&[1.0, 2.0, 4.0], &[4.0, 8.0, 16.0, 32.0, 64.0]).unwrap();
        let half = 2.458_824 * (5.0_f64 / 6.0).sqrt();
        assert_eq!((gain.tuned_n, gain.control_n), (3, 5));
        close(gain.ratio, 0.125, 1e-12);
        close(gain.gain, 0.875, 1e-12);
        close(gain.low, 1.0 - 2.0_f64.power(-3.0 + half), 1e-5);
        close(gain.high, 1.0 - 2.0_f64.power(-3.0 - half), 1e-5);
    }

    #[test]
    fn what_the_sample_cannot_carry_is_not_claimed() {
        assert_eq!(gain(&[1.0], &[2.0, 3.0]), None);
        assert_eq!(gain(&[1.0, 2.0], &[2.0]), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(gain(&[1.0, bad], &[2.0, 3.0]), None);
            assert_eq!(gain(&[1.0, 2.0], &[2.0, bad]), None);
        }
        let flat = gain(&[9.0, 9.0], &[10.0, 10.0]).unwrap();
        close(flat.gain, 0.1, 1e-12);
        assert_eq!((flat.low, flat.high), (flat.gain, flat.gain));
        let one_flat = gain(&[9.0, 9.0], &[10.0, 10.5]).unwrap();
        assert!(one_flat.low < one_flat.gain && one_flat.gain < one_flat.high);
        // Tiny variation does not underflow the degrees of freedom.
        let tiny = [1.0, 1.0 + f64::EPSILON];
        assert!(gain(&tiny, &tiny).is_some());
    }

    /// Groups differ in size and spread; the true gain is 10 %.
    #[test]
    fn the_gain_interval_covers() {
        const TRIALS: u32 = 4000;
        for (seed, (tuned_n, tuned_spread), (control_n, control_spread)) in [
            (1, (20, 0.1), (4, 0.1)),
            (2, (6, 0.05), (6, 0.25)),
            (3, (30, 0.3), (12, 0.1)),
        ] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut draw = |n: u32, mean: f64, spread: f64| -> Vec<f64> {
                (0..n)
                    .map(|_| mean * (spread * normal(&mut rng)).exponential())
                    .collect()
            };
            let mut covered = 0;
            for _ in 0..TRIALS {
                let tuned = draw(tuned_n, 90.0, tuned_spread);
                let control = draw(control_n, 100.0, control_spread);
                let gain = gain(&tuned, &control).unwrap();
                covered += u32::from(gain.low <= 0.1 && 0.1 <= gain.high);
            }
            let share = f64::from(covered) / f64::from(TRIALS);
            assert!((0.93..=0.97).contains(&share), "case {seed}: {share}");
        }
    }
}
