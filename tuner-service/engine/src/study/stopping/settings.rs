//! When the search ends before its budget is spent.

use serde::{Deserialize, Serialize};

use io_autotune_search::checks::{SettingsError, positive, whole};

/// Stopping criteria: the first that is met ends the search before its budget. Only `little_io` and
/// `unread_runs` are set by default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// The lowest mean hardly falls any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement: Option<Improvement>,
    /// The search keeps to a few parametrizations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<Distinct>,
    /// The search hardly moves any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Distance>,
    /// The surrogate expects no further improvement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nothing_left: Option<NothingLeft>,
    /// I/O takes too small a part of the runs to be worth tuning.
    pub little_io: LittleIo,
    /// The number of runs after which the search ends if in none of them anything read the files
    /// that carry parametrizations; 0: never.
    pub unread_runs: u32,
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            improvement: None,
            distinct: None,
            distance: None,
            nothing_left: None,
            little_io: LittleIo::default(),
            unread_runs: 3,
        }
    }
}

/// Stops if the parametrizations of the latest runs lowered the lowest mean by less than a share of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Improvement {
    /// The number of latest runs.
    pub runs: u32,
    /// The share, above 0 and at most 1.
    pub share: f64,
}

/// Stops if the latest runs had too few distinct parametrizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distinct {
    /// The number of latest runs.
    pub runs: u32,
    /// The least number of distinct parametrizations; fewer end the search.
    pub least: u32,
}

/// Stops if the latest runs moved by less than a mean distance from each to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distance {
    /// The number of latest runs, at least 2.
    pub runs: u32,
    /// The least mean distance of two parametrizations, above 0 and at most 1.
    pub least: f64,
}

/// Stops if the largest expected improvement on the best known is less than a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NothingLeft {
    /// The share, above 0 and at most 1.
    pub share: f64,
}

/// Stops if the default's runs cannot have spent a given share of their elapsed on I/O, even if
/// each call and each wait had taken `call_ms`, and all bytes, one after the other, had moved at
/// `mb_per_second`. It ends the search before the first other parametrization. Only measured runs
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LittleIo {
    /// The share, at most 1; 0: never.
    pub share: f64,
    /// The time of a call or a wait, in milliseconds.
    pub call_ms: f64,
    /// The speed of storage, in millions of bytes a second.
    pub mb_per_second: f64,
}

impl Default for LittleIo {
    fn default() -> Self {
        LittleIo {
            share: 0.03,
            call_ms: 1.0,
            mb_per_second: 10.0,
        }
    }
}

const SLOWEST_CALL_MS: f64 = 60_000.0;
const FASTEST_MB_PER_SECOND: f64 = 1e6;

const LONGEST: u32 = 100_000;

impl Stop {
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        if let Some(Improvement { runs, share }) = self.improvement {
            whole("stop.improvement.runs", runs, 1, LONGEST)?;
            let unit = ", as a share of the lowest mean";
            positive("stop.improvement.share", share, 1.0, unit)?;
        }
        if let Some(Distinct { runs, least }) = self.distinct {
            whole("stop.distinct.runs", runs, 1, LONGEST)?;
            whole("stop.distinct.least", least, 1, runs)?;
        }
        if let Some(Distance { runs, least }) = self.distance {
            whole("stop.distance.runs", runs, 2, LONGEST)?;
            positive("stop.distance.least", least, 1.0, "")?;
        }
        if let Some(NothingLeft { share }) = self.nothing_left {
            let unit = ", as a share of the best known";
            positive("stop.nothing_left.share", share, 1.0, unit)?;
        }
        let LittleIo {
            share,
            call_ms,
            mb_per_second,
        } = self.little_io;
        let (unit, ms) = (", as a share of elapsed, or 0", " milliseconds");
        if share != 0.0 {
            positive("stop.little_io.share", share, 1.0, unit)?;
        }
        positive("stop.little_io.call_ms", call_ms, SLOWEST_CALL_MS, ms)?;
        let most = FASTEST_MB_PER_SECOND;
        positive("stop.little_io.mb_per_second", mb_per_second, most, "")?;
        whole("stop.unread_runs", self.unread_runs, 0, LONGEST)?;
        Ok(())
    }
}
