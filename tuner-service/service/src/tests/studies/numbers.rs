//! The numbers of a study are those of its runs, and no gain is claimed that is not there.

use io_autotune_engine::Phase;
use serde_json::{Value, json};

use super::super::{ALICE, Course, QUICK, TestService};
use super::{by_default, history, steer, text};

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

fn mean(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "some dozens")]
    let count = values.len() as f64;
    values.iter().sum::<f64>() / count
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Elapsed of the runs of these roles in a phase, or in any.
fn elapsed(runs: &[Value], phase: Option<&str>, roles: &[&str]) -> Vec<f64> {
    let counted = runs.iter().filter(|run| run["state"] == "counted");
    let of_phase = counted.filter(|run| phase.is_none_or(|phase| run["phase"] == phase));
    let of_roles = of_phase.filter(|run| roles.contains(&text(&run["role"])));
    of_roles.map(|run| number(&run["elapsed"])).collect()
}

/// Promise: a wrong gain is reported
#[tokio::test]
async fn the_numbers_of_a_study_are_those_of_its_runs() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=ocean", 36, |given, number| {
            let noise = 0.04 * f64::from(number * 7 % 11);
            if *given == default {
                10.0 + noise
            } else {
                7.0 + noise
            }
        })
        .await;
    // A run that does not count is in no number but its own.
    let course = |_: &_| Course::failed(1.0);
    service.ran(ALICE, "app=ocean", course).await;
    let path = "/v1/studies?app=ocean";
    let study = service.user(ALICE).get(path).await.ok()[0].clone();
    let runs = history(&service, ALICE, "ocean").await;
    assert_eq!((runs.len(), &study["not_counted"]), (37, &json!(1)));

    let counted = runs.iter().filter(|run| run["state"] == "counted").count();
    assert_eq!(study["counted"], counted);
    let control = elapsed(&runs, Some("settled"), &["control"]);
    let tuned = elapsed(&runs, Some("settled"), &["settled"]);
    for (name, seconds) in [
        ("default", &elapsed(&runs, None, &["baseline", "control"])),
        ("control", &control),
        ("tuned", &tuned),
    ] {
        assert!(seconds.len() >= 5, "{name}: {seconds:?}");
        assert_eq!(study[name]["n"], seconds.len(), "n of {name}");
        let told = number(&study[name]["mean"]);
        let close = (told / mean(seconds) - 1.0).abs() < 1e-9;
        assert!(close, "mean of {name}: {told}, {seconds:?}");
    }

    let gain = &study["gain"];
    let (low, high) = (number(&gain["interval"][0]), number(&gain["interval"][1]));
    let share = number(&gain["gain"]);
    assert!(0.0 < low && low < share && share < high, "{gain}");
    assert_eq!(gain["resolved"], true);
    let said = &study["assessment"]["gain"];
    assert_eq!(said["verdict"], "faster");
    let of_both = [("share", share), ("low", low), ("high", high)];
    for (name, value) in of_both {
        assert_eq!(said[name], value, "{name}");
    }
    let compared = |name: &str| usize::try_from(said[name].as_u64().unwrap()).unwrap();
    assert!(
        (1..=control.len()).contains(&compared("control_runs")),
        "{said}"
    );
    assert!(
        (1..=tuned.len()).contains(&compared("tuned_runs")),
        "{said}"
    );
    // What users would compute themselves: typical runs of both kinds.
    let typical = 1.0 - median(tuned) / median(control);
    assert!(low <= typical && typical <= high, "{said}: {typical}");
    assert!(!study["differs"].as_object().unwrap().is_empty());
}

#[tokio::test]
async fn what_other_runs_than_the_default_s_have_cost_is_told_in_node_seconds() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    for number in 0..10 {
        let mut job = service.job(ALICE, "app=ocean");
        job.job.nodes = 2;
        let course = by_default(&default, 10.0, 30.0);
        assert_eq!(job.goes(&service, course).await["state"], "counted");
        if number == 1 {
            let study_id = service.study_id("ocean").await;
            let values = json!({ "values": { "cb_nodes": "4" } });
            steer(&service, ALICE, study_id, "pin", values).await.ok();
        }
    }
    let study = service.study("ocean").await;
    let regret = &study["regret"];
    let runs = number(&regret["runs"]);
    assert!(runs > 0.0, "{regret}");
    assert_eq!(regret["budget"], 3.0);
    let expected = runs * number(&study["default"]["mean"]) * 2.0;
    assert!(
        (number(&regret["node_seconds"]) / expected - 1.0).abs() < 1e-9,
        "{study}"
    );
}

/// Promise: a wrong gain is reported
#[tokio::test]
async fn no_gain_is_told_where_there_is_none() {
    // Runs of the settled phase: half of them are control runs, enough for a claim if all ranks agree.
    const TOLD_RUNS: usize = 20;
    let service = TestService::with(QUICK).await;
    for (seed, application) in (1..).zip(["none-1", "none-2"]) {
        let request = format!("app={application}");
        let mut settled = 0;
        for number in 0.. {
            assert!(number < 60, "it does not settle");
            // Five percent of noise, whatever was given.
            let noise = f64::from((number * 37 + seed * 13) % 101) / 101.0 - 0.5;
            let answers = service.tune(ALICE, &request, 1, |_, _| 1.0 + 0.17 * noise);
            let answers = answers.await;
            settled += usize::from(answers[0].phase == Phase::Settled);
            if settled == TOLD_RUNS {
                break;
            }
        }
        let study = service.study(application).await;
        // Where the default itself is chosen there is nothing to compare.
        let gain = &study["gain"];
        assert!(gain.is_null() || gain["resolved"] == false, "{study}");
        let verdict = text(&study["assessment"]["gain"]["verdict"]);
        assert!(
            ["not_yet", "no_effect", "unclear"].contains(&verdict),
            "{study}"
        );
        let elapsed = study["default"]["mean"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&elapsed), "{study}");
    }
}

/// Promise: a wrong gain is reported
#[tokio::test]
async fn a_loss_is_told_as_one_and_no_gain() {
    let service = TestService::with(QUICK).await;
    let default = service.default_of("romio");
    let before = service
        .tune(ALICE, "app=ocean", 16, |given, number| {
            let noise = 0.01 * f64::from(number % 3);
            if *given == default {
                10.0 + noise
            } else {
                9.0 + noise
            }
        })
        .await;
    let settled = before.iter().any(|one| one.phase == Phase::Settled);
    assert!(settled, "{before:?}");
    // From now on what was chosen is slower than the default.
    service
        .tune(ALICE, "app=ocean", 20, |given, number| {
            let noise = 0.01 * f64::from(number % 3);
            if *given == default {
                6.0 + noise
            } else {
                9.0 + noise
            }
        })
        .await;
    let study = service.study("ocean").await;
    let said = &study["assessment"]["gain"]["verdict"];
    assert_ne!(said, "faster", "{study}");
}
