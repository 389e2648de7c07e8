//! All nodes of one job, or all tasks of an array, ask for a start at the same moment, each over a
//! connection of its own.
//!
//! Their requests are signed beforehand, and answers are read but not verified: what signing and
//! verifying takes is the nodes' own part, which thousands of nodes do side by side. Run as root.
//! Prints `signed`, waits for a line, asks, and prints JSON.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use io_autotune_protocol::signature::{NONCE_HEADER, Nonce, REQUEST_HEADER, sign_request};
use io_autotune_protocol::{ClientConfig, Endpoint, Job, Request, StartRequest};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[derive(Parser)]
struct Arguments {
    /// How the service is reached: its first address for nodes must be `tcp:`.
    #[arg(long, default_value = "/etc/io-autotune/client.toml")]
    config: PathBuf,
    /// The job's cluster.
    #[arg(long)]
    cluster: String,
    /// The job's application.
    #[arg(long, default_value = "nodes")]
    app: String,
    /// The job's id, or that of the array's first task.
    #[arg(long, default_value_t = 1)]
    job_id: u32,
    /// How many nodes the job has, or tasks of one node the array.
    #[arg(long, default_value_t = 10_000)]
    nodes: u32,
    /// They are tasks of an array.
    #[arg(long)]
    array: bool,
    /// The deadline of a prolog, in milliseconds.
    #[arg(long, default_value_t = 2000.0)]
    deadline_ms: f64,
}

#[derive(Serialize)]
struct Summary {
    answered: usize,
    answered_in_time: usize,
    /// Other answers than that of a start, with counts.
    failures: BTreeMap<String, usize>,
    /// When the middle one and the last had their answer, in milliseconds.
    median: f64,
    last: f64,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "nodes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failed> {
    let config = ClientConfig::load(&arguments.config)?.for_node();
    let Some(Endpoint::Tcp(address)) = config.endpoints.first() else {
        return Err("the first address for nodes is not tcp:HOST:PORT".into());
    };
    let requests = (0..arguments.nodes)
        .map(|node| signed(arguments, &config, node))
        .collect::<Result<Vec<_>, _>>()?;
    writeln!(std::io::stdout(), "signed")?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let summary = runtime.block_on(ask_all(address, requests, arguments.deadline_ms));
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&summary)?)?;
    Ok(())
}

/// A node's request, as it is sent.
fn signed(arguments: &Arguments, config: &ClientConfig, node: u32) -> Result<Vec<u8>, Failed> {
    let (job_id, nodes) = match arguments.array {
        true => (arguments.job_id + node, 1),
        false => (arguments.job_id, arguments.nodes),
    };
    let start = StartRequest {
        started_at: None,
        node_state: None,
        job: Job {
            cluster: arguments.cluster.clone(),
            job_id,
            restart_count: 0,
            sluid: None,
            uid: 1000,
            gid: 1000,
            user: None,
            node: format!("n{}", node + 1),
            nodes,
            partition: "main".into(),
            cpus_per_node: "8".into(),
        },
        request: Request {
            app: Some(arguments.app.clone()),
            ..Request::default()
        },
        limit_seconds: None,
    };
    const PATH: &str = "/v1/runs/start";
    let (body, nonce) = (serde_json::to_vec(&start)?, Nonce::fresh()?);
    let service = config.service_uid()?;
    let credential = sign_request(&config.signer(), service, "POST", PATH, &nonce, &body)?;
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: io-autotuned\r\ncontent-type: application/json\r\n\
         {NONCE_HEADER}: {}\r\n{REQUEST_HEADER}: {credential}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        nonce.as_str(),
        body.len()
    );
    Ok([head.as_bytes(), &body].concat())
}

async fn ask_all(address: &str, requests: Vec<Vec<u8>>, deadline_ms: f64) -> Summary {
    let barrier = Arc::new(Barrier::new(requests.len() + 1));
    let mut asking = JoinSet::new();
    for request in requests {
        let (address, barrier) = (address.to_owned(), Arc::clone(&barrier));
        asking.spawn(async move {
            barrier.wait().await;
            ask(&address, &request).await
        });
    }
    barrier.wait().await;
    let began = Instant::now();
    let (mut times, mut failures) = (Vec::new(), BTreeMap::new());
    while let Some(asked) = asking.join_next().await {
        match asked.map_err(|error| error.to_string()).flatten() {
            Ok(()) => times.push(began.elapsed().as_secs_f64() * 1e3),
            Err(failure) => *failures.entry(failure).or_default() += 1,
        }
    }
    Summary {
        answered: times.len(),
        answered_in_time: times.iter().filter(|time| **time <= deadline_ms).count(),
        failures: failures.into_iter().take(5).collect(),
        median: times.get(times.len() / 2).copied().unwrap_or_default(),
        last: times.last().copied().unwrap_or_default(),
    }
}

/// Asks, and reads the answer to its end.
async fn ask(address: &str, request: &[u8]) -> Result<(), String> {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request).await?;
        let mut answer = Vec::with_capacity(4096);
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = asked.await.map_err(|error| error.to_string())?;
    match answer.starts_with(b"HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&answer).into_owned()),
    }
}
