//! Work that is the same for each of many numbers, over several threads.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `one` makes of each number below `count`, in their order, whichever thread made it.
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
