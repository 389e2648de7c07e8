//! Studies taken in.

use super::*;

/// A study's text: of one service, with another that has nothing.
async fn moving() -> (TestService, TestService, String) {
    let (here, there) = (TestService::new().await, TestService::new().await);
    seven_runs(&here).await;
    let text = here.exported(ALICE, "ocean").await;
    (here, there, text)
}

/// An answer without what numbers rows of one database, and without these members.
fn without(keys: &[&str], value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let numbers = ["run_id", "study_id", "study"];
            let kept = members.iter().filter(|(key, part)| {
                let is_number = numbers.contains(&key.as_str()) && part.is_i64();
                !(is_number || keys.contains(&key.as_str()))
            });
            Value::Object(
                kept.map(|(key, part)| (key.clone(), without(keys, part)))
                    .collect(),
            )
        }
        Value::Array(parts) => parts.iter().map(|part| without(keys, part)).collect(),
        other => other.clone(),
    }
}

/// The two answers, alike but for numbers.
async fn is_alike(
    here: &TestService,
    there: &TestService,
    paths: [&str; 2],
    stays_behind: &[&str],
) {
    let [here_path, there_path] = paths;
    let one = here.user(ALICE).get(here_path).await.ok();
    let other = there.user(ALICE).get(there_path).await.ok();
    assert_eq!(
        without(stays_behind, &other),
        without(stays_behind, &one),
        "{here_path}"
    );
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_imported() {
    let (_here, there, text) = moving().await;
    let would = there.takes(&text, "look", json!({})).await.ok();
    let study = &would["studies"][0];
    assert_eq!(would["studies"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&study["application"], &study["study_id"]),
        (&json!("ocean"), &Value::Null),
        "{study}"
    );
    assert_eq!(
        (&study["runs"], &study["epochs"], &study["skipped"]),
        (&json!(7), &json!(1), &json!(false))
    );
    assert!(there.is_empty().await);
    // The pieces stay for the import itself.
    let done = there.end(ADMIN, UPLOAD, 1, "import", json!({})).await.ok();
    let study = &done["studies"][0];
    assert_eq!(
        (&study["user"], &study["uid"]),
        (&json!(format!("user{ALICE}")), &json!(ALICE)),
        "{study}"
    );
    assert_eq!(
        (&study["runs"], &study["skipped"]),
        (&json!(7), &json!(false))
    );
    assert_eq!(study["study_id"], there.study_id("ocean").await);
    assert_eq!(there.pieces().await, 0);
}

#[tokio::test]
async fn a_study_goes_on_elsewhere_with_all_that_it_knows() {
    let (here, there) = (TestService::new().await, TestService::new().await);
    let jobs = seven_runs(&here).await;
    let text = here.exported(ALICE, "ocean").await;
    assert_eq!(here.exported_all(ADMIN).await, text);
    there.import(&text).await.ok();
    assert_eq!(there.exported_all(ADMIN).await, text);
    for path in ["/v1/studies?app=ocean", "/v1/runs?app=ocean"] {
        is_alike(&here, &there, [path, path], &[]).await;
    }
    let shown = [&here, &there]
        .map(|service| async { format!("/v1/studies/{}", service.study_id("ocean").await) });
    let [of_here, of_there] = shown;
    is_alike(&here, &there, [&of_here.await, &of_there.await], &[]).await;
    for job in jobs {
        let path = format!("/v1/runs/{job}");
        // The givers of the orders are in the audit and the orders of the first site.
        is_alike(&here, &there, [&path, &path], &["decided_by", "order"]).await;
        let replays = there.user(ALICE).get(&format!("{path}/replay")).await.ok();
        assert_eq!(replays[0]["same"], true, "{replays}");
    }
}

#[tokio::test]
async fn an_import_has_its_line_in_the_audit_and_is_not_undone() {
    let (_here, there, text) = moving().await;
    there.import(&text).await.ok();
    let audit = there.user(ADMIN).get("/v1/audit").await.ok();
    let [line] = audit.as_array().unwrap().as_slice() else {
        panic!("{audit}")
    };
    assert_eq!(
        (&line["action"], &line["why"], &line["uid"]),
        (&json!("import"), &json!("moved"), &json!(ADMIN))
    );
    let path = format!("/v1/audit/{}/undo", line["audit_id"]);
    let refused = there
        .user(ADMIN)
        .post(&path, json!({ "why": "a try" }))
        .await;
    let said = refused.refused(409, "conflict");
    assert!(said.contains("import"), "{said}");
}

#[tokio::test]
async fn the_next_run_elsewhere_is_the_one_that_would_have_come_here() {
    let (here, there) = (
        TestService::with(SHORT).await,
        TestService::with(SHORT).await,
    );
    here.tune(ALICE, "app=ocean", 6, |_, number| {
        10.0 - 0.1 * f64::from(number)
    })
    .await;
    there
        .import(&here.exported(ALICE, "ocean").await)
        .await
        .ok();
    // A settled study's runs depend on a draw, which differs.
    for _ in 0..4 {
        let (one, other) = (here.job(ALICE, "app=ocean"), there.job(ALICE, "app=ocean"));
        // Jobs there have ids that no imported one has.
        let mut other = other;
        other.job.job_id += 1_000;
        let (mine, theirs) = (
            one.completes(&here, 9.0).await,
            other.completes(&there, 9.0).await,
        );
        assert_eq!(
            (theirs.role, theirs.phase, theirs.reason),
            (mine.role, mine.phase, mine.reason)
        );
        assert_eq!(theirs.parametrization, mine.parametrization);
        here.poll().await;
        there.poll().await;
    }
}

#[tokio::test]
async fn a_settled_study_keeps_its_gain_and_its_evidence() {
    let (here, there) = (
        TestService::with(SHORT).await,
        TestService::with(SHORT).await,
    );
    let default = here.default_of("romio");
    here.tune(ALICE, "app=ocean", 40, |given, number| {
        let noise = 0.01 * f64::from(number % 7);
        if *given == default {
            10.0 + noise
        } else {
            7.0 + noise
        }
    })
    .await;
    assert_eq!(here.study("ocean").await["gain"]["resolved"], true);
    let text = here.exported(ALICE, "ocean").await;
    there.import(&text).await.ok();
    is_alike(&here, &there, ["/v1/studies", "/v1/studies"], &[]).await;
    assert_eq!(
        there.study("ocean").await["gain"],
        here.study("ocean").await["gain"]
    );
    assert_eq!(there.exported(ALICE, "ocean").await, text);
}

#[tokio::test]
async fn what_was_ordered_of_a_study_is_carried_and_exported_the_same() {
    for (what, body) in [
        ("reset", json!({})),
        ("pin", json!({ "values": { "cb_nodes": "4" } })),
        ("unpin", json!({})),
        ("objective", json!({ "objective": "marked" })),
        ("accept", json!({})),
    ] {
        let (here, there) = (TestService::new().await, TestService::new().await);
        seven_runs(&here).await;
        here.order(ALICE, "ocean", what, body).await;
        let text = here.exported(ALICE, "ocean").await;
        there.import(&text).await.ok();
        assert_eq!(there.exported(ALICE, "ocean").await, text, "{what}");
        is_alike(&here, &there, ["/v1/studies", "/v1/studies"], &[]).await;
        // And on, from there to a third one.
        let third = TestService::new().await;
        third.import(&text).await.ok();
        assert_eq!(third.exported(ALICE, "ocean").await, text, "{what}");
    }
}

#[tokio::test]
async fn a_study_whose_runs_were_removed_is_carried_as_what_is_left() {
    let (here, there) = (TestService::new().await, TestService::new().await);
    seven_runs(&here).await;
    here.order(ALICE, "ocean", "reset", json!({})).await;
    here.advance(std::time::Duration::from_hours(24 * 100))
        .await;
    let order = json!({ "older_than_days": 30, "why": "a test asks for it" });
    here.user(ADMIN).post("/v1/retention", order).await.ok();
    let text = here.exported(ALICE, "ocean").await;
    assert!(
        !text.contains("{\"run\":") && text.contains("\"removed\":{"),
        "{text}"
    );
    there.import(&text).await.ok();
    assert_eq!(there.exported(ALICE, "ocean").await, text);
}

#[tokio::test]
async fn a_study_that_exists_is_refused_or_skipped() {
    let (here, there, text) = moving().await;
    there.import(&text).await.ok();
    let study = there.study_id("ocean").await;
    let refused = there.import(&text).await.refused(422, "import_refused");
    assert!(
        refused.contains(&format!(
            "these studies exist here, and nothing is added to them: ocean of uid {ALICE} with romio (study {study}); \
             --skip-existing imports the others"
        )),
        "{refused}"
    );
    let again = there
        .takes(&text, "import", json!({ "skip_existing": true }))
        .await
        .ok();
    assert_eq!(
        (
            &again["studies"][0]["skipped"],
            &again["studies"][0]["study_id"]
        ),
        (&json!(true), &json!(study))
    );
    assert_eq!(there.exported_all(ADMIN).await, text);
    // Another beside it is imported.
    here.job(BOB, "app=ice").runs(&here, 10.0).await;
    let both = here.exported_all(ADMIN).await;
    let done = there
        .takes(&both, "import", json!({ "skip_existing": true }))
        .await
        .ok();
    let skipped: Vec<&Value> = done["studies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["skipped"])
        .collect();
    assert_eq!(skipped, [&json!(true), &json!(false)]);
    assert_eq!(there.exported_all(ADMIN).await, both);
    let imports = "select count(*) from audit where action = 'import'";
    assert_eq!(
        there.database.number(imports).await,
        2,
        "what is skipped has no line"
    );
}

#[tokio::test]
async fn a_job_that_has_a_run_here_is_not_counted_twice() {
    let (_here, there, text) = moving().await;
    // Its first job's id has been another application's here.
    there.job(BOB, "app=ice").runs(&there, 10.0).await;
    let refused = there.import(&text).await.refused(422, "import_refused");
    let study = there.study_id("ice").await;
    assert!(
        refused.contains(&format!(
            "run.job_id: job 1 of cluster {CLUSTER:?} has a run here already, in study {study}, or twice in the file"
        )),
        "{refused}"
    );
    assert_eq!(
        there.user(ADMIN).get("/v1/studies?app=ocean").await.ok(),
        json!([])
    );
}

/// Attack (values): An imported file is cut, malformed, of a newer version, or contradicts itself.
/// Outcome: It is refused with the place.
#[tokio::test]
async fn a_broken_file_is_refused_with_its_place_and_leaves_nothing() {
    let (_here, there, text) = moving().await;
    let cut = &text[..text.len() / 2];
    let cut_line = cut.lines().count();
    let lines: Vec<&str> = text.lines().collect();
    let without_end = lines[..lines.len() - 1].join("\n");
    let swapped = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]);
    for (broken, said) in [
        (
            text.replacen("\"job_id\":", "\"job\":", 1),
            "line 4, run.job".to_owned(),
        ),
        (cut.to_owned(), format!("line {cut_line}, ")),
        (
            without_end,
            format!(
                "line {}, file: it ends before its end: export it again",
                lines.len() - 1
            ),
        ),
        (
            text.replace("\"studies\":1}", "\"studies\":2}"),
            "end.studies: the file says 2 and has 1".to_owned(),
        ),
        (
            format!("{text}{}\n", lines[1]),
            format!("line {}, .: nothing comes after the end", lines.len() + 1),
        ),
        (
            text.replacen("\"romio\"", "\"\"", 1),
            "study.accelerator: a name of at most 1024 plain bytes".to_owned(),
        ),
        (
            swapped,
            "line 2, epoch: it comes before its study".to_owned(),
        ),
        (text.replacen(HEADER, "{}", 1), "line 1, ".to_owned()),
        ("\u{feff}\n".to_owned(), "line 1, ".to_owned()),
    ] {
        there.end(ADMIN, UPLOAD, 0, "discard", json!({})).await.ok();
        let laid = there.piece(ADMIN, UPLOAD, 0, &broken).await;
        let refused = match laid.status.as_u16() {
            200 => there.end(ADMIN, UPLOAD, 1, "import", json!({})).await,
            _ => laid,
        };
        let refused = refused.refused(422, "import_refused");
        assert!(refused.contains(&said), "{said}: {refused}");
        // A dry run says the same.
        assert!(there.is_empty().await, "{said}");
        there.end(ADMIN, UPLOAD, 0, "discard", json!({})).await.ok();
        assert_eq!(there.pieces().await, 0, "{said}");
    }
    there.import(&text).await.ok();
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused_at_its_first_piece() {
    let (_here, there, text) = moving().await;
    let newer = text.replace("\"version\":2", "\"version\":9");
    let refused = there
        .piece(ADMIN, UPLOAD, 0, &newer)
        .await
        .refused(422, "import_refused");
    assert!(
        refused.starts_with("line 1, header: ") && refused.contains("upgrade the service"),
        "{refused}"
    );
    assert_eq!(there.pieces().await, 0);
    let other = there
        .piece(ADMIN, UPLOAD, 0, "name,seconds\nocean,3\n")
        .await;
    other.refused(422, "import_refused");
    // Split within its first line, it is found out at the end.
    there.piece(ADMIN, UPLOAD, 0, &newer[..20]).await.ok();
    there.piece(ADMIN, UPLOAD, 1, &newer[20..]).await.ok();
    let refused = there.end(ADMIN, UPLOAD, 2, "import", json!({})).await;
    let refused = refused.refused(422, "import_refused");
    assert!(refused.contains("upgrade the service"), "{refused}");
    assert!(there.is_empty().await);
}

#[tokio::test]
async fn pieces_come_in_any_order_and_again_is_no_harm() {
    let (_here, there, text) = moving().await;
    // Within lines, so that lines are put together again.
    let size = text.len().div_ceil(5);
    let pieces: Vec<&str> = (0..5)
        .map(|one| &text[one * size..text.len().min((one + 1) * size)])
        .collect();
    for place in [3, 0, 4, 1, 2, 0, 3] {
        there
            .piece(ADMIN, UPLOAD, place, pieces[place as usize])
            .await
            .ok();
    }
    let refused = there
        .piece(ADMIN, UPLOAD, 1, "another\n")
        .await
        .refused(409, "conflict");
    assert_eq!(
        refused,
        "piece 1 of this upload is there already, and is another"
    );
    let missing = there.end(ADMIN, UPLOAD, 6, "import", json!({})).await;
    let missing = missing.refused(422, "import_refused");
    assert!(
        missing.contains("piece 5 of the file is not here: import it again"),
        "{missing}"
    );
    there.end(ADMIN, UPLOAD, 5, "import", json!({})).await.ok();
    assert_eq!(there.exported_all(ADMIN).await, text);
}

#[tokio::test]
async fn a_file_has_so_many_pieces_of_so_many_bytes() {
    let service = TestService::new().await;
    let largest = "x".repeat(512 * 1024);
    let bound =
        "a file has at most 128 pieces of at most 524288 bytes each: import fewer studies at once";
    service.piece(ADMIN, UPLOAD, 127, &largest).await.ok();
    for (place, text) in [(128, "x"), (0, ""), (0, &format!("{largest}x"))] {
        assert_eq!(
            service
                .piece(ADMIN, UPLOAD, place, text)
                .await
                .bad_request(),
            bound
        );
    }
    assert_eq!(service.pieces().await, 1);
}

#[tokio::test]
async fn an_upload_is_named_by_what_nobody_guesses() {
    let service = TestService::new().await;
    let upper = UPLOAD.to_uppercase();
    for name in [
        "7",
        upper.as_str(),
        &format!("{UPLOAD}0"),
        "0123456789abcdef0123456789abcdeg",
    ] {
        let said = "an upload is named by 32 hexadecimal digits, in small letters";
        assert_eq!(service.piece(ADMIN, name, 0, "x").await.bad_request(), said);
        assert_eq!(
            service
                .end(ADMIN, name, 1, "discard", json!({}))
                .await
                .bad_request(),
            said
        );
    }
}

/// Attack (others): A user or an operator imports a study, or adds to another's upload.
/// Outcome: It is refused before the body is read; an unended upload is forgotten.
#[tokio::test]
async fn an_upload_is_its_admins() {
    const OTHER: u32 = ADMIN + 50;
    let (_here, there, text) = moving().await;
    there
        .reload(&format!("[access]\nadmins = [{ADMIN}, {OTHER}]\n"))
        .await;
    there.piece(ADMIN, UPLOAD, 0, &text).await.ok();
    let refused = there
        .piece(OTHER, UPLOAD, 1, "more\n")
        .await
        .refused(409, "conflict");
    assert_eq!(
        refused,
        "piece 1 of this upload is there already, and is another"
    );
    let refused = there.end(OTHER, UPLOAD, 1, "import", json!({})).await;
    let refused = refused.refused(422, "import_refused");
    assert!(
        refused.contains("piece 0 of the file is not here"),
        "{refused}"
    );
    there.end(OTHER, UPLOAD, 1, "discard", json!({})).await.ok();
    assert_eq!(there.pieces().await, 1);
    there.end(ADMIN, UPLOAD, 1, "discard", json!({})).await.ok();
    assert_eq!(there.pieces().await, 0);
    assert!(there.is_empty().await);
}

/// Attack (others): A user or an operator imports a study, or adds to another's upload.
/// Outcome: It is refused before the body is read; an unended upload is forgotten.
#[tokio::test]
async fn nobody_but_an_admin_imports() {
    let (_here, there, text) = moving().await;
    for uid in [ALICE, BOB, OPERATOR] {
        for refused in [
            there.piece(uid, UPLOAD, 0, &text).await,
            there.end(uid, UPLOAD, 1, "look", json!({})).await,
            there.end(uid, UPLOAD, 1, "import", json!({})).await,
            there.end(uid, UPLOAD, 1, "discard", json!({})).await,
            there
                .user(uid)
                .send(
                    "POST",
                    &format!("/v1/imports/{UPLOAD}"),
                    b"no JSON".to_vec(),
                )
                .await,
        ] {
            let said = refused.forbidden();
            assert!(said.contains("only admins"), "{said}");
        }
    }
    assert_eq!(there.pieces().await, 0);
}

#[tokio::test]
async fn an_import_says_why() {
    let (_here, there, text) = moving().await;
    there.piece(ADMIN, UPLOAD, 0, &text).await.ok();
    for why in ["", "  "] {
        let refused = there
            .end(ADMIN, UPLOAD, 1, "import", json!({ "why": why }))
            .await;
        assert!(refused.bad_request().contains("why"));
    }
    assert!(there.is_empty().await);
}

#[tokio::test]
async fn pieces_of_which_no_more_comes_are_forgotten_after_an_hour() {
    let minute = std::time::Duration::from_secs(60);
    let service = TestService::new().await;
    service.piece(ADMIN, UPLOAD, 1, "some\n").await.ok();
    service.advance(40 * minute).await;
    service.piece(ADMIN, UPLOAD, 2, "more\n").await.ok();
    service.advance(40 * minute).await;
    service.sweep().await;
    assert_eq!(
        service.pieces().await,
        2,
        "the last one came 40 minutes ago"
    );
    service.advance(21 * minute).await;
    service.sweep().await;
    assert_eq!(service.pieces().await, 0);
}

#[tokio::test]
async fn an_import_says_which_cluster_its_studies_become() {
    let (_here, _, text) = moving().await;
    let there = TestService::of_clusters(&["alpha", "beta"], "").await;
    let refused = there.import(&text).await.bad_request();
    assert_eq!(
        refused,
        "which cluster the studies become is not said: the file names none, and the service has several \
         (`--cluster NAME`)"
    );
    let refused = there
        .takes(&text, "import", json!({ "cluster": "gamma" }))
        .await
        .refused(422, "unknown_cluster");
    assert!(refused.contains("no cluster \"gamma\""), "{refused}");
    assert!(there.is_empty().await);
    there
        .takes(&text, "import", json!({ "cluster": "beta" }))
        .await
        .ok();
    let study = there.study("ocean").await;
    assert_eq!(study["cluster"], "beta", "{study}");
    let runs = there
        .user(ADMIN)
        .get("/v1/studies?cluster=alpha")
        .await
        .ok();
    assert_eq!(runs, json!([]));
}

#[tokio::test]
async fn a_study_of_one_run_counts_it_in_the_cluster_that_it_becomes() {
    let here = TestService::of_clusters(&["alpha", "beta"], "").await;
    let mut job = here.job(ALICE, "app=exported");
    job.job.cluster = "beta".into();
    job.runs(&here, 10.0).await;
    let text = here.exported(ADMIN, "exported").await;
    // Jobs and a study that are not known here.
    let text = text.replace("\"exported\"", "\"imported\"");
    let text = text.replace(
        &format!("\"job_id\":{}", job.job.job_id),
        "\"job_id\":900001",
    );
    here.takes(&text, "import", json!({ "cluster": "beta" }))
        .await
        .ok();
    let study = here.study("imported").await;
    assert_eq!(
        (&study["cluster"], &study["counted"]),
        (&json!("beta"), &json!(1)),
        "{study}"
    );
}

#[tokio::test]
async fn all_studies_of_a_site_are_imported_whole() {
    let (here, there) = (TestService::new().await, TestService::new().await);
    // Both have one of this name; no start has brought the login name of one of them.
    for (uid, name) in [(ALICE, Some("alice".to_owned())), (BOB, None)] {
        let mut job = here.job(uid, "app=ocean");
        job.job.user = name;
        job.runs(&here, 10.0).await;
    }
    let text = here.exported_all(ADMIN).await;
    assert!(there.is_empty().await);
    let done = there.import(&text).await.ok();
    let users: Vec<&Value> = done["studies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["user"])
        .collect();
    assert_eq!(users, [&json!("alice"), &Value::Null]);
    for uid in [ALICE, BOB] {
        let own = there.user(uid).get("/v1/studies").await.ok();
        let own = own.as_array().unwrap();
        assert_eq!((own.len(), &own[0]["uid"]), (1, &json!(uid)));
    }
    assert_eq!(there.exported_all(ADMIN).await, text);
    let imports = "select count(*) from audit where action = 'import'";
    assert_eq!(there.database.number(imports).await, 2, "each has its line");
}

#[tokio::test]
async fn one_study_that_is_wrong_keeps_all_others_out() {
    let (here, there) = (TestService::new().await, TestService::new().await);
    for uid in [ALICE, BOB] {
        here.job(uid, "app=ocean").runs(&here, 10.0).await;
    }
    let text = here.exported_all(ADMIN).await;
    // The second study's run is of the first one's job.
    let text = text.replace("\"job_id\":2,", "\"job_id\":1,");
    there.import(&text).await.refused(422, "import_refused");
    assert!(there.is_empty().await);
}

#[tokio::test]
async fn of_two_imports_of_one_file_at_once_one_wins() {
    let (_here, there, text) = moving().await;
    let other = UPLOAD.replace('0', "f");
    for upload in [UPLOAD, &other] {
        there.piece(ADMIN, upload, 0, &text).await.ok();
    }
    let (one, two) = tokio::join!(
        there.end(ADMIN, UPLOAD, 1, "import", json!({})),
        there.end(ADMIN, &other, 1, "import", json!({}))
    );
    let (won, lost) = if one.status == 200 {
        (one, two)
    } else {
        (two, one)
    };
    won.ok();
    let refused = lost.refused(422, "import_refused");
    assert!(refused.contains("these studies exist here"), "{refused}");
    assert_eq!(there.exported_all(ADMIN).await, text);
}

#[tokio::test]
async fn replicas_take_pieces_of_one_upload() {
    let (_here, there, text) = moving().await;
    let replica = there.replica().await;
    let (first, second) = text.split_at(text.len() / 2);
    there.piece(ADMIN, UPLOAD, 0, first).await.ok();
    replica.piece(ADMIN, UPLOAD, 1, second).await.ok();
    there.end(ADMIN, UPLOAD, 2, "import", json!({})).await.ok();
    assert_eq!(replica.exported_all(ADMIN).await, text);
}

#[tokio::test]
async fn a_job_that_starts_while_its_study_is_imported_is_of_the_one_study_there_is() {
    let (_here, there, text) = moving().await;
    there.piece(ADMIN, UPLOAD, 0, &text).await.ok();
    let mut job = there.job(ALICE, "app=ocean");
    job.job.job_id = 900_001;
    let (imported, started) = tokio::join!(
        there.end(ADMIN, UPLOAD, 1, "import", json!({})),
        job.start(&there)
    );
    let report = job.reports(Some(&started), 10.0);
    job.finish(&there, &report).await;
    job.ends(&there, "COMPLETED", 10.0);
    there.poll().await;
    let run = &there.run_of(900_001).await["run"];
    assert_eq!(run["state"], "counted", "{run}");
    assert_eq!(run["study_id"], there.study_id("ocean").await);
    // Whichever came first: a study that exists is not added to.
    let runs = there.database.number("select count(*) from runs").await;
    match imported.status.as_u16() {
        200 => assert_eq!(runs, 8),
        _ => {
            imported.refused(422, "import_refused");
            assert_eq!(runs, 1);
        }
    }
}
