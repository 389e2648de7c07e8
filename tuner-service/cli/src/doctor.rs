//! `io-autotune doctor`: checks of this host's configuration, the way to each endpoint, signatures
//! by MUNGE or SACK in both directions and, on a compute node, the spool. The service's own checks
//! come from `GET /v1/doctor` (admins only).

mod plugin;
mod spool;

use std::path::Path;

use io_autotune_protocol::credentials::{Backend, Credentials, round_trip};
use io_autotune_protocol::{Check, CheckState, ClientConfig, ClientError, Diagnosis};
use serde::Serialize;

use crate::service::{CliError, Service};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    version: &'static str,
    /// This host's checks come first.
    pub(crate) checks: Vec<Check>,
}

impl Report {
    pub(crate) fn has_failed(&self) -> bool {
        self.checks
            .iter()
            .any(|check| check.state == CheckState::Failed)
    }
}

pub(crate) async fn examine(config: &Path, spool: &Path) -> Report {
    let mut checks = Vec::new();
    match ClientConfig::load(config) {
        Err(error) => checks.push(failed("configuration", error.to_string())),
        Ok(parsed) => match parsed.service_uid() {
            Err(error) => checks.push(failed("configuration", error.to_string())),
            Ok(uid) => {
                checks.push(ok(
                    "configuration",
                    format!(
                        "{}: answers signed by uid {uid} are believed",
                        config.display()
                    ),
                ));
                checks.extend(service(&parsed).await);
            }
        },
    }
    checks.extend(plugin::check());
    checks.extend(spool::check(spool));
    Report {
        version: VERSION,
        checks,
    }
}

/// Checks signatures, every endpoint and the versions, and adds the service's own checks.
async fn service(config: &ClientConfig) -> Vec<Check> {
    let signer = config.signer();
    let backend = signer.backend();
    // It blocks, some ten seconds if munged is down: nothing else runs meanwhile.
    let here = round_trip(&signer);
    let mut visits = Vec::new();
    for endpoint in &config.endpoints {
        let alone = ClientConfig {
            endpoints: vec![endpoint.clone()],
            ..config.clone()
        };
        let answer = match Service::of(&alone) {
            Ok(service) => service.doctor().await,
            Err(error) => Err(error),
        };
        visits.push(Visit::of(&endpoint.to_string(), backend, answer));
    }
    summary(visits, backend, here)
}

/// The result of asking one endpoint.
struct Visit {
    endpoint: Check,
    /// Of signatures; `None` if the request never got so far.
    signing: Option<Check>,
    /// The check of the service's version.
    version: Option<Check>,
    /// The service's own checks.
    diagnosis: Vec<Check>,
}

impl Visit {
    fn of(endpoint: &str, backend: Backend, answer: Result<Diagnosis, CliError>) -> Self {
        let name = format!("endpoint {endpoint}");
        let reached = || ok(&name, "answers");
        let unknown = |endpoint| Visit {
            endpoint,
            signing: None,
            version: None,
            diagnosis: Vec::new(),
        };
        let signed = || Visit {
            signing: Some(ok(
                backend.code(),
                format!("{backend}: the service knows who asks here, and its answers are signed"),
            )),
            ..unknown(reached())
        };
        let shared = format!(
            "both hosts need the same `auth`, the same {} and the same time",
            backend.key()
        );
        let distrusted = |problem: String| Visit {
            signing: Some(failed(backend.code(), problem)),
            ..unknown(reached())
        };
        match answer {
            Ok(Diagnosis { version, checks }) => Visit {
                version: differing(&version),
                diagnosis: checks,
                ..signed()
            },
            Err(CliError::Client(error)) => match error {
                ClientError::Refused {
                    status: 401,
                    message,
                    ..
                } => distrusted(format!(
                    "the service does not accept our credential: {message}; {shared}"
                )),
                ClientError::Refused { status: 500.., .. } => {
                    unknown(failed(&name, error.to_string()))
                }
                ClientError::Refused { ref code, .. } if code == "no_such_path" => Visit {
                    version: Some(warning(
                        "versions",
                        format!(
                            "the service is older than this program, {VERSION}, and cannot examine itself: upgrade it"
                        ),
                    )),
                    ..signed()
                },
                ClientError::Refused { status, .. } if status == 403 || status == 404 => Visit {
                    diagnosis: vec![ok("service", "what it says of itself is for admins only")],
                    ..signed()
                },
                ClientError::Credential(error) => distrusted(error.to_string()),
                ClientError::Signature { source, .. } => distrusted(format!(
                    "the answer is not the service's: {source}; {shared}, and service_user must be the service's account"
                )),
                error @ (ClientError::Unreachable(_) | ClientError::Deadline(_)) => {
                    unknown(failed(
                        &name,
                        format!(
                            "{error}; is io-autotuned running there, and can this host reach it?"
                        ),
                    ))
                }
                error => unknown(failed(&name, error.to_string())),
            },
            Err(error) => unknown(failed(&name, error.to_string())),
        }
    }
}

/// A failed endpoint is only a warning while another works; of the other checks the worst is kept.
/// `here`: whether a credential is made and read on this host.
fn summary(visits: Vec<Visit>, backend: Backend, here: Result<(), String>) -> Vec<Check> {
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
        Err(problem) => failed(backend.code(), problem),
        Ok(()) => between().unwrap_or_else(|| {
            warning(
                backend.code(),
                format!("{backend} answers here; not tried between hosts: no endpoint answers"),
            )
        }),
    });
    checks.extend(worst(
        &mut visits.iter().filter_map(|visit| visit.version.as_ref()),
    ));
    // Replicas share a diagnosis, except for their versions: the first will do.
    let diagnosis = visits.into_iter().map(|visit| visit.diagnosis);
    checks.extend(
        diagnosis
            .into_iter()
            .find(|checks| !checks.is_empty())
            .unwrap_or_default(),
    );
    checks
}

fn differing(service: &str) -> Option<Check> {
    Some(if service == VERSION {
        ok(
            "versions",
            format!("service and this program are {VERSION}"),
        )
    } else {
        warning(
            "versions",
            format!(
                "the service is {service}, this program {VERSION}: upgrade the service first, then the other hosts"
            ),
        )
    })
}

fn ok(name: &str, detail: impl Into<String>) -> Check {
    check(name, CheckState::Ok, detail)
}

fn warning(name: &str, detail: impl Into<String>) -> Check {
    check(name, CheckState::Warning, detail)
}

fn failed(name: &str, detail: impl Into<String>) -> Check {
    check(name, CheckState::Failed, detail)
}

fn check(name: &str, state: CheckState, detail: impl Into<String>) -> Check {
    Check {
        name: name.to_owned(),
        state,
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            checks: vec![failed("caches", "epoch 3 differs from its runs")],
        })
    }

    fn down() -> Result<Diagnosis, CliError> {
        let error = "connection refused".to_owned();
        Err(CliError::Client(ClientError::Unreachable(error)))
    }

    fn found(answers: Vec<Result<Diagnosis, CliError>>) -> Vec<(String, CheckState)> {
        let visits = answers.into_iter().enumerate();
        let visits = visits
            .map(|(number, answer)| Visit::of(&format!("tcp:h:{number}"), Backend::Munge, answer));
        summary(visits.collect(), Backend::Munge, Ok(()))
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
                ("caches", Failed)
            ])
        );
        // One endpoint of two is no outage, and replicas say the same of themselves.
        assert_eq!(
            found(vec![down(), diagnosis("9.9.9"), diagnosis(VERSION)]),
            expected(&[
                ("endpoint tcp:h:0", Warning),
                ("endpoint tcp:h:1", Ok),
                ("endpoint tcp:h:2", Ok),
                ("munge", Ok),
                ("versions", Warning),
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
            let visit = Visit::of("tcp:h:1", Backend::Sack, answer);
            let checks = summary(vec![visit], Backend::Sack, here);
            let check = checks.into_iter().find(|check| check.name == "sack");
            check.map(|check| (check.state, check.detail))
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
            (CheckState::Failed, "SACK: no such socket")
        );
    }
}
