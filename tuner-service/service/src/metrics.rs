//! The metrics that Prometheus reads: requests and starts as they are counted here, and studies and
//! waiting runs as the database has them. No label names a user, an application or a job.

mod format;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use io_autotune_model::NotCountedBecause;
use io_autotune_store::{Overview, StartedRun, Store, StoreError, Verdict};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use self::format::Format;
use crate::clock::{Clock, SystemClock};
use crate::exploring::utc_offset;
use crate::failed_work::Apart;

/// The monitoring gets an answer about the database within this time, also if the database does not
/// answer.
pub(crate) const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The text is made at most once in this time, however many read it.
const TEXT_AGE: Duration = Duration::from_secs(1);

/// The database counts its studies at most once in this time.
const OVERVIEW_AGE: Duration = Duration::from_secs(60);

/// Of a gauge that may be absent.
type NoLabels = [(&'static str, &'static str); 0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Asked {
    endpoint: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reloaded {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Started {
    phase: String,
    role: String,
    rule: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Judged {
    state: &'static str,
    /// Why the run does not count; empty if it does.
    because: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Studies {
    phase: String,
    gain: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Found {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Payer {
    budget: String,
}

/// The counts since the service began, and the last numbers from the database.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    seconds: Family<Kind, Histogram, fn() -> Histogram>,
    started: Family<Started, Counter>,
    judged: Family<Judged, Counter>,
    reloads: Family<Reloaded, Counter>,
    reload_refused: Gauge,
    certificate_end: Family<NoLabels, Gauge>,
    database_up: Gauge,
    database_writable: Gauge,
    studies: Family<Studies, Gauge>,
    findings: Family<Found, Gauge>,
    in_flight: Gauge,
    longest_wait: Gauge<f64, AtomicU64>,
    set_apart: Family<Kind, Gauge>,
    exploring: Family<Payer, Gauge<f64, AtomicU64>>,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    text: Option<(Instant, String)>,
    overview: Option<Instant>,
    /// The counting in the database that has taken longer than its asker could wait.
    counting: Option<JoinHandle<Result<Overview, StoreError>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let new = Self {
            registry: Registry::with_prefix("io_autotune"),
            requests: Family::default(),
            // From 1 ms to 8 s: a prolog waits for 2 s.
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.001, 2.0, 14))
            }),
            started: Family::default(),
            judged: Family::default(),
            reloads: Family::default(),
            reload_refused: Gauge::default(),
            certificate_end: Family::default(),
            database_up: Gauge::default(),
            database_writable: Gauge::default(),
            studies: Family::default(),
            findings: Family::default(),
            in_flight: Gauge::default(),
            longest_wait: Gauge::default(),
            set_apart: Family::default(),
            exploring: Family::default(),
            last: Mutex::default(),
        };
        new.registered()
    }
}

impl Metrics {
    fn registered(mut self) -> Self {
        let all = &mut self.registry;
        let version = vec![("version", env!("CARGO_PKG_VERSION"))];
        all.register("build", "The service", Info::new(version));
        all.register(
            "requests",
            "Requests by endpoint and outcome (ok, refused, later, failed)",
            self.requests.clone(),
        );
        all.register_with_unit(
            "request",
            "Time of requests by kind (start, finish, other)",
            Unit::Seconds,
            self.seconds.clone(),
        );
        all.register(
            "starts",
            "Runs started, by the phase of their study, their role and the rule that decided",
            self.started.clone(),
        );
        all.register(
            "verdicts",
            "Verdicts, first and revised ones, by the state that they give the run and why it does not count",
            self.judged.clone(),
        );
        all.register(
            "reloads",
            "Reloads of the configuration by outcome (ok, refused)",
            self.reloads.clone(),
        );
        all.register(
            "reload_refused",
            "1 if the configuration was wrong when it was last reloaded",
            self.reload_refused.clone(),
        );
        all.register_with_unit(
            "certificate_end",
            "When the certificate for TLS runs out, since the epoch; absent without TLS",
            Unit::Seconds,
            self.certificate_end.clone(),
        );
        all.register(
            "database_up",
            "1 if the database answered when it was last asked",
            self.database_up.clone(),
        );
        all.register(
            "database_writable",
            "1 if the database took writes and had the schema when it was last asked",
            self.database_writable.clone(),
        );
        all.register(
            "studies",
            "Studies by the phase of their last run and what may be claimed of their gain",
            self.studies.clone(),
        );
        all.register(
            "findings",
            "Findings of all studies, by kind",
            self.findings.clone(),
        );
        all.register(
            "runs_in_flight",
            "Runs without a verdict",
            self.in_flight.clone(),
        );
        all.register_with_unit(
            "longest_wait_for_a_verdict",
            "Since the first report of the run that has waited longest",
            Unit::Seconds,
            self.longest_wait.clone(),
        );
        all.register(
            "set_apart",
            "What the sweeps could not do and try again later, by kind (jobs, runs, steps, studies): doctor names it",
            self.set_apart.clone(),
        );
        all.register(
            "exploring_node_hours_today",
            "Node-hours that exploring has taken today, by whose budget it is charged to (user, account, partition, site)",
            self.exploring.clone(),
        );
        self
    }

    /// Counts a run that got its parametrization.
    pub(crate) fn count_start(&self, run: &StartedRun) {
        let labels = Started {
            phase: run.phase.to_string(),
            role: run.role.to_string(),
            rule: run.rule.map_or_else(String::new, |rule| rule.to_string()),
        };
        self.started.get_or_create(&labels).inc();
    }

    /// Counts a verdict on a run, its first one or a revised one.
    pub(crate) fn count_verdict(&self, verdict: &Verdict) {
        let labels = Judged {
            state: verdict.state(),
            because: verdict.because().map_or("", NotCountedBecause::as_str),
        };
        self.judged.get_or_create(&labels).inc();
    }

    /// Counts a reload of the configuration.
    pub(crate) fn count_reload(&self, is_ok: bool) {
        let outcome = if is_ok { "ok" } else { "refused" };
        self.reloads.get_or_create(&Reloaded { outcome }).inc();
        self.reload_refused.set(i64::from(!is_ok));
    }

    /// Shows when the certificate in force runs out; `None`: there is none.
    pub(crate) fn show_certificate(&self, ends: Option<Timestamp>) {
        match ends {
            None => self.certificate_end.clear(),
            Some(ends) => drop(
                self.certificate_end
                    .get_or_create(&[])
                    .set(ends.as_second()),
            ),
        }
    }

    async fn text(&self, store: &Store, apart: &Apart) -> String {
        let deadline = Instant::now() + ANSWERED_WITHIN;
        // All other readers wait for the same answer, which is there by the first one's deadline.
        let mut last = self.last.lock().await;
        if let Some((at, text)) = &last.text
            && at.elapsed() < TEXT_AGE
        {
            return text.clone();
        }
        self.ask(store, deadline).await;
        if last.overview.is_none_or(|at| at.elapsed() >= OVERVIEW_AGE) {
            self.count(&mut last, store, deadline).await;
        }
        let text = self.written(apart);
        last.text = Some((Instant::now(), text.clone()));
        text
    }

    /// Lets the database count its studies, and shows its answer if it comes before the deadline. A
    /// later answer is shown by the next text; until then the previous numbers stay.
    async fn count(&self, last: &mut Last, store: &Store, deadline: Instant) {
        let counting = last.counting.get_or_insert_with(|| {
            let store = store.clone();
            let offset = utc_offset(&TimeZone::system(), SystemClock.now());
            tokio::spawn(async move { store.overview(offset).await })
        });
        let Ok(counted) = timeout_at(deadline, counting).await else {
            return;
        };
        last.counting = None;
        match counted {
            Ok(Ok(overview)) => {
                self.show(overview);
                last.overview = Some(Instant::now());
            }
            Ok(Err(error)) => tracing::warn!(%error, "the metrics of studies are old"),
            Err(error) => tracing::error!(%error, "the metrics of studies are old"),
        }
    }

    fn written(&self, apart: &Apart) -> String {
        self.show_apart(apart);
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        text
    }

    fn show_apart(&self, apart: &Apart) {
        for (kind, count) in apart.counts() {
            let kind = Kind {
                kind: kind.as_str(),
            };
            self.set_apart.get_or_create(&kind).set(count);
        }
    }

    /// Asks the database whether it can serve requests.
    async fn ask(&self, store: &Store, deadline: Instant) {
        let ready = store.ready_by(deadline).await;
        if let Err(error) = &ready {
            tracing::warn!(error = error.with_remedy(), "the service is not ready");
        }
        // Users may occupy all their connections: that says nothing about the database.
        if matches!(ready, Err(StoreError::Busy { .. })) {
            return;
        }
        self.database_writable.set(i64::from(ready.is_ok()));
        let is_up = ready.err().is_none_or(|error| error.is_answer());
        self.database_up.set(i64::from(is_up));
    }

    fn show(&self, overview: Overview) {
        self.studies.clear();
        for (phase, gain, count) in overview.studies {
            let labels = Studies { phase, gain };
            self.studies.get_or_create(&labels).set(count);
        }
        self.findings.clear();
        for (kind, count) in overview.findings {
            self.findings.get_or_create(&Found { kind }).set(count);
        }
        self.exploring.clear();
        for (budget, node_seconds) in overview.exploring {
            let hours = node_seconds / 3600.0;
            self.exploring.get_or_create(&Payer { budget }).set(hours);
        }
        self.in_flight.set(overview.in_flight);
        self.longest_wait.set(overview.longest_wait);
    }
}

/// Counts every request of both doors, and how long it took.
pub(crate) async fn counted(
    State(metrics): State<Arc<Metrics>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    // All other paths are one endpoint: their names come from unknown senders.
    let endpoint = path.map_or("other", MatchedPath::as_str).to_owned();
    let began = Instant::now();
    let answer = next.run(request).await;
    let kind = Kind {
        kind: match endpoint.as_str() {
            "/v1/runs/start" => "start",
            "/v1/runs/finish" => "finish",
            _ => "other",
        },
    };
    let taken = began.elapsed().as_secs_f64();
    metrics.seconds.get_or_create(&kind).observe(taken);
    let outcome = outcome(answer.status());
    let asked = Asked { endpoint, outcome };
    metrics.requests.get_or_create(&asked).inc();
    answer
}

fn outcome(status: StatusCode) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "later",
        _ if status.is_success() => "ok",
        _ if status.is_client_error() => "refused",
        _ => "failed",
    }
}

/// The endpoint `/metrics` of Prometheus, in the format that the request accepts.
pub(crate) fn router(metrics: Arc<Metrics>, store: Store, apart: Arc<Apart>) -> Router {
    type Parts = (Arc<Metrics>, Store, Arc<Apart>);
    let text = |State((metrics, store, apart)): State<Parts>, headers: HeaderMap| async move {
        let format = Format::accepted(&headers);
        let text = format.of(metrics.text(&store, &apart).await);
        ([(CONTENT_TYPE, format.content_type())], text).into_response()
    };
    Router::new()
        .route("/metrics", get(text))
        .with_state((metrics, store, apart))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Prometheus' alert rules and Grafana's dashboard, as deployed.
    const READERS: [&str; 2] = [
        include_str!("../../../deploy/prometheus/io-autotune.rules.yml"),
        include_str!("../../../deploy/prometheus/grafana-dashboard.json"),
    ];

    fn overview() -> Overview {
        Overview {
            studies: vec![("settled".into(), "faster".into(), 3)],
            findings: vec![("drift".into(), 2)],
            in_flight: 4,
            longest_wait: 1.5,
            exploring: vec![("site".into(), 5400.0)],
        }
    }

    fn written(metrics: &Metrics) -> String {
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        text
    }

    fn used() -> Metrics {
        let metrics = Metrics::default();
        metrics.show_apart(&Apart::default());
        metrics.show(overview());
        for endpoint in ["/v1/runs/start", "other"] {
            let asked = Asked {
                endpoint: endpoint.to_owned(),
                outcome: outcome(StatusCode::OK),
            };
            metrics.requests.get_or_create(&asked).inc();
        }
        metrics
            .seconds
            .get_or_create(&Kind { kind: "start" })
            .observe(0.004);
        let started = Started {
            phase: "search".into(),
            role: "control".into(),
            rule: "control".into(),
        };
        metrics.started.get_or_create(&started).inc();
        metrics.count_reload(false);
        metrics.show_certificate(Some(Timestamp::from_second(1_800_000_000).unwrap()));
        metrics
    }

    #[test]
    fn the_text_has_what_was_counted() {
        let text = written(&used());
        for line in [
            r#"io_autotune_requests_total{endpoint="/v1/runs/start",outcome="ok"} 1"#,
            r#"io_autotune_request_seconds_bucket{le="0.004",kind="start"} 1"#,
            r#"io_autotune_starts_total{phase="search",role="control",rule="control"} 1"#,
            r#"io_autotune_studies{phase="settled",gain="faster"} 3"#,
            r#"io_autotune_findings{kind="drift"} 2"#,
            r#"io_autotune_reloads_total{outcome="refused"} 1"#,
            "io_autotune_reload_refused 1",
            "io_autotune_certificate_end_seconds 1800000000",
            "io_autotune_runs_in_flight 4",
            "io_autotune_longest_wait_for_a_verdict_seconds 1.5",
            r#"io_autotune_exploring_node_hours_today{budget="site"} 1.5"#,
        ] {
            assert!(
                text.lines().any(|each| each == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn a_service_without_tls_shows_no_end_of_a_certificate() {
        let metrics = used();
        metrics.show_certificate(None);
        assert!(!written(&metrics).contains("certificate_end_seconds 1"));
    }

    #[test]
    fn studies_that_have_moved_on_are_not_counted_where_they_were() {
        let metrics = used();
        metrics.show(Overview {
            studies: vec![("search".into(), "not_yet".into(), 3)],
            ..Overview::default()
        });
        let text = written(&metrics);
        assert!(!text.contains("settled"), "{text}");
        assert!(!text.contains("drift"), "{text}");
    }

    #[test]
    fn what_rules_and_dashboard_read_is_written() {
        let text = written(&used());
        let names: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        for reader in READERS {
            let is_of_a_name = |each: char| each.is_ascii_alphanumeric() || each == '_';
            let read = reader
                .split(|each| !is_of_a_name(each))
                .filter(|word| word.starts_with("io_autotune_"));
            let unknown: Vec<&str> = read.filter(|name| !names.contains(name)).collect();
            assert_eq!(unknown, Vec::<&str>::new(), "of {names:?}");
        }
    }

    #[test]
    fn a_refusal_is_no_failure() {
        for (status, expected) in [
            (200, "ok"),
            (404, "refused"),
            (429, "later"),
            (503, "later"),
            (500, "failed"),
        ] {
            assert_eq!(outcome(StatusCode::from_u16(status).unwrap()), expected);
        }
    }
}
