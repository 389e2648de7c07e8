//! The evidence of an epoch that several users share, which no one of them can make.
//!
//! Each user's runs have an e-process of their own, with centre and scale of their own runs: users'
//! inputs differ, and nobody's runs are part of another's factors. With E(v, eta) user v's,
//!
//! ```text
//! E = sum over eta of weight(eta) * min over u of product over v other than u of
//!     (FLOOR + (1 - FLOOR) E(v, eta))
//! ```
//!
//! Whoever lies, the product without them is a nonnegative martingale that starts at 1, and it bounds
//! E: the draws of different users' runs are independent. So E ever exceeds `1 / alpha` with a
//! probability of at most `alpha`, whatever one user does. The floor bounds by how much contrary
//! runs delay a claim. When to claim is free: hence the least numbers of users and control runs.

use std::collections::BTreeMap;

use io_autotune_model::{Gain, Outlook};
use io_autotune_search::math::Portable;
use serde::{Deserialize, Serialize};

use super::evidence::gain;
use super::evidence::labels::{Direction, Labels, TESTED, crossing, log_sum_exp, weighted};
use super::evidence::{Evidence, JudgedRun};
use crate::guards::members::{Member, median, most_of_another};

/// What is left of a user's factor, however contrary their runs.
const FLOOR: f64 = 0.2;
/// So many users, with so many drawn control runs each, are behind a claim.
const USERS: usize = 4;
const CONTROLS: u64 = 4;

/// The evidence of a shared epoch, by user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedEvidence {
    /// The comparisons before this epoch's.
    before: u64,
    members: BTreeMap<Member, Evidence>,
}

impl SharedEvidence {
    /// The next epoch's evidence: empty, with the comparisons numbered on.
    #[must_use]
    pub fn next_epoch(&self) -> Self {
        let is_compared = self.members.values().any(Evidence::is_compared);
        SharedEvidence {
            before: self.before + u64::from(is_compared),
            members: self
                .members
                .iter()
                .map(|(member, own)| (*member, own.next_epoch()))
                .collect(),
        }
    }

    /// Records a user's run. Each user's runs come in the order of their ordinals.
    pub fn record(&mut self, member: Member, run: &JudgedRun<'_>) {
        self.members.entry(member).or_default().record(run);
    }

    /// What a user's own runs show.
    pub fn of(&self, member: Member) -> Option<&Evidence> {
        self.members.get(&member)
    }

    /// The gain that may be claimed of the study: it holds without any one of its users. `share` is
    /// the median over users, weighed by runs, nobody by more than a third.
    pub fn gain(&self) -> Gain {
        let number = self.before + 1;
        let tuned = self.labels().map(Labels::tuned).sum();
        let users = self.labels().filter(|own| own.controls() >= CONTROLS);
        let users = users.count();
        if users < USERS {
            let reason = format!(
                "{users} of at least {USERS} users have {CONTROLS} control runs each. Until then everyone has the \
                 claim of their own runs."
            );
            return gain::unknown(&reason, tuned);
        }
        let estimate = self.estimate();
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

    /// What to expect of more control runs. A product of many users' evidence scatters more than one
    /// user's, so a gain is promising while the typical user has one, and until it can be claimed.
    pub fn outlook(&self) -> Outlook {
        if self.gain().verdict.is_resolved() {
            Outlook::Resolved
        } else if self.estimate().is_none_or(|ratio| ratio > 0.0) {
            Outlook::Promising
        } else {
            Outlook::Open
        }
    }

    fn labels(&self) -> impl Iterator<Item = &Labels> {
        self.members.values().map(Evidence::labels)
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
        let [floor, rest] = [FLOOR, 1.0 - FLOOR].map(Portable::logarithm);
        let users: Vec<[f64; TESTED]> = self
            .labels()
            .filter_map(|own| own.log_factors(place, direction))
            .map(|logs| logs.map(|log| log_sum_exp([floor, rest + log].into_iter())))
            .collect();
        weighted(std::array::from_fn(|eta| {
            let all: f64 = users.iter().map(|logs| logs[eta]).sum();
            let without = users.iter().map(|logs| all - logs[eta]);
            // Who has no drawn run yet may be the one: then nobody is left out.
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

#[cfg(test)]
mod tests;
