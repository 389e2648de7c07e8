//! The published method: a genetic algorithm with standard-error dynamic resampling (SEDR).
//!
//! S. Robert, S. Zertal, G. Vaumourin, "Using genetic algorithms for noisy systems' auto-tuning: an
//! application to the case of burst buffers" (2020), cited as robert2020. The operators of section V
//! are in [`genetics`], the resampling of section VI-A in [`sedr`].
//!
//! The paper runs one application after the other. With runs in flight, children wait for nothing
//! but their own results: while one child's runs are in flight another child is drawn.

mod genetics;
mod sedr;
#[cfg(test)]
mod tests;

use rand_chacha::ChaCha8Rng;

use super::{Method, MethodContext, Proposal};
use crate::design::enumerate;
use crate::reason::{BestKnownBecause, Reason};
use crate::space::Point;

/// How many children are drawn before one is looked for near the last.
const DRAWS: u32 = 100;
/// A space of at most so many points is searched whole for the nearest one.
const SMALL: u128 = 4096;
/// How many steps a walk from a child takes at most in a larger space.
const WALK: usize = 4096;

/// The method; it has no state.
#[derive(Debug)]
pub(crate) struct Robert2020Method;

impl Method for Robert2020Method {
    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let Some(threshold) = sedr::threshold(context) else {
            return Proposal::Wait(if context.view.exploring() > 0 {
                BestKnownBecause::AwaitingDesign
            } else {
                BestKnownBecause::NothingFinished
            });
        };
        sedr::resample(context, threshold).unwrap_or_else(|| new_child(context, rng))
    }
}

/// Whether a point may be run as a new child: one of whose time nothing is known, or a design point
/// that ran once. The default has its control runs, and every other tested point has been through SEDR.
fn is_new(context: &MethodContext<'_>, point: &Point) -> bool {
    if *point == context.view.default {
        return false;
    }
    context.view.get(point).is_none_or(|known| {
        known.in_flight == 0
            && !known.given_up()
            && (known.mean().is_none() || (known.count() == 1 && context.in_design(point)))
    })
}

fn new_child(context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
    let population = genetics::population(context.view);
    let mut last = None;
    for redraws in 0..DRAWS {
        let Some(child) = genetics::breed(context, &population, rng) else {
            return Proposal::Wait(BestKnownBecause::NothingFinished);
        };
        if is_new(context, &child.point) {
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
    match last.and_then(|child| Some((neighbour(context, &child, rng)?, child))) {
        Some((point, child)) => Proposal::Run {
            point,
            reason: Reason::Neighbour {
                of: context.space().parametrization(&child),
            },
        },
        None => Proposal::Exhausted,
    }
}

/// A point near a child that may be run as new: the nearest in a small space, untested ones first;
/// the first on a random walk in a large one.
fn neighbour(context: &MethodContext<'_>, child: &Point, rng: &mut ChaCha8Rng) -> Option<Point> {
    let space = context.space();
    if space.size() <= SMALL {
        let tested = |point: &Point| context.view.get(point).is_some_and(|k| k.mean().is_some());
        let metric = space.metric();
        return enumerate(space)
            .filter(|point| is_new(context, point))
            .min_by(|a, b| {
                let near = metric.distance(a, child);
                tested(a)
                    .cmp(&tested(b))
                    .then_with(|| near.total_cmp(&metric.distance(b, child)))
            });
    }
    let mut point = child.clone();
    (0..WALK).find_map(|_| {
        genetics::step(space, &mut point, rng);
        is_new(context, &point).then(|| point.clone())
    })
}
