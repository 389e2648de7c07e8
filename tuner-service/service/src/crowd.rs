//! Work that many callers have at the same time, and that one of them does for all: while it is
//! done, the work of those who come meanwhile gathers, and is done together next. A caller who
//! comes alone does not wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The most pieces of work that are done together, so that the first of them need not wait for
/// thousands.
const MOST_TOGETHER: usize = 128;

/// Pieces of work `T`, each with the result `R`.
#[derive(Debug)]
pub(crate) struct Crowd<T, R> {
    gathering: Arc<Mutex<Gathering<T, R>>>,
}

#[derive(Debug)]
struct Gathering<T, R> {
    /// True while a caller has the turn.
    is_busy: bool,
    waiting: VecDeque<Waiting<T, R>>,
}

/// A piece of work, and where its caller is told.
type Waiting<T, R> = (T, oneshot::Sender<Told<T, R>>);

/// The work of a caller who has the turn, or where a caller waits who has not.
type Come<T, R> = Result<(T, Turn<T, R>), oneshot::Receiver<Told<T, R>>>;

/// What a caller who waits is told.
#[derive(Debug)]
enum Told<T, R> {
    /// The result of its work.
    Done(R),
    /// It has its work again, and the turn to do it with that of others.
    Turn(T, Turn<T, R>),
}

/// The turn to work for all. When it is dropped, the first who waits has it.
#[derive(Debug)]
struct Turn<T, R>(Arc<Mutex<Gathering<T, R>>>);

impl<T, R> Default for Crowd<T, R> {
    fn default() -> Self {
        let gathering = Gathering {
            is_busy: false,
            waiting: VecDeque::new(),
        };
        Self {
            gathering: Arc::new(Mutex::new(gathering)),
        }
    }
}

impl<T, R> Crowd<T, R> {
    /// Has `one` done with what others have, by this caller's `together` or another's. `together`
    /// gives the results in the order of the work.
    ///
    /// Returns `None` if another caller's `together` failed, or was dropped before its end. Then it
    /// is not known whether `one` was done.
    pub(crate) async fn join<E, F>(
        &self,
        one: T,
        together: impl FnOnce(Vec<T>) -> F,
    ) -> Result<Option<R>, E>
    where
        F: Future<Output = Result<Vec<R>, E>>,
    {
        let (one, turn) = match self.come(one) {
            Ok(own) => own,
            Err(told) => match told.await {
                Ok(Told::Done(result)) => return Ok(Some(result)),
                Ok(Told::Turn(one, turn)) => (one, turn),
                Err(_) => return Ok(None),
            },
        };
        let (mut work, mut senders) = (vec![one], Vec::new());
        for (other, sender) in turn.others() {
            work.push(other);
            senders.push(sender);
        }
        let mut results = together(work).await?.into_iter();
        let own = results.next();
        for (sender, result) in senders.into_iter().zip(results) {
            // Who has gone away needs no result.
            let _ = sender.send(Told::Done(result));
        }
        Ok(own)
    }

    /// Takes the turn if nobody has it; otherwise hands in the work, and returns where to wait.
    fn come(&self, one: T) -> Come<T, R> {
        let mut gathering = lock(&self.gathering);
        if gathering.is_busy {
            let (sender, told) = oneshot::channel();
            gathering.waiting.push_back((one, sender));
            return Err(told);
        }
        gathering.is_busy = true;
        Ok((one, Turn(Arc::clone(&self.gathering))))
    }
}

impl<T, R> Turn<T, R> {
    /// The work of the first who wait and have not gone away, as far as there is room for it.
    fn others(&self) -> Vec<Waiting<T, R>> {
        let mut gathering = lock(&self.0);
        let all = std::iter::from_fn(|| gathering.waiting.pop_front());
        all.filter(|(_, sender)| !sender.is_closed())
            .take(MOST_TOGETHER - 1)
            .collect()
    }
}

impl<T, R> Drop for Turn<T, R> {
    fn drop(&mut self) {
        let mut gathering = lock(&self.0);
        let next = std::iter::from_fn(|| gathering.waiting.pop_front())
            .find(|(_, sender)| !sender.is_closed());
        gathering.is_busy = next.is_some();
        drop(gathering);
        if let Some((one, sender)) = next {
            // If they have gone away meanwhile, this drops their turn, which passes it on.
            let _ = sender.send(Told::Turn(one, Turn(Arc::clone(&self.0))));
        }
    }
}

fn lock<T, R>(gathering: &Mutex<Gathering<T, R>>) -> MutexGuard<'_, Gathering<T, R>> {
    gathering.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Doubles numbers, and records how many it was given at a time.
    async fn doubled(batches: &RefCell<Vec<usize>>, numbers: Vec<usize>) -> Result<Vec<usize>, ()> {
        batches.borrow_mut().push(numbers.len());
        tokio::task::yield_now().await;
        Ok(numbers.into_iter().map(|number| 2 * number).collect())
    }

    /// Polls a future once, which must not end by that.
    async fn begun(future: &mut (impl Future + Unpin)) {
        tokio::select! {
            biased;
            _ = future => panic!("it has ended"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn who_comes_alone_does_not_wait() {
        let (crowd, batches) = (Crowd::default(), RefCell::default());
        for number in 0..3 {
            let result = crowd.join(number, |all| doubled(&batches, all));
            assert_eq!(result.await, Ok(Some(2 * number)));
        }
        assert_eq!(*batches.borrow(), [1, 1, 1]);
    }

    #[tokio::test]
    async fn what_gathers_is_done_together_and_each_has_its_own_result() {
        let (crowd, batches) = (Crowd::default(), RefCell::default());
        let join = |number| crowd.join(number, |all| doubled(&batches, all));
        let mut first = pin!(join(0));
        begun(&mut first).await;
        let mut others: Vec<_> = (1..300).map(|number| Box::pin(join(number))).collect();
        for other in &mut others {
            begun(other).await;
        }
        assert_eq!(first.await, Ok(Some(0)));
        for (number, other) in (1..).zip(others) {
            assert_eq!(other.await, Ok(Some(2 * number)));
        }
        assert_eq!(*batches.borrow(), [1, MOST_TOGETHER, MOST_TOGETHER, 43]);
    }

    #[tokio::test]
    async fn an_error_is_told_to_who_had_it_and_the_others_learn_that_nothing_is_known() {
        let crowd = Crowd::<u32, u32>::default();
        let join = |number| {
            crowd.join(number, async move |all: Vec<u32>| {
                tokio::task::yield_now().await;
                match all.len() {
                    1 => Ok(all),
                    _ => Err("outage"),
                }
            })
        };
        let results = tokio::join!(join(1), join(2), join(3));
        assert_eq!(results, (Ok(Some(1)), Err("outage"), Ok(None)));
        assert_eq!(join(4).await, Ok(Some(4)), "who comes later is served");
    }

    #[tokio::test]
    async fn who_goes_away_while_working_for_all_leaves_the_others_their_way() {
        let crowd = Arc::new(Crowd::<u32, u32>::default());
        let (begun, blocked) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |number| {
            let (crowd, begun, blocked) = (crowd.clone(), begun.clone(), blocked.clone());
            tokio::spawn(async move {
                let together = |all: Vec<u32>| async {
                    if blocked.fetch_add(1, Ordering::Relaxed) == 0 {
                        begun.add_permits(1);
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, ()>(all)
                };
                crowd.join(number, together).await
            })
        };
        let gone = ask(1);
        begun.acquire().await.unwrap().forget();
        let stays = ask(2);
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        assert_eq!(stays.await.unwrap(), Ok(Some(2)));
    }

    #[tokio::test]
    async fn nothing_is_done_for_who_has_gone_away() {
        let (crowd, batches) = (Crowd::default(), RefCell::default());
        let join = |number| crowd.join(number, |all| doubled(&batches, all));
        let mut first = pin!(join(0));
        begun(&mut first).await;
        let [mut gone, mut next, mut last] = [1, 2, 3].map(|number| Box::pin(join(number)));
        for one in [&mut gone, &mut next, &mut last] {
            begun(one).await;
        }
        drop(gone);
        assert_eq!(first.await, Ok(Some(0)));
        // It has the turn, and goes away before it knows.
        drop(next);
        assert_eq!(last.await, Ok(Some(6)));
        assert_eq!(*batches.borrow(), [1, 1]);
    }
}
