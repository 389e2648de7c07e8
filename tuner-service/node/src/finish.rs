//! In the epilog, as root: report how the job went, and clear its files away. And, from a timer:
//! deliver what could not be delivered then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use io_autotune_protocol::{AcceleratorSummary, Call, Client, EpilogWord, FinishRequest, Method};

use crate::applied::applied;
use crate::breaker::{Breaker, since_boot};
use crate::config::{NodeConfig, NodeConfigError};
use crate::directory::{self, DirectoryError, JobDirectory, StartRecord};
use crate::job::{self, JobError, NodeJob};
use crate::route::Route;
use crate::settings::{self, Outcome};
use crate::spool::{Delivery, Spool};
use crate::stamp;
use crate::{Deadline, Places, ServiceArguments, in_force, overdue, say};

/// For how long an epilog begins to deliver what others have left: after an outage much waits, and the timer has all
/// the time that a job has not.
const FOR_OTHERS: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub(crate) enum FinishError {
    #[error("this run is not reported: {0}")]
    Job(#[from] JobError),
    #[error("this run is not reported: {0}")]
    Directory(#[from] DirectoryError),
}

pub(crate) async fn finish(
    service: &ServiceArguments,
    places: &Places,
    deadline: Deadline,
) -> Result<(), FinishError> {
    let config = service.node_config();
    let node_job = job::read(|name| std::env::var(name).ok());
    let changed = match (&node_job, &config) {
        (Ok(node_job), Ok(config)) => changed_meanwhile(node_job, places, config),
        (Ok(node_job), Err(_)) => changed_meanwhile(node_job, places, &NodeConfig::default()),
        (Err(_), _) => None,
    };
    // Before anything that can fail.
    put_back(&config, places);
    let node_job = node_job?;
    let client = service.client();
    if node_job.is_later_component {
        return Ok(());
    }
    let values = in_force::take(&places.spool_dir, &node_job.job).unwrap_or_else(|error| {
        say(&format!("nothing is read back: {error}"));
        in_force::Values::new()
    });
    let directory = JobDirectory::open(&places.run_dir, &node_job.job)?;
    if directory.is_none() && !speaks_without_start(&node_job) {
        return Ok(());
    }
    let report = report(node_job, directory.as_ref(), changed, &values)?;
    let spool = Spool::open(&places.spool_dir)?;
    let breaker = Breaker::of(&places.run_dir);
    let path = keep(&spool, directory, &report, places)?;
    // From here on the report outlives us.
    let waits = |why: &dyn std::fmt::Display| {
        say(&format!("the report waits in {}: {why}", path.display()));
    };
    match (client, breaker.admit(since_boot())) {
        (Ok(client), Ok(())) => {
            let route = Route::of(&places.run_dir);
            route.recall(&client);
            if delivered(&spool, &client, &breaker, &path, deadline).await {
                let until = Instant::now() + FOR_OTHERS;
                deliver_waiting(
                    &spool,
                    &places.run_dir,
                    (&client, &breaker),
                    deadline,
                    until,
                )
                .await;
            }
            route.keep(&client);
        }
        (Err(error), _) => waits(&error),
        (_, Err(open)) => waits(&open),
    }
    Ok(())
}

/// Whether this node says that a launch ended of whose start nothing is known here: the first node, of a first
/// launch. With a restart count nobody can tell whose end it is: in the epilog of a launch that is put back Slurm
/// already tells the next one's, and slurmd may run that epilog again when the directory is gone. A report would
/// speak of a launch that is still to come.
fn speaks_without_start(node_job: &NodeJob) -> bool {
    node_job.is_first_node && node_job.job.restart_count == 0
}

/// Writes the report down and clears the job's directory away; where the spool has no room the report stays in
/// that directory instead. Returns where it waits.
pub(crate) fn keep(
    spool: &Spool,
    directory: Option<JobDirectory>,
    report: &FinishRequest,
    places: &Places,
) -> Result<PathBuf, DirectoryError> {
    // slurmd was killed in the epilog and runs it again: what the first said is better.
    if directory.is_none()
        && let Some(path) = spool.waits(&report.job)
    {
        return Ok(path);
    }
    match (spool.add(report), directory) {
        (Ok(path), None) => Ok(path),
        (Ok(path), Some(directory)) => {
            directory.remove()?;
            Ok(path)
        }
        (Err(error), directory) => {
            say(&format!("{error}; the report stays in the job's directory"));
            let directory = match directory {
                Some(directory) => directory,
                None => JobDirectory::create(&places.run_dir, &report.job)?,
            };
            directory.write_report(report)
        }
    }
}

/// Puts back what jobs have changed on this node and not put back. A job that has changed a setting had the node
/// to itself: at any hook of another there is nothing that still has to stay.
pub(crate) fn put_back(config: &Result<NodeConfig, NodeConfigError>, places: &Places) {
    let unset;
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            say(&format!(
                "{error}; saved settings are put back where the kernel has them by default"
            ));
            unset = NodeConfig::default();
            &unset
        }
    };
    match job::node(|name| std::env::var(name).ok()) {
        Ok((cluster, node)) => {
            settings::restore(Some((&cluster, &node)), config, &places.spool_dir);
        }
        Err(error) => say(&format!("settings are not put back: {error}")),
    }
}

/// `io-autotune-node restore`.
pub(crate) fn restore(
    service: &ServiceArguments,
    places: &Places,
    all: bool,
) -> Result<(), NodeConfigError> {
    let config = service.node_config();
    if all {
        if let Err(error) = in_force::forget_all(&places.spool_dir) {
            say(&format!("what jobs have told is not removed: {error}"));
        }
        settings::restore(None, &config?, &places.spool_dir);
    } else {
        put_back(&config, places);
    }
    Ok(())
}

/// What speaks against the job having had the settings that its start put in force, or none if its start put
/// none in force.
pub(crate) fn changed_meanwhile(
    node_job: &NodeJob,
    places: &Places,
    config: &NodeConfig,
) -> Option<String> {
    let directory = JobDirectory::open(&places.run_dir, &node_job.job)
        .ok()
        .flatten();
    let start = directory.and_then(|directory| directory.read_start().ok());
    let given = start.as_ref().and_then(|start| start.settings.as_ref());
    match (given, &start) {
        (Some(Outcome::InForce { values, .. }), Some(start)) => {
            let settings = &start.answer.as_ref()?.delivery.settings;
            settings::changed_meanwhile(values, settings, config)
        }
        _ => settings::is_anything_changed(&node_job.job, &places.spool_dir).then(|| {
            "the node helper was killed while it changed settings: some of them were in force"
                .to_owned()
        }),
    }
}

/// Without an answer a job ran as it would have without us; but whether with its user's own settings only a list of variables
/// tells that an earlier answer left.
fn unwatched(start: &StartRecord) -> Option<String> {
    (start.answer.is_none() && start.unwatched).then(|| {
        "no answer has told this node yet which variables may be the user's own".to_owned()
    })
}

pub(crate) fn report(
    node_job: NodeJob,
    directory: Option<&JobDirectory>,
    changed: Option<String>,
    values: &in_force::Values,
) -> Result<FinishRequest, FinishError> {
    let unknown = |failure: String| StartRecord::without_answer(node_job.job.clone(), failure);
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
            let refused = |error: &dyn std::fmt::Display| {
                say(&format!("the stamp {name:?} is not believed: {error}"));
            };
            let text = text.map_err(|error| refused(&error)).ok()?;
            stamp::parse(&text).map_err(|error| refused(&error)).ok()
        })
        .collect();
    let epilog = node_job.epilog.map(|word| EpilogWord {
        limit_seconds: start.limit_seconds,
        ..word
    });
    let unwatched = unwatched(&start);
    let (in_force, obstacle) = match start.settings {
        Some(Outcome::InForce { values, .. }) => (values, changed),
        Some(Outcome::NotApplied { why }) => (BTreeMap::new(), Some(changed.unwrap_or(why))),
        None => (BTreeMap::new(), changed),
    };
    let answer = start.answer.as_ref();
    let told = answer.map_or_else(Vec::new, |answer| {
        in_force::told(&answer.delivery.read_back, values)
    });
    let obstacle = obstacle.or_else(|| in_force::obstacle(&told));
    let obstacle = obstacle.or(unwatched);
    Ok(FinishRequest {
        applied: applied(answer, obstacle, &steps),
        run_id: start.answer.map(|answer| answer.run_id),
        prolog_at: start.prolog_at,
        start_failure: start.failure,
        job: start.job,
        request: node_job.request,
        steps,
        in_force,
        told,
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

/// Delivers what waits, while the service takes it and there is time; begins with none after `until`.
async fn deliver_waiting(
    spool: &Spool,
    run_dir: &Path,
    (client, breaker): (&Client, &Breaker),
    deadline: Deadline,
    until: Instant,
) {
    let mut waiting = spool.waiting().unwrap_or_else(|error| {
        say(&format!("the spool cannot be read: {error}"));
        Vec::new()
    });
    waiting.extend(directory::reports(run_dir));
    for path in waiting {
        let is_late = deadline.left().is_zero() || Instant::now() >= until;
        if is_late || !delivered(spool, client, breaker, &path, deadline).await {
            return;
        }
    }
}

/// One pass of the timer: reports what no epilog has, delivers what waits, finds out whether an outage is over, and
/// keeps the spool small. No job waits for it, so it asks whatever is known.
async fn tend(
    service: &ServiceArguments,
    places: &Places,
    spool: &Spool,
    client: &Client,
    (breaker, route): (&Breaker, &Route),
    deadline: Deadline,
) {
    #[expect(clippy::disallowed_methods, reason = "the age of files, at the rim")]
    let now = SystemTime::now();
    // In the configured order.
    client.prefer(None);
    overdue::report(service, places, spool, (client, breaker), deadline, now).await;
    let all_the_time = deadline.end;
    deliver_waiting(
        spool,
        &places.run_dir,
        (client, breaker),
        deadline,
        all_the_time,
    )
    .await;
    if breaker.is_there() || route.is_there() {
        let call = Call::<()> {
            method: Method::Get,
            path: "/v1/accelerators",
            body: None,
            idempotent: true,
        };
        let asked = since_boot();
        let answer: Result<Vec<AcceleratorSummary>, _> = client.call(call, deadline.left()).await;
        breaker.learn(asked, &answer);
        if answer.is_ok() {
            route.keep(client);
        }
    }
    if let Err(error) = spool.sweep(now) {
        say(&format!("the spool cannot be read: {error}"));
    }
}

/// Delivers what waits, once or again and again.
pub(crate) async fn flush(
    service: &ServiceArguments,
    places: &Places,
    every: Option<Duration>,
    began: Instant,
) -> ExitCode {
    let (mut client, spool) = match (service.client(), Spool::open(&places.spool_dir)) {
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
    let (breaker, route) = (Breaker::of(&places.run_dir), Route::of(&places.run_dir));
    let known = (&breaker, &route);
    let patience = Duration::from_millis(service.deadline_ms);
    let end = began + patience;
    tend(service, places, &spool, &client, known, Deadline { end }).await;
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
                // It may name other endpoints by now, which the hooks already ask.
                match service.client() {
                    Ok(now) => client = now,
                    Err(error) => say(&error.to_string()),
                }
                let end = Instant::now() + patience;
                tend(service, places, &spool, &client, known, Deadline { end }).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::directory::read_limited;
    use crate::testing::job;

    fn places(parent: &Path) -> Places {
        Places {
            run_dir: parent.join("run"),
            spool_dir: parent.join("spool"),
        }
    }

    fn node_job() -> NodeJob {
        NodeJob {
            job: job(),
            request: Default::default(),
            is_first_node: true,
            is_later_component: false,
            limit_seconds: None,
            started_at: None,
            epilog: None,
        }
    }

    fn made() -> FinishRequest {
        report(node_job(), None, None, &Default::default()).unwrap()
    }

    #[test]
    fn without_an_answer_ever_nobody_knows_whether_it_was_the_default() {
        let parent = tempfile::tempdir().unwrap();
        for unwatched in [true, false] {
            let directory = JobDirectory::create(&parent.path().join("run"), &job()).unwrap();
            let start = StartRecord {
                unwatched,
                ..StartRecord::without_answer(job(), "the service is down")
            };
            directory.write_start(&start).unwrap();
            let report = report(node_job(), Some(&directory), None, &Default::default()).unwrap();
            assert_eq!(
                report.applied == io_autotune_protocol::Applied::Default,
                !unwatched,
                "{report:?}"
            );
        }
    }

    #[test]
    fn an_end_without_a_start_is_told_once_and_never_of_a_launch_to_come() {
        let mut node_job = node_job();
        assert!(speaks_without_start(&node_job));
        node_job.job.restart_count = 1;
        assert!(!speaks_without_start(&node_job));
        node_job.job.restart_count = 0;
        node_job.is_first_node = false;
        assert!(!speaks_without_start(&node_job));
    }

    #[test]
    fn a_second_epilog_leaves_the_report_of_the_first() {
        let parent = tempfile::tempdir().unwrap();
        let places = places(parent.path());
        let spool = Spool::open(&places.spool_dir).unwrap();
        let first = keep(&spool, None, &made(), &places).unwrap();
        fs::write(&first, "the first").unwrap();
        assert_eq!(keep(&spool, None, &made(), &places).unwrap(), first);
        assert_eq!(read_limited(&first).unwrap(), "the first");

        // Not where a launch has left its directory: it is another one.
        let directory = JobDirectory::create(&places.run_dir, &job()).unwrap();
        assert_eq!(
            keep(&spool, Some(directory), &made(), &places).unwrap(),
            first
        );
        assert_ne!(read_limited(&first).unwrap(), "the first");
        assert!(
            JobDirectory::open(&places.run_dir, &job())
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_report_without_room_in_the_spool_stays_in_the_jobs_directory() {
        let parent = tempfile::tempdir().unwrap();
        let places = places(parent.path());
        let spool = Spool::open(&places.spool_dir).unwrap();
        fs::remove_dir(&places.spool_dir).unwrap();
        let directory = JobDirectory::create(&places.run_dir, &job()).unwrap();
        for directory in [Some(directory), None] {
            let path = keep(&spool, directory, &made(), &places).unwrap();
            assert_eq!(directory::reports(&places.run_dir), [path]);
        }
    }
}
