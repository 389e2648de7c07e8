//! Simulated annealing as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2, 3 and 4.2): from
//! the default, one parameter at a time, with linear or geometric cooling.

use crate::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::search::annealing::Annealing;
use crate::search::{Method, MethodContext, Proposal};
use crate::space::{Point, Space, levels_of, other_level};
use crate::study::settings::{Cao2018Cooling, Restart, Settings};

#[derive(Debug)]
pub(crate) struct Cao2018AnnealingMethod;

impl Method for Cao2018AnnealingMethod {
    fn design_points(&self, _: &Space, _: &Settings) -> u32 {
        0
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        if let Some(wait) = context.nothing_known() {
            return wait;
        }
        let default = context.view.default_known().mean();
        let start = match default {
            Some(_) => context.view.default.clone(),
            None => {
                let best = context.view.by_mean().into_iter().next();
                best.unwrap_or_else(|| context.view.default.clone())
            }
        };
        let mean = context.view.get(&start).and_then(|known| known.mean());
        let initial = context.settings.cao2018_annealing.initial_share * mean.unwrap_or_default();
        Annealing {
            neighbour: alter,
            temperature: &|step| initial * cooled(context.settings, step),
            restart: Restart::None,
        }
        .propose(context, &start, rng)
    }
}

/// The share of the initial temperature after k steps.
fn cooled(settings: &Settings, step: u64) -> f64 {
    let step = step as f64;
    match settings.cao2018_annealing.cooling {
        Cao2018Cooling::Linear => {
            let budget = f64::from(settings.budget.max(1));
            (1.0 - step / budget).max(0.0)
        }
        Cao2018Cooling::Geometric { factor } => factor.power(step),
    }
}

/// "New configurations achieved by altering only one parameter value of the current state" (section
/// 2.2): a random existing parameter takes any other value.
fn alter(space: &Space, from: &Point, rng: &mut ChaCha8Rng) -> Point {
    let levels: Vec<u32> = space.parameters().iter().map(levels_of).collect();
    let existing = space.existing(from);
    let mobile: Vec<usize> = (0..levels.len())
        .filter(|place| levels[*place] > 1 && existing.contains(*place))
        .collect();
    let mut point = from.clone();
    if !mobile.is_empty() {
        let index = mobile[rng.random_range(0..mobile.len())];
        point.0[index] = other_level(point.0[index], levels[index], rng);
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_by_hand() {
        let mut settings = Settings::default();
        assert_eq!(settings.budget, 50);
        for (step, left) in [(0, 1.0), (20, 0.6), (50, 0.0), (70, 0.0)] {
            assert!((cooled(&settings, step) - left).abs() < 1e-12);
        }
        settings.cao2018_annealing.cooling = Cao2018Cooling::Geometric { factor: 0.9 };
        assert!((cooled(&settings, 2) - 0.81).abs() < 1e-12);
    }
}
