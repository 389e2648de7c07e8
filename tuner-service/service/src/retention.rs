//! Removes runs that are older than the site keeps them.

use std::time::Duration;

use io_autotune_model::Removed;
use io_autotune_store::{Audit, LEAST_DAYS, RemovedChanges, Store, StoreError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// How long runs are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionConfig {
    /// Runs are removed this number of days after the last news of them; `None`: never.
    pub(crate) days: Option<u32>,
    /// Lines of the audit are removed after this number of days, with the orders that had ended by
    /// then; `None`: never.
    pub(crate) audit_days: Option<u32>,
}

impl RetentionConfig {
    pub(crate) fn validate(self) -> Result<(), String> {
        for (name, days) in [("days", self.days), ("audit_days", self.audit_days)] {
            if let Some(days) = days.filter(|days| !(LEAST_DAYS..=MOST_DAYS).contains(days)) {
                return Err(format!(
                    "{name} = {days}: {LEAST_DAYS} to {MOST_DAYS} are expected; leave it out to keep them for ever"
                ));
            }
        }
        Ok(())
    }
}

/// A hundred years.
pub(crate) const MOST_DAYS: u32 = 36_500;

/// The most batches of a sweep: other work waits for some seconds only.
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

    /// Removes one sweep's share.
    pub(crate) async fn sweep(&mut self, store: &Store) -> Result<(), StoreError> {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        let runs = self.remove_runs(store).await?;
        let changes = self.remove_changes(store).await?;
        self.next = (!runs && !changes).then(|| now + REST);
        Ok(())
    }

    /// Removes old lines of the audit. Returns true if there may be more.
    async fn remove_changes(&self, store: &Store) -> Result<bool, StoreError> {
        let Some(days) = self.config.audit_days else {
            return Ok(false);
        };
        let (removed, more) = store.remove_changes(days).await?;
        if removed != RemovedChanges::default() {
            let RemovedChanges { lines, orders } = removed;
            tracing::info!(days, lines, orders, "old lines of the audit removed");
        }
        Ok(more)
    }

    /// Removes old runs. Returns true if there may be more.
    async fn remove_runs(&self, store: &Store) -> Result<bool, StoreError> {
        let Some(days) = self.config.days else {
            return Ok(false);
        };
        let audit = Audit::unbounded(
            nix::unistd::geteuid().as_raw(),
            "[retention] days in service.toml",
        );
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
        Ok(more)
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
            for config in [
                RetentionConfig {
                    days,
                    audit_days: None,
                },
                RetentionConfig {
                    days: None,
                    audit_days: days,
                },
            ] {
                assert_eq!(config.validate().is_ok(), is_good, "{config:?}");
            }
        }
    }
}
