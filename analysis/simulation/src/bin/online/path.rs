//! A simulated I/O path: clients that send RPCs to servers they share. Its two levers are Lustre's
//! `max_pages_per_rpc` and `max_rpcs_in_flight`; numbers are made so that knees are where such paths
//! have them, and are of no machine.

use io_autotune_online::{Lever, Observation};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

pub(crate) const LEVERS: [Lever; 2] = [
    Lever {
        least: 1,
        most: 4096,
    },
    Lever {
        least: 1,
        most: 256,
    },
];
/// As Lustre's clients begin (`max_pages_per_rpc` of 1 MiB).
pub(crate) const DEFAULT: [u64; 2] = [256, 8];
/// Seconds.
const PERIOD: f64 = 10.0;

const PAGE: f64 = 4096.0;
/// From a client to servers and back, seconds: near and idle, far or busy, and between.
pub(crate) const LATENCIES: [(&str, f64); 3] = [("near", 2e-3), ("between", 6e-3), ("far", 2e-2)];
/// A client's link, bytes a second.
const LINK: f64 = 1.2e9;
/// All servers' disks together, bytes a second.
const DISKS: f64 = 1.6e9;
/// The share of it that a client alone reaches.
const ONE_CLIENT: f64 = 0.6;
/// The amount that servers take in before they get slower, bytes in flight of all clients.
const QUEUE: f64 = 768e6;
/// The amount that a client's page cache takes in before programs wait, bytes.
const CACHE: f64 = 2e9;
/// Standard deviations of logarithms: of a period, and of the servers' other load, which lasts.
const NOISE: f64 = 0.04;
const LOAD: f64 = 0.05;
const LOAD_STAYS: f64 = 0.9;

/// The work of a client's programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// The most contiguous bytes: no RPC is longer.
    contiguous: f64,
    /// The time that an RPC costs a server beside its bytes, seconds: seeks.
    cost: f64,
    /// The rate at which programs would move data without waiting, bytes a second.
    offered: f64,
}

/// By the names of the paper's tables 1 and 2.
pub(crate) const WORKLOADS: [Workload; 9] = [
    workload("random write, 8 KiB", 8e3, 4e-4, 3e8),
    workload("random write, 1 MiB", 1e6, 4e-4, 1e9),
    workload("random write, 16 MiB", 1.6e7, 4e-4, 1.2e9),
    workload("five-stream random write, 1 MiB", 1e6, 2e-4, 3e9),
    workload("sequential write, 1 MiB", 1.6e7, 1e-4, 4e8),
    workload("sequential read-write, 1 MiB", 1.6e7, 1.5e-4, 1.5e9),
    workload("whole file write, 16 MiB", 1.6e7, 1e-4, 3e9),
    workload("whole file read-write, 16 MiB", 1.6e7, 2e-4, 3e9),
    workload("random read-write, 1 MiB", 1e6, 5e-4, 1.5e9),
];

const fn workload(name: &'static str, contiguous: f64, cost: f64, offered: f64) -> Workload {
    Workload {
        name,
        contiguous,
        cost,
        offered,
    }
}

impl Workload {
    /// Any work: each number is log-uniform.
    pub(crate) fn drawn(rng: &mut ChaCha8Rng) -> Self {
        let mut between = |least: f64, most: f64| {
            let share: f64 = rng.random();
            least * (most / least).powf(share)
        };
        Workload {
            name: "drawn",
            contiguous: between(4e3, 1.6e7),
            cost: between(5e-5, 1e-3),
            offered: between(1e8, 4e9),
        }
    }
}

/// The servers, and what waits in each client's cache.
pub(crate) struct Path {
    latency: f64,
    rng: ChaCha8Rng,
    load: f64,
    dirty: Vec<f64>,
}

impl Path {
    pub(crate) fn new(latency: f64, rng: ChaCha8Rng, clients: usize) -> Self {
        Path {
            latency,
            rng,
            load: 0.0,
            dirty: vec![0.0; clients],
        }
    }

    /// One period, in which each client does its work with its levers set so.
    pub(crate) fn period(&mut self, clients: &[(Workload, Vec<u64>)]) -> Vec<Observation> {
        let spread = (1.0 - LOAD_STAYS * LOAD_STAYS).sqrt();
        self.load = LOAD_STAYS * self.load + spread * LOAD * normal(&mut self.rng);
        let quiet = bandwidths(self.latency, clients, self.load.exp());
        let seen = clients.iter().zip(quiet).zip(&mut self.dirty);
        seen.map(|(((work, set), quiet), dirty)| {
            let bandwidth = quiet * (NOISE * normal(&mut self.rng)).exp();
            let room = (CACHE - *dirty) / PERIOD;
            let cached = work.offered.min(bandwidth + room);
            *dirty = (*dirty + (cached - bandwidth) * PERIOD).max(0.0);
            Observation {
                dirty: *dirty,
                cached,
                requests: bandwidth / rpc(work, set),
                bandwidth,
            }
        })
        .collect()
    }
}

/// Bytes a second of each client, without noise. `load` is the servers' speed.
fn bandwidths(latency: f64, clients: &[(Workload, Vec<u64>)], load: f64) -> Vec<f64> {
    // What each would move if servers were endless, and is in flight for it.
    let alone: Vec<(f64, f64)> = clients
        .iter()
        .map(|(work, set)| {
            let (rpc, in_flight) = (rpc(work, set), set[1] as f64);
            let path = in_flight * rpc / (latency + work.cost + rpc / LINK);
            (knee(&[path, LINK, work.offered]), in_flight * rpc)
        })
        .collect();
    let in_flight: f64 = alone.iter().map(|(_, bytes)| bytes).sum();
    let wanted: f64 = alone.iter().map(|(wanted, _)| wanted).sum();
    let slowed = 1.0 / (1.0 + (in_flight / QUEUE).powi(2));
    let share = |client: usize| {
        let (work, set) = &clients[client];
        let rpc = rpc(work, set);
        // A server is busy with an RPC's seek, and then its bytes.
        let disks = DISKS * load * slowed;
        let reached = if clients.len() == 1 { ONE_CLIENT } else { 1.0 };
        let served = disks * reached * rpc / (rpc + work.cost * DISKS / 4.0);
        served * alone[client].0 / wanted
    };
    (0..clients.len())
        .map(|client| knee(&[alone[client].0, share(client)]))
        .collect()
}

/// The setting that moves most over these works, of a client alone: what a patient admin would find.
pub(crate) fn best_static(latency: f64, works: impl Iterator<Item = Workload> + Clone) -> Vec<u64> {
    let all = (0..=12).flat_map(|pages| (0..=8).map(move |rpcs| vec![1 << pages, 1 << rpcs]));
    let moved = |set: &Vec<u64>| -> f64 {
        let of = |work: Workload| bandwidths(latency, &[(work, set.clone())], 1.0)[0];
        works.clone().map(of).sum()
    };
    all.map(|set| (moved(&set), set))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map_or(DEFAULT.to_vec(), |(_, set)| set)
}

fn rpc(work: &Workload, set: &[u64]) -> f64 {
    (set[0] as f64 * PAGE).min(work.contiguous)
}

/// The smallest, a little less where two are near each other.
fn knee(limits: &[f64]) -> f64 {
    let sum: f64 = limits.iter().map(|limit| limit.powi(-4)).sum();
    sum.powf(-0.25)
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let (one, other): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}
