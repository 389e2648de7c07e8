//! Splits numbers into two groups.

/// The smaller group holds at least one run in this many, and at least two.
const SMALLEST_SHARE: usize = 5;

/// The minimum size of a group among this many runs.
pub(super) fn smallest_group(runs: usize) -> usize {
    runs.div_ceil(SMALLEST_SHARE).max(2)
}

/// The two groups of some numbers with the least sum of squares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    pub(super) low: f64,
    pub(super) high: f64,
    /// The share of the numbers in the higher group.
    pub(super) high_share: f64,
    /// The sum of squares within the groups.
    pub(super) squares: f64,
    pub(super) runs: usize,
}

impl Groups {
    /// The groups of ascending numbers, each of at least `smallest`; none if there are too few.
    pub(super) fn of(ascending: &[f64], smallest: usize) -> Option<Self> {
        let runs = ascending.len();
        let mean = ascending.iter().sum::<f64>() / runs as f64;
        let total: f64 = ascending.iter().map(|number| (number - mean).powi(2)).sum();
        let mut below = 0.0;
        let mut best: Option<Self> = None;
        for (place, number) in ascending.iter().enumerate() {
            below += number - mean;
            let (lower, higher) = (place + 1, runs - place - 1);
            if lower < smallest || higher < smallest {
                continue;
            }
            let (low, high) = (below / lower as f64, -below / higher as f64);
            let between = low * low * lower as f64 + high * high * higher as f64;
            let squares = (total - between).max(0.0);
            if best.is_none_or(|best| squares < best.squares) {
                best = Some(Groups {
                    low: low + mean,
                    high: high + mean,
                    high_share: higher as f64 / runs as f64,
                    squares,
                    runs,
                });
            }
        }
        best
    }

    /// The standard deviation within the groups. The two means, and a shift if there is one, cost
    /// degrees of freedom.
    pub(super) fn spread(&self, is_shifted: bool) -> f64 {
        let fitted = 2 + usize::from(is_shifted);
        (self.squares / (self.runs - fitted) as f64).sqrt()
    }
}
