//! The settings that a site's studies have in common, made now and then by a sweep. Fitting what
//! every study knows would take too long for a start or a reader.

use std::sync::Arc;

use io_autotune_engine::{SharedSource, in_common};
use io_autotune_model::{Judge, SiteSetting};
use io_autotune_store::{SiteSettingDue, Store, StoreError};

use crate::surrogates;

/// Makes the settings that are due.
pub(crate) async fn renew(store: &Store) -> Result<(), StoreError> {
    for due in store.site_settings_due().await? {
        let known = store.sources_of_site(&due).await?;
        let known = known.into_iter();
        let known: Vec<(i64, Arc<SharedSource>)> = known
            .filter_map(|(study_id, learnt)| Some((study_id, surrogates::read(&learnt)?)))
            .collect();
        // It takes long enough to hold up what else the runtime does.
        let made = tokio::task::spawn_blocking(move || (setting_of(&due, &known), due)).await;
        // A panic was logged; what is due is tried again by the next sweep.
        let Ok((found, due)) = made else { continue };
        store.write_site_setting(&due, found.as_ref()).await?;
    }
    Ok(())
}

fn setting_of(due: &SiteSettingDue, known: &[(i64, Arc<SharedSource>)]) -> Option<SiteSetting> {
    let sources: Vec<_> = known.iter().map(|(_, source)| Arc::clone(source)).collect();
    let found = in_common(&due.space, &sources)?;
    let values = due.space.parametrization(&found.common.point);
    let judges = found.judges.into_iter().map(|(place, ratio)| Judge {
        study_id: known[place].0,
        ratio,
    });
    let judges: Vec<Judge> = judges.collect();
    let values = due.space.differences(&values);
    SiteSetting::judged(values, found.common.users, found.together, &judges)
}
