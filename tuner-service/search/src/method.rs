//! The methods that propose parametrizations in the search, behind one trait. A published method is
//! a folder and a line of the crate `baselines`; the main method is the engine's. A method is
//! stateless: it gets a [`MethodContext`] and a generator. Every method must pass the engine's
//! `conformance` tests.

use rand_chacha::ChaCha8Rng;

use crate::history::by_point::Known;
use crate::math::Portable;
use crate::regret::settings::RegretSettings;
use crate::regret::{self, Estimator};
use crate::surrogate::posterior::Modelled;
use io_autotune_model::reason::{BestKnownBecause, Reason};
use io_autotune_model::space::{Point, Space};

/// The inputs of a method.
#[derive(Debug)]
pub struct MethodContext<'a> {
    /// The history and the runs in flight.
    pub view: &'a Modelled<'a>,
    /// The epoch's design, the nearest point to the default first.
    pub design: &'a [Point],
    /// The number of design points, the first ones, that somebody knows: they ran well in the epoch
    /// before, or are published for the accelerator.
    pub known_elsewhere: usize,
    /// The regret budget.
    pub regret: &'a RegretSettings,
    /// The maximum number of design and search runs.
    pub budget: u32,
    /// The number of design and search runs, those in flight included.
    pub explored: u64,
    /// True if the regret budget is used up. Only points that should beat the default may run then.
    pub held: bool,
    /// The rest of the regret budget, in runs of the default.
    pub regret_left: f64,
}

impl<'a> MethodContext<'a> {
    /// The answer of a method while no run has counted; none afterwards.
    pub fn nothing_known(&self) -> Option<Proposal> {
        let known = self.view.iter().any(|(_, known)| known.mean().is_some());
        (!known).then(|| self.nothing_to_go_by())
    }

    /// The answer of a method that needs more of the design first.
    pub fn nothing_to_go_by(&self) -> Proposal {
        Proposal::Wait(if self.view.exploring() > 0 {
            BestKnownBecause::AwaitingDesign
        } else {
            BestKnownBecause::NothingFinished
        })
    }

    /// The answer of a method that finds nothing to run: runs in flight may still change that.
    pub fn nothing_to_run(&self) -> Proposal {
        if self.view.exploring() > 0 {
            Proposal::Wait(BestKnownBecause::AwaitingResults)
        } else {
            Proposal::Exhausted
        }
    }

    /// Returns true if a point has no mean, no run in flight and no quarantine, and is not the
    /// default. Nothing is quarantined while the default never completes, so one lost run is enough
    /// then.
    pub fn is_untested(&self, point: &Point) -> bool {
        let enough = |known: &Known| self.view.default_never_completed() && known.lost() > 0;
        let open = |known: &Known| {
            known.mean().is_none()
                && known.in_flight == 0
                && !known.is_quarantined()
                && !enough(known)
        };
        *point != self.view.default && self.view.get(point).is_none_or(open)
    }

    /// Returns true if a point has a mean and may run once more: none of its runs is in flight, has
    /// failed or was cut short, and it is not the default, which is known from its own runs.
    pub fn can_run_again(&self, point: &Point) -> bool {
        let open =
            |known: &Known| known.mean().is_some() && known.in_flight == 0 && known.lost() == 0;
        *point != self.view.default && self.view.get(point).is_some_and(open)
    }

    /// The space.
    pub fn space(&self) -> &'a Space {
        self.view.space
    }

    /// Returns true if somebody knows the point: it ran well in the epoch before, or is published
    /// for the accelerator.
    pub fn is_known_elsewhere(&self, point: &Point) -> bool {
        self.design
            .iter()
            .take(self.known_elsewhere)
            .any(|one| one == point)
    }

    /// Returns true if the point belongs to the design.
    pub fn in_design(&self, point: &Point) -> bool {
        self.design.contains(point)
    }

    /// The next point of the design, with its index: untested, admitted by the method, and not
    /// known as too slow from other studies.
    pub fn next_design_point(&self, method: &dyn Method) -> Option<(usize, &'a Point)> {
        let most = self.regret.design_most.logarithm();
        self.design.iter().enumerate().find(|(_, point)| {
            self.is_untested(point)
                && method.admits(self, point)
                && !self.view.is_dreaded(point, most)
        })
    }
}

/// The answer of a method.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// Run this point.
    Run {
        /// The point; it fits the space.
        point: Point,
        /// The reason.
        reason: Reason,
    },
    /// Nothing can be proposed before some run ends.
    Wait(BestKnownBecause),
    /// Nothing is left to try.
    Exhausted,
}

/// A search, once every point of the design has been started.
pub trait Method: std::fmt::Debug {
    /// Proposes the next run: a function of the context and the generator's state.
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal;

    /// Returns true if [`propose`](Method::propose) answers [`Proposal::Exhausted`] although
    /// nothing is held back by the regret budget.
    fn is_exhausted(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> bool {
        self.propose(context, rng) == Proposal::Exhausted
    }

    /// Eligible points, the best first.
    fn ranking(&self, view: &Modelled<'_>) -> Vec<Point> {
        view.by_mean()
    }

    /// Returns true if a recommendation needs two runs, because one lucky run may lead the ranking
    /// while good points run again. False for methods that repeat no point, or that weigh single
    /// runs.
    fn wants_two_runs(&self) -> bool {
        false
    }

    /// Returns true if between trials most runs of a site get the best known. The published methods
    /// try something in each run.
    fn alternates(&self) -> bool {
        false
    }

    /// The size of the method's design; `usual` is the site's `design_points`.
    fn design_points(&self, _space: &Space, usual: u32) -> u32 {
        usual
    }

    /// Returns true if a design point may still run.
    fn admits(&self, context: &MethodContext<'_>, point: &Point) -> bool {
        let held = context.held && regret::may_regret_at(context.view, point);
        !(held || regret::is_far(context.view, context.regret, point))
    }

    /// The estimator of the time of the method's runs against the default's.
    fn estimator(&self) -> Estimator {
        Estimator::Shrunk
    }
}
