//! Futures that are dropped half way, as a client that hangs up or a deadline drops them.

use std::future::{Future, poll_fn};
use std::task::Poll;

/// Polls a future at most `polls` times and then drops it; returns its output if it was done by
/// then.
///
/// Counting polls, and not time, reaches every point at which the future can be left.
pub(crate) async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
