//! Tests of the scope of a credential, and of the signature of an answer.

use io_autotune_protocol::signature::{ANSWER_HEADER, Nonce, sign_request, verify_answer};
use serde_json::json;

use super::super::credentials::PlayedCredentials;
use super::*;

/// Sends as this user a request that is refused before the database is asked.
async fn refusal(service: &TestService, request: &Signed) -> String {
    let sending = service.user(ALICE).send_as_it_is(request.clone());
    let answer = at_once(sending).await;
    assert!(!answer.is_signed, "{answer}");
    answer.refused(401, "unauthorized")
}

/// Attack (service): A credential of MUNGE is sent for another request or reader, twice, cut, or
/// made up.
#[tokio::test]
async fn a_credential_is_good_once_and_for_what_it_was_made() {
    let service = TestService::new().await;
    let user = service.user(ALICE);
    let signed = || {
        user.signed(
            "POST",
            "/v1/preview",
            br#"{"request": {"app": "a"}}"#.to_vec(),
        )
    };
    let differs = "the credential is not for this request: its digest differs";
    for spoilt in [
        Signed {
            path: "/v1/runs".into(),
            ..signed()
        },
        Signed {
            path: "/v1/preview?x=1".into(),
            ..signed()
        },
        Signed {
            path: "/v1/preview/".into(),
            ..signed()
        },
        Signed {
            method: "GET".into(),
            ..signed()
        },
        Signed {
            method: "DELETE".into(),
            ..signed()
        },
        Signed {
            body: br#"{"request": {"app": "b"}}"#.to_vec(),
            ..signed()
        },
        Signed {
            body: Vec::new(),
            ..signed()
        },
        Signed {
            nonce: "0123456789abcdef0123456789abcdef".into(),
            ..signed()
        },
    ] {
        assert_eq!(refusal(&service, &spoilt).await, differs, "{spoilt:?}");
    }
    let good = signed();
    user.send_as_it_is(good.clone()).await.ok();
    let again = refusal(&service, &good).await;
    assert!(again.ends_with("Replayed credential"), "{again}");
    let genuine = signed().credential.unwrap();
    let cut = genuine[..genuine.len() - 9].to_owned();
    for forged in [
        String::new(),
        "MUNGE:AwQFAAC:".into(),
        "x".repeat(5000),
        cut,
    ] {
        let spoilt = Signed {
            credential: Some(forged),
            ..signed()
        };
        refusal(&service, &spoilt).await;
    }
}

#[tokio::test]
async fn a_spoilt_request_does_nothing() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 10.0).await;
    let path = format!("/v1/studies/{}/reset", run["study_id"]);
    let mut request = service
        .user(ALICE)
        .signed("POST", &path, br#"{"why": "a"}"#.to_vec());
    request.body = br#"{"why": "b"}"#.to_vec();
    let read = async || service.database.number("select count(*) from nonces").await;
    let before = read().await;
    refusal(&service, &request).await;
    assert_eq!(service.study("ocean").await["epoch"], 1);
    assert_eq!(read().await, before, "nobody need remember it");
    assert_eq!(service.user(ALICE).get("/v1/audit").await.ok(), json!([]));
}

#[tokio::test]
async fn an_unsigned_request_is_told_what_signs() {
    let service = TestService::new().await;
    let mut request = service.user(ALICE).signed("GET", "/v1/studies", Vec::new());
    request.credential = None;
    assert_eq!(
        refusal(&service, &request).await,
        "the request is not signed: use the io-autotune client"
    );
}

#[tokio::test]
async fn a_nonce_has_32_hexadecimal_digits() {
    let service = TestService::new().await;
    for nonce in [
        "",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg",
    ] {
        let signed = service.user(ALICE).signed("GET", "/v1/studies", Vec::new());
        let spoilt = Signed {
            nonce: nonce.into(),
            ..signed
        };
        assert_eq!(
            refusal(&service, &spoilt).await,
            format!("the nonce {nonce:?} is not 32 hexadecimal digits")
        );
    }
}

/// Attack (service): A credential of MUNGE is sent for another request or reader, twice, cut, or
/// made up.
#[tokio::test]
async fn a_credential_for_another_reader_is_refused() {
    let service = TestService::new().await;
    for reader in [ROOT, ALICE, BOB, SERVICE + 1] {
        let mut request = service.user(ALICE).signed("GET", "/v1/studies", Vec::new());
        let nonce = Nonce::parse(&request.nonce).unwrap();
        let alices = PlayedCredentials::of(ALICE);
        let made = sign_request(&alices, reader, "GET", "/v1/studies", &nonce, b"");
        request.credential = Some(made.unwrap());
        let told = refusal(&service, &request).await;
        assert!(told.ends_with("Unauthorized credential decode"), "{told}");
    }
}

/// Attack (service): What is signed for one service is sent to another of the same key.
/// Outcome: By its `audience` the other refuses it.
#[tokio::test]
async fn what_is_signed_for_one_service_is_refused_by_another() {
    let service = TestService::new().await;
    let tests = service.beside("audience = \"tests\"\n").await;
    let other = service.beside("audience = \"other\"\n").await;
    let path = "/v1/studies";
    for asker in [
        tests.user(ALICE),
        tests.user(ALICE).to("other"),
        tests.user(ALICE).to("test"),
    ] {
        let told = at_once(asker.get(path)).await.refused(401, "unauthorized");
        assert!(
            told.contains("it is for another service: `audience` differs"),
            "{told}"
        );
    }
    let told = at_once(other.user(ALICE).to("tests").get(path)).await;
    assert!(
        told.refused(401, "unauthorized")
            .contains("another service")
    );
    // One that has no audience sees another payload.
    let told = at_once(service.user(ALICE).to("tests").get(path)).await;
    let told = told.refused(401, "unauthorized");
    assert_eq!(
        told,
        "the credential is not for this request: its digest differs"
    );
    assert_eq!(service.user(ALICE).get(path).await.ok(), json!([]));
    assert_eq!(
        tests.user(ALICE).to("tests").get(path).await.ok(),
        json!([])
    );
    assert_eq!(
        other.user(ALICE).to("other").get(path).await.ok(),
        json!([])
    );
}

#[tokio::test]
async fn an_answer_is_signed_for_its_caller_over_status_nonce_and_body() {
    let service = TestService::new().await;
    let user = service.user(ALICE);
    let request = user.signed("GET", "/v1/accelerators", Vec::new());
    let nonce = Nonce::parse(&request.nonce).unwrap();
    let answer = user.send_as_it_is(request).await;
    let signature = answer.headers[ANSWER_HEADER].to_str().unwrap();
    let verify = |reader, signer, status, nonce: &Nonce, body: &[u8]| {
        let reader = PlayedCredentials::of(reader);
        verify_answer(&reader, signer, signature, status, nonce, body).is_ok()
    };
    let other = Nonce::parse("0123456789abcdef0123456789abcdef").unwrap();
    let body = &answer.body;
    assert!(verify(ALICE, SERVICE, 200, &nonce, body));
    assert!(!verify(BOB, SERVICE, 200, &nonce, body), "another reader");
    assert!(!verify(ALICE, BOB, 200, &nonce, body), "another signer");
    assert!(!verify(ALICE, SERVICE, 403, &nonce, body));
    assert!(!verify(ALICE, SERVICE, 200, &other, body));
    assert!(!verify(ALICE, SERVICE, 200, &nonce, b"[]"));
}

#[tokio::test]
async fn refusals_are_signed_but_those_of_whom_nobody_vouches_for() {
    let service = TestService::with("[users]\nrequests_per_second = 0.01\n").await;
    let root = service.user(ROOT);
    for (answer, status) in [
        (root.get("/v1/doctor").await, 403),
        (root.get("/v1/studies/7").await, 404),
        (root.get("/v1/nothing").await, 404),
        (root.get("/v1/studies?nonsense=1").await, 422),
        (
            root.send("POST", "/v1/runs/start", vec![0; 17 << 20]).await,
            413,
        ),
    ] {
        assert_eq!(answer.status.as_u16(), status, "{answer}");
        assert_eq!(answer.is_signed, status != 413, "{answer}");
    }
    let long = service
        .user(BOB)
        .send("POST", "/v1/preview", vec![b' '; 65_537])
        .await;
    long.refused(413, "too_large");
    assert!(long.is_signed);
    let user = service.user(ALICE);
    for _ in 0..2 {
        assert!(user.get("/v1/studies").await.is_signed);
    }
    // A signature would cost more than the refusal saves.
    let answer = at_once(user.get("/v1/studies")).await;
    answer.refused(429, "too_many_requests");
    assert!(!answer.is_signed);
}

#[tokio::test]
async fn without_its_back_end_the_service_says_whom_it_cannot_reach() {
    let service = TestService::new().await;
    // At both doors: those that nodes wait at answers at once.
    let job = service.job(ALICE, "app=ocean");
    let body = serde_json::to_vec(&job.asks()).unwrap();
    let asking = service.user(ALICE).signed("GET", "/v1/studies", Vec::new());
    let starting = service.node().signed("POST", "/v1/runs/start", body);
    service.credentials.fail(true);
    let asked = at_once(service.user(ALICE).send_as_it_is(asking.clone())).await;
    let started = service.node().send_as_it_is(starting.clone()).await;
    for answer in [asked, started] {
        let told = answer.refused(503, "munge");
        assert_eq!(told, "the service cannot reach its munged");
        assert!(!answer.is_signed);
    }
    // They were not read: sent again, they are answered.
    service.credentials.fail(false);
    service.user(ALICE).send_as_it_is(asking).await.ok();
    service.node().send_as_it_is(starting).await.ok();
}
