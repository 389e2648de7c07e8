//! How a program that asks the service runs.

use std::io;

/// Runs a program's work on this thread, and comes back as soon as the work is done.
///
/// A call into libmunge cannot be cancelled: one that hangs is left behind and not waited for.
///
/// # Errors
///
/// When the system gives no event queue.
pub fn block_on<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(result)
}
