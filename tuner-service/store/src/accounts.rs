//! The account that a study is charged to, and the visibility that follows from it.

use crate::connections::Connection;
use crate::error::{Named, StoreError};

/// Studies of other users that are visible to a coordinator: those that members of an account
/// charge to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinated {
    /// Clusters, members there and their accounts.
    pub members: Vec<(String, u32, String)>,
}

/// The owners whose studies are visible, in the form that queries take.
pub(crate) struct Visible {
    /// All owners who may have a visible study; `None`: everyone's studies are visible.
    pub(crate) owners: Option<Vec<i64>>,
    /// The owner whose studies are visible, whatever account they are charged to.
    pub(crate) own: Option<i64>,
    /// Clusters, members and accounts are parallel arrays with one entry per membership.
    pub(crate) clusters: Vec<String>,
    pub(crate) members: Vec<i64>,
    pub(crate) accounts: Vec<String>,
}

impl Visible {
    pub(crate) fn of(own: Option<u32>, coordinated: Option<&Coordinated>) -> Self {
        let own = own.map(i64::from);
        let coordinated_members = coordinated.map_or(&[][..], |coordinated| &coordinated.members);
        let (mut clusters, mut members, mut accounts) = (Vec::new(), Vec::new(), Vec::new());
        for (cluster, uid, account) in coordinated_members {
            clusters.push(cluster.clone());
            members.push(i64::from(*uid));
            accounts.push(account.clone());
        }
        let is_everyone = own.is_none() && coordinated.is_none();
        Self {
            owners: (!is_everyone).then(|| own.into_iter().chain(members.clone()).collect()),
            own,
            clusters,
            members,
            accounts,
        }
    }
}

/// Stores the account of these runs' studies. The latest run with an account decides for a study; a
/// record of a job that another user owned is ignored.
pub(crate) async fn remember(
    connection: &mut Connection,
    name: &'static str,
    runs: &[i64],
) -> Result<(), StoreError> {
    // In the order of studies, so that two transactions that store accounts cannot deadlock.
    sqlx::query!(
        "insert into study_accounts (study_id, cluster, account, run_id)
         select distinct on (e.study_id) e.study_id, r.cluster, o.account, r.id
         from outcomes o
         join runs r on r.id = o.run_id
         join epochs e on e.id = r.epoch_id
         join studies s on s.id = e.study_id
         join applications a on a.id = s.application_id
         where o.run_id = any($1) and o.account <> '' and coalesce(o.uid, a.owner_uid) = a.owner_uid
         order by e.study_id, r.id desc, o.id desc
         on conflict (study_id) do update
             set cluster = excluded.cluster, account = excluded.account, run_id = excluded.run_id
             where study_accounts.run_id <= excluded.run_id",
        runs
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(())
}
