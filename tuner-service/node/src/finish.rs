//! In the epilog, as root: report how the job went, and clear its files away. And, from a timer:
//! deliver what could not be delivered then.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use io_autotune_protocol::{
    AcceleratorSummary, Call, Client, ConfigError, EpilogWord, FinishRequest, Method,
};

use crate::applied::applied;
use crate::breaker::{Breaker, since_boot};
use crate::directory::{DirectoryError, JobDirectory, StartRecord};
use crate::job::{self, JobError, NodeJob};
use crate::spool::{Delivery, Spool};
use crate::stamp;
use crate::{Deadline, Places, ServiceArguments, say};

#[derive(Debug, thiserror::Error)]
pub(crate) enum FinishError {
    #[error("this run is not reported: {0}")]
    Job(#[from] JobError),
    #[error("this run is not reported: {0}")]
    Directory(#[from] DirectoryError),
}

pub(crate) async fn finish(
    client: Result<Client, ConfigError>,
    places: &Places,
    deadline: Deadline,
) -> Result<(), FinishError> {
    let node_job = job::read(|name| std::env::var(name).ok())?;
    if node_job.is_later_component {
        return Ok(());
    }
    let directory = JobDirectory::open(&places.run_dir, &node_job.job)?;
    if directory.is_none() && !node_job.is_first_node {
        return Ok(());
    }
    let report = report(node_job, directory.as_ref())?;
    let spool = Spool::open(&places.spool_dir)?;
    let breaker = Breaker::of(&places.spool_dir);
    let path = spool.add(&report)?;
    // From here on the report outlives us.
    if let Some(directory) = directory {
        directory.remove()?;
    }
    let waits = |why: &dyn std::fmt::Display| {
        say(&format!("the report waits in {}: {why}", path.display()));
    };
    match (client, breaker.admit(since_boot())) {
        (Ok(client), Ok(())) => {
            if delivered(&spool, &client, &breaker, &path, deadline).await {
                deliver_waiting(&spool, &client, &breaker, deadline).await;
            }
        }
        (Err(error), _) => waits(&error),
        (_, Err(open)) => waits(&open),
    }
    Ok(())
}

fn report(
    node_job: NodeJob,
    directory: Option<&JobDirectory>,
) -> Result<FinishRequest, FinishError> {
    let unknown = |failure: String| StartRecord {
        job: node_job.job.clone(),
        answer: None,
        failure: Some(failure),
        limit_seconds: None,
    };
    let (start, stamps) = match directory {
        Some(directory) => {
            let start = directory.read_start().unwrap_or_else(|error| {
                unknown(format!("what the start left cannot be read: {error}"))
            });
            (start, directory.stamps()?)
        }
        None => (unknown("no prolog ran on this node".into()), Vec::new()),
    };
    let steps: Vec<_> = stamps
        .into_iter()
        .filter_map(|(name, text)| {
            stamp::parse(&text)
                .map_err(|error| say(&format!("the stamp {name} is not believed: {error}")))
                .ok()
        })
        .collect();
    let epilog = node_job.epilog.map(|word| EpilogWord {
        limit_seconds: start.limit_seconds,
        ..word
    });
    Ok(FinishRequest {
        applied: applied(start.answer.as_ref(), &steps),
        run_id: start.answer.map(|answer| answer.run_id),
        start_failure: start.failure,
        job: start.job,
        request: node_job.request,
        steps,
        epilog,
        measures: Default::default(),
    })
}

/// Sends one report; `false` if the service cannot take any report now. A report that it cannot take
/// for reasons of its own does not hold up the others.
async fn delivered(
    spool: &Spool,
    client: &Client,
    breaker: &Breaker,
    path: &Path,
    deadline: Deadline,
) -> bool {
    match spool.deliver(client, breaker, path, deadline).await {
        Delivery::Stored => true,
        Delivery::Refused(error) => {
            say(&format!(
                "the service refuses the report {}: {error}",
                path.display()
            ));
            true
        }
        Delivery::Later(error) => {
            say(&format!("the report waits in {}: {error}", path.display()));
            !error.is_outage()
        }
    }
}

/// Delivers what waits, while the service takes it and there is time.
async fn deliver_waiting(spool: &Spool, client: &Client, breaker: &Breaker, deadline: Deadline) {
    let waiting = spool.waiting().unwrap_or_else(|error| {
        say(&format!("the spool cannot be read: {error}"));
        Vec::new()
    });
    for path in waiting {
        if deadline.left().is_zero() || !delivered(spool, client, breaker, &path, deadline).await {
            return;
        }
    }
}

/// One pass of the timer: delivers what waits, finds out whether an outage is over, and keeps the spool small.
/// No job waits for it, so it asks whatever is known.
async fn tend(spool: &Spool, client: &Client, breaker: &Breaker, deadline: Deadline) {
    deliver_waiting(spool, client, breaker, deadline).await;
    if breaker.is_there() {
        let call = Call::<()> {
            method: Method::Get,
            path: "/v1/accelerators",
            body: None,
            idempotent: true,
        };
        let asked = since_boot();
        let answer: Result<Vec<AcceleratorSummary>, _> = client.call(call, deadline.left()).await;
        breaker.learn(asked, &answer);
    }
    #[expect(clippy::disallowed_methods, reason = "the age of files, at the rim")]
    let now = SystemTime::now();
    if let Err(error) = spool.sweep(now) {
        say(&format!("the spool cannot be read: {error}"));
    }
}

/// Delivers what waits, once or again and again.
pub(crate) async fn flush(
    service: &ServiceArguments,
    spool_dir: &Path,
    every: Option<Duration>,
    began: Instant,
) -> ExitCode {
    let (client, spool) = match (service.client(), Spool::open(spool_dir)) {
        (Ok(client), Ok(spool)) => (client, spool),
        (Err(error), _) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
        (_, Err(error)) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let breaker = Breaker::of(spool_dir);
    let patience = Duration::from_millis(service.deadline_ms);
    let end = began + patience;
    tend(&spool, &client, &breaker, Deadline { end }).await;
    let Some(every) = every else {
        return ExitCode::SUCCESS;
    };
    let mut ticks = tokio::time::interval(every);
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                terminate.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::pin!(terminated);
    loop {
        tokio::select! {
            () = &mut terminated => return ExitCode::SUCCESS,
            _ = ticks.tick() => {
                tend(&spool, &client, &breaker, Deadline { end: Instant::now() + patience }).await;
            }
        }
    }
}
