//! The store: PostgreSQL holds the truth, service replicas hold none, and all SQL lives here.
//!
//! Rules of the house: time comes from the database; a study is serialised by its row lock, held
//! for one suggestion; every write asserts the rows it touched; every transaction has a name,
//! which `pg_stat_activity` and the logs show; "not found" is a value and not an error.

#![forbid(unsafe_code)]

mod admin;
mod error;
mod finish;
mod judge;
mod outcome;
mod pool;
mod records;
mod start;
mod state;
mod views;

pub use admin::{Audit, AuditEntry};
pub use error::StoreError;
pub use finish::{Finish, Finished};
pub use judge::Verdict;
pub use outcome::AwaitedRun;
pub use pool::Store;
pub use records::{JobKey, StudyKey};
pub use start::{Decision, Lock, NewRun, StartedRun};
pub use state::StudyState;
pub use views::{ComparedRun, PinRow, RunFilter, RunRow, StudyFilter, StudyRow};
