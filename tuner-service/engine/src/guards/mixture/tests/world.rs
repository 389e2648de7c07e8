//! Runs of a study on a busy machine, or of two works, for the tests and for what `analysis/simulation` measures.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated world may differ in its last bit"
)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{History, Parametrization, RecentRun, Settings, Space, Tested, mixture};

type Failure = Box<dyn std::error::Error>;

/// The cause by which runs differ, besides noise.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Nothing,
    /// The machine is busy 30 % of the time: mean hours of an episode, and the factor.
    Episodes(f64, f64),
    /// The machine is busy once: hours, and the factor.
    Once(f64, f64),
    /// Autocorrelated noise, of the same size as the noise: the correlation of successive runs.
    Memory(f64),
    /// 15 % more and less in the course of a week.
    Weekly,
    /// Every other run is of work slower by this factor.
    Alternating(f64),
    /// Each run is, with probability 1/2, of work slower by this factor.
    Random(f64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) what: What,
    /// Mean hours between two starts.
    pub(crate) gap: f64,
    /// True if starts are evenly spaced; otherwise they are a Poisson process.
    pub(crate) is_even: bool,
    /// The standard deviation of log elapsed. One run in sixteen takes 1.3 to 1.6 times as long.
    pub(crate) noise: f64,
    /// The share of the default's runs, 1 without tuned runs. Tuned runs take 0.2 log seconds less.
    pub(crate) default_share: f64,
}

const BUSY_SHARE: f64 = 0.3;
const TUNED: f64 = -0.2;

impl World {
    /// Starts (seconds), log elapsed, and whether they are the default's.
    fn runs(&self, runs: usize, rng: &mut ChaCha8Rng) -> Vec<(f64, f64, bool)> {
        let mut busy = Busy::new(self.what, self.gap * runs as f64, rng);
        let mut hour = 0.0;
        let mut memory = normal(rng);
        (0..runs)
            .map(|run| {
                let part = rng.random::<f64>();
                hour += self.gap
                    * if self.is_even {
                        0.9 + 0.2 * part
                    } else {
                        -(1.0 - part).ln()
                    };
                let mut log = self.noise * normal(rng);
                if rng.random::<f64>() < 1.0 / 16.0 {
                    log += rng.random_range(1.3_f64..1.6).ln();
                }
                log += match self.what {
                    What::Nothing => 0.0,
                    What::Episodes(_, ratio) | What::Once(_, ratio) => {
                        if busy.at(hour, rng) {
                            ratio.ln()
                        } else {
                            0.0
                        }
                    }
                    What::Memory(share) => {
                        memory = share * memory + (1.0 - share * share).sqrt() * normal(rng);
                        self.noise * memory
                    }
                    What::Weekly => 0.15 * (std::f64::consts::TAU * hour / 168.0).sin(),
                    What::Alternating(ratio) => {
                        if run % 2 == 1 {
                            ratio.ln()
                        } else {
                            0.0
                        }
                    }
                    What::Random(ratio) => {
                        if rng.random::<bool>() {
                            ratio.ln()
                        } else {
                            0.0
                        }
                    }
                };
                let is_default = run < 4 || rng.random::<f64>() < self.default_share;
                (
                    hour * 3600.0,
                    if is_default { log } else { log + TUNED },
                    is_default,
                )
            })
            .collect()
    }

    fn history(&self, space: &Space, runs: usize, seed: u64) -> Result<History, Failure> {
        let mut default = Tested::new(space.default(), 0);
        let mut other = Tested::new(Parametrization([("size".to_owned(), 1.into())].into()), 1);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for ((start, log, is_default), ordinal) in self.runs(runs, &mut rng).iter().zip(0..) {
            let run = RecentRun::new(ordinal, 100.0 * log.exp()).started_at(*start as i64);
            let tested = if *is_default {
                &mut default
            } else {
                &mut other
            };
            tested.record_run(run)?;
        }
        Ok(History {
            tested: vec![default, other],
            ..History::default()
        })
    }

    /// The studies with a finding after `runs` runs, and those among them whose works take turns.
    pub(crate) fn found(&self, runs: usize, studies: u64) -> Result<(u64, u64), Failure> {
        let space: Space = serde_json::from_str(
            r#"{"parameters": [{"name": "size", "kind": "integer", "min": 0, "max": 9, "default": 0}]}"#,
        )?;
        let settings = Settings::default();
        let (mut found, mut in_turn) = (0, 0);
        for seed in 0..studies {
            if let Some(mixture) = mixture(&space, &self.history(&space, runs, seed)?, &settings) {
                found += 1;
                in_turn += u64::from(mixture.in_turn);
            }
        }
        Ok((found, in_turn))
    }
}

struct Busy {
    is_busy: bool,
    until: f64,
    once: Option<(f64, f64)>,
    means: [f64; 2],
}

impl Busy {
    fn new(what: What, span: f64, rng: &mut ChaCha8Rng) -> Self {
        let once = match what {
            What::Once(hours, _) => {
                let from = rng.random::<f64>() * (span - hours).max(0.0);
                Some((from, from + hours))
            }
            _ => None,
        };
        let hours = if let What::Episodes(hours, _) = what {
            hours
        } else {
            f64::INFINITY
        };
        let means = [hours * (1.0 - BUSY_SHARE) / BUSY_SHARE, hours];
        let is_busy = rng.random::<f64>() < BUSY_SHARE;
        Busy {
            is_busy,
            until: means[usize::from(is_busy)] * exponential(rng),
            once,
            means,
        }
    }

    fn at(&mut self, hour: f64, rng: &mut ChaCha8Rng) -> bool {
        if let Some((from, to)) = self.once {
            return (from..to).contains(&hour);
        }
        while self.until < hour {
            self.is_busy = !self.is_busy;
            self.until += self.means[usize::from(self.is_busy)] * exponential(rng);
        }
        self.is_busy
    }
}

fn exponential(rng: &mut ChaCha8Rng) -> f64 {
    -(1.0 - rng.random::<f64>()).ln()
}

/// A standard normal number (Box and Muller 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
