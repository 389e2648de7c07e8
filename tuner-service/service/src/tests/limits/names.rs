//! Numbers, names and queries that cannot be.

use serde_json::{Value, json};

use super::{
    ADMIN, ALICE, BOB, COLLECTOR, ESCAPES, Log, ROOT, TestService, is_short_and_printable,
};

/// The bodies of a start and a finish of one job, with one field of the job another.
async fn of_a_job(service: &TestService, field: &str, value: &Value) -> [(&'static str, Value); 2] {
    let job = service.job(ALICE, "app=ocean,mode=observe");
    let start = serde_json::to_value(job.asks()).unwrap();
    let finish = serde_json::to_value(job.reports(None, 1.0)).unwrap();
    [("/v1/runs/start", start), ("/v1/runs/finish", finish)].map(|(path, mut body)| {
        body["job"][field] = value.clone();
        (path, body)
    })
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn numbers_and_names_that_cannot_be_are_refused_by_name() {
    let service = TestService::new().await;
    let long = "x".repeat(4096);
    for (field, value, named) in [
        ("job_id", json!(-1), "job.job_id"),
        ("job_id", json!(1.8446744073709552e19), "job.job_id"),
        ("job_id", json!(u64::MAX), "job.job_id"),
        ("job_id", json!(0.5), "job.job_id"),
        ("job_id", json!("1"), "job.job_id"),
        ("job_id", json!(0), "job.job_id = 0: a positive number"),
        (
            "restart_count",
            json!(u32::MAX),
            "job.restart_count = 4294967295: a number below 2^31",
        ),
        ("restart_count", json!(1_u32 << 31), "below 2^31"),
        ("nodes", json!(0), "job.nodes = 0: a positive number"),
        (
            "nodes",
            json!(u32::MAX),
            "job.nodes = 4294967295: at most 1048576 nodes",
        ),
        ("nodes", json!(1_u64 << 32), "job.nodes"),
        ("cluster", json!("a\0b"), "job.cluster has a zero byte"),
        ("cluster", json!(long), "the service has no cluster \"xxx"),
        (
            "cluster",
            json!("../elsewhere"),
            "the service has no cluster \"../elsewhere\"",
        ),
        ("cluster", json!(""), "the service has no cluster \"\""),
        ("node", json!(ESCAPES), "job.node"),
        ("node", json!(""), "job.node"),
        ("node", json!("x".repeat(257)), "job.node"),
        ("partition", json!(long), "job.partition"),
        ("partition", json!("a b"), "job.partition"),
        ("cpus_per_node", json!("a\0b"), "job.cpus_per_node"),
        ("user", json!("a\0b"), "job.user"),
        ("user", json!(ESCAPES), "job.user"),
        ("user", json!("x".repeat(257)), "job.user"),
        ("uid", json!(-1), "job.uid"),
        ("uid", json!(1_u64 << 32), "job.uid"),
        ("gid", json!(-1), "job.gid"),
        ("gid", json!("0"), "job.gid"),
        ("sluid", json!("x"), "job.sluid"),
    ] {
        for (path, body) in of_a_job(&service, field, &value).await {
            let answer = service.node().post(path, body).await;
            assert_eq!(answer.status, 422, "{field}: {answer}");
            let text = answer.text();
            let shown = text.replace("\\\\", "\\").replace("\\\"", "\"");
            assert!(shown.contains(named), "{field}: {answer}");
            is_short_and_printable(&answer);
        }
    }
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
}

#[tokio::test]
async fn a_nodes_name_may_be_a_path_for_it_is_only_compared() {
    let service = TestService::new().await;
    for (path, body) in of_a_job(&service, "node", &json!("../../x")).await {
        service.node().post(path, body).await.ok();
    }
    let nodes = "select count(*) from runs where node = '../../x'";
    assert_eq!(service.database.number(nodes).await, 1);
}

#[tokio::test]
async fn a_job_may_be_of_any_uid_and_have_no_login_name() {
    let service = TestService::new().await;
    for (field, value) in [
        ("uid", json!(u32::MAX)),
        ("gid", json!(u32::MAX)),
        ("user", Value::Null),
        ("user", json!("J\u{fc}rgen M\u{fc}ller")),
        ("job_id", json!(u32::MAX)),
        ("restart_count", json!(i32::MAX)),
    ] {
        let [(start, body), _] = of_a_job(&service, field, &value).await;
        let answer = service.node().post(start, body).await;
        assert_eq!(answer.status, 200, "{field}: {answer}");
    }
}

/// Attack (values): Times, limits and sums are beyond all bounds.
/// Outcome: What can be counted is taken.
#[tokio::test]
async fn limits_that_are_no_seconds_are_refused_and_large_ones_are_limits() {
    let service = TestService::new().await;
    let start = |limit: &str| {
        let job = service.job(ALICE, "app=ocean");
        let body = serde_json::to_string(&job.asks()).unwrap();
        format!("{}, \"limit_seconds\": {limit}}}", &body[..body.len() - 1])
    };
    for (limit, status) in [
        // Slurm's largest: 32 bits of minutes.
        ("257698037700", 200),
        ("257698037701", 422),
        ("18446744073709551615", 422),
        ("0", 200),
        ("null", 200),
        ("18446744073709551616", 422),
        ("1e999", 422),
        ("-1", 422),
        ("0.5", 422),
        ("NaN", 422),
        ("\"60\"", 422),
    ] {
        let body = start(limit).into_bytes();
        let answer = service.node().send("POST", "/v1/runs/start", body).await;
        assert_eq!(answer.status.as_u16(), status, "{limit}: {answer}");
    }
    // What the study remembers of it does not hinder those who come later.
    service.job(ALICE, "app=ocean").start(&service).await;
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn measures_beyond_all_numbers_are_refused() {
    let service = TestService::new().await;
    let report = |measures: &str| {
        let report = service.job(ALICE, "app=ocean").reports(None, 1.0);
        let body = serde_json::to_string(&report).unwrap();
        assert!(body.ends_with("\"measures\":{}}"), "{body}");
        body.replace("\"measures\":{}", &format!("\"measures\":{{{measures}}}"))
    };
    let many: Vec<String> = (0..65)
        .map(|number| format!("\"bytes{number}\": 1.0"))
        .collect();
    let positive = "it must be positive, and at most 2^63";
    for (measures, said) in [
        ("\"bytes\": -1", positive),
        ("\"bytes\": 0", positive),
        ("\"bytes\": 1e300", positive),
        ("\"bytes\": 1e999", "number out of range"),
        ("\"bytes\": NaN", "expected value"),
        ("\"bytes\": \"1\"", "invalid type: string"),
        ("\"bytes\": null", "invalid type: null"),
        ("\"\": 1.0", "the name of a measure"),
        ("\"a\\u001bb\": 1.0", "the name of a measure"),
        (
            &many.join(", "),
            "measures has 65 entries: at most 64 are taken",
        ),
    ] {
        let answer = service
            .node()
            .send("POST", "/v1/runs/finish", report(measures).into())
            .await;
        let message = answer.bad_request();
        assert!(message.contains(said), "{measures}: {answer}");
        is_short_and_printable(&answer);
    }
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
    let most = report(&many[..64].join(", "));
    service
        .node()
        .send("POST", "/v1/runs/finish", most.into())
        .await
        .ok();
}

/// Attack (values): Times, limits and sums are beyond all bounds.
/// Outcome: What can be counted is taken.
#[tokio::test]
async fn durations_beyond_all_bounds_are_taken_as_long_as_they_can_be_counted() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean,mode=observe");
    let started = job.start(&service).await;
    let report = job.reports(Some(&started), 1.0);
    let with = |duration: &str| {
        let body = serde_json::to_string(&report).unwrap();
        body.replace("1000000000", duration).into_bytes()
    };
    for wrong in ["18446744073709551616", "-1", "0.5", "1e999"] {
        let answer = service
            .node()
            .send("POST", "/v1/runs/finish", with(wrong))
            .await;
        answer.bad_request();
    }
    let longest = with("18446744073709551615");
    service
        .node()
        .send("POST", "/v1/runs/finish", longest)
        .await
        .ok();
    job.ends(&service, "COMPLETED", 1.0);
    service.poll().await;
    let run = service.run_of(job.job.job_id).await["run"].clone();
    assert_ne!(run["state"], "in_flight", "{run}");
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn so_many_runs_are_asked_about_at_once() {
    let service = TestService::new().await;
    let over = async |runs: Vec<i64>| {
        let body = json!({"runs": runs});
        service.node().post("/v1/runs/over", body).await
    };
    assert_eq!(
        over(vec![1; 10_001]).await.bad_request(),
        "runs has 10001 entries: at most 10000 are taken"
    );
    assert_eq!(over(vec![1; 10_000]).await.ok(), json!({"over": []}));
    assert_eq!(
        over(vec![1, -1, i64::MAX, i64::MIN]).await.ok(),
        json!({"over": []})
    );
}

/// Attack (values): Names and queries have SQL, zero bytes, escapes, or numbers that overflow.
#[tokio::test]
async fn a_query_is_data() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    let log = Log::listen();
    let long = format!("app={}", "x".repeat(8000));
    for (query, status) in [
        ("app=%27%20or%201%3D1%20--", 200),
        ("app=%1b%5b2J", 200),
        (&*long, 200),
        ("uid=71001", 200),
        ("account=physics", 200),
        ("accelerator=romio%27%3B%20drop%20table%20runs", 200),
        ("limit=0", 200),
        ("limit=4294967295", 200),
        ("study=-1", 200),
        ("app=%00", 422),
        ("app=a%00b", 422),
        ("account=%00", 422),
        ("accelerator=%00", 422),
        ("cluster=%00", 422),
        ("cluster=beta", 422),
        ("study=99999999999999999999", 422),
        ("study=1.0", 422),
        ("limit=-1", 422),
        ("limit=1e9", 422),
        ("limit=4294967296", 422),
        ("uid=-1", 422),
        ("app=a&app=b", 422),
        ("nonsense=1", 422),
    ] {
        for path in ["/v1/runs", "/v1/studies"] {
            let answer = service.user(BOB).get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status.as_u16(), status, "{query:.80}: {answer}");
            match status {
                200 => assert_eq!(answer.ok(), json!([]), "{query}: bob sees something"),
                _ => is_short_and_printable(&answer),
            }
        }
    }
    for query in [
        "since=yesterday",
        "until=-9999999999",
        "state=judged",
        "before=x",
    ] {
        service
            .user(BOB)
            .get(&format!("/v1/runs?{query}"))
            .await
            .bad_request();
    }
    assert_eq!(log.take_errors(), Vec::<Value>::new());
    assert_eq!(
        service
            .user(BOB)
            .get("/v1/runs?app=%00")
            .await
            .bad_request(),
        "the path and the query of a request have no zero byte (%00)"
    );
}

/// Bytes that are no text become `U+FFFD`, which no application has.
#[tokio::test]
async fn a_query_that_is_no_text_finds_nothing() {
    let service = TestService::new().await;
    service.job(ALICE, "app=ocean").runs(&service, 1.0).await;
    for path in ["/v1/runs?app=%ff", "/v1/studies?app=%ff"] {
        assert_eq!(
            service.user(ALICE).get(path).await.ok(),
            json!([]),
            "{path}"
        );
    }
}

/// Attack (others): A reader of the report asks for another file, by a path out of its directory.
/// Outcome: There are five files and no other.
#[tokio::test]
async fn a_file_of_the_report_is_one_of_five_names() {
    let service = TestService::new().await;
    let night = service.files.path("night");
    std::fs::create_dir(&night).unwrap();
    std::fs::write(night.join("secret"), "of the host's").unwrap();
    let directory = night.parent().unwrap().display().to_string();
    service
        .reload(&format!("[report]\ndirectory = {directory:?}\n"))
        .await;
    std::os::unix::fs::symlink("night", service.files.path("latest")).unwrap();
    for (file, status) in [
        ("..%2f..%2fetc%2fpasswd", 422),
        ("%00", 422),
        ("latest", 422),
        ("secret", 422),
        ("index.html%00", 422),
        ("INDEX.HTML", 422),
        ("%ff", 422),
        ("index.html/x", 404),
        ("index.html", 404),
    ] {
        let path = format!("/v1/report/{file}");
        let answer = service.user(ADMIN).get(&path).await;
        assert_eq!(answer.status.as_u16(), status, "{file}: {answer}");
        is_short_and_printable(&answer);
        // Root of a node reads no report, whatever it is called.
        let of_a_node = service.user(ROOT).get(&path).await;
        assert!(
            of_a_node.status == 403 || of_a_node.status == 404,
            "{of_a_node}"
        );
    }
}

/// Attack (values): A job is of a cluster that the service does not have.
/// Outcome: The refusal names the clusters that there are.
#[tokio::test]
async fn a_job_of_a_cluster_that_the_service_does_not_have_is_refused_by_name() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    let mut job = service.job(ALICE, "app=ocean");
    job.job.cluster = "beta".into();
    let outcome = json!({"cluster": "beta", "outcomes": [{"job_id": 1, "state": "COMPLETED"}]});
    let directives = json!({"cluster": "beta", "job_id": 1, "restart_count": 0, "run_id": 1, "directives": {"kept": []}});
    for answer in [
        job.try_start(&service).await,
        service
            .node()
            .post("/v1/runs/finish", job.reports(None, 1.0))
            .await,
        service.user(COLLECTOR).post("/v1/outcomes", &outcome).await,
        service
            .user(ROOT)
            .post("/v1/runs/directives", &directives)
            .await,
        service.user(ALICE).get("/v1/runs?cluster=beta").await,
    ] {
        assert_eq!(
            answer.refused(422, "unknown_cluster"),
            "the service has no cluster \"beta\": it has alpha ([slurm] of service.toml)"
        );
    }
    for table in ["runs", "studies", "outcomes", "applications"] {
        let count = format!("select count(*) from {table}");
        assert_eq!(service.database.number(&count).await, 0, "{table}");
    }
}

#[tokio::test]
async fn a_service_of_several_clusters_names_all_that_it_has() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let mut job = service.job(ALICE, "app=ocean");
    job.job.cluster = "Alpha".into();
    assert_eq!(
        job.try_start(&service)
            .await
            .refused(422, "unknown_cluster"),
        "the service has no cluster \"Alpha\": it has alpha, beta ([slurm] of service.toml)"
    );
}

#[tokio::test]
async fn a_page_has_a_hundred_runs_and_the_next_is_before_its_first() {
    let service = TestService::new().await;
    for _ in 0..103 {
        service
            .job(ALICE, "app=ocean,mode=observe")
            .start(&service)
            .await;
    }
    let page = async |query: &str| -> Vec<i64> {
        let runs = service
            .user(ALICE)
            .get(&format!("/v1/runs?{query}"))
            .await
            .ok();
        let runs = runs.as_array().unwrap().clone();
        runs.iter()
            .map(|run| run["run_id"].as_i64().unwrap())
            .collect()
    };
    let newest = page("limit=10000").await;
    assert_eq!(newest.len(), 100);
    assert!(newest.is_sorted(), "oldest first");
    let older = page(&format!("limit=10000&before={}", newest[0])).await;
    assert_eq!(older.len(), 3);
    assert!(older.iter().all(|run| *run < newest[0]));
    assert_eq!(page("").await, newest);
    assert_eq!(page("limit=2").await, newest[98..]);
}

#[tokio::test]
async fn so_many_outcomes_are_delivered_at_once() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    let of = |count: u32| {
        let outcomes = (1..=count).map(|job_id| json!({"job_id": job_id, "state": "COMPLETED"}));
        json!({"cluster": "alpha", "outcomes": Vec::from_iter(outcomes)})
    };
    let collector = service.user(COLLECTOR);
    assert_eq!(
        collector.post("/v1/outcomes", of(1001)).await.bad_request(),
        "outcomes has 1001 entries: at most 1000 are taken"
    );
    assert_eq!(
        service
            .database
            .number("select count(*) from outcomes")
            .await,
        0
    );
    collector.post("/v1/outcomes", of(1000)).await.ok();
}

/// Attack (values): Each field of each body has another type, an extreme value, is missing, or has
/// zero bytes, escapes and paths.
/// Outcome: It is refused, or read by every later sweep.
#[tokio::test]
async fn a_report_that_no_node_makes_is_refused_by_name() {
    let service = TestService::new().await;
    let report = serde_json::to_value(service.job(ALICE, "app=ocean").reports(None, 1.0)).unwrap();
    let step = report["steps"][0].clone();
    let mut of_no_node = step.clone();
    of_no_node["nodes"] = json!(0);
    let online = |levers: usize, began: usize, entries: usize| {
        let entry = json!({"at_ms": 1, "periods": 1, "bandwidth": 1, "requests": 1, "cached": 1,
                           "dirty": 1, "values": vec![1; levers], "moves": 1});
        json!({"policy": "settling", "period_ms": 1, "levers": vec!["depth"; levers],
               "began": vec![1; began], "entries": vec![entry; entries]})
    };
    let code = "an exit code and a signal are expected, such as 0:0";
    for (field, value, said) in [
        ("steps", json!([step, step]), "is told twice"),
        ("steps", json!([of_no_node]), "steps[0].nodes = 0"),
        (
            "epilog",
            json!({"exit_code": "0", "derived_exit_code": "0:0"}),
            code,
        ),
        (
            "epilog",
            json!({"exit_code": "0:0", "derived_exit_code": "12345678901:0"}),
            code,
        ),
        (
            "epilog",
            json!({"exit_code": "0:0", "derived_exit_code": ESCAPES}),
            code,
        ),
        (
            "online",
            online(65, 65, 1),
            "online.levers has 65 entries: at most 8",
        ),
        (
            "online",
            online(9, 9, 1),
            "online.levers has 9 entries: at most 8",
        ),
        (
            "online",
            online(2, 1, 1),
            "online.began has 1 values: one of each of the 2",
        ),
        (
            "online",
            online(1, 1, 121),
            "online.entries has 121 entries: at most 120",
        ),
    ] {
        let mut body = report.clone();
        body[field] = value;
        let answer = service.node().post("/v1/runs/finish", body).await;
        assert!(answer.bad_request().contains(said), "{field}: {answer}");
        is_short_and_printable(&answer);
    }
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
    let mut body = report.clone();
    body["online"] = online(8, 8, 120);
    service.node().post("/v1/runs/finish", body).await.ok();
}
