//! One answer for all nodes of a launch: each node of a large job has a prolog that asks the same.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use io_autotune_store::JobKey;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// Prologs of one launch ask within seconds. A later one asks the database.
const KEPT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Launches<A> {
    launches: Mutex<HashMap<JobKey, Launch<A>>>,
}

#[derive(Debug)]
struct Launch<A> {
    asked_at: Instant,
    /// `None`: there was no answer.
    answer: Arc<OnceCell<Option<A>>>,
}

impl<A> Default for Launches<A> {
    fn default() -> Self {
        Self {
            launches: Mutex::new(HashMap::new()),
        }
    }
}

impl<A: Clone> Launches<A> {
    /// The answer to a launch: the first caller runs `ask` and the others share its answer. After
    /// an error each caller runs its own `ask`.
    pub(crate) async fn answer<E, F>(&self, job: &JobKey, ask: impl Fn() -> F) -> Result<A, E>
    where
        F: Future<Output = Result<A, E>>,
    {
        let launch = self.of(job);
        let mut failure = None;
        let answer = launch
            .get_or_init(|| async {
                match ask().await {
                    Ok(answer) => Some(answer),
                    Err(error) => {
                        self.forget(job);
                        failure = Some(error);
                        None
                    }
                }
            })
            .await
            .clone();
        match (answer, failure) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            (None, None) => ask().await,
        }
    }

    fn of(&self, job: &JobKey) -> Arc<OnceCell<Option<A>>> {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        if launches.len() == launches.capacity() {
            launches.retain(|_, launch| launch.asked_at.elapsed() < KEPT);
        }
        let now = Instant::now();
        let fresh = || Launch {
            asked_at: now,
            answer: Arc::default(),
        };
        let launch = launches.entry(job.clone()).or_insert_with(fresh);
        if now.duration_since(launch.asked_at) >= KEPT {
            *launch = fresh();
        }
        Arc::clone(&launch.answer)
    }

    fn forget(&self, job: &JobKey) {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.remove(job);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn job(job_id: u32) -> JobKey {
        JobKey {
            cluster: "c".into(),
            job_id,
            restart_count: 0,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_nodes_of_a_launch_ask_once_and_a_later_one_asks_again() {
        let launches = Launches::<u32>::default();
        let asked = AtomicU32::new(0);
        let ask = || async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok::<_, ()>(asked.fetch_add(1, Ordering::Relaxed))
        };
        let one = job(1);
        let answers = tokio::join!(
            launches.answer(&one, ask),
            launches.answer(&one, ask),
            launches.answer(&one, ask)
        );
        assert_eq!(answers, (Ok(0), Ok(0), Ok(0)));
        assert_eq!(launches.answer(&job(2), ask).await, Ok(1));
        tokio::time::advance(KEPT).await;
        assert_eq!(launches.answer(&one, ask).await, Ok(2));
    }

    #[tokio::test]
    async fn an_error_is_nobody_elses_and_is_not_kept() {
        let launches = Launches::<u32>::default();
        let asked = AtomicU32::new(0);
        let ask = || async {
            tokio::task::yield_now().await;
            match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Err("outage"),
                number => Ok(number),
            }
        };
        let one = job(1);
        let answers = tokio::join!(launches.answer(&one, ask), launches.answer(&one, ask));
        assert_eq!(answers, (Err("outage"), Ok(1)));
        assert_eq!(launches.answer(&one, ask).await, Ok(2));
        assert_eq!(launches.answer(&one, ask).await, Ok(2), "kept");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_dropped() {
        let launches = Launches::<u32>::default();
        for number in 0..1000 {
            tokio::time::advance(KEPT / 10).await;
            let job = job(number);
            let answer = launches.answer(&job, || async { Ok::<_, ()>(number) });
            assert_eq!(answer.await, Ok(number));
        }
        assert!(launches.launches.lock().unwrap().len() < 50);
    }
}
