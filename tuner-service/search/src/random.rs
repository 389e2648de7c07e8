//! Random search: uniform points, none twice (cao2018, section 4.2: "random selection without
//! replacement"; the random sampler RS of robert2020, section VIII-D). It starts with the default.

use rand_chacha::ChaCha8Rng;

use crate::method::{Method, MethodContext, Proposal};
use crate::neighbourhood;
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};

/// The number of draws before an untested point near the last draw is taken.
const DRAWS: usize = 100;

/// The method `random`; it has no settings.
#[derive(Debug)]
pub struct Random;

impl Method for Random {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        0
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        if let Some(wait) = context.nothing_known() {
            return wait;
        }
        draw(context, rng)
    }
}

/// A random untested point.
pub fn draw(context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
    let space = context.space();
    let mut last = context.view.default.clone();
    for _ in 0..DRAWS {
        let point = space.draw(rng);
        if context.is_untested(&point) {
            return Proposal::Run {
                point,
                reason: Reason::Drawn,
            };
        }
        last = point;
    }
    elsewhere(context, &last, rng)
}

/// The untested point nearest to `from`, or the answer of a method that finds nothing to run.
pub fn elsewhere(context: &MethodContext<'_>, from: &Point, rng: &mut ChaCha8Rng) -> Proposal {
    let space = context.space();
    let wanted = |point: &Point| space.admits(point) && context.is_untested(point);
    match neighbourhood::nearest(context, from, wanted, rng) {
        Some(point) => Proposal::Run {
            point,
            reason: Reason::Neighbour {
                of: space.parametrization(from),
            },
        },
        None => context.nothing_to_run(),
    }
}
