//! What the next run gets: the phases and the runs interleaved in them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use io_autotune_model::{CleanedEstimates, Drift, ElapsedBeside, Outlook};

use crate::guards::lost_default;
use crate::guards::restriction::RestrictedSpace;
use crate::guards::time_limit;
use crate::study::cleaned::Cleaned;
use crate::study::recommend::{self, Recommendation, first_of};
use crate::study::settings::{PriorFrom, Settings};
use crate::study::stopping;
use crate::study::warm_start;
use io_autotune_model::reason::{
    BestKnownBecause, LostDefault, NoHeadroom, Reason, Stopped, Suggestion,
};
use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::Method;
use io_autotune_search::history::by_point::View;
use io_autotune_search::history::quarantine::Quarantined;
use io_autotune_search::history::{History, Pending};
use io_autotune_search::latin_hypercube::latin_hypercube;
use io_autotune_search::regret::Estimator;
use io_autotune_search::surrogate::cache::SurrogateCache;
use io_autotune_search::surrogate::importance::{Importance, Silence};
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::surrogate::prior::Prior;

/// The constants of an epoch, for many suggestions. The design is computed on first use.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    space: &'a Space,
    settings: Cow<'a, Settings>,
    seed: u64,
    draw: Option<f64>,
    outlook: Outlook,
    inherited: &'a [Parametrization],
    design: OnceCell<Vec<Point>>,
    surrogates: Option<&'a SurrogateCache>,
    restricted: Option<&'a RestrictedSpace<'a>>,
    prior: Option<&'a Arc<Prior>>,
}

impl<'a> Epoch<'a> {
    /// An epoch with these settings; `seed` is one number for the whole epoch.
    pub fn new(space: &'a Space, settings: &'a Settings, seed: u64) -> Self {
        Epoch {
            space,
            settings: Cow::Borrowed(settings),
            seed,
            draw: None,
            outlook: Outlook::Open,
            inherited: &[],
            design: OnceCell::new(),
            surrogates: None,
            restricted: None,
            prior: None,
        }
    }

    /// An epoch of a restricted space, its ranks and [its history](RestrictedSpace::history).
    pub fn restricted(
        restricted: &'a RestrictedSpace<'a>,
        settings: &'a Settings,
        seed: u64,
    ) -> Self {
        Epoch {
            restricted: Some(restricted),
            ..Epoch::new(restricted.space(), settings, seed).inheriting(restricted.inherited())
        }
    }

    /// Reuses fitted surrogates. This changes no answer.
    #[must_use]
    pub fn with_cache(mut self, surrogates: &'a SurrogateCache) -> Self {
        self.surrogates = Some(surrogates);
        self
    }

    /// With what other studies of the space learnt, unless its settings want nothing of them.
    #[must_use]
    pub fn with_prior(mut self, prior: Option<&'a Arc<Prior>>) -> Self {
        let leans = self.method().estimator() == Estimator::Surrogate;
        self.prior = prior.filter(|_| leans && self.settings.prior == PriorFrom::Site);
        self
    }

    /// With a number from 0 to 1 (exclusive) for the next suggestion: below the probability of a
    /// control run, it is one. A service draws it where users cannot know it and stores it; without,
    /// it comes from the seed.
    #[must_use]
    pub fn with_draw(mut self, draw: f64) -> Self {
        self.draw = Some(draw);
        self
    }

    /// With what more control runs may show ([`evidence`](crate::evidence)): how often they come.
    #[must_use]
    pub fn with_outlook(mut self, outlook: Outlook) -> Self {
        self.outlook = outlook;
        self
    }

    /// An epoch that inherits its parent's [`ranks`](Epoch::ranks), the best first; no change if
    /// empty. They start the design, before a small Latin hypercube; `settings.drift` sets the
    /// budget. The first rank is the best known parametrization until the epoch knows better.
    #[must_use]
    pub fn inheriting(mut self, inherited: &'a [Parametrization]) -> Self {
        if !inherited.is_empty() {
            self.settings = Cow::Owned(self.settings.inheriting());
            self.inherited = inherited;
        }
        self
    }

    /// Its space.
    pub fn space(&self) -> &'a Space {
        self.space
    }

    /// The settings of this epoch.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The best parametrization with at least two counted runs, by the method's ranking: the
    /// papers' methods take the lowest mean elapsed, because the optimum is the best on average
    /// (robert2020, section IV), the main method the lowest prediction; once settled, that choice
    /// stays until another is surely faster (`incumbent.rs`). Censored runs only raise the mean;
    /// quarantined parametrizations are not recommended, nor those that make
    /// [elapsed](Epoch::elapsed_beside) worse. None before any has two runs, and where
    /// there is nothing to win.
    pub fn recommend(&self, history: &History) -> Option<Recommendation> {
        recommend::recommend(&self.view(history), &self.settings)
    }

    /// Elapsed of the best by the study's objective beside the default's; none where elapsed is the
    /// objective, where the best is the default, and before there are enough runs to bound it. A vetoed one is
    /// not [recommended](Epoch::recommend).
    pub fn elapsed_beside(&self, history: &History) -> Option<ElapsedBeside> {
        recommend::elapsed_beside(&self.view(history), &self.settings)
    }

    /// The method's best by any number of counted runs, as the papers rate it; none before one.
    pub fn leader(&self, history: &History) -> Option<Parametrization> {
        let view = self.view(history);
        let ranking = self.method().ranking(&view);
        first_of(&view, &ranking, 1).map(|(point, _)| self.space.parametrization(&point))
    }

    /// The recommendation if no further run came: [`recommend`](Epoch::recommend) if the method
    /// confirms its best by a second run, else (or without two runs) the [`leader`](Epoch::leader).
    pub fn recommend_now(&self, history: &History) -> Option<Parametrization> {
        let confirmed = self
            .method()
            .wants_two_runs()
            .then(|| self.recommend(history))
            .flatten();
        confirmed
            .map(|best| best.parametrization)
            .or_else(|| self.leader(history))
    }

    /// What a run gets that may not explore, with role [`Role::BestKnown`]: an inherited best,
    /// until two runs of it counted or it is quarantined; else the recommended parametrization;
    /// else the default.
    pub fn best_known(&self, history: &History, because: BestKnownBecause) -> Suggestion {
        self.best_known_of(self.recommend(history).as_ref(), history, because)
    }

    /// [`best_known`](Epoch::best_known) with [`recommend`](Epoch::recommend)'s answer: no refit.
    pub fn best_known_of(
        &self,
        best: Option<&Recommendation>,
        history: &History,
        because: BestKnownBecause,
    ) -> Suggestion {
        let view = View::new(self.space, history, &[]);
        let phase = history.tally.phase();
        let best = || best.cloned();
        recommend::best_known(&view, &history.tally, self.inherited, best, phase, because)
    }

    /// The ranks for the next epoch, the best first: see [`inheriting`](Epoch::inheriting).
    pub fn ranks(&self, history: &History, drift: &Drift) -> Vec<Parametrization> {
        let view = self.view(history);
        let recommended = recommend::recommend(&view, &self.settings)
            .and_then(|best| self.space.validate(&best.parametrization).ok());
        let ranking = self.method().ranking(&view);
        warm_start::ranks(&view, recommended, ranking, drift.has_lost())
    }

    /// What another study may begin with, the best first: the [`ranks`](Epoch::ranks) of this one
    /// without a drift. Empty before a run of another parametrization than the default counted.
    pub fn learnt(&self, history: &History) -> Vec<Parametrization> {
        let view = self.view(history);
        let default = self.space.default();
        let mut tested = history.tested.iter();
        if !tested.any(|one| one.elapsed.count > 0 && one.parametrization != default) {
            return Vec::new();
        }
        let recommended = recommend::recommend(&view, &self.settings)
            .and_then(|best| self.space.validate(&best.parametrization).ok());
        warm_start::ranks(&view, recommended, self.method().ranking(&view), false)
    }

    /// Why no parametrization can make the runs faster, if so.
    pub fn nothing_to_win(&self, history: &History) -> Option<Stopped> {
        stopping::nothing_to_win(&View::new(self.space, history, &[]), &self.settings.stop)
    }

    /// What a time limit in seconds lacks for a run to explore; none if nothing.
    pub fn lacks_headroom(&self, history: &History, limit: f64) -> Option<NoHeadroom> {
        let view = View::new(self.space, history, &[]);
        time_limit::lacks(&view, &self.settings, limit)
    }

    /// How the default's runs ended, if the baseline is given up because too many of them were lost:
    /// the search goes on, and knows nothing of the default's time but a lower bound.
    pub fn lost_default(&self, history: &History) -> Option<LostDefault> {
        let view = View::new(self.space, history, &[]);
        lost_default::given_up(&view.default_known(), &self.settings)
    }

    /// What each parameter explains of the times so far, or why nothing is said of them.
    pub fn importance(&self, history: &History) -> Result<Importance, Silence> {
        let view = self.view(history);
        let fitted = view.fitted().ok_or(Silence::Few(0))?;
        fitted.importance()
    }

    /// What is estimated of a parametrization where others fare as ever; none before a run counted,
    /// or where nothing is known of others.
    pub fn cleaned(&self, parametrization: &Parametrization, history: &History) -> Option<Cleaned> {
        let of = history.knows_others().then(|| self.view(history))?;
        let point = self.space.validate(parametrization).ok()?;
        Cleaned::new(of.fitted()?, &point)
    }

    /// The same of the default and of what is recommended.
    pub fn cleaned_estimates(&self, history: &History) -> Option<CleanedEstimates> {
        let view = history.knows_others().then(|| self.view(history))?;
        let of = |point: &Point| Cleaned::new(view.fitted()?, point);
        let default = of(&self.space.default_point())?;
        let recommended = recommend::recommend(&view, &self.settings)
            .and_then(|best| of(&self.space.validate(&best.parametrization).ok()?));
        Some(CleanedEstimates {
            share: default.share,
            default: default.estimate,
            recommended: recommended.map(|cleaned| cleaned.estimate),
        })
    }

    /// The quarantined parametrizations, in the space's order.
    pub fn quarantined(&self, history: &History) -> Vec<Quarantined> {
        View::new(self.space, history, &[]).quarantined()
    }

    /// What is known of a history and runs in flight, with what other studies learnt.
    pub(crate) fn modelled(&self, history: &History, pending: &[Pending]) -> Modelled<'_> {
        let view = View::new(self.space, history, pending);
        Modelled::new(view, self.surrogates).on(self.prior)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn draw(&self) -> Option<f64> {
        self.draw
    }

    pub(crate) fn outlook(&self) -> Outlook {
        self.outlook
    }

    pub(crate) fn inherited(&self) -> &'a [Parametrization] {
        self.inherited
    }

    pub(crate) fn has_prior(&self) -> bool {
        self.prior.is_some()
    }

    pub(crate) fn method(&self) -> &dyn Method {
        self.settings.method()
    }

    fn view<'b>(&'b self, history: &History) -> Modelled<'b> {
        Modelled::new(View::new(self.space, history, &[]), self.surrogates)
    }

    pub(crate) fn design(&self) -> &[Point] {
        self.design.get_or_init(|| {
            if self.inherited.is_empty() {
                let points = self
                    .method()
                    .design_points(self.whole(), self.settings.design_points);
                return self.hypercube(points);
            }
            let mut design = self.ranked();
            let spread = self.hypercube(self.settings.drift.design_points);
            let new = |point: &Point| !design.contains(point);
            let spread: Vec<Point> = spread.into_iter().filter(new).collect();
            design.extend(spread);
            design
        })
    }

    /// The space without what is frozen in it.
    pub(crate) fn whole(&self) -> &'a Space {
        self.restricted.map_or(self.space, RestrictedSpace::whole)
    }

    fn hypercube(&self, points: u32) -> Vec<Point> {
        let whole = latin_hypercube(self.whole(), points, self.seed);
        match self.restricted {
            Some(restricted) => restricted.design(whole),
            None => whole,
        }
    }

    pub(crate) fn ranked(&self) -> Vec<Point> {
        let default = self.space.default_point();
        let mut points = warm_start::points(self.space, self.inherited);
        points.retain(|point| *point != default);
        points.truncate(self.settings.drift.inherited as usize);
        points
    }

    pub(crate) fn reason_of_design_point(&self, index: usize) -> Reason {
        let (number, ranked) = (index as u64 + 1, self.ranked().len() as u64);
        if number <= ranked {
            Reason::Inherited {
                number,
                of: ranked,
                another_study: false,
            }
        } else {
            Reason::DesignPoint {
                number: number - ranked,
                of: self.design().len() as u64 - ranked,
            }
        }
    }
}
