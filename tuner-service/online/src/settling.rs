//! The project's own policy: it remembers the bandwidth with each setting, moves to settings that
//! are surely better, and rests when no neighbour is better.
//!
//! A blind walk pays for every second move and never ends. Here a setting is tried beside the best
//! known one and compared with it, as far as noise allows; noise is measured where a setting is
//! seen twice. Only a setting that looked better is tried again, and it is adopted once it is
//! better by a standard error: a mistake is noticed soon, because the best setting is the one in
//! force. A setting that brings less than the default is left after one period, and settings beyond
//! a worse one are not tried. If a known setting suddenly brings another bandwidth, twice, the work
//! has changed: if it was met before, its best setting is used at once, otherwise it is learnt
//! anew, from the default. At rest a neighbour is tried now and then, because works may look alike
//! at one setting, and more rarely each time that it was in vain.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Action, Direction, Lever, Observation, Policy, Reason};

/// The smallest gain that is worth a move, as a logarithm.
const WORTH: f64 = 0.02;
/// A setting this much below the default is left at once.
const HARM: f64 = 0.05;
/// The number of standard errors for a sure result.
const SURE: f64 = 2.0;
/// The most periods over which a setting is compared.
const PERIODS: f64 = 4.0;
/// The number of standard deviations from which on the work counts as another one. The difference
/// must also be at least the following one.
const SURPRISE: f64 = 2.5;
const SURPRISE_LEAST: f64 = 0.1;
/// The distances and directions of neighbours, in the order in which they are tried. If nothing is
/// known, two steps up tell more than one and cost little, because defaults are made for small
/// clients. Downwards, the nearer one tells whether the farther one is worth trying. The best
/// setting of one work is near the best of another.
const FAR_FIRST: [(usize, Direction); 4] = [
    (2, Direction::Up),
    (1, Direction::Down),
    (1, Direction::Up),
    (2, Direction::Down),
];
const NEAR_FIRST: [(usize, Direction); 4] = [
    (1, Direction::Up),
    (1, Direction::Down),
    (2, Direction::Up),
    (2, Direction::Down),
];
/// The most periods that the memory of a setting counts as, so that older ones fade.
const MEMORY: f64 = 8.0;
/// The number of periods at rest after which a neighbour that is not surely worse is tried: another
/// work may bring as much at the best known setting, and more elsewhere. Each vain trial doubles
/// the rest, up to the following limit.
const REST: usize = 6;
const REST_MOST: usize = 24;
/// The number of works that are remembered.
const WORKS: usize = 8;
/// The number of periods that the noise's prior is worth; its standard deviation follows.
const PRIOR_PERIODS: f64 = 4.0;
const PRIOR_NOISE: f64 = 0.05;
/// The number of latest periods over which the noise is averaged.
const NOISE_PERIODS: f64 = 40.0;

/// The state between two periods.
#[derive(Clone, Debug)]
pub struct Settling {
    levers: Vec<Lever>,
    default: Vec<u64>,
    noise: Noise,
    /// The current work first, then the one before, and so on.
    works: Vec<Work>,
    /// Set if the last period brought another bandwidth than expected: true for more, false for
    /// less.
    surprised: Option<bool>,
}

/// The known settings of one kind of work. Numbers are logarithms of bandwidth.
#[derive(Clone, Debug)]
struct Work {
    known: BTreeMap<Vec<u64>, Known>,
    best: Vec<u64>,
    /// Settings that have been compared with the best.
    decided: BTreeSet<Vec<u64>>,
    /// The order in which neighbours are tried.
    order: [(usize, Direction); 4],
    /// The move that found the best.
    found_by: Option<(usize, Direction)>,
    /// The number of periods at rest. The following are the number until a neighbour is tried, and
    /// the number of trials.
    rested: usize,
    rest: usize,
    looks: usize,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    periods: f64,
    mean: f64,
}

#[derive(Clone, Copy, Debug)]
struct Noise {
    periods: f64,
    squares: f64,
}

impl Settling {
    /// A policy for a job whose values without tuning are `default`: no setting may do worse than
    /// these.
    pub fn new(levers: Vec<Lever>, default: Vec<u64>) -> Self {
        Settling {
            works: vec![Work::new(&default, FAR_FIRST)],
            levers,
            default,
            noise: Noise {
                periods: PRIOR_PERIODS,
                squares: PRIOR_PERIODS * PRIOR_NOISE * PRIOR_NOISE,
            },
            surprised: None,
        }
    }

    /// Returns true or false if a known setting brought another bandwidth twice, or did not. None
    /// the first time, because it may be an accident.
    fn is_other_work(&mut self, log: f64, set: &[u64]) -> Option<bool> {
        let known = self.works.first().and_then(|work| work.known.get(set));
        let surprise = known.filter(|known| self.noise.is_surprise(log, known));
        let surprise = surprise.map(|known| log > known.mean);
        let is_second = surprise.is_some() && surprise == self.surprised;
        self.surprised = surprise.filter(|_| !is_second);
        self.surprised.is_none().then_some(is_second)
    }

    /// Brings the work to the front that this period belongs to, and returns its best setting. None
    /// if no other known work fits at all settings that both were seen with.
    fn recall(&mut self, log: f64, set: &[u64]) -> Option<Vec<u64>> {
        let new = self.works.first()?;
        let fits = |work: &Work, set: &[u64], log: f64| {
            let known = work.known.get(set);
            known.is_none_or(|known| !self.noise.is_surprise(log, known))
        };
        let others = self.works.iter().enumerate().skip(1);
        let likely = others.filter_map(|(place, work)| {
            let off = (log - work.known.get(set)?.mean).abs();
            let mut seen = new
                .known
                .iter()
                .map(|(set, known)| (set.as_slice(), known.mean));
            let fits = seen.all(|(set, log)| fits(work, set, log)) && fits(work, set, log);
            fits.then_some((place, off))
        });
        let (place, _) = likely.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        self.works[..=place].rotate_right(1);
        let work = self.works.first_mut()?;
        // It may only look like the known one.
        work.rest = REST;
        work.rested = REST;
        Some(work.best.clone())
    }

    /// The next action, after the last period was recorded.
    fn next(&mut self, set: &[u64]) -> Option<Action> {
        let (noise, default) = (self.noise, &self.default);
        let work = self.works.first_mut()?;
        let tried = *work.known.get(set)?;
        let (Some(floor), Some(best)) = (work.known.get(default), work.known.get(&work.best))
        else {
            return to(set, default, Reason::OtherWork);
        };
        let floor = floor.mean - HARM;
        if set == work.best && tried.mean < floor {
            // It was better once, or was taken for that of another work.
            *work = Work::new(default, FAR_FIRST);
            return to(set, default, Reason::OtherWork);
        }
        if set != work.best {
            let gain = tried.mean - best.mean;
            if gain > noise.error(&tried, best).max(WORTH) {
                work.found_by = between(&work.best, set);
                let former = std::mem::replace(&mut work.best, set.to_vec());
                work.decided.insert(former);
                work.rest = REST;
            } else if gain < WORTH || tried.periods >= PERIODS || tried.mean < floor {
                work.decided.insert(set.to_vec());
            }
            if tried.mean < floor {
                return to(set, &work.best, Reason::Back);
            }
        }
        match work.undecided(&self.levers, noise) {
            Some(next) => to(set, &next, Reason::Try),
            None if set == work.best => {
                let next = work.look(&self.levers, noise)?;
                to(set, &next, Reason::Try)
            }
            None => to(set, &work.best, Reason::Back),
        }
    }
}

impl Policy for Settling {
    fn act(&mut self, seen: Option<&Observation>, set: &[u64]) -> Option<Action> {
        let seen = seen.filter(|seen| seen.is_sound() && seen.bandwidth > 0.0)?;
        let log = seen.bandwidth.ln();
        if self.is_other_work(log, set)? {
            self.works.insert(0, Work::new(set, NEAR_FIRST));
            self.works.truncate(WORKS);
        }
        // The bandwidth of the default tells most works apart. At other settings an equal bandwidth
        // would not show its distance from the default's.
        let is_new = !self.works.first()?.known.contains_key(&self.default);
        if set == self.default
            && is_new
            && let Some(best) = self.recall(log, set)
        {
            self.works.remove(1);
            return to(set, &best, Reason::KnownWork);
        }
        let noise = &mut self.noise;
        let known = &mut self.works.first_mut()?.known;
        match known.get_mut(set) {
            Some(known) => noise.add(known.add(log)),
            None => {
                let mean = log;
                let periods = 1.0;
                known.insert(set.to_vec(), Known { periods, mean });
            }
        }
        self.next(set)
    }

    fn narrow(&mut self, lever: usize, bounds: Lever) {
        if let Some(own) = self.levers.get_mut(lever) {
            *own = bounds;
        }
        let is_out = |work: &Work| {
            work.best
                .get(lever)
                .is_some_and(|best| !bounds.takes(*best))
        };
        if self.works.iter().any(is_out) {
            // The knowledge comes from other bounds.
            self.works = vec![Work::new(&self.default, FAR_FIRST)];
        }
    }
}

impl Work {
    fn new(best: &[u64], order: [(usize, Direction); 4]) -> Self {
        Work {
            order,
            known: BTreeMap::new(),
            best: best.to_vec(),
            decided: BTreeSet::new(),
            found_by: None,
            rested: 0,
            rest: REST,
            looks: 0,
        }
    }

    /// A neighbour to try again, each in turn, once the policy has rested for a while.
    fn look(&mut self, levers: &[Lever], noise: Noise) -> Option<Vec<u64>> {
        self.rested += 1;
        if self.rested <= self.rest {
            return None;
        }
        self.rested = 0;
        self.rest = (2 * self.rest).min(REST_MOST);
        let ways = [Direction::Up, Direction::Down].into_iter();
        let near = ways.flat_map(|way| (0..levers.len()).map(move |lever| (lever, way)));
        let near = near.filter_map(|(lever, way)| self.neighbour(levers, lever, 1, way));
        let open = near.filter(|values| *values != self.best && !self.is_worse(values, noise));
        let open: Vec<Vec<u64>> = open.collect();
        let next = open.get(self.looks % open.len().max(1)).cloned();
        self.looks += 1;
        next
    }

    /// A neighbour of the best that is not decided: an unknown one before a known one, and first in
    /// the direction that found the best.
    fn undecided(&self, levers: &[Lever], noise: Noise) -> Option<Vec<u64>> {
        let on = self.found_by.into_iter();
        let on = on.flat_map(|(lever, way)| [2, 1].map(|steps| (lever, steps, way)));
        let all = self
            .order
            .iter()
            .flat_map(|(steps, way)| (0..levers.len()).map(|lever| (lever, *steps, *way)));
        let neighbours = on.chain(all).filter_map(|(lever, steps, way)| {
            let values = self.neighbour(levers, lever, steps, way)?;
            let is_open = values != self.best && !self.decided.contains(&values);
            // Bandwidth rises to one best setting and falls from there, so nothing beyond a worse
            // setting is better.
            let nearer = (1..steps).filter_map(|steps| self.neighbour(levers, lever, steps, way));
            let is_beyond = nearer.into_iter().any(|near| self.is_worse(&near, noise));
            (is_open && !is_beyond).then_some(values)
        });
        let seen = |values: &Vec<u64>| self.known.get(values).map_or(0.0, |known| known.periods);
        neighbours.min_by(|one, other| seen(one).total_cmp(&seen(other)))
    }

    fn neighbour(
        &self,
        levers: &[Lever],
        lever: usize,
        steps: usize,
        way: Direction,
    ) -> Option<Vec<u64>> {
        let mut values = self.best.clone();
        let (value, bounds) = (values.get_mut(lever)?, levers.get(lever)?);
        *value = (0..steps).fold(*value, |value, _| bounds.moved(value, way));
        Some(values)
    }

    /// Returns true if a setting surely brings less than the best.
    fn is_worse(&self, values: &[u64], noise: Noise) -> bool {
        let both = self.known.get(values).zip(self.known.get(&self.best));
        both.is_some_and(|(known, best)| best.mean - known.mean > SURE * noise.error(known, best))
    }
}

impl Known {
    /// Adds a period. Returns the square of its deviation, scaled to one standard deviation.
    fn add(&mut self, log: f64) -> f64 {
        let off = log - self.mean;
        let square = off * off * self.periods / (self.periods + 1.0);
        self.periods = (self.periods + 1.0).min(MEMORY);
        self.mean += off / self.periods;
        square
    }
}

impl Noise {
    fn add(&mut self, square: f64) {
        let keeps = (1.0 - 1.0 / NOISE_PERIODS).min(1.0);
        self.periods = self.periods * keeps + 1.0;
        self.squares = self.squares * keeps + square;
    }

    fn deviation(self) -> f64 {
        (self.squares / self.periods).sqrt()
    }

    /// The standard error of a difference.
    fn error(self, one: &Known, other: &Known) -> f64 {
        self.deviation() * (1.0 / one.periods + 1.0 / other.periods).sqrt()
    }

    fn is_surprise(self, log: f64, known: &Known) -> bool {
        let deviation = self.deviation() * (1.0 + 1.0 / known.periods).sqrt();
        (log - known.mean).abs() > (SURPRISE * deviation).max(SURPRISE_LEAST)
    }
}

/// The lever that differs between two settings, and the direction of its move.
fn between(from: &[u64], to: &[u64]) -> Option<(usize, Direction)> {
    let mut differing = from
        .iter()
        .zip(to)
        .enumerate()
        .filter(|(_, (from, to))| from != to);
    let (lever, (from, to)) = differing.next()?;
    Some((
        lever,
        if to > from {
            Direction::Up
        } else {
            Direction::Down
        },
    ))
}

/// The action that sets these values; none if they are set already.
fn to(set: &[u64], values: &[u64], reason: Reason) -> Option<Action> {
    (set != values).then(|| Action {
        values: values.to_vec(),
        reason,
    })
}

#[cfg(test)]
mod tests;
