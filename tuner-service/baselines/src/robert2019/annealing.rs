//! Simulated annealing as in Robert, Zertal and Goret 2019 (sections II-B-2 and III-B-2).

use io_autotune_search::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::settings::{Robert2019Annealing, Robert2019Cooling};
use crate::annealing::Annealing;
use io_autotune_model::space::{Point, Space, levels_of, other_level};
use io_autotune_search::{Method, MethodContext, Proposal};

impl Method for Robert2019Annealing {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        self.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        if let Some(wait) = context.nothing_known() {
            return wait;
        }
        Annealing {
            neighbour: walk,
            temperature: &|step| temperature(self, step),
            restart: self.restart,
            revisits: self.revisits,
        }
        .propose(context, &start(context), rng)
    }
}

fn start(context: &MethodContext<'_>) -> Point {
    let ranked = context.view.by_mean();
    let began = |point: &&Point| **point == context.view.default || context.in_design(point);
    let start = ranked.iter().find(began).or(ranked.first());
    start.unwrap_or(&context.view.default).clone()
}

/// The cooling schedules of section III-B-2, k steps after the start.
fn temperature(settings: &Robert2019Annealing, step: u64) -> f64 {
    let step = step as f64;
    settings.initial_temperature
        * match settings.cooling {
            Robert2019Cooling::Exponential { factor } => factor.power(step),
            Robert2019Cooling::Multiplicative { factor } => 1.0 / (1.0 + factor * step),
            Robert2019Cooling::Logarithmic { factor } => 1.0 / (1.0 + factor * step.logarithm_1p()),
        }
}

/// "At each iteration, the algorithm can increase or decrease by one unit each possible
/// parametrization": every parameter goes one level up or down, or stays, equally often. A
/// category, which the paper lacks, stays or changes likewise.
pub(crate) fn walk(space: &Space, from: &Point, rng: &mut ChaCha8Rng) -> Point {
    let moved = |(parameter, level): (&io_autotune_model::space::Parameter, &u32)| {
        let last = levels_of(parameter) - 1;
        let way = rng.random_range(0..3);
        if way == 2 || last == 0 {
            return *level;
        }
        if !parameter.is_ordered() {
            return other_level(*level, last + 1, rng);
        }
        if way == 0 {
            level.saturating_sub(1)
        } else {
            level.saturating_add(1).min(last)
        }
    };
    Point(space.parameters().iter().zip(&from.0).map(moved).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robert2019_iii_b_2_three_cooling_schedules_by_hand() {
        let at = |cooling, step| {
            let settings = Robert2019Annealing {
                cooling,
                ..Robert2019Annealing::default()
            };
            temperature(&settings, step)
        };
        let exponential = Robert2019Cooling::Exponential { factor: 0.5 };
        let multiplicative = Robert2019Cooling::Multiplicative { factor: 3.0 };
        let logarithmic = Robert2019Cooling::Logarithmic { factor: 2.0 };
        for cooling in [exponential, multiplicative, logarithmic] {
            assert!((at(cooling, 0) - 1000.0).abs() < 1e-9);
            assert!(at(cooling, 5000) < at(cooling, 50) && at(cooling, 5000) >= 0.0);
        }
        assert!((at(exponential, 3) - 125.0).abs() < 1e-9);
        assert!((at(multiplicative, 3) - 100.0).abs() < 1e-9);
        // ln 4 = 1.386294
        assert!((at(logarithmic, 3) - 1000.0 / 3.772_589).abs() < 1e-3);
    }
}
