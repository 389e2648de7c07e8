//! Several accelerators that are tuned together.

use super::*;

const TOGETHER: &str = "romio+page-cache";
const BOTH: &str = "app=ocean,accelerator=romio+page-cache";
const PIN: [(&str, &str); 3] = [
    ("dirty_writeback_centisecs", "100"),
    ("cb_nodes", "8"),
    ("romio_ds_write", "disable"),
];

#[tokio::test]
async fn accelerators_together_are_one_study_in_whichever_order() {
    let service = TestService::new().await;
    service.job(ALICE, BOTH).runs(&service, 2.0).await;
    let study = service.study("ocean").await;
    assert_eq!(study["accelerator"], "page-cache+romio");
    let number = service.study_id("ocean").await;
    let other = "app=ocean,accelerator=page-cache+romio";
    let run = service.job(ALICE, other).runs(&service, 2.0).await;
    assert_eq!(run["study_id"], number);
    for written in ["romio%2Bpage-cache", "page-cache%2Bromio"] {
        let path = format!("/v1/studies?app=ocean&accelerator={written}");
        let studies = service.user(ALICE).get(&path).await.ok();
        assert_eq!(studies.as_array().unwrap().len(), 1, "{studies}");
        assert_eq!(studies[0]["study_id"], number);
        let path = format!("/v1/runs?app=ocean&accelerator={written}");
        let runs = service.user(ALICE).get(&path).await.ok();
        assert_eq!(runs.as_array().unwrap().len(), 2, "{runs}");
    }
    // Neither alone is this study.
    for one in ["romio", "page-cache"] {
        let path = format!("/v1/studies?accelerator={one}");
        assert_eq!(service.user(ALICE).get(&path).await.ok(), json!([]));
    }
}

#[tokio::test]
async fn a_reset_keeps_that_accelerators_are_tuned_together() {
    let service = TestService::new().await;
    service.job(ALICE, BOTH).runs(&service, 2.0).await;
    let path = format!("/v1/studies/{}/reset", service.study_id("ocean").await);
    let why = json!({ "why": "a test asks for it" });
    let reset = service.user(ALICE).post(&path, why).await.ok();
    assert_eq!(reset["accelerator"], "page-cache+romio", "{reset}");
    assert_eq!(reset["epoch"], 2);
}

#[tokio::test]
async fn a_pin_of_both_is_delivered_to_both() {
    let service = TestService::new().await;
    service.job(ALICE, BOTH).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    service.pin(ALICE, study, &PIN).await.ok();
    let job = service.job(ALICE, BOTH);
    let started = job.completes(&service, 2.0).await;
    let given = serde_json::to_value(&started.delivery).unwrap();
    let setting =
        json!([{ "kind": "sysctl", "name": "vm.dirty_writeback_centisecs", "value": "100" }]);
    assert_eq!(given["settings"], setting, "{given}");
    assert_eq!(
        given["files"][0]["content"],
        "cb_nodes 8\nromio_ds_write disable\n"
    );
    service.poll().await;
    let run = &service.run_of(job.job.job_id).await["run"];
    assert_eq!(
        (&run["role"], &run["state"]),
        (&json!("pinned"), &json!("counted")),
        "{run}"
    );
}

#[tokio::test]
async fn what_they_need_and_how_they_are_delivered_is_that_of_all() {
    let service = TestService::new().await;
    let (romio, cache) = (
        service.shown("romio").await.ok(),
        service.shown("page-cache").await.ok(),
    );
    let both = service.shown(TOGETHER).await.ok();
    assert_eq!(both["name"], "page-cache+romio");
    assert_eq!(both["needs"], cache["needs"]);
    assert_eq!(
        both["tried_on"],
        "page-cache: Linux 6.18; romio: MPICH 4.0.2"
    );
    let count = |one: &Value| one["parameters"].as_array().unwrap().len();
    assert_eq!(count(&both), count(&romio) + count(&cache));
    let of_one_untried = service.shown("romio+scr").await.ok();
    assert_eq!(of_one_untried["tried_on"], Value::Null);
    // What is tuned together is described by no file.
    assert!(
        !service
            .accelerators()
            .await
            .contains(&"page-cache+romio".to_owned())
    );
}

#[tokio::test]
async fn a_constraint_of_one_holds_for_both() {
    let service = TestService::new().await;
    service.job(ALICE, BOTH).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    let values = [
        ("dirty_bytes", "67108864"),
        ("dirty_background_bytes", "1073741824"),
    ];
    let refused = service.pin(ALICE, study, &values).await.bad_request();
    assert!(
        refused.contains("must hold") && refused.contains("dirty_background_bytes"),
        "{refused}"
    );
}

#[tokio::test]
async fn what_cannot_be_tuned_together_is_refused_with_the_reason() {
    let service = TestService::new().await;
    for (spec, code, why) in [
        (
            "romio+romio",
            "bad_request",
            "\"romio+romio\" names romio twice: name each accelerator once",
        ),
        (
            "romio+page-cash",
            "unknown_accelerator",
            "there is no accelerator \"page-cash\"; choose one of: block-online, ",
        ),
        (
            "romio+",
            "bad_request",
            "\"romio+\" has nothing before or after a '+': write NAME+NAME",
        ),
        (
            "romio+ompio+page-cache+block-queue",
            "bad_request",
            "22 parameters together, and a study takes 20 at the most: name fewer accelerators",
        ),
        (
            "block-online+lustre-online",
            "bad_request",
            "block-online and lustre-online cannot be tuned together: both tune inside the job, which one can do; name one of them",
        ),
    ] {
        let refused = service.shown(spec).await.refused(422, code);
        assert!(refused.contains(why), "{refused}");
        let asked = json!({ "request": { "app": "ocean", "accelerator": spec, "mode": "tune" } });
        let refused = service
            .user(ALICE)
            .post("/v1/preview", &asked)
            .await
            .refused(422, code);
        assert!(refused.contains(why), "{refused}");
        let mut job = service.job(ALICE, "app=ocean");
        job.request.accelerator = Some(spec.to_owned());
        let refused = job.try_start(&service).await.refused(422, code);
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(service.user(ADMIN).get("/v1/studies").await.ok(), json!([]));
}

#[tokio::test]
async fn as_many_parameters_as_a_study_takes_are_tuned_together() {
    let service = TestService::new().await;
    // 9, 5, 4 and 2 parameters.
    let catalogue = SiteCatalogue::with(&["romio", "ompio", "page-cache"]);
    let two = sized("first", "[1, 2]").replacen(
        "[[delivery",
        "[[parameters]]\nname = \"depth\"\nkind = \"ordered\"\nvalues = [1, 8]\ndefault = 1\n[[delivery",
        1,
    );
    catalogue.put("first", &two.replace("{size}", "{size}:{depth}"));
    catalogue.put("second", &sized("second", "[1, 2]"));
    service.reload(&catalogue.configuration()).await;
    let spec = "romio+ompio+page-cache+first";
    let shown = service.shown(spec).await.ok();
    assert_eq!(shown["parameters"].as_array().unwrap().len(), 20);
    let job = service.job(ALICE, &format!("app=ocean,accelerator={spec}"));
    assert_eq!(job.runs(&service, 2.0).await["state"], "counted");
    let refused = service
        .shown("romio+ompio+page-cache+first+second")
        .await
        .bad_request();
    assert!(refused.contains("21 parameters together"), "{refused}");
}

/// A service with `first` and `second`, whose parameters have one name.
async fn with_two(catalogue: &SiteCatalogue) -> TestService {
    catalogue.put("first", &sized("first", "[1, 2, 4]"));
    catalogue.put("second", &sized("second", "[1, 2, 4]"));
    catalogue.service().await
}

const TWO: &str = "app=ocean,accelerator=second+first";

#[tokio::test]
async fn parameters_of_one_name_are_told_apart_by_whose_they_are() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_two(&catalogue).await;
    service.job(ALICE, TWO).runs(&service, 2.0).await;
    let study = service.study("ocean").await;
    assert_eq!(study["accelerator"], "first+second");
    let study = service.study_id("ocean").await;
    let pinned = service
        .pin(ALICE, study, &[("first.size", "2"), ("second.size", "4")])
        .await
        .ok();
    assert_eq!(pinned["accelerator"], "first+second");
    let job = service.job(ALICE, TWO);
    let started = job.completes(&service, 2.0).await;
    let given = serde_json::to_value(&started.delivery.environment).unwrap();
    assert_eq!(
        given,
        json!([{ "name": "FIRST_SIZE", "value": "2" }, { "name": "SECOND_SIZE", "value": "4" }])
    );
    service.poll().await;
    let run = &service.run_of(job.job.job_id).await["run"];
    assert_eq!(
        (&run["role"], &run["state"]),
        (&json!("pinned"), &json!("counted"))
    );
    let refused = service
        .pin(ALICE, study, &[("size", "2")])
        .await
        .bad_request();
    assert!(
        refused.contains("first.size") && refused.contains("second.size"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_change_of_either_file_opens_an_epoch_of_both() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_two(&catalogue).await;
    service.job(ALICE, TWO).runs(&service, 2.0).await;
    for (epoch, name) in [(2, "second"), (3, "first")] {
        catalogue.put(name, &sized(name, "[1, 2]"));
        service.look_at_files().await;
        let run = service.job(ALICE, TWO).runs(&service, 2.0).await;
        assert_eq!(
            (&run["epoch"], &run["role"]),
            (&json!(epoch), &json!("baseline")),
            "{run}"
        );
        let reason = run["reason"].as_str().unwrap();
        assert!(
            reason.contains(&format!("{epoch} of")),
            "the default's runs are known: {reason}"
        );
    }
}

#[tokio::test]
async fn two_that_come_to_set_one_variable_are_refused_together_and_each_goes_on_alone() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_two(&catalogue).await;
    service.job(ALICE, TWO).runs(&service, 2.0).await;
    catalogue.put(
        "second",
        &sized("second", "[1, 2]").replace("SECOND_SIZE", "FIRST_SIZE"),
    );
    service.look_at_files().await;
    let why = "first and second cannot be tuned together: both set the variable FIRST_SIZE; name one of them";
    assert_eq!(service.shown("second+first").await.bad_request(), why);
    assert_eq!(
        service
            .job(ALICE, TWO)
            .try_start(&service)
            .await
            .bad_request(),
        why
    );
    for alone in ["first", "second"] {
        let job = service.job(ALICE, &format!("app=alone,accelerator={alone}"));
        assert_eq!(job.runs(&service, 2.0).await["state"], "counted");
    }
    // It is shown to those who ask for both, and to nobody else.
    assert_eq!(service.check("accelerators").await["state"], "ok");
    catalogue.put("second", &sized("second", "[1, 2, 4]"));
    service.look_at_files().await;
    let run = service.job(ALICE, TWO).runs(&service, 2.0).await;
    assert_eq!(
        (&run["state"], &run["epoch"]),
        (&json!("counted"), &json!(1))
    );
}

#[tokio::test]
async fn when_one_of_two_goes_a_report_of_both_still_counts_and_their_study_stays() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_two(&catalogue).await;
    let job = service.job(ALICE, TWO);
    let started = job.start(&service).await;
    catalogue.remove("second");
    service.look_at_files().await;
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    job.ends(&service, "COMPLETED", 2.0);
    service.poll().await;
    assert_eq!(
        service.run_of(job.job.job_id).await["run"]["state"],
        "counted"
    );
    assert_eq!(service.study("ocean").await["accelerator"], "first+second");
    let refused = service.job(ALICE, TWO).try_start(&service).await;
    let refused = refused.refused(422, "unknown_accelerator");
    assert!(
        refused.contains("there is no accelerator \"second\""),
        "{refused}"
    );
}

#[tokio::test]
async fn a_default_may_be_several_together_in_whichever_order() {
    let service = TestService::with("[accelerators]\ndefault = \"romio+page-cache\"\n").await;
    let list = service.user(ALICE).get("/v1/accelerators").await.ok();
    let default = list.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&default["name"], &default["is_default"]),
        (&json!("page-cache+romio"), &json!(true))
    );
    let run = service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    assert_eq!(run["accelerator"], "page-cache+romio");
    assert_eq!(
        service.check("accelerators").await["detail"],
        "30; the default is page-cache+romio"
    );
}
