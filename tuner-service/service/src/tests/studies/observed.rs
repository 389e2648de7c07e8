//! Tests of the values that the library reports as in force: they are compared with the given ones,
//! and a parameter that the program does not heed is not tuned.

use io_autotune_protocol::{Applied, ObservedParameter, StartAnswer};
use serde_json::{Value, json};

use super::super::{ALICE, Course, QUICK, TestService};
use super::{explores, steer, text, warnings};

/// The report of a node about a job whose program sets data sieving itself, or does not.
pub(in super::super) fn sets_it(sets_it: bool) -> impl Fn(&StartAnswer) -> Course {
    move |started: &StartAnswer| {
        let given = started.parametrization.0["romio_ds_write"].to_string();
        let asked = (given != "automatic").then_some(given);
        let in_force = match &asked {
            _ if sets_it => "disable".to_owned(),
            Some(given) => given.clone(),
            None => "automatic".to_owned(),
        };
        let as_asked = asked.as_ref().is_none_or(|given| *given == in_force);
        let detail = format!(
            "romio_ds_write was {in_force} and not {}",
            asked.clone().unwrap_or_default()
        );
        Course {
            applied: (!as_asked).then_some(Applied::Incomplete { detail }),
            observed: vec![ObservedParameter {
                parameter: "romio_ds_write".to_owned(),
                name: "romio_ds_write".to_owned(),
                asked,
                in_force,
                as_asked,
            }],
            ..Course::completed(5.0)
        }
    }
}

/// Has two jobs run that are given another value than the one that their program sets.
pub(in super::super) async fn overridden(service: &TestService, application: &str) -> i64 {
    let request = format!("app={application}");
    let first = service.ran(ALICE, &request, sets_it(true)).await;
    assert_eq!(
        first["state"], "counted",
        "by default nothing is asked of the parameter: {first}"
    );
    let study_id = service.study_id(application).await;
    let values = json!({ "values": { "romio_ds_write": "enable" } });
    steer(service, ALICE, study_id, "pin", values).await.ok();
    for _ in 0..2 {
        let run = service.ran(ALICE, &request, sets_it(true)).await;
        assert_eq!(
            run["state"], "not_counted",
            "it did not have what it would count for"
        );
        let verdict = text(&run["verdict"]);
        assert!(
            verdict.contains("romio_ds_write was disable and not enable"),
            "{verdict}"
        );
    }
    study_id
}

#[tokio::test]
async fn a_parameter_that_has_no_effect_is_said() {
    let service = TestService::with(QUICK).await;
    overridden(&service, "overridden").await;
    let study = service.study("overridden").await;
    let told = warnings(&study, "has no effect");
    assert_eq!(told.len(), 1, "{study}");
    let expected = "romio_ds_write has no effect here: 2 of the latest runs were given enable, and disable was in force";
    assert!(told[0].starts_with(expected), "{told:?}");
}

#[tokio::test]
async fn a_parameter_that_the_program_sets_is_no_longer_tuned() {
    let service = TestService::with(QUICK).await;
    let study_id = overridden(&service, "held").await;
    steer(&service, ALICE, study_id, "unpin", json!({}))
        .await
        .ok();
    let mut explored: Vec<Value> = Vec::new();
    for _ in 0..20 {
        let run = service.ran(ALICE, "app=held", sets_it(true)).await;
        assert_eq!(run["state"], "counted", "{run}");
        assert_eq!(run["differs"].get("romio_ds_write"), None, "{run}");
        if explores(&run) {
            assert_ne!(run["differs"], json!({}), "the others are varied");
            let reason = text(&run["reason"]);
            let held =
                "held at the default, because the application does not heed it: romio_ds_write";
            assert!(reason.ends_with(held), "{reason}");
            explored.push(run);
        }
        if explored.len() == 3 {
            break;
        }
    }
    assert_eq!(explored.len(), 3, "nothing was explored");
}

#[tokio::test]
async fn a_parameter_that_is_heeded_again_is_tuned_again() {
    let service = TestService::with(QUICK).await;
    let study_id = overridden(&service, "again").await;
    steer(&service, ALICE, study_id, "unpin", json!({}))
        .await
        .ok();
    let study = service.study("again").await;
    let told = warnings(&study, "has no effect");
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("held at its default, and no longer tuned"),
        "{told:?}"
    );
    for _ in 0..2 {
        let run = service.ran(ALICE, "app=again", sets_it(false));
        assert_eq!(run.await["state"], "counted");
    }
    let study = service.study("again").await;
    assert!(warnings(&study, "has no effect").is_empty(), "{study}");
}
