//! States, actions and experience as numbers for the network.

use io_autotune_search::math::Portable;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use io_autotune_model::space::{ABSENT, Point, Space, levels_of};
use io_autotune_search::history::by_point::View;

/// The maximum number of inputs of a category; further values share them.
const MOST_INPUTS: u32 = 16;
/// The most levels of a parameter that are actions; of more levels this many are drawn.
const MOST_LEVELS: u32 = 16;
/// The maximum number of states in memory: those that were tested last.
const MOST_STATES: usize = 192;
/// The minimum spread of log elapsed that scales rewards.
const LEAST_SPREAD: f64 = 1e-6;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Action {
    pub(super) to: Point,
    /// The inputs that it changes, after those of the state.
    pub(super) change: Vec<(usize, f64)>,
}

/// The network's inputs: an ordered parameter's level from -1 to 1, one input per value of a
/// category, one for the existence of a conditional parameter. An action is the change of these.
#[derive(Debug)]
pub(super) struct Encoder<'a> {
    space: &'a Space,
    /// For each parameter its first input, its number of inputs, and the steps of an ordered one.
    places: Vec<(usize, u32, Option<f64>)>,
    /// The number of inputs of a state.
    length: usize,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(space: &'a Space) -> Self {
        let mut length = 0;
        let place = |parameter: &io_autotune_model::space::Parameter| {
            let levels = levels_of(parameter);
            let (inputs, steps) = if parameter.is_ordered() {
                (1, Some(f64::from((levels - 1).max(1))))
            } else {
                (levels.min(MOST_INPUTS), None)
            };
            let first = length;
            length += inputs as usize + usize::from(parameter.when.is_some());
            (first, inputs, steps)
        };
        let places = space.parameters().iter().map(place).collect();
        Encoder {
            space,
            places,
            length,
        }
    }

    pub(super) fn inputs(&self) -> usize {
        2 * self.length
    }

    /// The approximate number of non-zero inputs.
    pub(super) fn active(&self) -> usize {
        self.places.len() + 2
    }

    pub(super) fn state(&self, point: &Point) -> Vec<(usize, f64)> {
        let seen = self.space.seen(point);
        let mut inputs = Vec::with_capacity(self.active());
        for place in 0..self.places.len() {
            self.tell(place, seen.0[place], 1.0, 0, &mut inputs);
        }
        inputs
    }

    pub(super) fn change(&self, from: &Point, to: &Point) -> Vec<(usize, f64)> {
        let (from, to) = (self.space.seen(from), self.space.seen(to));
        let mut inputs = Vec::with_capacity(2);
        for (place, (before, after)) in from.0.iter().zip(&to.0).enumerate() {
            if before != after {
                self.tell(place, *before, -1.0, self.length, &mut inputs);
                self.tell(place, *after, 1.0, self.length, &mut inputs);
            }
        }
        inputs
    }

    fn tell(
        &self,
        place: usize,
        level: u32,
        sign: f64,
        offset: usize,
        inputs: &mut Vec<(usize, f64)>,
    ) {
        if level == ABSENT {
            return;
        }
        let (first, count, steps) = self.places[place];
        inputs.push(match steps {
            Some(steps) => {
                let centred = 2.0 * f64::from(level) / steps - 1.0;
                (offset + first, sign * centred)
            }
            None => (offset + first + (level % count) as usize, sign),
        });
        if self.space.parameters()[place].when.is_some() {
            inputs.push((offset + first + count as usize, sign));
        }
    }

    pub(super) fn actions(&self, from: &Point, rng: &mut ChaCha8Rng) -> Vec<Action> {
        let existing = self.space.existing(from);
        let mut actions = Vec::new();
        for (place, parameter) in self.space.parameters().iter().enumerate() {
            let levels = levels_of(parameter);
            if !existing.contains(place) {
                continue;
            }
            for level in 0..levels.min(MOST_LEVELS) {
                let mut to = from.clone();
                to.0[place] = if levels > MOST_LEVELS {
                    rng.random_range(0..levels)
                } else {
                    level
                };
                let to = self.space.canonical(to);
                if to != *from && self.space.admits(&to) {
                    let change = self.change(from, &to);
                    actions.push(Action { to, change });
                }
            }
        }
        actions
    }

    fn connects(&self, from: &Point, to: &Point, conditional: bool) -> bool {
        let mut differ = (0..self.places.len()).filter(|place| from.0[*place] != to.0[*place]);
        match (differ.next(), differ.next()) {
            (Some(_), None) => true,
            (Some(first), Some(second)) if conditional => {
                [first, second].into_iter().chain(differ).any(|place| {
                    let mut moved = from.clone();
                    moved.0[place] = to.0[place];
                    self.space.canonical(moved) == *to
                })
            }
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Experience {
    /// The state before, by its index in the memory.
    pub(super) from: usize,
    pub(super) to: usize,
    /// The fall of log elapsed, over its standard deviation over all states.
    pub(super) reward: f64,
}

/// The memory: "experience replay" (cao2018, section 4.2).
#[derive(Debug)]
pub(super) struct Memory {
    /// The states, of which the last is the one that was tested last.
    pub(super) states: Vec<Point>,
    /// Every pair of states that one action connects, both ways.
    pub(super) experiences: Vec<Experience>,
}

impl Memory {
    pub(super) fn new(view: &View<'_>, encoder: &Encoder<'_>) -> Self {
        let mut known: Vec<(i64, &Point, f64)> = view
            .iter()
            .filter_map(|(point, known)| {
                Some((known.first_ordinal, point, known.mean()?.logarithm()))
            })
            .collect();
        known.sort_by(|(a, point, _), (b, other, _)| a.cmp(b).then_with(|| point.cmp(other)));
        known.drain(..known.len().saturating_sub(MOST_STATES));
        let count = known.len().max(1) as f64;
        let mean = known.iter().map(|(.., log)| log).sum::<f64>() / count;
        let squares = known.iter().map(|(.., log)| (log - mean) * (log - mean));
        let spread = (squares.sum::<f64>() / count).sqrt().max(LEAST_SPREAD);
        let conditional = view.space.parameters().iter().any(|p| p.when.is_some());
        let mut experiences = Vec::new();
        for (from, (_, here, before)) in known.iter().enumerate() {
            for (to, (_, there, after)) in known.iter().enumerate() {
                if from != to && encoder.connects(here, there, conditional) {
                    experiences.push(Experience {
                        from,
                        to,
                        reward: (before - after) / spread,
                    });
                }
            }
        }
        Memory {
            states: known
                .into_iter()
                .map(|(_, point, _)| point.clone())
                .collect(),
            experiences,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use io_autotune_search::testing::{any_constrained, grid, history, storage, tested};

    #[test]
    fn cao2018_ii_2_an_action_changes_to_another_configuration() {
        let spaces = (0..20).map(any_constrained).chain([storage()]);
        let mut told = 0;
        for space in spaces {
            let encoder = Encoder::new(&space);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            for _ in 0..20 {
                let from = space.draw(&mut rng);
                let here = encoder.state(&from);
                for action in encoder.actions(&from, &mut rng) {
                    assert!(space.admits(&action.to));
                    assert!(encoder.connects(&from, &action.to, true));
                    assert!(!encoder.connects(&action.to, &action.to, true));
                    // The state and the change are the next state.
                    let mut sum = vec![0.0; encoder.length];
                    here.iter()
                        .for_each(|(place, number)| sum[*place] += number);
                    for (place, number) in &action.change {
                        sum[place - encoder.length] += number;
                    }
                    for (place, number) in encoder.state(&action.to) {
                        sum[place] -= number;
                    }
                    assert!(sum.iter().all(|rest| rest.abs() < 1e-12), "{sum:?}");
                    told += 1;
                }
            }
        }
        assert!(told > 500, "{told}");
    }

    #[test]
    fn cao2018_ii_2_rewards_are_differences_in_results() {
        let space = grid(&[4, 4]);
        let entries = [
            (vec![0, 0], 8.0, 0),
            (vec![3, 0], 4.0, 1),
            (vec![3, 2], 2.0, 2),
            (vec![1, 1], 1.0, 3),
        ];
        let entries = entries.map(|(at, time, ordinal)| tested(&space, &at, &[time], ordinal));
        let history = history(entries.to_vec(), 4, 4);
        let view = View::new(&space, &history, &[]);
        let memory = Memory::new(&view, &Encoder::new(&space));
        assert_eq!(memory.states.last(), Some(&Point(vec![1, 1])));
        // The logarithms are 3, 2, 1, 0 times ln 2, whose spread is the root of 1.25 times that.
        let one = 1.0 / 1.25_f64.sqrt();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for experience in &memory.experiences {
            found.push((experience.from, experience.to));
            let wanted = if experience.from < experience.to {
                one
            } else {
                -one
            };
            assert!((experience.reward - wanted).abs() < 1e-12, "{experience:?}");
        }
        assert_eq!(found, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    }
}
