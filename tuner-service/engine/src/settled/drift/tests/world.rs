//! Runs of a settled epoch that may change half way, for the tests and for what `analysis/simulation` measures.

#![allow(
    clippy::disallowed_methods,
    reason = "a simulated world may differ in its last bit"
)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Drift, DriftSettings, SettledRun, drift};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Alike,
    Tuned,
    /// Control runs alone: the default.
    Default,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    /// The standard deviation of log elapsed. One run in sixteen takes 45 % longer.
    pub(crate) noise: f64,
    /// The first-order autocorrelation of the noise, from 0 to below 1.
    pub(crate) memory: f64,
    /// A change: its kind, its factor, and the number of runs before it.
    pub(crate) change: Option<(What, f64, usize)>,
}

impl World {
    /// The runs of a settled epoch: whether each is a control run (100 s; tuned runs take 70 s),
    /// and its seconds. One in ten of the first hundred is a control run, then one in twenty.
    pub(crate) fn runs(&self, runs: usize, seed: u64) -> Vec<(bool, f64)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut drift = 0.0;
        (0..runs)
            .map(|run| {
                let every = if run < 100 { 10 } else { 20 };
                let control = run % every == 0;
                let fresh = (1.0 - self.memory.powi(2)).sqrt() * normal(&mut rng);
                drift = self.memory * drift + fresh;
                let slow = rng.random::<f64>() < 1.0 / 16.0;
                let factor = match self.change {
                    Some((what, factor, from)) if run >= from => match what {
                        What::Alike => factor,
                        What::Tuned if !control => factor,
                        What::Default if control => factor,
                        What::Tuned | What::Default => 1.0,
                    },
                    _ => 1.0,
                };
                let usual = if control { 100.0 } else { 70.0 } * factor;
                let seconds = usual * (self.noise * drift).exp();
                (control, if slow { 1.45 * seconds } else { seconds })
            })
            .collect()
    }
}

pub(crate) fn settled(runs: &[(bool, f64)]) -> Vec<SettledRun> {
    let numbered = runs.iter().zip(0_i64..);
    numbered
        .map(|((control, elapsed), ordinal)| SettledRun {
            ordinal,
            control: *control,
            elapsed: *elapsed,
        })
        .collect()
}

/// The first change found by looking after each run since `from`, and after which run.
pub(crate) fn found(world: World, from: usize, runs: usize, seed: u64) -> Option<(usize, Drift)> {
    let all = settled(&world.runs(runs, seed));
    let settings = DriftSettings::default();
    (from..=runs).find_map(|count| Some((count, drift(&all[..count], &settings)?)))
}

/// A standard normal number (Box and Muller 1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
