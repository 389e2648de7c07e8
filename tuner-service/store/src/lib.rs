//! The store: PostgreSQL holds all state, service replicas hold none, and all SQL is here.
//!
//! Rules: time comes from the database. A study is serialised by its row lock, which is held for
//! one suggestion; no transaction locks two studies, and a study is locked before its runs. Every
//! write asserts the number of rows it touched, and whatever changes an epoch's `tested` writes the
//! epoch's row too, because processes keep copies. Every transaction has a name, which
//! `pg_stat_activity` and the logs show. Reads are single statements, or in one snapshot. Over a
//! pooler in transaction mode nothing may outlive a transaction: no setting of a session, prepared
//! statement, temporary table, LISTEN or advisory lock. "Not found" is a value, not an error. Every
//! method returns an error when the database fails; a method's doc names its other errors.

#![forbid(unsafe_code)]

mod accounts;
mod admin;
mod assess;
mod audit;
mod clock;
mod clusters;
mod connections;
mod directives;
mod doctor;
mod drift;
mod epoch_cache;
mod epoch_state;
mod epochs;
mod error;
mod exploring;
mod finish;
mod forget;
mod generation;
mod judge;
mod judgements;
mod nonces;
mod orders;
mod outcome;
mod overview;
mod pending_verdicts;
mod pool;
mod records;
mod retention;
mod sharing;
mod site_settings;
mod sources;
mod start;
mod state;
mod studies;
mod surroundings;
mod tested;
mod transfer;
mod unlocked;
mod views;

pub use accounts::Coordinated;
pub use admin::{Opened, Undone, WarmStart};
pub use assess::{Assessing, Continued, CountsRow, EVIDENCE_PAGE, EvidenceRow, KeptEvidence};
pub use audit::{Audit, AuditFilter, Most};
pub use connections::{DatabaseUrl, Outage, Pooler, ReadOnly, Unavailable, UrlError};
pub use doctor::{CacheFault, DatabaseFacts, StuckRun};
pub use drift::Inheritance;
pub use epoch_state::EpochOpening;
pub use error::{Scarce, StoreError};
pub use exploring::{Budgets, Spent};
pub use finish::{Finish, Finished, Merged};
pub use forget::{
    Forget, Forgetting, Forgot, Forgotten, ForgottenRows, classified_columns, kept_of_the_forgotten,
};
pub use generation::StartedRun;
pub use judge::{Judged, Judgement, Verdict};
pub use orders::{Directive, OrderChange, OrderRow, Ordered, Scope, Values, fitting};
pub use outcome::{Claimed, Recorded, Source};
pub use overview::Overview;
pub use pending_verdicts::{Awaited, AwaitedRun};
pub use pool::{Store, StoreOptions};
pub use records::{JobKey, StudyKey};
pub use retention::{LEAST_DAYS, RemovedChanges};
pub use sharing::{Sharer, Sibling};
pub use site_settings::{SiteSettingDue, SiteSettingRow};
pub use sources::Learnt;
pub use start::{Decision, NewRun};
pub use state::{EpochInputs, StudyState};
pub use studies::Called;
pub use transfer::{
    Cursor, ExportPage, Import, ImportError, Imported, NoCursor, Refusal,
    VERSION as EXPORT_VERSION, check_header,
};
pub use unlocked::{BusyStart, StartedTogether};
pub use views::{RunFilter, RunRow, StudyFilter, StudyRow};
