//! The service's checks of itself, for admins.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use io_autotune_protocol::credentials::{Backend, round_trip};
use io_autotune_protocol::{Check, Diagnosis, ErrorBody};
use io_autotune_store::{DatabaseFacts, Source, StoreError};
use jiff::Timestamp;

use super::{ApiError, Service};
use crate::slurm::associations::LiveAssociations;
use crate::slurm::hooks::{Hooks, MISSING, Runs, SCRIPTS};
use crate::slurm::{Cluster, Launch, Sources};

const SHOWN: usize = 5;

/// Credentials live a minute; slurmctld's and the database's times must agree to seconds.
const CLOCK_SKEW_SECONDS: f64 = 2.0;

/// All checks of the service.
#[utoipa::path(get, path = "/v1/doctor", responses((status = 200, body = Diagnosis), (status = 403, body = ErrorBody)))]
pub(super) async fn doctor(
    State(service): State<Arc<Service>>,
) -> Result<Json<Diagnosis>, ApiError> {
    let mut checks = vec![
        schema(&service).await,
        database(&service).await,
        clock(&service).await,
        caches(&service).await,
        stuck(&service).await,
        unclaimed(&service).await,
        service.apart.check(),
    ];
    for cluster in &*service.clusters {
        let of_cluster = of(cluster).await.into_iter();
        checks.extend(of_cluster.map(|check| Check {
            name: match service.clusters.len() {
                1 => check.name,
                _ => format!("{} of {}", check.name, cluster.sources.cluster),
            },
            ..check
        }));
    }
    checks.push(accelerators(&service));
    checks.push(rules(&service));
    checks.push(signing(&service).await);
    let now = service.clock.now();
    let certificate = service.certificate.borrow().clone();
    checks.extend(certificate.map(|tls| tls.check(now)));
    checks.extend(service.hosts.checks(now));
    Ok(Json(Diagnosis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks,
        time: Some(now),
        plugins: service.hosts.plugins(now),
    }))
}

/// The checks of a cluster's Slurm.
async fn of(cluster: &Cluster) -> Vec<Check> {
    let mut checks = sources(&cluster.sources).await;
    checks.push(suspension(&cluster.sources));
    checks.push(hooks(&cluster.hooks).await);
    if let Some(associations) = &cluster.associations {
        checks.push(accounts(associations).await);
    }
    checks
}

fn stored<T>(name: &str, found: Result<T, StoreError>, judge: impl FnOnce(T) -> Check) -> Check {
    match found {
        Ok(found) => judge(found),
        Err(error) => failed(name, &error),
    }
}

fn failed(name: &str, error: &StoreError) -> Check {
    let fix = error.remedy().unwrap_or_else(|| DATABASE.to_owned());
    Check::failed(name, error.to_string(), fix)
}

/// The remedy for a database that does not answer as it should.
const DATABASE: &str = "see whether PostgreSQL runs and [database] url of service.toml is right; the service's log says more";

async fn schema(service: &Service) -> Check {
    const NAME: &str = "schema";
    match service.store.ready().await {
        Ok(()) => stored(NAME, service.store.schema_version().await, |version| {
            Check::ok(NAME, format!("version {version}"))
        }),
        // A database that takes no writes is reported by the check of the database itself.
        Err(error) if error.is_answer() && error.remedy().is_some() => {
            stored(NAME, service.store.schema_version().await, |version| {
                Check::ok(NAME, format!("version {version}"))
            })
        }
        Err(error) if error.remedy().is_some() => failed(NAME, &error),
        Err(error) => Check::failed(
            NAME,
            error.to_string(),
            "`io-autotuned --migrate URL` as the schema's owner (docs/install.md), and the newest service on all hosts",
        ),
    }
}

/// The major versions of PostgreSQL that the tests have run on.
const TESTED: &[i32] = &[15, 17, 18];

async fn database(service: &Service) -> Check {
    const NAME: &str = "database";
    if let Err(error) = service.store.takes_writes().await {
        return failed(NAME, &error);
    }
    let found = service.store.database_facts().await;
    stored(NAME, found, |facts| judge_database(&facts))
}

fn judge_database(facts: &DatabaseFacts) -> Check {
    const NAME: &str = "database";
    let DatabaseFacts {
        version,
        role,
        is_superuser,
        closed,
    } = facts;
    let (major, minor) = (version / 10_000, version % 10_000);
    let shown = format!("PostgreSQL {major}.{minor}, as {role}");
    if !closed.is_empty() {
        let tables = some_of(closed.len(), closed.iter().take(SHOWN).cloned());
        Check::failed(
            NAME,
            format!("{shown}, which may not work with {tables}"),
            "run deploy/sql/roles.sql as a superuser in the service's database; it may be run again at will",
        )
    } else if *is_superuser {
        Check::warning(
            NAME,
            format!("{shown}, a superuser: a mistake of the service could change history"),
            "run deploy/sql/roles.sql, and let [database] url name its role io-autotune",
        )
    } else if !TESTED.contains(&major) {
        let tested: Vec<String> = TESTED.iter().map(ToString::to_string).collect();
        Check::warning(
            NAME,
            format!("{shown}: untested"),
            format!("use one of {}, with which the tests run", tested.join(", ")),
        )
    } else {
        Check::ok(NAME, shown)
    }
}

async fn clock(service: &Service) -> Check {
    const NAME: &str = "database clock";
    let before = service.clock.now();
    stored(NAME, service.store.now().await, |database| {
        let after = service.clock.now();
        let off = skew(before, database, after);
        let detail = format!("{off:.1} s off the service's host's");
        if off > CLOCK_SKEW_SECONDS {
            let fix = "let chrony or ntpd set the clocks of both hosts: `chronyc tracking`";
            Check::warning(NAME, detail, fix)
        } else {
            Check::ok(NAME, detail)
        }
    })
}

/// Seconds by which `database` lies outside the interval from `before` to `after`, in which it was
/// read.
fn skew(before: Timestamp, database: Timestamp, after: Timestamp) -> f64 {
    let early = before.duration_since(database).as_secs_f64();
    let late = database.duration_since(after).as_secs_f64();
    early.max(late).max(0.0)
}

async fn caches(service: &Service) -> Check {
    const NAME: &str = "caches";
    stored(NAME, service.store.check_caches().await, |faults| {
        if faults.is_empty() {
            return Check::ok(NAME, "every epoch's is what its judgements add up to");
        }
        let shown = faults.iter().take(SHOWN).map(|fault| {
            format!(
                "study {}, epoch {}: {}",
                fault.study_id, fault.epoch, fault.problem
            )
        });
        Check::failed(
            NAME,
            some_of(faults.len(), shown),
            "`io-autotune reset` lets such a study begin anew; please report it with the service's log",
        )
    })
}

async fn stuck(service: &Service) -> Check {
    const NAME: &str = "runs in flight";
    const MOST: i64 = 1000;
    let after = service.stuck_after;
    let found = service.store.stuck_runs(after, MOST).await;
    stored(NAME, found, |runs| {
        if runs.is_empty() {
            return Check::ok(NAME, format!("none is older than {}", days(after)));
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
        Check::warning(
            NAME,
            some_of(runs.len(), shown),
            "let a source of [slurm] sources tell of these jobs: `sacct`, or the job-completion script",
        )
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
        Check::ok(
            NAME,
            format!("{count}: jobs that are not tuned, or whose report is still to come"),
        )
    })
}

async fn sources(sources: &Sources) -> Vec<Check> {
    if sources.names.is_empty() {
        let detail = "there is none: only what its node alone vouches for counts";
        let fix =
            "name some in [slurm] sources of service.toml: \"jobcomp\", \"sacct\" or \"squeue\"";
        return vec![Check::warning("outcome sources", detail, fix)];
    }
    let mut checks = Vec::new();
    for name in &sources.names {
        let asked = sources.asked.iter().find(|source| source.name() == *name);
        let any = [Launch {
            job_id: 1,
            restart_count: 0,
            age: Duration::ZERO,
        }];
        let what = format!("outcome source {name}");
        checks.push(match asked {
            None => Check::ok(what, "tells by itself"),
            Some(source) => match source.ask(&any).await {
                Ok(_) => Check::ok(what, "answers"),
                Err(error) => Check::failed(
                    what,
                    error.to_string(),
                    format!("run {name} on the service's host as its account; [slurm] of service.toml says where the program and slurm.conf are"),
                ),
            },
        });
    }
    checks
}

fn suspension(sources: &Sources) -> Check {
    const NAME: &str = "suspended jobs";
    if sources.tell_suspension() {
        Check::ok(NAME, "a source tells of them")
    } else {
        Check::warning(
            NAME,
            "no source tells of them, so that their runs count as if they had been slow",
            format!(
                "add {} or {} to [slurm] sources",
                Source::Squeue,
                Source::Sacct
            ),
        )
    }
}

fn accelerators(service: &Service) -> Check {
    const NAME: &str = "accelerators";
    let (default, otherwise) = (&service.default_accelerator, &service.otherwise);
    let catalogue = service.catalogue.current();
    let refused = service.catalogue.refused();
    if let Err(problem) = catalogue.find(default) {
        let detail = format!("the default, {default}, is not in the catalogue: {problem}");
        let fix = "name one that is there in [accelerators] default of service.toml, and reload";
        Check::failed(NAME, detail, fix)
    } else if let Some(missing) = otherwise.iter().find(|name| catalogue.find(name).is_err()) {
        Check::warning(
            NAME,
            format!("otherwise = {missing:?} is not in the catalogue, and never chosen"),
            "name one that is there in [accelerators] otherwise of service.toml, and reload",
        )
    } else if !refused.is_empty() {
        let shown = refused.iter().take(SHOWN).map(ToString::to_string);
        Check::failed(
            NAME,
            some_of(refused.len(), shown),
            "correct the file: `io-autotune accelerators check FILE` says when it is right",
        )
    } else {
        let count = catalogue.iter().count();
        Check::ok(NAME, format!("{count}; the default is {default}"))
    }
}

async fn hooks(hooks: &Hooks) -> Check {
    const NAME: &str = "prolog and epilog";
    match hooks.ask().await {
        Ok(Runs::Nothing) => Check::failed(
            NAME,
            MISSING,
            "set Prolog= and Epilog= of slurm.conf to io-autotune's run-in-job (docs/install.md), and `scontrol reconfigure`",
        ),
        Ok(Runs::Scripts) => Check::warning(
            NAME,
            SCRIPTS,
            "`io-autotune doctor --job` shows whether they do",
        ),
        Ok(Runs::Plugin) => Check::ok(NAME, "slurmd runs the plugin's"),
        Err(error) => Check::warning(
            NAME,
            error.to_string(),
            "run `scontrol show config` on the service's host as its account; [slurm] of service.toml says where the program and slurm.conf are",
        ),
    }
}

/// Reads the associations anew, so that a change in Slurm is in force at once.
async fn accounts(associations: &LiveAssociations) -> Check {
    const NAME: &str = "accounts and coordinators";
    const RIGHT: &str = "with PrivateData=accounts or users the service's account needs `sacctmgr modify user \
                         io-autotune set adminlevel=Operator`";
    let known = match associations.ask().await {
        Ok(known) => known,
        Err(error) => {
            let detail = format!("{error}; nobody is a coordinator meanwhile");
            return Check::failed(NAME, detail, format!("see whether slurmdbd runs; {RIGHT}"));
        }
    };
    let (users, accounts, coordinators) = known.counts();
    let wide = known.too_wide();
    if users == 0 {
        let cluster = &associations.cluster;
        let detail =
            format!("Slurm tells of no user's association with an account of cluster {cluster}");
        Check::warning(NAME, detail, RIGHT)
    } else if wide.is_empty() {
        let detail = format!("{users} users in {accounts} accounts, {coordinators} coordinate");
        Check::ok(NAME, detail)
    } else {
        let shown = wide.iter().take(SHOWN).map(|uid| format!("uid {uid}"));
        let detail = format!(
            "these coordinate more than can be asked about, and so nothing: {}",
            some_of(wide.len(), shown)
        );
        Check::warning(
            NAME,
            detail,
            "make them operators ([access] of service.toml)",
        )
    }
}

fn rules(service: &Service) -> Check {
    const NAME: &str = "rules for applications";
    let file = service.rules.path();
    let from = file.map_or("built in".into(), |path| path.display().to_string());
    match service.rules.refused() {
        Some(refused) => {
            let detail = format!("{refused}; the last valid ones stay in use");
            let fix = "correct the file: `io-autotune rules check --file FILE NAME` says when it is right";
            Check::failed(NAME, detail, fix)
        }
        None => {
            let count = service.rules.current().count();
            Check::ok(NAME, format!("{count}, {from}"))
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
            Check::ok(name, detail)
        }
        Ok(Err(problem)) => Check::failed(name, problem, unsigned(backend)),
        Err(error) => Check::failed(name, error.to_string(), unsigned(backend)),
    }
}

fn unsigned(backend: Backend) -> String {
    format!(
        "start what answers for {backend} there; its socket may be read and written by the service's account ([munge] or [sack] socket of service.toml)"
    )
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    #[test]
    fn a_database_is_judged_by_version_and_role() {
        let facts = |version, is_superuser, closed: &[&str]| DatabaseFacts {
            version,
            role: "io-autotune".into(),
            is_superuser,
            closed: closed.iter().map(ToString::to_string).collect(),
        };
        for version in [150_008, 170_000, 180_001] {
            let check = judge_database(&facts(version, false, &[]));
            assert_eq!(check.state, CheckState::Ok, "{check:?}");
        }
        let check = judge_database(&facts(140_005, false, &[]));
        assert_eq!(check.detail, "PostgreSQL 14.5, as io-autotune: untested");
        assert!(check.fix.unwrap().contains("15, 17, 18"));
        let check = judge_database(&facts(150_008, true, &[]));
        assert_eq!(check.state, CheckState::Warning);
        let check = judge_database(&facts(150_008, true, &["runs", "audit"]));
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.detail.ends_with("may not work with runs; audit"));
        assert!(check.fix.unwrap().contains("roles.sql"));
    }

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
