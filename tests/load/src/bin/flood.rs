//! Load test: sends the service what a malicious user would, as fast as it takes it. Run as that
//! user; prints one JSON object with the counts of answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use io_autotune_protocol::signature::{NONCE_HEADER, Nonce, REQUEST_HEADER, sign_request};
use io_autotune_protocol::{
    Addressed, Call, Client, ClientConfig, ClientError, Endpoint, Signer, WhyRequest,
};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

#[derive(Parser)]
struct Arguments {
    /// How the service is reached.
    #[arg(long, default_value = "/etc/io-autotune/client.toml")]
    config: PathBuf,
    /// Over TCP, not the Unix socket; for what is sent raw.
    #[arg(long)]
    tcp: bool,
    /// To the address for nodes, which is not for users.
    #[arg(long)]
    nodes: bool,
    /// How many connections at once.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// For how long, at least.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// And for as long as this file is there.
    #[arg(long)]
    while_there: Option<PathBuf>,
    /// The study, for resets.
    #[arg(long, default_value_t = 1)]
    study: i64,
    /// The length that a dripping body announces.
    #[arg(long, default_value_t = 60_000)]
    length: usize,
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// The API's description, four requests always under way on each connection.
    Openapi,
    /// Long lists of runs.
    Runs,
    /// Lists of studies.
    Studies,
    /// Resets of a study.
    Resets,
    /// Credentials that are none, sixteen always under way.
    Refused,
    /// Bodies of 1 MiB but for a byte, without a credential.
    Bodies,
    /// The user's own credential, and a body that never ends.
    Drip,
    /// Connections that say nothing.
    Silence,
}

/// The kinds of answers, with their counts.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<String, u64>>>);

impl Seen {
    fn count(&self, what: impl Into<String>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(what.into()).or_insert(0) += 1;
    }
}

struct Flood {
    arguments: Arguments,
    endpoint: Endpoint,
    client: Client,
    signer: Addressed<Signer>,
    service: u32,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ran = flood(arguments).and_then(|flood| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let seen = Seen::default();
        runtime.block_on(run(Arc::new(flood), &seen));
        runtime.shutdown_background();
        let seen = seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string(&*seen).map_err(|error| error.to_string())
    });
    match ran {
        Ok(text) => {
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "flood: {error}");
            ExitCode::FAILURE
        }
    }
}

fn flood(arguments: Arguments) -> Result<Flood, String> {
    let config = ClientConfig::load(&arguments.config).map_err(|error| error.to_string())?;
    let config = match arguments.nodes {
        true => config.for_node(),
        false => config,
    };
    let wanted = |one: &&Endpoint| matches!(one, Endpoint::Tcp(_)) == arguments.tcp;
    let endpoint = config.endpoints.iter().find(wanted);
    Ok(Flood {
        endpoint: endpoint.ok_or("no such endpoint is configured")?.clone(),
        signer: config.signer(),
        service: config.service_uid().map_err(|error| error.to_string())?,
        client: Client::new(&config).map_err(|error| error.to_string())?,
        arguments,
    })
}

async fn run(flood: Arc<Flood>, seen: &Seen) {
    let mut senders = JoinSet::new();
    for _ in 0..flood.arguments.connections {
        let (flood, seen) = (Arc::clone(&flood), seen.clone());
        senders.spawn(async move {
            loop {
                if let Err(error) = once(&flood, &seen).await {
                    seen.count(format!("{:?}", error.kind()));
                }
                // Where a refusal is immediate, other tasks of this runtime get their turn.
                tokio::task::yield_now().await;
            }
        });
    }
    tokio::time::sleep(Duration::from_secs_f64(flood.arguments.seconds)).await;
    if let Some(file) = &flood.arguments.while_there {
        while file.exists() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    senders.shutdown().await;
}

async fn once(flood: &Flood, seen: &Seen) -> std::io::Result<()> {
    match flood.arguments.what {
        What::Runs => ask(flood, seen, Call::get("/v1/runs?limit=10000")).await,
        What::Studies => ask(flood, seen, Call::get("/v1/studies")).await,
        What::Resets => {
            let path = format!("/v1/studies/{}/reset", flood.arguments.study);
            let why = WhyRequest {
                why: "flood".to_owned(),
            };
            ask(flood, seen, Call::post(&path, &why)).await;
        }
        _ => {
            let stream: Box<dyn Stream> = match &flood.endpoint {
                Endpoint::Unix(path) => Box::new(UnixStream::connect(path).await?),
                Endpoint::Tcp(address) | Endpoint::Tls(address) => {
                    Box::new(TcpStream::connect(address.as_str()).await?)
                }
            };
            seen.count("connected");
            return raw(flood, seen, stream).await;
        }
    }
    Ok(())
}

async fn ask<B: Serialize>(flood: &Flood, seen: &Seen, call: Call<'_, B>) {
    let deadline = Duration::from_secs(15);
    let answer: Result<Value, ClientError> = flood.client.call(call, deadline).await;
    seen.count(match answer {
        Ok(_) => "200".to_owned(),
        Err(ClientError::Refused { status, .. }) => status.to_string(),
        Err(ClientError::Deadline(_)) => "deadline".to_owned(),
        Err(_) => "none".to_owned(),
    });
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn raw(flood: &Flood, seen: &Seen, mut stream: Box<dyn Stream>) -> std::io::Result<()> {
    const JUNK: &str = "MUNGE:none:";
    let nonce = Nonce::fresh().map_err(std::io::Error::other)?;
    let head = |path: &str, credential: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             {NONCE_HEADER}: {}\r\n{REQUEST_HEADER}: {credential}\r\ncontent-length: {length}\r\n\r\n",
            nonce.as_str()
        )
    };
    // The request that is sent again for each answer.
    let mut again = String::new();
    match flood.arguments.what {
        What::Openapi => {
            again = "GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n".to_owned();
            stream.write_all(again.repeat(4).as_bytes()).await?;
        }
        What::Refused => {
            again = head("/v1/preview", JUNK, 0);
            stream.write_all(again.repeat(16).as_bytes()).await?;
        }
        What::Bodies => {
            const LENGTH: usize = 1 << 20;
            let asked = head("/v1/runs/finish", JUNK, LENGTH);
            stream.write_all(asked.as_bytes()).await?;
            stream.write_all(&vec![b' '; LENGTH - 1]).await?;
        }
        What::Drip => {
            let path = "/v1/preview";
            let signed = sign_request(&flood.signer, flood.service, "POST", path, &nonce, b"");
            let signed = signed.map_err(std::io::Error::other)?;
            let asked = head(path, &signed, flood.arguments.length);
            stream.write_all(asked.as_bytes()).await?;
        }
        _ => {}
    }
    let mut buffer = vec![0; 65536];
    loop {
        let wait = Duration::from_millis(500);
        match tokio::time::timeout(wait, stream.read(&mut buffer)).await {
            Ok(Ok(0)) => {
                seen.count("closed");
                return Ok(());
            }
            Ok(Ok(count)) => {
                let text = String::from_utf8_lossy(&buffer[..count]);
                let mut answers = 0;
                for answer in text.split("HTTP/1.1 ").skip(1) {
                    seen.count(answer.get(..3).unwrap_or("none"));
                    answers += 1;
                }
                stream.write_all(again.repeat(answers).as_bytes()).await?;
            }
            Ok(Err(error)) => return Err(error),
            Err(_) if matches!(flood.arguments.what, What::Drip) => {
                stream.write_all(b" ").await?;
            }
            // The head of an answer fell between two reads: start again.
            Err(_) if !again.is_empty() => return Ok(()),
            Err(_) => {}
        }
    }
}
