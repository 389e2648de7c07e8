//! The intrinsic coregionalisation model: several tasks in one process.
//!
//! E. V. Bonilla, K. M. A. Chai, C. K. I. Williams, "Multi-task Gaussian process prediction"
//! (2008), equation 1: task t at x and task u at x' have the covariance `B[t, u] k(x, x')`. Here B
//! is `w w' + diag(kappa)`, always positive semidefinite, in one part per cluster of parameters
//! (linear model of coregionalisation: M. A. Álvarez, L. Rosasco, N. D. Lawrence, "Kernels for
//! vector-valued functions: a review" 2012, section 4.2).

use super::kernel::Kernel;
use io_autotune_model::space::{Point, Space};

/// The parameters that a task depends on: a bit mask over their places in the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster(u32);

impl Cluster {
    /// Every parameter.
    pub const ALL: Cluster = Cluster(u32::MAX);

    /// The parameters that are in both.
    #[must_use]
    pub fn and(self, other: Cluster) -> Self {
        Cluster(self.0 | other.0)
    }

    /// The parameters at these places.
    pub fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let bit = |place: usize| u32::try_from(place).ok().and_then(|n| 1_u32.checked_shl(n));
        Cluster(
            places
                .into_iter()
                .filter_map(bit)
                .fold(0, |all, bit| all | bit),
        )
    }

    /// Returns true if the parameter at this place is one of them.
    pub fn contains(self, place: usize) -> bool {
        place < 32 && self.0 & (1 << place) != 0
    }

    /// The point as a task sees it: all parameters outside the cluster have their first level.
    pub fn seen(self, space: &Space, point: &Point) -> Point {
        let mut seen = space.seen(point);
        for (place, level) in seen.0.iter_mut().enumerate() {
            if !self.contains(place) {
                *level = 0;
            }
        }
        seen
    }
}

/// A part of the covariance: `(w w' + diag(kappa))` of the tasks, times the kernel over a cluster
/// of parameters.
#[derive(Debug)]
pub struct Part {
    /// The parameters that the kernel depends on.
    pub cluster: Cluster,
    /// The kernel.
    pub kernel: Kernel,
    /// w, for each task.
    pub shared: Vec<f64>,
    /// kappa, for each task; none is below zero.
    pub own: Vec<f64>,
}

impl Part {
    /// The entry of B for two tasks.
    pub fn between(&self, task: usize, other: usize) -> f64 {
        let own = if task == other { self.own[task] } else { 0.0 };
        self.shared[task] * self.shared[other] + own
    }
}

/// The largest share of elapsed's variance in parts over clusters.
const MOST_CLUSTERED: f64 = 0.95;

/// The parts of a model in which elapsed (task 0) and each measure have the given correlation (-1
/// to 1) at one point. Deviations are 1. `kernel` covers elapsed's cluster, which is all parameters
/// if it serves measures over all of them. A measure over a cluster has its own kernel, which also
/// explains a share of elapsed's variance.
pub fn parts(
    elapsed: (Cluster, Kernel),
    measures: Vec<(f64, Option<(Cluster, Kernel)>)>,
) -> Vec<Part> {
    let count = measures.len() + 1;
    let squares = |(correlation, clustered): &(f64, Option<_>)| {
        clustered.as_ref().map(|_| correlation * correlation)
    };
    let clustered: f64 = measures.iter().filter_map(squares).sum();
    let shrunk = (MOST_CLUSTERED / clustered).min(1.0);
    let mut common = Part {
        cluster: elapsed.0,
        kernel: elapsed.1,
        shared: vec![0.0; count],
        own: vec![0.0; count],
    };
    common.shared[0] = (1.0 - (clustered * shrunk).max(0.0)).sqrt();
    let mut apart = Vec::new();
    for (task, (correlation, clustered)) in (1..).zip(measures) {
        match clustered {
            None => {
                common.shared[task] = correlation;
                common.own[task] = 1.0 - correlation * correlation;
            }
            Some((cluster, kernel)) => {
                let mut shared = vec![0.0; count];
                shared[0] = correlation * shrunk.sqrt();
                shared[task] = 1.0;
                let own = vec![0.0; count];
                apart.push(Part {
                    cluster,
                    kernel,
                    shared,
                    own,
                });
            }
        }
    }
    let mut parts = vec![common];
    parts.append(&mut apart);
    parts
}
