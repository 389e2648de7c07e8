//! IOPathTune (Rashid, He, Bao, Dai: "IOPathTune: Adaptive Online Parameter Tuning for Parallel File
//! System I/O Path", section "Design of IOPathTune").
//!
//! As published: each period one lever, in turn, is doubled or halved; if the last move brought
//! bandwidth the next one goes the same way, else the other; where contention develops, the last
//! move gets the blame and is taken back. The paper leaves open, and here is so:
//!
//! - *The same way*: [`Directions`].
//! - The first move is up: defaults are made for small clients.
//! - No more bandwidth than before is no improvement.
//! - Contention is that dirty data grows while programs give as much as before, and bandwidth falls.
//!   What was taken back is not judged again.
//! - At its bound a lever turns round. One without room is passed over.
//! - An idle period, and one with a missing statistic, is no turn.

use crate::{Action, Direction, Lever, Observation, Policy, Reason};

/// What "the same way" refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// The last move, of whichever lever: as the paper's words have it. Where one lever should rise
    /// and the other fall it walks away from both.
    Shared,
    /// The last move of the same lever.
    OfEach,
}

/// The state between two periods.
#[derive(Clone, Debug)]
pub struct IoPathTune {
    levers: Vec<Lever>,
    directions: Directions,
    /// Of each lever; if shared, the first is all levers'.
    ways: Vec<Direction>,
    turn: usize,
    before: Option<Observation>,
    last: Option<Move>,
}

#[derive(Clone, Copy, Debug)]
struct Move {
    lever: usize,
    from: u64,
}

impl IoPathTune {
    /// It has moved nothing yet.
    pub fn new(levers: Vec<Lever>, directions: Directions) -> Self {
        IoPathTune {
            ways: vec![Direction::Up; levers.len()],
            levers,
            directions,
            turn: 0,
            before: None,
            last: None,
        }
    }

    fn way(&mut self, lever: usize) -> Option<&mut Direction> {
        self.ways.get_mut(match self.directions {
            Directions::Shared => 0,
            Directions::OfEach => lever,
        })
    }

    fn turn_round(&mut self, lever: usize) {
        if let Some(way) = self.way(lever) {
            *way = way.reversed();
        }
    }

    /// The next lever with room, moved.
    fn turn(&mut self, set: &[u64], reason: Reason) -> Option<Action> {
        for _ in 0..self.levers.len() {
            let lever = self.turn;
            self.turn = (lever + 1) % self.levers.len();
            let (bounds, from) = (*self.levers.get(lever)?, *set.get(lever)?);
            let way = *self.way(lever)?;
            let to = [way, way.reversed()]
                .map(|way| (way, bounds.moved(from, way)))
                .into_iter()
                .find(|(_, to)| *to != from);
            if let Some((taken, to)) = to {
                if taken != way {
                    self.turn_round(lever);
                }
                self.last = Some(Move { lever, from });
                return Some(Action {
                    values: with(set, lever, to),
                    reason,
                });
            }
        }
        None
    }
}

impl Policy for IoPathTune {
    fn act(&mut self, seen: Option<&Observation>, set: &[u64]) -> Option<Action> {
        let seen = *seen.filter(|seen| seen.is_sound() && !seen.is_idle())?;
        let before = self.before.replace(seen);
        let (Some(before), Some(last)) = (before, self.last.take()) else {
            return self.turn(set, Reason::First);
        };
        if is_contention(&before, &seen) {
            self.turn_round(last.lever);
            return Some(Action {
                values: with(set, last.lever, last.from),
                reason: Reason::Contention,
            });
        }
        let reason = if seen.bandwidth > before.bandwidth {
            Reason::Faster
        } else {
            self.turn_round(last.lever);
            Reason::NotFaster
        };
        self.turn(set, reason)
    }

    fn narrow(&mut self, lever: usize, bounds: Lever) {
        if let Some(own) = self.levers.get_mut(lever) {
            *own = bounds;
        }
        // What was refused, or leads out of the bounds, is nothing to judge or to take back.
        self.last = self.last.filter(|last| last.lever != lever);
    }
}

fn is_contention(before: &Observation, seen: &Observation) -> bool {
    seen.dirty > before.dirty && seen.cached >= before.cached && seen.bandwidth < before.bandwidth
}

fn with(set: &[u64], lever: usize, value: u64) -> Vec<u64> {
    let mut values = set.to_vec();
    if let Some(own) = values.get_mut(lever) {
        *own = value;
    }
    values
}

#[cfg(test)]
mod tests;
