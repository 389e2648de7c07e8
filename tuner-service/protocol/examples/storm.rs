//! Load test: many starts of one study at once, from a job array or from the nodes of one job. Run
//! as root; prints one JSON object.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use io_autotune_protocol::{
    Call, Client, ClientConfig, ClientError, Job, Method, Request, StartAnswer, StartRequest,
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
    /// Their application.
    #[arg(long, default_value = "storm")]
    app: String,
    /// Their user and group.
    #[arg(long, default_value_t = 1000)]
    uid: u32,
    /// CPUs that each has of its node, a part of the study's context.
    #[arg(long, default_value = "8")]
    cpus_per_node: String,
    /// How many.
    #[arg(long, default_value_t = 1000)]
    starts: u32,
    /// The first one's id; the others count on from it.
    #[arg(long, default_value_t = 1_000_000)]
    first_job_id: u32,
    /// All are nodes of one job, which ask for what is theirs.
    #[arg(long)]
    one_job: bool,
    /// When each gives up, in milliseconds: the prolog's deadline.
    #[arg(long, default_value_t = 2000)]
    deadline_ms: u64,
}

#[derive(Serialize)]
struct Summary {
    asked: u32,
    answered: usize,
    failed: usize,
    /// A few error messages, with counts.
    failures: BTreeMap<String, usize>,
    median_ms: u128,
    p99_ms: u128,
    slowest_ms: u128,
    roles: BTreeMap<String, usize>,
    exploring: usize,
    /// Distinct parametrizations of the exploring runs.
    explored: usize,
}

/// Real prologs mostly have a munged each. Here one serves all: stay below its socket's queue.
const MUNGE_CALLS: usize = 32;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let client =
        match ClientConfig::load(&arguments.config).and_then(|c| Client::new(&c.for_node())) {
            Ok(client) => client,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "storm: {error}");
                return ExitCode::FAILURE;
            }
        };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MUNGE_CALLS)
        .build();
    let summary = match runtime {
        Ok(runtime) => runtime.block_on(storm(&arguments, &client)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "storm: {error}");
            return ExitCode::FAILURE;
        }
    };
    match serde_json::to_string(&summary) {
        Ok(text) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

async fn storm(arguments: &Arguments, client: &Client) -> Summary {
    let barrier = Arc::new(Barrier::new(arguments.starts as usize));
    let deadline = Duration::from_millis(arguments.deadline_ms);
    let mut asking = JoinSet::new();
    for number in 0..arguments.starts {
        let (client, barrier) = (client.clone(), Arc::clone(&barrier));
        let request = request(arguments, number);
        asking.spawn(async move {
            barrier.wait().await;
            let began = Instant::now();
            let call = Call {
                method: Method::Post,
                path: "/v1/runs/start",
                body: Some(&request),
                idempotent: true,
            };
            let answer: Result<StartAnswer, ClientError> = client.call(call, deadline).await;
            (answer, began.elapsed())
        });
    }
    let mut times = Vec::new();
    let mut answers = Vec::new();
    let mut failures = BTreeMap::new();
    while let Some(asked) = asking.join_next().await {
        match asked {
            Ok((Ok(answer), time)) => {
                times.push(time.as_millis());
                answers.push(answer);
            }
            Ok((Err(error), _)) => *failures.entry(error.to_string()).or_insert(0) += 1,
            Err(error) => *failures.entry(error.to_string()).or_insert(0) += 1,
        }
    }
    times.sort_unstable();
    let mut roles = BTreeMap::new();
    for answer in &answers {
        *roles.entry(answer.role.to_string()).or_insert(0) += 1;
    }
    let exploring: Vec<_> = answers.iter().filter(|a| a.role.explores()).collect();
    let explored: BTreeSet<_> = exploring.iter().map(|a| a.parametrization.key()).collect();
    Summary {
        asked: arguments.starts,
        answered: answers.len(),
        failed: failures.values().sum(),
        failures: failures.into_iter().take(5).collect(),
        median_ms: times.get(times.len() / 2).copied().unwrap_or_default(),
        p99_ms: times
            .get(times.len() * 99 / 100)
            .copied()
            .unwrap_or_default(),
        slowest_ms: times.last().copied().unwrap_or_default(),
        roles,
        exploring: exploring.len(),
        explored: explored.len(),
    }
}

fn request(arguments: &Arguments, number: u32) -> StartRequest {
    let (job, node, nodes) = if arguments.one_job {
        (0, number + 1, arguments.starts)
    } else {
        (number, number % 4 + 1, 1)
    };
    StartRequest {
        job: Job {
            cluster: arguments.cluster.clone(),
            job_id: arguments.first_job_id + job,
            restart_count: 0,
            sluid: None,
            uid: arguments.uid,
            gid: arguments.uid,
            user: None,
            node: format!("n{node}"),
            nodes,
            partition: "main".into(),
            cpus_per_node: arguments.cpus_per_node.clone(),
        },
        request: Request {
            app: Some(arguments.app.clone()),
            ..Request::default()
        },
        limit_seconds: None,
        started_at: None,
        node_state: None,
    }
}
