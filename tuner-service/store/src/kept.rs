//! Epochs as starts read them last. PostgreSQL says with each start whether a copy still holds.

use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LruCache;
use sqlx::PgConnection;

use crate::error::StoreError;
use crate::state::{EpochState, Moment, epoch_state};

/// What copies may weigh together: at some 3 KB each, up to about 12 MB.
const MOST: usize = 4096;
/// An epoch weighs as much as its tested parametrizations, and its space as much as so many.
const SPACE: usize = 4;

/// Copies of epochs, those of the most recent starts.
#[derive(Debug)]
pub(crate) struct KeptEpochs(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    epochs: LruCache<i64, Copied>,
    weight: usize,
}

#[derive(Clone, Debug)]
struct Copied {
    version: String,
    epoch: Arc<EpochState>,
}

impl Copied {
    fn weight(&self) -> usize {
        SPACE + self.epoch.history.tested.len()
    }
}

impl Default for KeptEpochs {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            epochs: LruCache::new_unbounded(),
            weight: 0,
        }))
    }
}

impl KeptEpochs {
    /// The copy of a study's epoch, if it is of this very version.
    pub(crate) fn at(&self, moment: &Moment) -> Option<Arc<EpochState>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = kept.epochs.get(&moment.epoch_id)?;
        (copied.version == moment.version).then(|| Arc::clone(&copied.epoch))
    }

    /// The epoch, from the copy or the database, under the study's lock. Whoever holds it must not
    /// change the epoch afterwards.
    pub(crate) async fn read(
        &self,
        connection: &mut PgConnection,
        name: &'static str,
        moment: &Moment,
    ) -> Result<Arc<EpochState>, StoreError> {
        if let Some(epoch) = self.at(moment) {
            return Ok(epoch);
        }
        let epoch = Arc::new(epoch_state(connection, name, moment.epoch_id).await?);
        let copied = Copied {
            version: moment.version.clone(),
            epoch: Arc::clone(&epoch),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.weight += copied.weight();
        if let Some(earlier) = kept.epochs.insert(moment.epoch_id, copied) {
            kept.weight -= earlier.weight();
        }
        while kept.weight > MOST
            && let Some((_, least)) = kept.epochs.remove_lru()
        {
            kept.weight -= least.weight();
        }
        Ok(epoch)
    }
}
