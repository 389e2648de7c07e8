//! The agent that tunes inside a job: a process of its own, which in every period reads what the
//! I/O path did and moves levers by a policy.
//!
//! It opens all files that it needs as root, then [confines](io_autotune_protocol::confine) itself:
//! it runs as nobody, opens nothing more, and reaches no network. It moves nothing before the
//! helper releases it, by which time the helper has saved the levers' values and this process's id.
//! If the helper dies before, the agent ends. Hooks end it, and restore the levers, whatever it
//! did.

pub(crate) mod journal;
mod lever;
pub(crate) mod statistics;

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use io_autotune_online::{
    Action, Contention, Directions, IoPathTune, Lever, Observation, Policy, Reason, Responsive,
    Settling,
};
use io_autotune_protocol::{OnlineEntry, OnlinePolicy, OnlineReason, confine};
use nix::libc;
use nix::poll::ppoll;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::setsid;
use serde::{Deserialize, Serialize};

use crate::cgroup;
use journal::Journal;
use lever::Moved;
use statistics::{Counters, Source, Sources};

pub(crate) use lever::LeverFiles;

/// The memory limit of the agent and of its control group, in bytes.
pub(crate) const MEMORY_MOST: u64 = 8 * 1024 * 1024;
/// The share of a processor that the agent may use. The following is the processor time that it may
/// have used once it is ready.
const SHARE: f64 = 0.001;
const BEGINNING: Duration = Duration::from_millis(20);
/// The lines with which the agent and its helper signal to each other.
pub(crate) const READY: &str = "ready\n";
pub(crate) const GO: &str = "go\n";

/// The order for an agent, one line on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) policy: OnlinePolicy,
    pub(crate) period_ms: u64,
    pub(crate) levers: Vec<LeverFiles>,
    pub(crate) sources: Vec<Source>,
    /// The file in which the agent writes its journal.
    pub(crate) journal: PathBuf,
    /// The agent's control group, if the host has control groups.
    pub(crate) group: Option<PathBuf>,
}

/// Runs the agent. Returns only on an error, or if its helper died before releasing it.
pub(crate) fn run() -> io::Result<()> {
    let (mut told, mut out) = (io::stdin().lock(), io::stdout().lock());
    let prepared = prepared(&mut told);
    let said = match &prepared {
        Ok(_) => READY.to_owned(),
        Err(why) => format!("{why}\n"),
    };
    out.write_all(said.as_bytes())?;
    out.flush()?;
    let mut agent = prepared?;
    let mut go = String::new();
    told.read_line(&mut go)?;
    if go == GO {
        agent.turns();
    }
    Ok(())
}

/// Opens all files that the order names, then confines the process.
fn prepared(told: &mut impl BufRead) -> io::Result<Agent> {
    let mut line = String::new();
    told.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    // Leaves the session of the prolog, whose processes Slurm and the plugin end.
    setsid()?;
    if let Some(group) = &order.group {
        cgroup::enter(group)?;
    }
    open_many_files();
    let agent = Agent::new(&order)?;
    // The signal is only let in between two turns, so that the last turn is in the journal, too.
    let mut held = SigSet::empty();
    held.add(Signal::SIGTERM);
    held.thread_block()?;
    confine(None, MEMORY_MOST, &CALLS);
    Ok(agent)
}

/// The system calls that the agent makes besides reading and writing: its files at an offset,
/// memory, and the time.
const CALLS: [i64; 10] = [
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    // The calls at the end of a Rust program.
    libc::SYS_close,
];

/// Raises the limit of open files as far as it goes, because Lustre has many targets.
fn open_many_files() {
    let _ = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, most)| setrlimit(Resource::RLIMIT_NOFILE, most, most));
}

struct Agent {
    period: Duration,
    began: Instant,
    levers: Vec<lever::Opened>,
    sources: Sources,
    policy: Box<dyn Policy>,
    journal: Journal,
    /// The counters that the last turn has read, with the time.
    before: Option<(Counters, Instant)>,
    /// The values that the agent has set.
    set: Vec<u64>,
    /// True if another process moves the levers too.
    is_over: bool,
}

impl Agent {
    fn new(order: &Order) -> io::Result<Self> {
        let began: Vec<u64> = order.levers.iter().map(|lever| lever.began).collect();
        let bounds: Vec<Lever> = order.levers.iter().map(LeverFiles::bounds).collect();
        let levers = order.levers.iter().map(lever::Opened::open);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(&order.journal)?;
        Ok(Self {
            period: Duration::from_millis(order.period_ms),
            began: Instant::now(),
            levers: levers.collect::<io::Result<_>>()?,
            sources: Sources::open(&order.sources)?,
            policy: Box::new(Responsive::new(
                policy(order.policy, bounds, &began),
                &began,
            )),
            journal: Journal::new(file, order, &began),
            before: None,
            set: began,
            is_over: false,
        })
    }

    fn turns(&mut self) {
        // The first period begins with the job.
        self.began = Instant::now();
        self.before = self.sources.read().zip(Some(self.began));
        let mut due = self.began;
        loop {
            due += self.period;
            wait_until(due);
            if self.may_work() {
                self.turn();
            }
        }
    }

    /// Returns true if the agent has used less of a processor than it may.
    fn may_work(&self) -> bool {
        let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from);
        let most = BEGINNING + self.began.elapsed().mul_f64(SHARE);
        used.is_ok_and(|used| used <= most)
    }

    fn turn(&mut self) {
        let now = Instant::now();
        let read = self.sources.read();
        let before = std::mem::replace(&mut self.before, read.map(|read| (read, now)));
        let seen = read.zip(before).map(|(read, (before, then))| {
            read.since(&before, now.duration_since(then).as_secs_f64())
        });
        let (reason, moves) = if self.is_over {
            (None, 0)
        } else if !self.is_as_left() {
            self.is_over = true;
            (Some(OnlineReason::Foreign), 0)
        } else {
            match self.policy.act(seen.as_ref(), &self.set) {
                Some(action) => self.perform(&action),
                None => (None, 0),
            }
        };
        let at = now.duration_since(self.began);
        self.journal
            .add(entry(at, seen.as_ref(), &self.set, reason, moves));
    }

    fn is_as_left(&self) -> bool {
        let mut both = self.levers.iter().zip(&self.set);
        both.all(|(lever, set)| lever.is_at(*set))
    }

    fn perform(&mut self, action: &Action) -> (Option<OnlineReason>, u64) {
        let (mut reason, mut moves) = (reason(action.reason), 0);
        let all = self.levers.iter_mut().zip(&mut self.set);
        for (place, ((lever, set), to)) in all.zip(&action.values).enumerate() {
            if set == to {
                continue;
            }
            match lever.moves(*set, *to) {
                Moved::Taken => {
                    *set = *to;
                    moves += 1;
                }
                Moved::Refused(bounds) => {
                    self.policy.narrow(place, bounds);
                    reason = OnlineReason::Refused;
                }
            }
        }
        // A lever may move another along: Lustre raises max_dirty_mb with what may be in flight.
        for (lever, set) in self.levers.iter().zip(&self.set) {
            lever.holds(*set);
        }
        (Some(reason), moves)
    }
}

/// Waits for a time, or for the signal that ends the agent, which is let in only here.
fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let _ = ppoll(&mut [], Some(TimeSpec::from(left)), Some(SigSet::empty()));
    }
}

fn policy(of: OnlinePolicy, bounds: Vec<Lever>, began: &[u64]) -> Box<dyn Policy> {
    let published = |directions, contention| -> Box<dyn Policy> {
        Box::new(IoPathTune::new(bounds.clone(), directions, contention))
    };
    match of {
        OnlinePolicy::Iopathtune => published(Directions::Shared, Contention::Dirty),
        OnlinePolicy::IopathtuneEach => published(Directions::OfEach, Contention::Dirty),
        OnlinePolicy::IopathtuneRequests => {
            published(Directions::Shared, Contention::DirtyOrRequests)
        }
        OnlinePolicy::Settling => Box::new(Settling::new(bounds, began.to_vec())),
    }
}

fn reason(of: Reason) -> OnlineReason {
    match of {
        Reason::First => OnlineReason::First,
        Reason::Faster => OnlineReason::Faster,
        Reason::NotFaster => OnlineReason::NotFaster,
        Reason::Contention => OnlineReason::Contention,
        Reason::Try => OnlineReason::Try,
        Reason::Back => OnlineReason::Back,
        Reason::KnownWork => OnlineReason::KnownWork,
        Reason::OtherWork => OnlineReason::OtherWork,
        Reason::Unresponsive => OnlineReason::Unresponsive,
    }
}

fn entry(
    at: Duration,
    seen: Option<&Observation>,
    set: &[u64],
    reason: Option<OnlineReason>,
    moves: u64,
) -> OnlineEntry {
    let of = |part: fn(&Observation) -> f64| seen.map_or(0, |seen| part(seen).max(0.0) as u64);
    OnlineEntry {
        at_ms: at.as_millis().try_into().unwrap_or(u64::MAX),
        periods: 1,
        bandwidth: of(|seen| seen.bandwidth),
        requests: of(|seen| seen.requests),
        cached: of(|seen| seen.cached),
        dirty: of(|seen| seen.dirty),
        values: set.to_vec(),
        moves,
        reason,
    }
}
