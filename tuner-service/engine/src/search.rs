//! The methods that propose parametrizations in the search, behind one trait. A method is one
//! module here, one [`MethodName`] and one arm of [`named`]. It is stateless: it gets a
//! [`MethodContext`] and a generator. Every method must pass `conformance`.

pub(crate) mod acquisition;
pub(crate) mod alabed2021;
mod annealing;
pub(crate) mod cao2018;
pub(crate) mod latin_hypercube;
mod neighbourhood;
mod random;
mod replay;
pub(crate) mod robert2019;
pub(crate) mod robert2020;
mod surrogate_genetic;
#[cfg(test)]
mod tests;

use rand_chacha::ChaCha8Rng;

use crate::guards::regret::{self, Estimator};
use crate::history::by_point::Known;
use crate::reason::{BestKnownBecause, Reason};
use crate::space::{Point, Space};
use crate::study::settings::{MethodName, Settings};
use crate::surrogate::posterior::Modelled;

#[derive(Debug)]
pub(crate) struct MethodContext<'a> {
    pub(crate) view: &'a Modelled<'a>,
    /// The epoch's design, the nearest point to the default first.
    pub(crate) design: &'a [Point],
    pub(crate) settings: &'a Settings,
    /// Design and search runs, those in flight included.
    pub(crate) explored: u64,
    /// Whether the regret bound is reached: only what should beat the default may run.
    pub(crate) held: bool,
    /// What is left of the regret budget, in runs of the default.
    pub(crate) regret_left: f64,
}

impl<'a> MethodContext<'a> {
    /// The answer while no run has counted.
    pub(crate) fn nothing_known(&self) -> Option<Proposal> {
        let known = self.view.iter().any(|(_, known)| known.mean().is_some());
        (!known).then(|| self.nothing_to_go_by())
    }

    /// The answer of a method that needs more of the design first.
    pub(crate) fn nothing_to_go_by(&self) -> Proposal {
        Proposal::Wait(if self.view.exploring() > 0 {
            BestKnownBecause::AwaitingDesign
        } else {
            BestKnownBecause::NothingFinished
        })
    }

    /// The answer of a method that finds nothing to run: runs in flight may still change that.
    pub(crate) fn nothing_to_run(&self) -> Proposal {
        if self.view.exploring() > 0 {
            Proposal::Wait(BestKnownBecause::AwaitingResults)
        } else {
            Proposal::Exhausted
        }
    }

    /// Whether a point has no time, no run in flight and no quarantine, and is not the default.
    pub(crate) fn is_untested(&self, point: &Point) -> bool {
        let open = |known: &Known| {
            known.mean().is_none() && known.in_flight == 0 && !known.is_quarantined()
        };
        *point != self.view.default && self.view.get(point).is_none_or(open)
    }

    pub(crate) fn space(&self) -> &'a Space {
        self.view.space
    }

    pub(crate) fn in_design(&self, point: &Point) -> bool {
        self.design.contains(point)
    }

    /// The next point of the design and its index: untested, and admitted by the method.
    pub(crate) fn next_design_point(&self, method: &dyn Method) -> Option<(usize, &'a Point)> {
        self.design
            .iter()
            .enumerate()
            .find(|(_, point)| self.is_untested(point) && method.admits(self, point))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Proposal {
    Run {
        /// The point; it fits the space.
        point: Point,
        reason: Reason,
    },
    Wait(BestKnownBecause),
    Exhausted,
}

/// A search, once every point of the design has been started.
pub(crate) trait Method {
    /// What to run next: a function of the context and the generator's state.
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal;

    /// Whether [`propose`](Method::propose) answers [`Proposal::Exhausted`] with nothing held back.
    fn is_exhausted(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> bool {
        self.propose(context, rng) == Proposal::Exhausted
    }

    /// Eligible points, the best first.
    fn ranking(&self, view: &Modelled<'_>, _settings: &Settings) -> Vec<Point> {
        view.by_mean()
    }

    /// Whether a recommendation needs two runs, since one lucky run may lead the ranking while good
    /// points run again. False for methods that repeat no point, or that weigh single runs.
    fn wants_two_runs(&self, _settings: &Settings) -> bool {
        false
    }

    fn design_points(&self, _space: &Space, settings: &Settings) -> u32 {
        settings.design_points
    }

    fn admits(&self, context: &MethodContext<'_>, point: &Point) -> bool {
        let held = context.held && regret::may_regret_at(context.view, point);
        !(held || regret::is_far(context.view, &context.settings.regret, point))
    }

    fn estimator(&self) -> Estimator {
        Estimator::Shrunk
    }
}

pub(crate) fn named(name: MethodName) -> &'static dyn Method {
    match name {
        MethodName::SurrogateGenetic => &surrogate_genetic::SurrogateGenetic,
        MethodName::Robert2020 => &robert2020::Robert2020Method,
        MethodName::Robert2019Surrogate => &robert2019::surrogate::Robert2019SurrogateMethod,
        MethodName::Robert2019Annealing => &robert2019::annealing::Robert2019AnnealingMethod,
        MethodName::Cao2018Annealing => &cao2018::annealing::Cao2018AnnealingMethod,
        MethodName::Cao2018Genetic => &cao2018::genetic::Cao2018GeneticMethod,
        MethodName::Cao2018Bayesian => &cao2018::bayesian::Cao2018BayesianMethod,
        MethodName::Cao2018Dqn => &cao2018::dqn::Cao2018DqnMethod,
        MethodName::Alabed2021Multitask => &alabed2021::multitask::Alabed2021MultitaskMethod,
        MethodName::Random => &random::RandomMethod,
    }
}
