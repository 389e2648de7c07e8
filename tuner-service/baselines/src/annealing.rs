//! Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983) for robert2019 and cao2018, which
//! differ in neighbours and cooling. It is stateless, see [`replay`]. Points in flight or in
//! quarantine count as refused.

use io_autotune_search::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::revisits::{Purse, Revisits};
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};
use io_autotune_search::history::by_point::Known;
use io_autotune_search::{MethodContext, Proposal, random, replay};
use serde::{Deserialize, Serialize};

/// The maximum number of steps among known points.
const MOST_STEPS: u64 = 4096;
/// The number of draws of a neighbour. If all fail, the last one is approached as far as the space
/// admits.
const DRAWS: usize = 32;

/// Draws a neighbour of a point, which the space may not admit.
pub(crate) type Neighbour = fn(&Space, &Point, &mut ChaCha8Rng) -> Point;

/// The rule by which the temperature is reset (robert2019, section III-B-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Restart {
    /// Never.
    #[default]
    None,
    /// With this probability before each step.
    Random {
        /// The probability, from 0 to 1.
        probability: f64,
    },
    /// "Once the system's energy has gone under a given threshold": each time that the mean of the
    /// present point falls below this share of the start's.
    Threshold {
        /// The share, above 0 and at most 1.
        share: f64,
    },
}

/// One kind of annealing.
pub(crate) struct Annealing<'a> {
    /// The neighbours of a point.
    pub(crate) neighbour: Neighbour,
    /// The temperature in seconds, by steps since the start or the last restart.
    pub(crate) temperature: &'a dyn Fn(u64) -> f64,
    /// The rule by which the temperature is reset.
    pub(crate) restart: Restart,
    /// The cost of revisiting a point.
    pub(crate) revisits: Revisits,
}

impl Annealing<'_> {
    /// Walks from a point with a known mean to the first untested one.
    pub(crate) fn propose(
        &self,
        context: &MethodContext<'_>,
        start: &Point,
        rng: &mut ChaCha8Rng,
    ) -> Proposal {
        let space = context.space();
        let mean = |point: &Point| context.view.get(point).and_then(|known| known.mean());
        let mut current = start.clone();
        let mut purse = Purse::new(self.revisits, context);
        let mut since = 0;
        let (begin, mut before) = (mean(start), mean(start));
        for step in 0..MOST_STEPS {
            let mut drawn = replay::generator(rng, step);
            let energies = [begin, before, mean(&current)];
            before = energies[2];
            if self.restarts(energies, &mut drawn) {
                since = 0;
            }
            let temperature = (self.temperature)(since);
            since += 1;
            let Some(candidate) = self.draw(space, &current, &mut drawn) else {
                continue;
            };
            if context.is_untested(&candidate) || purse.must_pay(context, &candidate) {
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

    /// Returns true if the temperature is reset. `energies` are the means of the start, of the step
    /// before, and of the present point.
    fn restarts(&self, energies: [Option<f64>; 3], rng: &mut ChaCha8Rng) -> bool {
        match (self.restart, energies) {
            (Restart::Random { probability }, _) => rng.random::<f64>() < probability,
            (Restart::Threshold { share }, [Some(begin), Some(before), Some(now)]) => {
                (now..=before).contains(&(share * begin)) && now < share * begin
            }
            (Restart::Threshold { .. } | Restart::None, _) => false,
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

/// Metropolis's rule: slower points are accepted with probability `exp(-(there - here) /
/// temperature)`. (robert2019, section II-B-2, has the comparison reversed.)
pub(crate) fn accepts(here: f64, there: f64, temperature: f64, rng: &mut ChaCha8Rng) -> bool {
    there <= here || rng.random::<f64>() < ((here - there) / temperature).exponential()
}

/// The names of the parameters in which two points differ.
pub(crate) fn changed(space: &Space, a: &Point, b: &Point) -> Vec<String> {
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

    fn stands(_: &Space, from: &Point, _: &mut ChaCha8Rng) -> Point {
        from.clone()
    }

    /// Robert 2019, section III-B-2: "resetting it once the system's energy has gone under a given
    /// threshold".
    #[test]
    fn robert2019_iii_b_2_the_temperature_is_set_back_once_the_energy_falls_under_a_threshold() {
        let annealing = Annealing {
            neighbour: stands,
            temperature: &|_| 1.0,
            restart: Restart::Threshold { share: 0.8 },
            revisits: Revisits::Free,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut restarts =
            |before, now| annealing.restarts([Some(100.0), Some(before), Some(now)], &mut rng);
        assert!(restarts(90.0, 79.0) && restarts(80.0, 79.0));
        assert!(!restarts(79.0, 70.0), "it is under the threshold already");
        assert!(!restarts(100.0, 80.0) && !restarts(79.0, 90.0));
    }

    #[test]
    fn robert2019_ii_b_2_what_is_slower_is_accepted_by_temperature() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!(accepts(10.0, 10.0, 0.0, &mut rng) && accepts(10.0, 9.0, 0.0, &mut rng));
        assert!((0..100).all(|_| !accepts(10.0, 11.0, 0.0, &mut rng)));
        // exp(-1): 368 of 1000, standard deviation 15.
        let count = (0..1000).filter(|_| accepts(10.0, 15.0, 5.0, &mut rng));
        assert!((308..428).contains(&count.count()));
    }
}
