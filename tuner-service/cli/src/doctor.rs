//! `io-autotune doctor`: checks of this host's configuration, the way to each endpoint, signatures
//! by MUNGE or SACK in both directions, clocks, the plugin and, if they exist, the spools of a node
//! and of the job-completion script. The service's own checks come from `GET /v1/doctor` (admins
//! only). A test job checks the whole way.

mod job;
mod jobcomp;
mod plugin;
mod spool;

use std::path::Path;
use std::time::Duration;

use io_autotune_protocol::credentials::{Backend, Credentials, round_trip};
use io_autotune_protocol::{
    Check, CheckState, ClientConfig, ClientError, Diagnosis, PluginOnNodes,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::service::{CliError, Service};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: &'static str,
    /// The checks, those of this host first.
    pub(crate) checks: Vec<Check>,
}

impl Report {
    pub(crate) fn has_failed(&self) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.state == CheckState::Failed)
    }
}

/// The places that are examined in addition to the service.
pub(crate) struct Places<'a> {
    /// The path of client.toml.
    pub(crate) config: &'a Path,
    /// The cluster of a test job, if the service has several.
    pub(crate) cluster: Option<&'a str>,
    /// The spool with this node's undelivered reports.
    pub(crate) spool: &'a Path,
    /// The spool of the job-completion script, and the directory of the collector's state.
    pub(crate) jobcomp: (&'a Path, &'a Path),
    /// The time in which a test job must be judged; `None`: there is no test job.
    pub(crate) job_within: Option<Duration>,
}

pub(crate) async fn examine(places: &Places<'_>) -> Report {
    let mut checks = Vec::new();
    let mut plugins = Vec::new();
    let config = places.config;
    match ClientConfig::load(config).and_then(|parsed| Ok((parsed.service_uid()?, parsed))) {
        Err(error) => checks.push(Check::failed(
            "configuration",
            error.to_string(),
            "write it as deploy/etc/client.toml shows (docs/install.md), or name another by --config",
        )),
        Ok((uid, parsed)) => {
            checks.push(Check::ok(
                "configuration",
                format!(
                    "{}: answers signed by uid {uid} are believed",
                    config.display()
                ),
            ));
            let (found, told) = service(&parsed).await;
            checks.extend(found);
            plugins = told;
            if let Some(within) = places.job_within {
                checks.push(job::check(&parsed, places.cluster, within).await);
            }
        }
    }
    checks.extend(plugin::checks(&plugins));
    checks.extend(spool::check(places.spool));
    checks.extend(jobcomp::check(places.jobcomp.0, places.jobcomp.1));
    Report {
        version: VERSION,
        checks,
    }
}

/// Checks signatures, every endpoint and the versions, and adds the service's own checks.
async fn service(config: &ClientConfig) -> (Vec<Check>, Vec<PluginOnNodes>) {
    let signer = config.signer();
    let backend = signer.backend();
    // It blocks, for some ten seconds if munged is down; nothing else has to run meanwhile.
    let here = round_trip(&signer);
    let mut visits = Vec::new();
    for endpoint in &config.endpoints {
        let alone = ClientConfig {
            endpoints: vec![endpoint.clone()],
            ..config.clone()
        };
        let before = Timestamp::now();
        let answer = match Service::of(&alone, None) {
            Ok(service) => service.doctor().await,
            Err(error) => Err(error),
        };
        let asked = (before, Timestamp::now());
        visits.push(Visit::of(&endpoint.to_string(), backend, answer, asked));
    }
    summary(visits, backend, here)
}

/// The result of asking one endpoint.
struct Visit {
    endpoint: Check,
    /// The check of signatures; `None` if the request never got so far.
    signing: Option<Check>,
    /// The check of the service's version.
    version: Option<Check>,
    /// The service's own checks.
    diagnosis: Vec<Check>,
    /// The check of the service's clock.
    clock: Option<Check>,
    plugins: Vec<PluginOnNodes>,
}

impl Visit {
    fn of(
        endpoint: &str,
        backend: Backend,
        answer: Result<Diagnosis, CliError>,
        asked: (Timestamp, Timestamp),
    ) -> Self {
        let name = format!("endpoint {endpoint}");
        let reached = || Check::ok(&name, "answers");
        let unknown = |endpoint| Visit {
            endpoint,
            signing: None,
            version: None,
            diagnosis: Vec::new(),
            clock: None,
            plugins: Vec::new(),
        };
        let signed = || Visit {
            signing: Some(Check::ok(
                backend.code(),
                format!("{backend}: the service knows who asks here, and its answers are signed"),
            )),
            ..unknown(reached())
        };
        let shared = format!(
            "give both hosts the same `auth`, the same {} and the same time",
            backend.key()
        );
        let distrusted = |problem: String| Visit {
            signing: Some(Check::failed(backend.code(), problem, &shared)),
            ..unknown(reached())
        };
        match answer {
            Ok(Diagnosis {
                version,
                checks,
                time,
                plugins,
            }) => Visit {
                version: Some(differing(&version)),
                diagnosis: checks,
                clock: time.map(|time| clock(time, asked)),
                plugins,
                ..signed()
            },
            Err(CliError::Client(error)) => match error {
                ClientError::Refused {
                    status: 401,
                    message,
                    ..
                } => distrusted(format!(
                    "the service does not accept our credential: {message}"
                )),
                ClientError::Refused { status: 500.., .. } => {
                    let fix = "see the service's log there, and whether its database answers";
                    unknown(Check::failed(&name, error.to_string(), fix))
                }
                ClientError::Refused { ref code, .. } if code == "no_such_path" => Visit {
                    version: Some(Check::warning(
                        "versions",
                        format!(
                            "the service is older than this program, {VERSION}, and cannot examine itself"
                        ),
                        "upgrade the service",
                    )),
                    ..signed()
                },
                ClientError::Refused { status, .. } if status == 403 || status == 404 => Visit {
                    diagnosis: vec![Check::ok(
                        "service",
                        "what it says of itself is for admins only",
                    )],
                    ..signed()
                },
                ClientError::Credential(error) => distrusted(error.to_string()),
                ClientError::Signature { source, .. } => distrusted(format!(
                    "the answer is not the service's (service_user in client.toml): {source}"
                )),
                error @ (ClientError::Unreachable(_) | ClientError::Deadline(_)) => {
                    unknown(Check::failed(
                        &name,
                        error.to_string(),
                        "start io-autotuned there (`systemctl status io-autotuned`), and let this host reach it",
                    ))
                }
                error @ ClientError::Tls(_) => {
                    unknown(Check::failed(&name, error.to_string(), OF_TLS))
                }
                error => unknown(Check::failed(&name, error.to_string(), OTHER)),
            },
            Err(error) => unknown(Check::failed(&name, error.to_string(), OTHER)),
        }
    }
}

/// The remedy for an endpoint that gives another answer.
const OTHER: &str = "see whether client.toml names io-autotuned's address, and the service's log";

/// The remedy where there is no TLS.
const OF_TLS: &str = "see docs/install.md, \"TLS\": jobs run with defaults until service.toml's [tls] and client.toml's tls_ca fit each other";

/// The largest difference of clocks: credentials live for minutes, and reports are ordered by time.
const CLOCK_SKEW_SECONDS: f64 = 5.0;

/// Compares clocks. The second argument has the times when the request was sent and when the answer
/// came.
fn clock(service: Timestamp, (before, after): (Timestamp, Timestamp)) -> Check {
    const NAME: &str = "clock";
    let early = before.duration_since(service).as_secs_f64();
    let late = service.duration_since(after).as_secs_f64();
    let off = early.max(late).max(0.0);
    let detail = format!("{off:.1} s off the service's");
    if off > CLOCK_SKEW_SECONDS {
        let fix = "let chrony or ntpd set the clocks of this host and of the service's: `chronyc tracking`";
        Check::failed(NAME, detail, fix)
    } else {
        Check::ok(NAME, detail)
    }
}

/// The checks of all visits together. A failed endpoint is only a warning while another works; of
/// the other checks the worst result is kept. `here` is the result of making and reading a
/// credential on this host.
fn summary(
    visits: Vec<Visit>,
    backend: Backend,
    here: Result<(), String>,
) -> (Vec<Check>, Vec<PluginOnNodes>) {
    let works = |visit: &Visit| visit.endpoint.state == CheckState::Ok;
    let one_works = visits.iter().any(works);
    let mut checks: Vec<Check> = visits.iter().map(|visit| visit.endpoint.clone()).collect();
    if one_works {
        for check in &mut checks {
            check.state = check.state.min(CheckState::Warning);
        }
    }
    let worst =
        |checks: &mut dyn Iterator<Item = &Check>| checks.max_by_key(|check| check.state).cloned();
    let between = || worst(&mut visits.iter().filter_map(|visit| visit.signing.as_ref()));
    checks.push(match here {
        Err(problem) => Check::failed(
            backend.code(),
            problem,
            format!("start what answers for {backend} on this host (docs/install.md)"),
        ),
        Ok(()) => between().unwrap_or_else(|| {
            Check::warning(
                backend.code(),
                format!("{backend} answers here; not tried between hosts: no endpoint answers"),
                "let an endpoint answer first",
            )
        }),
    });
    let of_all = |of: fn(&Visit) -> Option<&Check>| worst(&mut visits.iter().filter_map(of));
    checks.extend(of_all(|visit| visit.version.as_ref()));
    checks.extend(of_all(|visit| visit.clock.as_ref()));
    let plugins = visits.iter().flat_map(|visit| visit.plugins.clone());
    let plugins = plugins.collect();
    // Replicas give the same diagnosis, except for their versions, so the first is used.
    let mut diagnosis = visits.into_iter().map(|visit| visit.diagnosis);
    let diagnosis = diagnosis.find(|checks| !checks.is_empty());
    checks.extend(diagnosis.unwrap_or_default());
    (checks, plugins)
}

fn differing(service: &str) -> Check {
    if service == VERSION {
        Check::ok(
            "versions",
            format!("service and this program are {VERSION}"),
        )
    } else {
        Check::warning(
            "versions",
            format!("the service is {service}, this program {VERSION}"),
            "upgrade the service first, then the other hosts",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of a request that was answered at once.
    const AT: (Timestamp, Timestamp) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);

    fn refused(status: u16, code: &str) -> Result<Diagnosis, CliError> {
        Err(CliError::Client(ClientError::Refused {
            status,
            code: code.to_owned(),
            message: "the service's words".to_owned(),
        }))
    }

    fn diagnosis(version: &str) -> Result<Diagnosis, CliError> {
        Ok(Diagnosis {
            version: version.to_owned(),
            checks: vec![Check::failed("caches", "epoch 3 differs", "reset it")],
            time: Some(Timestamp::UNIX_EPOCH),
            plugins: Vec::new(),
        })
    }

    fn down() -> Result<Diagnosis, CliError> {
        let error = "connection refused".to_owned();
        Err(CliError::Client(ClientError::Unreachable(error)))
    }

    fn found(answers: Vec<Result<Diagnosis, CliError>>) -> Vec<(String, CheckState)> {
        let visits = answers.into_iter().enumerate();
        let visits = visits.map(|(number, answer)| {
            Visit::of(&format!("tcp:h:{number}"), Backend::Munge, answer, AT)
        });
        let (checks, _) = summary(visits.collect(), Backend::Munge, Ok(()));
        for check in &checks {
            assert_eq!(
                check.fix.is_none(),
                check.state == CheckState::Ok,
                "{check:?}"
            );
        }
        checks
            .into_iter()
            .map(|check| (check.name, check.state))
            .collect()
    }

    fn expected(checks: &[(&str, CheckState)]) -> Vec<(String, CheckState)> {
        let own = |(name, state): &(&str, CheckState)| ((*name).to_owned(), *state);
        checks.iter().map(own).collect()
    }

    #[test]
    fn an_admin_sees_all() {
        use CheckState::{Failed, Ok, Warning};
        assert_eq!(
            found(vec![diagnosis(VERSION)]),
            expected(&[
                ("endpoint tcp:h:0", Ok),
                ("munge", Ok),
                ("versions", Ok),
                ("clock", Ok),
                ("caches", Failed)
            ])
        );
        // One endpoint of two that is down is no outage, and replicas give the same diagnosis.
        assert_eq!(
            found(vec![down(), diagnosis("9.9.9"), diagnosis(VERSION)]),
            expected(&[
                ("endpoint tcp:h:0", Warning),
                ("endpoint tcp:h:1", Ok),
                ("endpoint tcp:h:2", Ok),
                ("munge", Ok),
                ("versions", Warning),
                ("clock", Ok),
                ("caches", Failed)
            ])
        );
    }

    #[test]
    fn a_user_sees_this_host() {
        use CheckState::Ok;
        for refusal in [refused(403, "forbidden"), refused(404, "not_found")] {
            assert_eq!(
                found(vec![refusal]),
                expected(&[("endpoint tcp:h:0", Ok), ("munge", Ok), ("service", Ok)])
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told_where_it_is() {
        use CheckState::{Failed, Ok, Warning};
        assert_eq!(
            found(vec![down()]),
            expected(&[("endpoint tcp:h:0", Failed), ("munge", Warning)])
        );
        assert_eq!(
            found(vec![refused(503, "database")]),
            expected(&[("endpoint tcp:h:0", Failed), ("munge", Warning)])
        );
        assert_eq!(
            found(vec![refused(401, "unauthorized")]),
            expected(&[("endpoint tcp:h:0", Ok), ("munge", Failed)])
        );
        assert_eq!(
            found(vec![refused(404, "no_such_path")]),
            expected(&[
                ("endpoint tcp:h:0", Ok),
                ("munge", Ok),
                ("versions", Warning)
            ])
        );
    }
    #[test]
    fn the_back_end_is_named_and_what_it_lacks() {
        let of = |answer, here| {
            let visit = Visit::of("tcp:h:1", Backend::Sack, answer, AT);
            let (checks, _) = summary(vec![visit], Backend::Sack, here);
            let check = checks.into_iter().find(|check| check.name == "sack");
            check.map(|check| (check.state, check.detail + &check.fix.unwrap_or_default()))
        };
        let (state, detail) = of(diagnosis(VERSION), Ok(())).unwrap();
        assert_eq!(state, CheckState::Ok);
        assert!(detail.starts_with("SACK: "), "{detail}");
        let (state, detail) = of(refused(401, "unauthorized"), Ok(())).unwrap();
        assert_eq!(state, CheckState::Failed);
        assert!(detail.contains("the same slurm.key"), "{detail}");
        let (state, detail) = of(down(), Err("SACK: no such socket".into())).unwrap();
        assert_eq!(
            (state, &*detail),
            (
                CheckState::Failed,
                "SACK: no such socketstart what answers for SACK on this host (docs/install.md)"
            )
        );
    }

    #[test]
    fn a_slow_answer_is_no_skew_and_another_time_is() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(clock(at(105), (at(100), at(110))).state, CheckState::Ok);
        let check = clock(at(70), (at(100), at(101)));
        assert_eq!(check.state, CheckState::Failed);
        assert_eq!(check.detail, "30.0 s off the service's");
        assert!(check.fix.unwrap().contains("chronyc"));
    }
}
