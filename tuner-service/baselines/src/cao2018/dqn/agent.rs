//! The agent's learning: V. Mnih et al., "Human-level control through deep reinforcement learning"
//! (2015), algorithm 1. For random experiences the network moves towards `r + gamma * max over a'
//! of Q(s', a')`, with Q an older copy of the network; errors are clipped at 1.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::network::{Adam, Network};
use super::world::{Action, Encoder, Memory};
use io_autotune_model::space::Point;

/// The number of training steps; the number of experiences per step follows.
const STEPS: usize = 200;
const BATCH: usize = 32;
/// The steps between updates of the target network.
const RENEWED: usize = 40;
/// Adam's step size.
const STEP: f64 = 0.01;

#[derive(Debug)]
pub(super) struct Agent {
    network: Network,
}

impl Agent {
    pub(super) fn trained(
        encoder: &Encoder<'_>,
        memory: &Memory,
        discount: f64,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        Self::trained_for(STEPS, encoder, memory, discount, rng)
    }

    fn trained_for(
        steps: usize,
        encoder: &Encoder<'_>,
        memory: &Memory,
        discount: f64,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let inputs = encoder.inputs();
        let mut agent = Agent {
            network: Network::drawn(inputs, encoder.active(), rng),
        };
        if memory.experiences.is_empty() {
            return agent;
        }
        let mut led_to = vec![false; memory.states.len()];
        for experience in &memory.experiences {
            led_to[experience.to] = true;
        }
        let states: Vec<Vec<(usize, f64)>> =
            memory.states.iter().map(|s| encoder.state(s)).collect();
        let actions: Vec<Vec<Action>> = memory
            .states
            .iter()
            .zip(led_to)
            .map(|(state, led_to)| match led_to {
                true => encoder.actions(state, rng),
                false => Vec::new(),
            })
            .collect();
        let taken: Vec<Vec<(usize, f64)>> = memory
            .experiences
            .iter()
            .map(|experience| {
                let (from, to) = (experience.from, experience.to);
                let change = encoder.change(&memory.states[from], &memory.states[to]);
                states[from].iter().copied().chain(change).collect()
            })
            .collect();
        let mut adam = Adam::new(inputs, STEP);
        let mut gradient = Network::zero(inputs);
        let mut worth = Vec::new();
        for step in 0..steps {
            if step % RENEWED == 0 {
                let both = states.iter().zip(&actions);
                worth = both
                    .map(|(state, actions)| agent.worth(state, actions))
                    .collect();
            }
            gradient.clear();
            for _ in 0..BATCH {
                let drawn = rng.random_range(0..taken.len());
                let experience = memory.experiences[drawn];
                let target = experience.reward + discount * worth[experience.to];
                let hidden = agent.network.hidden(&taken[drawn]);
                let error = (agent.network.value(&hidden) - target).clamp(-1.0, 1.0);
                let factor = error / BATCH as f64;
                agent
                    .network
                    .add_gradient(&taken[drawn], &hidden, factor, &mut gradient);
            }
            adam.descend(&mut agent.network, &gradient);
        }
        agent
    }

    pub(super) fn values(&self, encoder: &Encoder<'_>, at: &Point, actions: &[Action]) -> Vec<f64> {
        self.values_at(&encoder.state(at), actions).collect()
    }

    fn values_at(&self, state: &[(usize, f64)], actions: &[Action]) -> impl Iterator<Item = f64> {
        let here = self.network.hidden(state);
        let at = move |action: &Action| self.network.moved(&here, &action.change);
        actions
            .iter()
            .map(move |action| self.network.value(&at(action)))
    }

    /// The largest value of an action at a state; 0 for staying.
    fn worth(&self, state: &[(usize, f64)], actions: &[Action]) -> f64 {
        self.values_at(state, actions).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_search::math::Portable;
    use rand::SeedableRng;

    use super::*;
    use io_autotune_search::history::by_point::View;
    use io_autotune_search::testing::{grid, history, tested};

    /// Two states, one e times as fast: logarithms are 0.5 from their mean, rewards are 2 and -2.
    /// Q of the fast one is -2 + 0.9 * 2, Q of the slow one is 2.
    #[test]
    fn the_value_of_an_action_is_its_reward_and_what_comes_after() {
        let space = grid(&[2]);
        let times = [(0, 1_f64.exponential()), (1, 1.0)];
        let entries = times.map(|(level, time)| tested(&space, &[level], &[time], level.into()));
        let history = history(entries.to_vec(), 2, 2);
        let encoder = Encoder::new(&space);
        let memory = Memory::new(&View::new(&space, &history, &[]), &encoder);
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let agent = Agent::trained_for(2000, &encoder, &memory, 0.9, &mut rng);
        for (at, wanted) in [(0, 2.0), (1, -0.2)] {
            let at = Point(vec![at]);
            let actions = encoder.actions(&at, &mut rng);
            let values = agent.values(&encoder, &at, &actions);
            assert_eq!(values.len(), 1);
            assert!((values[0] - wanted).abs() < 0.1, "{values:?} for {wanted}");
        }
    }
}
