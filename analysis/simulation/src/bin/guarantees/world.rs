//! Studies with a known truth, for the example and the tests.

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{Phase, Role, Settings, control_chance};
use io_autotune_model::Gain;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "surroundings.rs"]
mod surroundings;

use surroundings::{GAP, Surroundings};
pub(crate) use surroundings::{RUNS, WORLDS, What, World, normal};

/// The search's parametrizations, and the runs of each.
const CANDIDATES: usize = 13;
const CANDIDATE_RUNS: usize = 3;
const BASELINE_RUNS: usize = 4;
/// The gain above which the search's runs alone would claim one.
const LUCKY: f64 = 0.08;

pub(crate) struct Study<'a> {
    world: &'a World,
    settings: Settings,
    rng: ChaCha8Rng,
    surroundings: Surroundings,
    ordinal: i64,
    /// Seconds of the default.
    seconds: f64,
    /// The truth: log of the default's elapsed over the chosen parametrization's.
    pub(crate) log_ratio: f64,
    pub(crate) evidence: Evidence,
    /// The gain by the evidence; while the search goes on, the one of before.
    pub(crate) gain: Gain,
    /// Log elapsed of the runs since the choice, ascending.
    pub(crate) control: Vec<f64>,
    pub(crate) tuned: Vec<f64>,
    /// Seconds of the tuned runs, had they run with the default and without noise.
    pub(crate) default_seconds: f64,
}

impl<'a> Study<'a> {
    pub(crate) fn new(world: &'a World, log_ratio: f64, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Study {
            world,
            settings: Settings::default(),
            surroundings: Surroundings::new(world, &mut rng),
            rng,
            ordinal: 0,
            seconds: 100.0,
            log_ratio,
            gain: Evidence::default().gain(1),
            evidence: Evidence::default(),
            control: Vec::new(),
            tuned: Vec::new(),
            default_seconds: 0.0,
        }
    }

    /// The same with another time of the default.
    pub(crate) fn of(self, seconds: f64) -> Self {
        Study { seconds, ..self }
    }

    /// The same with control runs at one rate from the beginning.
    pub(crate) fn evenly(mut self) -> Self {
        self.settings.controls_at_first = 0;
        self.settings.controls_promising = 0;
        self
    }

    /// Makes and records a run; returns its log elapsed. `log_ratio` is none for the default.
    fn run(
        &mut self,
        phase: Phase,
        role: Role,
        control_chance: Option<f64>,
        log_ratio: Option<f64>,
    ) -> f64 {
        let level = self.surroundings.next(&mut self.rng);
        let noise = self.world.noise(log_ratio.is_none(), &mut self.rng);
        let log = level + noise - log_ratio.unwrap_or(0.0);
        self.ordinal += 1;
        if role == Role::Settled {
            self.default_seconds += self.seconds * level.exp();
        }
        let key = if log_ratio.is_none() {
            "default"
        } else {
            "chosen"
        };
        self.evidence.record(&JudgedRun {
            ordinal: self.ordinal,
            started: (self.ordinal as f64 * GAP * 3.6e9) as i64,
            slowness: 0.0,
            phase,
            role,
            control_chance,
            given: key,
            default: "default",
            counts: Some(Counts {
                key,
                elapsed: self.seconds * log.exp(),
                beside: None,
                cut_short: false,
            }),
            nodes: 1,
        });
        log
    }

    /// Chooses the parametrization with the lowest mean; `effect` draws the truths. Returns whether
    /// the search's runs alone would claim a gain.
    pub(crate) fn search(&mut self, effect: impl Fn(&mut ChaCha8Rng) -> f64) -> bool {
        let baseline = (0..BASELINE_RUNS)
            .map(|_| self.run(Phase::Baseline, Role::Baseline, None, None).exp())
            .sum::<f64>()
            / BASELINE_RUNS as f64;
        let mut lowest = f64::INFINITY;
        for _ in 0..CANDIDATES {
            let log_ratio = effect(&mut self.rng);
            let mean = (0..CANDIDATE_RUNS)
                .map(|_| {
                    self.run(Phase::Search, Role::Search, None, Some(log_ratio))
                        .exp()
                })
                .sum::<f64>()
                / CANDIDATE_RUNS as f64;
            if mean < lowest {
                (lowest, self.log_ratio) = (mean, log_ratio);
            }
        }
        self.gain = self.evidence.gain(1);
        lowest < (1.0 - LUCKY) * baseline
    }

    /// Continues for so many runs, as the engine draws control runs among them. `look` gets their
    /// number after each.
    pub(crate) fn settled(&mut self, runs: usize, mut look: impl FnMut(&Study<'_>, usize)) {
        for number in 1..=runs {
            let outlook = self.gain.outlook();
            let chance = control_chance(&self.settings, self.control.len() as u64, outlook, false);
            let is_control = self.rng.random::<f64>() < chance;
            let (role, log_ratio) = if is_control {
                (Role::Control, None)
            } else {
                (Role::Settled, Some(self.log_ratio))
            };
            let log = self.run(Phase::Settled, role, Some(chance), log_ratio);
            self.gain = self.evidence.gain(1);
            let logs = if is_control {
                &mut self.control
            } else {
                &mut self.tuned
            };
            logs.insert(logs.partition_point(|one| *one < log), log);
            look(self, number);
        }
    }
}
