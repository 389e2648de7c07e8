//! Time-limit headroom: whether a job's time limit allows an exploring run.
//!
//! An exploring run may take [`design_most`](crate::study::settings::RegretSettings) times as long
//! as the default, so it needs
//!
//! ```text
//! limit >= design_most * U,    U = exp(m + t(0.95, f) * s * sqrt(1 + 1 / n))
//! ```
//!
//! with the mean m and spread s of log elapsed of the default's n latest runs, or of all its runs
//! if elapsed is kept beside another objective. U is the one-sided 95 % prediction limit of one
//! log-normal run (G. J. Hahn, Journal of the American Statistical Association 64 (1969), 878-888).
//! s^2 is shrunk with a scaled inverse chi-squared prior (2 degrees of freedom, scale 0.1), since
//! few runs may be alike by chance.
//!
//! If the baseline is given up and no run of the default has completed
//! ([`lost_default`](crate::guards::lost_default)), U is that of the best parametrization that has
//! completed, because the job would otherwise get that one. Before anything has completed the job
//! would be lost in any case, so every limit suffices.
//!
//! The rule does not predict the point itself, for three reasons: such predictions are poor at
//! first, a killed job loses all its work, and users can set a limit that is one number.

use io_autotune_search::math::Portable;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::guards::lost_default::given_up;
use crate::guards::veto;
use crate::study::settings::Settings;
use io_autotune_model::reason::NoHeadroom;
use io_autotune_search::history::by_point::{Known, View};
use io_autotune_search::surrogate::Scatter;

const SHARE: f64 = 0.95;
/// The degrees of freedom of the scatter's prior; its variance follows.
const PRIOR_DEGREES: f64 = 2.0;
const PRIOR_VARIANCE: f64 = 0.01;

/// The limit that an exploring run needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    /// The limit in seconds; none while it is unknown because no run of the default has counted.
    pub(crate) seconds: Option<f64>,
    /// True if the limit is derived from the best parametrization that completes, because the
    /// default does not.
    of_best: bool,
}

/// The limit that an exploring run needs; none if every limit is enough.
pub(crate) fn needed(view: &View<'_>, settings: &Settings) -> Option<Needed> {
    let most = settings.regret.design_most;
    let default = view.default_known();
    let of_best = view.default_never_completed() && given_up(&default, settings).is_some();
    let seconds = match of_best {
        false => at_most(&default),
        true => Some(best_at_most(view)?),
    };
    Some(Needed {
        seconds: seconds.map(|seconds| most * seconds),
        of_best,
    })
}

pub(crate) fn lacks(view: &View<'_>, settings: &Settings, limit: f64) -> Option<NoHeadroom> {
    let Needed { seconds, of_best } = needed(view, settings)?;
    let lacking = seconds.is_none_or(|needed| limit < needed);
    lacking.then_some(NoHeadroom {
        limit,
        needed: seconds,
        most: settings.regret.design_most,
        of_best,
    })
}

fn best_at_most(view: &View<'_>) -> Option<f64> {
    let best = view.by_mean().into_iter().next()?;
    at_most(view.get(&best)?)
}

/// U, in seconds; none before a run has counted.
fn at_most(known: &Known) -> Option<f64> {
    if known.logs().is_empty() {
        return None;
    }
    let mut scatter = Scatter::default();
    let mut mean = scatter.add(known.logs()) + known.raised();
    let mut runs = known.logs().len() as f64;
    if let Some(elapsed) = veto::elapsed(known) {
        (mean, runs) = (elapsed.mean, elapsed.count as f64);
        (scatter.degrees, scatter.squares) = (runs - 1.0, elapsed.m2.max(0.0));
    }
    let degrees = scatter.degrees + PRIOR_DEGREES;
    let variance = (scatter.squares + PRIOR_DEGREES * PRIOR_VARIANCE) / degrees;
    let reach = StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(SHARE);
    Some((mean + reach * (variance * (1.0 + 1.0 / runs)).sqrt()).exponential())
}

#[cfg(test)]
mod tests {
    use io_autotune_search::math::Portable;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use crate::study::settings::Settings;
    use crate::testing::{grid, history, lacks_headroom, normal, tested};

    fn needed(times: &[f64]) -> Option<f64> {
        let space = grid(&[6]);
        let history = history(vec![tested(&space, &[0], times, 0)], 0, 4);
        lacks_headroom(&space, &history, &Settings::default(), 0.0)
            .unwrap()
            .needed
    }

    #[test]
    fn the_upper_end_is_student_s() {
        // By hand: t(0.95, 2 + 3) = 2.015048, spread sqrt((0 + 0.02) / 5), times sqrt(1 + 1 / 4).
        let upper = 100.0 * (2.015_048 * 0.004_f64.sqrt() * 1.25_f64.sqrt()).exponential();
        assert!((needed(&[100.0; 4]).unwrap() / (2.0 * upper) - 1.0).abs() < 1e-6);
        assert_eq!(needed(&[]), None);
        assert!(needed(&[90.0, 110.0, 70.0, 140.0]) > needed(&[100.0; 4]));
        assert!(needed(&[100.0]) > needed(&[100.0; 4]));
    }

    #[test]
    fn room_is_what_is_allowed_times_the_default() {
        let space = grid(&[6]);
        let mut default = tested(&space, &[0], &[100.0; 4], 0);
        let mut settings = Settings::default();
        let lacks_headroom =
            |default: &io_autotune_search::history::Tested, settings: &Settings, limit| {
                let history = history(vec![default.clone()], 0, 4);
                lacks_headroom(&space, &history, settings, limit)
            };
        let lack = lacks_headroom(&default, &settings, 200.0).unwrap();
        assert_eq!((lack.limit, lack.most), (200.0, 2.0));
        let enough = lack.needed.unwrap();
        assert_eq!(lacks_headroom(&default, &settings, enough), None);
        settings.regret.design_most = 4.0;
        let more = lacks_headroom(&default, &settings, enough).unwrap();
        assert!((more.needed.unwrap() / enough - 2.0).abs() < 1e-9);
        // Runs of the default that were cut short would have taken longer than they did.
        default.record_censored(5, 400.0).unwrap();
        let raised = lacks_headroom(&default, &settings, enough).unwrap();
        assert!(raised.needed > more.needed);
    }

    #[test]
    fn nineteen_of_twenty_default_runs_end_in_half_of_what_is_needed() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for (noise, runs) in [(0.05, 4), (0.1, 4), (0.2, 4), (0.2, 12), (0.3, 30)] {
            let trials = 2000;
            let mut draw = || 60.0 * (noise * normal(&mut rng)).exponential();
            let within = (0..trials)
                .filter(|_| {
                    let times: Vec<f64> = (0..runs).map(|_| draw()).collect();
                    draw() <= needed(&times).unwrap() / 2.0
                })
                .count();
            let share = within as f64 / f64::from(trials);
            // The prior is conservative for little noise, and slightly optimistic for much.
            assert!((0.915..=1.0).contains(&share), "{share} at {noise}, {runs}");
        }
    }
}
