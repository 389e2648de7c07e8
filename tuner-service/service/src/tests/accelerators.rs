//! Tests of the accelerator and the application of a job, by the site's files.

mod applications;
mod catalogue;
mod directives;
mod otherwise;
mod together;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    ADMIN, ALICE, Answer, BOB, BURST_BUFFER, COLLECTOR, OPERATOR, ROOT, TestJob, TestService,
};

/// A directory of accelerators that a test changes.
struct SiteCatalogue(TempDir);

impl SiteCatalogue {
    /// One with these of the shipped accelerators.
    fn with(shipped: &[&str]) -> Self {
        let directory = Self(tempfile::tempdir().unwrap());
        for name in shipped {
            directory.ship(name);
        }
        directory
    }

    /// The lines of service.toml that name the directory.
    fn configuration(&self) -> String {
        format!("[accelerators]\ndirectory = {:?}\n", self.0.path())
    }

    /// A service that offers them.
    async fn service(&self) -> TestService {
        TestService::with(&self.configuration()).await
    }

    /// Puts a shipped accelerator there.
    fn ship(&self, name: &str) {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerators.d");
        let text = std::fs::read_to_string(format!("{shipped}/{name}.toml")).unwrap();
        self.put(name, &text);
    }

    /// Writes a file, as an admin's tools do: beside it first.
    fn put(&self, name: &str, text: &str) {
        let draft = self.0.path().join(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, self.0.path().join(format!("{name}.toml"))).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.0.path().join(format!("{name}.toml"))).unwrap();
    }
}

/// An accelerator of one variable, `NAME_SIZE`, with these values of which 1 is the default.
fn sized(name: &str, values: &str) -> String {
    format!(
        r#"
name = "{name}"
title = "An accelerator of a test"
description = "Made by a test."
takes_effect = "when the test looks"
[[parameters]]
name = "size"
kind = "ordered"
values = {values}
default = 1
[[delivery.environment]]
variable = "{}_SIZE"
value = "{{size}}"
omit_default = true
"#,
        name.to_uppercase()
    )
}

impl TestService {
    /// The names that `io-autotune accelerators list` shows.
    async fn accelerators(&self) -> Vec<String> {
        let list = self.user(ALICE).get("/v1/accelerators").await.ok();
        let list = list.as_array().unwrap().iter();
        list.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The answer to the request of `io-autotune accelerators show`.
    async fn shown(&self, accelerator: &str) -> Answer {
        let path = format!("/v1/accelerators/{accelerator}");
        self.user(ALICE).get(&path).await
    }

    /// A check of `doctor`, by its name.
    async fn check(&self, name: &str) -> Value {
        let diagnosis = self.user(ADMIN).get("/v1/doctor").await.ok();
        let mut checks = diagnosis["checks"].as_array().unwrap().iter();
        let found = checks.find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("{diagnosis}")).clone()
    }

    /// The runs of an application, oldest first.
    async fn runs_of(&self, application: &str) -> Vec<Value> {
        let path = format!("/v1/runs?app={application}");
        let runs = self.user(ADMIN).get(&path).await.ok();
        let mut runs = runs.as_array().unwrap().clone();
        runs.sort_by_key(|run| run["run_id"].as_i64());
        runs
    }

    /// Checks that a replay of the job's decision has the same result.
    async fn is_replayed(&self, job: &TestJob) {
        let path = format!("/v1/runs/{}/replay", job.job.job_id);
        let replays = self.user(ADMIN).get(&path).await.ok();
        assert_eq!(replays[0]["same"], true, "{replays}");
    }
}
