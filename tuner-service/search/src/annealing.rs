//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) for robert2019 and cao2018, which
//! differ in neighbours and cooling. Stateless, see [`crate::replay`]. Points in flight or in
//! quarantine count as refused.

use crate::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::history::by_point::Known;
use crate::method::{MethodContext, Proposal};
use crate::{random, replay};
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};
use serde::{Deserialize, Serialize};

/// The maximum number of steps among known points.
const MOST_STEPS: u64 = 4096;
/// The draws of a neighbour; of the last one as much is taken as the space admits.
const DRAWS: usize = 32;

/// Draws a neighbour of a point, which the space may not admit.
pub type Neighbour = fn(&Space, &Point, &mut ChaCha8Rng) -> Point;

/// When the temperature is set back (robert2019, section III-B-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// Never.
    #[default]
    None,
    /// With this probability before each step.
    Random {
        /// From 0 to 1.
        probability: f64,
    },
    /// Once the temperature has fallen under this share of where it started.
    Threshold {
        /// Above 0 and at most 1.
        share: f64,
    },
}

/// One kind of annealing.
pub struct Annealing<'a> {
    /// The neighbours of a point.
    pub neighbour: Neighbour,
    /// The temperature in seconds, by steps since the start or the last restart.
    pub temperature: &'a dyn Fn(u64) -> f64,
    /// When the temperature is set back.
    pub restart: Restart,
}

impl Annealing<'_> {
    /// Walks from a point with a known mean to the first untested one.
    pub fn propose(
        &self,
        context: &MethodContext<'_>,
        start: &Point,
        rng: &mut ChaCha8Rng,
    ) -> Proposal {
        let space = context.space();
        let mean = |point: &Point| context.view.get(point).and_then(|known| known.mean());
        let mut current = start.clone();
        let mut since = 0;
        for step in 0..MOST_STEPS {
            let mut drawn = replay::generator(rng, step);
            if self.restarts(since, &mut drawn) {
                since = 0;
            }
            let temperature = (self.temperature)(since);
            since += 1;
            let Some(candidate) = self.draw(space, &current, &mut drawn) else {
                continue;
            };
            if context.is_untested(&candidate) {
                return Proposal::Run {
                    reason: Reason::Step {
                        from: space.parametrization(&current),
                        changed: changed(space, &current, &candidate),
                        step: step + 1,
                        temperature,
                    },
                    point: candidate,
                };
            }
            let known = context.view.get(&candidate);
            if known.is_some_and(Known::is_quarantined) {
                continue;
            }
            let (Some(here), Some(there)) = (mean(&current), mean(&candidate)) else {
                continue;
            };
            if accepts(here, there, temperature, &mut drawn) {
                current = candidate;
            }
        }
        random::elsewhere(context, &current, rng)
    }

    fn restarts(&self, since: u64, rng: &mut ChaCha8Rng) -> bool {
        match self.restart {
            Restart::None => false,
            Restart::Random { probability } => rng.random::<f64>() < probability,
            Restart::Threshold { share } => {
                since > 0 && (self.temperature)(since) < share * (self.temperature)(0)
            }
        }
    }

    fn draw(&self, space: &Space, from: &Point, rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut last = from.clone();
        for _ in 0..DRAWS {
            last = space.canonical((self.neighbour)(space, from, rng));
            if last != *from && space.admits(&last) {
                return Some(last);
            }
        }
        let near = space.approach(from, &last, rng);
        (near != *from).then_some(near)
    }
}

/// Metropolis's rule: slower points have probability `exp(-(there - here) / temperature)`.
/// (robert2019, section II-B-2, has the comparison reversed.)
pub fn accepts(here: f64, there: f64, temperature: f64, rng: &mut ChaCha8Rng) -> bool {
    there <= here || rng.random::<f64>() < ((here - there) / temperature).exponential()
}

/// The names of the parameters in which two points differ.
pub fn changed(space: &Space, a: &Point, b: &Point) -> Vec<String> {
    space
        .parameters()
        .iter()
        .zip(a.0.iter().zip(&b.0))
        .filter(|(_, (a, b))| a != b)
        .map(|(parameter, _)| parameter.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn what_is_slower_is_accepted_as_often_as_the_temperature_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!(accepts(10.0, 10.0, 0.0, &mut rng) && accepts(10.0, 9.0, 0.0, &mut rng));
        assert!((0..100).all(|_| !accepts(10.0, 11.0, 0.0, &mut rng)));
        // exp(-1): 368 of 1000, standard deviation 15.
        let count = (0..1000).filter(|_| accepts(10.0, 15.0, 5.0, &mut rng));
        assert!((308..428).contains(&count.count()));
    }
}
