//! What the service says of itself, for admins.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use io_autotune_protocol::credentials::round_trip;
use io_autotune_protocol::{Check, CheckState, Diagnosis, ErrorBody};
use io_autotune_store::{Source, StoreError};
use jiff::Timestamp;

use super::{ApiError, Service};
use crate::slurm::associations::LiveAssociations;
use crate::slurm::hooks::{Hooks, MISSING, Runs, SCRIPTS};
use crate::slurm::{Launch, Sources};

const SHOWN: usize = 5;

/// Credentials live a minute; slurmctld's and the database's times must agree to seconds.
const CLOCK_SKEW_SECONDS: f64 = 2.0;

/// Every check of the service's own.
#[utoipa::path(get, path = "/v1/doctor", responses((status = 200, body = Diagnosis), (status = 403, body = ErrorBody)))]
pub(super) async fn doctor(
    State(service): State<Arc<Service>>,
) -> Result<Json<Diagnosis>, ApiError> {
    let mut checks = vec![
        schema(&service).await,
        clock(&service).await,
        caches(&service).await,
        stuck(&service).await,
        unclaimed(&service).await,
    ];
    checks.extend(sources(&service.sources).await);
    checks.push(suspension(&service.sources));
    checks.push(hooks(&service.hooks).await);
    if let Some(associations) = &service.associations {
        checks.push(accounts(associations).await);
    }
    checks.push(accelerators(&service));
    checks.push(rules(&service));
    checks.push(signing(&service).await);
    Ok(Json(Diagnosis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks,
    }))
}

fn check(name: &str, state: CheckState, detail: impl Into<String>) -> Check {
    Check {
        name: name.to_owned(),
        state,
        detail: detail.into(),
    }
}

fn stored<T>(name: &str, found: Result<T, StoreError>, judge: impl FnOnce(T) -> Check) -> Check {
    match found {
        Ok(found) => judge(found),
        Err(error) => check(name, CheckState::Failed, error.to_string()),
    }
}

async fn schema(service: &Service) -> Check {
    const NAME: &str = "schema";
    match service.store.ready().await {
        Ok(()) => stored(NAME, service.store.schema_version().await, |version| {
            check(NAME, CheckState::Ok, format!("version {version}"))
        }),
        Err(error) => check(NAME, CheckState::Failed, error.to_string()),
    }
}

async fn clock(service: &Service) -> Check {
    const NAME: &str = "database clock";
    let before = Timestamp::now();
    stored(NAME, service.store.now().await, |database| {
        let after = Timestamp::now();
        let off = skew(before, database, after);
        let state = if off > CLOCK_SKEW_SECONDS {
            CheckState::Warning
        } else {
            CheckState::Ok
        };
        check(NAME, state, format!("{off:.1} s off this host's"))
    })
}

/// Seconds by which `database` lies outside of the interval in which it was read.
fn skew(before: Timestamp, database: Timestamp, after: Timestamp) -> f64 {
    let early = before.duration_since(database).as_secs_f64();
    let late = database.duration_since(after).as_secs_f64();
    early.max(late).max(0.0)
}

async fn caches(service: &Service) -> Check {
    const NAME: &str = "caches";
    stored(NAME, service.store.check_caches().await, |faults| {
        if faults.is_empty() {
            return check(
                NAME,
                CheckState::Ok,
                "every epoch's is what its judgements add up to",
            );
        }
        let shown = faults.iter().take(SHOWN).map(|fault| {
            format!(
                "study {}, epoch {}: {}",
                fault.study_id, fault.epoch, fault.problem
            )
        });
        check(NAME, CheckState::Failed, some_of(faults.len(), shown))
    })
}

async fn stuck(service: &Service) -> Check {
    const NAME: &str = "runs in flight";
    const MOST: i64 = 1000;
    let after = service.stuck_after;
    let found = service.store.stuck_runs(after, MOST).await;
    stored(NAME, found, |runs| {
        if runs.is_empty() {
            return check(
                NAME,
                CheckState::Ok,
                format!("none is older than {}", days(after)),
            );
        }
        let shown = runs.iter().take(SHOWN).map(|run| {
            let observed_values = match (&run.outcome, run.reported) {
                (Some(outcome), _) => format!("Slurm says {outcome}"),
                (None, true) => "reported, without Slurm's word".to_owned(),
                (None, false) => "not heard of".to_owned(),
            };
            format!(
                "job {} of {} (run {}), {:.0} days: {observed_values}",
                run.job.job_id,
                run.job.cluster,
                run.run_id,
                run.age / 86_400.0
            )
        });
        check(NAME, CheckState::Warning, some_of(runs.len(), shown))
    })
}

fn days(time: Duration) -> String {
    format!("{:.1} days", time.as_secs_f64() / 86_400.0)
}

fn some_of(all: usize, shown: impl Iterator<Item = String>) -> String {
    let mut text = shown.collect::<Vec<_>>().join("; ");
    if all > SHOWN {
        text.push_str(&format!("; and {} more", all - SHOWN));
    }
    text
}

async fn unclaimed(service: &Service) -> Check {
    const NAME: &str = "outcomes without a run";
    stored(NAME, service.store.unclaimed_outcomes().await, |count| {
        check(
            NAME,
            CheckState::Ok,
            format!("{count}: jobs that are not tuned, or whose report is still to come"),
        )
    })
}

async fn sources(sources: &Sources) -> Vec<Check> {
    if sources.names.is_empty() {
        let detail = "there is none: only what its node alone vouches for counts; name some in [slurm] sources";
        return vec![check("outcome sources", CheckState::Warning, detail)];
    }
    let mut checks = Vec::new();
    for name in &sources.names {
        let asked = sources.asked.iter().find(|source| source.name() == *name);
        let any = [Launch {
            job_id: 1,
            restart_count: 0,
            age: Duration::ZERO,
        }];
        let (state, detail) = match asked {
            None => (CheckState::Ok, "tells by itself".to_owned()),
            Some(source) => match source.ask(&any).await {
                Ok(_) => (CheckState::Ok, "answers".to_owned()),
                Err(error) => (CheckState::Failed, error.to_string()),
            },
        };
        checks.push(check(&format!("outcome source {name}"), state, detail));
    }
    checks
}

fn suspension(sources: &Sources) -> Check {
    const NAME: &str = "suspended jobs";
    if sources.tell_suspension() {
        check(NAME, CheckState::Ok, "a source tells of them")
    } else {
        let detail = format!(
            "no source tells of them, so that their runs count as if they had been slow: add {} or {} to [slurm] sources",
            Source::Squeue,
            Source::Sacct
        );
        check(NAME, CheckState::Warning, detail)
    }
}

fn accelerators(service: &Service) -> Check {
    const NAME: &str = "accelerators";
    let (default, otherwise) = (&service.default_accelerator, &service.otherwise);
    let catalogue = service.catalogue.current();
    let refused = service.catalogue.refused();
    if let Err(problem) = catalogue.find(default) {
        let detail = format!("the default, {default}, is not in the catalogue: {problem}");
        check(NAME, CheckState::Failed, detail)
    } else if let Some(missing) = otherwise.iter().find(|name| catalogue.find(name).is_err()) {
        let detail = format!("otherwise = {missing:?} is not in the catalogue, and never chosen");
        check(NAME, CheckState::Warning, detail)
    } else if !refused.is_empty() {
        let shown = refused.iter().take(SHOWN).map(ToString::to_string);
        check(NAME, CheckState::Failed, some_of(refused.len(), shown))
    } else {
        let count = catalogue.iter().count();
        check(
            NAME,
            CheckState::Ok,
            format!("{count}; the default is {default}"),
        )
    }
}

async fn hooks(hooks: &Hooks) -> Check {
    const NAME: &str = "prolog and epilog";
    match hooks.ask().await {
        Ok(Runs::Nothing) => check(NAME, CheckState::Failed, MISSING),
        Ok(Runs::Scripts) => check(NAME, CheckState::Warning, SCRIPTS),
        Ok(Runs::Plugin) => check(NAME, CheckState::Ok, "slurmd runs the plugin's"),
        Err(error) => check(NAME, CheckState::Warning, error.to_string()),
    }
}

/// Reads them anew, so that what has changed in Slurm holds at once.
async fn accounts(associations: &LiveAssociations) -> Check {
    const NAME: &str = "accounts and coordinators";
    const RIGHT: &str = "with PrivateData=accounts or users the service's account needs `sacctmgr modify user \
                         io-autotune set adminlevel=Operator`";
    let known = match associations.ask().await {
        Ok(known) => known,
        Err(error) => {
            let detail =
                format!("{error}; nobody is a coordinator meanwhile: is slurmdbd there? {RIGHT}");
            return check(NAME, CheckState::Failed, detail);
        }
    };
    let (users, accounts, coordinators) = known.counts();
    let wide = known.too_wide();
    if users == 0 {
        let cluster = &associations.cluster;
        let detail = format!(
            "Slurm tells of no user's association with an account of cluster {cluster}: {RIGHT}"
        );
        check(NAME, CheckState::Warning, detail)
    } else if wide.is_empty() {
        let detail = format!("{users} users in {accounts} accounts, {coordinators} coordinate");
        check(NAME, CheckState::Ok, detail)
    } else {
        let shown = wide.iter().take(SHOWN).map(|uid| format!("uid {uid}"));
        let detail = format!(
            "these coordinate more than can be asked about, and so nothing: make them operators ([access]): {}",
            some_of(wide.len(), shown)
        );
        check(NAME, CheckState::Warning, detail)
    }
}

fn rules(service: &Service) -> Check {
    const NAME: &str = "rules for applications";
    let file = service.rules.path();
    let from = file.map_or("built in".into(), |path| path.display().to_string());
    match service.rules.refused() {
        Some(refused) => {
            let detail = format!("{refused}; the last valid ones stay in use");
            check(NAME, CheckState::Failed, detail)
        }
        None => {
            let count = service.rules.current().count();
            check(NAME, CheckState::Ok, format!("{count}, {from}"))
        }
    }
}

async fn signing(service: &Service) -> Check {
    let credentials = Arc::clone(&service.credentials);
    let backend = credentials.backend();
    let name = format!("{} on the service's host", backend.code());
    let tried = tokio::task::spawn_blocking(move || round_trip(credentials.as_ref())).await;
    match tried {
        Ok(Ok(())) => {
            let detail = format!("{backend}: a credential is made and read");
            check(&name, CheckState::Ok, detail)
        }
        Ok(Err(problem)) => check(&name, CheckState::Failed, problem),
        Err(error) => check(&name, CheckState::Failed, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_slow_answer_is_no_skew() {
        assert_eq!(skew(at(100), at(105), at(110)), 0.0);
        assert_eq!(skew(at(100), at(90), at(110)), 10.0);
        assert_eq!(skew(at(100), at(117), at(110)), 7.0);
    }

    #[test]
    fn many_are_named_by_a_few() {
        let shown = ["a".to_owned(), "b".to_owned()];
        assert_eq!(some_of(2, shown.clone().into_iter()), "a; b");
        assert_eq!(some_of(9, shown.into_iter()), "a; b; and 4 more");
    }
}
