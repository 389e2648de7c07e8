//! Tests of the line that a submission prints: its studies, its content, and refusals.

use io_autotune_model::Measure;
use io_autotune_protocol::Request;
use serde_json::{Value, json};

use super::{ADMIN, ALICE, Answer, BOB, OPERATOR, ROOT, TestJob, TestService};

async fn previewed(service: &TestService, uid: u32, request: &str) -> Answer {
    let request: Request = request.parse().unwrap();
    let body = json!({ "request": request });
    service.user(uid).post("/v1/preview", body).await
}

/// The line that a user's submission with this request prints.
async fn line(service: &TestService, uid: u32, request: &str) -> String {
    let answer = previewed(service, uid, request).await.ok();
    answer["line"].as_str().unwrap().to_owned()
}

const NEW: &str = "application ocean, accelerator romio: new; its first runs measure the default";

/// A service where two runs are enough to see that nothing reads what an accelerator gives, and where
/// the page cache is what jobs get instead.
async fn with_page_cache_instead() -> TestService {
    TestService::with(
        "[study]\nbaseline_runs = 2\nstop = { unread_runs = 2 }\n[accelerators]\notherwise = [\"page-cache\"]\n",
    )
    .await
}

/// A job that writes much, reads nothing of what it is given, and has its nodes to itself or not.
async fn writes(service: &TestService, job: &TestJob, is_alone: bool) -> Value {
    let started = job.start(service).await;
    let mut report = job.reports(Some(&started), 2.0);
    let changeable = if is_alone { 1.0 } else { 0.0 };
    for (measure, value) in [
        (Measure::Steps, 1.0),
        (Measure::WriteCalls, 2000.0),
        (Measure::StorageWritten, 60e6),
        (Measure::DeliveredFiles, 1.0),
        (Measure::ChangeableNodes, changeable),
    ] {
        if value > 0.0 {
            report.measures.insert(measure.as_str().to_owned(), value);
        }
    }
    job.finish(service, &report).await;
    job.ends(service, "COMPLETED", 2.0);
    service.poll().await;
    service.run_of(job.job.job_id).await
}

#[tokio::test]
async fn a_new_application_is_told_that_its_first_runs_measure_the_default() {
    let service = TestService::new().await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, NEW);
    assert_eq!(
        line(&service, ALICE, "app=ocean,accelerator=page-cache").await,
        "application ocean, accelerator page-cache: new; its first runs measure the default"
    );
}

#[tokio::test]
async fn an_observed_job_is_told_that_nothing_is_applied() {
    let service = TestService::new().await;
    let observed = "application ocean, accelerator romio: observed, nothing is applied";
    let request = "app=ocean,mode=observe";
    assert_eq!(line(&service, ALICE, request).await, observed);
    // Whatever is known of the application.
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    assert_eq!(line(&service, ALICE, request).await, observed);
}

#[tokio::test]
async fn a_name_that_says_nothing_is_told_what_to_do() {
    let service = TestService::new().await;
    for name in ["wrap", "run.sh"] {
        let said = line(&service, ALICE, &format!("name={name}")).await;
        assert_eq!(
            said,
            format!(
                "the job name \"{name}\" says nothing about the application, so this job is observed and not tuned; \
                 name it: --io-autotune=app=NAME"
            )
        );
    }
}

#[tokio::test]
async fn the_application_is_the_one_that_the_rules_make_of_the_jobs_name() {
    let service = TestService::new().await;
    let said = line(&service, ALICE, "name=nf-ALIGN_%281%29").await;
    assert!(said.starts_with("application nf-ALIGN, "), "{said}");
    let run = service.job(ALICE, "name=nf-ALIGN_%282%29");
    let run = run.runs(&service, 10.0).await;
    assert_eq!(run["application"], "nf-ALIGN");
    let said = line(&service, ALICE, "name=nf-ALIGN_%281%29").await;
    assert!(said.contains("run 2 of 4"), "{said}");
}

#[tokio::test]
async fn a_line_has_no_character_that_a_terminal_would_follow() {
    let service = TestService::new().await;
    for name in [
        "%1B%5B2J",
        "a%1B.sh",
        "%0Aocean",
        "%E2%80%AEnaeco",
        "a%0D%0Ab",
    ] {
        for request in [
            format!("name={name}"),
            format!("name={name},comment={name}"),
        ] {
            let said = line(&service, ALICE, &request).await;
            let plain = |c: char| !c.is_control() && c != '\u{202e}';
            assert!(said.chars().all(plain), "{said:?}");
        }
    }
}

#[tokio::test]
async fn a_known_study_is_told_with_its_phase_progress_and_context() {
    let service = TestService::with("[study]\nbudget = 15\n").await;
    let job = service.job(ALICE, "app=ocean");
    job.runs(&service, 10.0).await;
    assert_eq!(
        line(&service, ALICE, "app=ocean").await,
        format!(
            "application ocean, accelerator romio: the default, which is measured first: run 2 of 4; \
             then it explores (cpus_per_node=4 nodes=1 partition=main); its last job, {}, took 10 s with the default",
            job.job.job_id
        )
    );
}

#[tokio::test]
async fn how_the_last_job_did_is_told_beside_the_default() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let body = json!({ "values": { "cb_nodes": "4" }, "why": "a test" });
    let path = format!("/v1/studies/{study}/pin");
    service.user(ALICE).post(&path, body).await.ok();
    let pinned = service.job(ALICE, "app=ocean");
    pinned.runs(&service, 8.0).await;
    let told = format!(
        "; its last job, {}, took 8 s, the default takes 10 s",
        pinned.job.job_id
    );
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(said.ends_with(&told), "{said}");
    // Whoever has one in flight is told of the one before.
    let next = service.job(ALICE, "app=ocean");
    let started = next.start(&service).await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, said);
    next.finish(&service, &next.reports(Some(&started), 3.0))
        .await;
    next.ends(&service, "FAILED", 3.0);
    service.poll().await;
    let told = format!(
        "; its last job, {}, does not count: Slurm says FAILED",
        next.job.job_id
    );
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(said.ends_with(&told), "{said}");
}

#[tokio::test]
async fn what_is_ordered_is_told_before_the_phase() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    job.runs(&service, 10.0).await;
    let last = job.job.job_id;
    let said = [
        (
            "freeze",
            "the best known values, because the study is frozen",
        ),
        ("off", "nothing is applied, because tuning is turned off"),
    ];
    for (kind, words) in said {
        let body = json!({ "kind": kind, "why": "a test" });
        service.user(ALICE).post("/v1/orders", body).await.ok();
        assert_eq!(
            line(&service, ALICE, "app=ocean").await,
            format!(
                "application ocean, accelerator romio: {words}, until somebody ends that \
                 (cpus_per_node=4 nodes=1 partition=main); \
                 its last job, {last}, took 10 s with the default"
            )
        );
    }
}

#[tokio::test]
async fn a_pinned_study_is_told_so() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let body = json!({ "values": { "cb_nodes": "4" }, "why": "a test" });
    let path = format!("/v1/studies/{study}/pin");
    service.user(ALICE).post(&path, body).await.ok();
    let said = line(&service, ALICE, "app=ocean").await;
    let pinned =
        "application ocean, accelerator romio: the pinned values, until somebody ends that (";
    assert!(said.starts_with(pinned), "{said}");
}

#[tokio::test]
async fn contexts_of_an_application_are_told_two_at_the_most() {
    let service = TestService::new().await;
    for (partition, expected) in [("main", 1), ("other", 2), ("third", 2), ("fourth", 2)] {
        let mut job = service.job(ALICE, "app=ocean");
        partition.clone_into(&mut job.job.partition);
        job.runs(&service, 10.0).await;
        let said = line(&service, ALICE, "app=ocean").await;
        assert_eq!(said.matches("partition=").count(), expected, "{said}");
        let more = match partition {
            "third" => Some("; and 1 more contexts"),
            "fourth" => Some("; and 2 more contexts"),
            _ => None,
        };
        assert_eq!(said.contains(" more contexts"), more.is_some(), "{said}");
        assert!(more.is_none_or(|more| said.ends_with(more)), "{said}");
    }
}

#[tokio::test]
async fn of_several_clusters_each_study_is_told_with_its_cluster() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    for cluster in ["alpha", "beta"] {
        let mut job = service.job(ALICE, "app=ocean");
        cluster.clone_into(&mut job.job.cluster);
        job.runs(&service, 10.0).await;
    }
    let said = line(&service, ALICE, "app=ocean").await;
    for cluster in ["alpha", "beta"] {
        let context = format!("(cluster={cluster} cpus_per_node=4 nodes=1 partition=main)");
        assert!(said.contains(&context), "{said}");
    }
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user reads another user's study
#[tokio::test]
async fn another_users_study_of_the_same_name_is_never_told() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    for uid in [BOB, OPERATOR, ADMIN, ROOT] {
        assert_eq!(line(&service, uid, "app=ocean").await, NEW, "{uid}");
    }
    assert_ne!(line(&service, ALICE, "app=ocean").await, NEW);
}

#[tokio::test]
async fn nothing_is_written_by_asking() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let rows = async || {
        let tables = "select string_agg(relname || ' ' || (xpath('/row/c/text()', query_to_xml(
                format('select count(*) as c from %I', relname), false, true, '')))[1]::text, ' ' order by relname)
            from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace";
        service.database.text(tables).await
    };
    let before = rows().await;
    assert!(before.contains("studies 1"), "{before}");
    for number in 0..20 {
        for uid in [ALICE, BOB] {
            line(&service, uid, "app=ocean").await;
            line(&service, uid, &format!("app=new{number}")).await;
            line(&service, uid, "app=ocean,mode=observe").await;
        }
    }
    assert_eq!(rows().await, before);
    let run = service.job(BOB, "app=new1").runs(&service, 10.0).await;
    assert_eq!(run["role"], "baseline");
}

#[tokio::test]
async fn a_run_in_flight_does_not_show_before_its_verdict() {
    let service = TestService::with("[study]\nbudget = 15\nbaseline_runs = 2\n").await;
    for _ in 0..2 {
        service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    }
    let before = line(&service, ALICE, "app=ocean").await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, before);
    job.finish(&service, &job.reports(Some(&started), 10.0))
        .await;
    job.ends(&service, "COMPLETED", 10.0);
    service.poll().await;
    let after = line(&service, ALICE, "app=ocean").await;
    assert!(
        after
            .contains("1 of 15 exploring runs have ended, and it chooses after about 14 more runs"),
        "{after}"
    );
}

#[tokio::test]
async fn what_a_study_has_gained_is_told_and_a_control_run_in_flight_is_not() {
    let service = TestService::with("[study]\nbudget = 15\n").await;
    let default = service.default_of("romio");
    let mut said = String::new();
    for _ in 0..8 {
        service
            .tune(ALICE, "app=ocean", 8, |given, number| {
                let noise = 0.01 * f64::from(number % 7);
                if *given == default {
                    10.0 + noise
                } else {
                    8.0 + noise
                }
            })
            .await;
        said = line(&service, ALICE, "app=ocean").await;
        if said.contains("settled, ") && said.contains(" % ") {
            break;
        }
    }
    let told = said.strip_prefix("application ocean, accelerator romio: settled, ");
    let told = told.unwrap_or_else(|| panic!("{said}"));
    let (percent, rest) = told.split_once(' ').unwrap();
    assert!((10.0..30.0).contains(&percent.parse().unwrap()), "{said}");
    let study =
        "% less time than the default (cpus_per_node=4 nodes=1 partition=main); its last job, ";
    assert!(rest.starts_with(study), "{said}");
    // Whoever could tell control runs could cancel them.
    service.draw(Some(0.0));
    service.job(ALICE, "app=ocean").start(&service).await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, said);
}

#[tokio::test]
async fn a_study_whose_objective_no_run_has_told_is_told_so() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let study = service.study_id("ocean").await;
    let body = json!({ "objective": "marked", "why": "a test" });
    let path = format!("/v1/studies/{study}/objective");
    service.user(ALICE).post(&path, body).await.ok();
    for _ in 0..4 {
        let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
        assert_eq!(run["state"], "not_counted", "{run}");
    }
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(
        said.contains("none of its 4 runs since then has told it"),
        "{said}"
    );
}

#[tokio::test]
async fn a_submission_is_told_that_there_is_nothing_to_win() {
    let service = with_page_cache_instead().await;
    for _ in 0..2 {
        let job = service.job(ALICE, "app=ocean");
        let run = writes(&service, &job, false).await;
        assert_eq!(run["run"]["state"], "counted", "{run}");
    }
    let said = line(&service, ALICE, "app=ocean").await;
    let nothing = "there is nothing to win: in 2 runs nothing read";
    assert!(said.to_lowercase().contains(nothing), "{said}");
    let why = "; romio cannot matter; nor can page-cache: it changes nodes, which these jobs share, or \
               which do not allow it";
    assert!(said.ends_with(why), "{said}");
    assert!(
        said.starts_with("application ocean, accelerator romio: "),
        "{said}"
    );
}

#[tokio::test]
async fn a_submission_is_told_which_accelerator_it_gets_and_why() {
    let service = with_page_cache_instead().await;
    for _ in 0..2 {
        assert!(!line(&service, ALICE, "app=ocean").await.contains("because"));
        let job = service.job(ALICE, "app=ocean");
        let run = writes(&service, &job, true).await;
        assert_eq!(run["run"]["accelerator"], "romio");
    }
    let why = "page-cache, because a run writes 60.0 MB in 2.0 s, and romio cannot matter: in 2 runs nothing read \
               its settings";
    assert_eq!(
        line(&service, ALICE, "app=ocean").await,
        format!(
            "application ocean, accelerator page-cache: new; its first runs measure the default; {why}"
        )
    );
    let job = service.job(ALICE, "app=ocean");
    let run = writes(&service, &job, true).await["run"].clone();
    assert_eq!(run["accelerator"], "page-cache");
    assert!(run["reason"].as_str().unwrap().contains(why), "{run}");
    // Then the other accelerator's study has something to tell.
    let said = line(&service, ALICE, "app=ocean").await;
    let known = "application ocean, accelerator page-cache: the default, which is measured first";
    assert!(said.starts_with(known) && said.ends_with(why), "{said}");
}

#[tokio::test]
async fn who_names_an_accelerator_gets_it_and_is_told() {
    let service = with_page_cache_instead().await;
    for _ in 0..2 {
        writes(&service, &service.job(ALICE, "app=ocean"), true).await;
    }
    let said = line(&service, ALICE, "app=ocean,accelerator=romio").await;
    assert!(said.contains("n 2 runs nothing read"), "{said}");
    assert!(
        said.starts_with("application ocean, accelerator romio: "),
        "{said}"
    );
    assert!(!said.contains("because"), "{said}");
    let job = service.job(ALICE, "app=ocean,accelerator=romio");
    let run = writes(&service, &job, true).await;
    assert_eq!(run["run"]["accelerator"], "romio");
    assert_eq!(run["suggestion"]["overrides"].get("choice"), None, "{run}");
    let path = format!("/v1/runs/{}/replay", job.job.job_id);
    let replay = service.user(ALICE).get(&path).await.ok();
    assert_eq!(replay[0]["same"], true, "{replay}");
}

#[tokio::test]
async fn where_studies_choose_differently_no_choice_is_told() {
    let service = with_page_cache_instead().await;
    for (partition, is_alone) in [("main", true), ("shared", false)] {
        for _ in 0..2 {
            let mut job = service.job(ALICE, "app=ocean");
            partition.clone_into(&mut job.job.partition);
            writes(&service, &job, is_alone).await;
        }
    }
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(
        said.starts_with("application ocean, accelerator romio: "),
        "{said}"
    );
    assert_eq!(said.matches("partition=").count(), 2, "{said}");
    assert!(!said.contains("page-cache"), "{said}");
}

#[tokio::test]
async fn a_user_who_has_the_most_studies_is_told_so() {
    let service = TestService::with("[users]\nstudies = 2\n").await;
    for application in ["ocean", "atmosphere"] {
        let request = format!("app={application}");
        service.job(ALICE, &request).runs(&service, 10.0).await;
    }
    let too_many = "application ice: you have 2 studies, the most of a user, so this job runs with its defaults and \
                    is not recorded; give jobs that do the same one name: --io-autotune=app=NAME";
    assert_eq!(line(&service, ALICE, "app=ice").await, too_many);
    // It is of the user, and of new studies.
    let known = line(&service, ALICE, "app=ocean").await;
    assert!(known.contains("run 2 of 4"), "{known}");
    let others = line(&service, BOB, "app=ice").await;
    assert!(
        others.ends_with("new; its first runs measure the default"),
        "{others}"
    );
    let refused = service.job(ALICE, "app=ice").try_start(&service).await;
    assert!(!refused.status.is_success(), "{refused}");
}

const IN_JOB: &str = "PrologFlags = Alloc,Contain,RunInJob\nProlog = (null)\nEpilog = (null)\n";

#[tokio::test]
async fn where_slurm_runs_no_hooks_a_submission_is_told_what_to_set() {
    let service = TestService::new().await;
    service.slurm().say("scontrol-config", IN_JOB);
    service.look_at_slurm().await;
    assert_eq!(
        line(&service, ALICE, "app=ocean").await,
        "Slurm has PrologFlags=RunInJob and no Prolog= or Epilog=, so no job is tuned: set both to \
         io-autotune's run-in-job (docs/install.md)"
    );
    let hooks = IN_JOB.replace("(null)", "/etc/slurm/io-autotune");
    service.slurm().say("scontrol-config", &hooks);
    service.look_at_slurm().await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, NEW);
}

#[tokio::test]
async fn where_one_cluster_of_two_runs_hooks_a_submission_is_told_of_its_study() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    service.slurm_of("beta").say("scontrol-config", IN_JOB);
    service.look_at_slurm().await;
    assert_eq!(line(&service, ALICE, "app=ocean").await, NEW);
    service.slurm_of("alpha").say("scontrol-config", IN_JOB);
    service.look_at_slurm().await;
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(said.starts_with("Slurm has PrologFlags=RunInJob"), "{said}");
}

#[tokio::test]
async fn an_accelerator_that_there_is_not_is_refused_with_those_that_there_are() {
    let service = TestService::new().await;
    let request = "app=ocean,accelerator=lustre";
    let told = previewed(&service, ALICE, request).await;
    let told = told.refused(422, "unknown_accelerator");
    let expected = "there is no accelerator \"lustre\"; choose one of: block-online, ";
    assert!(told.starts_with(expected), "{told}");
    assert!(told.contains("romio"), "{told}");
    assert_eq!(service.user(ADMIN).get("/v1/studies").await.ok(), json!([]));
}

#[tokio::test]
async fn a_request_that_is_none_is_refused_with_the_valid_choices() {
    let service = TestService::new().await;
    for (request, told) in [
        (
            json!({ "app": "ocean", "mode": "quick" }),
            vec!["quick", "tune", "observe"],
        ),
        (
            json!({ "app": "../../etc/passwd" }),
            vec!["app=\"../../etc/passwd\"", "letters, digits"],
        ),
        (
            json!({ "accelerator": "a b" }),
            vec!["accelerator", "letters, digits"],
        ),
        (
            json!({ "colour": "blue" }),
            vec!["colour", "app", "accelerator", "mode"],
        ),
    ] {
        let body = json!({ "request": request });
        let answer = service.user(ALICE).post("/v1/preview", body).await;
        let message = answer.bad_request();
        for one in told {
            assert!(message.contains(one), "{message}");
        }
    }
}

#[tokio::test]
async fn a_request_of_more_than_a_user_may_say_is_refused() {
    let service = TestService::new().await;
    let body = json!({ "request": { "app": "ocean", "comment": "x".repeat(70_000) } });
    let answer = service.user(ALICE).post("/v1/preview", body).await;
    answer.refused(413, "too_large");
}

#[tokio::test]
async fn accelerators_together_are_one_study_in_whichever_order() {
    let service = TestService::new().await;
    let run = service
        .job(ALICE, "app=ocean,accelerator=romio+page-cache")
        .runs(&service, 10.0)
        .await;
    let study = run["study_id"].clone();
    let body = json!({
        "values": { "cb_nodes": "8", "dirty_expire_centisecs": "100" }, "why": "a test",
    });
    let path = format!("/v1/studies/{study}/pin");
    let pinned = service.user(ALICE).post(&path, body).await.ok();
    assert_eq!(pinned["accelerator"], "page-cache+romio");
    for written in ["romio+page-cache", "page-cache+romio"] {
        let request = format!("app=ocean,accelerator={written}");
        let said = line(&service, ALICE, &request).await;
        let pinned = "application ocean, accelerator page-cache+romio: the pinned values, until somebody ends that (";
        assert!(said.starts_with(pinned), "{said}");
        let path = format!(
            "/v1/studies?app=ocean&accelerator={}",
            written.replace('+', "%2B")
        );
        let studies = service.user(ALICE).get(&path).await.ok();
        assert_eq!(studies[0]["study_id"], study, "{studies}");
    }
    // Either alone is another study.
    assert_eq!(line(&service, ALICE, "app=ocean").await, NEW);
}

#[tokio::test]
async fn what_cannot_be_tuned_together_is_refused_with_the_reason() {
    let service = TestService::new().await;
    for (spec, why) in [
        (
            "romio+romio",
            "names romio twice: name each accelerator once",
        ),
        ("romio+", "nothing before or after a '+': write NAME+NAME"),
        (
            "romio+ompio+page-cache+block-queue",
            "22 parameters together, and a study takes 20 at the most: name fewer accelerators",
        ),
    ] {
        let request = json!({ "request": { "app": "ocean", "accelerator": spec } });
        let answer = service.user(ALICE).post("/v1/preview", request).await;
        let told = answer.bad_request();
        assert!(told.contains(why), "{told}");
        let path = format!("/v1/accelerators/{}", spec.replace('+', "%2B"));
        let shown = service.user(ALICE).get(&path).await.bad_request();
        assert!(shown.contains(why), "{shown}");
    }
    let request = json!({ "request": { "app": "ocean", "accelerator": "romio+page-cash" } });
    let answer = service.user(ALICE).post("/v1/preview", request).await;
    let told = answer.refused(422, "unknown_accelerator");
    let expected = "there is no accelerator \"page-cash\"; choose one of: block-online";
    assert!(told.starts_with(expected), "{told}");
}

#[tokio::test]
async fn accelerators_that_set_one_variable_are_not_tuned_together() {
    let catalogue = tempfile::tempdir().unwrap();
    for name in ["first", "second"] {
        let text = format!(
            "name = {name:?}\ntitle = \"An accelerator\"\n[[parameters]]\nname = \"{name}_size\"\n\
             kind = \"ordered\"\nvalues = [1, 2, 4]\ndefault = 1\n[[delivery.environment]]\n\
             variable = \"SHARED_SIZE\"\nvalue = \"{{{name}_size}}\"\nomit_default = true\n"
        );
        std::fs::write(catalogue.path().join(format!("{name}.toml")), text).unwrap();
    }
    let directory = catalogue.path().display().to_string();
    let more = format!("[accelerators]\ndirectory = {directory:?}\ndefault = \"first\"\n");
    let service = TestService::with(&more).await;
    let told = previewed(&service, ALICE, "app=ocean,accelerator=first+second").await;
    assert_eq!(
        told.bad_request(),
        "first and second cannot be tuned together: both set the variable SHARED_SIZE; name one of them"
    );
    let said = line(&service, ALICE, "app=ocean").await;
    assert!(
        said.starts_with("application ocean, accelerator first: new;"),
        "{said}"
    );
}
