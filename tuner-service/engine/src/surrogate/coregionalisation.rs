//! Several tasks' processes in one: the intrinsic coregionalisation model.
//!
//! E. V. Bonilla, K. M. A. Chai, C. K. I. Williams, "Multi-task Gaussian process prediction" (2008),
//! equation 1: task t at x and task u at x' have the covariance `B[t, u] k(x, x')`. Here B is
//! `w w' + diag(kappa)`, which is positive semidefinite whatever w is, and the whole is a sum of such
//! parts, one for each cluster of parameters (the linear model of coregionalisation: M. A. Álvarez, L.
//! Rosasco, N. D. Lawrence, "Kernels for vector-valued functions: a review" 2012, section 4.2).

use super::kernel::Kernel;
use crate::space::{Point, Space};

/// The parameters that a task depends on, a bit for each place in the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cluster(u32);

impl Cluster {
    /// Every parameter.
    pub(crate) const ALL: Cluster = Cluster(u32::MAX);

    /// The parameters at these places.
    pub(crate) fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let bit = |place: usize| u32::try_from(place).ok().and_then(|n| 1_u32.checked_shl(n));
        Cluster(
            places
                .into_iter()
                .filter_map(bit)
                .fold(0, |all, bit| all | bit),
        )
    }

    /// Whether a parameter is one of them.
    pub(crate) fn contains(self, place: usize) -> bool {
        place < 32 && self.0 & (1 << place) != 0
    }

    /// The point as a task sees it: all others have their first level.
    pub(super) fn seen(self, space: &Space, point: &Point) -> Point {
        let mut seen = space.seen(point);
        for (place, level) in seen.0.iter_mut().enumerate() {
            if !self.contains(place) {
                *level = 0;
            }
        }
        seen
    }
}

/// `(w w' + diag(kappa))` of the tasks, times the kernel over a cluster of parameters.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) cluster: Cluster,
    pub(super) kernel: Kernel,
    /// w, for each task.
    pub(super) shared: Vec<f64>,
    /// kappa, for each task; none is below zero.
    pub(super) own: Vec<f64>,
}

impl Part {
    /// B of two tasks.
    pub(super) fn between(&self, task: usize, other: usize) -> f64 {
        let own = if task == other { self.own[task] } else { 0.0 };
        self.shared[task] * self.shared[other] + own
    }
}

/// The largest share of elapsed's variance that is left to processes over clusters.
const MOST_CLUSTERED: f64 = 0.95;

/// The parts of a model where elapsed, task 0, and each measure correlate at one point by so much, from -1
/// to 1.
///
/// A measure over all parameters shares the kernel of elapsed; measures correlate with each other as far as
/// both do with elapsed. One over a cluster has a process of its own there, of which elapsed has its
/// share beside what it is otherwise. Deviations are 1. `kernel` is that of all parameters, `measures`
/// are the correlation of each measure and, for one over a cluster, that with its kernel.
pub(super) fn parts(kernel: Kernel, measures: Vec<(f64, Option<(Cluster, Kernel)>)>) -> Vec<Part> {
    let count = measures.len() + 1;
    let squares = |(correlation, clustered): &(f64, Option<_>)| {
        clustered.as_ref().map(|_| correlation * correlation)
    };
    let clustered: f64 = measures.iter().filter_map(squares).sum();
    let shrunk = (MOST_CLUSTERED / clustered).min(1.0);
    let mut common = Part {
        cluster: Cluster::ALL,
        kernel,
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
