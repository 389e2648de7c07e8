//! Studies that leave one service and go on in another, and what studies begin from.

mod export;
mod import;
pub(in crate::tests) mod priors;

use serde_json::{Value, json};

use super::{ADMIN, ALICE, Answer, BOB, CLUSTER, OPERATOR, TestService};

/// So that a study settles within some fifteen runs, and knows nothing of others.
const SHORT: &str = "[study]\nbaseline_runs = 2\nbudget = 8\ncontrol_every = 2\nprior = \"off\"\n";

const HEADER: &str = r#"{"header":{"format":"io-autotune-export","version":2}}"#;

/// The name of an upload.
const UPLOAD: &str = "0123456789abcdef0123456789abcdef";

/// A file with the lines of this number of studies.
fn file(lines: &[String], studies: usize) -> String {
    let mut text = format!("{HEADER}\n");
    for line in lines {
        text += line;
        text.push('\n');
    }
    text + &json!({ "end": { "studies": studies } }).to_string() + "\n"
}

impl TestService {
    /// The lines of a study's export, page after page.
    async fn lines(&self, uid: u32, study: i64) -> Vec<String> {
        let mut lines = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/v1/studies/{study}/export{after}");
            let page = self.user(uid).get(&path).await.ok();
            assert_eq!(page["version"], io_autotune_store::EXPORT_VERSION);
            let text = |line: &Value| line.as_str().unwrap().to_owned();
            lines.extend(page["lines"].as_array().unwrap().iter().map(text));
            match page["next"].as_str() {
                Some(next) => after = format!("?after={next}"),
                None => return lines,
            }
        }
    }

    /// The file that `io-autotune transfer export APPLICATION` writes.
    async fn exported(&self, uid: u32, application: &str) -> String {
        file(&self.lines(uid, self.study_id(application).await).await, 1)
    }

    /// The file that `io-autotune transfer export --all` writes.
    async fn exported_all(&self, uid: u32) -> String {
        let studies = self.user(uid).get("/v1/studies").await.ok();
        let mut ids: Vec<i64> = studies
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["study_id"].as_i64().unwrap())
            .collect();
        ids.sort_unstable();
        let mut lines = Vec::new();
        for id in &ids {
            lines.extend(self.lines(uid, *id).await);
        }
        file(&lines, ids.len())
    }

    /// Lays down a piece of a file.
    async fn piece(&self, uid: u32, upload: &str, place: u32, text: &str) -> Answer {
        let body = json!({ "place": place, "text": text });
        self.user(uid)
            .post(&format!("/v1/imports/{upload}"), body)
            .await
    }

    /// Takes a step with this number of pieces; `more` has further members of the request.
    async fn end(&self, uid: u32, upload: &str, chunks: u32, step: &str, more: Value) -> Answer {
        let mut body = json!({ "chunks": chunks, "step": step, "why": "moved" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.user(uid)
            .post(&format!("/v1/imports/{upload}/end"), body)
            .await
    }

    /// Lays a file down in one piece and takes a step with it.
    async fn takes(&self, text: &str, step: &str, more: Value) -> Answer {
        self.end(ADMIN, UPLOAD, 0, "discard", json!({})).await.ok();
        self.piece(ADMIN, UPLOAD, 0, text).await.ok();
        self.end(ADMIN, UPLOAD, 1, step, more).await
    }

    /// Imports a file.
    async fn import(&self, text: &str) -> Answer {
        self.takes(text, "import", json!({})).await
    }

    /// How many pieces are laid down.
    async fn pieces(&self) -> i64 {
        self.database
            .number("select count(*) from import_chunks")
            .await
    }

    /// Returns true if the database has nothing at all of a study.
    async fn is_empty(&self) -> bool {
        let rows = "select (select count(*) from studies) + (select count(*) from applications)
                         + (select count(*) from epochs) + (select count(*) from runs)
                         + (select count(*) from reports) + (select count(*) from audit)";
        self.user(ADMIN).get("/v1/studies").await.ok() == json!([])
            && self.database.number(rows).await == 0
    }

    /// Orders something about a study.
    async fn order(&self, uid: u32, application: &str, what: &str, body: Value) -> Value {
        let mut body = body;
        body["why"] = json!("a test asks for it");
        let path = format!("/v1/studies/{}/{what}", self.study_id(application).await);
        self.user(uid).post(&path, body).await.ok()
    }
}

/// A study of Alice's with five runs that counted, one that failed, and one that was pinned; returns
/// its jobs.
async fn seven_runs(service: &TestService) -> Vec<u32> {
    let mut jobs = Vec::new();
    for number in 0..5 {
        let job = service.job(ALICE, "app=ocean");
        job.runs(service, 10.0 - 0.5 * f64::from(number)).await;
        jobs.push(job.job.job_id);
    }
    let failed = service.job(ALICE, "app=ocean");
    let started = failed.start(service).await;
    let mut report = failed.reports(Some(&started), 1.0);
    report.steps[0].wait_status = 3 << 8;
    failed.finish(service, &report).await;
    failed.ends(service, "FAILED", 1.0);
    service.poll().await;
    jobs.push(failed.job.job_id);
    service
        .order(
            ALICE,
            "ocean",
            "pin",
            json!({ "values": { "cb_nodes": "2" } }),
        )
        .await;
    let pinned = service.job(ALICE, "app=ocean");
    assert_eq!(pinned.runs(service, 8.0).await["role"], "pinned");
    jobs.push(pinned.job.job_id);
    jobs
}
