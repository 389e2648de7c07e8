//! Shared keys and conversions.

use std::collections::BTreeMap;
use std::str::FromStr;

use io_autotune_model::{Objective, ObjectiveError};
use jiff::Timestamp;

use crate::error::StoreError;

/// The key of a launch, apart from its generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobKey {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// The number of times that the job was restarted.
    pub restart_count: u32,
}

/// The key of a study.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StudyKey {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// The owner of the application.
    pub owner_uid: u32,
    /// The owner's login name, if known.
    pub owner_name: Option<String>,
    /// The application's name.
    pub application: String,
    /// The application's full name, if its name does not have all of it.
    pub full_name: Option<String>,
    /// The accelerator's name.
    pub accelerator: String,
    /// The study's context, which makes runs incomparable, such as nodes and partition.
    pub context: BTreeMap<String, String>,
}

impl StudyKey {
    pub(crate) fn context_key(&self) -> String {
        serde_json::to_string(&self.context).unwrap_or_default()
    }
}

pub(crate) fn word<T: FromStr>(transaction: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| {
        StoreError::invariant(
            transaction,
            format!("{text:?} is not a word this program knows"),
        )
    })
}

pub(crate) fn number<T, U>(transaction: &'static str, value: T) -> Result<U, StoreError>
where
    T: Copy + std::fmt::Display,
    U: TryFrom<T>,
{
    U::try_from(value)
        .map_err(|_| StoreError::invariant(transaction, format!("{value} is out of range")))
}

/// A time from microseconds since 1970.
pub(crate) fn timestamp(transaction: &'static str, micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros)
        .map_err(|error| StoreError::invariant(transaction, error.to_string()))
}

/// Reads a stored objective.
pub(crate) fn objective(name: &'static str, text: &str) -> Result<Objective, StoreError> {
    text.parse()
        .map_err(|error: ObjectiveError| StoreError::invariant(name, error.to_string()))
}

/// The value of a counted run that enters its epoch's history in the place of elapsed.
pub(crate) fn value(
    name: &'static str,
    objective: &Objective,
    elapsed: f64,
    measures: &BTreeMap<String, f64>,
) -> Result<f64, StoreError> {
    objective.value(elapsed, measures).ok_or_else(|| {
        StoreError::invariant(
            name,
            format!("a run without {objective} counts in an epoch of it"),
        )
    })
}
