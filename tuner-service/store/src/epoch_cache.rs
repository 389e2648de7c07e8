//! Copies of epochs as starts last read them. With each start PostgreSQL returns whether a copy is
//! still valid.

use std::sync::{Arc, Mutex, PoisonError};

use hashlink::LruCache;

use crate::connections::Connection;
use crate::epoch_state::{EpochState, epoch_state};
use crate::error::StoreError;

/// The most that copies may weigh together: about 12 MB, at some 3 KB each.
const MOST: usize = 4096;
/// The weight of a space. An epoch weighs as much as the number of its tested parametrizations, and
/// its space as much as this many of them.
const SPACE: usize = 4;

/// Copies of the epochs of the most recent starts.
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
    /// The copy of an epoch, if it has exactly this version.
    pub(crate) fn at(&self, epoch_id: i64, version: &str) -> Option<Arc<EpochState>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = kept.epochs.get(&epoch_id)?;
        (copied.version == version).then(|| Arc::clone(&copied.epoch))
    }

    /// The epoch, from the copy or the database, under the study's lock. The caller must not change
    /// the epoch under the same lock afterwards.
    pub(crate) async fn read(
        &self,
        connection: &mut Connection,
        name: &'static str,
        (epoch_id, version): (i64, &str),
    ) -> Result<Arc<EpochState>, StoreError> {
        if let Some(epoch) = self.at(epoch_id, version) {
            return Ok(epoch);
        }
        let epoch = Arc::new(epoch_state(connection, name, epoch_id).await?);
        let copied = Copied {
            version: version.to_owned(),
            epoch: Arc::clone(&epoch),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.keep(epoch_id, copied);
        Ok(epoch)
    }
}

impl Kept {
    fn keep(&mut self, epoch_id: i64, copied: Copied) {
        self.weight += copied.weight();
        if let Some(earlier) = self.epochs.insert(epoch_id, copied) {
            self.weight -= earlier.weight();
        }
        while self.weight > MOST
            && let Some((_, least)) = self.epochs.remove_lru()
        {
            self.weight -= least.weight();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(tested: usize) -> Copied {
        Copied {
            version: String::new(),
            epoch: Arc::new(EpochState::of_size(tested)),
        }
    }

    #[test]
    fn what_was_used_last_is_kept_and_no_more_than_so_much() {
        let epochs = KeptEpochs::default();
        let mut kept = epochs.0.lock().unwrap();
        for epoch_id in 0..100 {
            kept.keep(epoch_id, copied(96));
            kept.keep(epoch_id, copied(96));
            assert!(kept.weight <= MOST && kept.epochs.get(&0).is_some());
        }
        assert_eq!((kept.epochs.len(), kept.weight), (40, 4000));
        assert!(kept.epochs.peek(&99).is_some() && kept.epochs.peek(&1).is_none());
        kept.keep(100, copied(MOST));
        assert_eq!(
            (kept.epochs.len(), kept.weight),
            (0, 0),
            "it is too large to keep"
        );
    }
}
