//! The best known parametrization.

use serde::{Deserialize, Serialize};

use crate::guards::veto;
use crate::settled::incumbent;
use crate::study::settings::Settings;
use crate::study::{stopping, warm_start};
use io_autotune_model::ElapsedBeside;
use io_autotune_model::reason::{BestKnownBecause, Reason, Suggestion};
use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::history::by_point::{Known, MIN_RUNS, View};
use io_autotune_search::history::{Phase, Role, Tally};
use io_autotune_search::regret::Estimator;
use io_autotune_search::surrogate::posterior::Modelled;

/// The best known parametrization, and the numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recommendation {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The mean elapsed in seconds, raised by censored runs.
    pub mean: f64,
    /// The number of counted runs, at least 2.
    pub n: u64,
    /// The number of censored runs.
    pub censored: u64,
    /// The standard error of the mean of counted runs, in seconds.
    pub standard_error: f64,
    /// The default's mean elapsed in seconds, raised by censored runs; none if no run counted.
    pub default_mean: Option<f64>,
    /// The number of the default's counted runs.
    pub default_n: u64,
    /// The number of the default's censored runs.
    pub default_censored: u64,
}

pub(crate) fn recommend(view: &Modelled<'_>, settings: &Settings) -> Option<Recommendation> {
    if stopping::nothing_to_win(view, settings).is_some() {
        return None;
    }
    let ranking = settings.method().ranking(view);
    let (best, known) = best(view, settings, &ranking)?;
    let (point, known) = match veto::is_vetoed(view, &best) {
        true => {
            let ranking: Vec<Point> = ranking
                .into_iter()
                .filter(|point| !veto::is_vetoed(view, point))
                .collect();
            first_of(view, &ranking, MIN_RUNS)?
        }
        false => (best, known),
    };
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

/// The best parametrization by the objective alone, whatever its elapsed is.
fn best(view: &Modelled<'_>, settings: &Settings, ranking: &[Point]) -> Option<(Point, Known)> {
    let leader = first_of(view, ranking, MIN_RUNS)?;
    let stands = match settings.method().estimator() {
        Estimator::Surrogate => incumbent::retained(view, &leader.0),
        Estimator::Shrunk => None,
    };
    Some(stands.unwrap_or(leader))
}

/// How elapsed of the best by the objective compares with the default's, if the objective is
/// another than elapsed.
pub(crate) fn elapsed_beside(view: &Modelled<'_>, settings: &Settings) -> Option<ElapsedBeside> {
    if !veto::is_beside(view) || stopping::nothing_to_win(view, settings).is_some() {
        return None;
    }
    let (best, _) = best(view, settings, &settings.method().ranking(view))?;
    veto::of(view, &best)
}

pub(crate) fn first_of(view: &View<'_>, ranking: &[Point], runs: u64) -> Option<(Point, Known)> {
    ranking.iter().find_map(|point| {
        let known = view.get(point).filter(|known| known.count() >= runs)?;
        Some((point.clone(), known.clone()))
    })
}

/// The inherited best while it holds, otherwise `best`, otherwise the default.
pub(crate) fn best_known(
    view: &View<'_>,
    tally: &Tally,
    inherited: &[Parametrization],
    best: impl FnOnce() -> Option<Recommendation>,
    phase: Phase,
    because: BestKnownBecause,
) -> Suggestion {
    match warm_start::best(view, tally, inherited) {
        Some(point) => {
            let known = view.get(&point).cloned().unwrap_or_default();
            of_parent(view.space, &point, &known, phase, because)
        }
        None => instead_of_exploring(best(), view, phase, because),
    }
}

/// The parametrization that runs before anything is recommended, its mean, and the number of runs
/// that the mean rests on. It is the default or, if no run of the default completes, the best of
/// those that have completed once.
pub(crate) fn instead(view: &View<'_>) -> (Parametrization, Option<f64>, u64) {
    let best = view.default_never_completed().then(|| view.by_mean());
    let best = best.and_then(|ranking| ranking.into_iter().next());
    let point = best.unwrap_or_else(|| view.default.clone());
    let known = view.get(&point).cloned().unwrap_or_default();
    (
        view.space.parametrization(&point),
        known.mean(),
        known.count(),
    )
}

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
            another_study: false,
        },
        control_chance: None,
    }
}

fn instead_of_exploring(
    best: Option<Recommendation>,
    view: &View<'_>,
    phase: Phase,
    because: BestKnownBecause,
) -> Suggestion {
    let (parametrization, mean, n) = match best {
        Some(best) => (best.parametrization, Some(best.mean), best.n),
        None => instead(view),
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
            another_study: false,
        },
        control_chance: None,
    }
}
