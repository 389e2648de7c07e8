//! A default that does not complete: its runs fail, or their time limit cuts them short.
//!
//! A baseline would wait for such a default for ever, and the search has nothing to compare with.
//! So the baseline is given up once
//!
//! ```text
//! lost runs of the default >= baseline_lost_runs * (its completed runs + 1)
//! ```
//!
//! A default that failed at first and completes since then is measured as any other, and one that
//! fails half of the time has its baseline a little later. A lost run never enters as a time. How
//! long it took before its limit is a lower bound, which is shown, and which decides one thing: a
//! job whose limit is longer than any that cut the default short may let the default complete, so
//! it measures the default first, at most twice as often as a baseline may be lost.

use io_autotune_model::LongerLimit;
use io_autotune_model::reason::LostDefault;
use io_autotune_search::history::by_point::{Known, View};

use crate::study::settings::Settings;

/// Only a limit this many times longer than the longest cut run counts as longer, because a run
/// ends some time after its job has begun.
const LONGER: f64 = 1.25;

/// How the default's runs ended, if its baseline is given up; otherwise none.
pub(crate) fn given_up(default: &Known, settings: &Settings) -> Option<LostDefault> {
    let few = default.count() < u64::from(settings.baseline_runs);
    (few && default.lost() >= most_lost(default, settings)).then(|| LostDefault {
        completed: default.count(),
        failed: default.failed,
        cut_short: default.censored(),
        at_least: default.longest_bound(),
    })
}

/// The time limits with which a job measures the default again; none unless shorter limits are the
/// only reason why it was lost.
pub(crate) fn longer_limit(view: &View<'_>, settings: &Settings) -> Option<LongerLimit> {
    let default = view.default_known();
    let may = view.default_never_completed() && default.failed == 0;
    let bound = default.longest_bound().filter(|_| may)?;
    let most = 2 * most_lost(&default, settings);
    Some(LongerLimit {
        above: LONGER * bound,
        runs: most.saturating_sub(default.lost()),
    })
}

fn most_lost(default: &Known, settings: &Settings) -> u64 {
    let most = u64::from(settings.baseline_lost_runs);
    most.saturating_mul(default.count().saturating_add(1))
}
