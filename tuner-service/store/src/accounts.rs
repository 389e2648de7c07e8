//! Which account a study is charged to, and who sees it for that.

use crate::connections::Connection;
use crate::error::{Named, StoreError};

/// Studies of others that are visible beside one's own: those that an account's members charge to
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinated {
    /// Clusters, members there and their accounts.
    pub members: Vec<(String, u32, String)>,
}

/// Whose studies are visible, as queries take it.
pub(crate) struct Visible {
    /// All owners among whom there may be a visible study; `None`: everyone's are.
    pub(crate) owners: Option<Vec<i64>>,
    /// The owner whose studies are visible, whatever they are charged to.
    pub(crate) own: Option<i64>,
    /// With `members` and `accounts`, member by member.
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

/// Remembers the account of these runs' studies. Of a study the latest run with an account holds;
/// a record that says that the job was another user's says nothing of it.
pub(crate) async fn remember(
    connection: &mut Connection,
    name: &'static str,
    runs: &[i64],
) -> Result<(), StoreError> {
    // In the order of studies, so that two who remember wait for each other and not in a circle.
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
