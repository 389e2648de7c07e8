//! Who waits for a study, and who does not. A thousand starts of one study at once must neither
//! hold the database's connections while they wait for its row, nor wait beyond their deadline.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use io_autotune_store::StudyKey;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// How long a start waits for its turn: with the wait for the row's lock and the work itself well
/// inside the prolog's deadline of two seconds.
const TURN_WAIT: Duration = Duration::from_millis(500);

/// So many starts of one study wait; more would not have their turn in time, or would leave no
/// time to the others.
const MOST_WAITING: usize = 24;

/// What those who do not wait are told may be so old.
const SNAPSHOT_AGE: Duration = Duration::from_secs(1);

/// The gates of the studies that starts are under way for.
#[derive(Debug)]
pub(crate) struct Gates<S> {
    gates: Mutex<HashMap<Key, Weak<Gate<S>>>>,
}

impl<S> Default for Gates<S> {
    fn default() -> Self {
        Self {
            gates: Mutex::new(HashMap::new()),
        }
    }
}

/// What tells studies apart.
type Key = (u32, String, String, Vec<(String, String)>);

fn key(study: &StudyKey) -> Key {
    let context = study.context.iter();
    (
        study.owner_uid,
        study.application.clone(),
        study.accelerator.clone(),
        context.map(|(k, v)| (k.clone(), v.clone())).collect(),
    )
}

impl<S> Gates<S> {
    /// The gate of a study: one for all who ask while anyone holds it.
    pub(crate) fn of(&self, study: &StudyKey) -> Arc<Gate<S>> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(study);
        if let Some(gate) = gates.get(&key).and_then(Weak::upgrade) {
            return gate;
        }
        if gates.len() == gates.capacity() {
            gates.retain(|_, gate| gate.strong_count() > 0);
        }
        let gate = Arc::new(Gate::default());
        gates.insert(key, Arc::downgrade(&gate));
        gate
    }

    /// Forgets every snapshot: a study was steered.
    pub(crate) async fn forget_snapshots(&self) {
        let gates: Vec<_> = {
            let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
            gates.values().filter_map(Weak::upgrade).collect()
        };
        for gate in gates {
            gate.snapshot.lock().await.take();
        }
    }
}

/// One study's gate: one start at a time, a few waiting, and a snapshot of type `S` for the others.
#[derive(Debug)]
pub(crate) struct Gate<S> {
    turn: Semaphore,
    waiting: AtomicUsize,
    snapshot: tokio::sync::Mutex<Option<(Instant, Arc<S>)>>,
}

impl<S> Default for Gate<S> {
    fn default() -> Self {
        Self {
            turn: Semaphore::new(1),
            waiting: AtomicUsize::new(0),
            snapshot: tokio::sync::Mutex::new(None),
        }
    }
}

/// Counted among those who wait, until dropped.
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

impl<S> Gate<S> {
    /// Waits for a turn; `None`: it would take too long, or it did. Turns are had in the order in
    /// which they were asked for.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let _waiting = Waiting::start(&self.waiting)?;
        tokio::time::timeout(TURN_WAIT, self.turn.acquire())
            .await
            .ok()?
            .ok()
    }

    /// Forgets a snapshot, unless it has been replaced.
    pub(crate) async fn forget(&self, outdated: &Arc<S>) {
        let mut snapshot = self.snapshot.lock().await;
        if snapshot
            .as_ref()
            .is_some_and(|(_, state)| Arc::ptr_eq(state, outdated))
        {
            snapshot.take();
        }
    }

    /// The study as it was within the last second. Whoever finds none fetches it, for all.
    pub(crate) async fn snapshot<E>(
        &self,
        fetch: impl Future<Output = Result<S, E>>,
    ) -> Result<Arc<S>, E> {
        let mut snapshot = self.snapshot.lock().await;
        if let Some((at, state)) = snapshot.as_ref()
            && at.elapsed() < SNAPSHOT_AGE
        {
            return Ok(Arc::clone(state));
        }
        let fetched_at = Instant::now();
        let state = Arc::new(fetch.await?);
        *snapshot = Some((fetched_at, Arc::clone(&state)));
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn study(application: &str) -> StudyKey {
        StudyKey {
            owner_uid: 1000,
            owner_name: None,
            application: application.into(),
            accelerator: "romio".into(),
            context: Default::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_has_its_turn_a_few_wait_and_the_others_do_not() {
        let gate = Arc::new(Gate::<()>::default());
        let held = gate.turn().await.unwrap();
        let asking: Vec<_> = (0..100)
            .map(|_| {
                let gate = Arc::clone(&gate);
                tokio::spawn(async move { gate.turn().await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(held);
        let mut turns = 0;
        for ask in asking {
            turns += usize::from(ask.await.unwrap());
        }
        assert_eq!(turns, MOST_WAITING);
        assert_eq!(gate.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_beyond_the_limit() {
        let gate = Gate::<()>::default();
        let _held = gate.turn().await.unwrap();
        let began = Instant::now();
        assert!(gate.turn().await.is_none());
        assert!(began.elapsed() < TURN_WAIT + Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_is_fetched_once_a_second() {
        let gate = Gate::<u32>::default();
        let fetched = |value| async move { Ok::<_, Infallible>(value) };
        assert_eq!(*gate.snapshot(fetched(1)).await.unwrap(), 1);
        assert_eq!(*gate.snapshot(fetched(2)).await.unwrap(), 1);
        // It was found to be outdated; by two who had it.
        let outdated = gate.snapshot(fetched(2)).await.unwrap();
        gate.forget(&outdated).await;
        assert_eq!(*gate.snapshot(fetched(5)).await.unwrap(), 5);
        gate.forget(&outdated).await;
        assert_eq!(*gate.snapshot(fetched(6)).await.unwrap(), 5);
        tokio::time::advance(SNAPSHOT_AGE).await;
        assert_eq!(*gate.snapshot(fetched(3)).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_study_has_one_gate_while_it_is_used_and_none_afterwards() {
        let gates = Gates::<u32>::default();
        let ocean = gates.of(&study("ocean"));
        assert!(Arc::ptr_eq(&ocean, &gates.of(&study("ocean"))));
        assert!(!Arc::ptr_eq(&ocean, &gates.of(&study("ice"))));
        for application in 0..1000 {
            gates.of(&study(&application.to_string()));
        }
        assert!(
            gates.gates.lock().unwrap().len() < 200,
            "gates that nobody holds are dropped"
        );
        assert!(Arc::ptr_eq(&ocean, &gates.of(&study("ocean"))));
    }

    #[tokio::test]
    async fn a_steered_study_is_read_anew() {
        let gates = Gates::<u32>::default();
        let ocean = gates.of(&study("ocean"));
        let fetched = |value| async move { Ok::<_, Infallible>(value) };
        assert_eq!(*ocean.snapshot(fetched(1)).await.unwrap(), 1);
        gates.forget_snapshots().await;
        assert_eq!(*ocean.snapshot(fetched(2)).await.unwrap(), 2);
    }
}
