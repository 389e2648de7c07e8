//! The genetic algorithms of S. Robert, S. Zertal, G. Vaumourin, "Using genetic algorithms for
//! noisy systems' auto-tuning: an application to the case of burst buffers" (2020), with the noise
//! reductions of table V: none (class CGA), resampling (RGA), fitness regression (FGA), both
//! (FRGA). Section V is in [`genetics`]; section VI-A in [`resampling`], [`sedr`], [`averaging`];
//! section VI-B in [`regression`]; table V in [`table_v`]. Unlike the paper's, a child need not
//! wait for another's runs in flight.

mod averaging;
pub(crate) mod genetics;
mod means;
mod regression;
mod resampling;
mod sedr;
mod settings;
mod table_v;
#[cfg(test)]
mod tests;

use rand_chacha::ChaCha8Rng;

use genetics::Child;
use io_autotune_model::reason::{BestKnownBecause, Reason};
use io_autotune_model::space::Point;
use io_autotune_search::regret;
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::{Method, MethodContext, Proposal, neighbourhood};
use resampling::Rule;

pub use settings::{
    ChildRevisits, Crossover, Mutation, NeighboursOf, Noise, Regression, Resampling, Robert2020,
    Selection, Weight,
};
pub use table_v::table_v;

/// The number of children that are drawn before one near the last is taken.
const DRAWS: u32 = 100;

impl Method for Robert2020 {
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        if let Some(wait) = context.nothing_known() {
            return wait;
        }
        let Some(rule) = resampling::rule(self, context) else {
            return context.nothing_to_go_by();
        };
        resampling::due(context, rule).unwrap_or_else(|| new_child(self, context, rule, rng))
    }

    fn admits(&self, context: &MethodContext<'_>, point: &Point) -> bool {
        !self.drops_design_points || !regret::is_far(context.view, context.regret, point)
    }

    fn wants_two_runs(&self) -> bool {
        self.noise.resampling().is_some()
    }

    /// The ranking by the estimates that selection uses: with fitness regression, the regressed
    /// means.
    fn ranking(&self, view: &Modelled<'_>) -> Vec<Point> {
        let mut ranked = view.by_mean();
        if self.noise.regression().is_some() {
            let population = genetics::population(view, self);
            let estimate = |point: &Point| {
                let found = population.iter().find(|one| one.point == point);
                found.map_or(f64::INFINITY, |individual| individual.mean)
            };
            ranked.sort_by(|a, b| estimate(a).total_cmp(&estimate(b)));
        }
        ranked
    }
}

/// Returns true if a point may run as a new child: an untested point, or a design point that ran
/// once if children run again. Other tested points have enough runs.
fn is_new(context: &MethodContext<'_>, rule: Rule, point: &Point) -> bool {
    if !context.space().admits(point) || *point == context.view.default {
        return false;
    }
    context.view.get(point).is_none_or(|known| {
        let ran_once = known.count() == 1 && rule.least_runs() > 1 && context.in_design(point);
        known.in_flight == 0 && !known.is_quarantined() && (known.mean().is_none() || ran_once)
    })
}

/// Returns true if a child may run, be it new or one of the tested points that may run again.
fn may_run(settings: &Robert2020, context: &MethodContext<'_>, rule: Rule, child: &Child) -> bool {
    let again = match settings.revisits {
        ChildRevisits::Never => false,
        ChildRevisits::UnlikeParents => !child.parents.contains(&child.point),
        ChildRevisits::Any => true,
    };
    let tested = || context.space().admits(&child.point) && context.can_run_again(&child.point);
    is_new(context, rule, &child.point) || again && tested()
}

fn new_child(
    settings: &Robert2020,
    context: &MethodContext<'_>,
    rule: Rule,
    rng: &mut ChaCha8Rng,
) -> Proposal {
    let population = genetics::population(context.view, settings);
    let is_new = |point: &Point| is_new(context, rule, point);
    let mut last = None;
    for redraws in 0..DRAWS {
        let Some(child) = genetics::breed(settings, context, &population, rng) else {
            return Proposal::Wait(BestKnownBecause::NothingFinished);
        };
        if may_run(settings, context, rule, &child) {
            let parents = child
                .parents
                .map(|parent| context.space().parametrization(&parent));
            return Proposal::Run {
                point: child.point,
                reason: Reason::Child {
                    parents,
                    cuts: child.cuts,
                    mutated: child.mutated,
                    redraws,
                },
            };
        }
        last = Some(child.point);
    }
    match last
        .and_then(|child| Some((neighbourhood::nearest(context, &child, is_new, rng)?, child)))
    {
        Some((point, child)) => Proposal::Run {
            point,
            reason: Reason::Neighbour {
                of: context.space().parametrization(&child),
            },
        },
        None => Proposal::Exhausted,
    }
}
