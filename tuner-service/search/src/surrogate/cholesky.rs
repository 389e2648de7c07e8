//! The Cholesky factor of a positive definite matrix (Golub and Van Loan, algorithm 4.2.1).

use crate::math::Portable;

const BLOCK: usize = 8;

/// The lower triangle of a symmetric matrix, row by row.
#[derive(Clone, Debug)]
pub struct Symmetric {
    size: usize,
    rows: Vec<f64>,
}

impl Symmetric {
    /// The matrix whose entries below and on the diagonal are `entry(row, column)`.
    pub fn from_fn(size: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut rows = Vec::with_capacity(size * (size + 1) / 2);
        for row in 0..size {
            rows.extend((0..=row).map(|column| entry(row, column)));
        }
        Symmetric { size, rows }
    }

    /// The matrix with these entries below the diagonal, and one value on it.
    pub fn from_strict(size: usize, below: &[f64], diagonal: f64) -> Self {
        let mut rows = Vec::with_capacity(size * (size + 1) / 2);
        for row in 0..size {
            let start = row * row.saturating_sub(1) / 2;
            rows.extend_from_slice(&below[start..start + row]);
            rows.push(diagonal);
        }
        Symmetric { size, rows }
    }

    /// Adds a value to an entry of the diagonal.
    pub fn add(&mut self, row: usize, value: f64) {
        self.rows[start(row) + row] += value;
    }
}

/// The factor L, with L L' = A.
#[derive(Clone, Debug)]
pub struct Cholesky(Symmetric);

impl Cholesky {
    /// Factors a matrix. None if it is not positive definite.
    pub fn new(mut matrix: Symmetric) -> Option<Self> {
        for first in (0..matrix.size).step_by(BLOCK) {
            let last = matrix.size.min(first + BLOCK);
            solve_block(&mut matrix.rows, first, last);
            for row in first..last {
                let (above, from) = matrix.rows.split_at_mut(start(row));
                let current = &mut from[..=row];
                for column in first..row {
                    let other = &above[start(column)..=start(column) + column];
                    let known = super::dot(&current[..column], &other[..column]);
                    current[column] = (current[column] - known) / other[column];
                }
                let rest = current[row] - super::dot(&current[..row], &current[..row]);
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                current[row] = rest.sqrt();
            }
        }
        Some(Cholesky(matrix))
    }

    /// L^-1 b.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut solution: Vec<f64> = Vec::with_capacity(b.len());
        for (row, b) in b.iter().enumerate() {
            let factors = self.row(row);
            let known = super::dot(&factors[..row], &solution);
            solution.push((b - known) / factors[row]);
        }
        solution
    }

    /// L^-1 b for several b at once: `b[row][lane]`. The results are bit for bit those for each b
    /// alone.
    pub fn solve_lanes<const LANES: usize>(&self, mut b: Vec<[f64; LANES]>) -> Vec<[f64; LANES]> {
        forward(&self.0.rows, &mut b);
        b
    }

    /// L'^-1 b.
    pub fn solve_transposed(&self, b: &[f64]) -> Vec<f64> {
        let mut solution = b.to_vec();
        for row in (0..b.len()).rev() {
            let factors = self.row(row);
            let value = solution[row] / factors[row];
            solution[row] = value;
            for (earlier, factor) in solution[..row].iter_mut().zip(factors) {
                *earlier -= factor * value;
            }
        }
        solution
    }

    /// Half the logarithm of A's determinant.
    pub fn half_log_determinant(&self) -> f64 {
        (0..self.0.size)
            .map(|row| self.row(row)[row].logarithm())
            .sum()
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.0.rows[start(row)..=start(row) + row]
    }
}

/// Fills a block's rows left of its diagonal: one triangular system with the factor above it.
fn solve_block(rows: &mut [f64], first: usize, last: usize) {
    let (above, block) = rows.split_at_mut(start(first));
    let offset = above.len();
    let mut lanes = vec![[0.0; BLOCK]; first];
    for row in first..last {
        let entries = &block[start(row) - offset..][..first];
        for (lanes, entry) in lanes.iter_mut().zip(entries) {
            lanes[row - first] = *entry;
        }
    }
    forward(above, &mut lanes);
    for row in first..last {
        let entries = &mut block[start(row) - offset..][..first];
        for (lanes, entry) in lanes.iter().zip(entries) {
            *entry = lanes[row - first];
        }
    }
}

/// L^-1 b in place, for several b.
fn forward<const LANES: usize>(rows: &[f64], b: &mut [[f64; LANES]]) {
    for row in 0..b.len() {
        let factors = &rows[start(row)..=start(row) + row];
        let (solved, rest) = b.split_at_mut(row);
        let Some(current) = rest.first_mut() else {
            break;
        };
        let mut values = *current;
        for (factor, earlier) in factors.iter().zip(solved) {
            for (value, earlier) in values.iter_mut().zip(earlier) {
                *value -= factor * *earlier;
            }
        }
        *current = values.map(|value| value / factors[row]);
    }
}

fn start(row: usize) -> usize {
    row * (row + 1) / 2
}
