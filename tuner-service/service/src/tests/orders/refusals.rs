//! Tests of refusals: they name what to do instead, and leave nothing behind.

use super::*;

/// Nothing is ordered and nothing is in the audit.
async fn is_untouched(service: &TestService) {
    assert_eq!(orders(service, ADMIN).await, Vec::<Value>::new());
    assert_eq!(lines(service, ADMIN, "").await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_order_that_says_too_much_or_too_little_is_refused_with_what_to_say() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let values = json!({ "cb_nodes": "2" });
    for (body, told) in [
        (
            pinning(json!({ "study": study }), values.clone()),
            "a study's own pin is /v1/studies/{study_id}/pin",
        ),
        (
            what("pin", of(APP)),
            "name the values to pin; {} is the default",
        ),
        (
            with(what("freeze", of(APP)), "values", &values),
            "only a pin and a site's default have values",
        ),
        (
            with(what("off", of(APP)), "values", json!({})),
            "only a pin and a site's default have values",
        ),
    ] {
        let answer = service.user(ALICE).post("/v1/orders", &body).await;
        assert_eq!(answer.bad_request(), told, "{body}");
    }
    is_untouched(&service).await;
}

#[tokio::test]
async fn an_end_has_neither_values_nor_a_date() {
    let service = TestService::new().await;
    order(&service, ALICE, what("off", of(APP))).await;
    for body in [
        with(what("off", of(APP)), "values", json!({})),
        with(what("off", of(APP)), "until", "2100-01-01T00:00:00Z"),
    ] {
        let answer = service.user(ALICE).post("/v1/orders/end", &body).await;
        assert_eq!(
            answer.bad_request(),
            "what ends an order has neither values nor a date"
        );
    }
    assert_eq!(orders(&service, ALICE).await.len(), 1);
}

#[tokio::test]
async fn what_is_not_in_force_is_not_ended() {
    let service = TestService::new().await;
    order(&service, ALICE, what("freeze", of("atmosphere"))).await;
    for (kind, scope) in [("freeze", of(APP)), ("off", of("atmosphere"))] {
        let body = what(kind, scope);
        let answer = service.user(ALICE).post("/v1/orders/end", &body).await;
        assert_eq!(
            answer.refused(409, "conflict"),
            format!(
                "no {kind} of this scope is in force; `io-autotune audit orders` lists what is"
            )
        );
    }
    assert_eq!(orders(&service, ALICE).await.len(), 1);
}

#[tokio::test]
async fn a_scope_that_is_none_is_refused() {
    let service = TestService::new().await;
    for path in ["/v1/orders", "/v1/orders/end"] {
        let caller = service.user(ALICE);
        let answer = caller.post(path, what("off", of(".."))).await;
        assert_eq!(
            answer.bad_request(),
            "scope.application = \"..\": a name is expected: at most 128 of letters, digits and . _ + @ -, starting \
             with a letter or digit"
        );
        let body = what("off", json!({ "cluster": "gamma" }));
        let answer = caller.post(path, body).await;
        let told = answer.refused(422, "unknown_cluster");
        assert_eq!(
            told,
            "the service has no cluster \"gamma\": it has alpha ([slurm] of service.toml)"
        );
        let body = what("off", json!({ "study": 987_654 }));
        let told = caller.post(path, body).await.not_found();
        assert_eq!(
            told,
            "there is no study 987654 among those you may see; `io-autotune status` lists them"
        );
    }
    is_untouched(&service).await;
}

#[tokio::test]
async fn an_order_with_a_field_that_there_is_not_is_refused_by_its_name() {
    let service = TestService::new().await;
    for body in [
        with(what("off", json!({})), "priority", 1),
        what("off", json!({ "partition": "main" })),
        what("on", json!({})),
    ] {
        let told = service
            .user(ALICE)
            .post("/v1/orders", &body)
            .await
            .bad_request();
        let named = ["priority", "partition", "`on`"];
        assert!(named.iter().any(|name| told.contains(name)), "{told}");
    }
    is_untouched(&service).await;
}

#[tokio::test]
async fn values_that_fit_no_study_are_refused_with_the_choices() {
    let service = TestService::new().await;
    begun(&service, ALICE, APP).await;
    for (values, told) in [
        (json!({ "cb_nodes": "3" }), "automatic"),
        (json!({ "cb_moods": "1" }), "cb_nodes"),
    ] {
        let answer = service
            .user(ALICE)
            .post("/v1/orders", pinning(of(APP), values))
            .await;
        assert!(answer.bad_request().contains(told), "{answer}");
    }
    is_untouched(&service).await;
}

#[tokio::test]
async fn what_cannot_be_pinned_is_refused_with_the_choices() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for (values, told) in [
        (json!({ "cb_nodes": "3" }), "automatic"),
        (json!({ "cb_moods": "1" }), "cb_nodes"),
    ] {
        let body = json!({ "values": values, "why": "a mistake" });
        let answer = steer(&service, ALICE, study, "pin", body).await;
        assert!(answer.bad_request().contains(told), "{answer}");
    }
    assert_eq!(seen(&service, ALICE, study).await["pin"], Value::Null);
    is_untouched(&service).await;
}

#[tokio::test]
async fn a_study_that_recommends_nothing_is_pinned_to_named_values_alone() {
    let service = TestService::new().await;
    // Its run has started, and nothing has counted.
    let job = service.job(ALICE, "app=ocean");
    job.start(&service).await;
    let study = service.study_id(APP).await;
    let told = steer(&service, ALICE, study, "pin", why()).await;
    assert_eq!(
        told.bad_request(),
        format!("study {study} recommends nothing yet: name the values to pin")
    );
    is_untouched(&service).await;
}

#[tokio::test]
async fn a_study_without_a_pin_of_its_own_is_not_unpinned() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    // Another's order holds it, and is no pin of its own.
    order(&service, ADMIN, pinning(of(APP), json!({}))).await;
    let answer = steer(&service, ALICE, study, "unpin", why()).await;
    assert_eq!(
        answer.bad_request(),
        format!(
            "study {study} has no pin of its own; `io-autotune status study:{study}` says what holds it"
        )
    );
    assert_eq!(lines(&service, ADMIN, "").await.len(), 1);
}

#[tokio::test]
async fn the_objective_that_a_study_has_is_not_set_again() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let marked = json!({ "objective": "marked", "why": "a test" });
    steer(&service, ALICE, study, "objective", marked.clone())
        .await
        .ok();
    let again = steer(&service, ALICE, study, "objective", marked).await;
    let told = again.refused(409, "conflict");
    let expected = format!("study {study} has this objective already: marked");
    assert!(told.starts_with(&expected), "{told}");
    assert_eq!(seen(&service, ALICE, study).await["epoch"], 2);
    assert_eq!(lines(&service, ALICE, "").await.len(), 1);
}

#[tokio::test]
async fn an_objective_that_is_none_is_refused_with_what_it_must_be() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for body in [
        json!({ "objective": "9lives", "why": "a test" }),
        json!({ "objective": "elapsed", "maximise": true, "why": "a test" }),
    ] {
        let answer = steer(&service, ALICE, study, "objective", body).await;
        assert!(answer.bad_request().contains("elapsed"), "{answer}");
    }
    is_untouched(&service).await;
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn a_user_orders_nothing_for_another() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for path in ["/v1/orders", "/v1/orders/end"] {
        for kind in ["pin", "freeze", "off"] {
            for scope in [
                json!({ "uid": ALICE }),
                json!({ "uid": ALICE, "application": APP }),
                json!({ "uid": ALICE, "study": study }),
                json!({ "uid": ROOT }),
            ] {
                let mut body = what(kind, scope);
                if kind == "pin" && path == "/v1/orders" {
                    body["values"] = json!({});
                }
                for uid in [BOB, OPERATOR, REPORT_READER, COLLECTOR, BURST_BUFFER] {
                    let answer = service.user(uid).post(path, &body).await;
                    assert_eq!(
                        answer.forbidden(),
                        "only admins steer the studies of others: leave the user out"
                    );
                }
            }
            if kind != "pin" {
                let body = what(kind, json!({ "study": study }));
                service.user(BOB).post(path, &body).await.not_found();
            }
        }
    }
    is_untouched(&service).await;
    assert_eq!(next(&service, ALICE, APP).await["role"], "baseline");
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
///
/// Promise: a user steers another user's study
#[tokio::test]
async fn a_user_steers_no_study_of_another() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let own = begun(&service, BOB, APP).await;
    for (how, body) in [
        (
            "pin",
            json!({ "values": { "cb_nodes": "2" }, "why": "mischief" }),
        ),
        ("unpin", why()),
        ("reset", why()),
        ("accept", why()),
        (
            "objective",
            json!({ "objective": "marked", "why": "mischief" }),
        ),
        ("warm-start", json!({ "from": own, "why": "mischief" })),
    ] {
        for uid in [BOB, OPERATOR, REPORT_READER, COLLECTOR, BURST_BUFFER] {
            let answer = steer(&service, uid, study, how, body.clone()).await;
            assert_eq!(
                answer.not_found(),
                format!(
                    "there is no study {study} among those you may see; `io-autotune status` lists them"
                ),
                "{how} of {uid}"
            );
        }
    }
    is_untouched(&service).await;
    let told = seen(&service, ALICE, study).await;
    assert_eq!((&told["epoch"], &told["pin"]), (&json!(1), &Value::Null));
}

/// Attack (units): A `--why` is too long, of several lines, or has escapes or invisible characters.
/// Outcome: It is refused; a stored one is shown with question marks.
#[tokio::test]
async fn a_reason_that_is_not_what_it_looks_like_is_refused() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    for character in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{61c}'] {
        let body = json!({ "why": format!("fine {character}gnp.exe") });
        let answer = steer(&service, ALICE, study, "reset", body).await;
        let told = answer.bad_request();
        assert!(told.contains("invisible"), "{told}");
        assert!(!answer.text().contains(character), "{character:?}");
    }
    let of_it = "select count(*) from audit where why like '%gnp.exe%'";
    assert_eq!(service.database.number(of_it).await, 0);
    is_untouched(&service).await;
}

#[tokio::test]
async fn whatever_changes_what_others_have_asks_for_a_reason() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let other = begun(&service, ALICE, "atmosphere").await;
    let line = order(&service, ALICE, what("off", of("other"))).await["line"].clone();
    for (path, body) in changes(study, other, &line) {
        let caller = service.user(ADMIN);
        for bad in ["two\nlines", "a\u{202e}b", &"x".repeat(501)] {
            let answer = caller.post(&path, with(body.clone(), "why", bad)).await;
            assert_eq!(
                answer.bad_request(),
                "say why, in at most 500 characters, none of them a control character, invisible, or \
                 one that changes the direction of text: --why \"...\"",
                "{path} {bad:?}"
            );
        }
        for none in [
            body.clone(),
            with(body.clone(), "why", ""),
            with(body, "why", " \t"),
        ] {
            let answer = caller.post(&path, none).await;
            assert_eq!(
                answer.bad_request(),
                "say why, because this is about more than your own studies: --why \"...\"",
                "{path}"
            );
        }
    }
    assert_eq!(lines(&service, ADMIN, "").await.len(), 1);
}

#[tokio::test]
async fn whatever_changes_what_nobody_else_has_needs_no_reason() {
    for uid in [ALICE, ADMIN] {
        let service = TestService::new().await;
        let study = begun(&service, uid, APP).await;
        let other = begun(&service, uid, "atmosphere").await;
        let own = with(of("other"), "uid", uid);
        let line = order(&service, uid, what("off", own.clone())).await["line"].clone();
        for (path, mut body) in changes(study, other, &line) {
            if path.starts_with("/v1/retention") || path.starts_with("/v1/imports") {
                continue;
            }
            if path.starts_with("/v1/orders") {
                body["scope"]["uid"] = json!(uid);
            }
            let answer = service.user(uid).post(&path, body).await;
            let told = answer.text();
            assert!(!told.contains("say why"), "{path}: {told}");
        }
        let lines = lines(&service, uid, "").await;
        let why = |line: &&Value| line["why"] == "no reason was given";
        // Nothing was learnt yet that could be taken over.
        let without = lines.iter().filter(why).count();
        assert!(without >= 6, "{lines:?}");
    }
}

/// Each kind of change, without a reason.
fn changes(study: i64, other: i64, line: &Value) -> Vec<(String, Value)> {
    let of_study = |how: &str| format!("/v1/studies/{study}/{how}");
    vec![
        (of_study("pin"), json!({ "values": {} })),
        (of_study("unpin"), json!({})),
        (of_study("reset"), json!({})),
        (of_study("accept"), json!({})),
        (of_study("objective"), json!({ "objective": "marked" })),
        (of_study("warm-start"), json!({ "from": other })),
        ("/v1/orders".to_owned(), json!({ "kind": "off" })),
        (format!("/v1/audit/{line}/undo"), json!({})),
        (
            "/v1/orders/end".to_owned(),
            json!({ "kind": "off", "scope": {} }),
        ),
        ("/v1/retention".to_owned(), json!({ "older_than_days": 30 })),
        (
            "/v1/imports/0123456789abcdef0123456789abcdef/end".to_owned(),
            json!({ "chunks": 1, "step": "import" }),
        ),
    ]
}

#[tokio::test]
async fn a_reason_of_500_characters_is_taken_without_what_is_around_it() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let longest = "\u{fc}".repeat(500);
    let body = json!({ "why": format!("  {longest} ") });
    steer(&service, ALICE, study, "reset", body).await.ok();
    assert_eq!(lines(&service, ALICE, "").await[0]["why"], longest);
}

#[tokio::test]
async fn each_refusal_of_a_steering_is_described() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    let line = order(&service, ADMIN, what("off", json!({}))).await["line"].clone();
    let described = crate::api::description();
    let off = |scope: Value| what("off", scope);
    let (theirs, nowhere) = (json!({ "uid": BOB }), json!({ "study": 987_654 }));
    let of_study = format!("/v1/studies/{study}/unpin");
    let undoing = format!("/v1/audit/{line}/undo");
    for (path, as_described, body, status) in [
        ("/v1/orders", "/v1/orders", off(theirs.clone()), 403),
        ("/v1/orders", "/v1/orders", off(nowhere.clone()), 404),
        ("/v1/orders", "/v1/orders", json!({}), 422),
        ("/v1/orders/end", "/v1/orders/end", off(theirs), 403),
        ("/v1/orders/end", "/v1/orders/end", off(nowhere), 404),
        ("/v1/orders/end", "/v1/orders/end", off(of(APP)), 409),
        ("/v1/orders/end", "/v1/orders/end", json!({}), 422),
        (&undoing, "/v1/audit/{audit_id}/undo", why(), 403),
        (
            "/v1/audit/987654/undo",
            "/v1/audit/{audit_id}/undo",
            why(),
            404,
        ),
        (
            &undoing,
            "/v1/audit/{audit_id}/undo",
            json!({ "why": 7 }),
            422,
        ),
        (&of_study, "/v1/studies/{study_id}/unpin", why(), 422),
    ] {
        let answer = service.user(ALICE).post(path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{answer}");
        let operations = &described.paths.paths[as_described];
        let responses = &operations.post.as_ref().unwrap().responses.responses;
        assert!(
            responses.contains_key(&status.to_string()),
            "{status} of {as_described}"
        );
    }
}
