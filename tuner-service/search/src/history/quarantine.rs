//! Quarantine: a parametrization under which jobs fail is not run again. One run out of memory is
//! enough if no run of the default ran out of memory. Other failures may be the user's own, so it
//! takes at least two, and more often than under the default: with failure probabilities p under
//! the parametrization and q under the default, and uniform priors,
//!
//! ```text
//! P(p <= q | runs) <= 0.05
//! ```
//!
//! Two failures of two runs are enough if the default never failed. Censored runs count as failures
//! on both sides, because the user's job is lost. The default is never quarantined. A quarantine
//! may end with later runs.

use crate::math::Portable;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use statrs::function::beta::ln_beta;

use io_autotune_model::space::Parametrization;

/// The number of lost runs below which nothing is quarantined: one failure may be the user's own.
const LEAST_LOST: u64 = 2;
/// A parametrization is quarantined if the probability that it fails no more often than the default
/// is at most this.
const DOUBT: f64 = 0.05;
/// The relative rounding error of that probability.
const ROUNDING: f64 = 1e-9;
/// The number of runs to which failure rates are scaled down: the sum below has as many terms.
const MOST_RUNS: f64 = 1000.0;

/// How the runs of a parametrization ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// The number of counted runs.
    pub counted: u64,
    /// The number of failed runs, those out of memory included.
    pub failed: u64,
    /// The number of runs that their time limit ended, as far as the history keeps them.
    pub cut_short: u64,
    /// The number of runs out of memory.
    pub out_of_memory: u64,
}

impl Ends {
    fn lost(self) -> u64 {
        self.failed.saturating_add(self.cut_short)
    }

    fn all(self) -> u64 {
        self.counted.saturating_add(self.lost())
    }

    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match (self.failed, self.cut_short) {
            (_, 0) => "failed",
            (0, _) => "reached their time limit",
            _ => "failed or reached their time limit",
        };
        write!(f, "{} of {} jobs {how} under it", self.lost(), self.all())
    }

    /// Returns true if runs were lost, and none completed.
    pub fn never_completed(self) -> bool {
        self.counted == 0 && self.lost() > 0
    }

    /// Compares by the expected share of runs that complete, with a uniform prior.
    pub fn by_completion(&self, other: &Self) -> Ordering {
        let share = |ends: &Self| (ends.counted as f64 + 1.0) / (ends.all() as f64 + 2.0);
        share(self).total_cmp(&share(other))
    }
}

/// Why a parametrization is quarantined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Quarantine {
    /// Jobs ran out of memory under the parametrization, and none under the default.
    OutOfMemory {
        /// The number of these jobs.
        runs: u64,
    },
    /// Jobs fail or are cut short more often than under the default.
    Fails {
        /// The ends under the parametrization.
        ends: Ends,
        /// The ends under the default.
        default: Ends,
    },
    /// No run of the default completes, and jobs fail or are cut short more often than under the
    /// parametrization under which most complete.
    FailsMore {
        /// The ends under the parametrization.
        ends: Ends,
        /// The ends under the parametrization with most completed runs.
        other: Ends,
    },
}

impl fmt::Display for Quarantine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quarantine::OutOfMemory { runs: 1 } => {
                f.write_str("a job ran out of memory under it, and none did under the default")
            }
            Quarantine::OutOfMemory { runs } => write!(
                f,
                "{runs} jobs ran out of memory under it, and none did under the default"
            ),
            Quarantine::Fails { ends, default } => {
                ends.write(f)?;
                let (lost, all) = (default.lost(), default.all());
                write!(f, ", and {lost} of {all} under the default")
            }
            Quarantine::FailsMore { ends, other } => {
                ends.write(f)?;
                let (lost, all) = (other.lost(), other.all());
                write!(
                    f,
                    ", and {lost} of {all} under the one under which most complete (none does under the default)"
                )
            }
        }
    }
}

impl Quarantine {
    /// The quarantine of a parametrization other than the default, with its reason; none if it may
    /// run.
    pub fn of(ends: Ends, default: Ends) -> Option<Self> {
        if ends.out_of_memory > 0 && default.out_of_memory == 0 {
            let runs = ends.out_of_memory;
            return Some(Quarantine::OutOfMemory { runs });
        }
        let only_here = ends.counted == 0 && default.lost() == 0;
        let fails = ends.lost() >= LEAST_LOST
            && (only_here || doubt(ends, default) <= DOUBT * (1.0 + ROUNDING));
        fails.then_some(Quarantine::Fails { ends, default })
    }

    /// The quarantine where no run of the default completes: `other` is then the parametrization
    /// under which most runs do.
    pub fn beside(ends: Ends, other: Ends) -> Option<Self> {
        Self::of(ends, other).map(|_| Quarantine::FailsMore { ends, other })
    }
}

/// The probability that a parametrization fails no more often than the default. With uniform
/// priors, l losses and n counted runs give the rate Beta(l + 1, n + 1). For Beta(a, b) of the
/// parametrization and Beta(c, d) of the default, c whole (J. D. Cook, "Exact calculation of beta
/// inequalities", 2005, section 4; as a sum of positive terms E. Miller, "Formulas for Bayesian A/B
/// testing", 2014, equation 6):
///
/// ```text
/// P(q > p) = sum for i from 0 to c - 1 of  B(a + i, b + d) / ((d + i) B(1 + i, d) B(a, b))
/// ```
fn doubt(ends: Ends, default: Ends) -> f64 {
    let (a, b) = shape(ends);
    let (c, d) = shape(default);
    let mut sum = 0.0;
    let mut i = 0.0;
    while i < c {
        sum += (ln_beta(a + i, b + d) - (d + i).logarithm() - ln_beta(1.0 + i, d) - ln_beta(a, b))
            .exponential();
        i += 1.0;
    }
    sum
}

fn shape(ends: Ends) -> (f64, f64) {
    let (lost, counted) = (ends.lost() as f64, ends.counted as f64);
    let share = (MOST_RUNS / (lost + counted).max(1.0)).min(1.0);
    (
        (lost * share).floor() + 1.0,
        (counted * share).floor() + 1.0,
    )
}

/// A quarantined parametrization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantined {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The reason.
    pub why: Quarantine,
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::history::by_point::View;
    use crate::testing::{grid, history, tested};

    fn ends(failed: u64, counted: u64) -> Ends {
        Ends {
            counted,
            failed,
            ..Ends::default()
        }
    }

    fn is_quarantined(one: (u64, u64), default: (u64, u64)) -> bool {
        Quarantine::of(ends(one.0, one.1), ends(default.0, default.1)).is_some()
    }

    #[test]
    fn the_doubt_is_what_a_simulation_gives() {
        // By hand, with a default that never failed: E (1 - p)^(n + 1) for p of Beta(3, 1).
        assert!((doubt(ends(2, 0), ends(0, 4)) - 6.0 / 336.0).abs() < 1e-12);
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        // The jth smallest of k uniform numbers has the distribution Beta(j, k + 1 - j).
        let mut draw = |(a, b): (f64, f64)| {
            let mut numbers: Vec<f64> = (1..(a + b) as usize).map(|_| rng.random()).collect();
            numbers.sort_by(f64::total_cmp);
            numbers[a as usize - 1]
        };
        for (one, default) in [
            (ends(2, 3), ends(1, 6)),
            (ends(5, 1), ends(4, 4)),
            (ends(0, 2), ends(3, 9)),
        ] {
            let draws = 40_000;
            let hits = (0..draws)
                .filter(|_| draw(shape(one)) <= draw(shape(default)))
                .count();
            let simulated = hits as f64 / f64::from(draws);
            // The tolerance is four standard errors.
            assert!((doubt(one, default) - simulated).abs() < 0.01, "{one:?}");
        }
    }

    #[test]
    fn two_failures_of_two_suffice_where_the_default_never_fails_and_one_does_not() {
        for runs in 0..50 {
            assert!(is_quarantined((2, 0), (0, runs)), "{runs}");
            assert!(!is_quarantined((1, 0), (0, runs)), "{runs}");
        }
        assert!(
            !is_quarantined((3, 2), (0, 2)),
            "too little to compare with"
        );
        assert!(is_quarantined((3, 2), (0, 4)));
        assert!(!is_quarantined((2, 0), (1, 3)));
        assert!(is_quarantined((3, 0), (1, 3)));
        assert!(!is_quarantined((2, 8), (0, 10)));
        assert!(is_quarantined((2, 48), (0, 200)));
        assert!(!is_quarantined((200, 0), (50, 0)), "everything fails");
    }

    #[test]
    fn once_out_of_memory_is_enough_unless_the_default_was_too() {
        let out = |runs, counted| Ends {
            out_of_memory: runs,
            ..ends(runs, counted)
        };
        assert_eq!(
            Quarantine::of(out(1, 30), ends(3, 1)),
            Some(Quarantine::OutOfMemory { runs: 1 })
        );
        assert_eq!(Quarantine::of(out(1, 0), out(1, 9)), None);
        assert!(Quarantine::of(out(3, 0), out(1, 9)).is_some());
    }

    #[test]
    fn counts_at_the_ends_of_their_range_do_no_harm() {
        let most = ends(u64::MAX, u64::MAX);
        for (one, default) in [(most, most), (ends(u64::MAX, 0), most), (most, ends(0, 4))] {
            assert!(
                (0.0..=1.0 + ROUNDING).contains(&doubt(one, default)),
                "{one:?}"
            );
        }
        assert!(Quarantine::of(ends(u64::MAX, 0), ends(0, u64::MAX)).is_some());
    }

    /// The share of parametrizations that are quarantined at some time although the application
    /// fails at this rate under all of them. Each study has 50 exploring runs of 20
    /// parametrizations, and control runs.
    fn falsely_quarantined(rate: f64) -> f64 {
        const STUDIES: usize = 400;
        const POINTS: usize = 20;
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut quarantines = 0;
        for _ in 0..STUDIES {
            let mut default = ends(0, 0);
            let mut points = [ends(0, 0); POINTS];
            let mut run = |ends: &mut Ends| {
                if rng.random_bool(rate) {
                    ends.failed += 1;
                } else {
                    ends.counted += 1;
                }
            };
            while default.counted < 4 {
                run(&mut default);
            }
            let mut out = [false; POINTS];
            for number in 0..50_u64 {
                let place = number as usize % POINTS;
                if !out[place] {
                    run(&mut points[place]);
                }
                if default.all() < (default.all() + number).isqrt() {
                    run(&mut default);
                }
                for (point, out) in points.iter().zip(&mut out) {
                    *out |= Quarantine::of(*point, default).is_some();
                }
            }
            quarantines += out.iter().filter(|out| **out).count();
        }
        quarantines as f64 / (STUDIES * POINTS) as f64
    }

    #[test]
    fn an_application_that_fails_now_and_then_keeps_its_parametrizations() {
        for (rate, most) in [(0.02, 0.003), (0.1, 0.03), (0.3, 0.06), (0.5, 0.06)] {
            let share = falsely_quarantined(rate);
            assert!(share <= most, "{share} of them at a rate of {rate}");
        }
    }

    #[test]
    fn what_is_quarantined_is_listed_with_its_reason_and_the_default_never_is() {
        let space = grid(&[6]);
        let mut entries = vec![
            tested(&space, &[0], &[10.0; 4], 0),
            tested(&space, &[1], &[8.0, 8.0], 4),
            tested(&space, &[2], &[], 6),
            tested(&space, &[3], &[], 8),
        ];
        entries[0].record_failure(1);
        entries[2].record_out_of_memory(6);
        for ordinal in 8..11 {
            entries[3].record_failure(ordinal);
        }
        entries[3].record_censored(11, 20.0).unwrap();
        let listed = View::new(&space, &history(entries.clone(), 0, 12), &[]).quarantined();
        let listed: Vec<(String, String)> = listed
            .iter()
            .map(|one| (one.parametrization.to_string(), one.why.to_string()))
            .collect();
        let texts = [
            (
                "p00=2",
                "a job ran out of memory under it, and none did under the default",
            ),
            (
                "p00=3",
                "4 of 4 jobs failed or reached their time limit under it, and 1 of 5 under the default",
            ),
        ];
        assert_eq!(listed, texts.map(|(one, why)| (one.into(), why.into())));
        for _ in 0..20 {
            entries[0].record_out_of_memory(20);
        }
        assert_eq!(
            View::new(&space, &history(entries, 0, 32), &[]).quarantined(),
            []
        );
    }
}
