//! Work that is the same for each of many numbers, over several threads.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns what `one` makes of each number below `count`, in their order, whichever thread made it.
pub fn each<T: Send + Sync>(
    count: usize,
    threads: NonZero<usize>,
    one: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = slots.get(number) else { break };
            slot.get_or_init(|| one(number));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(count.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    slots.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// As many threads as there are processors.
pub fn processors() -> NonZero<usize> {
    std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// [`each`] over all processors.
pub fn on_all<T: Send + Sync>(count: u64, one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    each(count, processors(), |number| one(number as u64))
}
