//! What an epoch does on other studies' word. One run is made on it alone, the first: what promises
//! most of what is a step away from the default. Later ones go by the posterior, which leans on the
//! prior as far as the epoch's own runs bear it out; while they do, one point of the design is
//! enough, and what several studies found faster than the default is within reach.

use io_autotune_model::reason::Reason;
use io_autotune_model::space::Point;
use io_autotune_search::MethodContext;
use io_autotune_search::acquisition;
use io_autotune_search::history::by_point::Known;
use io_autotune_search::math::Portable;
use io_autotune_search::neighbourhood;
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::surrogate::prior::TRUSTED;
use rand_chacha::ChaCha8Rng;

/// The design points that stay.
const KEPT: usize = 1;
/// Runs of other points than the default, before it can be known that nothing is left to gain.
const LEAST: usize = 6;
/// So many points that others promise most of are looked at.
const PROMISED: usize = 64;

/// What other studies promise an epoch that has explored nothing, of what may run: whoever they are,
/// a first step is small.
pub(crate) fn promised(
    view: &Modelled<'_>,
    explored: u64,
    admits: impl Fn(&Point) -> bool,
    rng: &mut ChaCha8Rng,
) -> Option<(Point, Reason)> {
    let expected = view.expected().filter(|_| explored == 0)?;
    let steps = neighbourhood::single_changes(view.space, &view.default, rng);
    let steps: Vec<Point> = steps.into_iter().map(|(_, point)| point).collect();
    let new = |known: &Known| known.runs() == 0;
    let may_run =
        |point: &Point| *point != view.default && view.get(point).is_none_or(new) && admits(point);
    let (point, log_ratio) = expected.promising(&steps, may_run)?;
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

/// The largest expected improvement of what others promise most of, and of a step from the best, as
/// a share of the best known; none where the prior does not hold, or too little has run.
pub(crate) fn most_to_gain(view: &Modelled<'_>, rng: &mut ChaCha8Rng) -> Option<f64> {
    let expected = view.expected().filter(|_| view.sequence().len() >= LEAST)?;
    let posterior = view.posterior()?;
    let best = posterior.ranked.first()?;
    if posterior.surrogate.lean() < TRUSTED || *best == view.default {
        return None;
    }
    let steps = neighbourhood::single_changes(view.space, best, rng);
    let mut points: Vec<Point> = steps.into_iter().map(|(_, point)| point).collect();
    points.extend(expected.best(PROMISED));
    points.retain(|point| view.get(point).is_none_or(|known| known.mean().is_none()));
    let predictions = posterior.surrogate.predict_all(&points);
    let gains = predictions
        .into_iter()
        .map(|one| acquisition::improvement(posterior.incumbent, one));
    Some(gains.fold(0.0, f64::max))
}

/// The reason with how much it stands on other studies.
pub(crate) fn told(view: &Modelled<'_>, reason: Reason) -> Reason {
    // Without others' word nothing stands on it, and a surrogate takes long to fit.
    let Some(mean) = view.expected() else {
        return reason;
    };
    let lean = view.posterior().map(|posterior| posterior.surrogate.lean());
    match lean.filter(|lean| *lean > 0.0) {
        Some(lean) => Reason::Prior {
            reason: Box::new(reason),
            studies: mean.counted(),
            lean,
        },
        None => reason,
    }
}
