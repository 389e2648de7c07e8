//! Tests with the least and the greatest values of every field of every body, and of the later
//! sweeps.

use serde_json::{Map, Value, json};

use super::fields::{Asked, Field, Schemas, requests, service};
use super::{ADMIN, ALICE, BOB, Log, TestService};

/// The extreme values of a field, by its type alone.
fn extremes(field: &Field, value: &Value) -> Vec<Value> {
    let schema = &field.schema;
    let many = |of: &dyn Fn(usize) -> String| {
        let of = (0..5_000).map(|number| (of(number), json!(1)));
        Value::Object(of.collect::<Map<_, _>>())
    };
    match schema["type"].as_str() {
        Some("integer") => [
            0,
            1,
            i64::from(u32::MAX),
            i64::from(i32::MAX),
            i64::MAX,
            i64::MIN,
            -1,
        ]
        .map(Value::from)
        .into_iter()
        .chain([json!(u64::MAX)])
        .collect(),
        Some("number") => [0.0, -1.0, 5e-324, 1e308, f64::MAX].map(Value::from).into(),
        Some("string") if schema["format"] == "date-time" => [
            "-009999-01-02T01:59:59Z",
            "-000001-01-01T00:00:00Z",
            "0000-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01T00:00:00Z",
            "2999-12-31T23:59:59.999999999Z",
            "9999-12-30T22:00:00.999999999Z",
        ]
        .map(Value::from)
        .into(),
        Some("string") => ["", "x", "\u{10ffff}", "-9999", "infinity", "NaN"]
            .map(str::to_owned)
            .into_iter()
            .chain([300, 5_000, 100_000].map(|length| "\u{e9}".repeat(length)))
            .map(Value::from)
            .collect(),
        Some("array") => {
            let item = value.get(0).cloned().unwrap_or(json!("x"));
            [0, 2, 1_025, 30_000]
                .map(|length| Value::from(vec![item.clone(); length]))
                .into()
        }
        // An object with any names.
        Some("object") if !schema["properties"].is_object() => {
            let deep = (0..100).fold(json!(1), |inner, _| json!({ "a": inner }));
            vec![
                many(&|number| format!("name{number}")),
                many(&|number| format!("{number}{}", "y".repeat(2_000))),
                json!({"nonsense": 1}),
                json!({"nonsense": i64::MAX}),
                json!({"nonsense": 1e308}),
                json!({"nonsense": "z".repeat(100_000)}),
                json!({ "nonsense": deep }),
            ]
        }
        _ => Vec::new(),
    }
}

/// The status of the answer to a request with a field at an extreme, each as the first request of
/// its own job.
async fn answered(service: &TestService, asked: &Asked, pointer: &str, value: Value) -> u16 {
    let mut body = asked.body.clone();
    let job = service.job(ALICE, "app=ocean");
    match asked.described {
        "/v1/runs/start" => body["job"]["job_id"] = json!(job.job.job_id),
        "/v1/runs/finish" => {
            let started = job.start(service).await;
            job.ends(service, "COMPLETED", 1.0);
            body["job"]["job_id"] = json!(job.job.job_id);
            body["run_id"] = json!(started.run_id);
            body["applied"] =
                json!({"kind": "parametrization", "parametrization": started.parametrization});
        }
        "/v1/outcomes" => {
            job.start(service).await;
            body["outcomes"][0]["job_id"] = json!(job.job.job_id);
        }
        _ => {}
    }
    *body.pointer_mut(pointer).unwrap() = value;
    service
        .user(asked.uid)
        .post(&asked.path, body)
        .await
        .status
        .as_u16()
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn no_extreme_of_any_field_stops_a_later_sweep() {
    let service = service().await;
    let schemas = Schemas::new();
    let log = Log::listen();
    let (mut taken, mut refused) = (0, 0);
    let mut wrong = Vec::new();
    for asked in requests(&service).await {
        let mut fields = Vec::new();
        schemas.fields("", &schemas.of_body(asked.described), &mut fields);
        if asked.described == "/v1/runs/finish" {
            // Of what is one of several things the description has no list.
            fields.push(Field::any("/applied/parametrization"));
        }
        for field in fields {
            let Some(value) = asked.body.pointer(&field.pointer).cloned() else {
                continue;
            };
            for extreme in extremes(&field, &value) {
                let shown: String = extreme.to_string().chars().take(60).collect();
                let status = answered(&service, &asked, &field.pointer, extreme).await;
                match status {
                    200 => taken += 1,
                    // What is not as it was, or is no longer, is a refusal as well.
                    404 | 409 | 413 | 422 => refused += 1,
                    _ => wrong.push(format!(
                        "{} {}: {shown}: {status}",
                        asked.path, field.pointer
                    )),
                }
            }
        }
        service.sweep().await;
        let apart = service.user(ADMIN).get("/v1/doctor").await.ok();
        let checks = apart["checks"].as_array().unwrap();
        let apart = checks.iter().find(|check| check["name"] == "set apart");
        let apart = apart.unwrap();
        let bystander = service.job(BOB, "app=climate").runs(&service, 2.0).await;
        if apart["state"] != "ok" || bystander["state"] != "counted" {
            wrong.push(format!("after {}: {apart}: {bystander}", asked.path));
        }
        let errors = log.take_errors();
        if !errors.is_empty() {
            wrong.push(format!("after {}: {errors:?}", asked.path));
        }
    }
    for path in [
        "/v1/runs",
        "/v1/studies",
        "/v1/orders",
        "/v1/audit",
        "/v1/doctor",
    ] {
        service.user(ADMIN).get(path).await.ok();
    }
    assert!(
        service
            .metrics()
            .await
            .contains("io_autotune_set_apart{kind=\"runs\"} 0")
    );
    let nonsense = "select count(*) from judgements where parametrization ? 'nonsense'";
    assert_eq!(service.database.number(nonsense).await, 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 100 && refused > 300, "{taken} {refused}");
}
