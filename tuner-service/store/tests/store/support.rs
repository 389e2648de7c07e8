//! Helpers of the tests: a database for each, and short ways to start and finish runs.

mod database;
mod dropped;
mod random;
mod runs;

pub(crate) use database::{Database, at_least_once_within};
pub(crate) use dropped::dropped_after;
pub(crate) use random::Random;
pub(crate) use runs::{
    CLUSTER, Lock, Report, START_EVERY_HOUR, Start, by, counted, decision, in_flight, launch,
    merge_reports, narrow_space, not_counted, other_space, point, say, space, started, study, word,
};
