//! What this engine does otherwise than an earlier tag's, which has a file of its own beside this one.

use io_autotune_engine::evidence::JudgedRun;
use io_autotune_engine::{Epoch, History, Pending};

use crate::life::Given;

/// What the page calls it.
pub(crate) const NAME: &str = "this tree";

/// What the next run gets; `is_resolved`: a gain or a loss is claimed, `draw`: the service's number.
pub(crate) fn suggest(
    epoch: Epoch<'_>,
    is_resolved: bool,
    draw: f64,
    history: &History,
    pending: &[Pending],
) -> Given {
    let suggestion = epoch
        .with_resolved(is_resolved)
        .with_draw(draw)
        .suggest(history, pending);
    Given {
        phase: suggestion.phase,
        role: suggestion.role,
        parametrization: suggestion.parametrization,
        control_chance: suggestion.control_chance,
    }
}

/// A judged run as the evidence takes it, with the probability that it was drawn with.
pub(crate) fn judged(run: JudgedRun<'_>, _control_chance: Option<f64>) -> JudgedRun<'_> {
    run
}
