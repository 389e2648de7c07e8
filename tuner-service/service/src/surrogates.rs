//! The surrogates of the most recently used epochs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use io_autotune_engine::SurrogateCache;

/// Epochs to keep, at up to about 400 KB each.
const MOST: usize = 128;

/// A surrogate and its last use, by epoch. [`SurrogateCache`] checks its own validity, so nothing
/// has to be dropped when a study changes.
#[derive(Debug, Default)]
pub(crate) struct SurrogateCaches(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    asked: u64,
    caches: HashMap<i64, (u64, Arc<SurrogateCache>)>,
}

impl SurrogateCaches {
    pub(crate) fn of(&self, epoch_id: i64) -> Arc<SurrogateCache> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked += 1;
        let asked = kept.asked;
        if let Some((last, caches)) = kept.caches.get_mut(&epoch_id) {
            *last = asked;
            return Arc::clone(caches);
        }
        if kept.caches.len() >= MOST {
            let oldest = kept.caches.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(epoch_id, _)| *epoch_id) {
                kept.caches.remove(&oldest);
            }
        }
        let caches = Arc::new(SurrogateCache::default());
        kept.caches.insert(epoch_id, (asked, Arc::clone(&caches)));
        caches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epochs_asked_about_last_are_kept() {
        let epochs = SurrogateCaches::default();
        let first = epochs.of(0);
        for epoch_id in 1..=MOST as i64 {
            epochs.of(epoch_id);
            if epoch_id < MOST as i64 {
                assert!(Arc::ptr_eq(&first, &epochs.of(0)));
            }
        }
        assert_eq!(epochs.0.lock().unwrap().caches.len(), MOST);
        assert!(Arc::ptr_eq(&first, &epochs.of(0)));
        let second = epochs.of(2);
        for epoch_id in 1000..1000 + MOST as i64 {
            epochs.of(epoch_id);
        }
        assert!(!Arc::ptr_eq(&second, &epochs.of(2)));
    }
}
