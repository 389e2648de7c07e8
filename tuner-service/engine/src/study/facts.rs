//! Plain facts that the rules look at. No surrogate is fitted for them.

use io_autotune_model::Progress;
use io_autotune_model::history::Pending;
use io_autotune_model::run::{Phase, Role};
use io_autotune_model::space::Space;

use crate::study::steering::Steering;

/// The number of runs of an epoch after which most runs get what is known to be faster. If it were
/// smaller, a study would exploit one lucky run; if it were larger, users would wait for the profit
/// of what is already known. Like [`TRIAL_EVERY`], it was chosen on the development tables
/// (docs/derivation/search.md).
const BETWEEN_FROM: u64 = 10;
/// One run in this many is a trial then.
pub(crate) const TRIAL_EVERY: u64 = 3;

/// The runs of a study so far, its runs in flight, and the steering of the next one.
#[derive(Clone, Debug)]
pub(crate) struct Facts<'a> {
    /// The runs that ended.
    pub progress: Progress,
    /// The runs in flight.
    pub in_flight: InFlight,
    /// The orders and other facts that decide before the search does.
    pub steering: &'a Steering,
}

/// Runs in flight, as the rules count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// The number of runs in flight.
    pub all: u64,
    /// The number of those that have the default, in whatever role.
    pub default: u64,
    /// The number of baseline runs among them.
    pub baseline: u64,
    /// The number of exploring runs among them.
    pub exploring: u64,
    /// The number of runs of the settled phase among them that have its choice or are control runs.
    pub settled: u64,
}

impl InFlight {
    /// Counts runs in flight.
    pub(crate) fn of(space: &Space, pending: &[Pending]) -> Self {
        let default = space.default_point();
        let count = |of: &dyn Fn(&Pending) -> bool| {
            let runs = pending.iter().filter(|run| of(run));
            runs.fold(0_u64, |sum, run| sum.saturating_add(run.count))
        };
        let is_settled = |run: &Pending| run.phase == Phase::Settled;
        InFlight {
            all: count(&|_| true),
            default: count(&|run| space.validate(&run.parametrization).as_ref() == Ok(&default)),
            baseline: count(&|run| run.role == Role::Baseline),
            exploring: count(&|run| run.role.explores()),
            settled: count(&|run| {
                is_settled(run) && matches!(run.role, Role::Settled | Role::Control)
            }),
        }
    }
}

impl Facts<'_> {
    /// The number of all runs, those in flight included.
    pub(crate) fn runs(&self) -> u64 {
        self.progress.total.saturating_add(self.in_flight.all)
    }

    /// The number of design and search runs, those in flight included.
    pub(crate) fn explored(&self) -> u64 {
        let ended = self.progress.explored;
        ended.saturating_add(self.in_flight.exploring)
    }

    pub(crate) fn has_settled(&self) -> bool {
        self.progress.settled || self.in_flight.settled > 0
    }

    /// The number of baseline runs, those in flight included.
    pub(crate) fn baseline_runs(&self) -> u64 {
        let counted = self.progress.default_counted;
        counted.saturating_add(self.in_flight.baseline)
    }

    pub(crate) fn baseline_is_due(&self) -> bool {
        self.baseline_runs() < u64::from(self.progress.baseline_runs)
            && !self.progress.baseline_given_up
    }

    /// Returns true if the next run stands between two trials: from run [`BETWEEN_FROM`] on, one run
    /// in [`TRIAL_EVERY`] is a trial, as long as something is known to be faster than the default.
    pub(crate) fn is_between(&self) -> bool {
        let runs = self.runs();
        self.progress.between && runs >= BETWEEN_FROM && !runs.is_multiple_of(TRIAL_EVERY)
    }

    /// The number of further runs, after those that ended, until so many have explored: runs between
    /// trials do not.
    pub(crate) fn runs_with(&self, trials: u64) -> u64 {
        let in_a_row = match self.progress.between {
            true => BETWEEN_FROM.saturating_sub(self.progress.total).min(trials),
            false => trials,
        };
        in_a_row + TRIAL_EVERY * (trials - in_a_row)
    }

    pub(crate) fn exploring_is_full(&self) -> bool {
        self.in_flight.exploring >= u64::from(self.progress.exploring)
    }

    pub(crate) fn lacks_headroom(&self) -> bool {
        let limit = self.steering.limit_seconds();
        limit.is_some_and(|limit| self.progress.headroom.lacks(limit))
    }

    pub(crate) fn is_over_budget(&self) -> bool {
        self.steering.over_budget.is_some()
    }

    /// Returns true if the site's default is to be tried: nothing has been explored.
    pub(crate) fn tries_the_site_default(&self) -> bool {
        self.steering.site_default.is_some() && self.explored() == 0
    }

    pub(crate) fn may_complete_the_default(&self) -> bool {
        let limit = self.steering.limit_seconds();
        let longer = self.progress.longer_limit.zip(limit);
        longer.is_some_and(|(longer, limit)| {
            limit > longer.above && self.in_flight.default < longer.runs
        })
    }

    pub(crate) fn is_mixed(&self) -> bool {
        self.progress.mixed && !self.steering.accepts_mixed
    }
}
