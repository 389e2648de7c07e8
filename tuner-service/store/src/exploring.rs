//! What exploring takes on a day, for the site's budgets.
//!
//! Each user, account, partition and the site that has a budget has a counter for each day. An
//! exploring start adds what it is expected to take, in the transaction that starts the run, and only
//! where all counters have room, so that no number of starts at once exceeds a budget. Counters are
//! written last and in one order, what most starts have in common last, so that it is locked only
//! while the transaction commits. After the verdict, what the run took replaces what was expected.

use std::collections::BTreeMap;
use std::time::Duration;

use io_autotune_model::BudgetOf;

use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::word;

/// The budgets for exploring of each user, of each account and partition of a cluster, and of the
/// site: node-seconds of a day; `None`: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budgets {
    /// Of each user, on all clusters.
    pub user: Option<f64>,
    /// Of each account.
    pub account: Option<f64>,
    /// Of each partition.
    pub partition: Option<f64>,
    /// Of the site.
    pub site: Option<f64>,
    /// Seconds by which the clock whose midnight begins a day is ahead of UTC.
    pub utc_offset: i32,
}

impl Budgets {
    /// A budget, in node-seconds of a day.
    #[must_use]
    pub fn of(&self, of: BudgetOf) -> Option<f64> {
        match of {
            BudgetOf::User => self.user,
            BudgetOf::Account => self.account,
            BudgetOf::Partition => self.partition,
            BudgetOf::Site => self.site,
        }
    }

    /// The budget to which a run is charged, and whether it has room for so many node-seconds; `None`:
    /// there is none.
    #[must_use]
    pub fn room(&self, payer: &Spent, cost: f64) -> Option<(f64, bool)> {
        let budget = self.of(payer.of)?;
        Some((budget, payer.node_seconds + cost <= budget))
    }

    /// Returns true if there is any budget.
    #[must_use]
    pub fn bound_anything(&self) -> bool {
        BudgetOf::ALL.iter().any(|of| self.of(*of).is_some())
    }
}

/// What exploring has taken today, of one that a study's runs are charged to.
#[derive(Clone, Debug, PartialEq)]
pub struct Spent {
    /// What it is.
    pub of: BudgetOf,
    /// The cluster of an account or a partition; otherwise empty.
    pub cluster: String,
    /// The uid, the account or the partition; empty for the site.
    pub name: String,
    /// Node-seconds, with those that runs in flight are expected to take.
    pub node_seconds: f64,
}

/// Days for which counters are kept.
const KEPT_DAYS: i32 = 400;

/// Charges per call of [`Store::settle_exploring`].
const CHARGES_AT_ONCE: i64 = 4000;

impl Store {
    /// What exploring has taken today of those that the runs of these studies are charged to, whether
    /// they have a budget or not. An account only if the study's is known.
    pub async fn exploring_spent(
        &self,
        studies: &[i64],
        utc_offset: i32,
    ) -> Result<BTreeMap<i64, Vec<Spent>>, StoreError> {
        const NAME: &str = "exploring_spent";
        let mut connection = self.pool.acquire().await.named(NAME)?;
        spent(&mut connection, NAME, studies, utc_offset).await
    }

    /// Puts what ended runs have taken in the place of what they were charged. Replicas may do so at
    /// the same time.
    pub async fn settle_exploring(&self) -> Result<(), StoreError> {
        const NAME: &str = "settle_exploring";
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        sqlx::query!(
            "with ended as materialized (
                 select c.run_id, c.budget_of, c.day, c.cluster, c.name, c.node_seconds,
                        coalesce(r.nodes, 1) * coalesce(
                            r.elapsed,
                            (select max(extract(epoch from o.ended_at - o.started_at))::double precision
                             from outcomes o where o.run_id = r.id and o.ended_at >= o.started_at)) as took
                 from exploring_charges c left join runs r on r.id = c.run_id
                 where r.id is null or r.state <> 'in_flight'
                 order by c.run_id, c.budget_of limit $1 for update of c skip locked
             ), gone as (
                 delete from exploring_charges c using ended e
                 where c.run_id = e.run_id and c.budget_of = e.budget_of
             )
             insert into exploring_spent as s (day, budget_of, cluster, name, node_seconds)
             select day, budget_of, cluster, name, sum(coalesce(took, node_seconds) - node_seconds)
             from ended group by day, budget_of, cluster, name
             -- In the order in which starts add to them.
             order by day, array_position($2::text[], budget_of), cluster, name
             on conflict (day, budget_of, cluster, name)
                 do update set node_seconds = greatest(s.node_seconds + excluded.node_seconds, 0)",
            CHARGES_AT_ONCE,
            &order()
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        transaction.commit().await.named(NAME)
    }

    /// Forgets counters of long ago.
    pub async fn forget_exploring(&self) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from exploring_spent where day < now()::date - $1::integer",
            KEPT_DAYS
        )
        .execute(&self.pool)
        .await
        .named("forget_exploring")?;
        Ok(())
    }
}

/// The order in which counters are written.
fn order() -> Vec<String> {
    BudgetOf::ALL.iter().map(ToString::to_string).collect()
}

/// [`Store::exploring_spent`].
pub(crate) async fn spent(
    connection: &mut Connection,
    name: &'static str,
    studies: &[i64],
    utc_offset: i32,
) -> Result<BTreeMap<i64, Vec<Spent>>, StoreError> {
    let rows = sqlx::query!(
        r#"select s.id as "study_id!", k.budget_of as "budget_of!", k.cluster as "cluster!", k.name as "name!",
                  coalesce(e.node_seconds, 0) as "node_seconds!"
           from studies s
           join applications a on a.id = s.application_id
           left join study_accounts c on c.study_id = s.id
           cross join lateral (values ('user', '', a.owner_uid::text), ('account', c.cluster, c.account),
                                      ('partition', s.cluster, s.context ->> 'partition'), ('site', '', ''))
               as k (budget_of, cluster, name)
           left join exploring_spent e
               on e.day = ((now() at time zone 'UTC') + make_interval(secs => $2))::date
              and e.budget_of = k.budget_of and e.cluster = k.cluster and e.name = k.name
           where s.id = any($1) and k.name is not null and k.cluster is not null
           order by s.id, array_position($3::text[], k.budget_of)"#,
        studies,
        f64::from(utc_offset),
        &order()
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let mut spent: BTreeMap<i64, Vec<Spent>> = BTreeMap::new();
    for row in rows {
        spent.entry(row.study_id).or_default().push(Spent {
            of: word(name, &row.budget_of)?,
            cluster: row.cluster,
            name: row.name,
            node_seconds: row.node_seconds,
        });
    }
    Ok(spent)
}

/// Charges a run to those of `payers` that have a budget. Returns false if one of them has no room
/// any more; the caller must then drop the transaction. To be called last: it holds the counters
/// until the transaction ends.
pub(crate) async fn charge(
    connection: &mut Connection,
    name: &'static str,
    run_id: i64,
    node_seconds: f64,
    payers: &[Spent],
    budgets: &Budgets,
) -> Result<bool, StoreError> {
    let bound: Vec<(&Spent, f64)> = payers
        .iter()
        .filter_map(|payer| Some((payer, budgets.of(payer.of)?)))
        .collect();
    if bound.is_empty() {
        return Ok(true);
    }
    let column = |of: &dyn Fn(&Spent) -> String| -> Vec<String> {
        bound.iter().map(|(payer, _)| of(payer)).collect()
    };
    let most: Vec<f64> = bound.iter().map(|(_, budget)| *budget).collect();
    let result = sqlx::query!(
        // The update waits for a transaction that has the counter, and then sees what that has added.
        "with charged as (
             insert into exploring_spent as s (day, budget_of, cluster, name, node_seconds)
             select ((now() at time zone 'UTC') + make_interval(secs => $3))::date, w.budget_of, w.cluster, w.name, $2
             from unnest($4::text[], $5::text[], $6::text[], $7::double precision[])
                 with ordinality as w (budget_of, cluster, name, most, place)
             where $2 <= w.most order by w.place
             on conflict (day, budget_of, cluster, name)
                 do update set node_seconds = s.node_seconds + excluded.node_seconds
                 where s.node_seconds + excluded.node_seconds
                     <= (select w.most from unnest($4::text[], $7::double precision[]) as w (budget_of, most)
                         where w.budget_of = excluded.budget_of)
             returning s.day, s.budget_of, s.cluster, s.name
         )
         insert into exploring_charges (run_id, budget_of, day, cluster, name, node_seconds)
         select $1, budget_of, day, cluster, name, $2 from charged",
        run_id,
        node_seconds,
        f64::from(budgets.utc_offset),
        &column(&|payer| payer.of.to_string()),
        &column(&|payer| payer.cluster.clone()),
        &column(&|payer| payer.name.clone()),
        &most
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(result.rows_affected() == bound.len() as u64)
}
