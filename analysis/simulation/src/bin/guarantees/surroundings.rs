//! Noise, and what is around runs: for this example, its tests and time_to_proof.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// About as many runs have a life's control runs.
pub(crate) const RUNS: usize = 560;
/// Hours between starts.
pub(crate) const GAP: f64 = 2.0;

/// Influences on all runs of a time, of the default and tuned alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    Nothing,
    /// Everything slows down linearly, at the end of a life by this share.
    Drift(f64),
    /// The machine is busy for 10 h of 110 h on average; runs then take twice as long.
    Episodes,
    /// An autoregression with coefficient 0.9, as large as the noise.
    Memory,
    /// 15 % more and less in the course of a week.
    Weekly,
    /// A workflow of so many steps, in turn; one of them takes longer by this share.
    Steps(u32, f64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) name: &'static str,
    /// The standard deviation of log elapsed, without outliers.
    pub(crate) noise: f64,
    /// The same for the default.
    pub(crate) default_noise: f64,
    /// True if one run in 16 takes 1.3 to 1.6 times as long.
    pub(crate) has_outliers: bool,
    /// True if noise is Student's t with 3 degrees of freedom, not normal.
    pub(crate) is_heavy: bool,
    pub(crate) what: What,
}

impl World {
    pub(crate) const fn new(name: &'static str, noise: f64, what: What) -> Self {
        World {
            name,
            noise,
            default_noise: noise,
            has_outliers: true,
            is_heavy: false,
            what,
        }
    }

    const fn without_outliers(self) -> Self {
        World {
            has_outliers: false,
            ..self
        }
    }

    pub(crate) const fn of_the_default(self, default_noise: f64) -> Self {
        World {
            default_noise,
            ..self
        }
    }

    const fn heavy(self) -> Self {
        World {
            is_heavy: true,
            ..self
        }
    }

    pub(crate) fn noise(&self, is_default: bool, rng: &mut ChaCha8Rng) -> f64 {
        let scale = if is_default {
            self.default_noise
        } else {
            self.noise
        };
        let mut log = scale * normal(rng);
        if self.is_heavy {
            // Scaled to the same standard deviation: Student's t with 3 degrees has sqrt(3).
            log /= (0..3).map(|_| normal(rng).powi(2)).sum::<f64>().sqrt();
        }
        if self.has_outliers && rng.random::<f64>() < 1.0 / 16.0 {
            log += rng.random_range(1.3_f64..1.6).ln();
        }
        log
    }
}

pub(crate) const WORLDS: [World; 18] = [
    World::new("noise 5 %", 0.05, What::Nothing),
    World::new("noise 10 %", 0.10, What::Nothing),
    World::new("noise 17 %", 0.17, What::Nothing),
    World::new("noise 30 %", 0.30, What::Nothing),
    World::new("noise 5 %, drift 10 %", 0.05, What::Drift(0.1)),
    World::new("noise 10 %, drift 10 %", 0.10, What::Drift(0.1)),
    World::new("noise 17 %, drift 10 %", 0.17, What::Drift(0.1)),
    World::new("noise 30 %, drift 10 %", 0.30, What::Drift(0.1)),
    World::new("noise 17 %, no outliers", 0.17, What::Nothing).without_outliers(),
    World::new("noise 10 %, of the default 20 %", 0.10, What::Nothing).of_the_default(0.20),
    World::new("noise 20 %, of the default 10 %", 0.20, What::Nothing).of_the_default(0.10),
    World::new("noise 17 %, heavy tails", 0.17, What::Nothing).heavy(),
    World::new("noise 17 %, episodes", 0.17, What::Episodes),
    World::new("noise 17 %, with memory", 0.17, What::Memory),
    World::new("noise 17 %, weekly", 0.17, What::Weekly),
    World::new("noise 17 %, 2 steps, one +10 %", 0.17, What::Steps(2, 0.1)),
    World::new("noise 17 %, 5 steps, one +30 %", 0.17, What::Steps(5, 0.3)),
    World::new("noise 17 %, 7 steps, one +30 %", 0.17, What::Steps(7, 0.3)),
];

pub(crate) struct Surroundings {
    what: What,
    noise: f64,
    run: u32,
    memory: f64,
    is_busy: bool,
    /// The hour at which `is_busy` changes.
    until: f64,
    /// The place in the period at which the study begins, from 0 to 1.
    phase: f64,
}

impl Surroundings {
    pub(crate) fn new(world: &World, rng: &mut ChaCha8Rng) -> Self {
        Surroundings {
            what: world.what,
            noise: world.noise,
            run: 0,
            memory: normal(rng),
            is_busy: rng.random::<f64>() >= 10.0 / 110.0,
            until: 0.0,
            phase: rng.random(),
        }
    }

    /// The influence on the next run's log elapsed.
    pub(crate) fn next(&mut self, rng: &mut ChaCha8Rng) -> f64 {
        let hour = GAP * f64::from(self.run);
        let share = f64::from(self.run) / RUNS as f64;
        self.run += 1;
        match self.what {
            What::Nothing => 0.0,
            What::Drift(most) => (most * share).ln_1p(),
            What::Episodes => {
                while self.until <= hour {
                    self.is_busy = !self.is_busy;
                    let mean = if self.is_busy { 10.0 } else { 100.0 };
                    self.until -= mean * (1.0 - rng.random::<f64>()).ln();
                }
                if self.is_busy { 2.0_f64.ln() } else { 0.0 }
            }
            What::Memory => {
                self.memory = 0.9 * self.memory + (1.0 - 0.81_f64).sqrt() * normal(rng);
                self.noise * self.memory
            }
            What::Weekly => 0.15 * (std::f64::consts::TAU * (hour / 168.0 + self.phase)).sin(),
            What::Steps(steps, slower) => {
                let place = (f64::from(self.run) + self.phase * f64::from(steps)) as u32 % steps;
                if place == 0 { slower.ln_1p() } else { 0.0 }
            }
        }
    }
}

/// A standard normal number (Box and Muller 1958).
pub(crate) fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
