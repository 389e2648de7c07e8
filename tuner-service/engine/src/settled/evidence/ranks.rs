//! The rank of a control run among the tuned runs near it: scores, e-values and bounds.
//!
//! A *block* is a control run and its `k` nearest tuned runs. Under no effect the control run's
//! `k + 1` ranks are equally likely. A rank becomes Blom's normal score `a`. The evidence that the
//! control run takes longer is
//!
//! ```text
//! E+ = sum over eta of weight(eta) * product over blocks of exp(eta a) / M_k(eta)
//! ```
//!
//! with `M_k(eta)` the mean of `exp(eta a)` over the ranks. Under no effect E+ is a nonnegative
//! martingale: it ever exceeds `1 / alpha` with probability at most `alpha` (Ville 1939), at any
//! number of looks (Ramdas et al. 2023, "Game-theoretic statistics and safe anytime-valid
//! inference"). E- uses `-eta`.

use io_autotune_search::math::Portable;
use std::sync::LazyLock;

use statrs::distribution::{ContinuousCDF, Normal};

/// The maximum number of tuned runs in a block: more hardly add information.
pub(super) const MOST_TUNED: usize = 40;

const EFFECTS: usize = 7;
/// The effects, in scores: about the effect over the noise.
const ETAS: [f64; EFFECTS] = [0.05, 0.1, 0.2, 0.35, 0.65, 1.2, 3.0];
/// Any weights are valid. Most weight is on what 10 to 100 control runs can show.
const WEIGHTS: [f64; EFFECTS] = [0.04, 0.06, 0.10, 0.28, 0.28, 0.14, 0.10];
const STEPS: u32 = 30;

/// Sums of `ln M_k(eta)` over blocks, by effect.
pub(super) type LogMoment = [f64; EFFECTS];

struct Tables {
    scores: Vec<Vec<f64>>,
    /// Of the scores, by tuned runs.
    variance: Vec<f64>,
    log_moment: Vec<LogMoment>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let normal = Normal::standard();
    let mut tables = Tables {
        scores: vec![vec![0.0]],
        variance: vec![0.0],
        log_moment: vec![[0.0; EFFECTS]],
    };
    for tuned in 1..=MOST_TUNED {
        let ranks = tuned as f64 + 1.0;
        let row: Vec<f64> = (0..=tuned)
            .map(|below| normal.inverse_cdf((below as f64 + 0.625) / (tuned as f64 + 1.25)))
            .collect();
        tables
            .variance
            .push(row.iter().map(|score| score * score).sum::<f64>() / ranks);
        tables.log_moment.push(ETAS.map(|eta| {
            let exponents = row.iter().map(|score| eta * score);
            log_sum_exp(exponents) - ranks.logarithm()
        }));
        tables.scores.push(row);
    }
    tables
});

/// The score of a control run with `below` of `tuned` tuned runs below it.
pub(super) fn score(tuned: usize, below: usize) -> f64 {
    TABLES.scores[tuned][below]
}

pub(super) fn variance(tuned: usize) -> f64 {
    TABLES.variance[tuned]
}

pub(super) fn log_moment(tuned: usize) -> &'static LogMoment {
    &TABLES.log_moment[tuned]
}

/// ln E+ from the sums of scores and of [`log_moment`] over the blocks.
pub(super) fn log_evidence(total: f64, log_moment: &LogMoment) -> f64 {
    let exponents = (0..EFFECTS).map(|i| total * ETAS[i] - log_moment[i] + WEIGHTS[i].logarithm());
    log_sum_exp(exponents)
}

/// The sum of scores at which E+ reaches the bound; none if even `most` does not reach it.
pub(super) fn critical(most: f64, log_moment: &LogMoment, log_bound: f64) -> Option<f64> {
    if log_evidence(most, log_moment) < log_bound {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if log_evidence(middle, log_moment) >= log_bound {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

fn log_sum_exp(exponents: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = exponents.clone().fold(f64::NEG_INFINITY, f64::max);
    most + exponents
        .map(|exponent| (exponent - most).exponential())
        .sum::<f64>()
        .logarithm()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_factor_of_the_evidence_has_expectation_one_under_no_effect() {
        for tuned in 1..=MOST_TUNED {
            let mean = |sign: f64| {
                let factors = (0..=tuned).map(|below| {
                    log_evidence(sign * score(tuned, below), log_moment(tuned)).exponential()
                });
                factors.sum::<f64>() / (tuned as f64 + 1.0)
            };
            assert!((mean(1.0) - 1.0).abs() < 1e-12, "{tuned} tuned runs");
            assert!((mean(-1.0) - 1.0).abs() < 1e-12, "{tuned} tuned runs");
        }
    }

    #[test]
    fn the_critical_sum_is_where_the_evidence_reaches_the_bound() {
        let moment = log_moment(9).map(|one| one * 30.0);
        let most = score(9, 9) * 30.0;
        let critical = critical(most, &moment, 80.0_f64.logarithm()).unwrap();
        assert!((log_evidence(critical, &moment) - 80.0_f64.logarithm()).abs() < 1e-6);
        assert_eq!(
            super::critical(score(9, 9), log_moment(9), 80.0_f64.logarithm()),
            None
        );
    }
}
