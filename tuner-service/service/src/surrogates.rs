//! The surrogates of the most recently used epochs, and of what others have learnt.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use io_autotune_engine::{SharedSource, Source, SurrogateCache};
use io_autotune_store::Learnt;
use serde::Deserialize;

/// Epochs to keep, at up to about 400 KB each.
const MOST: usize = 128;

/// Sources to keep, at up to about 150 KB each with their surrogates.
const MOST_SOURCES: usize = 128;

/// A surrogate and its last use, by epoch. [`SurrogateCache`] checks its own validity, so nothing
/// has to be dropped when a study changes. A source is read anew when what was learnt is another.
#[derive(Debug, Default)]
pub(crate) struct SurrogateCaches {
    epochs: Mutex<Kept<i64, Arc<SurrogateCache>>>,
    sources: Mutex<Kept<i64, Read>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    asked: u64,
    all: HashMap<K, (u64, V)>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self {
            asked: 0,
            all: HashMap::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, V: Clone> Kept<K, V> {
    /// What is kept of a key and still holds, or is made for it; then the one that was asked for
    /// longest ago goes.
    fn of(
        &mut self,
        key: K,
        most: usize,
        holds: impl FnOnce(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> V {
        self.asked += 1;
        let asked = self.asked;
        let known = self.all.get_mut(&key);
        if let Some((last, value)) = known.filter(|(_, value)| holds(value)) {
            *last = asked;
            return value.clone();
        }
        if self.all.len() >= most {
            let oldest = self.all.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.all.remove(&oldest);
            }
        }
        let value = make();
        self.all.insert(key, (asked, value.clone()));
        value
    }
}

/// What was learnt, and what it was read as.
type Read = (Arc<Learnt>, Option<Arc<SharedSource>>);

/// What another study has learnt; none where it cannot be read.
pub(crate) fn read(learnt: &Learnt) -> Option<Arc<SharedSource>> {
    let source = Source::deserialize(&learnt.learnt).ok()?;
    Some(Arc::new(source.into()))
}

impl SurrogateCaches {
    pub(crate) fn of(&self, epoch_id: i64) -> Arc<SurrogateCache> {
        locked(&self.epochs).of(epoch_id, MOST, |_| true, Arc::default)
    }

    /// What another study has learnt, read once; none where it cannot be read.
    pub(crate) fn source(&self, learnt: &Arc<Learnt>) -> Option<Arc<SharedSource>> {
        let holds = |(of, _): &Read| Arc::ptr_eq(of, learnt) || of == learnt;
        let make = || (Arc::clone(learnt), read(learnt));
        let mut sources = locked(&self.sources);
        sources.of(learnt.epoch_id, MOST_SOURCES, holds, make).1
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
        assert_eq!(epochs.epochs.lock().unwrap().all.len(), MOST);
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
