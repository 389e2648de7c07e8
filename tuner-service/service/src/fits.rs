//! The surrogates of the epochs that were asked about last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use io_autotune_engine::Fits;

/// So many epochs' surrogates are kept, of at most some 400 KB each.
const MOST: usize = 128;

/// By epoch, its surrogate and when it was last asked for. What an epoch's surrogate is kept with tells whether it
/// still is the one ([`Fits`]): nothing has to be forgotten when a study changes.
#[derive(Debug, Default)]
pub(crate) struct EpochFits(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    asked: u64,
    fits: HashMap<i64, (u64, Arc<Fits>)>,
}

impl EpochFits {
    /// Those of an epoch.
    pub(crate) fn of(&self, epoch_id: i64) -> Arc<Fits> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked += 1;
        let asked = kept.asked;
        if let Some((last, fits)) = kept.fits.get_mut(&epoch_id) {
            *last = asked;
            return Arc::clone(fits);
        }
        if kept.fits.len() >= MOST {
            let oldest = kept.fits.iter().min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(epoch_id, _)| *epoch_id) {
                kept.fits.remove(&oldest);
            }
        }
        let fits = Arc::new(Fits::default());
        kept.fits.insert(epoch_id, (asked, Arc::clone(&fits)));
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epochs_asked_about_last_are_kept() {
        let epochs = EpochFits::default();
        let first = epochs.of(0);
        for epoch_id in 1..=MOST as i64 {
            epochs.of(epoch_id);
            if epoch_id < MOST as i64 {
                assert!(Arc::ptr_eq(&first, &epochs.of(0)));
            }
        }
        assert_eq!(epochs.0.lock().unwrap().fits.len(), MOST);
        assert!(Arc::ptr_eq(&first, &epochs.of(0)));
        let second = epochs.of(2);
        for epoch_id in 1000..1000 + MOST as i64 {
            epochs.of(epoch_id);
        }
        assert!(!Arc::ptr_eq(&second, &epochs.of(2)));
    }
}
