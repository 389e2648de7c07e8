//! The noise of a replay: which measurement of a parametrization a run gets.

/// The random numbers of one run: a pure function of the replay's seed, the parametrization and the
/// number of its earlier runs. So methods with one seed get the same times for the same
/// parametrizations (common random numbers).
///
/// `mix` is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014). Sums are modulo 2^64, and G = 0x9e3779b97f4a7c15:
///
/// ```text
/// state  = mix(mix(mix(seed + G) + configuration + G) + nth + G)
/// word k = mix(state + k G),  k = 1, 2, 3
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Draw {
    /// `configuration` is the place in the table, `nth` the number of earlier runs; both from 0.
    pub fn new(seed: u64, configuration: u64, nth: u64) -> Self {
        let mut state = mix(seed.wrapping_add(GOLDEN));
        state = mix(state.wrapping_add(configuration).wrapping_add(GOLDEN));
        state = mix(state.wrapping_add(nth).wrapping_add(GOLDEN));
        Draw { state }
    }

    fn word(self, k: u64) -> u64 {
        mix(self.state.wrapping_add(GOLDEN.wrapping_mul(k)))
    }

    /// Uniform from 0 to below 1: `floor(word k / 2^11) / 2^53`. Independent for different k.
    pub fn unit(self, k: u64) -> f64 {
        (self.word(k) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform row, from 0: `floor(word 1 * rows / 2^64)`.
    pub fn row(self, rows: usize) -> usize {
        let scaled = (u128::from(self.word(1)) * rows as u128) >> 64;
        usize::try_from(scaled).unwrap_or_default()
    }

    /// A standard normal number (Box and Muller 1958): `sqrt(-2 ln u) cos(2 pi v)` with u =
    /// (floor(word 2 / 2^11) + 1) / 2^53 and v = floor(word 3 / 2^11) / 2^53.
    pub fn normal(self) -> f64 {
        // Exact, and never 0, whose logarithm is infinite.
        let u = self.unit(2) + 1.0 / (1_u64 << 53) as f64;
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * self.unit(3)).cos()
    }

    /// A log-normal factor of mean 1 and relative standard deviation r: `exp(s z - s^2 / 2)` with
    /// `s^2 = ln(1 + r^2)` and z of [`Draw::normal`].
    pub fn factor(self, relative_sd: f64) -> f64 {
        let variance = (relative_sd * relative_sd).ln_1p();
        (variance.sqrt() * self.normal() - variance / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_as_written() {
        // Computed by the formula above in Python.
        let draw = Draw::new(7, 3, 1);
        assert_eq!(draw.row(1 << 20), 956_532);
        assert!((draw.normal() - 0.7845750244476247).abs() < 1e-12);
        assert_eq!(draw.factor(0.0), 1.0);
    }

    #[test]
    fn rows_are_equally_likely_and_factors_keep_the_mean() {
        const DRAWS: u64 = 40_000;
        let mut counts = [0_u32; 5];
        let (mut sum, mut squares) = (0.0, 0.0);
        for nth in 0..DRAWS {
            let draw = Draw::new(1, 2, nth);
            counts[draw.row(5)] += 1;
            let factor = draw.factor(0.3);
            sum += factor;
            squares += factor * factor;
        }
        // Five standard errors: of a count 80, of a mean 0.0015.
        for count in counts {
            assert!(count.abs_diff(8000) < 400, "{counts:?}");
        }
        let mean = sum / DRAWS as f64;
        let sd = (squares / DRAWS as f64 - mean * mean).sqrt();
        assert!((mean - 1.0).abs() < 0.0075, "{mean}");
        assert!((sd - 0.3).abs() < 0.01, "{sd}");
    }

    #[test]
    fn every_argument_matters() {
        let draws = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0)]
            .map(|(seed, configuration, nth)| Draw::new(seed, configuration, nth).state);
        let distinct: std::collections::BTreeSet<u64> = draws.into_iter().collect();
        assert_eq!(distinct.len(), draws.len());
    }
}
