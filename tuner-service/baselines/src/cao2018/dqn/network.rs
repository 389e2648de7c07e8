//! A network of one hidden layer of rectified linear units, and Adam's descent.
//!
//! ```text
//! z = W x + b        q = v . max(z, 0) + c
//! ```

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub(super) const HIDDEN: usize = 32;

/// The non-zero inputs: indices and numbers. Repeated indices add up.
pub(super) type Input = [(usize, f64)];

pub(super) type Units = [f64; HIDDEN];

#[derive(Clone, Debug)]
pub(super) struct Network {
    /// W, a row for each input.
    weights: Vec<Units>,
    /// b, v and c; c is the first number of its row.
    rest: [Units; 3],
}

/// One number per weight: derivatives, or Adam's moments.
pub(super) type Gradient = Network;

impl Network {
    pub(super) fn zero(inputs: usize) -> Self {
        Network {
            weights: vec![[0.0; HIDDEN]; inputs],
            rest: [[0.0; HIDDEN]; 3],
        }
    }

    /// Weights that keep the variance of inputs, about `active` of which are not zero (K. He, X.
    /// Zhang, S. Ren, J. Sun 2015, equation 10); biases are zero.
    pub(super) fn drawn(inputs: usize, active: usize, rng: &mut ChaCha8Rng) -> Self {
        let mut network = Network::zero(inputs);
        let mut fill = |units: &mut Units, active: usize| {
            // A uniform number up to a has the variance a^2 / 3.
            let most = (6.0 / active.max(1) as f64).sqrt();
            *units = std::array::from_fn(|_| rng.random_range(-most..most));
        };
        for row in &mut network.weights {
            fill(row, active);
        }
        fill(&mut network.rest[1], HIDDEN);
        network
    }

    /// z of an input.
    pub(super) fn hidden(&self, input: &Input) -> Units {
        self.moved(&self.rest[0], input)
    }

    /// z after `more` has been added to the input.
    pub(super) fn moved(&self, hidden: &Units, more: &Input) -> Units {
        let mut hidden = *hidden;
        for (place, number) in more {
            for (unit, weight) in hidden.iter_mut().zip(&self.weights[*place]) {
                *unit += number * weight;
            }
        }
        hidden
    }

    /// q for a z.
    pub(super) fn value(&self, hidden: &Units) -> f64 {
        let [_, v, c] = &self.rest;
        let terms = hidden.iter().zip(v);
        c[0] + terms.map(|(z, v)| z.max(0.0) * v).sum::<f64>()
    }

    /// Adds `factor` times the derivatives of q at an input.
    pub(super) fn add_gradient(
        &self,
        input: &Input,
        hidden: &Units,
        factor: f64,
        gradient: &mut Gradient,
    ) {
        let [b, v, c] = &mut gradient.rest;
        c[0] += factor;
        let mut back = [0.0; HIDDEN];
        for (unit, z) in hidden.iter().enumerate() {
            if *z > 0.0 {
                v[unit] += factor * z;
                back[unit] = factor * self.rest[1][unit];
            }
            b[unit] += back[unit];
        }
        for (place, number) in input {
            for (sum, back) in gradient.weights[*place].iter_mut().zip(&back) {
                *sum += number * back;
            }
        }
    }

    pub(super) fn clear(&mut self) {
        for row in self.rows_mut() {
            *row = [0.0; HIDDEN];
        }
    }

    fn rows(&self) -> impl Iterator<Item = &Units> {
        self.weights.iter().chain(&self.rest)
    }

    fn rows_mut(&mut self) -> impl Iterator<Item = &mut Units> {
        self.weights.iter_mut().chain(&mut self.rest)
    }
}

/// Adam (D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization" 2015, algorithm 1 with
/// its constants, except for the step size).
#[derive(Debug)]
pub(super) struct Adam {
    step: f64,
    first: Gradient,
    second: Gradient,
    /// beta1^t and beta2^t.
    decayed: (f64, f64),
}

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

impl Adam {
    pub(super) fn new(inputs: usize, step: f64) -> Self {
        Adam {
            step,
            first: Network::zero(inputs),
            second: Network::zero(inputs),
            decayed: (1.0, 1.0),
        }
    }

    pub(super) fn descend(&mut self, network: &mut Network, gradient: &Gradient) {
        self.decayed.0 *= BETA1;
        self.decayed.1 *= BETA2;
        let (unbias1, unbias2) = (1.0 / (1.0 - self.decayed.0), 1.0 / (1.0 - self.decayed.1));
        let moments = self.first.rows_mut().zip(self.second.rows_mut());
        let rows = network.rows_mut().zip(gradient.rows()).zip(moments);
        for ((weights, gradients), (first, second)) in rows {
            for unit in 0..HIDDEN {
                let gradient = gradients[unit];
                first[unit] = BETA1 * first[unit] + (1.0 - BETA1) * gradient;
                second[unit] = BETA2 * second[unit] + (1.0 - BETA2) * gradient * gradient;
                let root = (second[unit] * unbias2).sqrt();
                weights[unit] -= self.step * first[unit] * unbias1 / (root + EPSILON);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn number(network: &mut Network, row: usize, unit: usize) -> &mut f64 {
        &mut network.rows_mut().nth(row).unwrap()[unit]
    }

    /// Every derivative against a central difference, at several inputs and networks.
    #[test]
    fn the_gradient_is_what_finite_differences_give() {
        const STEP: f64 = 1e-6;
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let inputs = 5;
        let mut largest: f64 = 0.0;
        for _ in 0..4 {
            let mut network = Network::drawn(inputs, 3, &mut rng);
            for row in &mut network.rest {
                *row = std::array::from_fn(|_| rng.random_range(-1.0..1.0));
            }
            let input: Vec<(usize, f64)> = [0, 2, 4, 2]
                .map(|place| (place, rng.random_range(-1.0..1.0)))
                .into();
            let factor = 1.7;
            let mut gradient = Network::zero(inputs);
            network.add_gradient(&input, &network.hidden(&input), factor, &mut gradient);
            for row in 0..inputs + 3 {
                for unit in 0..HIDDEN {
                    let at = |shift: f64| {
                        let mut moved = network.clone();
                        *number(&mut moved, row, unit) += shift;
                        factor * moved.value(&moved.hidden(&input))
                    };
                    let difference = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                    let derivative = *number(&mut gradient, row, unit);
                    assert!(
                        (difference - derivative).abs() < 1e-6,
                        "row {row}, unit {unit}: {difference} and {derivative}"
                    );
                    largest = largest.max(derivative.abs());
                }
            }
        }
        assert!(largest > 0.1, "no derivative to compare: {largest}");
    }

    #[test]
    fn what_is_added_to_the_input_moves_the_units_as_if_it_had_been_there() {
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        let network = Network::drawn(4, 2, &mut rng);
        let (some, more) = ([(0, 0.3), (2, -1.0)], [(3, 0.5), (0, 0.2)]);
        let all: Vec<(usize, f64)> = some.iter().chain(&more).copied().collect();
        let moved = network.moved(&network.hidden(&some), &more);
        for (moved, direct) in moved.iter().zip(network.hidden(&all)) {
            assert!((moved - direct).abs() < 1e-12);
        }
    }

    /// Exclusive or is not a linear function of its inputs.
    #[test]
    fn descent_learns_what_no_line_can() {
        let cases = [
            (0.0, 0.0, 0.0),
            (0.0, 1.0, 1.0),
            (1.0, 0.0, 1.0),
            (1.0, 1.0, 0.0),
        ];
        let mut network = Network::drawn(2, 2, &mut ChaCha8Rng::seed_from_u64(13));
        let mut adam = Adam::new(2, 0.01);
        let mut gradient = Network::zero(2);
        let mut error = f64::NAN;
        for _ in 0..500 {
            gradient.clear();
            error = 0.0;
            for (a, b, wanted) in cases {
                let input = [(0, a), (1, b)];
                let hidden = network.hidden(&input);
                let off = network.value(&hidden) - wanted;
                error += off * off / 4.0;
                network.add_gradient(&input, &hidden, off, &mut gradient);
            }
            adam.descend(&mut network, &gradient);
        }
        // The best line is off by 1/4.
        assert!(error < 0.001, "{error}");
    }
}
