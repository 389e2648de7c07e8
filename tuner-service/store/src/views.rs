//! Read-only views for status, history and explain.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use io_autotune_model::{
    Assessment, JobName, NotCountedBecause, OTHERS_RATIO, Objective, ParameterEffects,
    Parametrization, Pending, Phase, Pin, Role, Space,
};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::types::Json;

use crate::accounts::{Coordinated, Visible};
use crate::epoch_state::EpochOpening;
use crate::error::{Named, StoreError};
use crate::orders::{self, InForce, Ordered};
use crate::pool::Store;
use crate::records::{JobKey, number, objective, timestamp, word};

/// Selects studies. `None` selects all.
#[derive(Clone, Debug, Default)]
pub struct StudyFilter {
    /// The owner.
    pub owner_uid: Option<u32>,
    /// Visible studies of other users, in addition to the owner's or instead of everyone's.
    pub coordinated: Option<Coordinated>,
    /// The account that the study is charged to.
    pub account: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The study.
    pub study_id: Option<i64>,
    /// The application's name, or its full name.
    pub application: Option<String>,
    /// The accelerator.
    pub accelerator: Option<String>,
    /// The studies after this one, in order of application, owner, accelerator and number.
    pub after: Option<i64>,
    /// The most studies.
    pub limit: Option<i64>,
}

/// A study with the counts of its current epoch.
#[derive(Clone, Debug)]
pub struct StudyRow {
    /// The study.
    pub study_id: i64,
    /// The cluster.
    pub cluster: String,
    /// The application's name.
    pub application: String,
    /// The application's full name, if its name does not have all of it.
    pub full_name: Option<String>,
    /// The owner's uid.
    pub owner_uid: u32,
    /// The owner's login name, if known.
    pub owner_name: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The account of the latest run whose account is known.
    pub account: Option<String>,
    /// The study's context, which makes runs incomparable, such as nodes and partition.
    pub context: BTreeMap<String, String>,
    /// Counted runs.
    pub counted: i64,
    /// Censored runs.
    pub censored: i64,
    /// Ended runs that do not count.
    pub not_counted: i64,
    /// Runs in flight, whether they hold an exploring place or not.
    pub in_flight: i64,
    /// Runs started in the last seven days.
    pub lately: i64,
    /// The pin, if any.
    pub pin: Option<Pin>,
    /// The number of the current epoch, from 1.
    pub epoch: i32,
    /// How that epoch was opened.
    pub opened: EpochOpening,
    /// The space of that epoch.
    pub space: Space,
    /// The effects of that epoch's parameters.
    pub effects: ParameterEffects,
    /// The objective of that epoch.
    pub objective: Objective,
    /// The epoch's runs in flight that hold an exploring place.
    pub pending: Vec<Pending>,
    /// Time limit in seconds of its latest run with an outcome, if it has a known one.
    pub limit_seconds: Option<u64>,
    /// True if an admin or the owner accepted mixed work.
    pub accepts_mixed: bool,
    /// The effect of the orders in force, besides the own pin.
    pub ordered: Ordered,
    /// The assessment at the epoch's last verdict; none before the first.
    pub assessment: Option<Assessment>,
    /// The engine and the settings that the study was assessed by.
    pub assessed_by: Option<String>,
}

impl StudyRow {
    /// The parametrization of every run, if the study is pinned, by its own pin or by an order.
    #[must_use]
    pub fn pinned(&self) -> Option<&Parametrization> {
        let own = self.pin.as_ref().map(|pin| &pin.parametrization);
        own.or(self.ordered.pin.as_ref())
    }

    /// The site's default with which the study's exploring begins, if any.
    #[must_use]
    pub fn site_default(&self) -> Option<Parametrization> {
        self.begins_with(self.ordered.site_default.as_ref()?)
    }

    /// The same if this were the site's default.
    #[must_use]
    pub fn begins_with(&self, site_default: &Parametrization) -> Option<Parametrization> {
        orders::begins_with(site_default, &self.opened, &self.space, &self.effects)
    }
}

/// Selects runs. `None` selects all.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// The owner.
    pub owner_uid: Option<u32>,
    /// Runs of visible studies of other users, in addition to the owner's or instead of everyone's.
    pub coordinated: Option<Coordinated>,
    /// The account that the study is charged to.
    pub account: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The study.
    pub study_id: Option<i64>,
    /// The application's name, or its full name.
    pub application: Option<String>,
    /// The accelerator.
    pub accelerator: Option<String>,
    /// The job, on all clusters or the given one, with all restarts.
    pub job_id: Option<u32>,
    /// `in_flight`, `counted`, `censored` or `not_counted`.
    pub state: Option<String>,
    /// Runs that do not count for this reason.
    pub not_counted_because: Option<NotCountedBecause>,
    /// Runs that started at this time or later.
    pub since: Option<Timestamp>,
    /// Runs that started before this time.
    pub until: Option<Timestamp>,
    /// Runs before this one.
    pub before: Option<i64>,
    /// The most runs, the newest ones.
    pub limit: i64,
    /// True to read request, suggestion and delivery as well, which are long; otherwise they are
    /// null.
    pub in_full: bool,
}

/// The most steps of a report that are shown to people.
const STEPS_SHOWN: i32 = 500;

/// The most reports of a run that are shown to people.
const REPORTS_SHOWN: i64 = 64;

/// A run.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// The run.
    pub run_id: i64,
    /// The run's study.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// The application's full name, if its name does not have all of it.
    pub full_name: Option<String>,
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The epoch's number.
    pub epoch: i32,
    /// The time when the epoch was opened.
    pub epoch_opened_at: Timestamp,
    /// The reason why it was opened, in one sentence.
    pub epoch_opened_why: String,
    /// The objective of the epoch.
    pub objective: Objective,
    /// The epoch's space, shared by its runs.
    pub space: Arc<Space>,
    /// The job.
    pub job: JobKey,
    /// The user's request, as stored.
    pub request: Value,
    /// The node that started it.
    pub node: String,
    /// The number of nodes, if known.
    pub nodes: Option<u32>,
    /// The study's phase at the start.
    pub phase: Phase,
    /// The run's role in the phase.
    pub role: Role,
    /// True if it was drawn whether the run is a control run, and it has no verdict yet.
    pub label_pends: bool,
    /// True if the run, or one started before it in its epoch, has such a pending label: its reason
    /// and its suggestion reveal what was in flight.
    pub inputs_pend: bool,
    /// The parametrization that it was launched with.
    pub parametrization: Parametrization,
    /// The reason, in one sentence.
    pub reason: String,
    /// All inputs of the suggestion.
    pub suggestion: Value,
    /// How the parametrization was delivered.
    pub delivery: Value,
    /// `in_flight`, `counted`, `censored` or `not_counted`.
    pub state: String,
    /// The reason why it counts or does not.
    pub verdict: Option<String>,
    /// The reason why it does not count, from the list; `None` also if an earlier release judged
    /// it.
    pub not_counted_because: Option<NotCountedBecause>,
    /// Slurm's state at its end.
    pub outcome: Option<String>,
    /// The settings that were applied, as stored.
    pub applied: Option<Value>,
    /// Elapsed, in seconds.
    pub elapsed: Option<f64>,
    /// The batch step's wait status; without a batch step the first step's that is not 0, otherwise
    /// 0.
    pub wait_status: Option<i32>,
    /// Positive numbers that the job reported, by name.
    pub measures: BTreeMap<String, f64>,
    /// The start.
    pub started_at: Timestamp,
    /// The arrival of its first report.
    pub finished_at: Option<Timestamp>,
}

impl Store {
    /// Studies, ordered by application, owner, accelerator and id.
    pub async fn studies(&self, filter: &StudyFilter) -> Result<Vec<StudyRow>, StoreError> {
        const NAME: &str = "studies";
        let visible = Visible::of(filter.owner_uid, filter.coordinated.as_ref());
        let rows = sqlx::query!(
            r#"with page as materialized (
                   -- First which, so that nothing is counted of a study that is not shown.
                   select s.id, s.cluster, a.name, a.full_name, a.owner_uid, a.owner_name, s.accelerator, c.account, s.context,
                          s.mixed_accepted_at is not null as accepts_mixed, s.assessment, s.assessed_by
                   from studies s
                   join applications a on a.id = s.application_id
                   left join study_accounts c on c.study_id = s.id
                   where ($7::bigint[] is null or (a.owner_uid = any($7) and (a.owner_uid = $1 or (c.cluster, a.owner_uid, c.account)
                              in (select * from unnest($8::text[], $9::bigint[], $10::text[])))))
                     and ($11::text is null or c.account = $11) and ($12::text is null or s.cluster = $12)
                     and ($2::bigint is null or s.id = $2)
                     and ($3::text is null or a.name = $3 or a.full_name = $3) and ($4::text is null or s.accelerator = $4)
                     -- The first of these two can be looked up in an index.
                     and ($5::bigint is null or (a.name, a.owner_uid) >=
                          (select la.name, la.owner_uid
                           from studies ls join applications la on la.id = ls.application_id where ls.id = $5))
                     and ($5::bigint is null or (a.name, a.owner_uid, s.accelerator, s.id) >
                          (select la.name, la.owner_uid, ls.accelerator, ls.id
                           from studies ls join applications la on la.id = ls.application_id where ls.id = $5))
                   order by a.name, a.owner_uid, s.accelerator, s.id limit $6)
               select s.id, coalesce(s.cluster, '') as "cluster!", s.name, s.full_name, s.owner_uid, s.owner_name, s.accelerator,
                      s.account as "account?",
                      s.context as "context: Json<BTreeMap<String, String>>",
                      p.parametrization as "pin?: Json<Parametrization>", p.uid as "pin_uid?", p.why as "pin_why?",
                      case when p.uid is not null then
                          (select n.owner_name from applications n where n.owner_uid = p.uid
                           and n.owner_name is not null order by n.id desc limit 1) end as "pin_user?",
                      (extract(epoch from p.pinned_at) * 1000000)::bigint as pinned_at,
                      (extract(epoch from p.until) * 1000000)::bigint as pinned_until,
                      n.lately as "lately!", n.counted as "counted!", n.censored as "censored!", n.not_counted as "not_counted!",
                      n.in_flight as "in_flight!",
                      e.ordinal as epoch, (extract(epoch from e.opened_at) * 1000000)::bigint as "opened_at!", e.opened_why,
                      e.takes, e.drift, e.space as "space: Json<Space>", e.objective,
                      e.parameter_effects as "parameter_effects: Json<ParameterEffects>",
                      s.accepts_mixed as "accepts_mixed!", s.assessed_by,
                      case when s.assessment->'epoch' = to_jsonb(e.ordinal) then s.assessment end as "assessment: Json<Assessment>",
                      coalesce((select jsonb_agg(jsonb_build_object('id', o.id, 'kind', o.kind, 'given', o.given)
                                                  order by o.specificity desc, o.id desc)
                                from orders_in_force o where o.of_study = s.id), '[]') as "orders!: Json<Vec<InForce>>",
                      (select r.limit_seconds from runs r
                       where r.epoch_id = e.id and r.outcome is not null and r.outcome <> 'REQUEUED'
                       order by r.id desc limit 1) as limit_seconds,
                      case when n.in_flight > 0 then
                          coalesce((select jsonb_agg(jsonb_build_object('parametrization', parametrization, 'phase', phase,
                                                                        'role', role, 'count', count) order by first)
                                    from (select r.parametrization, r.phase, r.role, count(*) as count, min(r.id) as first
                                          from runs r where r.epoch_id = e.id and r.state = 'in_flight' and not r.released
                                          group by r.parametrization, r.phase, r.role) flying), '[]')
                          else '[]' end as "pending!: Json<Vec<Pending>>"
               from page s
               left join pins p on p.study_id = s.id and (p.until is null or p.until > now())
               join lateral (select id, ordinal, opened_at, opened_why, takes, drift, space, objective, parameter_effects
                             from epochs e where e.study_id = s.id order by ordinal desc limit 1) e on true
               join lateral (select count(*) filter (where state = 'counted') as counted,
                                    count(*) filter (where state = 'censored') as censored,
                                    count(*) filter (where state = 'in_flight') as in_flight,
                                    count(*) filter (where state = 'not_counted') as not_counted,
                                    count(*) filter (where started_at > now() - interval '7 days') as lately
                             from runs r where r.epoch_id = e.id) n on true
               order by s.name, s.owner_uid, s.accelerator, s.id"#,
            visible.own,
            filter.study_id,
            filter.application,
            filter.accelerator,
            filter.after,
            filter.limit,
            visible.owners.as_deref(),
            &visible.clusters,
            &visible.members,
            &visible.accounts,
            filter.account,
            filter.cluster
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                let pin = match (row.pin, row.pin_uid, row.pin_why, row.pinned_at) {
                    (Some(parametrization), Some(uid), Some(why), Some(at)) => Some(Pin {
                        parametrization: parametrization.0,
                        uid: number(NAME, uid)?,
                        user: row.pin_user,
                        at: timestamp(NAME, at)?,
                        why,
                        until: row.pinned_until.map(|at| timestamp(NAME, at)).transpose()?,
                    }),
                    _ => None,
                };
                let space = row.space.0;
                Ok(StudyRow {
                    ordered: Ordered::of(&row.orders.0, &space, pin.is_some()),
                    space,
                    epoch: row.epoch,
                    opened: EpochOpening {
                        at: timestamp(NAME, row.opened_at)?,
                        why: row.opened_why,
                        takes: row.takes,
                        drift: row.drift,
                    },
                    effects: row.parameter_effects.0,
                    objective: objective(NAME, &row.objective)?,
                    pending: row.pending.0,
                    limit_seconds: row
                        .limit_seconds
                        .map(|seconds| number(NAME, seconds))
                        .transpose()?,
                    accepts_mixed: row.accepts_mixed,
                    assessment: row.assessment.map(|one| one.0),
                    assessed_by: row.assessed_by,
                    study_id: row.id,
                    cluster: row.cluster,
                    application: row.name,
                    full_name: row.full_name,
                    owner_uid: number(NAME, row.owner_uid)?,
                    owner_name: row.owner_name,
                    accelerator: row.accelerator,
                    account: row.account,
                    context: row.context.0,
                    counted: row.counted,
                    censored: row.censored,
                    not_counted: row.not_counted,
                    in_flight: row.in_flight,
                    lately: row.lately,
                    pin,
                })
            })
            .collect()
    }

    /// The newest `limit` runs, oldest first.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        const NAME: &str = "runs";
        let visible = Visible::of(filter.owner_uid, filter.coordinated.as_ref());
        let rows = sqlx::query!(
            r#"select r.id, r.epoch_id, e.study_id, a.name, a.full_name, a.owner_uid, a.owner_name, s.accelerator, r.nodes,
                      e.ordinal as epoch,
                      (extract(epoch from e.opened_at) * 1000000)::bigint as "epoch_opened_at!",
                      e.opened_why as epoch_opened_why, e.objective,
                      r.cluster, r.job_id, r.restart_count, r.node, r.phase, r.role,
                      r.state = 'in_flight' and r.role in ('settled', 'control') and (r.phase = 'settled' or coalesce(r.suggestion -> 'control_chance', 'null') <> 'null') as "label_pends!",
                      exists (select from runs f
                              where f.epoch_id = r.epoch_id and f.id <= r.id and f.state = 'in_flight'
                                and f.role in ('settled', 'control')
                                and (f.phase = 'settled' or coalesce(f.suggestion -> 'control_chance', 'null') <> 'null')) as "inputs_pend!",
                      case when $7 then r.request else 'null' end as "request!",
                      case when $7 then r.suggestion else 'null' end as "suggestion!",
                      case when $7 then r.delivery else 'null' end as "delivery!",
                      r.parametrization as "parametrization: Json<Parametrization>", r.reason, r.state, r.verdict, r.outcome, r.applied, r.elapsed, r.wait_status,
                      r.measures || jsonb_strip_nulls(jsonb_build_object($18::text, j.measures -> $18::text)) as "measures!: Json<BTreeMap<String, f64>>",
                      j.not_counted_because as "not_counted_because?",
                      (extract(epoch from r.started_at) * 1000000)::bigint as "started_at!",
                      (extract(epoch from r.finished_at) * 1000000)::bigint as finished_at
               from runs r
               join epochs e on e.id = r.epoch_id
               join studies s on s.id = e.study_id
               join applications a on a.id = s.application_id
               left join study_accounts c on c.study_id = s.id
               left join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
               where ($12::bigint[] is null or (a.owner_uid = any($12) and (a.owner_uid = $1 or (c.cluster, a.owner_uid, c.account)
                          in (select * from unnest($13::text[], $14::bigint[], $15::text[])))))
                 and ($16::text is null or c.account = $16) and ($17::text is null or r.cluster = $17)
                 and ($2::bigint is null or s.id = $2)
                 and ($3::text is null or a.name = $3 or a.full_name = $3) and ($4::bigint is null or r.job_id = $4)
                 and ($5::bigint is null or r.id < $5)
                 and ($8::text is null or s.accelerator = $8) and ($9::text is null or r.state = $9)
                 and ($19::text is null or j.not_counted_because = $19)
                 and ($10::bigint is null or r.started_at >= to_timestamp($10::bigint / 1e6))
                 and ($11::bigint is null or r.started_at < to_timestamp($11::bigint / 1e6))
               order by r.id desc limit $6"#,
            visible.own,
            filter.study_id,
            filter.application,
            filter.job_id.map(i64::from),
            filter.before,
            filter.limit,
            filter.in_full,
            filter.accelerator,
            filter.state,
            filter.since.map(Timestamp::as_microsecond),
            filter.until.map(Timestamp::as_microsecond),
            visible.owners.as_deref(),
            &visible.clusters,
            &visible.members,
            &visible.accounts,
            filter.account,
            filter.cluster,
            OTHERS_RATIO,
            filter.not_counted_because.map(NotCountedBecause::as_str)
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        let epochs: BTreeSet<i64> = rows.iter().map(|row| row.epoch_id).collect();
        let spaces = self.spaces(NAME, &Vec::from_iter(epochs)).await?;
        let space_of = |epoch_id: i64| {
            let space = spaces.get(&epoch_id).map(Arc::clone);
            space.ok_or_else(|| {
                StoreError::invariant(NAME, format!("epoch {epoch_id} of a run is gone"))
            })
        };
        let rows: Result<Vec<RunRow>, StoreError> = rows
            .into_iter()
            .rev()
            .map(|row| {
                Ok(RunRow {
                    run_id: row.id,
                    study_id: row.study_id,
                    application: row.name,
                    full_name: row.full_name,
                    uid: number(NAME, row.owner_uid)?,
                    user: row.owner_name,
                    accelerator: row.accelerator,
                    epoch: row.epoch,
                    epoch_opened_at: timestamp(NAME, row.epoch_opened_at)?,
                    epoch_opened_why: row.epoch_opened_why,
                    objective: objective(NAME, &row.objective)?,
                    space: space_of(row.epoch_id)?,
                    job: JobKey {
                        cluster: row.cluster,
                        job_id: number(NAME, row.job_id)?,
                        restart_count: number(NAME, row.restart_count)?,
                    },
                    request: row.request,
                    node: row.node,
                    nodes: row.nodes.map(|nodes| number(NAME, nodes)).transpose()?,
                    phase: word(NAME, &row.phase)?,
                    role: word(NAME, &row.role)?,
                    label_pends: row.label_pends,
                    inputs_pend: row.inputs_pend,
                    parametrization: row.parametrization.0,
                    reason: row.reason,
                    suggestion: row.suggestion,
                    delivery: row.delivery,
                    state: row.state,
                    verdict: row.verdict,
                    not_counted_because: row
                        .not_counted_because
                        .and_then(|because| because.parse().ok()),
                    outcome: row.outcome,
                    applied: row.applied,
                    elapsed: row.elapsed,
                    wait_status: row.wait_status,
                    measures: row.measures.0,
                    started_at: timestamp(NAME, row.started_at)?,
                    finished_at: row.finished_at.map(|at| timestamp(NAME, at)).transpose()?,
                })
            })
            .collect();
        rows
    }

    /// The spaces of some epochs, each read once because it is long and many runs share it.
    pub(crate) async fn spaces(
        &self,
        name: &'static str,
        epochs: &[i64],
    ) -> Result<HashMap<i64, Arc<Space>>, StoreError> {
        let rows = sqlx::query!(
            r#"select id, space as "space: Json<Space>" from epochs where id = any($1)"#,
            epochs
        )
        .fetch_all(&self.pool)
        .await
        .named(name)?;
        let spaces = rows.into_iter().map(|row| (row.id, Arc::new(row.space.0)));
        Ok(spaces.collect())
    }

    /// The job names of the runs that started within `within`, the most frequent `limit` of them.
    pub async fn job_names(
        &self,
        owner_uid: Option<u32>,
        within: Duration,
        limit: i64,
    ) -> Result<Vec<JobName>, StoreError> {
        const NAME: &str = "job_names";
        let rows = sqlx::query!(
            r#"select a.owner_uid, a.owner_name, a.name, a.full_name, r.request ->> 'job_name' as job_name,
                      r.request ->> 'comment' as comment, count(*) as "runs!"
               from runs r
               join epochs e on e.id = r.epoch_id
               join studies s on s.id = e.study_id
               join applications a on a.id = s.application_id
               where ($1::bigint is null or a.owner_uid = $1)
                 and r.started_at >= now() - make_interval(secs => $2)
               group by a.id, job_name, comment
               order by count(*) desc, a.owner_uid, a.name, job_name, comment limit $3"#,
            owner_uid.map(i64::from),
            within.as_secs_f64(),
            limit
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        rows.into_iter()
            .map(|row| {
                Ok(JobName {
                    uid: number(NAME, row.owner_uid)?,
                    user: row.owner_name,
                    application: row.name,
                    full_name: row.full_name,
                    job_name: row.job_name,
                    comment: row.comment,
                    runs: row.runs,
                })
            })
            .collect()
    }

    /// A run's first node reports, in order of arrival, as shown to people. Reports with very many
    /// steps are returned without them.
    pub async fn reports(&self, run_id: i64) -> Result<Vec<Value>, StoreError> {
        const NAME: &str = "reports";
        sqlx::query_scalar!(
            r#"select case when jsonb_array_length(coalesce(body -> 'steps', '[]')) > $2
                           then body - 'steps' else body end as "body!"
               from reports where run_id = $1 order by id limit $3"#,
            run_id,
            STEPS_SHOWN,
            REPORTS_SHOWN
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)
    }

    /// Reads the node reports of several runs, run after run, because together they may be larger
    /// than memory. `add` gets them one by one, in order of arrival, and `done` gets the result of
    /// each run.
    pub async fn read_reports<R: Default>(
        &self,
        run_ids: &[i64],
        mut add: impl FnMut(i64, &mut R, Value),
        mut done: impl FnMut(i64, R),
    ) -> Result<(), StoreError> {
        const NAME: &str = "read_reports";
        // One after the other, because together they may be larger than memory.
        let mut connection = self.pool.acquire().await.named(NAME)?;
        let mut rows = sqlx::query!(
            "select run_id, body from reports where run_id = any($1) order by run_id, id",
            run_ids
        )
        .fetch(&mut connection);
        let mut reading: Option<(i64, R)> = None;
        while let Some(row) = rows.try_next().await.named(NAME)? {
            let (mut run_id, mut reports) = reading.take().unwrap_or((row.run_id, R::default()));
            if run_id != row.run_id {
                done(run_id, std::mem::take(&mut reports));
                run_id = row.run_id;
            }
            add(run_id, &mut reports, row.body);
            reading = Some((run_id, reports));
        }
        if let Some((run_id, reports)) = reading {
            done(run_id, reports);
        }
        drop(rows);
        connection.finish().await.named(NAME)
    }
}
