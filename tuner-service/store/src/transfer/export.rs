//! Exports studies, page by page. Runs in flight are left out, because they have no result yet.

use std::fmt;
use std::str::FromStr;

use futures_util::TryStreamExt;
use sqlx::types::Json;

use super::format::{EpochRecord, Record, ReportRecord, RunRecord, StudyRecord, line};
use crate::connections::Connection;
use crate::connections::Connections;
use crate::error::{Named, StoreError};
use crate::pool::Store;

const NAME: &str = "export";

/// The number of rows that are read at once. The following are the lines and the bytes with which a
/// page is full; for reports these are the bytes that the database stores.
const RUNS: i64 = 100;
const REPORTS: i64 = 200;
const LINES: usize = 200;
const BYTES: usize = 1 << 20;

/// The place where the next page of a study begins. Judgements after the first page are left out,
/// as are runs that were first judged since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    judgement: i64,
    run: i64,
    /// The last exported report; `None`: not all runs have been exported yet.
    report: Option<i64>,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.judgement, self.run)?;
        match self.report {
            Some(report) => write!(f, ".{report}"),
            None => Ok(()),
        }
    }
}

/// The error for a text that is not a [`Cursor`].
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not where a page begins: give what the page before said")]
pub struct NoCursor(String);

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Option<Vec<i64>> = text.split('.').map(|one| one.parse().ok()).collect();
        match numbers.as_deref() {
            Some([judgement, run]) => Ok(Self {
                judgement: *judgement,
                run: *run,
                report: None,
            }),
            Some([judgement, run, report]) => Ok(Self {
                judgement: *judgement,
                run: *run,
                report: Some(*report),
            }),
            _ => Err(NoCursor(text.to_owned())),
        }
    }
}

/// A page of a study.
#[derive(Clone, Debug)]
pub struct ExportPage {
    /// Lines of the format, without line ends.
    pub lines: Vec<String>,
    /// Where the next page begins; `None`: this is the last one.
    pub next: Option<Cursor>,
}

impl Store {
    /// Returns true if a page could reveal the role of a run in flight: on the first page if there
    /// is such a run, on a later one if it was started before a run that is exported. Each page
    /// checks this, because the client can send any cursor.
    pub async fn has_secrets(
        &self,
        study_id: i64,
        from: Option<Cursor>,
    ) -> Result<bool, StoreError> {
        sqlx::query_scalar!(
            r#"select exists (select from runs r join epochs e on e.id = r.epoch_id
                              where e.study_id = $1 and r.state = 'in_flight' and r.role in ('settled', 'control')
                                and (r.phase = 'settled' or coalesce(r.suggestion -> 'control_chance', 'null') <> 'null')
                                and ($2::bigint is null
                                     or r.id < (select max(j.run_id) from judgements j
                                                join epochs own on own.id = j.epoch_id
                                                where own.study_id = $1 and j.id <= $2))) as "secrets!""#,
            study_id,
            from.map(|from| from.judgement)
        )
        .fetch_one(&self.pool)
        .await
        .named(NAME)
    }

    /// A page of an existing study; the first one without a cursor.
    pub async fn export(
        &self,
        study_id: i64,
        from: Option<Cursor>,
    ) -> Result<ExportPage, StoreError> {
        let mut page = match from {
            None => {
                let mut snapshot = self.snapshot(NAME).await?;
                first(&mut snapshot, study_id).await?
            }
            Some(cursor) => self.export_after(study_id, cursor).await?,
        };
        // A small study is one page.
        while let Some(next) = page.next.filter(|_| page.lines.len() < LINES) {
            if page.lines.iter().map(String::len).sum::<usize>() >= BYTES {
                break;
            }
            let more = self.export_after(study_id, next).await?;
            page.lines.extend(more.lines);
            page.next = more.next;
        }
        Ok(page)
    }

    async fn export_after(&self, study_id: i64, from: Cursor) -> Result<ExportPage, StoreError> {
        match from.report {
            None => runs(&self.pool, study_id, from).await,
            Some(report) => reports(&self.pool, study_id, from, report).await,
        }
    }
}

/// The study and its epochs.
async fn first(connection: &mut Connection, study_id: i64) -> Result<ExportPage, StoreError> {
    let study = sqlx::query!(
        r#"select jsonb_build_object(
               'application', a.name, 'full_name', a.full_name, 'owner_uid', a.owner_uid, 'owner_name', a.owner_name,
               'accelerator', s.accelerator, 'context', s.context, 'created_at', s.created_at,
               'accepted', case when s.mixed_accepted_at is not null then jsonb_build_object(
                   'at', s.mixed_accepted_at, 'uid', s.mixed_accepted_by, 'why', s.mixed_accepted_why) end,
               'pin', (select jsonb_build_object('parametrization', p.parametrization, 'uid', p.uid, 'why', p.why,
                                                 'pinned_at', p.pinned_at, 'until', p.until)
                       from pins p where p.study_id = s.id),
               'assessment', s.assessment - 'shared' - 'overview' || '{"findings": []}') as "record!: Json<StudyRecord>",
               coalesce((select max(j.id) from judgements j join epochs e on e.id = j.epoch_id
                         where e.study_id = s.id), 0) as "judgement!"
           from studies s join applications a on a.id = s.application_id where s.id = $1"#,
        study_id
    )
    .fetch_one(&mut *connection)
    .await
    .named(NAME)?;
    let epochs = sqlx::query_scalar!(
        r#"select jsonb_build_object(
               'ordinal', e.ordinal, 'parent', parent.ordinal, 'takes', e.takes,
               'taken_judgements', e.taken_judgements, 'space', e.space, 'objective', e.objective, 'seed', e.seed,
               'opened_at', e.opened_at, 'opened_why', e.opened_why, 'inherited', e.inherited,
               'drift', case when e.drift #> '{drift,since}' is null then e.drift
                             else jsonb_set(e.drift, '{drift,since}', '0') end,
               'parameter_effects', e.parameter_effects,
               'evidence', e.evidence || jsonb_strip_nulls(jsonb_build_object(
                   'through', case when e.evidence ? 'through' then 0 end,
                   'since', case when e.evidence ? 'since' then 0 end)),
               'places', (select jsonb_build_object(
                   'through', count(*) filter (where to_jsonb(r.id) <= e.evidence -> 'through'),
                   'since', count(*) filter (where to_jsonb(r.id) <= e.evidence -> 'since'),
                   'drifted', count(*) filter (where to_jsonb(r.id) <= e.drift #> '{drift,since}'))
                   from runs r join epochs own on own.id = r.epoch_id
                   where own.study_id = e.study_id and r.judged_ordinal is not null and own.removed_at is null),
               'removed', case when e.removed_at is not null then jsonb_build_object(
                   'at', e.removed_at, 'through', e.removed_start, 'judgements', e.judgements,
                   'tally', jsonb_build_object(
                       'baseline', e.baseline, 'explored', e.explored, 'controls', e.controls, 'settled', e.settled,
                       'settled_controls', e.settled_controls, 'proof', e.proof, 'total', e.total)) end
               ) as "record!: Json<EpochRecord>"
           from epochs e left join epochs parent on parent.id = e.parent_id
           where e.study_id = $1 order by e.ordinal"#,
        study_id
    )
    .fetch_all(&mut *connection)
    .await
    .named(NAME)?;
    let mut lines = vec![line(&Record::Study(Box::new(study.record.0)))];
    let epochs = epochs.into_iter();
    lines.extend(epochs.map(|epoch| line(&Record::Epoch(Box::new(epoch.0)))));
    Ok(ExportPage {
        lines,
        next: Some(Cursor {
            judgement: study.judgement,
            run: 0,
            report: None,
        }),
    })
}

async fn runs(pool: &Connections, study_id: i64, from: Cursor) -> Result<ExportPage, StoreError> {
    let mut rows = sqlx::query!(
        r#"select r.id, jsonb_build_object(
               'epoch', e.ordinal, 'cluster', r.cluster, 'job_id', r.job_id, 'restart_count', r.restart_count,
               'generation', r.generation, 'sluid', r.sluid, 'uid', r.uid, 'node', r.node, 'nodes', r.nodes,
               'request', r.request, 'phase', r.phase, 'role', r.role, 'parametrization', r.parametrization,
               'reason', r.reason, 'delivery', r.delivery, 'directives', r.directives,
               -- The runs of others that it was made from stay here: a replay elsewhere says so. An order's number
               -- is another order's there.
               'suggestion', r.suggestion - '{others,sources,order}'::text[] || jsonb_strip_nulls(jsonb_build_object(
                   'others_elsewhere', jsonb_array_length(r.suggestion -> 'others'),
                   'sources_elsewhere', jsonb_array_length(r.suggestion -> 'sources'))),
               'started_at', r.started_at, 'finished_at', r.finished_at, 'elapsed', r.elapsed,
               'wait_status', r.wait_status, 'applied', r.applied, 'measures', r.measures, 'outcome', r.outcome,
               'outcome_at', r.outcome_at, 'outcome_source', r.outcome_source, 'suspended', r.suspended,
               'limit_seconds', r.limit_seconds, 'missing', r.missing, 'epilog', r.epilog,
               'unstarted', r.unstarted, 'released', r.released, 'dirty', r.dirty, 'listed_at', r.listed_at,
               'trimmed_at', r.trimmed_at,
               'awaits_verdict', r.changes > r.judged_changes
                   or exists (select from judgements j where j.run_id = r.id and j.id > $3),
               'surroundings', (select jsonb_build_object('at', s.at, 'slowness', s.slowness, 'runs', s.runs)
                   from surroundings s where s.cluster = r.cluster and s.at <= r.started_at
                     and s.at > r.started_at - interval '5 minutes' order by s.at desc limit 1),
               'judgements', (select jsonb_agg(jsonb_build_object(
                   'ordinal', j.ordinal, 'effect', j.effect, 'parametrization', j.parametrization,
                   'elapsed', j.elapsed, 'measures', j.measures, 'verdict', j.verdict, 'judged_at', j.judged_at,
                   'not_counted_because', j.not_counted_because)
                   order by j.ordinal) from judgements j where j.run_id = r.id and j.id <= $3),
               'outcomes', (select coalesce(jsonb_agg(jsonb_build_object(
                   'source', o.source, 'state', o.state, 'exit_code', o.exit_code,
                   'restart_count', o.restart_count, 'started_at', o.started_at, 'ended_at', o.ended_at,
                   'suspended_seconds', o.suspended_seconds, 'limit_seconds', o.limit_seconds,
                   'received_at', o.received_at, 'account', o.account, 'uid', o.uid, 'node_list', o.node_list)
                   order by o.id), '[]') from outcomes o where o.run_id = r.id)
               ) as "record!: Json<RunRecord>"
           from runs r join epochs e on e.id = r.epoch_id
           where e.study_id = $1 and r.id > $2 and e.removed_at is null
             and exists (select from judgements j where j.run_id = r.id and j.id <= $3)
           order by r.id limit $4"#,
        study_id,
        from.run,
        from.judgement,
        RUNS
    )
    .fetch(pool);
    let mut page = Page::default();
    let mut last = from.run;
    while let Some(row) = rows.try_next().await.named(NAME)? {
        last = row.id;
        page.add(&Record::Run(Box::new(row.record.0)));
        if page.is_full() {
            break;
        }
    }
    let more = page.is_full() || page.lines.len() as i64 == RUNS;
    Ok(ExportPage {
        lines: page.lines,
        next: Some(Cursor {
            run: if more { last } else { 0 },
            report: (!more).then_some(0),
            ..from
        }),
    })
}

async fn reports(
    pool: &Connections,
    study_id: i64,
    from: Cursor,
    after: i64,
) -> Result<ExportPage, StoreError> {
    let rows = sqlx::query!(
        r#"select said.run_id, said.id, said.candidates as "candidates!", jsonb_build_object(
               'launch', jsonb_build_object('cluster', r.cluster, 'job_id', r.job_id,
                                            'restart_count', r.restart_count, 'generation', r.generation),
               'node', body.node, 'body', body.body, 'received_at', body.received_at)
               as "record!: Json<ReportRecord>"
           from (select run_id, id, count(*) over () as candidates,
                        sum(size) over (order by run_id, id rows between unbounded preceding and 1 preceding) as before
                 from (select r.id as run_id, one.id, pg_column_size(one.body) as size
                       from reports one join runs r on r.id = one.run_id join epochs e on e.id = r.epoch_id
                       where e.study_id = $1 and (r.id, one.id) > ($2, $3) and e.removed_at is null
                         and exists (select from judgements j where j.run_id = r.id and j.id <= $4)
                       order by r.id, one.id limit $5) found) said
           join runs r on r.id = said.run_id join reports body on body.id = said.id
           where coalesce(said.before, 0) < $6
           order by said.run_id, said.id"#,
        study_id,
        from.run,
        after,
        from.judgement,
        REPORTS,
        BYTES as i64
    )
    .fetch_all(pool)
    .await
    .named(NAME)?;
    let last = rows.last().map(|row| (row.run_id, row.id));
    let candidates = rows.first().map_or(0, |row| row.candidates);
    let more = candidates == REPORTS || candidates > rows.len() as i64;
    let rows = rows.into_iter();
    Ok(ExportPage {
        lines: rows
            .map(|row| line(&Record::Report(Box::new(row.record.0))))
            .collect(),
        next: last.filter(|_| more).map(|(run, report)| Cursor {
            run,
            report: Some(report),
            ..from
        }),
    })
}

#[derive(Default)]
struct Page {
    lines: Vec<String>,
    bytes: usize,
}

impl Page {
    fn add(&mut self, record: &Record) {
        let line = line(record);
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn is_full(&self) -> bool {
        self.bytes >= BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_went_and_nothing_else_is_one() {
        for text in ["7.0", "7.12", "7.0.0", "9223372036854775807.1.2"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "7", "7.x", "1.2.3.4", "9223372036854775808.1"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
