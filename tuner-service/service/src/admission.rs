//! Admission to a study: one start at a time is worked on, 24 wait, all others get a snapshot. A
//! thousand starts of one study must neither use up the database's connections nor miss their
//! deadlines.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use io_autotune_store::StudyKey;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Longest wait for a turn. With the row lock and the work it must fit the prolog's two seconds.
const TURN_WAIT: Duration = Duration::from_millis(500);

/// Waiting starts per study: more would miss their turn, or starve other studies.
const MOST_WAITING: usize = 24;

/// Oldest snapshot for starts that do not wait.
const SNAPSHOT_AGE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Admissions<S> {
    admissions: Mutex<HashMap<StudyKey, Weak<Admission<S>>>>,
}

impl<S> Default for Admissions<S> {
    fn default() -> Self {
        Self {
            admissions: Mutex::new(HashMap::new()),
        }
    }
}

impl<S> Admissions<S> {
    /// The study's admission, shared by all callers while it is in use.
    pub(crate) fn of(&self, study: &StudyKey) -> Arc<Admission<S>> {
        let mut admissions = self
            .admissions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A study is the same with and without its login name or its application's full name.
        let key = StudyKey {
            owner_name: None,
            full_name: None,
            ..study.clone()
        };
        if let Some(admission) = admissions.get(&key).and_then(Weak::upgrade) {
            return admission;
        }
        if admissions.len() == admissions.capacity() {
            admissions.retain(|_, admission| admission.strong_count() > 0);
        }
        let admission = Arc::new(Admission::default());
        admissions.insert(key, Arc::downgrade(&admission));
        admission
    }
}

#[derive(Debug)]
pub(crate) struct Admission<S> {
    turn: Semaphore,
    waiting: AtomicUsize,
    snapshot: Mutex<Option<Fetched<S>>>,
}

impl<S> Default for Admission<S> {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            snapshot: Mutex::new(None),
        }
    }
}

/// A snapshot. All who find it empty wait for one of them to fetch it, and have it at the same
/// moment: a lock would let one at a time look.
#[derive(Debug)]
struct Fetched<S> {
    asked_at: Instant,
    state: Arc<OnceCell<Arc<S>>>,
}

struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn start(count: &'a AtomicUsize) -> Option<Self> {
        let before = count.fetch_add(1, Ordering::Relaxed);
        let waiting = Self(count);
        (before < MOST_WAITING).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S> Admission<S> {
    /// Waits for a turn, first come first served; `None`: too many wait, or the wait took too long.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let _waiting = Waiting::start(&self.waiting)?;
        tokio::time::timeout(TURN_WAIT, self.turn.acquire())
            .await
            .ok()?
            .ok()
    }

    pub(crate) fn forget_snapshot(&self) {
        self.kept().take();
    }

    pub(crate) fn forget(&self, outdated: &Arc<S>) {
        let is_outdated = |fetched: &mut Fetched<S>| {
            (fetched.state.get()).is_some_and(|one| Arc::ptr_eq(one, outdated))
        };
        self.kept().take_if(is_outdated);
    }

    /// The study, at most a second old. One caller fetches it for all.
    pub(crate) async fn snapshot<E>(
        &self,
        fetch: impl Future<Output = Result<S, E>>,
    ) -> Result<Arc<S>, E> {
        let state = self.latest();
        let fetched = state.get_or_try_init(|| async { fetch.await.map(Arc::new) });
        fetched.await.cloned()
    }

    fn latest(&self) -> Arc<OnceCell<Arc<S>>> {
        let mut kept = self.kept();
        // One that is still being fetched is waited for, however long that takes: a slow database must
        // not be asked again each second.
        let is_recent = |fetched: &&Fetched<S>| {
            fetched.state.get().is_none() || fetched.asked_at.elapsed() < SNAPSHOT_AGE
        };
        if let Some(fetched) = kept.as_ref().filter(is_recent) {
            return Arc::clone(&fetched.state);
        }
        let state = Arc::default();
        *kept = Some(Fetched {
            asked_at: Instant::now(),
            state: Arc::clone(&state),
        });
        state
    }

    fn kept(&self) -> MutexGuard<'_, Option<Fetched<S>>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn study(application: &str) -> StudyKey {
        StudyKey {
            cluster: "alpha".into(),
            owner_uid: 1000,
            owner_name: None,
            application: application.into(),
            full_name: None,
            accelerator: "romio".into(),
            context: Default::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_has_its_turn_a_few_wait_and_the_others_do_not() {
        let admission = Arc::new(Admission::<()>::default());
        let held = admission.turn().await.unwrap();
        let asking: Vec<_> = (0..100)
            .map(|_| {
                let admission = Arc::clone(&admission);
                tokio::spawn(async move { admission.turn().await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(held);
        let mut turns = 0;
        for ask in asking {
            turns += usize::from(ask.await.unwrap());
        }
        assert_eq!(turns, MOST_WAITING);
        assert_eq!(admission.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_beyond_the_limit() {
        let admission = Admission::<()>::default();
        let _held = admission.turn().await.unwrap();
        let began = Instant::now();
        assert!(admission.turn().await.is_none());
        assert!(began.elapsed() < TURN_WAIT + Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_is_fetched_once_a_second() {
        let admission = Admission::<u32>::default();
        let fetched = |value| async move { Ok::<_, Infallible>(value) };
        assert_eq!(*admission.snapshot(fetched(1)).await.unwrap(), 1);
        assert_eq!(*admission.snapshot(fetched(2)).await.unwrap(), 1);
        let outdated = admission.snapshot(fetched(2)).await.unwrap();
        admission.forget(&outdated);
        assert_eq!(*admission.snapshot(fetched(5)).await.unwrap(), 5);
        admission.forget(&outdated);
        assert_eq!(*admission.snapshot(fetched(6)).await.unwrap(), 5);
        tokio::time::advance(SNAPSHOT_AGE).await;
        assert_eq!(*admission.snapshot(fetched(3)).await.unwrap(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_that_is_long_in_coming_is_not_fetched_a_second_time() {
        let admission = Admission::<u32>::default();
        let slow = async {
            tokio::time::sleep(3 * SNAPSHOT_AGE).await;
            Ok::<_, Infallible>(1)
        };
        let later = async {
            tokio::time::sleep(2 * SNAPSHOT_AGE).await;
            let fetched = async { panic!("it is fetched a second time") };
            admission.snapshot::<Infallible>(fetched).await
        };
        let (one, two) = tokio::join!(admission.snapshot(slow), later);
        assert_eq!((*one.unwrap(), *two.unwrap()), (1, 1));
    }

    #[tokio::test]
    async fn a_study_has_one_gate_while_it_is_used_and_none_afterwards() {
        let admissions = Admissions::<u32>::default();
        let ocean = admissions.of(&study("ocean"));
        assert!(Arc::ptr_eq(&ocean, &admissions.of(&study("ocean"))));
        assert!(!Arc::ptr_eq(&ocean, &admissions.of(&study("ice"))));
        for application in 0..1000 {
            admissions.of(&study(&application.to_string()));
        }
        assert!(
            admissions.admissions.lock().unwrap().len() < 200,
            "gates that nobody holds are dropped"
        );
        assert!(Arc::ptr_eq(&ocean, &admissions.of(&study("ocean"))));
    }

    /// Attack (floods): Resets make the service forget what it has read.
    /// Outcome: It forgets its own study's alone.
    #[tokio::test]
    async fn a_steered_study_is_read_anew_and_no_other() {
        let admissions = Admissions::<u32>::default();
        let (ocean, ice) = (admissions.of(&study("ocean")), admissions.of(&study("ice")));
        let fetched = |value| async move { Ok::<_, Infallible>(value) };
        for study in [&ocean, &ice] {
            assert_eq!(*study.snapshot(fetched(1)).await.unwrap(), 1);
        }
        admissions.of(&study("ocean")).forget_snapshot();
        assert_eq!(*ocean.snapshot(fetched(2)).await.unwrap(), 2);
        assert_eq!(*ice.snapshot(fetched(2)).await.unwrap(), 1);
    }
}
