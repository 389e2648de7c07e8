//! A study's life, from the first submission on: asked, judged and assessed as the service does it.

use std::collections::VecDeque;

use io_autotune_engine::evidence::Evidence;
use io_autotune_engine::{
    Epoch, History, Parametrization, Pending, Phase, Role, Settings, SurrogateCache, Tally, Tested,
    mixture,
};
use io_autotune_model::GainVerdict;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::application::Application;
use crate::engine;
use crate::surroundings::{GAP, Surroundings, World, normal};

/// The outcome of a life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Runs that were started before the first that is compared: of the settled phase, or of a proof.
    pub(crate) settled: Option<u32>,
    /// Runs that had ended at the first claim of a gain.
    pub(crate) faster: Option<u32>,
    /// The same of a loss.
    pub(crate) slower: Option<u32>,
    /// True if the interval held, whenever there was one, the truth of the choice at that time.
    pub(crate) holds_choice: bool,
    /// The same of the mean of the tuned runs.
    pub(crate) holds_tuned: bool,
    /// The gain of the last choice, without noise.
    pub(crate) found: f64,
    /// The time that the runs took beyond the last choice, as a share of what that takes.
    pub(crate) regret: f64,
    /// The cost of all slower runs than the default, in runs of the default.
    pub(crate) harm: f64,
}

/// The parametrization that a run is given, and why.
pub(crate) struct Given {
    pub(crate) phase: Phase,
    pub(crate) role: Role,
    pub(crate) parametrization: Parametrization,
    /// With what probability it was to be a control run, where that was drawn.
    pub(crate) control_chance: Option<f64>,
}

struct Run {
    ordinal: i64,
    started: f64,
    /// How other runs fared before.
    slowness: f64,
    ends: f64,
    elapsed: f64,
    given: Given,
}

struct Life<'a> {
    application: &'a dyn Application,
    settings: &'a Settings,
    history: History,
    in_flight: VecDeque<Run>,
    /// Judged runs in the order of their starts.
    judged: Vec<Run>,
    evidence: Evidence,
    known: engine::Known,
    prior: Option<&'a engine::Prior>,
    ended: u32,
    /// Log gains of the tuned runs that ended, before and after the search had: their sum, number and
    /// the last.
    tuned: [(f64, u32, f64); 2],
    outcome: Outcome,
}

/// The study that lives.
pub(crate) struct Study<'a> {
    pub(crate) application: &'a dyn Application,
    pub(crate) settings: &'a Settings,
    /// The knowledge that it begins from.
    pub(crate) prior: Option<&'a engine::Prior>,
    /// The number of runs in flight.
    pub(crate) at_once: usize,
    /// Noise that all runs of an hour share.
    pub(crate) hourly: f64,
    /// True if the site's other runs show how busy it is.
    pub(crate) others: bool,
    /// The runs of its life.
    pub(crate) horizon: u32,
}

/// A study's life.
pub(crate) fn live(study: &Study<'_>, world: &World, seed: u64) -> Outcome {
    let Study {
        application,
        settings,
        prior,
        at_once,
        hourly,
        others,
        horizon,
    } = *study;
    let mut life = Life {
        application,
        settings,
        history: History::default(),
        in_flight: VecDeque::new(),
        judged: Vec::new(),
        evidence: Evidence::default(),
        known: engine::Known::default(),
        prior,
        ended: 0,
        tuned: [(0.0, 0, 0.0); 2],
        outcome: Outcome {
            holds_choice: true,
            holds_tuned: true,
            ..Outcome::default()
        },
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut surroundings = Surroundings::new(world, &mut rng);
    let cache = SurrogateCache::default();
    for number in 0..horizon {
        let hour = GAP * f64::from(number);
        life.end_before(hour, at_once);
        let given = life.suggest(&cache, seed, rng.random());
        if given.phase == Phase::Settled || given.control_chance.is_some() {
            life.outcome.settled.get_or_insert(number);
        }
        let is_default = given.parametrization == application.space().default();
        let mut surrounding = surroundings.next(&mut rng);
        if hourly > 0.0 {
            surrounding += hourly * normal(&mut rng);
        }
        let level = surrounding + world.noise(is_default, &mut rng);
        let slowness = if others {
            slowness(surrounding, world.noise, &mut rng)
        } else {
            0.0
        };
        let elapsed = application.seconds(&given.parametrization) * level.exp();
        // As long as it takes to have so many in flight, more or less: slow ones are stragglers.
        let hours = GAP * (at_once as f64 - 0.5) * elapsed
            / application.seconds(&application.space().default());
        life.in_flight.push_back(Run {
            ordinal: i64::from(number) + 1,
            started: hour,
            slowness,
            ends: hour + hours,
            elapsed,
            given,
        });
    }
    life.end_before(f64::INFINITY, at_once);
    life.conclude();
    life.outcome
}

impl Life<'_> {
    fn suggest(&self, cache: &SurrogateCache, seed: u64, draw: f64) -> Given {
        let space = self.application.space();
        let pending: Vec<Pending> = self
            .in_flight
            .iter()
            .map(|run| Pending {
                parametrization: run.given.parametrization.clone(),
                phase: run.given.phase,
                role: run.given.role,
                count: 1,
            })
            .collect();
        let epoch = Epoch::new(space, self.settings, seed).with_cache(cache);
        let mixed = mixture(space, &self.history, self.settings);
        let known = (self.prior, self.known);
        engine::suggest(epoch, known, draw, mixed, &self.history, &pending)
    }

    /// Ends what ends before this hour, in that order; one at a time ends before the next starts.
    fn end_before(&mut self, hour: f64, at_once: usize) {
        loop {
            let next = self
                .in_flight
                .iter()
                .enumerate()
                .filter(|(_, run)| at_once == 1 || run.ends < hour)
                .min_by(|(_, a), (_, b)| a.ends.total_cmp(&b.ends))
                .map(|(place, _)| place);
            let Some(run) = next.and_then(|place| self.in_flight.remove(place)) else {
                return;
            };
            self.judge(run);
        }
    }

    fn judge(&mut self, run: Run) {
        self.ended += 1;
        let given = &run.given.parametrization;
        let known = self
            .history
            .tested
            .iter()
            .position(|tested| tested.parametrization == *given);
        let place = known.unwrap_or_else(|| {
            let tested = Tested::new(given.clone(), run.ordinal);
            self.history.tested.push(tested);
            self.history.tested.len() - 1
        });
        let recent = engine::recent(run.ordinal, run.elapsed, (run.started, run.slowness));
        // Log-normal times are finite and positive.
        if self.history.tested[place].record_run(recent).is_ok() {
            self.history.tally += Tally::of(run.given.phase, run.given.role);
            if let Some(measures) = self.application.measures() {
                self.history.tested[place].record_measures(measures);
            }
        }
        if run.given.role == Role::Settled {
            let log_gain = self.application.log_gain(given);
            let tuned = &mut self.tuned[usize::from(run.given.phase == Phase::Settled)];
            *tuned = (tuned.0 + log_gain, tuned.1 + 1, log_gain);
        }
        let at = self.judged.partition_point(|one| one.ordinal < run.ordinal);
        self.judged.insert(at, run);
        // In the order of starts, up to the first that is still in flight.
        let flying = self.in_flight.iter().map(|run| run.ordinal).min();
        let flying = flying.unwrap_or(i64::MAX);
        let through = self.evidence.through;
        let next = |run: &&Run| (through + 1..flying).contains(&run.ordinal);
        for run in self.judged.iter().filter(next) {
            record(&mut self.evidence, run, self.application);
        }
        if self.outcome.settled.is_some() {
            self.look();
        }
    }

    fn look(&mut self) {
        let gain = self.evidence.gain(1);
        self.known = engine::known(&gain);
        match gain.verdict {
            GainVerdict::Faster => {
                self.outcome.faster.get_or_insert(self.ended);
            }
            GainVerdict::Slower => {
                self.outcome.slower.get_or_insert(self.ended);
            }
            _ => {}
        }
        let intervals = engine::intervals(&self.evidence, &gain);
        for (interval, (sum, runs, last)) in intervals.into_iter().zip(self.tuned) {
            let Some((low, high)) = interval.filter(|_| runs > 0) else {
                continue;
            };
            let holds = |log_gain: f64| (low..=high).contains(&-(-log_gain).exp_m1());
            self.outcome.holds_choice &= holds(last);
            self.outcome.holds_tuned &= holds(sum / f64::from(runs));
        }
    }

    /// Returns the parametrization of the last tuned run.
    fn choice(&self) -> Option<&Parametrization> {
        let mut judged = self.judged.iter().rev();
        let tuned = judged.find(|run| run.given.role == Role::Settled)?;
        Some(&tuned.given.parametrization)
    }

    fn conclude(&mut self) {
        let default = self.application.space().default();
        let choice = self.choice().unwrap_or(&default);
        let (last, found) = (
            self.application.seconds(choice),
            -(-self.application.log_gain(choice)).exp_m1(),
        );
        let taken = self.judged.iter();
        let taken: f64 = taken
            .map(|run| self.application.seconds(&run.given.parametrization))
            .sum();
        self.outcome.found = found;
        let slower = self.judged.iter();
        let slower =
            slower.map(|run| (-self.application.log_gain(&run.given.parametrization)).exp_m1());
        self.outcome.harm = slower.map(|more| more.max(0.0)).sum();
        self.outcome.regret = taken / (last * self.judged.len() as f64) - 1.0;
    }
}

/// How other runs fared, whose noise is as large, shrunk as the store does: what may explain noise.
fn slowness(surrounding: f64, noise: f64, rng: &mut ChaCha8Rng) -> f64 {
    const RUNS: f64 = 6.0;
    let seen = surrounding + noise / RUNS.sqrt() * normal(rng);
    seen * RUNS / (RUNS + 3.0)
}

fn record(evidence: &mut Evidence, run: &Run, application: &dyn Application) {
    let given = &run.given.parametrization;
    let key = given.key();
    let default = application.space().default().key();
    let started = (run.started * 3.6e9) as i64;
    let keys = [key.as_str(), default.as_str()];
    evidence.record(&engine::judged(
        run.ordinal,
        (started, run.slowness),
        &run.given,
        keys,
        run.elapsed,
    ));
}
