use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use io_autotune_catalogue::RulesError;
use io_autotune_protocol::{
    AcceleratorDetail, AcceleratorSummary, ApplicationRules, Call, Client, ClientConfig,
    ClientError, ConfigError, Diagnosis, JobNames, Method, RUNS_PAGE, Replay, ReportFile,
    ReportFileName, RunDetail, RunSummary, STUDIES_PAGE, StudySummary,
};
use io_autotune_simulation::dataset::DatasetError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::arguments::Target;
use crate::report::ReportError;
use crate::simulate::SimulateError;

/// A person is waiting.
const DEADLINE: Duration = Duration::from_secs(15);
/// How often a first answer is asked for, and each later page.
const FEW: u32 = 3;
const MANY: u32 = 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Dataset(#[from] Box<DatasetError>),
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
    #[error("the exchange ended: {0}")]
    Exchange(#[from] std::io::Error),
    #[error("the answer cannot be printed: {0}")]
    Print(#[from] serde_json::Error),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    #[error("application {0:?} has no study that you may see; `io-autotune status` lists them")]
    NoStudy(String),
    #[error(
        "application {name:?} has several studies: name one by its number, {numbers} (`io-autotune status {name}` tells them apart)"
    )]
    SeveralStudies { name: String, numbers: String },
}

/// Far above any list that the service answers with, in bytes.
const LISTS: usize = 64 * 1024 * 1024;

pub(crate) struct Service {
    client: Client,
}

impl Service {
    pub(crate) fn new(config: &Path) -> Result<Self, CliError> {
        Self::of(&ClientConfig::load(config)?)
    }

    pub(crate) fn of(config: &ClientConfig) -> Result<Self, CliError> {
        Ok(Self {
            client: Client::new(config)?.reading(LISTS),
        })
    }

    pub(crate) async fn studies(
        &self,
        application: Option<&str>,
        study: Option<i64>,
        accelerator: Option<&str>,
    ) -> Result<Vec<StudySummary>, CliError> {
        let study = study.map(|study| study.to_string());
        let mut studies: Vec<StudySummary> = Vec::new();
        loop {
            let after = studies.last().map(|last| last.study_id.to_string());
            let query = query(&[
                ("app", application),
                ("study", study.as_deref()),
                ("accelerator", accelerator),
                ("after", after.as_deref()),
                ("limit", Some(&STUDIES_PAGE.to_string())),
            ]);
            let is_first = studies.is_empty();
            let page: Vec<_> = self.page(&format!("/v1/studies{query}"), is_first).await?;
            let is_last = page.len() < STUDIES_PAGE as usize;
            studies.extend(page);
            if is_last {
                return Ok(studies);
            }
        }
    }

    pub(crate) async fn runs(
        &self,
        application: Option<&str>,
        study: Option<i64>,
        limit: u32,
    ) -> Result<Vec<RunSummary>, CliError> {
        let study = study.map(|study| study.to_string());
        // The newest page comes first; each page is oldest first.
        let mut runs: VecDeque<RunSummary> = VecDeque::new();
        loop {
            let left = (limit as usize).saturating_sub(runs.len());
            let (wanted, before) = (
                left.min(RUNS_PAGE as usize),
                runs.front().map(|oldest| oldest.run_id.to_string()),
            );
            let query = query(&[
                ("app", application),
                ("study", study.as_deref()),
                ("before", before.as_deref()),
                ("limit", Some(&wanted.to_string())),
            ]);
            let is_first = runs.is_empty();
            let page: Vec<RunSummary> = self.page(&format!("/v1/runs{query}"), is_first).await?;
            let is_last = page.len() < wanted || page.len() >= left;
            for run in page.into_iter().rev() {
                runs.push_front(run);
            }
            if is_last {
                return Ok(runs.into());
            }
        }
    }

    pub(crate) async fn explain(&self, job_id: u32) -> Result<Vec<RunDetail>, CliError> {
        self.get(&format!("/v1/runs/{job_id}")).await
    }

    pub(crate) async fn replay(&self, job_id: u32) -> Result<Vec<Replay>, CliError> {
        self.get(&format!("/v1/runs/{job_id}/replay")).await
    }

    pub(crate) async fn accelerators(&self) -> Result<Vec<AcceleratorSummary>, CliError> {
        self.get("/v1/accelerators").await
    }

    pub(crate) async fn accelerator(&self, name: &str) -> Result<AcceleratorDetail, CliError> {
        self.get(&format!("/v1/accelerators/{}", encoded(name)))
            .await
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

    pub(crate) async fn steer<B: Serialize>(
        &self,
        study_id: i64,
        action: &str,
        body: &B,
    ) -> Result<StudySummary, CliError> {
        let path = format!("/v1/studies/{study_id}/{action}");
        // A reset that is carried out twice would open two epochs.
        let call = Call {
            method: Method::Post,
            path: &path,
            body: Some(body),
            idempotent: false,
        };
        Ok(self.client.call(call, DEADLINE).await?)
    }

    pub(crate) async fn resolve(&self, target: &Target) -> Result<i64, CliError> {
        let name = match target {
            Target::Study(study_id) => return Ok(*study_id),
            Target::Application(name) => name,
        };
        let studies = self.studies(Some(name), None, None).await?;
        match studies.as_slice() {
            [] => Err(CliError::NoStudy(name.clone())),
            [one] => Ok(one.study_id),
            several => Err(CliError::SeveralStudies {
                name: name.clone(),
                numbers: several
                    .iter()
                    .map(|study| study.study_id.to_string())
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// A page of a list: the next ones of a long list wait longer for their turn.
    async fn page<A: DeserializeOwned>(&self, path: &str, is_first: bool) -> Result<A, CliError> {
        self.in_turn(path, if is_first { FEW } else { MANY }).await
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, CliError> {
        self.in_turn(path, FEW).await
    }

    /// Asks up to so many times while the user's quota is spent: another command of a script may
    /// have just spent it. The service delays its refusals.
    async fn in_turn<A: DeserializeOwned>(&self, path: &str, tries: u32) -> Result<A, CliError> {
        let call = || Call::<()> {
            method: Method::Get,
            path,
            body: None,
            idempotent: true,
        };
        for _ in 1..tries {
            match self.client.call(call(), DEADLINE).await {
                Err(ClientError::Refused { status: 429, .. }) => {}
                answer => return Ok(answer?),
            }
        }
        Ok(self.client.call(call(), DEADLINE).await?)
    }
}

/// A query string of the pairs that have a value.
fn query(pairs: &[(&str, Option<&str>)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if let Some(value) = value {
            text.push(if text.is_empty() { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.push_str(&encoded(value));
        }
    }
    text
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
    fn a_query_is_percent_encoded() {
        assert_eq!(query(&[("app", None)]), "");
        assert_eq!(
            query(&[("app", Some("a b&c=ä")), ("n", Some("1"))]),
            "?app=a%20b%26c%3D%C3%A4&n=1"
        );
    }
}
