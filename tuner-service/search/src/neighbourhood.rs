//! Points near a point, for methods that draw a point that is known already.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::MethodContext;
use io_autotune_model::space::{Parameter, Point, Space, levels_of, other_level};

/// A space of at most this many points is searched whole.
pub const SMALL: usize = 4096;
/// The largest number of steps of a walk in a larger space.
const WALK: usize = 4096;
/// The number of draws if constraints block the walk.
const DRAWS: usize = 1000;

/// The largest number of levels of a parameter that are tried in single changes.
const CHANGED_LEVELS: u32 = 16;

/// The admitted points that differ in one parameter. Of a parameter with many levels
/// [`CHANGED_LEVELS`] random ones are tried.
pub fn single_changes<'a>(
    space: &'a Space,
    point: &Point,
    rng: &mut ChaCha8Rng,
) -> Vec<(&'a Parameter, Point)> {
    let mut changes = Vec::new();
    for (index, parameter) in space.parameters().iter().enumerate() {
        let levels = levels_of(parameter);
        for level in 0..levels.min(CHANGED_LEVELS) {
            let mut near = point.clone();
            near.0[index] = if levels > CHANGED_LEVELS {
                rng.random_range(0..levels)
            } else {
                level
            };
            let near = space.canonical(near);
            if space.admits(&near) {
                changes.push((parameter, near));
            }
        }
    }
    changes
}

/// A point near another that satisfies the condition: in a small space the nearest, untested ones
/// first; in a large space the first one on a random walk.
pub fn nearest(
    context: &MethodContext<'_>,
    from: &Point,
    is_wanted: impl Fn(&Point) -> bool,
    rng: &mut ChaCha8Rng,
) -> Option<Point> {
    let space = context.space();
    if let Some(points) = space.points(SMALL) {
        let tested = |point: &Point| context.view.get(point).is_some_and(|k| k.mean().is_some());
        let metric = space.metric();
        return points
            .into_iter()
            .filter(|point| is_wanted(point))
            .min_by(|a, b| {
                let near = metric.distance(a, from);
                tested(a)
                    .cmp(&tested(b))
                    .then_with(|| near.total_cmp(&metric.distance(b, from)))
            });
    }
    let mut point = space.approach(&context.view.default, from, rng);
    let walked = (0..WALK).find_map(|_| {
        let mut next = point.clone();
        step(space, &mut next, rng);
        let next = space.canonical(next);
        if space.admits(&next) {
            point = next;
        }
        is_wanted(&point).then(|| point.clone())
    });
    // Constraints may confine a walk to tested points.
    let draws = if space.is_whole_grid() { 0 } else { DRAWS };
    walked.or_else(|| (0..draws).map(|_| space.draw(rng)).find(&is_wanted))
}

/// One step of a random walk (section V-D): a random parameter that exists at this canonical point
/// goes one level up or down, inwards at an end; a category takes any other value. The result may
/// not be canonical. Returns the parameter's index; none if no parameter has a second value.
pub fn step(space: &Space, point: &mut Point, rng: &mut ChaCha8Rng) -> Option<usize> {
    let parameters = space.parameters();
    let existing = space.existing(point);
    let mobile: Vec<usize> = (0..parameters.len())
        .filter(|index| existing.contains(*index) && levels_of(&parameters[*index]) > 1)
        .collect();
    if mobile.is_empty() {
        return None;
    }
    let index = mobile[rng.random_range(0..mobile.len())];
    let last = levels_of(&parameters[index]) - 1;
    let level = &mut point.0[index];
    *level = if !parameters[index].is_ordered() {
        other_level(*level, last + 1, rng)
    } else if *level == 0 {
        1
    } else if *level >= last || rng.random::<bool>() {
        *level - 1
    } else {
        *level + 1
    };
    Some(index)
}
