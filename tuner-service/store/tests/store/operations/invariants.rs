//! The invariants of the tables, which must hold at any moment.

use std::collections::BTreeMap;

use io_autotune_model::{Parametrization, RECENT_RUNS, RecentRun};
use io_autotune_store::{Store, StudyFilter};
use sqlx::types::Json;
use sqlx::{FromRow, PgConnection};

/// A parametrization of an epoch.
type Entry = (i64, String);

/// A run.
#[derive(FromRow)]
struct Run {
    epoch_id: i64,
    launched: Json<Parametrization>,
    state: String,
    released: bool,
}

/// An epoch's knowledge of a run: the latest judgement, or the latest one of those taken from
/// another epoch.
#[derive(FromRow)]
struct Judged {
    epoch_id: i64,
    run_id: i64,
    effect: String,
    spoken_of: Option<Json<Parametrization>>,
    elapsed: Option<f64>,
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
    censored: Json<Vec<RecentRun>>,
    failed: i64,
    out_of_memory: i64,
    first_run: i64,
}

/// The runs that a cache's row must hold.
#[derive(Default)]
struct Expected {
    counted: Vec<(i64, f64)>,
    censored: Vec<(i64, f64)>,
    failed: Vec<i64>,
    out_of_memory: i64,
}

/// Queries for rows that must not exist.
const NOTHING: [(&str, &str); 15] = [
    (
        "the tally of an epoch that took no runs is the count of judged runs by role",
        "select e.id from epochs e left join runs r on r.epoch_id = e.id and r.state <> 'in_flight'
         where e.takes = 'nothing' group by e.id
         having (e.baseline, e.explored, e.controls, e.settled, e.settled_controls, e.proof, e.total)
             is distinct from (
             count(*) filter (where r.role = 'baseline'),
             count(*) filter (where r.role in ('design', 'search')),
             count(*) filter (where r.role = 'control' and r.phase <> 'settled'),
             count(*) filter (where r.role = 'settled' and r.phase = 'settled'),
             count(*) filter (where r.role = 'control' and r.phase = 'settled'),
             count(*) filter (where r.role = 'settled' and r.phase <> 'settled'),
             count(r.id))",
    ),
    (
        "judgements are numbered from 1 without a gap, and counted",
        "select e.id from epochs e left join judgements j on j.epoch_id = e.id
         group by e.id having e.judgements <> count(j.id)
             or count(j.id) > 0 and (min(j.ordinal) <> 1 or max(j.ordinal) <> count(j.id))",
    ),
    (
        "a recent run started when its run did",
        "select t.epoch_id from tested t cross join jsonb_array_elements(t.recent) recent
         left join runs r on r.id = (recent ->> 'ordinal')::bigint
         where (recent ->> 'started')::bigint is distinct from floor(extract(epoch from r.started_at))",
    ),
    (
        "a judged run is what its latest judgement says",
        "select r.id from runs r
         left join lateral (select * from judgements j where j.run_id = r.id order by id desc limit 1) j on true
         where (r.judged_ordinal, r.verdict, r.judged_at) is distinct from (j.ordinal, j.verdict, j.judged_at)
            or r.state <> case j.effect when 'sample' then 'counted' when 'censored' then 'censored'
                                        when 'failure' then 'not_counted' when 'out_of_memory' then 'not_counted' when 'nothing' then 'not_counted'
                                        else 'in_flight' end",
    ),
    (
        "a judgement speaks for its run's epoch",
        "select j.id from judgements j join runs r on r.id = j.run_id where r.epoch_id <> j.epoch_id",
    ),
    (
        "no run is judged again without reason",
        "select j.id from judgements j join judgements k on k.run_id = j.run_id and k.id > j.id
         where not exists (select from judgements l where l.run_id = j.run_id and l.id > j.id and l.id < k.id)
           and (j.effect, j.parametrization, j.elapsed, j.measures, j.verdict)
               is not distinct from (k.effect, k.parametrization, k.elapsed, k.measures, k.verdict)",
    ),
    (
        "of whose end nothing new was heard since, a counted run has COMPLETED and a censored one was cut short",
        "select id from runs where judged_changes = changes
             and (state = 'counted' and outcome is distinct from 'COMPLETED'
                  or state = 'censored' and outcome is distinct from 'TIMEOUT'
                  or state in ('counted', 'censored') and (elapsed is null or applied is null or finished_at is null))",
    ),
    (
        "a run's outcome is the best of its words",
        "select r.id from runs r
         left join lateral (select state, source from outcomes o where o.run_id = r.id
                            order by source = 'jobcomp' desc, source = 'sacct' desc, id desc limit 1) o on true
         where (r.outcome, r.outcome_source) is distinct from (o.state, o.source)",
    ),
    (
        "a word is joined to the run of its job and its restart, if there was one when it came or was claimed",
        "select o.id from outcomes o join runs r on r.id = o.run_id
         where (o.cluster, o.job_id, o.restart_count) <> (r.cluster, r.job_id, r.restart_count)",
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
         left join lateral (select action, detail from audit a where a.study_id = s.id and a.action <> 'accept'
                            order by a.id desc limit 1) last on true
         where (p.study_id is not null) is distinct from coalesce(last.action = 'pin', false)
            or p.parametrization <> last.detail -> 'parametrization'",
    ),
];

/// Checks all invariants. The error says which does not hold.
pub(crate) async fn check(connection: &mut PgConnection, store: &Store) -> Result<(), String> {
    for (what, query) in NOTHING {
        let broken: Vec<i64> = sqlx::query_scalar(query)
            .fetch_all(&mut *connection)
            .await
            .unwrap();
        ensure(broken.is_empty(), || format!("{what}: not for {broken:?}"))?;
    }
    let runs = runs(connection).await;
    check_caches(&judged(connection).await, cached(connection).await)?;
    let faults = store.check_caches().await.unwrap();
    ensure(faults.is_empty(), || format!("{faults:?}"))?;
    check_states(connection, store, &runs).await
}

/// How often the events happened that the lists are to test.
pub(crate) async fn happened(connection: &mut PgConnection) -> Vec<(String, i64)> {
    sqlx::query_as(
        "select 'counted', count(*) from runs where state = 'counted'
         union all select 'censored', count(*) from runs where state = 'censored'
         union all select 'failures', sum(failed)::bigint from tested
         union all select 'revisions', count(*) - count(distinct run_id) from judgements
         union all select 'epochs that took runs', count(*) from epochs where takes = 'runs'
             and exists (select from tested t where t.epoch_id = epochs.id)
         union all select 'second reports', count(*) from reports where node = 'n2'
         union all select 'parametrizations run twice', count(*) from tested where count > 1
         union all select 'epochs', count(*) from epochs
         union all select 'audit lines', count(*) from audit",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

/// Checks that the random lists together tested enough events.
pub(crate) fn enough_happened(lists: &[Vec<(String, i64)>]) {
    let least = [30, 9, 3, 15, 1, 9, 6, 9, 9];
    for (place, least) in least.into_iter().enumerate() {
        let what = &lists[0][place].0;
        let count: i64 = lists.iter().map(|list| list[place].1).sum();
        assert!(count >= least, "{what}: {count} of at least {least}");
    }
}

async fn runs(connection: &mut PgConnection) -> Vec<Run> {
    sqlx::query_as(
        "select epoch_id, parametrization as launched, state, released from runs order by id",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

/// Reads the judgements that count. In these tests every parametrization that runs fits all spaces.
async fn judged(connection: &mut PgConnection) -> Vec<Judged> {
    sqlx::query_as(
        "with recursive held (epoch_id, from_id, up_to) as (
             select id, id, judgements from epochs
             union all
             select h.epoch_id, e.parent_id, e.taken_judgements
             from held h join epochs e on e.id = h.from_id where e.takes = 'runs')
         select distinct on (h.epoch_id, j.run_id)
                h.epoch_id, j.run_id, j.effect, j.parametrization as spoken_of, j.elapsed
         from held h join judgements j on j.epoch_id = h.from_id and j.ordinal <= h.up_to
         order by h.epoch_id, j.run_id, j.ordinal desc",
    )
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

/// Checks that the caches equal a recomputation from the runs.
fn check_caches(runs: &[Judged], mut cached: BTreeMap<Entry, Cached>) -> Result<(), String> {
    let mut expected: BTreeMap<Entry, Expected> = BTreeMap::new();
    for run in runs {
        let Some(spoken_of) = &run.spoken_of else {
            continue;
        };
        let entry = expected.entry((run.epoch_id, spoken_of.key())).or_default();
        match (run.effect.as_str(), run.elapsed) {
            ("sample", Some(elapsed)) => entry.counted.push((run.run_id, elapsed)),
            ("censored", Some(elapsed)) => entry.censored.push((run.run_id, elapsed)),
            ("failure", None) => entry.failed.push(run.run_id),
            ("out_of_memory", None) => {
                entry.failed.push(run.run_id);
                entry.out_of_memory += 1;
            }
            other => return Err(format!("run {} was judged {other:?}", run.run_id)),
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
    ensure(cached.out_of_memory == expected.out_of_memory, || {
        format!(
            "out of memory {} of {}",
            cached.out_of_memory, expected.out_of_memory
        )
    })?;
    let timed = counted.iter().chain(&expected.censored);
    let ids = timed.map(|(id, _)| id).chain(&expected.failed);
    ensure(Some(&cached.first_run) == ids.min(), || {
        "first_run is not the first".into()
    })?;
    for (what, kept, of) in [
        ("recent", &cached.recent, counted),
        ("censored", &cached.censored, &expected.censored),
    ] {
        let kept: Vec<(i64, f64)> = kept.iter().map(|run| (run.ordinal, run.elapsed)).collect();
        ensure(kept == of[of.len().saturating_sub(RECENT_RUNS)..], || {
            format!("{what} {kept:?} of {of:?}")
        })?;
    }
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

/// Returns true if two numbers are equal to 1e-9 of the exact one; a rounding error of zero counts
/// as zero.
fn close(number: f64, exact: f64) -> bool {
    (number - exact).abs() <= 1e-9 * exact.abs() + 1e-20
}

/// Checks that a suggestion's state has the newest epoch, and its runs in flight in order.
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
        let waiting = || of_epoch().filter(|run| run.state == "in_flight");
        let mut holding: BTreeMap<&Parametrization, u64> = BTreeMap::new();
        for run in waiting().filter(|run| !run.released) {
            *holding.entry(&run.launched).or_default() += 1;
        }
        let mut pending: BTreeMap<&Parametrization, u64> = BTreeMap::new();
        for runs in &state.pending {
            *pending.entry(&runs.parametrization).or_default() += runs.count;
        }
        ensure(pending == holding, || {
            format!("pending {pending:?}, in flight and not released {holding:?}")
        })?;
        ensure(
            study.in_flight == i64::try_from(waiting().count()).unwrap(),
            || format!("the view has {} in flight", study.in_flight),
        )?;
        let replayed = store
            .history_at(state.epoch_id, state.judged)
            .await
            .unwrap();
        ensure(replayed == *state.history, || {
            format!("replayed {replayed:?}, cached {:?}", state.history)
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
