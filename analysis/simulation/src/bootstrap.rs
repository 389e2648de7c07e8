//! Bootstrap intervals for means over seeds.

const RESAMPLES: u64 = 1000;

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// A figure over groups of seeds with its 95 % bootstrap percentile interval (Efron 1979). Equal
/// `sizes` (seeds per group) resample equal seeds, so that two methods are compared in pairs.
/// `figure` gets each group's seeds to use. None if a group is empty or the figure is not finite.
pub(crate) fn estimate(sizes: &[usize], figure: impl Fn(&[Vec<usize>]) -> f64) -> Option<Estimate> {
    if sizes.contains(&0) {
        return None;
    }
    let all: Vec<Vec<usize>> = sizes.iter().map(|size| (0..*size).collect()).collect();
    let value = figure(&all);
    let mut drawn = all;
    let mut figures: Vec<f64> = (0..RESAMPLES)
        .map(|resample| {
            for (group, (seeds, size)) in drawn.iter_mut().zip(sizes).enumerate() {
                for (nth, seed) in seeds.iter_mut().enumerate() {
                    let group = resample.wrapping_mul(1 << 20).wrapping_add(group as u64);
                    *seed = crate::dataset::Draw::new(0, group, nth as u64).row(*size);
                }
            }
            figure(&drawn)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let at = |share: f64| figures[((RESAMPLES - 1) as f64 * share).round() as usize];
    let (low, high) = (at(0.025), at(0.975));
    (value.is_finite() && low.is_finite() && high.is_finite()).then_some(Estimate {
        value,
        low,
        high,
    })
}

pub(crate) fn mean(numbers: &[f64], seeds: &[usize]) -> f64 {
    seeds.iter().map(|seed| numbers[*seed]).sum::<f64>() / seeds.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Draw;

    #[test]
    fn the_interval_of_a_mean_covers() {
        const TRIALS: u64 = 300;
        let mut covered = 0;
        for trial in 0..TRIALS {
            let numbers: Vec<f64> = (0..40).map(|n| Draw::new(trial, 1, n).normal()).collect();
            let interval = estimate(&[40], |seeds| mean(&numbers, &seeds[0])).unwrap();
            assert!(interval.low < interval.value && interval.value < interval.high);
            covered += u32::from(interval.low <= 0.0 && 0.0 <= interval.high);
        }
        // The percentile interval of 40 normal numbers covers in about 94 %.
        assert!((270..=297).contains(&covered), "{covered}");
    }

    #[test]
    fn what_does_not_vary_has_no_width_and_nothing_has_no_interval() {
        let flat = estimate(&[3, 5], |groups| {
            groups.iter().map(|seeds| seeds.len() as f64).sum()
        });
        let flat = flat.unwrap();
        assert_eq!((flat.low, flat.value, flat.high), (8.0, 8.0, 8.0));
        assert_eq!(estimate(&[3, 0], |_| 1.0), None);
        assert_eq!(estimate(&[3], |_| f64::NAN), None);
    }
}
