//! One answer for all nodes of a launch: each node of a large job has a prolog that sends the same
//! request.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use io_autotune_model::Sluid;
use io_autotune_store::JobKey;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// Prologs of one launch ask within seconds. A later one asks the database.
const KEPT: Duration = Duration::from_secs(10);

/// The job, and Slurm's id of the launch where it has one.
pub(crate) type LaunchKey = (JobKey, Option<Sluid>);

#[derive(Debug)]
pub(crate) struct Launches<A> {
    launches: Mutex<HashMap<LaunchKey, Launch<A>>>,
}

#[derive(Debug)]
struct Launch<A> {
    asked_at: Instant,
    /// `None`: the request failed.
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
    pub(crate) async fn answer<E, F>(&self, key: LaunchKey, ask: impl Fn() -> F) -> Result<A, E>
    where
        F: Future<Output = Result<A, E>>,
    {
        let launch = self.of(&key);
        let mut failure = None;
        let answer = launch
            .get_or_init(|| async {
                match ask().await {
                    Ok(answer) => Some(answer),
                    Err(error) => {
                        self.forget(&key);
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

    fn of(&self, key: &LaunchKey) -> Arc<OnceCell<Option<A>>> {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        if launches.len() == launches.capacity() {
            launches.retain(|_, launch| launch.asked_at.elapsed() < KEPT);
        }
        let now = Instant::now();
        let fresh = || Launch {
            asked_at: now,
            answer: Arc::default(),
        };
        let launch = launches.entry(key.clone()).or_insert_with(fresh);
        if now.duration_since(launch.asked_at) >= KEPT {
            *launch = fresh();
        }
        Arc::clone(&launch.answer)
    }

    fn forget(&self, key: &LaunchKey) {
        let mut launches = self.launches.lock().unwrap_or_else(PoisonError::into_inner);
        launches.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn job(job_id: u32) -> LaunchKey {
        let key = JobKey {
            cluster: "c".into(),
            job_id,
            restart_count: 0,
        };
        (key, None)
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
            launches.answer(one.clone(), ask),
            launches.answer(one.clone(), ask),
            launches.answer(one.clone(), ask)
        );
        assert_eq!(answers, (Ok(0), Ok(0), Ok(0)));
        assert_eq!(launches.answer(job(2), ask).await, Ok(1));
        tokio::time::advance(KEPT).await;
        assert_eq!(launches.answer(one, ask).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_id_that_comes_back_at_once_is_not_answered_as_the_launch_before() {
        let launches = Launches::<u32>::default();
        let (key, _) = job(1);
        let of = |sluid: &str| (key.clone(), Some(sluid.parse().unwrap()));
        let (first, second) = (of("s5TFPJ0K1Q0000"), of("s5TFPJ0K1Q0001"));
        for (launch, number) in [(&first, 1), (&second, 2), (&first, 1)] {
            let answer = launches.answer(launch.clone(), || async { Ok::<_, ()>(number) });
            assert_eq!(answer.await, Ok(number));
        }
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
        let answers = tokio::join!(
            launches.answer(one.clone(), ask),
            launches.answer(one.clone(), ask)
        );
        assert_eq!(answers, (Err("outage"), Ok(1)));
        assert_eq!(launches.answer(one.clone(), ask).await, Ok(2));
        assert_eq!(launches.answer(one, ask).await, Ok(2), "kept");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_old_is_dropped() {
        let launches = Launches::<u32>::default();
        for number in 0..1000 {
            tokio::time::advance(KEPT / 10).await;
            let job = job(number);
            let answer = launches.answer(job, || async { Ok::<_, ()>(number) });
            assert_eq!(answer.await, Ok(number));
        }
        assert!(launches.launches.lock().unwrap().len() < 50);
    }
}
