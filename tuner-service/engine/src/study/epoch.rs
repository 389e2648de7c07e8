//! What the next run gets: the phases and the runs interleaved in them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use io_autotune_model::{CleanedEstimates, Drift, ElapsedBeside, Outlook};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::guards::lost_default;
use crate::guards::restriction::RestrictedSpace;
use crate::guards::time_limit;
use crate::settled::control_runs::control_chance;
use crate::study::cleaned::Cleaned;
use crate::study::prior;
use crate::study::proof;
use crate::study::recommend::{self, Recommendation, first_of};
use crate::study::settings::{PriorFrom, Settings};
use crate::study::stopping;
use crate::study::warm_start;
use io_autotune_model::reason::{
    BestKnownBecause, LostDefault, NoHeadroom, Reason, Stopped, Suggestion,
};
use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::history::by_point::{Known, MIN_RUNS, View};
use io_autotune_search::history::quarantine::Quarantined;
use io_autotune_search::history::{History, Pending, Phase, Role};
use io_autotune_search::latin_hypercube::latin_hypercube;
use io_autotune_search::random;
use io_autotune_search::regret::{self, Estimator, ExpectedRegret};
use io_autotune_search::surrogate::cache::SurrogateCache;
use io_autotune_search::surrogate::importance::{Importance, Silence};
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::surrogate::prior::Prior;
use io_autotune_search::{Method, MethodContext, Proposal};

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

    pub(crate) fn space(&self) -> &'a Space {
        self.space
    }

    /// The settings of this epoch.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the next run gets, and why.
    ///
    /// `history` is the epoch's, `pending` are its runs in flight. Equal inputs give equal answers:
    /// the design depends on the space, the settings and the seed; other random choices also on the
    /// run's ordinal, `history.tally.total` plus the runs in flight. The rules, in order:
    ///
    /// 1. *Baseline*: until `baseline_runs` runs of the default counted or are in flight, or it is
    ///    given up because they do not complete ([`Epoch::lost_default`]).
    /// 2. *Control*: of the first n runs of the epoch, at least floor(sqrt(n)) are of the default.
    /// 3. At most `exploring` runs explore at once; others get the best known parametrization.
    ///    Runs of a [proof](crate::ProofSettings) come before 2 and 3: what is best known, or a
    ///    control run, by a [draw](Epoch::with_draw).
    /// 4. When the expected regret (`regret.rs`) reaches its bound, which grows with the runs, only
    ///    what should beat the default explores. Too long a pause ends the search.
    ///    Where I/O cannot matter ([`Stop::little_io`](crate::study::stopping::settings::Stop)) or
    ///    nothing reads what runs are given, the search ends, with the default.
    /// 5. *Design*: inherited ranks, then each point of the Latin hypercube, the nearest to the
    ///    default first. [Quarantined](crate::Quarantine) points are left out.
    /// 6. *Search*: what the method proposes, while the budget lasts.
    /// 7. When the budget is spent, nothing is left or `settings.stop` is met: wait for exploring
    ///    runs in flight, then confirm a best parametrization that has one run by a second.
    /// 8. *Settled*, for good: the recommended parametrization, or a control run, by a
    ///    [draw](Epoch::with_draw), as often as [`control_chance`] says.
    ///
    /// Never fails or panics: entries that do not fit the space are ignored.
    pub fn suggest(&self, history: &History, pending: &[Pending]) -> Suggestion {
        self.chooser(history, pending, None).choose()
    }

    /// [`suggest`](Epoch::suggest) for a job with this time limit in seconds, if it has one.
    /// Without [headroom](Epoch::lacks_headroom) a design or search run becomes the best known
    /// parametrization; an epoch whose jobs all lack it never settles.
    pub fn suggest_within(
        &self,
        history: &History,
        pending: &[Pending],
        limit: Option<f64>,
    ) -> Suggestion {
        self.chooser(history, pending, limit).choose()
    }

    /// The phase of [`suggest`](Epoch::suggest)'s answer, usually without asking the method.
    pub fn phase(&self, history: &History, pending: &[Pending]) -> Phase {
        self.chooser(history, pending, None).phase()
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

    /// Whether the search pauses for a proof, by the runs that have ended.
    pub fn is_proving(&self, history: &History) -> bool {
        !history.tally.has_settled()
            && proof::goes_on(&self.settings.proof, history, &[], self.outlook)
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

    /// The expected regret so far, in runs of the default; 0 before one of the default counted.
    pub fn expected_regret(&self, history: &History) -> f64 {
        self.chooser(history, &[], None).regret().regret
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

    fn method(&self) -> &dyn Method {
        self.settings.method()
    }

    fn view<'b>(&'b self, history: &History) -> Modelled<'b> {
        Modelled::new(View::new(self.space, history, &[]), self.surrogates)
    }

    fn chooser<'b>(
        &'b self,
        history: &'b History,
        pending: &'b [Pending],
        limit: Option<f64>,
    ) -> Chooser<'b> {
        Chooser {
            epoch: self,
            view: Modelled::new(View::new(self.space, history, pending), self.surrogates)
                .on(self.prior),
            own: OnceCell::new(),
            history,
            pending,
            limit,
            regret: OnceCell::new(),
        }
    }

    fn design(&self) -> &[Point] {
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

    fn whole(&self) -> &'a Space {
        self.restricted.map_or(self.space, RestrictedSpace::whole)
    }

    fn hypercube(&self, points: u32) -> Vec<Point> {
        let whole = latin_hypercube(self.whole(), points, self.seed);
        match self.restricted {
            Some(restricted) => restricted.design(whole),
            None => whole,
        }
    }

    fn ranked(&self) -> Vec<Point> {
        let default = self.space.default_point();
        let mut points = warm_start::points(self.space, self.inherited);
        points.retain(|point| *point != default);
        points.truncate(self.settings.drift.inherited as usize);
        points
    }

    fn reason_of_design_point(&self, index: usize) -> Reason {
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

enum Next {
    Run(Phase, Role, Point, Reason),
    Wait(BestKnownBecause),
    Settle,
}

enum Stage {
    Over,
    Paused(BestKnownBecause),
    /// What a proof may be of, by one run.
    Confirm(Point, Reason),
    /// What other studies promise.
    Promised(Point, Reason),
    /// The next point of the design, with its index.
    Design(usize, Point),
    /// Neither the default nor anything else has completed, and the design has run.
    Blind,
    Search {
        held: bool,
    },
}

struct Chooser<'a> {
    epoch: &'a Epoch<'a>,
    view: Modelled<'a>,
    /// Without a prior.
    own: OnceCell<Modelled<'a>>,
    history: &'a History,
    pending: &'a [Pending],
    limit: Option<f64>,
    regret: OnceCell<ExpectedRegret>,
}

impl Chooser<'_> {
    fn phase(&self) -> Phase {
        let searching = |exhausted: bool| match exhausted.then(|| self.conclude()) {
            Some(Next::Settle) => Phase::Settled,
            Some(Next::Run(phase, ..)) => phase,
            _ => Phase::Search,
        };
        if self.has_settled() {
            return Phase::Settled;
        }
        if self.baseline_is_due() {
            return Phase::Baseline;
        }
        if self.proves() {
            return Phase::Search;
        }
        match self.stage() {
            Stage::Over => searching(true),
            Stage::Paused(_) | Stage::Confirm(..) | Stage::Search { held: true } => Phase::Search,
            Stage::Promised(..) | Stage::Design(..) => Phase::Design,
            Stage::Blind => match self.blind() {
                Next::Run(phase, ..) => phase,
                _ => Phase::Search,
            },
            // Even an exhausted search waits for runs in flight.
            Stage::Search { held: false } if self.view.exploring() > 0 => Phase::Search,
            Stage::Search { held: false } => {
                let context = self.context(false);
                searching(self.method().is_exhausted(&context, &mut self.rng()))
            }
        }
    }

    fn choose(&self) -> Suggestion {
        let mut chosen = self.chosen();
        if chosen.role != Role::Control
            && let Some(default) = self.lost_default()
        {
            chosen.reason = Reason::DefaultLost {
                reason: Box::new(chosen.reason),
                default,
            };
        }
        chosen
    }

    fn chosen(&self) -> Suggestion {
        if self.has_settled() {
            return self.settled();
        }
        if self.baseline_is_due()
            || lost_default::may_complete(&self.view, &self.epoch.settings, self.limit)
        {
            return self.baseline();
        }
        if self.proves() {
            return self.drawn(Phase::Search);
        }
        let exploring = self.epoch.settings.exploring;
        let control = self.control_is_due();
        if control || self.view.exploring() >= u64::from(exploring) {
            return match self.phase() {
                Phase::Settled => self.settled(),
                phase if control => self.control(phase),
                phase => self.best_known(phase, BestKnownBecause::ExploringFull { exploring }),
            };
        }
        let next = self.next();
        let lack = self
            .limit
            .and_then(|limit| time_limit::lacks(&self.view, &self.epoch.settings, limit));
        match (next, lack) {
            (Next::Run(phase, role, ..), Some(lack)) if role.explores() => {
                self.best_known(phase, BestKnownBecause::NoHeadroom(lack))
            }
            (Next::Run(phase, role, point, reason), _) => self.run(phase, role, &point, reason),
            (Next::Wait(because), _) => self.best_known(Phase::Search, because),
            (Next::Settle, _) => self.settled(),
        }
    }

    fn best_known(&self, phase: Phase, because: BestKnownBecause) -> Suggestion {
        let best = || recommend::recommend(self.own(), &self.epoch.settings);
        let (tally, inherited) = (&self.history.tally, self.epoch.inherited);
        recommend::best_known(&self.view, tally, inherited, best, phase, because)
    }

    fn method(&self) -> &dyn Method {
        self.epoch.method()
    }

    fn ranking(&self) -> Vec<Point> {
        self.method().ranking(self.own())
    }

    /// What the epoch's runs show by themselves: what is recommended stands on these.
    fn own(&self) -> &Modelled<'_> {
        if self.epoch.prior.is_none() {
            return &self.view;
        }
        self.own.get_or_init(|| {
            let view = View::new(self.epoch.space, self.history, self.pending);
            Modelled::new(view, None)
        })
    }

    fn run(&self, phase: Phase, role: Role, point: &Point, reason: Reason) -> Suggestion {
        Suggestion {
            phase,
            role,
            parametrization: self.view.space.parametrization(point),
            reason,
            control_chance: None,
        }
    }

    fn runs(&self) -> u64 {
        let in_flight = count(self.pending.iter());
        self.history.tally.total.saturating_add(in_flight)
    }

    fn baseline_runs(&self) -> u64 {
        let default = self.view.default_known();
        let in_flight = count(self.pending.iter().filter(|run| run.role == Role::Baseline));
        default.count().saturating_add(in_flight)
    }

    fn baseline_is_due(&self) -> bool {
        self.baseline_runs() < u64::from(self.epoch.settings.baseline_runs)
            && self.lost_default().is_none()
    }

    fn lost_default(&self) -> Option<LostDefault> {
        lost_default::given_up(&self.view.default_known(), &self.epoch.settings)
    }

    fn baseline(&self) -> Suggestion {
        let reason = self.reason_of_baseline();
        self.run(Phase::Baseline, Role::Baseline, &self.view.default, reason)
    }

    fn reason_of_baseline(&self) -> Reason {
        let of = u64::from(self.epoch.settings.baseline_runs);
        Reason::Baseline {
            number: (self.baseline_runs() + 1).min(of),
            of,
        }
    }

    fn try_the_default_again(&self) -> Next {
        let (default, reason) = (self.view.default.clone(), self.reason_of_baseline());
        Next::Run(Phase::Baseline, Role::Baseline, default, reason)
    }

    /// Whether the default is given up, and no run of anything has completed.
    fn is_blind(&self) -> bool {
        self.view.nothing_completed() && self.lost_default().is_some()
    }

    /// Whether exploring ends until something completes. On a site a program may fail whatever it is
    /// given, until its user mends it: as many runs as a design has are enough to know that, and the
    /// rest of the budget is for what completes. Outside Slurm there is nothing to save it for.
    fn has_explored_blindly(&self) -> bool {
        let settings = self.epoch.settings();
        settings.controls && self.explored() >= u64::from(settings.design_points)
    }

    /// What runs where nothing has completed and the design has run: something new, whatever the
    /// method, because there is nothing to learn from.
    fn blind(&self) -> Next {
        if self.has_explored_blindly() {
            return self.try_the_default_again();
        }
        match random::draw(&self.context(false), &mut self.rng()) {
            Proposal::Run { point, reason } => {
                Next::Run(Phase::Search, Role::Search, point, reason)
            }
            Proposal::Wait(_) | Proposal::Exhausted => self.try_the_default_again(),
        }
    }

    fn control_is_due(&self) -> bool {
        self.epoch.settings.controls && self.view.default_known().runs() < self.runs().isqrt()
    }

    fn control(&self, phase: Phase) -> Suggestion {
        let reason = Reason::Control {
            number: self.view.default_known().runs().saturating_add(1),
            runs: self.runs(),
        };
        self.run(phase, Role::Control, &self.view.default, reason)
    }

    fn explored(&self) -> u64 {
        let ended = self.history.tally.explored;
        ended.saturating_add(self.view.exploring())
    }

    fn context(&self, held: bool) -> MethodContext<'_> {
        MethodContext {
            view: &self.view,
            design: self.epoch.design(),
            inherited: self.epoch.ranked().len(),
            regret: &self.epoch.settings.regret,
            budget: self.epoch.settings.budget,
            explored: self.explored(),
            held,
            regret_left: self.regret().regret_left(),
        }
    }

    fn stage(&self) -> Stage {
        if self.explored() >= u64::from(self.epoch.settings.budget) {
            return Stage::Over;
        }
        if self.nothing_to_win().is_some() {
            return Stage::Over;
        }
        if self.is_blind() {
            let untested = |(_, point): &(usize, &Point)| self.context(false).is_untested(point);
            let mut design = self.epoch.design().iter().enumerate().filter(untested);
            return match design.next() {
                Some((index, point)) if !self.has_explored_blindly() => {
                    Stage::Design(index, point.clone())
                }
                _ => Stage::Blind,
            };
        }
        let regret = self.regret();
        if regret.is_spent() {
            return Stage::Over;
        }
        let held = regret.is_reached();
        let paused = Stage::Paused(regret.into());
        if let Some((point, known)) = self.proof()
            && known.count() + known.in_flight < MIN_RUNS
        {
            let reason = self.confirms(&known);
            return Stage::Confirm(point, reason);
        }
        // Who names a study to begin from means more than what the others promise.
        let context = self.context(held);
        if !held && self.epoch.inherited.is_empty() {
            let admits = |point: &Point| self.method().admits(&context, point);
            let promised = prior::promised(&self.view, self.explored(), admits, &mut self.rng());
            if let Some((point, reason)) = promised {
                return Stage::Promised(point, reason);
            }
        }
        let next = context.next_design_point(self.method());
        if let Some((index, point)) = next.filter(|_| !prior::replaces_design(&context)) {
            return if held && regret::may_regret_at(&self.view, point) {
                paused
            } else {
                Stage::Design(index, point.clone())
            };
        }
        match stopping::met(&self.view, &self.epoch.settings.stop, &mut self.rng()) {
            // The regret bound may hold back what is left.
            Some(_) if held => paused,
            Some(_) => Stage::Over,
            None => Stage::Search { held },
        }
    }

    fn next(&self) -> Next {
        let held = match self.stage() {
            Stage::Over => return self.conclude(),
            Stage::Paused(because) => return Next::Wait(because),
            Stage::Confirm(point, reason) => {
                return Next::Run(Phase::Search, Role::Search, point, reason);
            }
            Stage::Promised(point, reason) => {
                return Next::Run(Phase::Design, Role::Design, point, reason);
            }
            Stage::Design(index, point) => {
                let reason = self.epoch.reason_of_design_point(index);
                return Next::Run(Phase::Design, Role::Design, point, reason);
            }
            Stage::Blind => return self.blind(),
            Stage::Search { held } => held,
        };
        match self.method().propose(&self.context(held), &mut self.rng()) {
            Proposal::Run { point, .. } if held && regret::may_regret_at(&self.view, &point) => {
                Next::Wait(self.regret().into())
            }
            Proposal::Run { point, reason } => {
                let reason = prior::told(&self.view, reason);
                Next::Run(Phase::Search, Role::Search, point, reason)
            }
            Proposal::Wait(because) => Next::Wait(because),
            Proposal::Exhausted if held => Next::Wait(self.regret().into()),
            Proposal::Exhausted => self.conclude(),
        }
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.epoch.seed);
        // Stream 0 belongs to the design.
        rng.set_stream(self.runs().wrapping_add(1));
        rng
    }

    fn draw(&self) -> f64 {
        self.epoch.draw.unwrap_or_else(|| self.rng().random())
    }

    fn nothing_to_win(&self) -> Option<Stopped> {
        stopping::nothing_to_win(&self.view, &self.epoch.settings.stop)
    }

    fn stopped(&self) -> Option<Stopped> {
        let within = self.explored() < u64::from(self.epoch.settings.budget);
        if !within {
            return None;
        }
        let nothing = self.nothing_to_win();
        if nothing.is_some() {
            return nothing;
        }
        let stop = &self.epoch.settings.stop;
        let regret = self.regret();
        let spent = regret.is_spent().then_some(Stopped::RegretBudget {
            regret: regret.regret,
            bound: regret.bound,
        });
        spent.or_else(|| stopping::met(&self.view, stop, &mut self.rng()))
    }

    fn regret(&self) -> ExpectedRegret {
        *self.regret.get_or_init(|| {
            let settings = &self.epoch.settings;
            let estimator = self.method().estimator();
            ExpectedRegret::of(
                &self.view,
                estimator,
                &settings.regret,
                settings.budget,
                self.runs(),
            )
        })
    }

    /// The end of the search: waits for results, and confirms a best with one run.
    fn conclude(&self) -> Next {
        if self.view.exploring() > 0 {
            return Next::Wait(BestKnownBecause::AwaitingResults);
        }
        if self.nothing_to_win().is_some() {
            return Next::Settle;
        }
        // Settled on what never completed nobody would ever know better.
        if self.is_blind() {
            return self.try_the_default_again();
        }
        // Runs that never count must not ask for confirmation for ever.
        let bound = 2 * u64::from(self.epoch.settings.budget);
        if let Some((point, known)) = first_of(&self.view, &self.ranking(), 1)
            && known.mean().is_some()
            && known.count() < MIN_RUNS
            && self.history.tally.explored < bound
        {
            let reason = self.confirms(&known);
            return Next::Run(Phase::Search, Role::Search, point, reason);
        }
        Next::Settle
    }

    fn confirms(&self, known: &Known) -> Reason {
        Reason::Confirm {
            mean: known.mean().unwrap_or_default(),
            default_mean: self.view.default_known().mean(),
        }
    }

    /// What a proof may begin with.
    fn proof(&self) -> Option<(Point, Known)> {
        let Settings {
            proof,
            budget,
            controls,
            ..
        } = self.epoch.settings();
        if !controls || self.explored() >= u64::from(*budget) || self.nothing_to_win().is_some() {
            return None;
        }
        // There is nothing to prove it against.
        if self.view.default_never_completed() {
            return None;
        }
        let holds = || prior::replaces_design(&self.context(false));
        if proof::is_untimely(proof, self.history, holds) {
            return None;
        }
        proof::begins(proof, self.own(), self.method())
    }

    /// Whether this run is one of a proof before the search has ended.
    fn proves(&self) -> bool {
        let settings = &self.epoch.settings.proof;
        proof::goes_on(settings, self.history, self.pending, self.epoch.outlook)
            || self
                .proof()
                .is_some_and(|(_, known)| known.count() >= MIN_RUNS)
    }

    fn in_flight(&self, role: Role) -> u64 {
        count(
            self.pending
                .iter()
                .filter(|run| run.phase == Phase::Settled && run.role == role),
        )
    }

    fn has_settled(&self) -> bool {
        self.history.tally.has_settled()
            || self.in_flight(Role::Settled) > 0
            || self.in_flight(Role::Control) > 0
    }

    fn settled(&self) -> Suggestion {
        self.drawn(Phase::Settled)
    }

    /// The recommended parametrization or a control run, by a draw: once settled, or in the search
    /// for a proof.
    fn drawn(&self, phase: Phase) -> Suggestion {
        let Epoch {
            settings, outlook, ..
        } = self.epoch;
        let tally = &self.history.tally;
        let chance = match phase {
            Phase::Settled => {
                let controls = self.in_flight(Role::Control);
                let controls = tally.settled_controls.saturating_add(controls);
                match self.view.default_never_completed() {
                    true => control_chance(settings, u64::MAX, Outlook::Resolved, false),
                    false => control_chance(settings, controls, *outlook, tally.proof > 0),
                }
            }
            _ => control_chance(settings, 0, Outlook::Open, false),
        };
        let control_chance = settings.controls.then_some(chance);
        if control_chance.is_some_and(|chance| self.draw() < chance) {
            return Suggestion {
                control_chance,
                ..self.control(phase)
            };
        }
        let default = self.view.default_known();
        let best = recommend::recommend(self.own(), &self.epoch.settings);
        let (parametrization, mean, n) = match best {
            Some(best) => (best.parametrization, Some(best.mean), best.n),
            None => {
                let (parametrization, mean, n) = recommend::instead(&self.view);
                let is_default = parametrization == self.view.space.default();
                (parametrization, mean.filter(|_| !is_default), n)
            }
        };
        let is_default = parametrization == self.view.space.default();
        let default_mean = default.mean();
        let reason = match phase {
            Phase::Settled => Reason::Settled {
                mean,
                n,
                default_mean,
                is_default,
                stopped: self.stopped(),
                vetoed: recommend::elapsed_beside(&self.view, settings)
                    .filter(|beside| beside.vetoed),
            },
            _ => Reason::Proof {
                mean,
                n,
                default_mean,
            },
        };
        Suggestion {
            phase,
            role: Role::Settled,
            parametrization,
            reason,
            control_chance,
        }
    }
}

fn count<'a>(pending: impl Iterator<Item = &'a Pending>) -> u64 {
    pending.fold(0, |runs, run| runs.saturating_add(run.count))
}
