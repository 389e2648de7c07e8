//! The evidence of several users together, which no single one of them can make.
//!
//! Each user's runs have an e-process of their own, with the centre and the scale of their own
//! runs: users' inputs differ, and nobody's runs are part of another user's factors. With E(v, eta)
//! that of user v's epoch, and F(v, eta) = FLOOR + (1 - FLOOR) E(v, eta),
//!
//! ```text
//! E = sum over eta of weight(eta) * min over u of product over v other than u of
//!     F(v, eta) * product over v's earlier comparisons of min(1, F)
//! ```
//!
//! If one user lies, the product without that user is at most a nonnegative martingale that starts
//! at 1, and it bounds E: the draws of different users' runs, and of a user's comparisons, are
//! independent. So E ever exceeds `1 / alpha` with a probability of at most `alpha`, whatever one
//! user does. An earlier comparison can only speak against a claim; otherwise a user with contrary
//! runs could be dropped together with their epoch. The floor bounds how much contrary runs delay a
//! claim. The moment of a claim is free to choose, hence the least numbers of users and control
//! runs.

use std::collections::BTreeMap;

use io_autotune_model::Gain;
use io_autotune_search::math::Portable;

use super::evidence::gain;
use super::evidence::labels::{Direction, Labels, TESTED, crossing, log_sum_exp, weighted};
use super::evidence::{Evidence, JudgedRun};
use crate::guards::members::{Member, median, most_of_another};

/// The lower bound of a user's factor, however contrary their runs are.
const FLOOR: f64 = 0.2;
/// The least number of users behind a claim; the least number of drawn control runs of each
/// follows.
const USERS: usize = 4;
const CONTROLS: u64 = 4;

/// The evidence of users who share a study's runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedEvidence {
    /// The number of the comparison.
    number: u64,
    members: BTreeMap<Member, Own>,
}

/// The evidence of one user's own runs: of earlier epochs, and of the current one.
#[derive(Clone, Debug, Default, PartialEq)]
struct Own {
    earlier: Vec<Evidence>,
    current: Evidence,
}

impl SharedEvidence {
    /// Evidence without any user. `number` is that of the comparison, from 1. Another comparison
    /// begins when a user leaves, but not when one joins.
    pub fn new(number: u64) -> Self {
        SharedEvidence {
            number: number.max(1),
            members: BTreeMap::new(),
        }
    }

    /// Adds a user, with the evidence of their epochs in order, the current epoch's last.
    #[must_use]
    pub fn with(mut self, member: Member, mut epochs: Vec<Evidence>) -> Self {
        let current = epochs.pop().unwrap_or_default();
        let own = Own {
            earlier: epochs,
            current,
        };
        self.members.insert(member, own);
        self
    }

    /// Records a user's run. Each user's runs come in the order of their ordinals.
    pub fn record(&mut self, member: Member, run: &JudgedRun<'_>) {
        self.members.entry(member).or_default().current.record(run);
    }

    /// The evidence of a user's current epoch.
    pub fn of(&self, member: Member) -> Option<&Evidence> {
        self.members.get(&member).map(|own| &own.current)
    }

    /// The gain that may be claimed for the users together; it holds without any single one of
    /// them. `share` is the median over users, weighted by runs, of whom nobody has more than a
    /// third.
    pub fn gain(&self) -> Gain {
        let number = self.number;
        let tuned = self.labels().map(Labels::tuned).sum();
        let estimate = self.estimate();
        let users = self.labels().filter(|own| own.controls() >= CONTROLS);
        let users = users.count();
        if users < USERS {
            let reason = format!(
                "{users} of at least {USERS} users have {CONTROLS} control runs each. Until then everyone has the \
                 claim of their own runs."
            );
            return Gain {
                share: estimate,
                ..gain::unknown(&reason, tuned)
            };
        }
        let direction = match estimate {
            Some(ratio) if ratio < 0.0 => Direction::Slower,
            _ => Direction::Faster,
        };
        let low = self.low(gain::log_bound(number, Direction::Faster));
        let high = self.high(gain::log_bound(number, Direction::Slower));
        let evidence = (direction, self.evidence_at(Labels::no_effect(), direction));
        let gain = gain::of_many(number, [low, estimate, high], evidence);
        let resolved = gain.verdict.is_resolved();
        let by = format!(" By {users} users; it holds without any one of them.");
        Gain {
            reason: gain.reason + if resolved { &by } else { "" },
            tuned_runs: tuned,
            control_runs: self.labels().map(Labels::controls).sum(),
            ..gain
        }
    }

    fn labels(&self) -> impl Iterator<Item = &Labels> {
        self.members.values().map(|own| own.current.labels())
    }

    fn estimate(&self) -> Option<f64> {
        let runs = |own: &Labels| own.controls() + own.tuned();
        let all: Vec<u64> = self.labels().map(runs).collect();
        let most = most_of_another(0, &all);
        let known = self.labels();
        let known = known.filter_map(|own| Some((own.estimate()?, runs(own).min(most))));
        median(known.collect())
    }

    fn evidence_at(&self, place: usize, direction: Direction) -> f64 {
        let users = self.members.values();
        let users = users.filter_map(|own| own.log_factors(place, direction));
        let users: Vec<[f64; TESTED]> = users.collect();
        weighted(std::array::from_fn(|eta| {
            let all: f64 = users.iter().map(|logs| logs[eta]).sum();
            let without = users.iter().map(|logs| all - logs[eta]);
            // A user without a drawn run may be the one who is left out; then nobody else is.
            without.fold(all, f64::min)
        }))
    }

    fn low(&self, log_bound: f64) -> Option<f64> {
        crossing(log_bound, |place| {
            self.evidence_at(place, Direction::Faster)
        })
    }

    fn high(&self, log_bound: f64) -> Option<f64> {
        crossing(-log_bound, |place| {
            -self.evidence_at(place, Direction::Slower)
        })
    }
}

impl Own {
    fn log_factors(&self, place: usize, direction: Direction) -> Option<[f64; TESTED]> {
        let [floor, rest] = [FLOOR, 1.0 - FLOOR].map(Portable::logarithm);
        let floored = |one: &Labels| {
            let logs = one.log_factors(place, direction)?;
            Some(logs.map(|log| log_sum_exp([floor, rest + log].into_iter())))
        };
        let earlier = self.earlier.iter();
        let earlier = earlier.flat_map(|one| one.labels_before().into_iter().chain([one.labels()]));
        let against = earlier.chain(self.current.labels_before());
        let against = against.filter_map(floored);
        let against = against.map(|logs| logs.map(|log| log.min(0.0)));
        let all = against.chain(floored(self.current.labels()));
        all.reduce(|sum, logs| std::array::from_fn(|eta| sum[eta] + logs[eta]))
    }
}

#[cfg(test)]
mod tests;
