//! Surroundings: how runs fared lately in any study, which may explain noise in evidence.

use std::time::Duration;

use crate::error::{Named, StoreError};
use crate::pool::Store;

impl Store {
    /// Records for each cluster how its runs that ended in the last half hour fared, each compared
    /// with the mean of its parametrization's runs. Nothing is recorded if no run ended, or if a
    /// replica has recorded it in the last half minute. A start uses the record before it.
    pub async fn record_surroundings(&self) -> Result<(), StoreError> {
        const NAME: &str = "surroundings";
        let mut transaction = self.begin(NAME, Duration::from_secs(2)).await?;
        sqlx::query!(
            "insert into surroundings (cluster, slowness, runs)
             select r.cluster,
                    percentile_cont(0.5) within group (order by ln(r.elapsed)
                        - coalesce((jsonb_path_query_first(t.measures, '$.elapsed_seconds.mean ? (@ > -1e300 && @ < 1e300)')
                                    #>> '{}')::double precision, t.log_mean))
                        * count(*) / (count(*) + 3.0),
                    count(*)
             from runs r
             join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
             join tested t on t.epoch_id = r.epoch_id and t.parametrization = j.parametrization
             where r.state = 'counted' and r.finished_at > now() - interval '30 minutes' and t.count > 1
               and not exists (select from surroundings s
                               where s.cluster = r.cluster and s.at > now() - interval '30 seconds')
             group by r.cluster
             on conflict do nothing"
        )
        .execute(&mut *transaction)
        .await
        .named(NAME)?;
        transaction.commit().await.named(NAME)
    }
}
