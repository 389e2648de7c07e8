//! The engine of tag 0.2.0: control runs come exactly every tenth, and nothing is drawn.

use io_autotune_engine::evidence::JudgedRun;
use io_autotune_engine::{Epoch, History, Pending};

use crate::life::Given;

/// What the page calls it.
pub(crate) const NAME: &str = "0.2.0";

/// What the next run gets; `is_resolved`: a gain or a loss is claimed, `draw`: the service's number.
pub(crate) fn suggest(
    epoch: Epoch<'_>,
    _is_resolved: bool,
    _draw: f64,
    history: &History,
    pending: &[Pending],
) -> Given {
    let suggestion = epoch.suggest(history, pending);
    Given {
        phase: suggestion.phase,
        role: suggestion.role,
        parametrization: suggestion.parametrization,
        control_chance: None,
    }
}

/// A judged run as the evidence takes it, with the probability that it was drawn with.
pub(crate) fn judged(run: JudgedRun<'_>, _control_chance: Option<f64>) -> JudgedRun<'_> {
    run
}
