//! The methods that propose parametrizations in the search, behind one trait.
//!
//! A method is one module here, one [`MethodName`] and one arm of [`named`]. It is told everything
//! in a [`MethodContext`] and draws from the generator it is given; it keeps no state. Every method
//! must pass `conformance`.

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

/// All that a method may know.
#[derive(Debug)]
pub(crate) struct MethodContext<'a> {
    /// The history and the runs in flight.
    pub(crate) view: &'a Modelled<'a>,
    /// The epoch's design, the nearest point to the default first.
    pub(crate) design: &'a [Point],
    /// The site's settings, those of the method among them.
    pub(crate) settings: &'a Settings,
    /// How many design and search runs there were, those in flight included.
    pub(crate) explored: u64,
    /// Whether the [loss bound](crate::study::settings::RegretSettings) is reached, so that only what is expected to be quicker than the
    /// default may run.
    pub(crate) held: bool,
    /// What may still be lost by that bound, in runs of the default.
    pub(crate) regret_left: f64,
}

impl<'a> MethodContext<'a> {
    /// What a method answers while no run has counted: there is nothing to learn from yet.
    pub(crate) fn nothing_known(&self) -> Option<Proposal> {
        let known = self.view.iter().any(|(_, known)| known.mean().is_some());
        (!known).then(|| self.nothing_to_go_by())
    }

    /// What a method answers that has to know more of the design first.
    pub(crate) fn nothing_to_go_by(&self) -> Proposal {
        Proposal::Wait(if self.view.exploring() > 0 {
            BestKnownBecause::AwaitingDesign
        } else {
            BestKnownBecause::NothingFinished
        })
    }

    /// What a method answers that finds nothing to run: runs in flight may still change that.
    pub(crate) fn nothing_to_run(&self) -> Proposal {
        if self.view.exploring() > 0 {
            Proposal::Wait(BestKnownBecause::AwaitingResults)
        } else {
            Proposal::Exhausted
        }
    }

    /// Whether a point may be run as a new one: of whose time nothing is known and nothing is in
    /// flight, and that is not quarantined. The default never is: it has its control runs.
    pub(crate) fn is_untested(&self, point: &Point) -> bool {
        let open = |known: &Known| {
            known.mean().is_none() && known.in_flight == 0 && !known.is_quarantined()
        };
        *point != self.view.default && self.view.get(point).is_none_or(open)
    }

    /// The space.
    pub(crate) fn space(&self) -> &'a Space {
        self.view.space
    }

    /// Whether the point belongs to the design.
    pub(crate) fn in_design(&self, point: &Point) -> bool {
        self.design.contains(point)
    }

    /// The next point of the design to run, with its number from 0: the first that is not the
    /// default, of whose time nothing is known, that has no run in flight, is not quarantined, and
    /// that the method admits.
    pub(crate) fn next_design_point(&self, method: &dyn Method) -> Option<(usize, &'a Point)> {
        self.design
            .iter()
            .enumerate()
            .find(|(_, point)| self.is_untested(point) && method.admits(self, point))
    }
}

/// What a method answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Proposal {
    /// Run this point.
    Run {
        /// The point; it fits the space.
        point: Point,
        /// Why.
        reason: Reason,
    },
    /// Nothing can be proposed before some run ends.
    Wait(BestKnownBecause),
    /// Nothing is left to try.
    Exhausted,
}

/// One way to search, once every point of the design has been started.
pub(crate) trait Method {
    /// What to run next. The answer is a function of the context and the generator's state alone.
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal;

    /// Whether [`propose`](Method::propose) answers [`Proposal::Exhausted`], where nothing is held back. A method that can
    /// say so with less than a proposal does.
    fn is_exhausted(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> bool {
        self.propose(context, rng) == Proposal::Exhausted
    }

    /// What it would recommend, the best first: points that a run counts for and that are not quarantined.
    fn ranking(&self, view: &Modelled<'_>, _settings: &Settings) -> Vec<Point> {
        view.by_mean()
    }

    /// Whether one lucky run may lead its ranking while it runs what is good again: then it recommends what
    /// two runs count for. A method that runs no point again, or that weighs single runs, recommends
    /// its first.
    fn wants_two_runs(&self, _settings: &Settings) -> bool {
        false
    }

    /// How many points its design has.
    fn design_points(&self, _space: &Space, settings: &Settings) -> u32 {
        settings.design_points
    }

    /// Whether a point of the design is still to be run, after what is known by now.
    fn admits(&self, context: &MethodContext<'_>, point: &Point) -> bool {
        let held = context.held && regret::may_regret_at(context.view, point);
        !(held || regret::is_far(context.view, &context.settings.regret, point))
    }

    /// What says how much slower than the default its runs are.
    fn estimator(&self) -> Estimator {
        Estimator::Shrunk
    }
}

/// The method of that name.
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
