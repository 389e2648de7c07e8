//! The engine of tag 0.2.0: control runs come exactly every tenth, and nothing is drawn.

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{Epoch, History, Mixture, Pending, RecentRun, Role, is_observed};
use io_autotune_model::{Gain, GainVerdict};

use crate::life::Given;

/// The engine's name on the page.
pub(crate) const NAME: &str = "0.2.0";

/// The state that decides how often control runs come: whether a gain or a loss is claimed.
pub(crate) type Known = bool;

/// It begins from nothing.
pub(crate) type Prior = ();

pub(crate) mod hot {
    use crate::Failure;
    use crate::application::Made;

    pub(crate) type From = std::convert::Infallible;
    pub(crate) const CELLS: [(f64, &[(From, &str)]); 0] = [];

    pub(crate) fn space() -> Result<(), Failure> {
        Ok(())
    }

    pub(crate) fn begin((): &(), from: From, _: f64, _: f64, _: u64) -> (Made, Option<super::Prior>) {
        match from {}
    }
}

pub(crate) fn known(gain: &Gain) -> Known {
    matches!(gain.verdict, GainVerdict::Faster | GainVerdict::Slower)
}

/// The intervals of the gain, as shares: of what was recommended before the search had ended, and
/// since then.
pub(crate) fn intervals(_evidence: &Evidence, gain: &Gain) -> [Option<(f64, f64)>; 2] {
    [None, gain.low.zip(gain.high)]
}

/// Returns what the next run gets; `draw` is the service's random number.
pub(crate) fn suggest(
    epoch: Epoch<'_>,
    _known: (Option<&Prior>, Known),
    _draw: f64,
    mixed: Option<Mixture>,
    history: &History,
    pending: &[Pending],
) -> Given {
    if let Some(mixed) = mixed {
        let phase = epoch.phase(history, pending);
        if is_observed(&mixed, history, phase) {
            return Given {
                phase,
                role: Role::Observe,
                // The first run of all is of the default.
                parametrization: epoch.suggest(&History::default(), &[]).parametrization,
                control_chance: None,
            };
        }
    }
    let suggestion = epoch.suggest(history, pending);
    Given {
        phase: suggestion.phase,
        role: suggestion.role,
        parametrization: suggestion.parametrization,
        control_chance: None,
    }
}

/// A run as the history keeps it. `started`: hours; nothing of others.
pub(crate) fn recent(ordinal: i64, elapsed: f64, (started, _): (f64, f64)) -> RecentRun {
    RecentRun::new(ordinal, elapsed).started_at((started * 3600.0) as i64)
}

/// A judged run as the evidence takes it; it was given what it has.
pub(crate) fn judged<'a>(
    ordinal: i64,
    (started, _): (i64, f64),
    given: &Given,
    [key, default]: [&'a str; 2],
    elapsed: f64,
) -> JudgedRun<'a> {
    JudgedRun {
        ordinal,
        started,
        phase: given.phase,
        role: given.role,
        counts: Some(Counts {
            key,
            is_default: key == default,
            elapsed,
            cut_short: false,
        }),
        nodes: 1,
    }
}
