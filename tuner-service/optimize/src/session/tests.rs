use std::path::Path;

use super::*;

const SPACE: &str = r#"{"parameters": [
    {"name": "cache", "kind": "categorical", "values": ["off", "on"]},
    {"name": "buffer", "kind": "ordinal", "values": ["64K", "1M", "16M"],
     "when": {"parameter": "cache", "is": ["on"]}},
    {"name": "nodes", "kind": "int", "values": [1, 2, 3, 4, 5, 6, 7, 8]},
    {"name": "direct", "kind": "categorical", "values": [false, true]}],
    "default": {"cache": "off", "buffer": "1M", "nodes": 2, "direct": false},
    "constraints": [{"forbid": {"cache": ["on"], "direct": [true]}}]}"#;

fn file() -> SpaceFile {
    SpaceFile::parse(SPACE, Path::new("space.json")).unwrap()
}

fn session(budget: u32, method: MethodName) -> Session {
    Session::new(file(), budget, 7, method)
}

fn ask(session: &mut Session) -> (u64, Json) {
    let answer = session.answer(r#"{"ask":true}"#);
    assert!(answer["reason"].is_object(), "{answer}");
    (
        answer["id"].as_u64().unwrap(),
        answer["parametrization"].clone(),
    )
}

fn tell(session: &mut Session, id: u64, words: &str) -> Json {
    session.answer(&format!(r#"{{"tell":{{"id":{id},{words}}}}}"#))
}

/// Best at cache on, buffer 16M, nodes 6.
fn time(parametrization: &Json) -> f64 {
    let nodes = parametrization["nodes"].as_f64().unwrap();
    let cache = match parametrization["buffer"].as_str() {
        Some("16M") => 1.0,
        Some(_) => 1.3,
        None => 2.0,
    };
    cache * (10.0 + (nodes - 6.0).abs())
}

/// Each line has an answer: the result, or an error that says what to write.
///
/// Attack (parsers): A space or a line of `optimize`.
#[test]
fn fuzz_lines() {
    let sample = r#"{"ask":true}
{"tell":{"id":1,"elapsed":12.3,"measures":{"bytes":1e6}}}
{"ask":true}
{"tell":{"id":2,"elapsed":3,"censored":true}}
{"ask":true}
{"tell":{"id":3,"failed":true}}
{"recommend":true}
{"add":{"parametrization":{"cache":"off","nodes":3,"direct":false},"value":2}}
{"runs":true}
{"importance":true}"#;
    io_autotune_fuzzing::Target::new("lines", &[sample])
        .rounds(1500)
        .run(|input| {
            let mut session = session(6, MethodName::SurrogateGenetic);
            for line in String::from_utf8_lossy(input).lines().take(20) {
                let answer = session.answer(line);
                if let Some(error) = answer.get("error") {
                    let error = error.as_str().unwrap();
                    let says = ["write", "tell", "ask", "cannot be added"]
                        .iter()
                        .any(|word| error.contains(word));
                    assert!(says, "{error:?}");
                }
            }
        });
}

/// The page's space in TOML is its space in JSON, and its lines have its answers.
#[test]
fn the_page_is_right() {
    let page = include_str!("../../../../docs/optimize-reference.md");
    let (_, reference) = page.split_once("\n## The space\n").unwrap();
    let (_, toml) = reference.split_once("```toml\n").unwrap();
    let toml = toml.split_once("```").unwrap().0;
    let json = &page[page.find("      {\"parameters\": [").unwrap()..];
    let json = json.split_once("\n\n").unwrap().0;
    let own = SpaceFile::parse(toml, Path::new("mine.toml")).unwrap();
    let other = SpaceFile::parse(json, Path::new("mine.json")).unwrap();
    assert_eq!(own.space, other.space);
    for file in [own, other] {
        let mut session = Session::new(file, 20, 1, MethodName::SurrogateGenetic);
        let lines = page.split("\n    > ").skip(1);
        let mut count = 0;
        for line in lines {
            let (asked, answered) = line.split_once("\n    < ").unwrap();
            let answered = answered.split("\n\n").next().unwrap();
            let answered: String = answered.lines().map(str::trim).collect();
            let shown = answered.split("...").next().unwrap();
            let answer = session.answer(asked).to_string();
            assert!(answer.starts_with(shown), "{asked}: {answer}");
            count += 1;
        }
        assert_eq!(count, 6);
    }
}

/// A space is read and takes a session, or is refused with its file's name.
///
/// Attack (parsers): A space or a line of `optimize`.
#[test]
fn fuzz_space() {
    // In either form, which its first character tells.
    let own = include_str!("../../../../deploy/accelerators.d/romio.toml");
    io_autotune_fuzzing::Target::new("space", &[SPACE, own])
        .rounds(5000)
        .run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match SpaceFile::parse(text, Path::new("a.space")) {
                Ok(file) => {
                    let mut session = Session::new(file, 3, 7, MethodName::Random);
                    let answer = session.answer(r#"{"ask":true}"#);
                    assert!(answer.get("parametrization").is_some(), "{answer}");
                }
                Err(error) => assert!(error.to_string().contains("a.space"), "{error}"),
            }
        });
}

#[test]
fn a_session_from_the_first_line_to_the_last() {
    for method in MethodName::ALL {
        let mut session = session(40, *method);
        let before = session.answer(r#"{"recommend":true}"#);
        let default = json!({"cache": "off", "nodes": 2, "direct": false});
        assert_eq!(
            before,
            json!({"parametrization": default, "mean": null, "n": 0, "interval": null})
        );
        let mut defaults = 0;
        for number in 1..=40 {
            let (id, parametrization) = ask(&mut session);
            assert_eq!(id, number);
            assert!(
                number > 1 || parametrization == default,
                "the default is first"
            );
            // Only annealing returns to the default.
            defaults += u32::from(parametrization == default);
            let exists = parametrization.get("buffer").is_some();
            assert_eq!(
                exists,
                parametrization["cache"] == "on",
                "{parametrization}"
            );
            assert!(!exists || parametrization["direct"] == false);
            let elapsed = time(&parametrization);
            let told = tell(&mut session, id, &format!("\"elapsed\":{elapsed}"));
            assert_eq!(told, json!({"ok": true}));
            if number == 1 {
                let one = session.answer(r#"{"recommend":true}"#);
                assert_eq!(one["n"], 1);
                assert_eq!(one["interval"], Json::Null);
            }
        }
        assert!((1..20).contains(&defaults), "{method}: {defaults}");
        let best = session.answer(r#"{"recommend":true}"#);
        assert!(best["mean"].as_f64().unwrap() <= 13.0, "{method}: {best}");
        let (n, mean) = (best["n"].as_u64().unwrap(), &best["mean"]);
        if n > 1 {
            assert!(best["interval"][0].as_f64() <= mean.as_f64());
            assert!(best["interval"][1].as_f64() >= mean.as_f64());
        }
        let spent = session.answer(r#"{"ask":true}"#)["error"].to_string();
        assert!(spent.contains("all 40 runs"), "{spent}");
    }
}

#[test]
fn bad_lines_are_answered_and_change_nothing() {
    let mut session = session(3, MethodName::SurrogateGenetic);
    let (first, _) = ask(&mut session);
    let (second, _) = ask(&mut session);
    for (line, words) in [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "holds none of ask"),
        (r#"{"ask":false}"#, "none of"),
        (r#"{"ask":true,"recommend":true}"#, "more than one"),
        (r#"{"asks":true}"#, "unknown field `asks`"),
        (r#"{"tell":{"id":1,"elapsed":NaN}}"#, "cannot be read"),
        (r#"{"tell":{"id":1,"elapsed":"3"}}"#, "invalid type: string"),
        (
            r#"{"tell":{"id":1,"elapsed":-2}}"#,
            "-2 s is not above zero",
        ),
        (
            r#"{"tell":{"id":1,"elapsed":0.0}}"#,
            "0 s is not above zero",
        ),
        (
            r#"{"tell":{"id":1,"elapsed":1e999}}"#,
            "number out of range",
        ),
        (
            r#"{"tell":{"id":1,"elapsed":-2,"censored":true}}"#,
            "not above zero",
        ),
        (r#"{"tell":{"id":1}}"#, "neither elapsed nor failed"),
        (r#"{"tell":{"id":1,"censored":true}}"#, "needs the seconds"),
        (
            r#"{"tell":{"id":1,"elapsed":3,"failed":true,"censored":true}}"#,
            "not both",
        ),
        (
            r#"{"tell":{"id":1,"elapsed":3,"measures":{"x":"y"}}}"#,
            "measure \"x\" is not a number",
        ),
        (
            r#"{"tell":{"id":1,"elapsed":3,"measures":{"x":0}}}"#,
            "measure \"x\" is 0: it must be positive",
        ),
        (
            r#"{"tell":{"id":0,"elapsed":3}}"#,
            "no run 0: 2 were asked for",
        ),
        (r#"{"tell":{"id":3,"elapsed":3}}"#, "no run 3"),
        (r#"{"tell":{"id":-1,"elapsed":3}}"#, "cannot be read"),
        (r#"{"tell":{"elapsed":3}}"#, "missing field `id`"),
    ] {
        let answer = session.answer(line);
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(words), "{line}: {answer}");
        assert_eq!(answer.as_object().unwrap().len(), 1);
    }
    let ok = json!({"ok": true});
    let measured = r#""elapsed":3.5,"measures":{"bytes_written":7}"#;
    assert_eq!(tell(&mut session, first, measured), ok);
    let twice = tell(&mut session, first, "\"failed\":true");
    assert!(
        twice["error"].to_string().contains("told of before"),
        "{twice}"
    );
    ask(&mut session);
    let spent = session.answer(r#"{"ask":true}"#)["error"].to_string();
    assert!(spent.contains("(open: 2, 3)"), "{spent}");
    assert_eq!(tell(&mut session, second, "\"failed\":true"), ok);
    assert_eq!(tell(&mut session, 3, "\"elapsed\":9,\"censored\":true"), ok);
    let best = session.answer(r#"{"recommend":true}"#);
    assert_eq!((&best["mean"], &best["n"]), (&json!(3.5), &json!(1)));
}

#[test]
fn runs_that_are_open_at_once_differ_and_end_in_any_order() {
    let transcript = |method: MethodName| {
        let mut session = session(60, method);
        let mut lines = Vec::new();
        let (id, parametrization) = ask(&mut session);
        tell(
            &mut session,
            id,
            &format!("\"elapsed\":{}", time(&parametrization)),
        );
        // 31 of the 40 parametrizations: methods that run none twice still have a choice.
        for _ in 0..3 {
            let mut open: Vec<(u64, Json)> = (0..10).map(|_| ask(&mut session)).collect();
            let mut texts: Vec<String> = open.iter().map(|(_, p)| p.to_string()).collect();
            texts.sort();
            texts.dedup();
            // A generational algorithm waits for the last of its generation of 8. Waiting runs get
            // the best known, so that fewer runs differ.
            let fewest = if method == MethodName::Cao2018Genetic {
                2
            } else {
                4
            };
            assert!(texts.len() >= fewest, "{method}: {texts:?}");
            while let Some((id, parametrization)) = open.pop() {
                let elapsed = time(&parametrization);
                lines.push(parametrization.to_string());
                lines.push(tell(&mut session, id, &format!("\"elapsed\":{elapsed}")).to_string());
            }
        }
        lines.push(session.answer(r#"{"recommend":true}"#).to_string());
        lines
    };
    for method in MethodName::ALL {
        assert_eq!(transcript(*method), transcript(*method));
    }
}

/// The default is told to have failed, or to have been cut short: nothing else is asked of it.
#[test]
fn a_default_that_is_lost_is_not_asked_for_again_and_the_best_that_completes_is_recommended() {
    for method in MethodName::ALL {
        for lost in ["\"failed\":true", "\"elapsed\":9,\"censored\":true"] {
            let mut session = session(30, *method);
            let (id, default) = ask(&mut session);
            tell(&mut session, id, lost);
            let mut best = f64::INFINITY;
            for number in 2..=30 {
                let answer = session.answer(r#"{"ask":true}"#);
                let parametrization = &answer["parametrization"];
                assert_ne!(*parametrization, default, "{method} {lost}: {number}");
                assert_eq!(answer["reason"]["kind"], "default_lost", "{answer}");
                let elapsed = time(parametrization);
                best = best.min(elapsed);
                tell(&mut session, number, &format!("\"elapsed\":{elapsed}"));
            }
            let recommended = session.answer(r#"{"recommend":true}"#);
            assert_ne!(recommended["parametrization"], default, "{method} {lost}");
            assert!(
                recommended["mean"].as_f64().unwrap() <= 2.0 * best,
                "{method} {lost}"
            );
        }
    }
}

#[test]
fn where_everything_fails_something_new_is_asked_each_time() {
    for method in MethodName::ALL {
        let mut session = session(30, *method);
        let mut asked = Vec::new();
        for _ in 0..30 {
            let (id, parametrization) = ask(&mut session);
            assert!(
                !asked.contains(&parametrization),
                "{method}: {parametrization}"
            );
            tell(&mut session, id, "\"failed\":true");
            asked.push(parametrization);
        }
        let recommended = session.answer(r#"{"recommend":true}"#);
        assert_eq!(
            recommended["parametrization"], asked[0],
            "nothing is known of any"
        );
        assert_eq!(
            (&recommended["mean"], &recommended["n"]),
            (&json!(null), &json!(0))
        );
    }
}

#[test]
fn settings_are_for_so_few_runs() {
    for budget in [1, 2, 3, 5, 10, 50, 1000, u32::MAX] {
        for method in MethodName::ALL {
            let settings = settings_for(budget, *method);
            assert_eq!(
                (settings.baseline_runs, settings.baseline_lost_runs),
                (1, 1)
            );
            assert!(settings.design_points <= 15 && settings.surrogate_genetic.design_points <= 3);
            assert!(settings.budget >= 1 && settings.budget <= budget);
        }
    }
    assert_eq!(settings_for(50, MethodName::Robert2020).design_points, 15);
    assert_eq!(settings_for(10, MethodName::Robert2020).design_points, 3);
}

#[test]
fn measures_are_learnt_from() {
    let mut session = session(40, MethodName::Alabed2021Multitask);
    let mut learnt = 0;
    for number in 1..=36_u32 {
        let answer = session.answer(r#"{"ask":true}"#);
        learnt += u32::from(answer["reason"]["measures"] == json!(["seeks"]));
        let exact = time(&answer["parametrization"]);
        let noisy = exact * (1.0 + 0.2 * f64::from(number * 7 % 11) / 11.0);
        let words = format!(r#""elapsed":{noisy},"measures":{{"seeks":{exact},"same":5}}"#);
        let told = tell(&mut session, number.into(), &words);
        assert_eq!(told, json!({"ok": true}));
    }
    assert!(learnt > 5, "{learnt}");
}

#[test]
fn a_misspelt_key_of_a_line_is_named_with_the_one_that_is_meant() {
    let mut session = session(5, MethodName::Random);
    session.answer(r#"{"ask":true}"#);
    for (line, meant) in [
        (r#"{"aks":true}"#, "did you mean `ask`?"),
        (r#"{"tell":{"id":1,"elapsd":2}}"#, "did you mean `elapsed`?"),
        (
            r#"{"tell":{"id":1,"faild":true}}"#,
            "did you mean `failed`?",
        ),
    ] {
        let error = session.answer(line)["error"].to_string();
        assert!(error.contains(meant), "{error}");
    }
}

fn plan(runs: u32, compare: u32, goal: Goal) -> Plan {
    Plan {
        runs,
        compare,
        goal,
        method: MethodName::SurrogateGenetic,
        seed: 7,
    }
}

/// Asks and tells until there is nothing more; the reason if the session ended before its runs.
fn finish(session: &mut Session, value: impl Fn(u64, &Json) -> f64) -> Option<Json> {
    loop {
        let answer = session.answer(r#"{"ask":true}"#);
        if answer.get("error").is_some() {
            return None;
        }
        if let Some(why) = answer.get("done") {
            return Some(why.clone());
        }
        let id = answer["id"].as_u64().unwrap();
        let value = value(id, &answer["parametrization"]);
        assert_eq!(
            tell(session, id, &format!("\"value\":{value}")),
            json!({"ok": true})
        );
    }
}

/// A number from 0.98 to 1.02 that only the id tells.
fn noise(id: u64) -> f64 {
    1.0 + 0.02 * (((id * 7919) % 101) as f64 / 50.0 - 1.0)
}

#[test]
fn what_was_chosen_is_compared_with_the_default_by_draws() {
    let mut session = Session::planned(file(), plan(50, 24, Goal::Seconds));
    finish(&mut session, |id, of| time(of) * noise(id));
    let roles: Vec<Role> = session.runs.iter().map(|run| run.asked.role).collect();
    let drawn = |role| roles[26..].iter().filter(|one| **one == role).count();
    assert!(
        drawn(Role::Control) >= 4 && drawn(Role::Settled) >= 4,
        "{roles:?}"
    );
    assert!(!roles[1..26].contains(&Role::Control));
    let answer = session.answer(r#"{"recommend":true}"#);
    let gain = &answer["gain"];
    assert_eq!(gain["verdict"], "better", "{answer}");
    assert_eq!(gain["unit"], "share");
    let truth = 1.0 - time(&answer["parametrization"]) / time(&answer["default"]);
    let end = |name: &str| gain[name].as_f64().unwrap();
    assert!(end("low") < truth && truth < end("high"), "{truth} {gain}");
    assert!((end("estimate") - truth).abs() < 0.05, "{truth} {gain}");
    assert_eq!(gain["default"]["n"], drawn(Role::Control));
}

/// The runs of the comparison are of one parametrization, whatever they show, and it is what is told.
#[test]
fn what_is_recommended_is_what_was_compared() {
    for method in MethodName::ALL {
        for seed in 0..6 {
            let plan = Plan {
                seed,
                method: *method,
                ..plan(30, 12, Goal::Seconds)
            };
            let mut session = Session::planned(file(), plan);
            // So much noise that each run changes who is thought the best.
            finish(&mut session, |id, of| {
                time(of) * (1.0 + 20.0 * (noise(id + seed) - 0.98))
            });
            let of_it = |run: &&Run| !run.is_of_the_search() && run.asked.role == Role::Settled;
            let compared: Vec<&Parametrization> = session
                .runs
                .iter()
                .filter(of_it)
                .map(|run| &run.asked.parametrization)
                .collect();
            let best = session.best();
            assert!(compared.iter().all(|one| **one == best), "{method} {seed}");
            if compared.is_empty() {
                assert_eq!(best, session.space().default(), "{method} {seed}");
            }
        }
    }
}

#[test]
fn a_study_that_has_compared_has_its_gain_when_it_is_made_anew_without_a_comparison() {
    let mut session = Session::planned(file(), plan(50, 24, Goal::Seconds));
    finish(&mut session, |id, of| time(of) * noise(id));
    let mut again = Session::planned(file(), plan(51, 0, Goal::Seconds));
    again.restore(session.take_records()).unwrap();
    assert_eq!(again.gained(), session.gained());
    // One more run compares too.
    ask(&mut again);
    assert!(!again.runs.last().unwrap().is_of_the_search());
}

#[test]
fn what_fails_more_often_than_the_default_is_not_better() {
    let mut session = Session::planned(file(), plan(50, 24, Goal::Seconds));
    let default = json!({"cache": "off", "nodes": 2, "direct": false});
    let mut failed = 0;
    while let Some(id) = session.answer(r#"{"ask":true}"#)["id"].as_u64() {
        let asked = &session.runs[usize::try_from(id).unwrap() - 1].asked;
        let given = json!(session.file.spell(&asked.parametrization));
        let fails = asked.phase == Phase::Settled && given != default && failed < 2;
        failed += usize::from(fails);
        let words = match fails {
            true => "\"failed\":true".to_owned(),
            false => format!("\"elapsed\":{}", time(&given) * noise(id)),
        };
        tell(&mut session, id, &words);
    }
    let gained = session.gained().unwrap();
    assert_eq!(
        gained.failed,
        Failures {
            default: 0,
            chosen: 2
        }
    );
    assert_eq!(gained.verdict, Verdict::NotShown, "{gained:?}");
    assert!(gained.reason.starts_with("2 of "), "{gained:?}");
}

#[test]
fn where_nothing_is_gained_no_gain_is_claimed() {
    for seed in 0..8 {
        let plan = Plan {
            seed,
            ..plan(40, 16, Goal::Seconds)
        };
        let mut session = Session::planned(file(), plan);
        finish(&mut session, |id, _| 3.0 * noise(id + seed));
        let gain = session.gained().unwrap();
        assert!(
            matches!(gain.verdict, Verdict::NotShown | Verdict::NoEffect),
            "{gain:?}"
        );
    }
}

#[test]
fn a_default_that_is_the_best_ends_the_comparison() {
    let mut session = Session::planned(file(), plan(40, 16, Goal::Seconds));
    let default = json!({"cache": "off", "nodes": 2, "direct": false});
    let why = finish(&mut session, |id, of| {
        if *of == default {
            noise(id)
        } else {
            9.0 * noise(id)
        }
    });
    assert!(
        why.is_some_and(|why| why.to_string().contains("default is the best")),
        "it asks on"
    );
}

#[test]
fn a_default_that_never_completes_ends_the_comparison() {
    let mut session = Session::planned(file(), plan(20, 8, Goal::Seconds));
    let (id, _) = ask(&mut session);
    tell(&mut session, id, "\"failed\":true");
    let why = finish(&mut session, |id, of| time(of) * noise(id)).unwrap();
    assert!(why.to_string().contains("did not complete"), "{why}");
}

#[test]
fn the_comparison_waits_for_the_search() {
    let mut session = Session::planned(file(), plan(10, 4, Goal::Seconds));
    let open: Vec<(u64, Json)> = (0..6).map(|_| ask(&mut session)).collect();
    let wait = session.answer(r#"{"ask":true}"#);
    let said = wait["wait"].as_str().unwrap();
    assert!(said.contains("(open: 1, 2, 3, 4, 5, 6)"), "{said}");
    for (id, parametrization) in open {
        tell(
            &mut session,
            id,
            &format!("\"elapsed\":{}", time(&parametrization)),
        );
    }
    ask(&mut session);
}

#[test]
fn small_and_large_are_opposites_and_numbers_may_be_negative() {
    let of = |goal: Goal, sign: f64| {
        let mut session = Session::planned(file(), plan(40, 0, goal));
        finish(&mut session, |_, of| sign * (time(of) - 20.0));
        session.answer(r#"{"runs":true}"#)["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["parametrization"].clone())
            .collect::<Vec<_>>()
    };
    let minimized = of(Goal::Minimize, 1.0);
    assert_eq!(minimized, of(Goal::Maximize, -1.0));
    let best = minimized.iter().map(time).fold(f64::INFINITY, f64::min);
    assert_eq!(best, 10.0);
}

#[test]
fn a_session_that_is_made_anew_goes_on_as_if_it_had_never_ended() {
    for (goal, compare) in [(Goal::Seconds, 12), (Goal::Maximize, 0)] {
        let plan = plan(30, compare, goal);
        let mut whole = Session::planned(file(), plan);
        finish(&mut whole, |id, of| time(of) * noise(id));
        let records = whole.take_records();
        for cut in 0..records.len() {
            let mut again = Session::planned(file(), plan);
            let text = serde_json::to_string(&records[..cut]).unwrap();
            again.restore(serde_json::from_str(&text).unwrap()).unwrap();
            assert!(again.take_records().is_empty());
            if cut % 7 == 0 {
                finish(&mut again, |id, of| time(of) * noise(id));
                assert_eq!(again.listed(), whole.listed(), "{goal} {cut}");
                assert_eq!(again.recommendation(), whole.recommendation());
            }
        }
    }
}

#[test]
fn runs_that_were_open_are_asked_for_again() {
    let mut session = session(20, MethodName::SurrogateGenetic);
    let runs: Vec<(u64, Json)> = (0..3).map(|_| ask(&mut session)).collect();
    tell(&mut session, 2, "\"failed\":true");
    let mut again = Session::planned(file(), session.plan());
    again.restore(session.take_records()).unwrap();
    for place in [0, 2] {
        assert_eq!(ask(&mut again), runs[place]);
    }
    assert_eq!(ask(&mut again).0, 4);
}

#[test]
fn records_that_are_incomplete_or_of_another_space_are_refused() {
    let mut one = session(20, MethodName::SurrogateGenetic);
    ask(&mut one);
    ask(&mut one);
    let records = one.take_records();
    let error = session(20, MethodName::Random).restore(records[1..].to_vec());
    assert_eq!(error, Err(SessionError::Record { id: 2, runs: 0 }));
    let text = r#"{"parameters": [{"name": "a", "kind": "int", "values": [1, 2, 3]}]}"#;
    let other = SpaceFile::parse(text, Path::new("a.json")).unwrap();
    let error = Session::new(other, 5, 1, MethodName::Random).restore(records);
    assert!(
        matches!(error, Err(SessionError::Parametrization { .. })),
        "{error:?}"
    );
}

#[test]
fn what_was_not_asked_for_can_be_added_and_is_learnt_from() {
    let mut session = session(30, MethodName::SurrogateGenetic);
    let default = json!({"cache": "off", "nodes": 2, "direct": false});
    let best = json!({"cache": "on", "buffer": "16M", "nodes": 6, "direct": false});
    for (id, run) in [(1, &default), (2, &best)] {
        let line = json!({"add": {"parametrization": run, "elapsed": time(run)}});
        assert_eq!(session.answer(&line.to_string()), json!({"id": id}));
    }
    let open = json!({"add": {"parametrization": best}});
    assert_eq!(session.answer(&open.to_string()), json!({"id": 3}));
    let recommended = session.answer(r#"{"recommend":true}"#);
    assert_eq!(recommended["parametrization"], best);
    // The default has run.
    assert_ne!(ask(&mut session).1, default);
    for (wrong, words) in [
        (
            json!({"cache": "off", "nodes": 9, "direct": false}),
            "nodes",
        ),
        (json!({"cache": "off", "direct": false}), "nodes"),
        (
            json!({"cache": "on", "buffer": "1M", "nodes": 2, "direct": true}),
            "cannot be added",
        ),
        (json!({"cache": null}), "cannot be added"),
    ] {
        let line = json!({"add": {"parametrization": wrong, "elapsed": 2}});
        let answer = session.answer(&line.to_string());
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains(words), "{answer}");
    }
    let line = json!({"add": {"parametrization": best, "elapsed": -2}});
    assert!(session.answer(&line.to_string()).get("error").is_some());
    assert_eq!(session.runs.len(), 4);
}

#[test]
fn what_the_parameters_explain_is_told_once_enough_ran() {
    let mut session = session(40, MethodName::SurrogateGenetic);
    let few = session.answer(r#"{"importance":true}"#);
    assert!(
        few["because"].as_str().unwrap().contains("it takes"),
        "{few}"
    );
    finish(&mut session, |_, of| time(of));
    let known = session.answer(r#"{"importance":true}"#);
    assert!(
        known["importance"]["cache"]["in_all"].as_f64().unwrap() > 0.1,
        "{known}"
    );
}

/// In how many of 40 draws a gain of this factor is shown, with an interval that has it.
fn shown(runs: u32, compare: u32, factor: f64) -> usize {
    let is_shown = |seed: &u64| {
        let plan = Plan {
            seed: *seed,
            ..plan(runs, compare, Goal::Seconds)
        };
        let mut session = Session::planned(file(), plan);
        finish(&mut session, |id, of| {
            let slower = if of["cache"] == "on" { 1.0 } else { factor };
            slower * noise(31 * id + 17 * seed)
        });
        let gained = session.gained().unwrap();
        let truth = Some(1.0 - 1.0 / factor);
        gained.verdict == Verdict::Better && gained.low < truth && truth < gained.high
    };
    (0..40).filter(is_shown).count()
}

#[test]
fn a_large_gain_is_shown_by_enough_runs_and_by_no_fewer_than_the_least() {
    for factor in [1.3, 3.0, 30.0, 60.0, 1e4] {
        assert_eq!(shown(2 * (LEAST - 1), LEAST - 1, factor), 0, "{factor}");
        assert!(shown(2 * ENOUGH, ENOUGH, factor) >= 36, "{factor}");
    }
    assert!((1..30).contains(&shown(2 * LEAST, LEAST, 3.0)));
}

#[test]
fn the_pages_say_how_many_runs_are_enough() {
    let page = include_str!("../../../../docs/optimize.md");
    let reference = include_str!("../../../../docs/optimize-reference.md");
    assert!(page.contains(&format!("**Take {} runs or more.**", 2 * ENOUGH)));
    assert!(page.contains(&format!("(below {ENOUGH})")));
    let some = format!(
        "; {LEAST} to {} show even a large one only by some",
        ENOUGH - 1
    );
    assert!(reference.contains(&format!(" {ENOUGH} show a gain of 15 %")));
    assert!(reference.contains(&some));
}

/// The engine has rules for the runs of a site that come before a draw: none of them takes a run here.
#[test]
fn all_runs_of_the_comparison_are_drawn() {
    for method in MethodName::ALL {
        let plan = Plan {
            method: *method,
            ..plan(36, 16, Goal::Seconds)
        };
        let mut session = Session::planned(file(), plan);
        finish(&mut session, |id, of| time(of) * noise(id));
        let (search, compared) = session.runs.split_at(20);
        assert!(search.iter().all(Run::is_of_the_search), "{method}");
        assert_eq!(compared.len(), 16, "{method}");
        for run in compared {
            assert_eq!(run.asked.control_chance, Some(0.5), "{method}");
        }
    }
}

#[test]
fn a_comparison_that_is_too_short_says_how_many_more_runs_would_show_the_gain() {
    let mut session = Session::planned(file(), plan(12, 6, Goal::Seconds));
    let said = session.answer(r#"{"plan":true}"#);
    let needs = json!({"runs": 28, "compare": 14});
    let hint = &said["hints"][0];
    assert_eq!((&said["runs"], &said["compare"]), (&json!(12), &json!(6)));
    assert_eq!((&hint["kind"], &hint["needs"]), (&json!("too_few"), &needs));
    let says = hint["says"].as_str().unwrap();
    assert!(says.ends_with("about 28 runs can"), "{says}");
    finish(&mut session, |id, of| time(of) * noise(id));
    assert_eq!(session.hints(), []);
    let gained = session.gained().unwrap();
    assert_eq!(gained.verdict, Verdict::NotShown);
    assert!(gained.reason.starts_with("Too few"), "{gained:?}");
    assert!(gained.runs_needed >= Some(8), "{gained:?}");
}
