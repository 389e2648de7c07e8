//! Counts of all studies and runs together, for monitoring the service.

use crate::error::{Named, StoreError};
use crate::pool::Store;

/// Counts of all studies and runs together. Words are as they are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// Numbers of studies by the phase of their last run (the first phase if they have none) and by
    /// the verdict on their gain.
    pub studies: Vec<(String, String, i64)>,
    /// Findings of the studies' present epochs, by kind.
    pub findings: Vec<(String, i64)>,
    /// Runs without a verdict.
    pub in_flight: i64,
    /// Seconds, by the database's clock, since the first report of the run that has waited longest
    /// for its verdict; 0 if none waits.
    pub longest_wait: f64,
    /// Node-seconds that exploring has taken today, by whose budget it is: the sums over all users, over
    /// all accounts, over all partitions, and of the site.
    pub exploring: Vec<(String, f64)>,
}

impl Store {
    /// Counts all studies and everything that waits. It reads each study once, so it is too slow
    /// for every request. `utc_offset`: as in [`Budgets`](crate::Budgets).
    pub async fn overview(&self, utc_offset: i32) -> Result<Overview, StoreError> {
        const NAME: &str = "overview";
        let mut snapshot = self.snapshot(NAME).await?;
        let studies = sqlx::query!(
            r#"select coalesce(r.phase, 'baseline') as "phase!", coalesce(s.assessment->'gain'->>'verdict', 'not_yet') as "verdict!",
                      count(*) as "studies!"
               from studies s
               join lateral (select id from epochs where study_id = s.id order by ordinal desc limit 1) e on true
               left join lateral (select phase from runs where epoch_id = e.id order by id desc limit 1) r on true
               group by 1, 2 order by 1, 2"#
        )
        .fetch_all(&mut *snapshot)
        .await
        .named(NAME)?;
        let findings = sqlx::query!(
            r#"select f->>'kind' as "kind!", count(*) as "findings!"
               from studies, jsonb_path_query(assessment, '$.findings[*]') f
               group by 1 order by 1"#
        )
        .fetch_all(&mut *snapshot)
        .await
        .named(NAME)?;
        let waiting = sqlx::query!(
            r#"select count(*) as "in_flight!",
                      coalesce(extract(epoch from now() - min(finished_at)), 0)::double precision as "longest!"
               from runs where state = 'in_flight'"#
        )
        .fetch_one(&mut *snapshot)
        .await
        .named(NAME)?;
        let exploring = sqlx::query!(
            r#"select budget_of, sum(node_seconds) as "node_seconds!" from exploring_spent
               where day = ((now() at time zone 'UTC') + make_interval(secs => $1))::date
               group by 1 order by 1"#,
            f64::from(utc_offset)
        )
        .fetch_all(&mut *snapshot)
        .await
        .named(NAME)?;
        let studies = studies
            .into_iter()
            .map(|row| (row.phase, row.verdict, row.studies));
        let findings = findings.into_iter().map(|row| (row.kind, row.findings));
        Ok(Overview {
            studies: studies.collect(),
            findings: findings.collect(),
            in_flight: waiting.in_flight,
            longest_wait: waiting.longest,
            exploring: exploring
                .into_iter()
                .map(|row| (row.budget_of, row.node_seconds))
                .collect(),
        })
    }
}
