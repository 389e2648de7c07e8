//! The surrogates of the most recently used epochs, and the sources of priors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashlink::LruCache;
use io_autotune_engine::{SharedSource, Source, SurrogateCache};
use io_autotune_store::Learnt;
use serde::Deserialize;

/// The most epochs that are kept, at up to about 400 KB for each of the two fits.
const MOST: usize = 128;

/// The most sources that are kept, at up to about 150 KB each with their surrogates.
const MOST_SOURCES: usize = 128;

/// [`SurrogateCache`] checks its own validity, so nothing has to be dropped when a study changes. A
/// source is read anew when its row has changed.
#[derive(Debug)]
pub(crate) struct SurrogateCaches {
    epochs: Mutex<LruCache<i64, Arc<SurrogateCache>>>,
    sources: Mutex<LruCache<i64, Read>>,
}

/// The stored form of a source, and the source if it could be read.
type Read = (Arc<Learnt>, Option<Arc<SharedSource>>);

/// Reads what another study has learnt as a source; `None` if it cannot be read.
pub(crate) fn read(learnt: &Learnt) -> Option<Arc<SharedSource>> {
    let source = Source::deserialize(&learnt.learnt).ok()?;
    Some(Arc::new(SharedSource::of_user(source, learnt.owner_uid)))
}

impl Default for SurrogateCaches {
    fn default() -> Self {
        Self {
            epochs: Mutex::new(LruCache::new(MOST)),
            sources: Mutex::new(LruCache::new(MOST_SOURCES)),
        }
    }
}

impl SurrogateCaches {
    pub(crate) fn of(&self, epoch_id: i64) -> Arc<SurrogateCache> {
        let mut epochs = locked(&self.epochs);
        if let Some(known) = epochs.get(&epoch_id) {
            return Arc::clone(known);
        }
        let new = Arc::<SurrogateCache>::default();
        epochs.insert(epoch_id, Arc::clone(&new));
        new
    }

    /// The source that another study has stored, read once; `None` if it cannot be read.
    pub(crate) fn source(&self, learnt: &Arc<Learnt>) -> Option<Arc<SharedSource>> {
        let mut sources = locked(&self.sources);
        if let Some((of, read)) = sources.get(&learnt.epoch_id)
            && (Arc::ptr_eq(of, learnt) || of == learnt)
        {
            return read.clone();
        }
        let read = read(learnt);
        sources.insert(learnt.epoch_id, (Arc::clone(learnt), read.clone()));
        read
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(epochs.epochs.lock().unwrap().len(), MOST);
        assert!(Arc::ptr_eq(&first, &epochs.of(0)));
        let second = epochs.of(2);
        for epoch_id in 1000..1000 + MOST as i64 {
            epochs.of(epoch_id);
        }
        assert!(!Arc::ptr_eq(&second, &epochs.of(2)));
    }

    #[test]
    fn a_source_is_read_once_and_anew_when_it_has_learnt_more() {
        let learnt = |judged: i64, runs: f64| {
            let point =
                serde_json::json!({ "parametrization": {}, "log_ratio": 0.0, "runs": runs });
            Arc::new(Learnt {
                epoch_id: 7,
                owner_uid: 1000,
                judged,
                learnt: serde_json::json!({
                    "learnt": [point], "squares": 0.1, "degrees": 1.0, "measures": {},
                }),
            })
        };
        let (caches, first) = (SurrogateCaches::default(), learnt(20, 1.0));
        let source = caches.source(&first).unwrap();
        for again in [&first, &learnt(20, 1.0)] {
            assert!(Arc::ptr_eq(&source, &caches.source(again).unwrap()));
        }
        for other in [learnt(23, 1.0), learnt(20, 2.0)] {
            assert!(!Arc::ptr_eq(&source, &caches.source(&other).unwrap()));
        }
        let unreadable = Learnt {
            learnt: serde_json::json!({ "later": true }),
            ..first.as_ref().clone()
        };
        assert!(caches.source(&Arc::new(unreadable)).is_none());
    }
}
