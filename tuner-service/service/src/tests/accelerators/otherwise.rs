//! Tests of the accelerator of a job that names none where the default one cannot matter to it.

use io_autotune_model::Measure;

use super::*;

const SETTINGS: &str = "[accelerators]\notherwise = [\"page-cache\"]\n[study]\nbaseline_runs = 2\n\
                        [study.stop]\nunread_runs = 2\n";

/// A program without MPI that writes 60 MB and reads nothing of what it is given, on a node that it
/// has to itself.
const WRITES: [(Measure, f64); 5] = [
    (Measure::Steps, 1.0),
    (Measure::AskedWritten, 6e7),
    (Measure::StorageWritten, 6e7),
    (Measure::WriteCalls, 60.0),
    (Measure::ChangeableNodes, 1.0),
];

/// The same on a node that it shares.
fn shared() -> Vec<(Measure, f64)> {
    let of_all = WRITES.into_iter();
    of_all
        .filter(|(what, _)| *what != Measure::ChangeableNodes)
        .collect()
}

impl TestService {
    /// Runs a job of 10 s of which nodes measure this; returns what `explain` tells of it.
    async fn measured(&self, request: &str, measures: &[(Measure, f64)]) -> (TestJob, Value) {
        let job = self.job(ALICE, request);
        let started = job.start(self).await;
        let mut report = job.reports(Some(&started), 10.0);
        let measured = measures.iter();
        report.measures = measured
            .map(|(what, value)| (what.as_str().to_owned(), *value))
            .collect();
        let files = started.delivery.files.len();
        if files > 0 {
            let delivered = Measure::DeliveredFiles.as_str().to_owned();
            report.measures.insert(delivered, files as f64);
        }
        job.finish(self, &report).await;
        job.ends(self, "COMPLETED", 10.0);
        self.poll().await;
        let detail = self.run_of(job.job.job_id).await;
        assert_eq!(detail["run"]["state"], "counted", "{detail}");
        (job, detail)
    }

    /// The study of an application with an accelerator.
    async fn study_with(&self, application: &str, accelerator: &str) -> Value {
        let path = format!("/v1/studies?app={application}&accelerator={accelerator}");
        let studies = self.user(ALICE).get(&path).await.ok();
        assert_eq!(studies.as_array().unwrap().len(), 1, "{studies}");
        studies[0].clone()
    }
}

fn reason(detail: &Value) -> &str {
    detail["run"]["reason"].as_str().unwrap()
}

fn choice(detail: &Value) -> &Value {
    &detail["suggestion"]["overrides"]["choice"]
}

fn has_warning(study: &Value, text: &str) -> bool {
    let mut warnings = study["warnings"].as_array().unwrap().iter();
    warnings.any(|warning| warning.as_str().unwrap().contains(text))
}

#[tokio::test]
async fn where_no_accelerator_can_matter_the_search_ends_after_the_baseline() {
    let service = TestService::with(SETTINGS).await;
    for _ in 0..2 {
        let (_, detail) = service.measured("app=script", &shared()).await;
        assert_eq!(detail["run"]["role"], "baseline", "{detail}");
    }
    let (job, detail) = service.measured("app=script", &shared()).await;
    let why = "romio cannot matter; nor can page-cache: it changes nodes";
    assert!(reason(&detail).contains(why), "{}", reason(&detail));
    assert_eq!(detail["run"]["phase"], "settled", "{detail}");
    assert_eq!(detail["run"]["accelerator"], "romio");
    assert_eq!(choice(&detail)["runs"], 2, "{detail}");
    let runs = service.runs_of("script").await;
    let roles: Vec<&Value> = runs.iter().map(|run| &run["role"]).collect();
    assert_eq!(roles[..2], [&json!("baseline"), &json!("baseline")]);
    assert!(runs.iter().all(|run| run["accelerator"] == "romio"));
    let study = service.study("script").await;
    assert!(has_warning(&study, why), "{study}");
    assert!(has_warning(&study, "in 2 runs nothing read"), "{study}");
    service.is_replayed(&job).await;
}

#[tokio::test]
async fn a_job_that_names_none_gets_the_accelerator_that_can_matter() {
    let service = TestService::with(SETTINGS).await;
    for _ in 0..2 {
        let (_, detail) = service.measured("app=script", &WRITES).await;
        let run = &detail["run"];
        assert_eq!(
            (&run["accelerator"], &run["role"]),
            (&json!("romio"), &json!("baseline"))
        );
    }
    let (job, detail) = service.measured("app=script", &WRITES).await;
    let run = &detail["run"];
    assert_eq!(
        (&run["accelerator"], &run["role"]),
        (&json!("page-cache"), &json!("baseline")),
        "{run}"
    );
    let why = "page-cache, because a run writes ";
    assert!(reason(&detail).contains(why), "{}", reason(&detail));
    service.is_replayed(&job).await;
    let romio = service.study_with("script", "romio").await;
    let told = format!("Jobs that name no accelerator get {why}");
    assert!(has_warning(&romio, &told), "{romio}");
    // Its own study goes on by itself.
    let cache = service.study_with("script", "page-cache").await;
    assert_eq!(cache["counted"], 1, "{cache}");
}

#[tokio::test]
async fn who_names_an_accelerator_gets_it_and_is_told() {
    let service = TestService::with(SETTINGS).await;
    for _ in 0..3 {
        service.measured("app=script", &WRITES).await;
    }
    let (job, detail) = service
        .measured("app=script,accelerator=romio", &WRITES)
        .await;
    assert_eq!(detail["run"]["accelerator"], "romio", "{detail}");
    assert_eq!(choice(&detail), &Value::Null, "{detail}");
    let told = "in 2 runs nothing read";
    let asked = json!({ "request": { "app": "script", "accelerator": "romio", "mode": "tune" } });
    let said = service.user(ALICE).post("/v1/preview", asked).await.ok();
    assert!(said["line"].as_str().unwrap().contains(told), "{said}");
    let romio = service.study_with("script", "romio").await;
    assert!(has_warning(&romio, told), "{romio}");
    service.is_replayed(&job).await;
}

#[tokio::test]
async fn a_job_that_reads_what_it_is_given_goes_on_with_the_default_accelerator() {
    let service = TestService::with(SETTINGS).await;
    let reads: Vec<_> = WRITES
        .into_iter()
        .chain([(Measure::DeliveredFilesRead, 1.0)])
        .collect();
    for _ in 0..2 {
        let (_, detail) = service.measured("app=mpi", &reads).await;
        assert_eq!(
            detail["run"]["measures"]["delivered_files_read"], 1.0,
            "{detail}"
        );
    }
    let (job, detail) = service.measured("app=mpi", &reads).await;
    let run = &detail["run"];
    assert_eq!(run["accelerator"], "romio");
    assert!(
        ["design", "search"].contains(&run["role"].as_str().unwrap()),
        "{run}"
    );
    assert_eq!(choice(&detail), &Value::Null, "{detail}");
    service.is_replayed(&job).await;
}

#[tokio::test]
async fn of_several_the_first_that_can_matter_is_taken() {
    let several = SETTINGS.replace(
        "[\"page-cache\"]",
        "[\"lustre-client\", \"block-queue\", \"page-cache\"]",
    );
    let service = TestService::with(&several).await;
    for _ in 0..2 {
        service.measured("app=script", &WRITES).await;
    }
    let (job, detail) = service.measured("app=script", &WRITES).await;
    assert_eq!(detail["run"]["accelerator"], "block-queue", "{detail}");
    let why = "block-queue, because a run reads and writes 60.0 MB in 10.0 s";
    assert!(reason(&detail).contains(why), "{}", reason(&detail));
    let candidates = choice(&detail)["candidates"].as_array().unwrap();
    assert_eq!(
        candidates.len(),
        3,
        "all are kept with the decision: {detail}"
    );
    service.is_replayed(&job).await;
}

#[tokio::test]
async fn where_none_of_several_can_matter_each_is_told_with_its_reason() {
    let several = SETTINGS.replace(
        "[\"page-cache\"]",
        "[\"lustre-client\", \"rclone-vfs\", \"page-cache\"]",
    );
    let service = TestService::with(&several).await;
    let reads_little = [
        (Measure::Steps, 1.0),
        (Measure::AskedRead, 6e7),
        (Measure::StorageRead, 6e7),
        (Measure::ReadCalls, 600.0),
        (Measure::ChangeableNodes, 1.0),
    ];
    for _ in 0..2 {
        service.measured("app=script", &reads_little).await;
    }
    let (_, detail) = service.measured("app=script", &reads_little).await;
    assert_eq!(detail["run"]["accelerator"], "romio");
    let why = reason(&detail);
    for told in [
        "nor can lustre-client: no Lustre file system is mounted on its nodes",
        "rclone-vfs: no measure shows whether jobs use it",
        "page-cache: a run writes 0.0 MB in 10.0 s",
    ] {
        assert!(why.contains(told), "{told}: {why}");
    }
}

#[tokio::test]
async fn a_run_on_more_nodes_than_are_its_own_gets_no_accelerator_that_changes_them() {
    let service = TestService::with(SETTINGS).await;
    let mut last = None;
    for _ in 0..3 {
        let mut job = service.job(ALICE, "app=script");
        job.job.nodes = 2;
        let started = job.start(&service).await;
        // One of two nodes may be changed.
        for node in ["n1", "n2"] {
            job.job.node = node.into();
            let mut report = job.reports(Some(&started), 10.0);
            report.measures = shared()
                .iter()
                .map(|(what, value)| (what.as_str().to_owned(), *value))
                .collect();
            report.measures.insert("delivered_files".into(), 1.0);
            if node == "n1" {
                report.measures.insert("changeable_nodes".into(), 1.0);
            }
            job.finish(&service, &report).await;
        }
        job.ends(&service, "COMPLETED", 10.0);
        service.poll().await;
        last = Some(service.run_of(job.job.job_id).await);
    }
    let detail = last.unwrap();
    assert_eq!(detail["run"]["accelerator"], "romio", "{detail}");
    assert!(
        reason(&detail).contains("nor can page-cache: it changes nodes"),
        "{detail}"
    );
}

#[tokio::test]
async fn while_not_every_run_is_measured_nobody_knows_that_nothing_can_matter() {
    let service = TestService::with(SETTINGS).await;
    service.measured("app=script", &WRITES).await;
    service.measured("app=script", &WRITES[1..]).await;
    let (_, detail) = service.measured("app=script", &WRITES).await;
    let run = &detail["run"];
    assert_eq!(run["accelerator"], "romio", "{run}");
    let role = run["role"].as_str().unwrap();
    assert!(["design", "search"].contains(&role), "{run}");
    assert_eq!(choice(&detail), &Value::Null);
}

#[tokio::test]
async fn a_study_that_is_steered_leaves_nothing_to_choose() {
    let service = TestService::with(SETTINGS).await;
    for _ in 0..2 {
        service.measured("app=script", &WRITES).await;
    }
    let study = service.study_id("script").await;
    service.pin(ALICE, study, &[("cb_nodes", "2")]).await.ok();
    let (_, detail) = service.measured("app=script", &WRITES).await;
    let run = &detail["run"];
    assert_eq!(
        (&run["accelerator"], &run["role"]),
        (&json!("romio"), &json!("pinned")),
        "{run}"
    );
}

#[tokio::test]
async fn a_job_that_is_only_observed_gets_the_default_accelerator() {
    let service = TestService::with(SETTINGS).await;
    for _ in 0..2 {
        service.measured("app=script", &WRITES).await;
    }
    let (_, detail) = service.measured("app=script,mode=observe", &WRITES).await;
    let run = &detail["run"];
    assert_eq!(
        (&run["accelerator"], &run["role"]),
        (&json!("romio"), &json!("observe")),
        "{run}"
    );
    assert_eq!(choice(&detail), &Value::Null);
}

#[tokio::test]
async fn one_of_otherwise_that_has_gone_is_passed_over_and_the_doctor_warns() {
    let catalogue = SiteCatalogue::with(&["romio", "block-queue", "page-cache"]);
    let configuration = SETTINGS.replace(
        "[\"page-cache\"]\n",
        &format!(
            "[\"block-queue\", \"page-cache\"]\ndirectory = {:?}\n",
            catalogue.0.path()
        ),
    );
    let service = TestService::with(&configuration).await;
    for _ in 0..2 {
        service.measured("app=script", &WRITES).await;
    }
    catalogue.remove("block-queue");
    service.look_at_files().await;
    let check = service.check("accelerators").await;
    assert_eq!(check["state"], "warning", "{check}");
    assert_eq!(
        check["detail"],
        "otherwise = \"block-queue\" is not in the catalogue, and never chosen"
    );
    let (_, detail) = service.measured("app=script", &WRITES).await;
    assert_eq!(detail["run"]["accelerator"], "page-cache", "{detail}");
}

#[tokio::test]
async fn a_site_that_names_no_other_ends_the_search_and_says_nothing_of_others() {
    let service = TestService::with(&SETTINGS.replace("[\"page-cache\"]", "[]")).await;
    for _ in 0..2 {
        service.measured("app=script", &WRITES).await;
    }
    let (_, detail) = service.measured("app=script", &WRITES).await;
    let run = &detail["run"];
    assert_eq!(
        (&run["accelerator"], &run["phase"]),
        (&json!("romio"), &json!("settled")),
        "{run}"
    );
    assert!(!reason(&detail).contains("page-cache"), "{detail}");
    assert_eq!(choice(&detail), &Value::Null);
}
