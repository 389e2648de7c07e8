//! The time of the service's host, for what is compared with the clocks of nodes and of the
//! database. Everything that is stored has the database's time.

use jiff::Timestamp;

/// A clock of a host.
pub(crate) trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the host on which the service runs.
#[derive(Debug)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
