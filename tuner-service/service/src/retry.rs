//! Retries on failover of the database.

use std::future::Future;
use std::time::Duration;

use io_autotune_store::StoreError;
use tokio::time::Instant;

/// No retry starts later than this after the request: the prolog has two seconds, work included.
const RETRY_WITHIN: Duration = Duration::from_millis(1200);

/// The first pause. It doubles with every retry.
const PAUSE: Duration = Duration::from_millis(50);

const ATTEMPTS: u32 = 4;

/// Retries an idempotent attempt on transient database errors. Returns the last error if none
/// succeeds.
pub(crate) async fn retried<T, Attempt>(
    mut attempt: impl FnMut() -> Attempt,
) -> Result<T, StoreError>
where
    Attempt: Future<Output = Result<T, StoreError>>,
{
    let began = Instant::now();
    for earlier in 0..ATTEMPTS - 1 {
        let error = match attempt().await {
            Err(error) if error.is_transient() => error,
            settled => return settled,
        };
        let pause = PAUSE * 2_u32.pow(earlier);
        if began.elapsed() + pause > RETRY_WITHIN {
            return Err(error);
        }
        tracing::warn!(%error, "the database is asked again");
        tokio::time::sleep(pause).await;
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use io_autotune_store::{Outage, Unavailable};

    use super::*;

    fn outage() -> StoreError {
        let lost = Outage::Lost("it was reset".to_owned());
        StoreError::Unavailable {
            transaction: "start_run",
            unavailable: Unavailable::met(lost),
        }
    }

    /// The number of attempts and the success, if each attempt takes the given time and the first
    /// few fail.
    async fn tried(takes: Duration, failing: u32, error: fn() -> StoreError) -> (u32, bool) {
        let tried = Cell::new(0);
        let result = retried(|| async {
            tried.set(tried.get() + 1);
            tokio::time::sleep(takes).await;
            if tried.get() <= failing {
                Err(error())
            } else {
                Ok(())
            }
        })
        .await;
        (tried.get(), result.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn a_restart_is_waited_for_with_a_cap() {
        let short = Duration::from_millis(1);
        assert_eq!(tried(short, 0, outage).await, (1, true));
        assert_eq!(tried(short, 2, outage).await, (3, true));
        assert_eq!(tried(short, 100, outage).await, (ATTEMPTS, false));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_begun_that_the_caller_cannot_wait_for() {
        let began = Instant::now();
        assert_eq!(
            tried(Duration::from_millis(900), 100, outage).await,
            (2, false)
        );
        assert!(began.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_would_fail_again_is_not_tried_again() {
        let corrupt = || StoreError::Invariant {
            transaction: "start_run",
            problem: "a row is gone".into(),
        };
        assert_eq!(tried(Duration::ZERO, 100, corrupt).await, (1, false));
    }
}
