//! A race between endpoints: the next one is asked after a short delay unless the one before is
//! alive, or at once if that one fails. The first answer wins.

use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The time after which an attempt is checked for life. A healthy service answers in milliseconds.
const STAGGER: Duration = Duration::from_millis(400);

/// The time for a sign of life. Without one the next attempt starts.
const SIGN_OF_LIFE: Duration = Duration::from_millis(150);

/// How long an attempt runs alone, and how long a sign of life is awaited, so that the last of
/// `endpoints` still has time.
pub(super) fn patience(deadline: Duration, endpoints: usize) -> (Duration, Duration) {
    let shares = u32::try_from(endpoints)
        .unwrap_or(u32::MAX)
        .saturating_mul(3);
    let alone = STAGGER.min(deadline / shares.max(1) * 2);
    (alone, SIGN_OF_LIFE.min(alone / 2))
}

/// The error of each attempt if none was decisive; `None` for an attempt that was still under way
/// at the end.
pub(super) type Lost<E> = Vec<(usize, Option<E>)>;

/// Starts the attempts in order until one breaks (wins) or `end` comes. An attempt that continues
/// has failed. Attempts under way at the end are dropped. `is_alive` tells whether the endpoint of
/// an attempt without an answer works. If so, the race waits for it, because a second request would
/// only slow both.
pub(super) async fn race<T, E, F, Alive>(
    attempts: impl IntoIterator<Item = (usize, F)>,
    is_alive: impl Fn(usize) -> Alive,
    stagger: Duration,
    end: Instant,
) -> Result<(usize, T), Lost<E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = ControlFlow<T, E>> + Send + 'static,
    Alive: Future<Output = bool>,
{
    let mut waiting = attempts.into_iter().peekable();
    let mut running = JoinSet::new();
    let mut lost: Lost<E> = Vec::new();
    let mut begins = true;
    loop {
        if begins && let Some((index, attempt)) = waiting.next() {
            lost.push((index, None));
            running.spawn(async move { (index, attempt.await) });
        }
        begins = true;
        let patience = match waiting.peek() {
            Some(_) => end.min(Instant::now() + stagger),
            None => end,
        };
        match timeout_at(patience, running.join_next()).await {
            Ok(Some(Ok((index, ControlFlow::Break(decisive))))) => return Ok((index, decisive)),
            Ok(Some(Ok((index, ControlFlow::Continue(error))))) => {
                if let Some(place) = lost.iter_mut().find(|(asked, _)| *asked == index) {
                    place.1 = Some(error);
                }
            }
            // A task that panicked has no answer.
            Ok(Some(Err(_))) => {}
            Ok(None) => return Err(lost),
            Err(_) if Instant::now() >= end => return Err(lost),
            Err(_) => {
                if let Some((latest, None)) = lost.last() {
                    begins = !timeout_at(end, is_alive(*latest)).await.unwrap_or(false);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(100);

    const BUSY: usize = 3;

    /// An attempt that answers or fails after this many steps.
    async fn attempt(
        steps: u32,
        answer: Result<&'static str, &'static str>,
    ) -> ControlFlow<&'static str, &'static str> {
        tokio::time::sleep(STEP * steps).await;
        match answer {
            Ok(answer) => ControlFlow::Break(answer),
            Err(error) => ControlFlow::Continue(error),
        }
    }

    /// The winner and its answer, or all errors; and the number of steps.
    async fn raced(
        attempts: &[(u32, Result<&'static str, &'static str>)],
    ) -> (Result<(usize, &'static str), Lost<&'static str>>, u128) {
        let began = Instant::now();
        let attempts = attempts
            .iter()
            .enumerate()
            .map(|(index, (steps, answer))| (index, attempt(*steps, *answer)));
        let is_alive = |index| async move { index == BUSY };
        let result = race(attempts, is_alive, 3 * STEP, began + 10 * STEP).await;
        (result, began.elapsed().as_millis() / STEP.as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_is_asked_after_the_stagger_and_the_first_answer_wins() {
        let mute = (1000, Ok("too late"));
        assert_eq!(raced(&[mute, (1, Ok("b"))]).await, (Ok((1, "b")), 4));
        assert_eq!(raced(&[mute, mute, (1, Ok("c"))]).await, (Ok((2, "c")), 7));
        assert_eq!(raced(&[(4, Ok("a")), mute]).await, (Ok((0, "a")), 4));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_failure_the_next_is_asked_at_once() {
        let down = (0, Err("refused"));
        assert_eq!(raced(&[down, down, (1, Ok("c"))]).await, (Ok((2, "c")), 1));
        // A failure starts the next one even while another is under way.
        let mute = (1000, Ok("too late"));
        assert_eq!(raced(&[mute, down, (1, Ok("c"))]).await, (Ok((2, "c")), 4));
    }

    #[tokio::test(start_paused = true)]
    async fn when_nobody_answers_it_says_so_of_each_at_the_end_and_not_later() {
        let (mute, down) = ((1000, Ok("too late")), (1, Err("refused")));
        let all = raced(&[mute, down]).await;
        assert_eq!(all, (Err(vec![(0, None), (1, Some("refused"))]), 10));
        let all = raced(&[down, down]).await;
        assert_eq!(all.1, 2);
        assert!(all.0.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_alive_is_waited_for_and_when_it_fails_the_next_is_asked() {
        let down = (0, Err("refused"));
        let (slow, next) = ((8, Ok("d")), (1, Ok("e")));
        let before = [down, down, down];
        let all = [&before[..], &[slow, next]].concat();
        assert_eq!(raced(&all).await, (Ok((BUSY, "d")), 8));
        let all = [&before[..], &[(5, Err("busy")), next]].concat();
        assert_eq!(raced(&all).await, (Ok((4, "e")), 6));
    }

    #[test]
    fn the_last_endpoint_has_time_left() {
        for deadline in [300, 2000, 15_000].map(Duration::from_millis) {
            for endpoints in 1..100_u32 {
                let (alone, sign) = patience(deadline, endpoints as usize);
                assert!((alone + sign) * (endpoints - 1) + alone <= deadline);
            }
        }
        let (alone, sign) = patience(Duration::from_secs(2), 2);
        assert_eq!((alone, sign), (STAGGER, SIGN_OF_LIFE));
    }
}
