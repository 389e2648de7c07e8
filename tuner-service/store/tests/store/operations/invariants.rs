//! What must hold of the tables at any moment.

use std::collections::BTreeMap;

use io_autotune_engine::{Parametrization, RECENT_RUNS, RecentRun};
use io_autotune_store::{Store, StudyFilter};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

use crate::support::space;

/// A parametrization of an epoch.
type Entry = (i64, String);

#[derive(FromRow)]
struct Run {
    id: i64,
    epoch_id: i64,
    launched: Json<Parametrization>,
    applied: Option<Json<Parametrization>>,
    elapsed: Option<f64>,
    state: String,
    verdict: Option<String>,
}

#[derive(FromRow)]
struct Cached {
    epoch_id: i64,
    key: String,
    parametrization: Json<Parametrization>,
    count: i64,
    mean: f64,
    m2: f64,
    log_mean: f64,
    log_m2: f64,
    recent: Json<Vec<RecentRun>>,
    failed: i64,
    first_run: i64,
}

/// The runs that a cache's row must hold.
#[derive(Default)]
struct Expected {
    counted: Vec<(i64, f64)>,
    failed: Vec<i64>,
}

/// Queries that select what must not be there.
const NOTHING: [(&str, &str); 9] = [
    (
        "the tally is the count of judged runs by role",
        "select e.id from epochs e left join runs r on r.epoch_id = e.id and r.state <> 'in_flight'
         group by e.id
         having (e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.total) is distinct from (
             count(*) filter (where r.role = 'baseline'),
             count(*) filter (where r.role in ('design', 'search')),
             count(*) filter (where r.role = 'control' and r.phase <> 'settled'),
             count(*) filter (where r.role = 'settled'),
             count(*) filter (where r.role = 'control' and r.phase = 'settled'),
             count(r.id))",
    ),
    (
        "judged runs are numbered from 1 without a gap",
        "select epoch_id from (
             select epoch_id, judged_ordinal, row_number() over (partition by epoch_id order by judged_ordinal) as place
             from runs where state <> 'in_flight') judged
         where judged_ordinal <> place",
    ),
    (
        "a counted run has COMPLETED, an elapsed, a report and a verdict",
        "select id from runs where state = 'counted'
             and (outcome is distinct from 'COMPLETED' or elapsed is null or applied is null
                  or finished_at is null or verdict is null or judged_at is null)",
    ),
    (
        "a run is finished exactly if a node reported it",
        "select r.id from runs r
         where (r.finished_at is not null) <> exists (select from reports p where p.run_id = r.id)",
    ),
    (
        "epochs are numbered from 1 without a gap",
        "select study_id from epochs group by study_id having min(ordinal) <> 1 or max(ordinal) <> count(*)",
    ),
    (
        "an epoch's parent is the epoch before it",
        "select e.id from epochs e left join epochs p on p.id = e.parent_id
         where (e.ordinal = 1) <> (p.id is null)
            or p.study_id <> e.study_id or p.ordinal <> e.ordinal - 1",
    ),
    (
        "every study has an epoch",
        "select id from studies s where not exists (select from epochs e where e.study_id = s.id)",
    ),
    (
        "every reset is in the audit table",
        "select s.id from studies s
         where (select count(*) from epochs e where e.study_id = s.id and e.opened_why like 'reset: %')
            <> (select count(*) from audit a where a.study_id = s.id and a.action = 'reset')",
    ),
    (
        "a pin is the one that the audit's last line of its study sets",
        "select s.id from studies s left join pins p on p.study_id = s.id
         left join lateral (select action, detail from audit a where a.study_id = s.id
                            order by a.id desc limit 1) last on true
         where (p.study_id is not null) is distinct from coalesce(last.action = 'pin', false)
            or p.parametrization <> last.detail -> 'parametrization'",
    ),
];

/// Checks everything; says what does not hold.
pub(crate) async fn check(connection: &mut PgConnection, store: &Store) -> Result<(), String> {
    for (what, query) in NOTHING {
        let broken: Vec<i64> = sqlx::query_scalar(query)
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        ensure(broken.is_empty(), || format!("{what}: not for {broken:?}"))?;
    }
    let runs = runs(connection).await;
    check_caches(&runs, cached(connection).await)?;
    check_states(connection, store, &runs).await
}

/// Random lists must not be so unlucky that they test nothing.
pub(crate) async fn enough_happened(connection: &mut PgConnection) {
    let (counted, failed, epochs, audit, duplicates): (i64, i64, i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from runs where state = 'counted'),
                (select sum(failed)::bigint from tested),
                (select count(*) from epochs),
                (select count(*) from audit),
                (select count(*) from tested where count > 1)",
    )
    .fetch_one(connection)
    .await
    .unwrap();
    assert!(
        counted >= 10 && failed >= 1 && epochs >= 3 && audit >= 3 && duplicates >= 2,
        "{counted} counted, {failed} failed, {epochs} epochs, {audit} audit lines, {duplicates} run twice"
    );
}

async fn runs(connection: &mut PgConnection) -> Vec<Run> {
    sqlx::query_as(
        "select id, epoch_id, parametrization as launched, elapsed, state, verdict,
                case applied ->> 'kind' when 'default' then $1 else applied -> 'parametrization' end as applied
         from runs order by id",
    )
    // Both versions of the space have the same default.
    .bind(Json(space().default()))
    .fetch_all(connection)
    .await
    .unwrap()
}

async fn cached(connection: &mut PgConnection) -> BTreeMap<Entry, Cached> {
    let rows: Vec<Cached> = sqlx::query_as("select * from tested")
        .fetch_all(connection)
        .await
        .unwrap();
    rows.into_iter()
        .map(|row| ((row.epoch_id, row.key.clone()), row))
        .collect()
}

/// The caches are what a recomputation from the runs gives.
fn check_caches(runs: &[Run], mut cached: BTreeMap<Entry, Cached>) -> Result<(), String> {
    let mut expected: BTreeMap<Entry, Expected> = BTreeMap::new();
    for run in runs {
        let entry = |parametrization: &Parametrization| (run.epoch_id, parametrization.key());
        if run.state == "counted" {
            let applied = run.applied.as_ref().unwrap();
            let counted = (run.id, run.elapsed.unwrap());
            expected
                .entry(entry(applied))
                .or_default()
                .counted
                .push(counted);
        } else if run.verdict.as_deref() == Some("failed") {
            expected
                .entry(entry(&run.launched))
                .or_default()
                .failed
                .push(run.id);
        }
    }
    for (entry, expected) in expected {
        let cached = cached
            .remove(&entry)
            .ok_or_else(|| format!("no cache for {entry:?}"))?;
        check_row(&cached, &expected).map_err(|broken| format!("{entry:?}: {broken}"))?;
    }
    ensure(cached.is_empty(), || {
        format!("caches without a run: {:?}", cached.keys())
    })
}

fn check_row(cached: &Cached, expected: &Expected) -> Result<(), String> {
    let counted = &expected.counted;
    ensure(cached.parametrization.key() == cached.key, || {
        "the key is another's".into()
    })?;
    ensure(
        cached.count == i64::try_from(counted.len()).unwrap(),
        || format!("count {} of {}", cached.count, counted.len()),
    )?;
    ensure(
        cached.failed == i64::try_from(expected.failed.len()).unwrap(),
        || format!("failed {} of {}", cached.failed, expected.failed.len()),
    )?;
    let ids = counted.iter().map(|(id, _)| id).chain(&expected.failed);
    ensure(Some(&cached.first_run) == ids.min(), || {
        "first_run is not the first".into()
    })?;
    let recent: Vec<(i64, f64)> = cached
        .recent
        .iter()
        .map(|run| (run.ordinal, run.elapsed))
        .collect();
    ensure(
        recent == counted[counted.len().saturating_sub(RECENT_RUNS)..],
        || format!("recent {recent:?} of {counted:?}"),
    )?;
    let seconds: Vec<f64> = counted.iter().map(|(_, elapsed)| *elapsed).collect();
    let logs: Vec<f64> = seconds.iter().map(|elapsed| elapsed.ln()).collect();
    for (what, numbers, mean, m2) in [
        ("elapsed", seconds, cached.mean, cached.m2),
        ("log", logs, cached.log_mean, cached.log_m2),
    ] {
        let exact = two_passes(&numbers);
        ensure(close(mean, exact.0) && close(m2, exact.1), || {
            format!("{what}: mean {mean} and m2 {m2} instead of {exact:?}")
        })?;
    }
    Ok(())
}

/// Mean and sum of squared deviations, by their definitions.
fn two_passes(numbers: &[f64]) -> (f64, f64) {
    if numbers.is_empty() {
        return (0.0, 0.0);
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let m2 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    (mean, m2)
}

/// Equal to 1e-9 of the number; what is no more than rounding of zero is zero.
fn close(number: f64, exact: f64) -> bool {
    (number - exact).abs() <= 1e-9 * exact.abs() + 1e-20
}

/// What a suggestion is made from is the newest epoch, and its runs in flight in order.
async fn check_states(
    connection: &mut PgConnection,
    store: &Store,
    runs: &[Run],
) -> Result<(), String> {
    for study in store.studies(&StudyFilter::default()).await.unwrap() {
        let state = store.study_state(study.study_id).await.unwrap();
        let newest: (i64, i32) = sqlx::query_as(
            "select id, ordinal from epochs where study_id = $1 order by ordinal desc limit 1",
        )
        .bind(study.study_id)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
        ensure((state.epoch_id, state.epoch) == newest, || {
            "an old epoch's state".into()
        })?;
        let of_epoch = || runs.iter().filter(|run| run.epoch_id == state.epoch_id);
        let in_flight: Vec<_> = of_epoch()
            .filter(|run| run.state == "in_flight")
            .map(|run| &run.launched.0)
            .collect();
        let pending: Vec<_> = state
            .pending
            .iter()
            .map(|run| &run.parametrization)
            .collect();
        ensure(pending == in_flight, || {
            format!("pending {pending:?}, in flight {in_flight:?}")
        })?;
        let counted = of_epoch().filter(|run| run.state == "counted");
        ensure(
            study.counted == i64::try_from(counted.count()).unwrap(),
            || format!("the view counts {}", study.counted),
        )?;
    }
    Ok(())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
