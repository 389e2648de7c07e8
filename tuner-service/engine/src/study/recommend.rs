//! Which parametrization is the best known.

use serde::{Deserialize, Serialize};

use crate::history::by_point::{Known, View};
use crate::history::{History, Phase, Role, Tally};
use crate::reason::{BestKnownBecause, Reason, Suggestion};
use crate::search::{self, Estimator, Method};
use crate::settled::incumbent::standing;
use crate::space::{Parametrization, Point, Space};
use crate::study::epoch::Epoch;
use crate::study::settings::Settings;
use crate::study::warm_start;
use crate::surrogate::cache::Fits;

/// The fewest runs that a recommendation rests on: one lucky run recommends nothing.
pub(crate) const MIN_RUNS: u64 = 2;

/// The best known parametrization and how well it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recommendation {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// Its mean elapsed, seconds, raised by runs that were cut short.
    pub mean: f64,
    /// How many runs count for it, at least 2.
    pub n: u64,
    /// How many of its runs were cut short by their time limit.
    pub censored: u64,
    /// The standard error of the mean of the runs that count, seconds.
    pub standard_error: f64,
    /// The mean elapsed of the default, seconds, raised by runs that were cut short; none if no run of
    /// it counted.
    pub default_mean: Option<f64>,
    /// How many runs of the default counted.
    pub default_n: u64,
    /// How many runs of the default were cut short by their time limit.
    pub default_censored: u64,
}

/// The best parametrization among those that at least two runs counted for, by the method's ranking:
/// for the papers' methods the lowest mean elapsed, because the optimum is the best on average and not the quickest run
/// (robert2020, section IV); for `default` the lowest that its surrogate expects.
///
/// Once the epoch has settled the choice of `default` stands until another one is surely quicker (`standing.rs`).
///
/// A run that was cut short by its time limit never makes a parametrization recommended: it is not
/// one of the two, and it can only raise the mean. What is quarantined is not recommended. None
/// before any has two runs. Entries that do not fit the space are ignored.
pub fn recommend(space: &Space, history: &History, settings: &Settings) -> Option<Recommendation> {
    recommend_remembering(space, history, settings, &Fits::default())
}

/// [`recommend`] with surrogates that were fitted before: the answer stays what it is.
pub fn recommend_remembering(
    space: &Space,
    history: &History,
    settings: &Settings,
    fits: &Fits,
) -> Option<Recommendation> {
    recommend_in(
        &View::new(space, history, &[]).remembering(Some(fits)),
        search::named(settings.method),
        settings,
    )
}

/// The parametrization that the method holds for the best, whatever the number of runs that count
/// for it: the optimum that the papers' comparisons rate, where [`recommend`] wants two runs. None
/// before a run has counted. Entries that do not fit the space are ignored.
pub fn leader(space: &Space, history: &History, settings: &Settings) -> Option<Parametrization> {
    let view = View::new(space, history, &[]);
    let ranking = search::named(settings.method).ranking(&view, settings);
    first_of(&view, &ranking, 1).map(|(point, _)| space.parametrization(&point))
}

/// What the method would recommend if no run came any more, not even the second of its best, which a
/// study of a site makes before it settles: [`recommend`]'s answer where the method runs points again
/// and goes by plain means, its [`leader`] where not, or where nothing has two runs.
pub fn recommend_now(
    space: &Space,
    history: &History,
    settings: &Settings,
) -> Option<Parametrization> {
    let confirmed = search::named(settings.method)
        .wants_two_runs(settings)
        .then(|| recommend(space, history, settings))
        .flatten();
    confirmed
        .map(|best| best.parametrization)
        .or_else(|| leader(space, history, settings))
}

pub(crate) fn recommend_in(
    view: &View<'_>,
    method: &dyn Method,
    settings: &Settings,
) -> Option<Recommendation> {
    let (leader, known) = first_of(view, &method.ranking(view, settings), MIN_RUNS)?;
    let stands = match method.estimator() {
        Estimator::Surrogate => standing(view, &leader),
        Estimator::Shrunk => None,
    };
    let (point, known) = stands.unwrap_or((leader, known));
    let default = view.default_known();
    Some(Recommendation {
        parametrization: view.space.parametrization(&point),
        mean: known.mean()?,
        n: known.count(),
        censored: known.censored(),
        standard_error: known.elapsed.standard_error()?,
        default_mean: default.mean(),
        default_n: default.count(),
        default_censored: default.censored(),
    })
}

/// The first point of a ranking that at least so many runs count for.
pub(crate) fn first_of(view: &View<'_>, ranking: &[Point], runs: u64) -> Option<(Point, Known)> {
    ranking.iter().find_map(|point| {
        let known = view.get(point).filter(|known| known.count() >= runs)?;
        Some((point.clone(), known.clone()))
    })
}

/// What a run gets that may not explore: the recommended parametrization, or the default before
/// there is one, in an epoch that inherits nothing. The role is [`Role::BestKnown`].
///
/// The phase is only read off the tally: settled once a settled run has
/// ended, before that search once an exploring run has ended, before that baseline.
pub fn best_known(
    space: &Space,
    history: &History,
    settings: &Settings,
    because: BestKnownBecause,
) -> Suggestion {
    best_known_of(
        recommend(space, history, settings).as_ref(),
        space,
        history,
        &[],
        because,
    )
}

/// [`best_known`], where [`recommend`]'s answer to the same space, history and settings is at hand:
/// a surrogate is not fitted again for each of a thousand runs that may not explore. In an epoch that inherits, it is
/// the first of what it inherits until two runs have counted for that, or it is quarantined.
pub fn best_known_of(
    best: Option<&Recommendation>,
    space: &Space,
    history: &History,
    inherited: &[Parametrization],
    because: BestKnownBecause,
) -> Suggestion {
    let phase = phase_so_far(&history.tally);
    let default = || {
        let view = View::new(space, history, &[]);
        view.default_known()
    };
    let inherited = match inherited {
        [] => None,
        inherited => inherited_best(&View::new(space, history, &[]), history, inherited),
    };
    inherited.map_or_else(
        || instead_of_exploring(best, space, default, phase, because),
        |(point, known)| of_parent(space, &point, &known, phase, because),
    )
}

/// The phase that is read off the tally, for whoever may not ask more: see [`best_known`].
pub fn phase_so_far(tally: &Tally) -> Phase {
    if has_settled(tally) {
        Phase::Settled
    } else if tally.explored > 0 {
        Phase::Search
    } else {
        Phase::Baseline
    }
}

pub(crate) fn best_known_in(
    view: &View<'_>,
    epoch: &Epoch<'_>,
    history: &History,
    phase: Phase,
    because: BestKnownBecause,
) -> Suggestion {
    if let Some((point, known)) = inherited_best(view, history, epoch.inherited()) {
        return of_parent(view.space, &point, &known, phase, because);
    }
    let settings = epoch.settings();
    let best = recommend_in(view, search::named(settings.method), settings);
    let default = || view.default_known();
    instead_of_exploring(best.as_ref(), view.space, default, phase, because)
}

/// [`warm_start::best`], with what the epoch's own runs tell of it.
fn inherited_best(
    view: &View<'_>,
    history: &History,
    inherited: &[Parametrization],
) -> Option<(Point, Known)> {
    let best = warm_start::best(view, history, inherited)?;
    let known = view.get(&best).cloned().unwrap_or_default();
    Some((best, known))
}

/// The best of the epoch before.
fn of_parent(
    space: &Space,
    point: &Point,
    known: &Known,
    phase: Phase,
    because: BestKnownBecause,
) -> Suggestion {
    Suggestion {
        phase,
        role: Role::BestKnown,
        parametrization: space.parametrization(point),
        reason: Reason::BestKnown {
            because,
            mean: known.mean(),
            n: known.count(),
            inherited: true,
        },
    }
}

fn instead_of_exploring(
    best: Option<&Recommendation>,
    space: &Space,
    default: impl FnOnce() -> Known,
    phase: Phase,
    because: BestKnownBecause,
) -> Suggestion {
    let (parametrization, mean, n) = match best {
        Some(best) => (best.parametrization.clone(), Some(best.mean), best.n),
        None => {
            let default = default();
            (space.default(), default.mean(), default.count())
        }
    };
    Suggestion {
        phase,
        role: Role::BestKnown,
        parametrization,
        reason: Reason::BestKnown {
            because,
            mean,
            n,
            inherited: false,
        },
    }
}

/// Whether a run of the settled phase has ended.
pub(crate) fn has_settled(tally: &Tally) -> bool {
    tally.settled > 0 || tally.settled_controls > 0
}
