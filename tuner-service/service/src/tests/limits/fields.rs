//! Every field of every body, by the API's description: what it cannot be is refused.

use serde_json::{Value, json};

use super::{ADMIN, ALICE, ESCAPES, Log, ROOT, TestService, is_short_and_printable};
use crate::api::description;

/// A place in a body, and what the description says of it.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// As a JSON pointer.
    pub(super) pointer: String,
    pub(super) schema: Value,
    is_required: bool,
    is_nullable: bool,
}

impl Field {
    /// An object of any names.
    pub(super) fn any(pointer: &str) -> Self {
        Self {
            pointer: pointer.to_owned(),
            schema: json!({"type": "object"}),
            is_required: true,
            is_nullable: false,
        }
    }

    fn name(&self) -> &str {
        self.pointer.rsplit('/').next().unwrap()
    }
}

/// The schemas of the API's description.
pub(super) struct Schemas(Value);

impl Schemas {
    pub(super) fn new() -> Self {
        let description: Value = serde_json::from_str(&description().to_json().unwrap()).unwrap();
        Self(description)
    }

    /// The schema of the body of a POST; `path` as the description has it.
    pub(super) fn of_body(&self, path: &str) -> Value {
        let body =
            &self.0["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert!(body.is_object(), "{path} takes no body");
        self.resolved(body).0
    }

    /// Without references; and whether it may be null.
    fn resolved(&self, schema: &Value) -> (Value, bool) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            return self.resolved(&self.0["components"]["schemas"][name]);
        }
        if let Some([one, null]) = schema["oneOf"].as_array().map(Vec::as_slice)
            && null["type"] == "null"
        {
            return (self.resolved(one).0, true);
        }
        if let Some([one, null]) = schema["type"].as_array().map(Vec::as_slice)
            && null == "null"
        {
            let mut plain = schema.clone();
            plain["type"] = one.clone();
            return (plain, true);
        }
        (schema.clone(), false)
    }

    /// The fields of an object and of what is in it. Of a list's items there is the first.
    pub(super) fn fields(&self, pointer: &str, schema: &Value, into: &mut Vec<Field>) {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, of_it) in schema["properties"].as_object().into_iter().flatten() {
            let (schema, is_nullable) = self.resolved(of_it);
            let pointer = format!("{pointer}/{name}");
            into.push(Field {
                pointer: pointer.clone(),
                schema: schema.clone(),
                is_required: required.contains(&json!(name)),
                is_nullable,
            });
            self.fields(&pointer, &schema, into);
            let (items, _) = self.resolved(&schema["items"]);
            self.fields(&format!("{pointer}/0"), &items, into);
        }
    }
}

/// Values that a field cannot have, with what each is.
fn impossible(field: &Field) -> Vec<(&'static str, Value)> {
    let mut values = Vec::new();
    if !field.is_nullable {
        values.push(("null", Value::Null));
    }
    let schema = &field.schema;
    match schema["type"].as_str() {
        Some("integer") => {
            values.extend([("text", json!("7")), ("a fraction", json!(0.5))]);
            values.push(("2^64", json!(18_446_744_073_709_551_616.0)));
            values.push(("a list", json!([7])));
            if schema["minimum"] == 0 {
                values.push(("-1", json!(-1)));
            }
            match schema["format"].as_str() {
                Some("int32") => values.push(("2^32", json!(1_u64 << 32))),
                Some("int64") if schema["minimum"] != 0 => {
                    values.push(("2^63", json!(1_u64 << 63)))
                }
                _ => {}
            }
        }
        Some("string") => {
            values.extend([("a number", json!(7)), ("an object", json!({}))]);
            if schema["enum"].is_array() || schema["format"] == "date-time" {
                values.extend([
                    ("another word", json!("nonsense")),
                    ("a zero byte", json!("\0")),
                ]);
                values.extend([
                    ("escapes", json!(ESCAPES)),
                    ("10 kB", json!("x".repeat(10_000))),
                ]);
            }
        }
        Some("boolean") => values.extend([("a number", json!(1)), ("text", json!("true"))]),
        Some("array") => values.extend([("an object", json!({})), ("text", json!("x"))]),
        Some("object") => values.extend([("a number", json!(7)), ("text", json!("x"))]),
        _ => values.push(("a number", json!(7))),
    }
    values
}

/// A request with a body in which each field is there.
pub(super) struct Asked {
    /// As the description has it.
    pub(super) described: &'static str,
    pub(super) path: String,
    pub(super) uid: u32,
    pub(super) body: Value,
}

/// Each request that has a body.
pub(super) async fn requests(service: &TestService) -> Vec<Asked> {
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(service).await;
    let study = service.study_id("ocean").await;
    let at = "2026-11-27T12:00:00Z";
    let later = "2126-11-27T12:00:00Z";
    let why = json!({"why": "a test"});
    let mut start = serde_json::to_value(service.job(ALICE, "app=ocean").asks()).unwrap();
    start["job"]["sluid"] = json!("sBR1JB8J1YM400");
    start["request"] = json!({"app": "ocean", "accelerator": "romio", "mode": "tune", "note": null,
                              "job_name": "x", "comment": "y", "rule": null});
    start["limit_seconds"] = json!(60);
    start["node_state"] = json!({"version": "0.3.0", "told_at": at, "plugin": ["default=off"], "waiting": 0,
                                 "oldest_seconds": 0, "refused": 0, "spool_problem": null});
    let mut finish = serde_json::to_value(job.reports(Some(&started), 1.0)).unwrap();
    finish["job"]["sluid"] = json!("sBR1JB8J1YM400");
    finish["request"] = start["request"].clone();
    finish["start_failure"] = Value::Null;
    finish["in_force"] = json!({});
    finish["told"] =
        json!([{"parameter": "x", "name": "x", "asked": "1", "in_force": "1", "as_asked": true}]);
    finish["online"] = json!({"policy": "settling", "period_ms": 1, "levers": ["x"], "began": [1], "entries":
        [{"at_ms": 1, "periods": 1, "bandwidth": 1, "requests": 1, "cached": 1, "dirty": 1, "values": [1],
          "moves": 1, "reason": "first"}]});
    finish["epilog"]["limit_seconds"] = json!(60);
    let order = json!({"kind": "pin", "why": "a test", "until": later, "values": {}, "dry_run": true,
                       "scope": {"study": null, "uid": ALICE, "application": "ocean", "accelerator": "romio",
                                 "cluster": "alpha"}});
    let mut end = order.clone();
    end["values"] = Value::Null;
    end["until"] = Value::Null;
    let outcome = json!({"job_id": 1, "state": "COMPLETED", "restart_count": 0, "exit_code": "0:0",
                         "started_at": at, "ended_at": at, "suspended_seconds": 0, "limit_seconds": 60,
                         "uid": ALICE, "node_list": "n1", "account": "physics"});
    let upload = "0a".repeat(16);
    let of_the_study = |described: &'static str, body: Value| Asked {
        described,
        path: described.replace("{study_id}", &study.to_string()),
        uid: ADMIN,
        body,
    };
    let of = |described: &'static str, uid: u32, body: Value| Asked {
        described,
        path: described
            .replace("{upload}", &upload)
            .replace("{audit_id}", "1"),
        uid,
        body,
    };
    vec![
        of("/v1/runs/start", ROOT, start.clone()),
        of("/v1/runs/finish", ROOT, finish),
        of("/v1/runs/over", ROOT, json!({"runs": [1]})),
        of(
            "/v1/runs/directives",
            ROOT,
            json!({"cluster": "alpha", "job_id": job.job.job_id, "restart_count": 0, "run_id": started.run_id,
                   "directives": {"kept": []}}),
        ),
        of("/v1/preview", ALICE, json!({"request": start["request"]})),
        of(
            "/v1/outcomes",
            ROOT,
            json!({"cluster": "alpha", "outcomes": [outcome]}),
        ),
        of("/v1/orders", ADMIN, order),
        of("/v1/orders/end", ADMIN, end),
        of(
            "/v1/retention",
            ADMIN,
            json!({"dry_run": true, "older_than_days": 365, "why": "a test"}),
        ),
        of("/v1/audit/{audit_id}/undo", ADMIN, why.clone()),
        of(
            "/v1/imports/{upload}",
            ADMIN,
            json!({"place": 1, "text": "x"}),
        ),
        of(
            "/v1/imports/{upload}/end",
            ADMIN,
            json!({"chunks": 1, "cluster": "alpha", "skip_existing": false, "step": "look", "why": "a test"}),
        ),
        of_the_study(
            "/v1/studies/{study_id}/pin",
            json!({"values": {}, "until": later, "why": "a test"}),
        ),
        of_the_study("/v1/studies/{study_id}/unpin", why.clone()),
        of_the_study("/v1/studies/{study_id}/reset", why.clone()),
        of_the_study("/v1/studies/{study_id}/accept", why),
        of_the_study(
            "/v1/studies/{study_id}/objective",
            json!({"objective": "elapsed", "maximise": false, "why": "a test"}),
        ),
        of_the_study(
            "/v1/studies/{study_id}/warm-start",
            json!({"from": study, "dry_run": true, "why": "a test"}),
        ),
    ]
}

pub(super) async fn service() -> TestService {
    TestService::with("[slurm]\nsources = [\"squeue\", \"jobcomp\"]\n").await
}

#[tokio::test]
async fn each_request_with_a_body_is_tried() {
    let service = service().await;
    let schemas = Schemas::new();
    let paths = schemas.0["paths"].as_object().unwrap();
    let with_a_body = paths
        .iter()
        .filter(|(_, path)| path["post"]["requestBody"].is_object());
    let mut described: Vec<&str> = with_a_body.map(|(path, _)| path.as_str()).collect();
    let tried = requests(&service).await;
    let mut tried: Vec<&str> = tried.iter().map(|asked| asked.described).collect();
    described.sort_unstable();
    tried.sort_unstable();
    assert_eq!(tried, described);
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn each_field_of_each_body_is_refused_where_it_cannot_be() {
    let service = service().await;
    let schemas = Schemas::new();
    let mut tried = 0;
    let mut wrong = Vec::new();
    for asked in requests(&service).await {
        let mut fields = Vec::new();
        schemas.fields("", &schemas.of_body(asked.described), &mut fields);
        for field in fields {
            let (parent, name) = field.pointer.rsplit_once('/').unwrap();
            if asked
                .body
                .pointer(parent)
                .is_none_or(|parent| !parent.is_object())
            {
                continue;
            }
            let with = |value: Value| {
                let mut body = asked.body.clone();
                body.pointer_mut(parent).unwrap()[name] = value;
                body
            };
            let impossible = impossible(&field).into_iter();
            let mut bodies: Vec<_> = impossible
                .map(|(what, value)| (what, with(value)))
                .collect();
            if field.is_required {
                let mut body = asked.body.clone();
                let of = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
                of.remove(name);
                bodies.push(("missing", body));
            }
            for (what, body) in bodies {
                let log = Log::listen();
                let answer = service.user(asked.uid).post(&asked.path, body).await;
                let is_named = answer.text().contains(field.name());
                let errors = log.take_errors();
                if answer.status != 422 || !is_named || !errors.is_empty() {
                    wrong.push(format!(
                        "{} {}: {what}: {answer} {errors:?}",
                        asked.path, field.pointer
                    ));
                }
                is_short_and_printable(&answer);
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn no_object_of_a_body_has_a_field_that_is_not_described() {
    let service = service().await;
    let schemas = Schemas::new();
    let mut wrong = Vec::new();
    for asked in requests(&service).await {
        let mut fields = Vec::new();
        schemas.fields("", &schemas.of_body(asked.described), &mut fields);
        let pointers = fields
            .iter()
            .map(|field| field.pointer.rsplit_once('/').unwrap().0);
        let mut pointers: Vec<&str> = pointers.collect();
        pointers.dedup();
        for pointer in pointers {
            let mut body = asked.body.clone();
            let Some(object) = body.pointer_mut(pointer).filter(|value| value.is_object()) else {
                continue;
            };
            object["nonsense"] = json!(1);
            let answer = service.user(asked.uid).post(&asked.path, body).await;
            if answer.status != 422 || !answer.text().contains("nonsense") {
                wrong.push(format!("{} {pointer}: {answer}", asked.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The statuses of answers to a text with a zero byte, with escapes, and of 10,000 letters, for the
/// fields where not all are refused.
const TAKEN: [(&str, &str, [u16; 3]); 19] = [
    // Texts of the user's, of which the application is made; the service names the rule itself.
    ("/v1/preview", "/request/comment", [422, 200, 422]),
    ("/v1/preview", "/request/job_name", [422, 200, 422]),
    ("/v1/preview", "/request/rule", [422, 200, 422]),
    ("/v1/runs/start", "/request/comment", [422, 200, 422]),
    ("/v1/runs/start", "/request/job_name", [422, 200, 422]),
    ("/v1/runs/start", "/request/rule", [422, 200, 422]),
    ("/v1/runs/finish", "/request/comment", [422, 200, 422]),
    ("/v1/runs/finish", "/request/job_name", [422, 200, 422]),
    ("/v1/runs/finish", "/request/rule", [422, 200, 422]),
    // What a node says of itself is remembered only if it is short, and shown as it can be.
    (
        "/v1/runs/start",
        "/node_state/spool_problem",
        [200, 200, 200],
    ),
    ("/v1/runs/start", "/node_state/version", [200, 200, 200]),
    // Texts of a report are cut, and a zero byte is not kept: to refuse one would lose the report.
    ("/v1/runs/finish", "/start_failure", [200, 200, 200]),
    ("/v1/runs/finish", "/told/0/asked", [200, 200, 200]),
    ("/v1/runs/finish", "/told/0/in_force", [200, 200, 200]),
    ("/v1/runs/finish", "/told/0/name", [200, 200, 200]),
    ("/v1/runs/finish", "/told/0/parameter", [200, 200, 200]),
    // A list of hosts is long where a job has many nodes.
    ("/v1/outcomes", "/outcomes/0/node_list", [422, 422, 200]),
    // Whom a line concerns is known once it is found.
    ("/v1/audit/{audit_id}/undo", "/why", [422, 404, 422]),
    // Any text may be a piece of a file, until the file is read; another one is another piece.
    ("/v1/imports/{upload}", "/text", [422, 200, 409]),
];

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn each_text_of_each_body_is_refused_where_it_is_none() {
    let service = service().await;
    let schemas = Schemas::new();
    let mut wrong = Vec::new();
    for asked in requests(&service).await {
        let mut fields = Vec::new();
        schemas.fields("", &schemas.of_body(asked.described), &mut fields);
        for field in fields {
            let schema = &field.schema;
            let is_text = schema["type"] == "string"
                && !schema["enum"].is_array()
                && schema["format"].is_null();
            let (parent, name) = field.pointer.rsplit_once('/').unwrap();
            let is_there = asked.body.pointer(parent).is_some_and(Value::is_object);
            if !is_text || !is_there {
                continue;
            }
            let taken = TAKEN
                .iter()
                .find(|(path, pointer, _)| (*path, *pointer) == (asked.described, &*field.pointer));
            let expected = taken.map_or([422; 3], |(_, _, expected)| *expected);
            let long = "x".repeat(10_000);
            for (text, expected) in ["a\0b", ESCAPES, &long].into_iter().zip(expected) {
                let mut body = asked.body.clone();
                body.pointer_mut(parent).unwrap()[name] = json!(text);
                let log = Log::listen();
                let answer = service.user(asked.uid).post(&asked.path, body).await;
                let errors = log.take_errors();
                if answer.status != expected || !errors.is_empty() {
                    wrong.push(format!(
                        "{} {}: {text:.9?}: {answer} {errors:?}",
                        asked.path, field.pointer
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
