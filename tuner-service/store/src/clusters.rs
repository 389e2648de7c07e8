//! The clusters that studies belong to.

use std::time::Duration;

use serde_json::json;

use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::number;

const WAIT: Duration = Duration::from_secs(5);

impl Store {
    /// Prepares the database for a service of these clusters, in one transaction. With one cluster,
    /// studies without a cluster become its own. With several, programs of a version without
    /// clusters no longer work. Returns [`StoreError::NotServed`], and changes nothing, if studies
    /// belong to none of them.
    pub async fn serve_clusters(&self, clusters: &[String]) -> Result<(), StoreError> {
        const NAME: &str = "serve_clusters";
        let mut transaction = self.begin(NAME, WAIT).await?;
        if let [only] = clusters {
            give(&mut transaction, NAME, None, only).await?;
        }
        release_anothers(&mut transaction, NAME).await?;
        let not_served = sqlx::query!(
            r#"select cluster, count(*) as "studies!" from studies
               where cluster is null or cluster <> all($1)
               group by cluster order by cluster nulls first limit 1"#,
            clusters
        )
        .fetch_optional(&mut *transaction)
        .await
        .named(NAME)?;
        if let Some(not_served) = not_served {
            return Err(StoreError::NotServed {
                studies: number(NAME, not_served.studies)?,
                cluster: not_served.cluster,
                clusters: clusters.to_vec(),
            });
        }
        if clusters.len() > 1 {
            sqlx::query("select separate_clusters()")
                .execute(&mut *transaction)
                .await
                .named(NAME)?;
        }
        transaction.commit().await.named(NAME)
    }

    /// Moves the studies and orders of cluster `from`, or the studies without a cluster if it is
    /// none, to another cluster, and returns the number of studies. Runs keep the name that Slurm
    /// had. Returns [`StoreError::StudiesOfBoth`], and changes nothing, if the other cluster has
    /// some of the same studies.
    pub async fn map_cluster(
        &self,
        from: Option<&str>,
        to: &str,
        audit: Audit<'_>,
    ) -> Result<u64, StoreError> {
        const NAME: &str = "map_cluster";
        let mut transaction = self.begin(NAME, WAIT).await?;
        let both = sqlx::query_scalar!(
            r#"select count(*) as "studies!" from studies a
               join studies b on (b.application_id, b.accelerator, b.context_key)
                               = (a.application_id, a.accelerator, a.context_key)
               where a.cluster is not distinct from $1 and b.cluster = $2 and a.id <> b.id"#,
            from,
            to
        )
        .fetch_one(&mut *transaction)
        .await
        .named(NAME)?;
        if both > 0 {
            return Err(StoreError::StudiesOfBoth {
                studies: number(NAME, both)?,
                to: to.to_owned(),
            });
        }
        let given = give(&mut transaction, NAME, from, to).await?;
        release_anothers(&mut transaction, NAME).await?;
        if from.is_some() {
            // An order without a cluster is for all clusters.
            sqlx::query!(
                "update orders set cluster = $2 where cluster = $1 and ended_at is null",
                from,
                to
            )
            .execute(&mut *transaction)
            .await
            .named(NAME)?;
        }
        let entry = Entry {
            action: "map-cluster",
            study_id: None,
            order_id: None,
            undoes: None,
            detail: json!({ "from": from, "to": to, "studies": given }),
        };
        write(&mut transaction, NAME, entry, audit).await?;
        transaction.commit().await.named(NAME)?;
        Ok(given)
    }
}

async fn give(
    connection: &mut Connection,
    name: &'static str,
    from: Option<&str>,
    to: &str,
) -> Result<u64, StoreError> {
    let given = sqlx::query!(
        "update studies set cluster = $2 where cluster is not distinct from $1",
        from,
        to
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(given.rows_affected())
}

/// Releases runs in flight of another cluster than their study's. No source is asked about them, so
/// no study may wait for them.
async fn release_anothers(
    connection: &mut Connection,
    name: &'static str,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update runs r set released = true from epochs e join studies s on s.id = e.study_id
         where e.id = r.epoch_id and s.cluster <> r.cluster and r.state = 'in_flight' and not r.released"
    )
    .execute(connection)
    .await
    .named(name)?;
    Ok(())
}
