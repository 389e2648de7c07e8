//! The settings that a site's studies have in common, one for each accelerator of a cluster: made
//! now and then from the sources, and read by the API and the nightly report.

use std::sync::Arc;

use io_autotune_model::{SiteSetting, Space};
use jiff::Timestamp;
use serde::Deserialize;
use sqlx::types::Json;

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::timestamp;
use crate::sources::Learnt;

/// The most studies that judge a setting, those that began last.
const MOST_JUDGES: i64 = 128;
/// The most settings that are made in one sweep.
const MOST_AT_ONCE: i64 = 16;

/// The studies of an accelerator that have learnt something new.
#[derive(Clone, Debug)]
pub struct SiteSettingDue {
    /// The cluster.
    pub cluster: String,
    /// The accelerator.
    pub accelerator: String,
    /// The space of the epoch that began last.
    pub space: Space,
    /// A hash of what the setting will be made of.
    pub made_of: String,
    space_key: i64,
}

/// The setting of an accelerator, as it was made last.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSettingRow {
    /// The time when it was made.
    pub made_at: Timestamp,
    /// The setting; `None`: the studies have none in common.
    pub found: Option<SiteSetting>,
}

impl Store {
    /// The accelerators of whose space four users or more know something, and whose setting was
    /// made of something else, and not within the last ten minutes. Three users besides the one who
    /// found a setting have to judge it.
    pub async fn site_settings_due(&self) -> Result<Vec<SiteSettingDue>, StoreError> {
        const NAME: &str = "site_settings_due";
        let rows = sqlx::query!(
            r#"with latest as (
                   select distinct on (s.cluster, f.accelerator) s.cluster, f.accelerator, f.space_key, f.epoch_id
                   from sources f join studies s on s.id = f.study_id
                   order by s.cluster, f.accelerator, f.epoch_id desc
               ), known as (
                   select l.cluster, l.accelerator, l.space_key, l.epoch_id,
                          md5(string_agg(f.epoch_id || ' ' || f.judged, ',' order by f.epoch_id)) as made_of
                   from latest l
                   join sources f on f.accelerator = l.accelerator and f.space_key = l.space_key
                   join studies s on s.id = f.study_id and s.cluster = l.cluster
                   join applications a on a.id = s.application_id
                   group by l.cluster, l.accelerator, l.space_key, l.epoch_id
                   having count(distinct a.owner_uid) >= 4
               )
               select k.cluster as "cluster!", k.accelerator as "accelerator!", k.space_key as "space_key!",
                      k.made_of as "made_of!", e.space
               from known k join epochs e on e.id = k.epoch_id
               left join site_settings made on made.cluster = k.cluster and made.accelerator = k.accelerator
               where made.made_of is null
                  or made.made_of <> k.made_of and made.made_at < now() - interval '10 minutes'
               order by made.made_at nulls first limit $1"#,
            MOST_AT_ONCE
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        // A space that cannot be read keeps no other accelerator waiting.
        let rows = rows.into_iter().filter_map(|row| {
            Some(SiteSettingDue {
                cluster: row.cluster,
                accelerator: row.accelerator,
                space: Space::deserialize(row.space).ok()?,
                made_of: row.made_of,
                space_key: row.space_key,
            })
        });
        Ok(rows.collect())
    }

    /// What the studies know of whose setting is due, with their numbers: those that began last.
    pub async fn sources_of_site(
        &self,
        due: &SiteSettingDue,
    ) -> Result<Vec<(i64, Arc<Learnt>)>, StoreError> {
        let rows = sqlx::query!(
            "select f.study_id, f.epoch_id, f.judged, f.learnt, a.owner_uid
             from sources f join studies s on s.id = f.study_id
             join applications a on a.id = s.application_id
             where f.accelerator = $1 and f.space_key = $2 and s.cluster = $3
             order by f.epoch_id desc limit $4",
            due.accelerator,
            due.space_key,
            due.cluster,
            MOST_JUDGES
        )
        .fetch_all(&self.pool)
        .await
        .named("sources_of_site")?;
        let rows = rows.into_iter().map(|row| {
            let learnt = Learnt::of(row.epoch_id, row.owner_uid, row.judged, row.learnt);
            (row.study_id, learnt)
        });
        Ok(rows.collect())
    }

    /// Stores the setting that was made of what was due.
    pub async fn write_site_setting(
        &self,
        due: &SiteSettingDue,
        found: Option<&SiteSetting>,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "insert into site_settings (cluster, accelerator, made_of, found) values ($1, $2, $3, $4)
             on conflict (cluster, accelerator) do update
             set made_of = excluded.made_of, found = excluded.found, made_at = now()",
            due.cluster,
            due.accelerator,
            due.made_of,
            found.map(Json) as _
        )
        .execute(&self.pool)
        .await
        .named("write_site_setting")?;
        Ok(())
    }

    /// The setting of an accelerator on a cluster; `None` if none was made yet.
    pub async fn site_setting(
        &self,
        cluster: &str,
        accelerator: &str,
    ) -> Result<Option<SiteSettingRow>, StoreError> {
        const NAME: &str = "site_setting";
        let row = sqlx::query!(
            r#"select (extract(epoch from made_at) * 1000000)::bigint as "made_at!",
                      found as "found: Json<SiteSetting>"
               from site_settings where cluster = $1 and accelerator = $2"#,
            cluster,
            accelerator
        )
        .fetch_optional(&self.pool)
        .await
        .named(NAME)?;
        row.map(|row| {
            Ok(SiteSettingRow {
                made_at: timestamp(NAME, row.made_at)?,
                found: row.found.map(|found| found.0),
            })
        })
        .transpose()
    }
}
