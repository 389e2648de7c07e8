//! The runtime of a program that sends requests to the service.

use std::io;

/// Runs the work on this thread and returns as soon as it is done. A call of libmunge or SACK that
/// hangs cannot be cancelled and is left behind. Returns an error if the system gives no event
/// queue.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(result)
}
