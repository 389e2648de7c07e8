//! The assessment of a study is kept with it, and its runs come in the order of their starts.

use io_autotune_model::{
    Assessment, Gain, GainVerdict, OTHERS_RATIO, Parametrization, Phase, RecentRun, Role,
};
use io_autotune_store::{Assessing, Judged, RunFilter, Store};
use serde_json::{Value, json};

use crate::support::{Database, Report, Start, by, counted, decision, point, say};

/// Starts a settled run, and reports it.
async fn run(store: &Store, job_id: u32, given: &Parametrization) -> i64 {
    let started = Start::of(job_id)
        .ask(store, |_| {
            decision(Phase::Settled, Role::Settled, given.clone())
        })
        .await
        .unwrap();
    let mut report = Report::of(job_id);
    report.elapsed = Some(f64::from(job_id));
    report.applied = Some(given.clone());
    report.deliver(store).await.unwrap();
    say(store, job_id, "COMPLETED").await;
    started.run_id
}

fn said(epoch: i32, reason: &str) -> Assessment {
    Assessment {
        epoch,
        gain: Gain {
            verdict: GainVerdict::NotYet,
            reason: reason.to_owned(),
            share: Some(0.1),
            low: None,
            high: None,
            level: 0.95,
            tuned_runs: 1,
            control_runs: 0,
            detectable: None,
            runs_needed: None,
            evidence: 1.0,
            compared: None,
        },
        exploring_cost: 0.0,
        effects: Vec::new(),
        findings: Vec::new(),
        shared: None,
        overview: None,
        objective: Default::default(),
        elapsed: None,
        cleaned: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_enter_in_the_order_of_their_starts_up_to_one_that_may_still_be_judged() {
    let database = Database::new().await;
    let store = database.store(4);
    let mut runs = Vec::new();
    for job_id in 1..=3 {
        runs.push(run(&store, job_id, &point(3)).await);
    }
    let study_id = store.studies(&Default::default()).await.unwrap()[0].study_id;
    let epoch_id = store.study_state(study_id).await.unwrap().epoch_id;
    let entered = async || {
        let mut assessing = store.assess(study_id).await.unwrap();
        let runs = assessing.runs_after(epoch_id, 0).await.unwrap();
        runs.into_iter()
            .map(|run| (run.run_id, run.counts.map(|counts| counts.value)))
            .collect::<Vec<_>>()
    };
    assert_eq!(entered().await, []);
    // The second one ended first: it waits for the first one.
    store
        .judge_run(runs[1], 2, &counted(point(3)))
        .await
        .unwrap();
    assert_eq!(entered().await, []);
    store
        .judge_run(runs[0], 2, &counted(point(3)))
        .await
        .unwrap();
    let two = [(runs[0], Some(1.0)), (runs[1], Some(2.0))];
    assert_eq!(entered().await, two);
    // A run that gave up its place holds nothing back, and does not count before it is judged.
    store.release_run(runs[2]).await.unwrap();
    assert_eq!(entered().await[2], (runs[2], None));
    let mut assessing = store.assess(study_id).await.unwrap();
    let rest = assessing.runs_after(epoch_id, runs[1]).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(
        (rest[0].role, rest[0].phase),
        (Role::Settled, Phase::Settled)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_meets_how_others_fared_before_its_start() {
    let database = Database::new().await;
    let store = database.store(4);
    // The starts are one after the other. The third sees no record, because none has been made.
    for job_id in 1..=4 {
        if job_id == 4 {
            store.record_surroundings().await.unwrap();
            // No further record is made so soon.
            store.record_surroundings().await.unwrap();
        }
        let run_id = run(&store, job_id, &point(3)).await;
        let verdict = counted(point(3));
        store.judge_run(run_id, 2, &verdict).await.unwrap();
    }
    let kept = database.number("select count(*) from surroundings").await;
    assert_eq!(kept, 1);
    let study_id = store.studies(&Default::default()).await.unwrap()[0].study_id;
    let epoch_id = store.study_state(study_id).await.unwrap().epoch_id;
    let mut assessing = store.assess(study_id).await.unwrap();
    let runs = assessing.runs_after(epoch_id, 0).await.unwrap();
    let slowness: Vec<f64> = runs.iter().map(|run| run.slowness).collect();
    // The middle one of 1, 2 and 3 s, compared with the mean of their logs, and halved for three
    // runs.
    let expected = (2.0_f64.ln() - 6.0_f64.ln() / 3.0) / 2.0;
    assert_eq!(slowness[..3], [0.0; 3]);
    assert!((slowness[3] - expected).abs() < 1e-12, "{slowness:?}");
    drop(assessing);

    // The run ended after the record, so its estimates have how other runs fared at the same time.
    let ratio = |runs: &[RecentRun]| runs.iter().map(|run| run.others).collect::<Vec<_>>();
    let kept = store.study_state(study_id).await.unwrap().history;
    let others = ratio(&kept.tested[0].recent);
    assert_eq!(others[..3], [None; 3]);
    assert!(
        (others[3].unwrap().ln() - expected).abs() < 1e-12,
        "{others:?}"
    );
    let added = store.history_at(epoch_id, 4).await.unwrap();
    assert_eq!(*kept, added, "the cache is what the judgements add up to");
    let all = RunFilter {
        limit: 10,
        ..RunFilter::default()
    };
    let told: Vec<bool> = store
        .runs(&all)
        .await
        .unwrap()
        .iter()
        .map(|run| run.measures.contains_key(OTHERS_RATIO))
        .collect();
    assert_eq!(told, [false, false, false, true]);
    // A second look changes no verdict, although there is a later record by now.
    let again = store.judge_run(runs[0].run_id, 2, &counted(point(3))).await;
    assert_eq!(again.unwrap(), Judged::Unchanged);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_assessment_is_written_with_the_verdict_or_not_at_all() {
    let database = Database::new().await;
    let store = database.store(4);
    let run_id = run(&store, 1, &point(3)).await;
    let study_id = store.studies(&Default::default()).await.unwrap()[0].study_id;
    assert_eq!(store.assessment(study_id).await.unwrap(), None);
    assert!(store.unassessed(10, &[], "test").await.unwrap().is_empty());
    store
        .judge_run(run_id, 2, &counted(point(3)))
        .await
        .unwrap();
    // A verdict of before assessments were kept.
    let unassessed = store.unassessed(10, &[], "test").await.unwrap();
    assert_eq!(unassessed, [study_id]);

    let mut assessing = store.assess(study_id).await.unwrap();
    let [kept] = &assessing.evidence().await.unwrap()[..] else {
        panic!("one epoch");
    };
    assert!(kept.own.is_none() && kept.judged.is_none());
    assert_eq!(assessing.assessment().await.unwrap(), None);
    let (epoch_id, evidence) = (kept.epoch_id, json!({ "through": run_id }));
    write(&mut assessing, epoch_id, &evidence, "dropped").await;
    drop(assessing);
    assert_eq!(store.assessment(study_id).await.unwrap(), None);

    let mut assessing = store.assess(study_id).await.unwrap();
    write(&mut assessing, epoch_id, &evidence, "kept").await;
    assessing.commit().await.unwrap();
    assert_eq!(
        store.assessment(study_id).await.unwrap(),
        Some(said(1, "kept"))
    );
    // It has no overview, as those of programs that know of none: it is assessed again.
    let unassessed = async |by| store.unassessed(10, &[], by).await.unwrap();
    assert_eq!(unassessed("test").await, [study_id]);
    let overview =
        r#"update studies set assessment = assessment || '{"overview": {}}', assessed_by = 'test'"#;
    database.execute(overview).await;
    assert!(unassessed("test").await.is_empty());
    assert_eq!(unassessed("another").await, [study_id]);
    let none = "update studies set assessment = assessment - 'overview'";
    database.execute(none).await;
    assert_eq!(unassessed("test").await, [study_id]);

    // The next epoch begins without evidence of its own, and has that of the epoch before.
    let audit = by(0, "test");
    let reset = store.reset(study_id, audit).await.unwrap();
    let mut assessing = store.assess(study_id).await.unwrap();
    let [kept] = &assessing.evidence().await.unwrap()[..] else {
        panic!("one epoch");
    };
    assert_eq!(
        (kept.epoch, &kept.own, &kept.earlier),
        (2, &None, &Some(evidence))
    );
    let earlier = assessing.assessment().await.unwrap();
    assert_eq!(earlier, Some(said(1, "kept")));

    // So does the epoch that continues after an undone reset: comparisons made meanwhile were
    // looks.
    let (epoch_id, evidence) = (kept.epoch_id, json!({ "through": 9 }));
    write(&mut assessing, epoch_id, &evidence, "of the reset").await;
    assessing.commit().await.unwrap();
    store.undo(reset.line, audit).await.unwrap();
    let mut assessing = store.assess(study_id).await.unwrap();
    let kept = assessing.evidence().await.unwrap().pop().unwrap();
    assert_eq!((kept.epoch, kept.earlier), (3, Some(evidence)));
}

/// A database from before evidence was stored: each epoch has its own space, and continues its
/// parent's comparison numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn earlier_epochs_without_evidence_come_first_each_with_its_own_default() {
    let database = Database::new().await;
    let store = database.store(4);
    let run_id = run(&store, 1, &point(3)).await;
    let study_id = store.studies(&Default::default()).await.unwrap()[0].study_id;
    store
        .judge_run(run_id, 2, &counted(point(3)))
        .await
        .unwrap();
    let audit = by(0, "test");
    store.reset(study_id, audit).await.unwrap();
    let mut connection = database.connect().await;
    let other = "update epochs set space = jsonb_set(space, '{0,default}', '7') where ordinal = 2";
    sqlx::query(other).execute(&mut connection).await.unwrap();
    let defaults = async || {
        let mut assessing = store.assess(study_id).await.unwrap();
        let kept = assessing.evidence().await.unwrap();
        let kept = kept.into_iter().map(|one| (one.epoch, one.default));
        kept.collect::<Vec<_>>()
    };
    let both = defaults().await;
    assert_eq!((both[0].0, both[1].0, both.len()), (1, 2, 2));
    assert_ne!(both[0].1, both[1].1);
    let mut assessing = store.assess(study_id).await.unwrap();
    let first = assessing.evidence().await.unwrap()[0].epoch_id;
    write(&mut assessing, first, &json!({}), "kept").await;
    assessing.commit().await.unwrap();
    assert_eq!(defaults().await, both[1..]);
}

async fn write(assessing: &mut Assessing, epoch_id: i64, evidence: &Value, because: &str) {
    assessing.write_evidence(epoch_id, evidence).await.unwrap();
    assessing
        .write_assessment(&said(1, because), "test")
        .await
        .unwrap();
}
