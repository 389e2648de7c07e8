//! An epoch: the phases, the runs interleaved in them, and the questions that readers ask about
//! them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use io_autotune_model::{CleanedEstimates, Drift, ElapsedBeside, Outlook, Recipe};

use crate::guards::lost_default;
use crate::guards::restriction::RestrictedSpace;
use crate::guards::time_limit;
use crate::study::recommend::{self, Recommendation, first_of};
use crate::study::settings::{PriorFrom, Settings};
use crate::study::stopping;
use crate::study::warm_start;
use crate::study::without_noise::Cleaned;
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

/// The most recipes that a study tries: each takes a run, and a wrong one is a slow run.
const RECIPES: usize = 2;

/// The constants of an epoch, shared by many suggestions. The design is computed on first use.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    space: &'a Space,
    settings: Cow<'a, Settings>,
    seed: u64,
    draw: Option<f64>,
    outlook: Outlook,
    inherited: &'a [Parametrization],
    recipes: &'a [Recipe],
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
            recipes: &[],
            design: OnceCell::new(),
            surrogates: None,
            restricted: None,
            prior: None,
        }
    }

    /// An epoch of a restricted space with its ranks. It must be given [its
    /// history](RestrictedSpace::history).
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

    /// Reuses fitted surrogates. No answer depends on this.
    #[must_use]
    pub fn with_cache(mut self, surrogates: &'a SurrogateCache) -> Self {
        self.surrogates = Some(surrogates);
        self
    }

    /// Adds a prior from other studies of the space, unless the settings turn priors off.
    #[must_use]
    pub fn with_prior(mut self, prior: Option<&'a Arc<Prior>>) -> Self {
        let leans = self.method().estimator() == Estimator::Surrogate;
        self.prior = prior.filter(|_| leans && self.settings.prior == PriorFrom::Site);
        self
    }

    /// Sets a number from 0 to 1 (exclusive) for the next suggestion, which is a control run if the
    /// number is below that run's probability. A service draws the number where users cannot know
    /// it, and stores it. Without one it comes from the seed.
    #[must_use]
    pub fn with_draw(mut self, draw: f64) -> Self {
        self.draw = Some(draw);
        self
    }

    /// Sets how likely it is that more control runs show a gain ([`evidence`](crate::evidence)),
    /// which decides how frequent they are.
    #[must_use]
    pub fn with_outlook(mut self, outlook: Outlook) -> Self {
        self.outlook = outlook;
        self
    }

    /// Makes the epoch inherit its parent's [`ranks`](Epoch::ranks), the best first; no change if
    /// they are empty. They come first in the design, before a small Latin hypercube, and
    /// `settings.drift` sets the budget. The first rank is the best known parametrization until the
    /// epoch knows better.
    #[must_use]
    pub fn inheriting(mut self, inherited: &'a [Parametrization]) -> Self {
        if !inherited.is_empty() {
            self.settings = Cow::Owned(self.settings.inheriting());
            self.inherited = inherited;
        }
        self
    }

    /// Begins with what was published for the accelerator, before a small Latin hypercube: at most
    /// [`RECIPES`] that the space has. No change if the epoch inherits ranks, which are of this
    /// application, or if its method is one of the papers'.
    #[must_use]
    pub fn with_recipes(mut self, recipes: &'a [Recipe]) -> Self {
        if self.method().estimator() == Estimator::Surrogate {
            self.recipes = recipes;
        }
        self
    }

    /// The space of the epoch.
    pub fn space(&self) -> &'a Space {
        self.space
    }

    /// The settings of this epoch.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The best parametrization with at least two counted runs, by the method's ranking. The
    /// papers' methods take the lowest mean elapsed, because the optimum is the best on average
    /// (robert2020, section IV); the main method takes the lowest prediction. Once settled, that
    /// choice stays until another is surely faster (`incumbent.rs`). Censored runs only raise the
    /// mean. Quarantined parametrizations are not recommended, nor are those that make
    /// [elapsed](Epoch::elapsed_beside) worse. None before any parametrization has two runs, and if
    /// there is nothing to win.
    pub fn recommend(&self, history: &History) -> Option<Recommendation> {
        recommend::recommend(&self.view(history), &self.settings)
    }

    /// How elapsed of the parametrization that is best by the study's objective compares with the
    /// default's. None if elapsed is the objective, if the best is the default, and before there
    /// are enough runs to bound the difference. A vetoed parametrization is not
    /// [recommended](Epoch::recommend).
    pub fn elapsed_beside(&self, history: &History) -> Option<ElapsedBeside> {
        recommend::elapsed_beside(&self.view(history), &self.settings)
    }

    /// The method's best by any number of counted runs, as the papers rank it; none before a run
    /// has counted.
    pub fn leader(&self, history: &History) -> Option<Parametrization> {
        let view = self.view(history);
        let ranking = self.method().ranking(&view);
        first_of(&view, &ranking, 1).map(|(point, _)| self.space.parametrization(&point))
    }

    /// The recommendation if no further run came: [`recommend`](Epoch::recommend) if the method
    /// confirms its best by a second run; otherwise, or without two runs, the
    /// [`leader`](Epoch::leader).
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

    /// The suggestion for a run that may not explore, with role [`Role::BestKnown`]: an inherited
    /// best until two runs of it counted or it is quarantined, then the recommended
    /// parametrization, otherwise the default.
    pub fn best_known(&self, history: &History, because: BestKnownBecause) -> Suggestion {
        self.best_known_of(self.recommend(history).as_ref(), history, because)
    }

    /// [`best_known`](Epoch::best_known) with the answer of [`recommend`](Epoch::recommend), which
    /// saves a fit.
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

    /// The parametrizations with which another study may begin, the best first: this study's
    /// [`ranks`](Epoch::ranks) without a drift. Empty before a run of another parametrization than
    /// the default has counted.
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

    /// The reason why no parametrization can make the runs faster, whatever it is, if there is one.
    pub fn cannot_matter(&self, history: &History) -> Option<Stopped> {
        stopping::cannot_matter(&View::new(self.space, history, &[]), &self.settings.stop)
    }

    /// The reason why the default is the best choice, if there is one: nothing can matter, or too
    /// little can be won.
    pub fn nothing_to_win(&self, history: &History) -> Option<Stopped> {
        stopping::nothing_to_win(&self.view(history), &self.settings)
    }

    /// The lack of headroom under a time limit in seconds; none if a run may explore.
    pub fn lacks_headroom(&self, history: &History, limit: f64) -> Option<NoHeadroom> {
        let view = View::new(self.space, history, &[]);
        time_limit::lacks(&view, &self.settings, limit)
    }

    /// How the default's runs ended, if the baseline is given up because too many of them were
    /// lost. The search goes on then, and knows only a lower bound of the default's time.
    pub fn lost_default(&self, history: &History) -> Option<LostDefault> {
        let view = View::new(self.space, history, &[]);
        lost_default::given_up(&view.default_known(), &self.settings)
    }

    /// The share of the spread of times that each parameter explains, or why nothing can be said.
    pub fn importance(&self, history: &History) -> Result<Importance, Silence> {
        let view = self.view(history);
        let fitted = view.fitted().ok_or(Silence::Few(0))?;
        fitted.importance()
    }

    /// The estimate of a parametrization for the case that other runs take as long as usual. None
    /// before a run has counted, and if nothing is known of other runs.
    pub fn cleaned(&self, parametrization: &Parametrization, history: &History) -> Option<Cleaned> {
        let of = history.knows_others().then(|| self.view(history))?;
        let point = self.space.validate(parametrization).ok()?;
        Cleaned::new(of.fitted()?, &point)
    }

    /// These estimates for the default and for the recommended parametrization.
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

    /// The view of a history and of runs in flight, with its surrogate and the prior.
    pub(crate) fn modelled(&self, history: &History, pending: &[Pending]) -> Modelled<'_> {
        let view = View::new(self.space, history, pending);
        self.without_prior(view).on(self.prior)
    }

    /// A view with its surrogate, which knows the view's runs alone.
    pub(crate) fn without_prior<'b>(&'b self, view: View<'b>) -> Modelled<'b> {
        Modelled::new(view, self.surrogates).capped(self.is_careful())
    }

    /// Returns true if the study's runs are users' jobs, whose regret is bounded.
    pub(crate) fn is_careful(&self) -> bool {
        !self.settings.regret.drops_nothing()
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

    pub(crate) fn view<'b>(&'b self, history: &History) -> Modelled<'b> {
        self.without_prior(View::new(self.space, history, &[]))
    }

    pub(crate) fn design(&self) -> &[Point] {
        self.design.get_or_init(|| {
            let (mut design, points) = match self.inherited.is_empty() {
                true => {
                    let recipes = self.fitting_recipes().map(|(point, _)| point);
                    let usual = self.settings.design_points;
                    (
                        recipes.collect(),
                        self.method().design_points(self.whole(), usual),
                    )
                }
                false => (self.ranked(), self.settings.drift.design_points),
            };
            let spread = self.hypercube(points);
            let new = |point: &Point| !design.contains(point);
            let spread: Vec<Point> = spread.into_iter().filter(new).collect();
            design.extend(spread);
            design
        })
    }

    /// The whole space, of which parameters may be frozen in this epoch.
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

    /// The recipes that come first in the design, with their points.
    fn fitting_recipes(&self) -> impl Iterator<Item = (Point, &'a Recipe)> {
        let default = self.space.default_point();
        let recipes = self.recipes.iter().filter(|_| self.inherited.is_empty());
        let fitting = recipes.filter_map(move |one| {
            let point = self.space.validate(&one.parametrization).ok()?;
            (point != default).then_some((point, one))
        });
        fitting.take(RECIPES)
    }

    /// The number of the design's points, the first ones, that are not of the hypercube.
    pub(crate) fn known_elsewhere(&self) -> usize {
        self.ranked().len() + self.fitting_recipes().count()
    }

    pub(crate) fn reason_of_design_point(&self, index: usize) -> Reason {
        if let Some((_, recipe)) = self.fitting_recipes().nth(index) {
            return Reason::Recipe {
                name: recipe.name.clone(),
                why: recipe.why.clone(),
                source: recipe.source.clone(),
            };
        }
        let (number, known) = (index as u64 + 1, self.known_elsewhere() as u64);
        if number <= known {
            Reason::Inherited {
                number,
                of: known,
                another_study: false,
            }
        } else {
            Reason::DesignPoint {
                number: number - known,
                of: self.design().len() as u64 - known,
            }
        }
    }
}
