//! Simulated annealing as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2, 3 and 4.2): from
//! the default, one parameter at a time, with linear or geometric cooling.

use io_autotune_search::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::settings::{Cao2018Annealing, Cao2018Cooling};
use crate::annealing::{Annealing, Restart};
use io_autotune_model::space::{Point, Space, levels_of, other_level};
use io_autotune_search::{Method, MethodContext, Proposal};

impl Cao2018Annealing {
    fn left(&self, budget: u32, step: u64) -> f64 {
        let step = step as f64;
        match self.cooling {
            Cao2018Cooling::Linear => (1.0 - step / f64::from(budget.max(1))).max(0.0),
            Cao2018Cooling::Geometric { factor } => factor.power(step),
        }
    }
}

impl Method for Cao2018Annealing {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
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
        let initial = self.initial_share * mean.unwrap_or_default();
        Annealing {
            neighbour: alter,
            temperature: &|step| initial * self.left(context.budget, step),
            restart: Restart::None,
            revisits: self.revisits,
        }
        .propose(context, &start, rng)
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
    use io_autotune_search::testing::storage;
    use rand::SeedableRng;

    use super::*;

    /// Cao 2018, section 2.2: "altering only one parameter value of the current state".
    #[test]
    fn cao2018_ii_2_a_neighbour_differs_in_one_parameter() {
        let space = storage();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..200 {
            let from = space.draw(&mut rng);
            let to = alter(&space, &from, &mut rng);
            let differ = from.0.iter().zip(&to.0).filter(|(a, b)| a != b);
            assert_eq!(differ.count(), 1, "{from:?} {to:?}");
        }
    }

    #[test]
    fn cao2018_iii_linear_and_geometric_cooling_by_hand() {
        let mut settings = Cao2018Annealing::default();
        for (step, left) in [(0, 1.0), (20, 0.6), (50, 0.0), (70, 0.0)] {
            assert!((settings.left(50, step) - left).abs() < 1e-12);
        }
        settings.cooling = Cao2018Cooling::Geometric { factor: 0.9 };
        assert!((settings.left(50, 2) - 0.81).abs() < 1e-12);
    }
}
