//! Removes runs that are older than the site keeps them.

use std::time::Duration;

use io_autotune_model::Removed;
use io_autotune_store::{Audit, LEAST_DAYS, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// How long runs are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionConfig {
    /// Runs are removed so many days after nothing more was heard of them; `None`: never.
    pub(crate) days: Option<u32>,
}

impl RetentionConfig {
    pub(crate) fn validate(self) -> Result<(), String> {
        match self.days {
            Some(days) if !(LEAST_DAYS..=MOST_DAYS).contains(&days) => Err(format!(
                "days = {days}: {LEAST_DAYS} to {MOST_DAYS} are expected; leave it out to keep runs for ever"
            )),
            _ => Ok(()),
        }
    }
}

/// A hundred years.
pub(crate) const MOST_DAYS: u32 = 36_500;

/// Batches of a sweep: other work waits for no more than some seconds.
const BATCHES: usize = 10;

/// How often to look once nothing was left: runs grow older by the day.
const REST: Duration = Duration::from_hours(24);

/// Removes in the sweeps of reconciliation, a few batches at a time.
#[derive(Debug)]
pub(crate) struct Retention {
    config: RetentionConfig,
    next: Option<Instant>,
}

impl Retention {
    pub(crate) fn new(config: RetentionConfig) -> Self {
        Self { config, next: None }
    }

    /// One sweep's share.
    pub(crate) async fn sweep(&mut self, store: &Store) -> Result<(), StoreError> {
        let Some(days) = self.config.days else {
            return Ok(());
        };
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        let audit = Audit {
            uid: nix::unistd::geteuid().as_raw(),
            why: "[retention] days in service.toml",
        };
        let mut sum = Removed::default();
        let mut more = true;
        for _ in 0..BATCHES {
            let (removed, goes_on) = store.remove_history(days, audit).await?;
            sum += removed;
            more = goes_on;
            if !more {
                break;
            }
        }
        if !sum.is_nothing() {
            tracing::info!(
                days,
                runs = sum.runs,
                trimmed = sum.trimmed,
                reports = sum.reports,
                "old runs removed"
            );
        }
        self.next = (!more).then(|| now + REST);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_for_less_than_a_month_is_refused() {
        for (days, is_good) in [
            (None, true),
            (Some(0), false),
            (Some(29), false),
            (Some(30), true),
            (Some(400), true),
            (Some(36_501), false),
        ] {
            let config = RetentionConfig { days };
            assert_eq!(config.validate().is_ok(), is_good, "{days:?}");
        }
    }
}
