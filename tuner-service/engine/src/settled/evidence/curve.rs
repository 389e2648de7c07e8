//! The sum of scores as a function of a shift of the control runs. A gain's interval is the set of
//! shifts for which the evidence stays below its bound. A fixed grid bounds the state. Sums are
//! integers in [`UNIT`]s, so the order of blocks does not matter.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::ranks;

const UNIT: f64 = 1e-4;

/// Shifts of log elapsed: every 0.0025 to 0.2, 0.01 to 1.5, 0.05 to 4, and the same below zero.
static SHIFTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let fine = (1..=80).map(|i| f64::from(i) * 0.0025);
    let middle = (21..=150).map(|i| f64::from(i) * 0.01);
    let coarse = (31..=80).map(|i| f64::from(i) * 0.05);
    let above: Vec<f64> = fine.chain(middle).chain(coarse).collect();
    let below = above.iter().rev().map(|shift| -shift);
    below.chain([0.0]).chain(above.iter().copied()).collect()
});

/// Sums over blocks, by shift, in [`UNIT`]s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Curve {
    scores: Vec<i64>,
    squares: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    /// The last grid shift before; none if the curve starts below.
    pub(super) before: Option<f64>,
    /// The first grid shift at or after; none if the curve stays above.
    pub(super) after: Option<f64>,
    pub(super) at: f64,
}

impl Curve {
    /// Adds a block: log elapsed of a control run and its tuned runs, infinite where censored.
    pub(super) fn add(&mut self, control: f64, tuned: &[f64]) {
        let mut tuned = tuned.to_vec();
        tuned.sort_by(f64::total_cmp);
        self.scores.resize(SHIFTS.len(), 0);
        self.squares.resize(SHIFTS.len(), 0);
        let sums = self.scores.iter_mut().zip(&mut self.squares);
        for (shift, (score, square)) in SHIFTS.iter().zip(sums) {
            let moved = control - shift;
            let below = tuned.partition_point(|run| *run < moved);
            let not_above = tuned.partition_point(|run| *run <= moved);
            let one = block_score(tuned.len(), below, not_above);
            *score += whole(one);
            *square += whole(one * one);
        }
    }

    pub(super) fn crossing(&self, level: f64) -> Crossing {
        let shifts = &*SHIFTS;
        let first = self
            .scores
            .partition_point(|score| sum(*score) > level + UNIT / 2.0);
        let before = first.checked_sub(1).map(|i| shifts[i]);
        let after = shifts.get(first).copied();
        let at = match (before, after) {
            (Some(before), Some(after)) => {
                let (above, below) = (sum(self.scores[first - 1]), sum(self.scores[first]));
                before + (after - before) * (above - level) / (above - below)
            }
            (one, other) => one.or(other).unwrap_or(0.0),
        };
        Crossing { before, after, at }
    }

    /// The shift with sum zero: Hodges and Lehmann's estimate. None if censored runs leave none.
    pub(super) fn centre(&self) -> Option<f64> {
        let least = UNIT;
        let (above, below) = (self.crossing(least), self.crossing(-least));
        let both = above.after.is_some() && below.after.is_some();
        let known = above.before.is_some() && below.before.is_some();
        (both && known).then(|| f64::midpoint(above.at, below.at))
    }

    /// The sum of squared scores at the grid shift nearest to `shift`.
    pub(super) fn squares(&self, shift: f64) -> f64 {
        let place = SHIFTS.partition_point(|one| *one < shift);
        let near = [place.saturating_sub(1), place.min(SHIFTS.len() - 1)];
        let nearest = near.into_iter().min_by(|a, b| {
            (SHIFTS[*a] - shift)
                .abs()
                .total_cmp(&(SHIFTS[*b] - shift).abs())
        });
        nearest.map_or(0.0, |i| sum(self.squares[i]))
    }
}

/// A block's score; a tie scores in between.
pub(super) fn block_score(tuned: usize, below: usize, not_above: usize) -> f64 {
    f64::midpoint(ranks::score(tuned, below), ranks::score(tuned, not_above))
}

#[expect(clippy::cast_possible_truncation, reason = "a score is below 10")]
fn whole(score: f64) -> i64 {
    (score / UNIT).round() as i64
}

fn sum(units: i64) -> f64 {
    units as f64 * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_falls_and_its_centre_is_the_shift_between_the_groups() {
        let mut curve = Curve::default();
        for block in 0..20 {
            let wobble = f64::from(block % 5) * 0.01;
            let tuned: Vec<f64> = (0..9).map(|run| f64::from(run) * 0.01).collect();
            curve.add(0.3 + wobble + 0.02, &tuned);
        }
        assert!(curve.scores.is_sorted_by(|a, b| a >= b));
        let centre = curve.centre().unwrap();
        assert!((centre - 0.3).abs() < 0.005, "{centre}");
        let low = curve.crossing(10.0);
        assert!(low.before.unwrap() <= low.at && low.at <= low.after.unwrap());
    }

    #[test]
    fn runs_that_were_cut_short_are_above_all_others() {
        let mut curve = Curve::default();
        curve.add(f64::INFINITY, &[0.0, 0.1]);
        assert_eq!(curve.centre(), None);
        assert_eq!(curve.crossing(0.0).after, None);
        let mut curve = Curve::default();
        curve.add(0.0, &[f64::INFINITY, f64::INFINITY]);
        assert_eq!(curve.crossing(0.0).before, None);
        let mut tie = Curve::default();
        tie.add(f64::INFINITY, &[f64::INFINITY]);
        assert!(tie.scores.iter().all(|score| *score == 0));
    }
}
