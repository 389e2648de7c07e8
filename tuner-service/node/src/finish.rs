//! The epilog, as root: reports how the job ran and removes its files. The timer delivers the
//! reports that are left.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use io_autotune_console as console;
use io_autotune_protocol::{Call, Client, ClientError, Job, OverAnswer, OverRequest};

use crate::breaker::{Breaker, since_boot};
use crate::config::NodeConfig;
use crate::deadline::Deadline;
use crate::directory::JobDirectory;
use crate::job::{self, NodeJob};
use crate::output::say;
use crate::places::Places;
use crate::report::{Kept, ReportError, keep, report};
use crate::route::Route;
use crate::service_arguments::ServiceArguments;
use crate::spool::{self, Delivery, Spool};
use crate::{overdue, restore, settings, user_files};

/// The time for which an epilog, for which a job waits, starts deliveries of other jobs' reports.
const FOR_OTHERS: Duration = Duration::from_millis(100);

pub(crate) async fn finish(
    service: &ServiceArguments,
    places: &Places,
    deadline: Deadline,
) -> Result<(), ReportError> {
    let config = service.node_config();
    let node_job = job::read(|name| std::env::var(name).ok());
    // Found before the directory is touched, because a launch that comes meanwhile has another
    // place.
    let place = node_job
        .as_ref()
        .ok()
        .and_then(|node_job| user_files::find_place(&places.spool_dir, &node_job.job));
    let opened = node_job.as_ref().map_or(Ok(None), |node_job| {
        JobDirectory::open(&places.run_dir, &node_job.job)
    });
    let directory = opened.as_ref().ok().and_then(Option::as_ref);
    let mut changed = None;
    if let Ok(node_job) = &node_job {
        if directory.is_some_and(|directory| is_anothers(directory, &node_job.job)) {
            return Ok(());
        }
        let unset = NodeConfig::default();
        let config = config.as_ref().unwrap_or(&unset);
        changed = restore::changed_meanwhile(&node_job.job, directory, places, config);
    }
    // Done before anything that can fail.
    restore::put_back(&config, places);
    let node_job = node_job?;
    let client = service.node_client();
    if node_job.is_later_component {
        return Ok(());
    }
    let directory = opened?;
    if directory.is_none() && !speaks_without_start(&node_job) {
        user_files::remove(place);
        return Ok(());
    }
    let left = user_files::read(place.as_ref(), &node_job.job);
    let config = config.unwrap_or_default();
    let report = report(node_job, directory.as_ref(), &config, changed, &left)?;
    let spool = Spool::of(places);
    let breaker = Breaker::of(&places.run_dir);
    // It is signed while it is written.
    let client = client.map_err(ClientError::from);
    let client = client.and_then(|client| Ok((spool::prepared(&client, &report)?, client)));
    let Kept { path, is_new } = keep(&spool, directory, &report)?;
    // From here on the report survives this process.
    user_files::remove(place);
    let waits = |why: &dyn std::fmt::Display| {
        say(&format!("the report waits in {}: {why}", path.display()));
    };
    match (client, breaker.admit(since_boot())) {
        (Ok((prepared, client)), Ok(())) => {
            let route = Route::of(&places.run_dir);
            route.recall(&client);
            let delivery = match is_new {
                true => {
                    spool
                        .send(&client, &breaker, &path, prepared, deadline)
                        .await
                }
                false => spool.deliver(&client, &breaker, &path, deadline).await,
            };
            if is_reachable(&path, &delivery) {
                let until = Instant::now() + FOR_OTHERS;
                deliver_waiting(&spool, (&client, &breaker), deadline, until).await;
            }
            route.keep(&client);
        }
        (Err(error), _) => waits(&error),
        (_, Err(open)) => waits(&open),
    }
    Ok(())
}

/// Returns true if a directory belongs to another launch, by Slurm's ids: this epilog comes late,
/// or the helper of its prolog was killed. The directory, the files to be read back, and the
/// settings in force are then left to the other launch's epilog, or to the timer.
fn is_anothers(directory: &JobDirectory, job: &Job) -> bool {
    let start = directory.read_start().ok();
    let laid_out_for = start.and_then(|start| start.job.sluid);
    let is_anothers = laid_out_for
        .as_ref()
        .zip(job.sluid.as_ref())
        .is_some_and(|(other, own)| other != own);
    if is_anothers {
        say(&format!(
            "job {}: what is in its directory is of another launch and is left there",
            job.job_id
        ));
    }
    is_anothers
}

/// Returns true if this node reports a launch whose start it does not know: the first node of a
/// first launch. With a restart count it would not be known whose end it is, because in a requeued
/// launch's epilog Slurm already gives the next launch's count, and slurmd may run that epilog
/// again after the directory has gone. The report would then be taken for that of a launch still to
/// come.
fn speaks_without_start(node_job: &NodeJob) -> bool {
    node_job.is_first_node && node_job.job.restart_count == 0
}

/// Says what became of a report that was not stored. Returns `false` during an outage, when no
/// other can be delivered either.
fn is_reachable(path: &Path, delivery: &Delivery) -> bool {
    match delivery {
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

/// Delivers waiting reports until the deadline or an outage. Starts no delivery after `until`.
async fn deliver_waiting(
    spool: &Spool,
    (client, breaker): (&Client, &Breaker),
    deadline: Deadline,
    until: Instant,
) {
    for path in spool.waiting() {
        let is_late = deadline.left().is_zero() || Instant::now() >= until;
        if is_late {
            return;
        }
        let delivery = spool.deliver(client, breaker, &path, deadline).await;
        if !is_reachable(&path, &delivery) {
            return;
        }
    }
}

/// One pass of the timer. No job waits for it, so it asks even while the breaker is open.
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
    client.prefer(None);
    let seen = (now, Path::new("/proc"));
    overdue::report(service, places, spool, (client, breaker), deadline, seen).await;
    let all_the_time = deadline.end;
    deliver_waiting(spool, (client, breaker), deadline, all_the_time).await;
    if breaker.is_there() || route.is_there() {
        // A request that the address for nodes answers too, about no run.
        let none = OverRequest { runs: Vec::new() };
        let call = Call::post("/v1/runs/over", &none);
        let asked = since_boot();
        let answer: Result<OverAnswer, _> = client.call(call, deadline.left()).await;
        breaker.learn(asked, &answer);
        if answer.is_ok() {
            route.keep(client);
        }
    }
    settings::stop_again(&places.spool_dir, deadline, now);
    spool.sweep(now);
}

pub(crate) async fn flush(
    service: &ServiceArguments,
    places: &Places,
    every: Option<Duration>,
    began: Instant,
) -> ExitCode {
    let mut client = match service.node_client() {
        Ok(client) => client,
        Err(error) => return console::ended(Err(error)),
    };
    let spool = Spool::of(places);
    // Reports that wait in memory are delivered in any case.
    let usable = spool.usable();
    if let Err(error) = &usable {
        say(&error.to_string());
    }
    let (breaker, route) = (Breaker::of(&places.run_dir), Route::of(&places.run_dir));
    let known = (&breaker, &route);
    let patience = Duration::from_millis(service.deadline_ms);
    let end = began + patience;
    tend(service, places, &spool, &client, known, Deadline { end }).await;
    let Some(every) = every else {
        return match usable {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
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
                // client.toml may name other endpoints by now.
                match service.node_client() {
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
    use super::*;
    use crate::directory::StartRecord;
    use crate::testing::{job, node_job};

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
    fn what_another_launch_of_the_job_has_left_is_not_reported_as_this_ones() {
        let parent = tempfile::tempdir().unwrap();
        let launch = |sluid: Option<&str>| Job {
            sluid: sluid.map(|sluid| sluid.parse().unwrap()),
            ..job()
        };
        let (own, other) = (Some("sBR1JB8J1YM400"), Some("sBR1JB8J1YM401"));
        let directory = JobDirectory::create(&parent.path().join("run"), &job()).unwrap();
        // A helper that was killed has laid out nothing yet.
        assert!(!is_anothers(&directory, &launch(own)));
        for (laid_out_for, ends, is_own) in [
            (own, own, true),
            (other, own, false),
            (None, own, true),
            (own, None, true),
        ] {
            let start = StartRecord::without_answer(launch(laid_out_for), "x");
            directory.write_start(&start).unwrap();
            let found = !is_anothers(&directory, &launch(ends));
            assert_eq!(found, is_own, "{laid_out_for:?} {ends:?}");
        }
    }
}
