//! What an epoch does on other studies' word. One run is made on it alone, the first: what promises
//! most. Later ones go by the posterior, which leans on the prior as far as the epoch's own runs
//! bear it out; while they do, one point of the design is enough.

use io_autotune_model::reason::Reason;
use io_autotune_model::space::Point;
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::surrogate::prior::Mean;

/// So much of the prior's mean is believed where its word replaces design points.
const TRUSTED: f64 = 0.45;
/// The design points that stay.
const KEPT: usize = 1;

/// What other studies promise an epoch that has explored nothing.
pub(crate) fn promised(view: &Modelled<'_>, explored: u64) -> Option<(Point, Reason)> {
    let expected = view.expected().filter(|_| explored == 0)?;
    let new = |known: &Known| known.runs() == 0;
    let is_new = |point: &Point| *point != view.default && view.get(point).is_none_or(new);
    let (point, log_ratio) = expected.promising(is_new)?;
    let reason = Reason::Promised {
        studies: expected.counted(),
        predicted: log_ratio.exponential(),
    };
    Some((point, reason))
}

/// Whether what has run of the design is enough, because the prior holds: something is faster than
/// the default, and the runs so far bear the prior out.
pub(crate) fn replaces_design(context: &MethodContext<'_>) -> bool {
    let view = context.view;
    if context.inherited > 0 || view.expected().is_none() {
        return false;
    }
    let begun = |point: &&Point| !context.is_untested(point);
    let is_better = view.posterior().is_some_and(|posterior| {
        posterior.surrogate.lean() >= TRUSTED && posterior.ranked.first() != Some(&view.default)
    });
    is_better && context.design.iter().filter(begun).count() >= KEPT
}

/// The reason with how much it stands on other studies.
pub(crate) fn told(view: &Modelled<'_>, reason: Reason) -> Reason {
    let lean = view.posterior().map(|posterior| posterior.surrogate.lean());
    match lean.filter(|lean| *lean > 0.0) {
        Some(lean) => Reason::Prior {
            reason: Box::new(reason),
            studies: view.expected().map_or(0, Mean::counted),
            lean,
        },
        None => reason,
    }
}
