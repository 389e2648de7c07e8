//! The evidence of a study's gain: which tuned and control runs are compared, and the result.
//!
//! Runs enter in the order of their starts; the order of ends would sort concurrent runs by
//! elapsed. Chosen runs (settled, best known, pinned) form *stretches* of one parametrization. A
//! control run belongs to the stretch in which it started, after the stretch's first run. A tuned
//! run joins the nearest control run of its stretch: this *block* is the unit of comparison, so
//! slow drift cancels. Stretches of one parametrization are one comparison.
//!
//! Only runs of role `settled` are ranked: they could as well have been control runs. Other chosen
//! runs (restarts, bursts) count in node-hours. State has constant size: the open block, and sums.

mod comparison;
mod curve;
mod gain;
mod ranks;
#[cfg(test)]
mod tests;

use io_autotune_model::{Effect, Gain, Phase, Role};
use serde::{Deserialize, Serialize};

use self::comparison::{Block, Spread, Sums, Timed};

/// A tuned run further from its control run, in counted runs, is not compared.
const REACH: u64 = 40;

/// A run with a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedRun<'a> {
    /// Its place in the order of starts.
    pub ordinal: i64,
    /// Its start, microseconds since 1970.
    pub started: i64,
    /// The study's phase at its start.
    pub phase: Phase,
    /// Its role in it.
    pub role: Role,
    /// None if the run does not count.
    pub counts: Option<Counts<'a>>,
    /// Its number of nodes.
    pub nodes: u32,
}

/// What a run counts for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts<'a> {
    /// The key of what was really applied.
    pub key: &'a str,
    /// Whether that is the epoch's default.
    pub is_default: bool,
    /// Seconds.
    pub elapsed: f64,
    /// Whether its time limit ended it: `elapsed` is a lower bound.
    pub cut_short: bool,
}

/// The evidence of an epoch's runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The ordinal of the last recorded run.
    pub through: i64,
    /// The comparisons of earlier epochs.
    before: u64,
    places: u64,
    choices: Vec<Choice>,
    stretch: Option<Stretch>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Choice {
    key: String,
    is_default: bool,
    spread: Spread,
    /// Its number among the study's comparisons; none before it has a block.
    number: Option<u64>,
    sums: Sums,
}

/// Consecutive chosen runs of one parametrization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stretch {
    choice: usize,
    /// The last control run with the tuned runs that no later one can take.
    block: Option<Block>,
    /// Runs that a later control run may take.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Waiting {
    place: u64,
    ranked: bool,
    run: Timed,
}

impl Evidence {
    /// The next epoch's evidence: empty, with the comparisons numbered on.
    #[must_use]
    pub fn next_epoch(&self) -> Self {
        Evidence {
            before: self.before + self.numbered(),
            ..Evidence::default()
        }
    }

    /// The same epoch's evidence, emptied.
    #[must_use]
    pub fn anew(&self) -> Self {
        Evidence {
            before: self.before,
            ..Evidence::default()
        }
    }

    fn numbered(&self) -> u64 {
        self.choices
            .iter()
            .filter(|one| one.number.is_some())
            .count() as u64
    }

    /// Records a run. Runs come in the order of their ordinals.
    pub fn record(&mut self, run: &JudgedRun<'_>) {
        self.through = run.ordinal;
        let counts = run
            .counts
            .filter(|one| one.elapsed.is_finite() && one.elapsed > 0.0);
        let Some(counts) = counts else {
            return;
        };
        self.places += 1;
        let timed = Timed {
            seconds: counts.elapsed,
            cut_short: counts.cut_short,
            nodes: f64::from(run.nodes),
        };
        if matches!(run.role, Role::Settled | Role::BestKnown | Role::Pinned) {
            self.choose(counts, run.started, run.role == Role::Settled, timed);
        } else if run.role == Role::Control && run.phase == Phase::Settled && counts.is_default {
            self.control(run.started, timed);
        }
        self.number();
    }

    /// The gain of the parametrization chosen last. `epoch` is its number in the study.
    pub fn gain(&self, epoch: i32) -> Gain {
        let Some(choice) = self.stretch.as_ref().map(|one| &self.choices[one.choice]) else {
            return gain::unknown(
                &format!("Epoch {epoch} has not chosen a parametrization yet."),
                0,
            );
        };
        if choice.is_default {
            return gain::of_default(choice.spread.runs);
        }
        self.effect(choice).as_ref().map_or_else(
            || {
                let reason =
                    "No control run was made near the runs of the chosen parametrization yet.";
                gain::unknown(reason, choice.spread.runs)
            },
            gain::of,
        )
    }

    /// The effects of all comparisons, by number. `epoch` is the epoch's number in the study.
    pub fn effects(&self, epoch: i32) -> Vec<Effect> {
        let of = |choice: &Choice| {
            Some(Effect {
                epoch,
                parametrization: choice.key.clone(),
                ..self.effect(choice)?
            })
        };
        let mut effects: Vec<Effect> = self.choices.iter().filter_map(of).collect();
        effects.sort_by_key(|effect| effect.number);
        effects
    }

    fn choose(&mut self, counts: Counts<'_>, started: i64, ranked: bool, run: Timed) {
        let known = self.choices.iter().position(|one| one.key == counts.key);
        let choice = known.unwrap_or_else(|| {
            self.choices.push(Choice {
                key: counts.key.to_owned(),
                is_default: counts.is_default,
                spread: Spread::default(),
                number: None,
                sums: Sums::default(),
            });
            self.choices.len() - 1
        });
        self.choices[choice].spread.record(started, run.nodes);
        if self.stretch.as_ref().is_none_or(|one| one.choice != choice) {
            self.close();
            self.stretch = Some(Stretch {
                choice,
                block: None,
                waiting: Vec::new(),
            });
        }
        if let Some(stretch) = &mut self.stretch
            && !counts.is_default
        {
            let place = self.places;
            stretch.waiting.push(Waiting { place, ranked, run });
            stretch.settle(|waiting| place - waiting.place >= REACH);
        }
    }

    fn control(&mut self, started: i64, control: Timed) {
        let place = self.places;
        let Some(stretch) = &mut self.stretch else {
            return;
        };
        let before = stretch.block.as_ref().map(|block| block.place);
        stretch.settle(|waiting| {
            let behind = before.map_or(u64::MAX, |before| waiting.place - before);
            behind <= place - waiting.place
        });
        let mut next = Block {
            place,
            control,
            tuned: Vec::new(),
            nodes: 0.0,
        };
        for waiting in stretch.waiting.drain(..) {
            next.take(&waiting);
        }
        let choice = stretch.choice;
        if let Some(block) = stretch.block.replace(next)
            && block.has_tuned_runs()
        {
            self.choices[choice].sums.add(&block);
        }
        let spread = &mut self.choices[choice].spread;
        spread.last = spread.last.max(started);
    }

    /// Ends the stretch: its waiting runs go to its last control run.
    fn close(&mut self) {
        let Some(mut stretch) = self.stretch.take() else {
            return;
        };
        stretch.settle(|_| true);
        if let Some(block) = stretch.block.filter(Block::has_tuned_runs) {
            self.choices[stretch.choice].sums.add(&block);
        }
    }

    fn number(&mut self) {
        let number = self.before + self.numbered() + 1;
        if let Some(stretch) = &self.stretch
            && self.choices[stretch.choice].number.is_none()
            && stretch.open().is_some()
        {
            self.choices[stretch.choice].number = Some(number);
        }
    }

    fn effect(&self, choice: &Choice) -> Option<Effect> {
        let number = choice.number?;
        let stretch = self.stretch.as_ref();
        let here = stretch.filter(|one| std::ptr::eq(&raw const self.choices[one.choice], choice));
        match here.and_then(Stretch::open) {
            None => choice.sums.effect(number, &choice.spread),
            Some(open) => {
                let mut sums = choice.sums.clone();
                sums.add(&open);
                sums.effect(number, &choice.spread)
            }
        }
    }
}

impl Stretch {
    /// Gives those waiting runs to the last control run, if it is near.
    fn settle(&mut self, is_settled: impl Fn(&Waiting) -> bool) {
        let (settled, waiting) = self.waiting.drain(..).partition(is_settled);
        self.waiting = waiting;
        let settled: Vec<Waiting> = settled;
        if let Some(block) = &mut self.block {
            for waiting in &settled {
                block.take(waiting);
            }
        }
    }

    fn open(&self) -> Option<Block> {
        let mut block = self.block.clone()?;
        for waiting in &self.waiting {
            block.take(waiting);
        }
        Some(block).filter(Block::has_tuned_runs)
    }
}

impl Block {
    fn take(&mut self, waiting: &Waiting) {
        let distance = waiting.place.abs_diff(self.place);
        if distance > REACH {
            return;
        }
        self.nodes += waiting.run.nodes;
        if waiting.ranked {
            self.tuned.push((distance, waiting.run));
        }
    }
}
