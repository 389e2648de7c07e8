//! IOPathTune (Rashid, He, Bao, Dai: "IOPathTune: Adaptive Online Parameter Tuning for Parallel
//! File System I/O Path", section "Design of IOPathTune").
//!
//! As published: in each period one lever, in turn, is doubled or halved. If the last move
//! increased the bandwidth the next one goes the same way, otherwise the other way. If contention
//! develops, the last move is blamed and taken back. The paper leaves some points open, which are
//! decided here as follows:
//!
//! - *The same way*: see [`Directions`].
//! - The first move is up, because defaults are made for small clients.
//! - Equal bandwidth is no improvement.
//! - *Contention*: see [`Contention`]. A move that was taken back is not judged again.
//! - At its bound a lever changes direction. A lever without room is passed over.
//! - An idle period, and one with a missing statistic, is no turn.

use crate::{Action, Direction, Lever, Observation, Policy, Reason};

/// The moves that "the same way" refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// The last move, of whichever lever, as the paper's words have it. If one lever should rise
    /// and the other fall, this walks away from both.
    Shared,
    /// The last move of the same lever.
    OfEach,
}

/// The signs of contention. The paper calculates four metrics ([`Observation`]) and observes
/// "whether I/O contentions are developing or not based on these metrics"; it does not say how.
/// Bandwidth falls under either reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    /// Before the requests: pages get cached as quickly as before, and dirty data grow.
    Dirty,
    /// There, or behind the requests: the client generates RPCs as quickly as before, and they
    /// transfer less. So each of the four metrics can decide.
    DirtyOrRequests,
}

/// The state between two periods.
#[derive(Clone, Debug)]
pub struct IoPathTune {
    levers: Vec<Lever>,
    directions: Directions,
    contention: Contention,
    /// The direction of each lever; if shared, the first is that of all levers.
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
    /// A policy that has not moved anything yet.
    pub fn new(levers: Vec<Lever>, directions: Directions, contention: Contention) -> Self {
        IoPathTune {
            contention,
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

    /// Moves the next lever that has room.
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
        if self.contention.develops(&before, &seen) {
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
        // A move that was refused, or that leads out of the bounds, is neither judged nor taken
        // back.
        self.last = self.last.filter(|last| last.lever != lever);
    }
}

impl Contention {
    fn develops(self, before: &Observation, seen: &Observation) -> bool {
        let before_requests = seen.dirty > before.dirty && seen.cached >= before.cached;
        // A path whose requests are not counted has none.
        let behind_requests = before.requests > 0.0 && seen.requests >= before.requests;
        let jams = match self {
            Contention::Dirty => before_requests,
            Contention::DirtyOrRequests => before_requests || behind_requests,
        };
        jams && seen.bandwidth < before.bandwidth
    }
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
