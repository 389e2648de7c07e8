//! Load test: many clients send the start and finish of runs; reports throughput and latency.
//!
//! Each client does one run after another, on the studies in turn. Run as root; prints JSON.

use std::collections::BTreeMap;
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
    Job, Method, Request, StartAnswer, StartRequest, Step,
};
use serde::Serialize;
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
    /// What the names of their applications begin with.
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

/// Real prologs mostly have a munged each. Here one serves all: stay below its socket's queue.
const MUNGE_CALLS: usize = 32;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let client = match ClientConfig::load(&arguments.config).and_then(|c| Client::new(&c)) {
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
}

impl Seen {
    fn add(&mut self, other: Seen) {
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
    let mut living = JoinSet::new();
    let began = Instant::now();
    for _ in 0..arguments.clients {
        let (arguments, client) = (Arc::clone(&arguments), client.clone());
        let next = Arc::clone(&next);
        living.spawn(async move {
            let mut seen = Seen::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= arguments.lives {
                    return seen;
                }
                match life(&arguments, &client, number, &mut seen).await {
                    Ok(()) => seen.lives += 1,
                    Err(error) => *seen.failures.entry(error.to_string()).or_default() += 1,
                }
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
    Summary {
        seconds: began.elapsed().as_secs_f64(),
        lives: seen.lives,
        failed: seen.failures.values().sum(),
        failures: seen.failures.into_iter().take(5).collect(),
        starts: Times::of(seen.starts),
        finishes: Times::of(seen.finishes),
        roles: seen.roles,
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
        job: job(arguments, number),
        request: Request {
            app: Some(format!("{}-{}", arguments.app, number % arguments.studies)),
            ..Request::default()
        },
        limit_seconds: None,
    };
    let began = Instant::now();
    let call = post("/v1/runs/start", &start);
    let answer: StartAnswer = client.call(call, deadline).await?;
    seen.starts.push(milliseconds(began));
    *seen.roles.entry(answer.role.to_string()).or_default() += 1;
    if arguments.starts_only {
        return Ok(());
    }
    let finish = finish(start, answer);
    let began = Instant::now();
    let call = post("/v1/runs/finish", &finish);
    let _: FinishAnswer = client.call(call, deadline).await?;
    seen.finishes.push(milliseconds(began));
    Ok(())
}

fn post<'a, B>(path: &'a str, body: &'a B) -> Call<'a, B> {
    Call {
        method: Method::Post,
        path,
        body: Some(body),
        idempotent: true,
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn job(arguments: &Arguments, number: u32) -> Job {
    Job {
        cluster: arguments.cluster.clone(),
        job_id: arguments.first_job_id + number,
        restart_count: 0,
        uid: 1000,
        gid: 1000,
        user: None,
        node: format!("n{}", number % 4 + 1),
        nodes: 1,
        partition: "main".into(),
        cpus_per_node: "8".into(),
    }
}

/// The epilog's report of a job that used what it was given.
fn finish(start: StartRequest, answer: StartAnswer) -> FinishRequest {
    let elapsed = elapsed(&answer.parametrization.key(), start.job.job_id);
    let applied = if answer.delivery.files.is_empty() {
        Applied::Default
    } else {
        Applied::Parametrization {
            parametrization: answer.parametrization,
        }
    };
    FinishRequest {
        prolog_at: None,
        observed: Vec::new(),
        job: start.job,
        request: start.request,
        run_id: Some(answer.run_id),
        start_failure: None,
        applied,
        steps: vec![Step {
            step_id: Step::BATCH,
            duration_ns: Some(elapsed),
            wait_status: 0,
            nodes: 1,
            variables: BTreeMap::new(),
        }],
        in_force: BTreeMap::new(),
        epilog: Some(EpilogOutcome {
            exit_code: "0:0".into(),
            derived_exit_code: "0:0".into(),
            limit_seconds: Some(3600),
        }),
        measures: BTreeMap::new(),
    }
}

/// Nanoseconds: each parametrization has a level of 16 to 24 s, and runs scatter by up to 5 %.
fn elapsed(parametrization: &str, job_id: u32) -> u64 {
    let level = 16_000_000_000 + hash(&parametrization) % 8_000_000_000;
    level / 100 * (95 + hash(&(parametrization, job_id)) % 11)
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
