//! The proof before the search has ended: once the best known parametrization would soon be shown
//! to beat the default, the search pauses until it is, and goes on afterwards. A search of 50 runs
//! finds most of its gain in the first dozen, and a proof costs no more before its end than after.

pub(crate) mod settings;

use io_autotune_model::Outlook;
use io_autotune_model::space::Point;
use io_autotune_search::Method;
use io_autotune_search::history::by_point::{Known, MIN_RUNS};
use io_autotune_search::history::{History, Pending, Phase, Role};
use io_autotune_search::surrogate::posterior::Modelled;

use self::settings::ProofSettings;
use crate::guards::veto;
use crate::study::recommend::first_of;

/// The runs of a whole proof, one in two of the default, times the squared effect in standard
/// deviations of a run's log elapsed: x^2 / (p (1 - p)), where x^2 / 2 - 0.84 x = ln 50
/// (docs/derivation/report-statistics.md).
const RUNS: f64 = 56.6;

/// Returns true if a proof has begun and goes on.
pub(crate) fn goes_on(
    settings: &ProofSettings,
    history: &History,
    pending: &[Pending],
    outlook: Outlook,
) -> bool {
    let is_tuned = |run: &&Pending| run.phase != Phase::Settled && run.role == Role::Settled;
    let tuned = pending.iter().filter(is_tuned);
    let tuned = tuned.fold(history.tally.proof, |sum, run| {
        sum.saturating_add(run.count)
    });
    let within = u64::from(settings.within);
    let most = match outlook {
        Outlook::Resolved => 0,
        Outlook::Promising => within,
        Outlook::Open => within / 4,
    };
    settings.after > 0 && (1..most).contains(&tuned)
}

/// Returns true if it is too early for a proof, or if there was one. `holds` tells whether a prior
/// holds, which takes a fit.
pub(crate) fn is_untimely(
    settings: &ProofSettings,
    history: &History,
    holds: impl FnOnce() -> bool,
) -> bool {
    let are_enough = |after: u32| after > 0 && history.tally.explored >= u64::from(after);
    let may = history.tally.proof == 0 && are_enough(settings.after.div_ceil(2));
    !may || !are_enough(settings.after) && !holds()
}

/// The parametrization of a proof, with its runs: the best that has run twice, or else the best,
/// which needs another run first. None if a proof of either would take too long. `own` is the view
/// of the epoch's own runs, without a prior.
pub(crate) fn begins(
    settings: &ProofSettings,
    own: &Modelled<'_>,
    method: &dyn Method,
) -> Option<(Point, Known)> {
    let fitted = own.fitted()?;
    own.get(&own.default)?;
    let default = fitted.predict(&own.default);
    let is_short = |best: &Point| {
        let effect = default.mean - fitted.predict(best).mean;
        let runs = RUNS * fitted.noise() / (effect * effect);
        effect > 0.0 && runs <= f64::from(settings.within)
    };
    let ranking = method.ranking(own);
    [MIN_RUNS, 1].into_iter().find_map(|runs| {
        first_of(own, &ranking, runs).filter(|(best, _)| {
            is_short(best) && *best != own.default && !veto::is_vetoed(own, best)
        })
    })
}
