//! A deep Q-network as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2, 3 and 4.2): "states
//! correspond to configurations, actions mean changing to a different configuration, and rewards
//! are differences in evaluation results". It starts with the default, replays its experience, and
//! explores with probability 0.2.
//!
//! An action changes one parameter's value. The network takes state and action and gives one
//! number, so anything learnt about a value serves every action with that value. Nothing is stored:
//! each suggestion trains the network anew on the memory, in a fixed number of steps. The agent is
//! at the point that ran last, or that was tested last if known points cost a step and no run.

mod agent;
mod network;
mod world;

use std::collections::BTreeSet;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::settings::Cao2018Dqn;
use crate::annealing::changed;
use crate::revisits::{Revisits, runs_again};

use agent::Agent;
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};
use io_autotune_search::{Method, MethodContext, Proposal, random, replay};
use world::{Action, Encoder, Memory};

/// The maximum number of steps among known points.
const MOST_STEPS: usize = 64;
/// The replay step whose generator trains the network.
const TRAINING: u64 = 0;

impl Method for Cao2018Dqn {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        0
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        if let Some(wait) = context.nothing_known() {
            return wait;
        }
        let encoder = Encoder::new(context.space());
        let memory = Memory::new(context.view, &encoder);
        let latest = match self.revisits {
            Revisits::Run => context.view.latest(),
            Revisits::Free => None,
        };
        let Some(start) = latest.or(memory.states.last()) else {
            return random::draw(context, rng);
        };
        let mut training = replay::generator(rng, TRAINING);
        let agent = Agent::trained(&encoder, &memory, self.discount, &mut training);
        let mut state = start.clone();
        let known: BTreeSet<&Point> = memory.states.iter().collect();
        let mut visited = BTreeSet::new();
        for _ in 0..MOST_STEPS {
            let returned = !visited.insert(state.clone());
            let mut actions = encoder.actions(&state, rng);
            let runs =
                |to: &Point| context.is_untested(to) || runs_again(self.revisits, context, to);
            actions.retain(|action| runs(&action.to) || !returned && known.contains(&action.to));
            if actions.is_empty() {
                break;
            }
            let random = rng.random::<f64>() < self.exploration;
            let chosen = if random {
                rng.random_range(0..actions.len())
            } else {
                highest(&agent.values(&encoder, &state, &actions), &actions)
            };
            let to = actions.swap_remove(chosen).to;
            if runs(&to) {
                return Proposal::Run {
                    reason: Reason::Action {
                        from: context.space().parametrization(&state),
                        changed: changed(context.space(), &state, &to),
                        random,
                        experiences: memory.experiences.len() as u64,
                    },
                    point: to,
                };
            }
            state = to;
        }
        random::elsewhere(context, &state, rng)
    }
}

/// The action with the highest value; of equal ones the one to the first point.
fn highest(values: &[f64], actions: &[Action]) -> usize {
    let to = |place: usize| -> &Point { &actions[place].to };
    (0..values.len())
        .max_by(|a, b| {
            let higher = values[*a].total_cmp(&values[*b]);
            higher.then_with(|| to(*b).cmp(to(*a)))
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use io_autotune_search::testing::{grid, history, tested, with_context};
    use rand::SeedableRng;

    use super::*;

    /// Cao 2018, section 4.2: "0.2 [...] represents the probability of an agent taking random
    /// actions".
    #[test]
    fn cao2018_iv_2_a_fifth_of_the_actions_is_random() {
        let space = grid(&[4, 4]);
        let points = [vec![0, 0], vec![3, 0], vec![3, 2]];
        let entries = points.iter().zip([8.0, 4.0, 2.0]).zip(0..);
        let entries = entries.map(|((at, time), nth)| tested(&space, at, &[time], nth));
        let history = history(entries.collect(), 3, 3);
        let method = Cao2018Dqn::default();
        let random = (0..300).filter(|seed| {
            with_context(&space, &history, &[], &method, 1, |context| {
                let mut rng = ChaCha8Rng::seed_from_u64(*seed);
                match method.propose(context, &mut rng) {
                    Proposal::Run {
                        reason: Reason::Action { random, .. },
                        ..
                    } => random,
                    other => panic!("{other:?}"),
                }
            })
        });
        // 60 of 300, standard deviation 7.
        assert!((30..90).contains(&random.count()));
    }
}
