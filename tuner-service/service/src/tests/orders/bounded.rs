//! Tests of the limits of a user's orders: their number, changes a day, bytes, and pages of the
//! lists.

use super::*;

const FEW: &str = "[users]\norders = 2\nchanges_per_day = 6\nrequests_per_second = 1e9\n";

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test]
async fn a_user_has_so_many_orders_in_force() {
    let service = TestService::with(FEW).await;
    for application in ["ocean", "climate"] {
        order(&service, ALICE, what("off", of(application))).await;
    }
    let third = what("off", of("third"));
    let answer = service.user(ALICE).post("/v1/orders", &third).await;
    let told = answer.refused(409, "too_many_orders");
    assert!(told.starts_with("you have 2 orders in force"), "{told}");
    assert!(told.contains("io-autotune audit orders"), "{told}");
    // Another in the place of one that is in force.
    order(&service, ALICE, what("off", of("ocean"))).await;
    order(&service, BOB, third.clone()).await;
    for application in ["a", "b", "c"] {
        order(&service, ADMIN, what("freeze", of(application))).await;
    }
    end(&service, ALICE, what("off", of("ocean"))).await;
    order(&service, ALICE, third).await;
}

/// Attack (floods): A user has too many studies or orders, or changes too much within a day.
/// Outcome: As many are taken as may be; replacing, ending and reading go on.
#[tokio::test]
async fn a_user_changes_so_much_within_a_day() {
    let service = TestService::with(FEW).await;
    let study = begun(&service, ALICE, APP).await;
    for _ in 0..6 {
        order(&service, ALICE, what("off", of(APP))).await;
    }
    let of_the_study = |how: &str| format!("/v1/studies/{study}/{how}");
    let undo = "/v1/audit/1/undo".to_owned();
    for path in ["/v1/orders", "/v1/orders/end"].map(str::to_owned) {
        let answer = service.user(ALICE).post(&path, what("off", of(APP))).await;
        let told = answer.refused(429, "too_many_changes");
        assert!(
            told.starts_with("you have changed 6 things within a day"),
            "{told}"
        );
    }
    for path in [
        of_the_study("reset"),
        of_the_study("unpin"),
        of_the_study("accept"),
        undo,
    ] {
        let answer = service.user(ALICE).post(&path, why()).await;
        answer.refused(429, "too_many_changes");
    }
    assert_eq!(lines(&service, ALICE, "").await.len(), 6);
    order(&service, BOB, what("off", of(APP))).await;
    for _ in 0..7 {
        order(&service, ADMIN, what("freeze", of(APP))).await;
    }
    service.advance(std::time::Duration::from_hours(25)).await;
    order(&service, ALICE, what("off", of(APP))).await;
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn an_order_has_no_more_than_an_order_needs() {
    let service = TestService::new().await;
    let many: Value = (0..65)
        .map(|number| (format!("p{number}"), json!("1")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    for (body, said) in [
        (
            pinning(of(APP), many),
            "values has 65 entries: at most 64 are taken",
        ),
        (
            pinning(of(APP), json!({ "cb_nodes": "2".repeat(257) })),
            "values.cb_nodes = ",
        ),
        (pinning(of(APP), json!({ "a b": "2" })), "values = \"a b\""),
        (
            pinning(of(APP), json!({ "cb_nodes": "\u{1b}[2J" })),
            "values.cb_nodes = ",
        ),
        (
            what("off", json!({ "accelerator": "\u{1b}[2J" })),
            "scope.accelerator = ",
        ),
        (
            what("off", json!({ "accelerator": "x".repeat(4096) })),
            "scope.accelerator = ",
        ),
        (
            what("off", json!({ "accelerator": "" })),
            "scope.accelerator = ",
        ),
        (
            with(what("off", of(APP)), "until", "-009999-01-02T01:59:59Z"),
            "until = ",
        ),
        (
            with(what("off", of(APP)), "until", "9999-12-30T22:00:00Z"),
            "until = ",
        ),
    ] {
        let answer = service.user(ALICE).post("/v1/orders", body).await;
        let told = answer.bad_request();
        assert!(told.starts_with(said), "{told}");
        assert!(told.len() < 400, "{told}");
    }
    assert_eq!(
        service.database.number("select count(*) from orders").await,
        0
    );
}

#[tokio::test]
async fn orders_are_listed_in_pages() {
    let service = TestService::new().await;
    let many = "insert into orders (kind, owner_uid, application, uid, why)
                select 'off', 71001, 'app' || number, 71001, 'a test' from generate_series(1, 250) as number";
    service.database.execute(many).await;
    let page = async |query: &str| {
        let answer = service.user(ALICE).get(&format!("/v1/orders{query}")).await;
        let ids = list(answer);
        ids.iter()
            .map(|one| one["order_id"].as_i64().unwrap())
            .collect::<Vec<i64>>()
    };
    let first = page("").await;
    assert_eq!(first.len(), 100);
    let second = page(&format!("?after={}", first[99])).await;
    assert_eq!((second.len(), &second[0]), (100, &101));
    assert_eq!(page("?after=200&limit=10000").await.len(), 50);
    assert_eq!(page("?after=240&limit=5").await, [241, 242, 243, 244, 245]);
    assert!(page("?after=250").await.is_empty());
}

#[tokio::test]
async fn an_order_whose_time_is_over_is_ended_by_a_sweep_and_not_undone() {
    let service = TestService::new().await;
    let until = service.now() + jiff::SignedDuration::from_hours(1);
    let given = order(&service, ALICE, with(what("off", of(APP)), "until", until)).await;
    service.advance(std::time::Duration::from_hours(2)).await;
    let undo = format!("/v1/audit/{}/undo", given["line"]);
    service
        .user(ALICE)
        .post(&undo, why())
        .await
        .refused(409, "conflict");
    let ended = "select count(*) from orders where ended_at = until";
    assert_eq!(service.database.number(ended).await, 0);
    service.sweep().await;
    assert_eq!(service.database.number(ended).await, 1);
    service
        .user(ALICE)
        .post(&undo, why())
        .await
        .refused(409, "conflict");
}

/// Attack (others): A user or an operator asks for another user's study, runs, job or audit, or
/// steers, undoes or exports them.
#[tokio::test]
async fn an_order_for_a_study_of_others_is_not_found_whatever_is_in_force() {
    let service = TestService::new().await;
    let study = begun(&service, ALICE, APP).await;
    order(&service, ADMIN, what("off", json!({ "study": study }))).await;
    for path in ["/v1/orders", "/v1/orders/end"] {
        let body = what("off", json!({ "study": study }));
        service
            .user(BOB)
            .post(path, body)
            .await
            .refused(404, "not_found");
    }
    assert_eq!(orders(&service, ADMIN).await.len(), 1);
}

#[tokio::test]
async fn old_lines_of_the_audit_go_with_their_orders_where_a_site_says_so() {
    let service = TestService::with("[retention]\naudit_days = 30\n").await;
    let first = order(&service, ALICE, what("off", of("ocean"))).await;
    end(&service, ALICE, what("off", of("ocean"))).await;
    let kept = order(&service, ALICE, what("off", of("climate"))).await;
    service
        .advance(std::time::Duration::from_hours(24 * 31))
        .await;
    order(&service, ALICE, what("off", of("ice"))).await;
    service.sweep().await;
    assert_eq!(
        lines(&service, ALICE, "").await.len(),
        1,
        "the line of today"
    );
    // What is in force stays in force.
    let in_force = orders(&service, ALICE).await;
    let left = each(&in_force, "order_id");
    assert!(
        left.contains(&&kept["order_id"]) && !left.contains(&&first["order_id"]),
        "{left:?}"
    );
    assert_eq!(
        service.database.number("select count(*) from orders").await,
        2
    );
}
