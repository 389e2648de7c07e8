//! When the search ends before its budget is spent.

use serde::{Deserialize, Serialize};

use io_autotune_search::checks::{SettingsError, positive, whole};

/// Stopping criteria: the first that is met ends the search before its budget, because there is
/// nothing to win.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// I/O takes too small a part of the runs to be worth tuning.
    pub little_io: LittleIo,
    /// The number of runs after which the search ends if in none of them anything read the files
    /// that carry parametrizations; 0: never.
    pub unread_runs: u32,
    /// The share of the default's time that is worth a search: the search ends once it is sure that
    /// less can be won; 0: never.
    pub least_gain: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            little_io: LittleIo::default(),
            unread_runs: 3,
            least_gain: 0.05,
        }
    }
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
        if self.least_gain != 0.0 {
            let unit = ", as a share of the default's time, or 0";
            positive("stop.least_gain", self.least_gain, 1.0, unit)?;
        }
        Ok(())
    }
}
