//! The calls of this tree's engine; a file beside this one has those of an earlier tag's engine.

#[path = "hot.rs"]
pub(crate) mod hot;

use std::sync::Arc;

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{Epoch, History, Mixture, Outlook, Pending, RecentRun, Steering};
use io_autotune_model::{Effect, Gain};

use crate::life::Given;

/// The engine's name on the page.
pub(crate) const NAME: &str = "this tree";

/// The state that decides how often control runs come.
pub(crate) type Known = Outlook;

/// The knowledge that a study begins from.
pub(crate) type Prior = Arc<io_autotune_engine::Prior>;

pub(crate) fn known(gain: &Gain) -> Known {
    gain.outlook()
}

/// The intervals of the gain, as shares: of what was recommended before the search had ended, and
/// since then.
pub(crate) fn intervals(evidence: &Evidence, _gain: &Gain) -> [Option<(f64, f64)>; 2] {
    let ends = |effect: Effect| {
        let (low, high) = effect.low.zip(effect.high)?;
        Some((-(-low).exp_m1(), -(-high).exp_m1()))
    };
    let current = evidence.effect(1);
    let before = evidence
        .effects(1)
        .find(|one| Some(one) != current.as_ref());
    let [before, current] = [before, current].map(|effect| effect.and_then(ends));
    if evidence.is_proof() {
        [current, None]
    } else {
        [before, current]
    }
}

/// Returns what the next run gets; `draw` is the service's random number.
pub(crate) fn suggest(
    epoch: Epoch<'_>,
    (prior, known): (Option<&Prior>, Known),
    draw: f64,
    mixed: Option<Mixture>,
    history: &History,
    pending: &[Pending],
) -> Given {
    let epoch = epoch.with_prior(prior).with_outlook(known).with_draw(draw);
    let steering = Steering::default();
    let situation = epoch.situation(history, pending, &steering);
    let suggestion = situation.with_mixture(mixed, history).decide().suggestion;
    Given {
        phase: suggestion.phase,
        role: suggestion.role,
        parametrization: suggestion.parametrization,
        control_chance: suggestion.control_chance,
    }
}

/// A run as the history keeps it. `started`: hours; `slowness`: of others, 0 if nothing is known.
pub(crate) fn recent(ordinal: i64, elapsed: f64, (started, slowness): (f64, f64)) -> RecentRun {
    let others = (slowness != 0.0).then(|| slowness.exp());
    let run = RecentRun::new(ordinal, elapsed).started_at((started * 3600.0) as i64);
    run.beside(others)
}

/// A judged run as the evidence takes it; it was given what it has.
pub(crate) fn judged<'a>(
    ordinal: i64,
    (started, slowness): (i64, f64),
    given: &Given,
    [key, default]: [&'a str; 2],
    elapsed: f64,
) -> JudgedRun<'a> {
    JudgedRun {
        ordinal,
        started,
        slowness,
        phase: given.phase,
        role: given.role,
        control_chance: given.control_chance,
        given: key,
        default,
        counts: Some(Counts {
            key,
            elapsed,
            beside: None,
            cut_short: false,
        }),
        nodes: 1,
    }
}
