//! The undo of each kind of change: by whom, once, and only while it is in force.

use super::*;

/// A kind of change that can be undone.
const CHANGES: [&str; 9] = [
    "pin",
    "unpin",
    "reset",
    "objective",
    "freeze",
    "resume",
    "off",
    "on",
    "pin again",
];

/// The orders of a study and its next run, without what it has counted.
async fn standing(service: &TestService, uid: u32, study: i64, application: &str) -> Value {
    let told = seen(service, ADMIN, study).await;
    let run = next(service, uid, application).await;
    json!({
        "pin": told["pin"], "ordered": told["ordered"], "objective": told["objective"],
        "role": run["role"], "differs": run["differs"],
    })
}

/// Makes a change of one study, after what has to precede it. Returns its line of the audit.
async fn change(service: &TestService, uid: u32, study: i64, kind: &str) -> Value {
    let scope = json!({ "study": study });
    let answer = match kind {
        "pin" | "pin again" => pin(service, uid, study, json!({ "cb_nodes": "2" })).await,
        "unpin" | "reset" => steer(service, uid, study, kind, why()).await.ok(),
        "objective" => {
            let body = json!({ "objective": "marked", "why": "a test" });
            steer(service, uid, study, kind, body).await.ok()
        }
        "freeze" | "off" => order(service, uid, what(kind, scope)).await,
        "resume" => end(service, uid, what("freeze", scope)).await,
        "on" => end(service, uid, what("off", scope)).await,
        _ => unreachable!("{kind}"),
    };
    answer["line"].clone()
}

/// Makes what has to precede a change.
async fn prepare(service: &TestService, uid: u32, study: i64, kind: &str) {
    let scope = json!({ "study": study });
    match kind {
        "unpin" | "reset" | "pin again" => {
            pin(service, uid, study, json!({ "cb_nodes": "8" })).await;
        }
        "resume" => {
            order(service, uid, what("freeze", scope)).await;
        }
        "on" => {
            order(service, uid, what("off", scope)).await;
        }
        _ => {}
    }
}

/// Checks that this user can undo each change of alice's studies once, and that the studies are
/// then as before.
async fn undoes_each(service: &TestService, who: u32) {
    for (place, kind) in CHANGES.iter().enumerate() {
        let application = format!("app{place}");
        let study = begun(service, ALICE, &application).await;
        prepare(service, ALICE, study, kind).await;
        let before = standing(service, ALICE, study, &application).await;
        let line = change(service, ALICE, study, kind).await;
        let between = standing(service, ALICE, study, &application).await;
        assert_ne!(between, before, "{kind} changes nothing");
        let told = undo(service, who, &line).await.ok();
        assert_eq!(told["audit_id"], line, "{kind}");
        let newest = &lines(service, ADMIN, "?limit=1").await[0];
        assert_eq!(newest["action"], "undo");
        assert_eq!((&newest["uid"], &newest["undoes"]), (&json!(who), &line));
        assert_eq!(told["undone_by"], newest["audit_id"], "{kind}");
        let after = standing(service, ALICE, study, &application).await;
        assert_eq!(after, before, "{kind}");
        let again = undo(service, ADMIN, &line).await.refused(409, "conflict");
        let action = kind.trim_end_matches(" again");
        assert_eq!(
            again,
            format!("line {line}, {action}, cannot be undone: it is undone already")
        );
    }
}

#[tokio::test]
async fn the_owner_undoes_each_change_once() {
    undoes_each(&TestService::new().await, ALICE).await;
}

#[tokio::test]
async fn an_admin_undoes_each_change_once() {
    undoes_each(&TestService::new().await, ADMIN).await;
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn nobody_else_undoes_any_change() {
    let service = TestService::new().await;
    for (place, kind) in CHANGES.iter().enumerate() {
        let study = begun(&service, ALICE, &format!("app{place}")).await;
        prepare(&service, ALICE, study, kind).await;
        let line = change(&service, ALICE, study, kind).await;
        for uid in [BOB, OPERATOR, REPORT_READER] {
            assert_eq!(
                undo(&service, uid, &line).await.not_found(),
                format!(
                    "there is no line {line} of the audit among those you may see; `io-autotune audit` lists them"
                ),
                "{kind} by {uid}"
            );
        }
    }
    let undone = "select count(*) from audit where undoes is not null";
    assert_eq!(service.database.number(undone).await, 0);
}

#[tokio::test]
async fn a_user_undoes_their_own_pin() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "cb_nodes": "2" })).await;
    let line = lines(&service, ALICE, "").await[0]["audit_id"].clone();
    assert_eq!(lines(&service, BOB, "").await, Vec::<Value>::new());
    undo(&service, ALICE, &line).await.ok();
    assert_eq!(seen(&service, ALICE, study).await["pin"], Value::Null);
}

#[tokio::test]
async fn a_user_undoes_an_order_for_many_and_its_end() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    for (kind, role) in [
        ("off", "observe"),
        ("freeze", "best_known"),
        ("pin", "pinned"),
    ] {
        let body = match kind {
            "pin" => pinning(of(APP), json!({ "cb_nodes": "2" })),
            _ => what(kind, of(APP)),
        };
        let given = order(&service, ALICE, body).await;
        assert_eq!(next(&service, ALICE, APP).await["role"], role);
        let ended = end(&service, ALICE, what(kind, of(APP))).await;
        let until = next(&service, ALICE, APP).await["role"].clone();
        assert_ne!(until, role);
        undo(&service, ALICE, &ended["line"]).await.ok();
        assert_eq!(next(&service, ALICE, APP).await["role"], role);
        // The order's own line is in force again, so it is undone too.
        undo(&service, ALICE, &given["line"]).await.ok();
        assert_ne!(next(&service, ALICE, APP).await["role"], role);
        assert_eq!(orders(&service, ALICE).await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn what_something_later_has_changed_is_not_undone() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let scope = json!({ "study": study });
    let pinned = pin(&service, ALICE, study, json!({ "cb_nodes": "2" })).await;
    let reset = steer(&service, ALICE, study, "reset", why()).await.ok();
    steer(&service, ALICE, study, "reset", why()).await.ok();
    let frozen = order(&service, ALICE, what("freeze", scope.clone())).await;
    let resumed = end(&service, ALICE, what("freeze", scope.clone())).await;
    order(&service, ALICE, what("freeze", scope)).await;
    for (line, action) in [
        (&pinned["line"], "pin"),
        (&reset["line"], "reset"),
        (&frozen["line"], "freeze"),
        (&resumed["line"], "resume"),
    ] {
        let told = undo(&service, ALICE, line).await.refused(409, "conflict");
        assert_eq!(
            told,
            format!(
                "line {line}, {action}, cannot be undone: it is not in force any more: something later has changed it"
            )
        );
    }
}

#[tokio::test]
async fn a_pin_of_the_same_values_by_another_is_another_pin() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let values = json!({ "cb_nodes": "2" });
    let first = pin(&service, ALICE, study, values.clone()).await;
    pin(&service, ADMIN, study, values).await;
    undo(&service, ALICE, &first["line"])
        .await
        .refused(409, "conflict");
    assert_eq!(seen(&service, ALICE, study).await["pin"]["uid"], ADMIN);
}

#[tokio::test]
async fn what_has_no_undo_says_what_has_one() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let pinned = pin(&service, ALICE, study, json!({})).await;
    undo(&service, ALICE, &pinned["line"]).await.ok();
    let line = lines(&service, ALICE, "?limit=1").await[0]["audit_id"].clone();
    let told = undo(&service, ALICE, &line).await.refused(409, "conflict");
    assert_eq!(
        told,
        format!(
            "line {line}, undo, cannot be undone: only a pin, a reset, a warm start, another objective, an \
             acceptance, a freeze, an off, a site's default, and what has ended one, can be undone"
        )
    );
}

#[tokio::test]
async fn an_acceptance_is_undone_to_what_was_accepted_before() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let accept = |uid, why: &str| {
        let body = json!({ "why": why });
        let service = &service;
        async move { steer(service, uid, study, "accept", body).await.ok()["line"].clone() }
    };
    let accepted = async |why: &str| {
        let of_it = format!("select count(*) from studies where mixed_accepted_why = '{why}'");
        service.database.number(&of_it).await == 1
    };
    let first = accept(ALICE, "the input varies").await;
    let second = accept(ADMIN, "as they say").await;
    // Only the newest one is in force.
    undo(&service, ALICE, &first).await.refused(409, "conflict");
    assert!(accepted("as they say").await);
    undo(&service, ALICE, &second).await.ok();
    assert!(accepted("the input varies").await);
    undo(&service, ALICE, &first).await.ok();
    let of_any = "select count(*) from studies where mixed_accepted_at is not null";
    assert_eq!(service.database.number(of_any).await, 0);
    undo(&service, ALICE, &first).await.refused(409, "conflict");
}

#[tokio::test]
async fn an_acceptance_of_a_version_that_kept_nothing_is_not_undone() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    steer(&service, ALICE, study, "accept", why()).await.ok();
    service
        .database
        .execute(
            "insert into audit (uid, action, study_id, detail, why)
             select uid, action, study_id, '{}', why from audit where action = 'accept'",
        )
        .await;
    let line = lines(&service, ALICE, "?limit=1").await[0]["audit_id"].clone();
    let told = undo(&service, ALICE, &line).await.refused(409, "conflict");
    assert!(told.contains("did not keep what was before"), "{told}");
}

#[tokio::test]
async fn a_line_that_there_is_not_is_not_undone() {
    let service = TestService::new().await;
    for uid in [ALICE, ADMIN] {
        let told = undo(&service, uid, &json!(987_654)).await.not_found();
        assert_eq!(
            told,
            "there is no line 987654 of the audit among those you may see; `io-autotune audit` lists them"
        );
    }
}

#[tokio::test]
async fn an_undone_reset_goes_on_with_what_was_learnt_before() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    next(&service, ALICE, APP).await;
    let before = seen(&service, ALICE, study).await["default"].clone();
    let reset = steer(&service, ALICE, study, "reset", why()).await.ok();
    assert_eq!(reset["default"], Value::Null);
    undo(&service, ALICE, &reset["line"]).await.ok();
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["epoch"], 3);
    assert_eq!(told["opened"]["why"], "a reset was undone");
    assert_eq!(told["opened"]["takes"], "runs");
    assert_eq!(told["default"]["mean"], before["mean"], "{told}");
}

#[tokio::test]
async fn what_retention_has_removed_is_not_gone_back_to() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let reset = steer(&service, ALICE, study, "reset", why()).await.ok();
    service
        .advance(std::time::Duration::from_hours(24 * 60))
        .await;
    next(&service, ALICE, APP).await;
    let body = json!({ "older_than_days": 30, "why": "a test" });
    let removed = service.user(ADMIN).post("/v1/retention", body).await.ok();
    assert_eq!(removed["runs"], 1, "{removed}");
    let told = undo(&service, ALICE, &reset["line"]).await;
    assert_eq!(
        told.refused(409, "conflict"),
        format!(
            "line {}, reset, cannot be undone: the runs of the epoch before were removed by retention",
            reset["line"]
        )
    );
}

#[tokio::test]
async fn a_warm_start_is_undone_and_the_study_goes_on() {
    let service = TestService::new().await;
    let default = service.default_of("romio");
    service
        .tune(ALICE, "app=source", 12, |given, _| {
            if *given == default { 10.0 } else { 8.0 }
        })
        .await;
    let source = service.study_id("source").await;
    let study = begun(&service, ALICE, APP).await;
    let body = json!({ "from": source, "why": "the same library" });
    let begun_from = steer(&service, ALICE, study, "warm-start", body).await.ok();
    assert_eq!(begun_from["epoch"], 2, "{begun_from}");
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["opened"]["takes"], "ranks");
    let line = lines(&service, ALICE, "?limit=1").await[0].clone();
    assert_eq!(line["action"], "warm-start");
    undo(&service, ALICE, &line["audit_id"]).await.ok();
    let told = seen(&service, ALICE, study).await;
    assert_eq!(told["epoch"], 3);
    assert_eq!(told["opened"]["why"], "a warm start was undone");
    // What was learnt before is there, and the runs are of its epoch.
    assert_eq!(
        (&told["counted"], &told["opened"]["takes"]),
        (&json!(0), &json!("runs"))
    );
    assert_eq!(told["default"]["mean"], 10.0, "{told}");
    let job = service.job(ALICE, "app=ocean");
    let given = job.completes(&service, 10.0).await;
    assert_eq!(given.role, io_autotune_engine::Role::Baseline);
    assert_eq!(given.delivery.files[0].content, "");
}

#[tokio::test]
async fn a_pin_that_the_accelerator_does_not_offer_any_more_is_not_restored() {
    let catalogue = tempfile::tempdir().unwrap();
    let offers = |values: &str| {
        let text = format!(
            "name = \"first\"\ntitle = \"An accelerator\"\n[[parameters]]\nname = \"size\"\n\
             kind = \"ordered\"\nvalues = {values}\ndefault = 1\n[[delivery.environment]]\n\
             variable = \"FIRST_SIZE\"\nvalue = \"{{size}}\"\nomit_default = true\n"
        );
        std::fs::write(catalogue.path().join("first.toml"), text).unwrap();
    };
    offers("[1, 2, 4]");
    let directory = catalogue.path().display().to_string();
    let more = format!("[accelerators]\ndirectory = {directory:?}\ndefault = \"first\"\n");
    let service = TestService::with(&more).await;
    let study = begun(&service, ALICE, APP).await;
    pin(&service, ALICE, study, json!({ "size": "4" })).await;
    offers("[1, 2]");
    service.hang_up().await;
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
    let taken = lines(&service, ALICE, "?limit=1").await[0].clone();
    assert_eq!(
        (&taken["action"], &taken["uid"]),
        (&json!("unpin"), &json!(ROOT))
    );
    let line = &taken["audit_id"];
    assert_eq!(
        undo(&service, ALICE, line).await.refused(409, "conflict"),
        format!(
            "line {line}, unpin, cannot be undone: the accelerator does not offer what was pinned any more"
        )
    );
}
