//! A deep Q-network as in Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2, 3 and 4.2): "states
//! correspond to configurations, actions mean changing to a different configuration, and rewards
//! are differences in evaluation results". It starts with the default, replays its experience, and
//! explores with probability 0.2.
//!
//! An action changes one parameter's value. The network takes state and action and gives one
//! number: what it learns of a value serves every action with that value. Nothing is stored: each
//! suggestion trains the network anew on the memory, in a fixed number of steps. The agent stands
//! at the point that was tested last; known points cost a step, not a run.

mod agent;
mod network;
mod world;

use std::collections::BTreeSet;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::settings::Cao2018Dqn;
use crate::annealing::changed;

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
        let Some(start) = memory.states.last() else {
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
            actions.retain(|action| {
                context.is_untested(&action.to) || !returned && known.contains(&action.to)
            });
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
            if context.is_untested(&to) {
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

/// The action with the highest value; of equals the one to the first point.
fn highest(values: &[f64], actions: &[Action]) -> usize {
    let to = |place: usize| -> &Point { &actions[place].to };
    (0..values.len())
        .max_by(|a, b| {
            let higher = values[*a].total_cmp(&values[*b]);
            higher.then_with(|| to(*b).cmp(to(*a)))
        })
        .unwrap_or_default()
}
