//! Sends requests as root of nodes and admins do, for tests that simulate a site's life: each line
//! of input is a request, each line of output an answer, in the order in which answers arrive.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Parser;
use io_autotune_protocol::{Call, Client, ClientConfig, ClientError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

#[derive(Parser)]
struct Arguments {
    /// How the service is reached; several: requests say which, by its place.
    #[arg(long, required = true)]
    config: Vec<PathBuf>,
    /// How many requests are under way at once.
    #[arg(long, default_value_t = 32)]
    at_once: usize,
    /// When each is given up, in milliseconds.
    #[arg(long, default_value_t = 2000)]
    deadline_ms: u64,
}

/// A line of input.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    id: u64,
    /// The place of the configuration with which to send it.
    by: usize,
    path: String,
    /// The body of a POST; absent: a GET.
    body: Option<Value>,
    /// True if it must not be sent to another replica once a replica has received it.
    once: bool,
}

/// A line of output.
#[derive(Serialize)]
struct Answered {
    id: u64,
    milliseconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    /// The reason why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The largest answer, in bytes: above any study in full.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;

/// The most calls of MUNGE at the same time. One munged serves all calls here, so they must stay
/// below its socket's queue.
const MUNGE_CALLS: usize = 32;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "calls: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let mut clients = Vec::new();
    for config in &arguments.config {
        let client = Client::new(&ClientConfig::load(config)?)?;
        clients.push(client.reading(ANSWER_LIMIT));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MUNGE_CALLS)
        .build()?;
    let places = Arc::new(Semaphore::new(arguments.at_once));
    let deadline = Duration::from_millis(arguments.deadline_ms);
    let (told, answers) = channel::<Answered>();
    let printing = std::thread::spawn(move || print_all(&answers));
    for line in std::io::stdin().lock().lines() {
        let asked: Asked = serde_json::from_str(&line?)?;
        let client = clients.get(asked.by).ok_or("no such configuration")?;
        let (client, told) = (client.clone(), told.clone());
        let place = runtime.block_on(Arc::clone(&places).acquire_owned())?;
        runtime.spawn(async move {
            let _ = told.send(ask(&client, asked, deadline).await);
            drop(place);
        });
    }
    let all = runtime.block_on(places.acquire_many(u32::try_from(arguments.at_once)?))?;
    drop((told, all));
    printing.join().map_err(|_| "printing ended badly")??;
    Ok(())
}

fn print_all(answers: &Receiver<Answered>) -> std::io::Result<()> {
    for answered in answers {
        let mut line = serde_json::to_vec(&answered)?;
        line.push(b'\n');
        std::io::stdout().write_all(&line)?;
    }
    Ok(())
}

async fn ask(client: &Client, asked: Asked, deadline: Duration) -> Answered {
    let call = Call {
        path: &asked.path,
        body: asked.body.as_ref(),
        idempotent: !asked.once,
    };
    let began = Instant::now();
    let answer: Result<Value, ClientError> = client.call(call, deadline).await;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let (answer, problem) = match answer {
        Ok(answer) => (Some(answer), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Answered {
        id: asked.id,
        milliseconds,
        answer,
        problem,
    }
}
