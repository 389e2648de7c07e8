use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::time::Duration;

use io_autotune_catalogue::RulesError;
use io_autotune_model::{AuditLine, NotCountedBecause};
use io_autotune_optimize::SpaceFileError;
use io_autotune_protocol::{
    AcceleratorDetail, AcceleratorSummary, ApplicationRules, Call, Client, ClientConfig,
    ClientError, ConfigError, Diagnosis, ExportPage, ImportAnswer, ImportChunk, ImportRequest,
    JobNames, ORDERS_PAGE, OrderAnswer, OrderRequest, OrderSummary, RUNS_PAGE, Replay, ReportFile,
    ReportFileName, RetentionAnswer, RetentionRequest, RunDetail, RunState, RunSummary,
    STUDIES_PAGE, SiteDefault, StudyDetail, StudySummary, WarmStartAnswer, WarmStartRequest,
    WhyRequest,
};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arguments::StudiesOf;
use crate::people::name_of;
use crate::report::ReportError;
use crate::targets::{Ambiguity, Named};

/// The deadline of a request for which a person waits.
const DEADLINE: Duration = Duration::from_secs(15);
/// The deadline of a large import, which is written in one transaction, and of a dry run of
/// retention, which reads all runs. The service ends a connection after the same time.
const LONG_DEADLINE: Duration = Duration::from_secs(30);
/// The number of attempts for a first answer. The following is that for each later page or change,
/// of which a script makes many.
const FEW: u32 = 3;
const MANY: u32 = 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    SpaceFile(#[from] Box<SpaceFileError>),
    #[error("{path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the file is refused:{0}")]
    CatalogueFile(String),
    #[error(
        "the site's rules cannot be read by this command, which may be older than the service: {0}"
    )]
    SiteRules(#[from] RulesError),
    #[error("{0}")]
    Optimize(String),
    #[error("{0}")]
    Campaign(String),
    #[error("the exchange ended: {0}")]
    Exchange(#[from] std::io::Error),
    #[error("the answer cannot be printed: {0}")]
    Print(#[from] serde_json::Error),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("the answer cannot be printed: {0}")]
    Csv(#[from] csv::Error),
    #[error("{0}")]
    Usage(String),
    #[error("nothing was changed: {0} would; add --yes to do it without a question")]
    NotSure(String),
    #[error(
        "nothing was changed: {unknown}; add --yes to give the order, {what}, for studies that begin later"
    )]
    NoneYet { what: String, unknown: String },
    #[error("{0}")]
    NotOrdered(String),
    #[error("{unknown}; `io-autotune status` lists them")]
    NoStudy { name: String, unknown: String },
    #[error("there is no study {0} that you may see; `io-autotune status` lists them")]
    NoStudyOfNumber(i64),
    #[error(
        "application {0:?} has no study that you may see: a study begins with its first run, whose nodes tell which \
         study it is of; let one job run (mode=observe will do), then warm-start it"
    )]
    NotBegun(String),
    #[error(
        "application {name:?} has several studies: name one of {numbers} (`io-autotune status app:{name}` tells them apart)"
    )]
    SeveralStudies { name: String, numbers: String },
    #[error("{0:?}")]
    Ambiguous(Ambiguity),
    #[error(
        "neither squeue nor sacct of this host knows a task {array}_{task} that has begun: type the task's own job id, which \
         `squeue --array --format=%i,%A` lists as long as it is in the queue, and `sacct --jobs={array} --allocations \
         --format=JobID,JobIDRaw` later"
    )]
    UnknownTask { array: u32, task: u32 },
}

/// A selection of runs. `None`: any.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunsOf {
    pub(crate) of: StudiesOf,
    pub(crate) state: Option<RunState>,
    /// Runs that do not count for this reason.
    pub(crate) not_counted: Option<NotCountedBecause>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    /// The most runs, the newest ones.
    pub(crate) limit: u32,
}

impl RunsOf {
    /// The newest runs of a study.
    pub(crate) fn study(study_id: i64, limit: u32) -> Self {
        Self {
            of: StudiesOf::named(&Named::Study(study_id)),
            limit,
            ..Self::default()
        }
    }
}

/// The largest answer, in bytes: far above any list of the service's.
const LISTS: usize = 64 * 1024 * 1024;

pub(crate) struct Service {
    client: Client,
    /// The only cluster that is meant.
    cluster: Option<String>,
}

impl CliError {
    /// The exit status, as the man page lists them.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::NotSure(_) | Self::NoneYet { .. } | Self::Ambiguous(_) => 2,
            Self::Config(_) => 3,
            Self::Client(ClientError::Refused { status, .. }) if *status < 500 => 4,
            Self::Client(_) => 3,
            Self::NoStudy { .. }
            | Self::NotOrdered(_)
            | Self::NoStudyOfNumber(_)
            | Self::NotBegun(_)
            | Self::SeveralStudies { .. }
            | Self::UnknownTask { .. } => 4,
            _ => 1,
        }
    }
}

impl Service {
    pub(crate) fn new(config: &Path, cluster: Option<&str>) -> Result<Self, CliError> {
        Self::of(&ClientConfig::load(config)?, cluster)
    }

    pub(crate) fn of(config: &ClientConfig, cluster: Option<&str>) -> Result<Self, CliError> {
        Ok(Self {
            client: Client::new(config)?.reading(LISTS),
            cluster: cluster.map(str::to_owned),
        })
    }

    /// The cluster that is meant, if only one is.
    pub(crate) fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    fn query_of(&self, wanted: &StudiesOf) -> Query {
        Query::default()
            .with("app", wanted.application.as_ref())
            .with("study", wanted.study)
            .with("accelerator", wanted.accelerator.as_ref())
            .with("uid", wanted.user)
            .with("account", wanted.account.as_ref())
            .with("cluster", self.cluster())
    }

    pub(crate) async fn studies(&self, wanted: &StudiesOf) -> Result<Vec<StudySummary>, CliError> {
        let mut studies: Vec<StudySummary> = Vec::new();
        loop {
            let after = studies.last().map(|last| last.study_id);
            let query = self.query_of(wanted).with("after", after);
            let query = query.with("limit", Some(STUDIES_PAGE));
            let path = format!("/v1/studies{query}");
            let page: Vec<_> = self.page(&path, studies.is_empty()).await?;
            let is_last = page.is_empty();
            studies.extend(page);
            if is_last {
                return Ok(studies);
            }
        }
    }

    /// A study that the caller may see, on whichever cluster it is.
    pub(crate) async fn study_of_number(
        &self,
        study: i64,
    ) -> Result<Option<StudySummary>, CliError> {
        let query = Query::default()
            .with("study", Some(study))
            .with("limit", Some(1));
        let found: Vec<StudySummary> = self.get(&format!("/v1/studies{query}")).await?;
        Ok(found.into_iter().next())
    }

    /// Returns true if a job has a run that the caller may see.
    pub(crate) async fn has_run(&self, job_id: u32) -> Result<bool, CliError> {
        match self.explain(job_id).await {
            Err(CliError::Client(ClientError::Refused { status: 404, .. })) => Ok(false),
            other => Ok(!other?.is_empty()),
        }
    }

    pub(crate) async fn runs(&self, wanted: &RunsOf) -> Result<Vec<RunSummary>, CliError> {
        let query = self
            .query_of(&wanted.of)
            .with("state", wanted.state.map(RunState::as_str))
            .with(
                "not_counted_because",
                wanted.not_counted.map(NotCountedBecause::as_str),
            )
            .with("since", wanted.since)
            .with("until", wanted.until);
        // Each page is oldest first.
        let newest_first = |page: Vec<_>| page.into_iter().rev().collect();
        let mut runs: Vec<RunSummary> = self
            .newest(
                "/v1/runs",
                &query,
                wanted.limit,
                newest_first,
                |run: &RunSummary| run.run_id,
            )
            .await?;
        runs.reverse();
        Ok(runs)
    }

    /// The newest of a list, page after page, each of which `newest_first` brings into order.
    async fn newest<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &Query,
        limit: u32,
        newest_first: impl Fn(Vec<T>) -> Vec<T>,
        number: impl Fn(&T) -> i64,
    ) -> Result<Vec<T>, CliError> {
        let mut found: Vec<T> = Vec::new();
        loop {
            let left = (limit as usize).saturating_sub(found.len());
            let most = left.min(RUNS_PAGE as usize);
            let query = query.clone().with("before", found.last().map(&number));
            let path = format!("{path}{}", query.with("limit", Some(most)));
            let page: Vec<T> = self.page(&path, found.is_empty()).await?;
            let is_last = page.len() < most || page.len() >= left;
            found.extend(newest_first(page));
            if is_last {
                return Ok(found);
            }
        }
    }

    pub(crate) async fn explain(&self, job_id: u32) -> Result<Vec<RunDetail>, CliError> {
        let query = Query::default().with("cluster", self.cluster());
        self.get(&format!("/v1/runs/{job_id}{query}")).await
    }

    pub(crate) async fn replay(&self, job_id: u32) -> Result<Vec<Replay>, CliError> {
        let query = Query::default().with("cluster", self.cluster());
        self.get(&format!("/v1/runs/{job_id}/replay{query}")).await
    }

    pub(crate) async fn accelerators(&self) -> Result<Vec<AcceleratorSummary>, CliError> {
        self.get("/v1/accelerators").await
    }

    pub(crate) async fn accelerator(&self, name: &str) -> Result<AcceleratorDetail, CliError> {
        self.get(&format!("/v1/accelerators/{}", encoded(name)))
            .await
    }

    /// What the studies of an accelerator have in common, on each cluster that is meant.
    pub(crate) async fn site_defaults(&self, name: &str) -> Result<Vec<SiteDefault>, CliError> {
        let query = Query::default().with("cluster", self.cluster());
        let path = format!("/v1/site-defaults/{}{query}", encoded(name));
        self.get(&path).await
    }

    pub(crate) async fn rules(&self) -> Result<ApplicationRules, CliError> {
        self.get("/v1/applications/rules").await
    }

    pub(crate) async fn job_names(&self) -> Result<JobNames, CliError> {
        self.get("/v1/applications/names").await
    }

    pub(crate) async fn doctor(&self) -> Result<Diagnosis, CliError> {
        self.get("/v1/doctor").await
    }

    pub(crate) async fn report(&self, file: ReportFileName) -> Result<ReportFile, CliError> {
        self.get(&format!("/v1/report/{}", file.as_str())).await
    }

    /// The page of the caller's own studies, of the latest report.
    pub(crate) async fn own_report(&self) -> Result<ReportFile, CliError> {
        self.get("/v1/report/mine").await
    }

    pub(crate) async fn steer<B: Serialize>(
        &self,
        study_id: i64,
        action: &str,
        body: &B,
    ) -> Result<StudySummary, CliError> {
        // A reset that is carried out twice would open two epochs.
        self.post(&format!("/v1/studies/{study_id}/{action}"), body, false)
            .await
    }

    pub(crate) async fn warm_start(
        &self,
        study_id: i64,
        request: &WarmStartRequest,
    ) -> Result<WarmStartAnswer, CliError> {
        let path = format!("/v1/studies/{study_id}/warm-start");
        self.post(&path, request, request.dry_run).await
    }

    pub(crate) async fn study(&self, study_id: i64) -> Result<StudyDetail, CliError> {
        self.page(&format!("/v1/studies/{study_id}"), false).await
    }

    pub(crate) async fn orders(&self) -> Result<Vec<OrderSummary>, CliError> {
        let mut orders: Vec<OrderSummary> = Vec::new();
        loop {
            let last = orders.last().and_then(|order| order.order_id);
            let query = Query::default().with("after", last);
            let page: Vec<OrderSummary> = self.get(&format!("/v1/orders{query}")).await?;
            // A service before 0.4 has no pages: it returns all orders each time.
            let is_new = page.last().and_then(|order| order.order_id) > last;
            let is_last = page.len() != ORDERS_PAGE as usize || !is_new;
            if is_new {
                orders.extend(page);
            }
            if is_last {
                return Ok(orders);
            }
        }
    }

    /// Gives an order, or ends one. A dry run changes nothing.
    pub(crate) async fn order(
        &self,
        request: &OrderRequest,
        ends: bool,
    ) -> Result<OrderAnswer, CliError> {
        let path = if ends { "/v1/orders/end" } else { "/v1/orders" };
        self.post(path, request, request.dry_run).await
    }

    pub(crate) async fn audit(
        &self,
        study: Option<i64>,
        by: Option<u32>,
        limit: u32,
    ) -> Result<Vec<AuditLine>, CliError> {
        let query = Query::default().with("study", study).with("by", by);
        let as_it_is = |page| page;
        self.newest("/v1/audit", &query, limit, as_it_is, |line: &AuditLine| {
            line.audit_id
        })
        .await
    }

    pub(crate) async fn undo(&self, line: i64, body: &WhyRequest) -> Result<AuditLine, CliError> {
        self.post(&format!("/v1/audit/{line}/undo"), body, false)
            .await
    }

    /// A page of a study as text.
    pub(crate) async fn export(
        &self,
        study_id: i64,
        after: Option<&str>,
    ) -> Result<ExportPage, CliError> {
        let query = Query::default().with("after", after);
        let path = format!("/v1/studies/{study_id}/export{query}");
        self.page(&path, after.is_none()).await
    }

    /// Uploads a piece of a file. Uploading it again is harmless.
    pub(crate) async fn import_chunk(
        &self,
        upload: &str,
        chunk: &ImportChunk,
    ) -> Result<ImportAnswer, CliError> {
        self.post(&format!("/v1/imports/{upload}"), chunk, true)
            .await
    }

    pub(crate) async fn end_import(
        &self,
        upload: &str,
        request: &ImportRequest,
    ) -> Result<ImportAnswer, CliError> {
        let path = format!("/v1/imports/{upload}/end");
        // A second import is answered that the studies exist.
        let call = || Call {
            idempotent: false,
            ..Call::post(&path, request)
        };
        self.in_turn(call, 1, LONG_DEADLINE).await
    }

    /// Removes a batch of old runs, or returns what would be removed.
    pub(crate) async fn retention(
        &self,
        request: &RetentionRequest,
    ) -> Result<RetentionAnswer, CliError> {
        let call = || Call {
            idempotent: request.dry_run,
            ..Call::post("/v1/retention", request)
        };
        self.in_turn(call, MANY, LONG_DEADLINE).await
    }

    async fn post<B: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
        idempotent: bool,
    ) -> Result<A, CliError> {
        let call = || Call {
            idempotent,
            ..Call::post(path, body)
        };
        self.in_turn(call, MANY, DEADLINE).await
    }

    pub(crate) async fn no_study(&self, name: &str) -> CliError {
        CliError::NoStudy {
            name: name.to_owned(),
            unknown: self.unknown(name).await,
        }
    }

    /// The reason why a list is empty although there are studies; `None`: there is no study at all.
    pub(crate) async fn none_of(&self, wanted: &StudiesOf) -> Result<Option<CliError>, CliError> {
        let known = self.studies(&StudiesOf::default()).await?;
        Ok(none_of(wanted, &known))
    }

    /// A message that an application has no study, with the known ones whose names are similar.
    pub(crate) async fn unknown(&self, name: &str) -> String {
        // The names are only a help, so without an answer there are none.
        let known = self.job_names().await.map(|known| known.names);
        let known = known.unwrap_or_default().into_iter();
        let mean = meant(&nearest(name, known.map(|one| one.application)));
        format!("application {name:?} has no study that you may see{mean}")
    }

    /// A page of a list. Later pages of a long list wait longer for their turn.
    async fn page<A: DeserializeOwned>(&self, path: &str, is_first: bool) -> Result<A, CliError> {
        let tries = if is_first { FEW } else { MANY };
        self.in_turn(|| Call::get(path), tries, DEADLINE).await
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, CliError> {
        self.in_turn(|| Call::get(path), FEW, DEADLINE).await
    }

    /// Repeats a request while the user's quota is used up, because another command of a script may
    /// just have used it. The service delays its refusals, and has done nothing then.
    async fn in_turn<'a, B: Serialize + 'a, A: DeserializeOwned>(
        &self,
        call: impl Fn() -> Call<'a, B>,
        tries: u32,
        deadline: Duration,
    ) -> Result<A, CliError> {
        for _ in 1..tries {
            match self.client.call(call(), deadline).await {
                Err(ClientError::Refused { status: 429, .. }) => {}
                answer => return Ok(answer?),
            }
        }
        Ok(self.client.call(call(), deadline).await?)
    }
}

/// An error that nothing matches the selection, with the nearest known names.
fn none_of(wanted: &StudiesOf, known: &[StudySummary]) -> Option<CliError> {
    if known.is_empty() {
        return None;
    }
    let mut words = Vec::new();
    let mut mean = Vec::new();
    let mut named =
        |what: &str, name: &Option<String>, of: fn(&StudySummary) -> Option<&String>| {
            let Some(name) = name else { return };
            words.push(format!("{what} {name:?}"));
            let names = || known.iter().filter_map(of).cloned();
            if !names().any(|one| one == *name) {
                mean.extend(nearest(name, names()));
            }
        };
    named("application", &wanted.application, |one| {
        Some(&one.application)
    });
    named("accelerator", &wanted.accelerator, |one| {
        Some(&one.accelerator)
    });
    named("account", &wanted.account, |one| one.account.as_ref());
    words.extend(wanted.user.map(|uid| format!("user {}", name_of(uid))));
    match (wanted.study, words.is_empty()) {
        (Some(study), true) => return Some(CliError::NoStudyOfNumber(study)),
        (Some(study), false) => words.push(format!("number {study}")),
        (None, true) => return None,
        (None, false) => {}
    }
    let name = wanted.application.clone().unwrap_or_default();
    let unknown = format!(
        "there is no study of {} that you may see{}",
        words.join(", "),
        meant(&mean)
    );
    Some(CliError::NoStudy { name, unknown })
}

/// Names that are as similar as clap requires for its suggestions, the most similar first.
pub(crate) fn nearest(name: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    const LIKE: f64 = 0.7;
    const MOST: usize = 3;
    let known: BTreeSet<String> = known.collect();
    let known = known.into_iter();
    let like = known.map(|one| (strsim::jaro(name, &one), one));
    let mut like: Vec<(f64, String)> = like.filter(|(likeness, _)| *likeness > LIKE).collect();
    like.sort_by(|a, b| b.0.total_cmp(&a.0));
    like.into_iter().take(MOST).map(|(_, one)| one).collect()
}

/// The names that may have been meant, in brackets; empty if there are none.
pub(crate) fn meant(nearest: &[String]) -> String {
    match nearest.is_empty() {
        true => String::new(),
        false => format!(" (there is {})", nearest.join(", ")),
    }
}

/// A query string of the pairs that have a value.
#[derive(Clone, Debug, Default)]
struct Query(String);

impl Query {
    fn with(mut self, name: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.push_str(&encoded(&value.to_string()));
        }
        self
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Percent-encodes a path or query component.
fn encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_has_its_nearest_known_ones() {
        let known = ["ocean.sh", "climate", "ocean.sh", "oceans"];
        let like = |name| nearest(name, known.into_iter().map(str::to_owned));
        assert_eq!(like("ocaen.sh"), ["ocean.sh", "oceans"]);
        assert_eq!(like("xyz"), [""; 0]);
    }

    #[test]
    fn a_warm_start_of_what_has_not_run_yet_says_when_it_can_be() {
        let error = CliError::NotBegun("climate".to_owned());
        assert_eq!(error.status(), 4);
        assert_eq!(
            error.to_string(),
            "application \"climate\" has no study that you may see: a study begins with its first run, \
             whose nodes tell which study it is of; let one job run (mode=observe will do), then \
             warm-start it"
        );
    }

    #[test]
    fn what_nothing_is_of_is_said_with_the_nearest_names_to_whoever_has_studies() {
        let study: StudySummary = serde_json::from_value(serde_json::json!({
            "study_id": 7, "application": "ocean.sh", "uid": 1000, "user": "io-alice",
            "accelerator": "romio", "context": {}, "epoch": 1,
            "opened": { "at": "1970-01-01T00:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
            "phase": "baseline", "counted": 1, "not_counted": 0, "in_flight": 0, "explored": [0, 50],
            "default": null, "control": null, "tuned": null, "gain": null, "recommended": null,
            "differs": {}, "why": "", "pin": null, "warnings": []
        }))
        .unwrap();
        let known = [study];
        let of = |name: &str| StudiesOf::named(&Named::Application(name.to_owned()));
        let typo = of("ocaen.sh");
        let error = none_of(&typo, &known).unwrap();
        assert_eq!(error.status(), 4);
        assert_eq!(
            error.to_string(),
            "there is no study of application \"ocaen.sh\" that you may see (there is ocean.sh); \
             `io-autotune status` lists them"
        );
        assert!(none_of(&typo, &[]).is_none());
        let account = StudiesOf {
            account: Some("physics".to_owned()),
            ..of("ocean.sh")
        };
        let said = none_of(&account, &known).unwrap().to_string();
        assert!(
            said.contains("\"ocean.sh\", account \"physics\" that you may see;"),
            "{said}"
        );
        assert!(none_of(&StudiesOf::default(), &known).is_none());
    }

    #[test]
    fn a_query_is_percent_encoded() {
        let none = Query::default().with("app", None::<&str>);
        assert_eq!(none.to_string(), "");
        let both = none.with("app", Some("a b&c=ä")).with("n", Some(1));
        assert_eq!(both.to_string(), "?app=a%20b%26c%3D%C3%A4&n=1");
    }
}
