//! The influence of a prior on an epoch. One run rests on the prior alone, the first: the setting
//! that the site's users have in common, or the most promising point one step from the default.
//! Later runs follow the posterior, which leans on the prior as far as the epoch's own runs agree
//! with it. While they agree, one point of the design is enough, and points that the site's users
//! have in common are within reach.

use io_autotune_model::reason::Reason;
use io_autotune_model::space::Point;
use io_autotune_search::MethodContext;
use io_autotune_search::history::by_point::Known;
use io_autotune_search::math::Portable;
use io_autotune_search::neighbourhood;
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::surrogate::prior::TRUSTED;
use rand_chacha::ChaCha8Rng;

/// The number of design points that run nevertheless.
const KEPT: usize = 1;

/// The point that a prior promises to an epoch that has explored nothing, among those that may run:
/// the setting that the site's users [have in common], or else a point one step from the default,
/// because without several users as witnesses a first step is small whatever other studies say, and
/// the method must admit it.
///
/// [have in common]: io_autotune_search::surrogate::prior::Mean::common
pub(crate) fn promised(
    view: &Modelled<'_>,
    explored: u64,
    admits: impl Fn(&Point) -> bool,
    rng: &mut ChaCha8Rng,
) -> Option<(Point, Reason)> {
    let expected = view.expected().filter(|_| explored == 0)?;
    let new = |known: &Known| known.runs() == 0;
    let is_new = |point: &Point| *point != view.default && view.get(point).is_none_or(new);
    let studies = expected.counted();
    if let Some(common) = expected.common(is_new) {
        let reason = Reason::Promised {
            studies,
            predicted: common.log_ratio.exponential(),
            users: Some(common.users),
        };
        return Some((common.point, reason));
    }
    let steps = neighbourhood::single_changes(view.space, &view.default, rng);
    let steps: Vec<Point> = steps.into_iter().map(|(_, point)| point).collect();
    let (point, log_ratio) = expected.promising(&steps, |point| is_new(point) && admits(point))?;
    let reason = Reason::Promised {
        studies,
        predicted: log_ratio.exponential(),
        users: None,
    };
    Some((point, reason))
}

/// Returns true if the design points that have run are enough because the prior holds: some point
/// is faster than the default, and the runs so far agree with the prior.
pub(crate) fn replaces_design(context: &MethodContext<'_>) -> bool {
    let view = context.view;
    if view.expected().is_none() {
        return false;
    }
    let begun = |point: &&Point| !context.is_untested(point);
    let is_better = view.posterior().is_some_and(|posterior| {
        posterior.surrogate.lean() >= TRUSTED && posterior.ranked.first() != Some(&view.default)
    });
    is_better && context.design.iter().filter(begun).count() >= KEPT
}

/// Adds to the reason how much it rests on other studies.
pub(crate) fn told(view: &Modelled<'_>, reason: Reason) -> Reason {
    // Without a prior the reason rests on the study alone, and fitting a surrogate would take long.
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
