//! The store: PostgreSQL holds the truth, service replicas hold none, and all SQL lives here.
//!
//! Rules of the house: time comes from the database; a study is serialised by its row lock, held
//! for one suggestion; every write asserts the rows it touched; every transaction has a name,
//! which `pg_stat_activity` and the logs show; "not found" is a value and not an error.

#![forbid(unsafe_code)]

mod admin;
mod assess;
mod awaited;
mod clock;
mod doctor;
mod drift;
mod epochs;
mod error;
mod finish;
mod generation;
mod judge;
mod judgements;
mod outcome;
mod pool;
mod records;
mod start;
mod state;
mod studies;
mod tested;
mod views;

pub use admin::{Audit, AuditEntry};
pub use assess::{Assessing, EVIDENCE_PAGE, EvidenceRow, KeptEvidence};
pub use awaited::AwaitedRun;
pub use doctor::{CacheFault, StuckRun};
pub use drift::Inheritance;
pub use error::{Scarce, StoreError};
pub use finish::{Finish, Finished, Merged};
pub use generation::StartedRun;
pub use judge::{Failure, Judged, Judgement, Verdict};
pub use outcome::{OutcomeReport, Recorded, Source};
pub use pool::Store;
pub use records::{JobKey, StudyKey};
pub use start::{Decision, NewRun};
pub use state::{EpochInputs, EpochOpening, StudyState};
pub use views::{ComparedRun, PinRow, RunFilter, RunRow, StudyFilter, StudyRow};
