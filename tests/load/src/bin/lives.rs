//! Load test: many clients send the start and finish of runs, or only starts; reports throughput
//! and latency.
//!
//! Each client does one run after another, on the studies in turn. Run as root; prints JSON. What is
//! left to chance is decided by hashes of the seed: a job fares alike whenever it is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use clap::Parser;
use io_autotune_protocol::{
    Applied, Call, Client, ClientConfig, ClientError, EpilogOutcome, FinishAnswer, FinishRequest,
    Job, ObservedParameter, Outcome, OutcomesAnswer, OutcomesRequest, ReadBack, Request,
    StartAnswer, StartRequest, Step,
};
use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[derive(Parser)]
struct Arguments {
    /// How the service is reached.
    #[arg(long, default_value = "/etc/io-autotune/client.toml")]
    config: PathBuf,
    /// The jobs' cluster.
    #[arg(long)]
    cluster: String,
    /// The beginning of the applications' names; of one application, the whole name.
    #[arg(long, default_value = "load")]
    app: String,
    /// How many lives.
    #[arg(long, default_value_t = 1000)]
    lives: u32,
    /// How many are lived at once.
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// How many applications they are of, each with one study.
    #[arg(long, default_value_t = 100)]
    studies: u32,
    /// The first run's job id; the others count on from it.
    #[arg(long, default_value_t = 1)]
    first_job_id: u32,
    /// When each request is given up, in milliseconds: the deadline of prolog and epilog.
    #[arg(long, default_value_t = 2000)]
    deadline_ms: u64,
    /// Ask for starts alone.
    #[arg(long)]
    starts_only: bool,
    /// CPUs that each job has of its node, a part of the study's context.
    #[arg(long, default_value = "8")]
    cpus_per_node: String,
    /// Whose jobs they are.
    #[arg(long, default_value_t = 1000)]
    uid: u32,
    /// How long each client rests after a life, in milliseconds.
    #[arg(long, default_value_t = 0)]
    rest_ms: u64,
    /// The seed of all that is left to chance.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The percentage of applications of which one run in five is FAILED, TIMEOUT, or, where it is tuned,
    /// OUT_OF_MEMORY. Outcomes are sent as the collector does; the service needs the source jobcomp.
    #[arg(long, default_value_t = 0)]
    failing: u64,
    /// The outcomes of jobs that end well are sent too: a service with sources counts no other.
    #[arg(long)]
    told: bool,
    /// This percentage of applications does two works in turn; one takes three times as long.
    #[arg(long, default_value_t = 0)]
    mixed: u64,
    /// This percentage of applications overrides one of the parameters.
    #[arg(long, default_value_t = 0)]
    overriding: u64,
    /// This percentage of applications takes, when tuned, twice as long after a while.
    #[arg(long, default_value_t = 0)]
    drifting: u64,
    /// That while: runs of each application, counted from job id 1.
    #[arg(long, default_value_t = 30)]
    drifting_after: u32,
}

impl Arguments {
    fn application(&self, job_id: u32) -> u32 {
        (job_id - self.first_job_id) % self.studies
    }

    /// Returns true if an application is among the given percentage that has a peculiarity.
    fn is_one(&self, of_hundred: u64, peculiarity: &str, application: u32) -> bool {
        hash(&(self.seed, peculiarity, application)) % 100 < of_hundred
    }
}

#[derive(Serialize)]
struct Summary {
    lives: usize,
    failed: usize,
    /// A few error messages, with counts.
    failures: BTreeMap<String, usize>,
    seconds: f64,
    starts: Times,
    finishes: Times,
    /// Runs by role.
    roles: BTreeMap<String, usize>,
    exploring: usize,
    /// Distinct parametrizations of the exploring runs.
    explored: usize,
}

/// Latencies of requests in milliseconds.
#[derive(Serialize)]
struct Times {
    median: f64,
    p99: f64,
    slowest: f64,
}

impl Times {
    fn of(mut milliseconds: Vec<f64>) -> Self {
        milliseconds.sort_by(f64::total_cmp);
        let last = milliseconds.len().saturating_sub(1);
        let at = |percent: usize| milliseconds.get(last * percent / 100).copied();
        Self {
            median: at(50).unwrap_or_default(),
            p99: at(99).unwrap_or_default(),
            slowest: at(100).unwrap_or_default(),
        }
    }
}

/// The most calls of MUNGE at the same time. Real prologs mostly have a munged each; here one
/// serves all, so calls must stay below its socket's queue.
const MUNGE_CALLS: usize = 32;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let client =
        match ClientConfig::load(&arguments.config).and_then(|c| Client::new(&c.for_node())) {
            Ok(client) => client,
            Err(error) => return failed(&error),
        };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MUNGE_CALLS)
        .build();
    let summary = match runtime {
        Ok(runtime) => runtime.block_on(all(Arc::new(arguments), client)),
        Err(error) => return failed(&error),
    };
    match serde_json::to_string(&summary) {
        Ok(text) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "lives: {error}");
    ExitCode::FAILURE
}

/// The results of one client.
#[derive(Default)]
struct Seen {
    starts: Vec<f64>,
    finishes: Vec<f64>,
    lives: usize,
    failures: BTreeMap<String, usize>,
    roles: BTreeMap<String, usize>,
    /// The parametrizations of exploring runs.
    exploring: Vec<String>,
    /// Outcomes that are sent late.
    late: Vec<Outcome>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.late.extend(other.late);
        self.exploring.extend(other.exploring);
        self.starts.extend(other.starts);
        self.finishes.extend(other.finishes);
        self.lives += other.lives;
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        for (role, count) in other.roles {
            *self.roles.entry(role).or_default() += count;
        }
    }
}

async fn all(arguments: Arc<Arguments>, client: Client) -> Summary {
    let next = Arc::new(AtomicU32::new(0));
    let barrier = Arc::new(Barrier::new(arguments.clients as usize));
    let mut living = JoinSet::new();
    let began = Instant::now();
    for _ in 0..arguments.clients {
        let (arguments, client) = (Arc::clone(&arguments), client.clone());
        let (next, barrier) = (Arc::clone(&next), Arc::clone(&barrier));
        living.spawn(async move {
            let mut seen = Seen::default();
            barrier.wait().await;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= arguments.lives {
                    return seen;
                }
                match life(&arguments, &client, number, &mut seen).await {
                    Ok(()) => seen.lives += 1,
                    Err(error) => *seen.failures.entry(error.to_string()).or_default() += 1,
                }
                tokio::time::sleep(Duration::from_millis(arguments.rest_ms)).await;
            }
        });
    }
    let mut seen = Seen::default();
    while let Some(client) = living.join_next().await {
        match client {
            Ok(client) => seen.add(client),
            Err(error) => *seen.failures.entry(error.to_string()).or_default() += 1,
        }
    }
    for outcomes in seen.late.chunks(OutcomesRequest::MOST) {
        if let Err(error) = tell(&arguments, &client, outcomes.to_vec()).await {
            *seen.failures.entry(error.to_string()).or_default() += 1;
        }
    }
    Summary {
        seconds: began.elapsed().as_secs_f64(),
        lives: seen.lives,
        failed: seen.failures.values().sum(),
        failures: seen.failures.into_iter().take(5).collect(),
        starts: Times::of(seen.starts),
        finishes: Times::of(seen.finishes),
        roles: seen.roles,
        explored: BTreeSet::from_iter(&seen.exploring).len(),
        exploring: seen.exploring.len(),
    }
}

async fn life(
    arguments: &Arguments,
    client: &Client,
    number: u32,
    seen: &mut Seen,
) -> Result<(), ClientError> {
    let deadline = Duration::from_millis(arguments.deadline_ms);
    let start = StartRequest {
        started_at: None,
        node_state: None,
        job: job(arguments, number),
        request: Request {
            app: Some(match arguments.studies {
                1 => arguments.app.clone(),
                studies => format!("{}-{}", arguments.app, number % studies),
            }),
            ..Request::default()
        },
        limit_seconds: None,
    };
    let began = Instant::now();
    let call = Call::post("/v1/runs/start", &start);
    let answer: StartAnswer = client.call(call, deadline).await?;
    seen.starts.push(milliseconds(began));
    *seen.roles.entry(answer.role.to_string()).or_default() += 1;
    if answer.role.explores() {
        seen.exploring.push(answer.parametrization.key());
    }
    if arguments.starts_only {
        return Ok(());
    }
    let job_id = start.job.job_id;
    let end = End::of(arguments, job_id, answer.delivery.is_empty());
    // The outcome is sent before the report, or later, when the run may have its verdict.
    if let Some(outcome) = end.outcome(arguments, job_id) {
        let is_late = hash(&(arguments.seed, "late", job_id)).is_multiple_of(2);
        if is_late && !matches!(end, End::Completed) {
            seen.late.push(outcome);
        } else {
            tell(arguments, client, vec![outcome]).await?;
        }
    }
    let finish = finish(arguments, start, answer, end);
    let began = Instant::now();
    let call = Call::post("/v1/runs/finish", &finish);
    let _: FinishAnswer = client.call(call, deadline).await?;
    seen.finishes.push(milliseconds(began));
    Ok(())
}

/// How a job ends.
#[derive(Clone, Copy)]
enum End {
    Completed,
    Failed,
    OutOfMemory,
    Timeout,
}

impl End {
    fn of(arguments: &Arguments, job_id: u32, is_default: bool) -> Self {
        if !arguments.is_one(arguments.failing, "failing", arguments.application(job_id)) {
            return Self::Completed;
        }
        match hash(&(arguments.seed, "end", job_id)) % 20 {
            0 | 1 => Self::Failed,
            2 if !is_default => Self::OutOfMemory,
            3 => Self::Timeout,
            _ => Self::Completed,
        }
    }

    /// The outcome record of Slurm. If no source is configured, a job that ended well needs none.
    fn outcome(self, arguments: &Arguments, job_id: u32) -> Option<Outcome> {
        let state = match self {
            Self::Completed if !arguments.told => return None,
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::OutOfMemory => "OUT_OF_MEMORY",
            Self::Timeout => "TIMEOUT",
        };
        Some(Outcome {
            job_id,
            state: state.into(),
            restart_count: Some(0),
            ..Outcome::default()
        })
    }

    /// Returns true if slurmd sees the job as failed. It does not see that of a job that reached
    /// its time limit.
    fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::OutOfMemory)
    }
}

/// Sends outcome records, as the collector does.
async fn tell(
    arguments: &Arguments,
    client: &Client,
    outcomes: Vec<Outcome>,
) -> Result<(), ClientError> {
    let request = OutcomesRequest {
        cluster: arguments.cluster.clone(),
        outcomes,
    };
    let call = Call::post("/v1/outcomes", &request);
    let deadline = Duration::from_millis(arguments.deadline_ms);
    let _: OutcomesAnswer = client.call(call, deadline).await?;
    Ok(())
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn job(arguments: &Arguments, number: u32) -> Job {
    Job {
        cluster: arguments.cluster.clone(),
        job_id: arguments.first_job_id + number,
        restart_count: 0,
        sluid: None,
        uid: arguments.uid,
        gid: arguments.uid,
        user: None,
        node: format!("n{}", number % 4 + 1),
        nodes: 1,
        partition: "main".into(),
        cpus_per_node: arguments.cpus_per_node.clone(),
    }
}

/// The report that the epilog of a job would send.
fn finish(
    arguments: &Arguments,
    start: StartRequest,
    answer: StartAnswer,
    end: End,
) -> FinishRequest {
    let job_id = start.job.job_id;
    let is_default = answer.delivery.is_empty();
    let elapsed = elapsed(arguments, &answer.parametrization.key(), is_default, job_id);
    let observed = observed(arguments, &answer.delivery.read_back, job_id);
    let applied = if observed.iter().any(|one| !one.as_asked) {
        Applied::Incomplete {
            detail: "the application has a value of its own in force".into(),
        }
    } else if is_default {
        Applied::Default
    } else {
        Applied::Parametrization {
            parametrization: answer.parametrization,
        }
    };
    let failed = end.is_failure();
    let exit_code = if failed { "1:0" } else { "0:0" };
    FinishRequest {
        prolog_at: None,
        observed,
        online: None,
        job: start.job,
        request: start.request,
        run_id: Some(answer.run_id),
        start_failure: None,
        applied,
        steps: vec![Step {
            step_id: Step::BATCH,
            started_at: None,
            duration_ns: Some(elapsed),
            wait_status: i32::from(failed) << 8,
            nodes: 1,
            variables: BTreeMap::new(),
        }],
        in_force: BTreeMap::new(),
        epilog: Some(EpilogOutcome {
            exit_code: exit_code.into(),
            derived_exit_code: exit_code.into(),
            limit_seconds: Some(3600),
        }),
        measures: BTreeMap::new(),
    }
}

/// The values that a profiling library in the job would report: none unless the application
/// overrides a parameter.
fn observed(arguments: &Arguments, read_back: &[ReadBack], job_id: u32) -> Vec<ObservedParameter> {
    let application = arguments.application(job_id);
    if !arguments.is_one(arguments.overriding, "overriding", application) {
        return Vec::new();
    }
    // The same parameter for all runs of an application, because parameters stay in their order.
    let overridden = hash(&(arguments.seed, "overridden", application)) as usize;
    let asked = overridden.checked_rem(read_back.len());
    let asked = asked.and_then(|place| read_back.get(place));
    asked.into_iter().map(overriding).collect()
}

fn overriding(asked: &ReadBack) -> ObservedParameter {
    ObservedParameter {
        parameter: asked.parameter.clone(),
        name: asked.name.clone(),
        asked: asked.asked.clone(),
        in_force: "own".into(),
        as_asked: asked.asked.is_none(),
    }
}

/// Elapsed in nanoseconds: each parametrization of an application has a time of 16 to 24 s, and
/// each run differs by up to 5 %.
fn elapsed(arguments: &Arguments, parametrization: &str, is_default: bool, job_id: u32) -> u64 {
    let (seed, application) = (arguments.seed, arguments.application(job_id));
    let level = 16_000_000_000 + hash(&(seed, application, parametrization)) % 8_000_000_000;
    let elapsed = level / 100 * (95 + hash(&(seed, parametrization, job_id)) % 11);
    let is_other_work = arguments.is_one(arguments.mixed, "mixed", application)
        && hash(&(seed, "work", job_id)).is_multiple_of(2);
    let is_slow = !is_default
        && job_id / arguments.studies >= arguments.drifting_after
        && arguments.is_one(arguments.drifting, "drifting", application);
    elapsed * if is_other_work { 3 } else { 1 } * if is_slow { 2 } else { 1 }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
