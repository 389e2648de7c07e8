//! What the next run gets: the phases, and what is interleaved in them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;

use io_autotune_model::Drift;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::guards::regret::{self, ExpectedRegret};
use crate::guards::restriction::RestrictedSpace;
use crate::guards::time_limit;
use crate::history::by_point::{MIN_RUNS, View};
use crate::history::quarantine::Quarantined;
use crate::history::{History, Pending, Phase, Role};
use crate::reason::{BestKnownBecause, NoHeadroom, Reason, Stopped, Suggestion};
use crate::search::latin_hypercube::latin_hypercube;
use crate::search::{self, Method, MethodContext, Proposal};
use crate::settled::control_runs::{self, InFlight};
use crate::space::{Parametrization, Point, Space};
use crate::study::recommend::{self, Recommendation, first_of};
use crate::study::settings::Settings;
use crate::study::stopping;
use crate::study::warm_start;
use crate::surrogate::cache::SurrogateCache;
use crate::surrogate::posterior::Modelled;

/// What stays the same in an epoch, for callers that ask for many suggestions: its design is made
/// once, when it is first needed.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    space: &'a Space,
    settings: Cow<'a, Settings>,
    seed: u64,
    inherited: &'a [Parametrization],
    design: OnceCell<Vec<Point>>,
    surrogates: Option<&'a SurrogateCache>,
    restricted: Option<&'a RestrictedSpace<'a>>,
}

impl<'a> Epoch<'a> {
    /// An epoch of these settings; `seed` is one number for the whole epoch.
    pub fn new(space: &'a Space, settings: &'a Settings, seed: u64) -> Self {
        Epoch {
            space,
            settings: Cow::Borrowed(settings),
            seed,
            inherited: &[],
            design: OnceCell::new(),
            surrogates: None,
            restricted: None,
        }
    }

    /// An epoch in which some parameters are held at their defaults: it inherits what is left of its ranks, and is
    /// asked with the [narrowed history](RestrictedSpace::history). Its design is what becomes of the whole space's.
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

    /// The epoch with surrogates that were fitted before: its answers stay what they are.
    #[must_use]
    pub fn with_cache(mut self, surrogates: &'a SurrogateCache) -> Self {
        self.surrogates = Some(surrogates);
        self
    }

    /// The epoch as one that took these ranks from its parent, the best first ([`ranks`](Epoch::ranks)); one that
    /// took none stays what it is. Its design is the first of them, then a small Latin hypercube, and its budget that
    /// of `settings.drift`; until it knows better, its best known parametrization is the first of them.
    #[must_use]
    pub fn inheriting(mut self, inherited: &'a [Parametrization]) -> Self {
        if !inherited.is_empty() {
            self.settings = Cow::Owned(self.settings.inheriting());
            self.inherited = inherited;
        }
        self
    }

    /// The settings that hold in it.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the next run gets, and why.
    ///
    /// `history` is what is known of the epoch, `pending` its runs in flight. The design depends on the space, the settings
    /// and the seed alone; every other random choice also on the run's ordinal, `history.tally.total` plus the runs in
    /// flight. Same inputs, same answer.
    ///
    /// The rules, in order:
    ///
    /// 1. *Baseline*: until `baseline_runs` runs of the default counted or are in flight.
    /// 2. *Control*: of the epoch's first n runs at least the whole part of the root of n are runs of
    ///    the default, so that the search stays comparable with the present.
    /// 3. At most `exploring` runs explore at once; any other gets the best known parametrization.
    /// 4. While the expected regret (`regret.rs`) has reached its bound, design and search go on only with what is
    ///    expected to be quicker than the default; any other run gets the best known parametrization. The bound grows with the runs. A pause that
    ///    would not end in time ends the search.
    /// 5. *Design*: each point of the Latin hypercube once, the nearest to the default first. A point
    ///    that is [quarantined](crate::Quarantine) is left out. In an epoch that [inherits](Epoch::inheriting) what the parent
    ///    ranked best comes before.
    /// 6. *Search*: what the method proposes, while the budget lasts.
    /// 7. When the budget is spent, nothing is left to try or a criterion of `settings.stop` is met, exploring runs in flight are waited for;
    ///    then a lowest mean that rests on one run is confirmed by a second.
    /// 8. *Settled*: the recommended parametrization, and one run in `control_every` of the default, once the gain
    ///    is resolved one in `control_every_resolved`.
    ///    An epoch that has settled stays settled.
    ///
    /// It never fails and never panics, whatever the history or the settings hold: entries that do not
    /// fit the space are ignored.
    pub fn suggest(&self, history: &History, pending: &[Pending]) -> Suggestion {
        self.chooser(history, pending, None).choose()
    }

    /// What [`suggest`](Epoch::suggest) answers to a job that has so many seconds: where that leaves [no room](Epoch::lacks_headroom)
    /// to explore, the best known parametrization instead of a design or search run. None: the limit is not known, or
    /// there is none.
    ///
    /// Nothing else changes. An epoch whose jobs all lack room has its baseline and its control runs, and stays in
    /// its phase until a job comes that has room: it does not settle on what it did not look for.
    pub fn suggest_within(
        &self,
        history: &History,
        pending: &[Pending],
        limit: Option<f64>,
    ) -> Suggestion {
        self.chooser(history, pending, limit).choose()
    }

    /// The phase of [`suggest`](Epoch::suggest)'s answer to the same question, without asking the method for a point
    /// unless it may have none.
    pub fn phase(&self, history: &History, pending: &[Pending]) -> Phase {
        self.chooser(history, pending, None).phase()
    }

    /// The best parametrization among those that at least two runs counted for, by the method's ranking: for the papers'
    /// methods the lowest mean elapsed, because the optimum is the best on average and not the quickest run (robert2020,
    /// section IV); for the main method the lowest that its surrogate expects.
    ///
    /// Once the epoch has settled the main method's choice stands until another one is surely quicker (`incumbent.rs`).
    ///
    /// A run that was cut short by its time limit never makes a parametrization recommended: it is not
    /// one of the two, and it can only raise the mean. What is quarantined is not recommended. None
    /// before any has two runs. Entries that do not fit the space are ignored.
    pub fn recommend(&self, history: &History) -> Option<Recommendation> {
        recommend::recommend(&self.view(history), self.method(), &self.settings)
    }

    /// The parametrization that the method holds for the best, whatever the number of runs that count
    /// for it: the optimum that the papers' comparisons rate, where [`recommend`](Epoch::recommend) wants two runs. None
    /// before a run has counted. Entries that do not fit the space are ignored.
    pub fn leader(&self, history: &History) -> Option<Parametrization> {
        let view = self.view(history);
        let ranking = self.method().ranking(&view, &self.settings);
        first_of(&view, &ranking, 1).map(|(point, _)| self.space.parametrization(&point))
    }

    /// What the method would recommend if no run came any more, not even the second of its best, which a
    /// study of a site makes before it settles: [`recommend`](Epoch::recommend)'s answer where the method runs points
    /// again and goes by plain means, its [`leader`](Epoch::leader) where not, or where nothing has two runs.
    pub fn recommend_now(&self, history: &History) -> Option<Parametrization> {
        let confirmed = self
            .method()
            .wants_two_runs(&self.settings)
            .then(|| self.recommend(history))
            .flatten();
        confirmed
            .map(|best| best.parametrization)
            .or_else(|| self.leader(history))
    }

    /// What a run gets that may not explore: the recommended parametrization, or the default before there is one. In an
    /// epoch that inherits, the first of what it inherits until two runs have counted for that, or it is
    /// quarantined. The role is [`Role::BestKnown`], the phase that of the [tally](io_autotune_model::Tally::phase).
    pub fn best_known(&self, history: &History, because: BestKnownBecause) -> Suggestion {
        self.best_known_of(self.recommend(history).as_ref(), history, because)
    }

    /// [`best_known`](Epoch::best_known), where [`recommend`](Epoch::recommend)'s answer to the same history is at hand: a
    /// surrogate is not fitted again for each of a thousand runs that may not explore.
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

    /// What the next epoch inherits, the best first: see [`inheriting`](Epoch::inheriting).
    pub fn ranks(&self, history: &History, drift: &Drift) -> Vec<Parametrization> {
        let view = self.view(history);
        let recommended = recommend::recommend(&view, self.method(), &self.settings)
            .and_then(|best| self.space.validate(&best.parametrization).ok());
        let ranking = self.method().ranking(&view, &self.settings);
        warm_start::ranks(&view, recommended, ranking, drift)
    }

    /// What its runs so far are expected to have lost, in runs of the default; 0 before a run of the default counted.
    /// Entries that do not fit the space are ignored.
    pub fn expected_regret(&self, history: &History) -> f64 {
        self.chooser(history, &[], None).regret().regret
    }

    /// What a time limit of so many seconds lacks for a run to explore; none if nothing.
    pub fn lacks_headroom(&self, history: &History, limit: f64) -> Option<NoHeadroom> {
        let view = View::new(self.space, history, &[]);
        time_limit::lacks(&view, &self.settings.regret, limit)
    }

    /// What is quarantined, in the order of the space's points. Entries that do not fit the space are ignored.
    pub fn quarantined(&self, history: &History) -> Vec<Quarantined> {
        View::new(self.space, history, &[]).quarantined()
    }

    fn method(&self) -> &'static dyn Method {
        search::named(self.settings.method)
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
            view: Modelled::new(View::new(self.space, history, pending), self.surrogates),
            history,
            pending,
            limit,
            regret: OnceCell::new(),
        }
    }

    fn design(&self) -> &[Point] {
        self.design.get_or_init(|| {
            if self.inherited.is_empty() {
                let points =
                    search::named(self.settings.method).design_points(self.whole(), &self.settings);
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

    /// The space, before any parameter was held.
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

    /// What is run again of what is inherited: the default has its own runs.
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
            Reason::Inherited { number, of: ranked }
        } else {
            Reason::DesignPoint {
                number: number - ranked,
                of: self.design().len() as u64 - ranked,
            }
        }
    }
}

/// What comes next apart from control runs and the limit on exploring runs.
enum Next {
    Run(Phase, Role, Point, Reason),
    Wait(BestKnownBecause),
    Settle,
}

/// Where an epoch stands between baseline and settled.
enum Stage {
    /// Nothing more is explored.
    Over,
    /// Exploring pauses.
    Paused(BestKnownBecause),
    /// A point of the design is next; its number from 0.
    Design(usize, Point),
    /// The method is asked.
    Search {
        /// Whether only what is expected to be quicker than the default may run.
        held: bool,
    },
}

struct Chooser<'a> {
    epoch: &'a Epoch<'a>,
    view: Modelled<'a>,
    history: &'a History,
    pending: &'a [Pending],
    /// How many seconds the run has, where that is known.
    limit: Option<f64>,
    regret: OnceCell<ExpectedRegret>,
}

impl Chooser<'_> {
    fn phase(&self) -> Phase {
        let searching = |exhausted: bool| match exhausted.then(|| self.conclude()) {
            Some(Next::Settle) => Phase::Settled,
            _ => Phase::Search,
        };
        if self.has_settled() {
            return Phase::Settled;
        }
        if self.baseline_is_due() {
            return Phase::Baseline;
        }
        match self.stage() {
            Stage::Over => searching(true),
            Stage::Paused(_) | Stage::Search { held: true } => Phase::Search,
            Stage::Design(..) => Phase::Design,
            // Even a search that is exhausted waits for what is in flight.
            Stage::Search { held: false } if self.view.exploring() > 0 => Phase::Search,
            Stage::Search { held: false } => {
                let context = self.context(false);
                searching(self.method().is_exhausted(&context, &mut self.rng()))
            }
        }
    }

    fn choose(&self) -> Suggestion {
        if self.has_settled() {
            return self.settled();
        }
        if let Some(baseline) = self.baseline() {
            return baseline;
        }
        let exploring = self.epoch.settings.exploring;
        let control = self.control_is_due();
        if control || self.view.exploring() >= u64::from(exploring) {
            // Whatever the method would propose is not run now.
            return match self.phase() {
                Phase::Settled => self.settled(),
                phase if control => self.control(phase),
                phase => self.best_known(phase, BestKnownBecause::ExploringFull { exploring }),
            };
        }
        let next = self.next();
        let lack = self
            .limit
            .and_then(|limit| time_limit::lacks(&self.view, &self.epoch.settings.regret, limit));
        match (next, lack) {
            (Next::Run(phase, ..), Some(lack)) => {
                self.best_known(phase, BestKnownBecause::NoHeadroom(lack))
            }
            (Next::Run(phase, role, point, reason), None) => self.run(phase, role, &point, reason),
            (Next::Wait(because), _) => self.best_known(Phase::Search, because),
            (Next::Settle, _) => self.settled(),
        }
    }

    fn best_known(&self, phase: Phase, because: BestKnownBecause) -> Suggestion {
        let best = || recommend::recommend(&self.view, self.method(), &self.epoch.settings);
        let (tally, inherited) = (&self.history.tally, self.epoch.inherited);
        recommend::best_known(&self.view, tally, inherited, best, phase, because)
    }

    fn method(&self) -> &'static dyn Method {
        self.epoch.method()
    }

    fn ranking(&self) -> Vec<Point> {
        self.method().ranking(&self.view, &self.epoch.settings)
    }

    fn run(&self, phase: Phase, role: Role, point: &Point, reason: Reason) -> Suggestion {
        Suggestion {
            phase,
            role,
            parametrization: self.view.space.parametrization(point),
            reason,
        }
    }

    /// The epoch's runs so far, those in flight included.
    fn runs(&self) -> u64 {
        let in_flight = count(self.pending.iter());
        self.history.tally.total.saturating_add(in_flight)
    }

    /// Runs of the baseline, those in flight included.
    fn baseline_runs(&self) -> u64 {
        let default = self.view.default_known();
        let in_flight = count(self.pending.iter().filter(|run| run.role == Role::Baseline));
        // Failed runs tell nothing of the default's time. An application that always fails stays
        // here, with the default, which harms nobody.
        default.count().saturating_add(in_flight)
    }

    fn baseline_is_due(&self) -> bool {
        self.baseline_runs() < u64::from(self.epoch.settings.baseline_runs)
    }

    fn baseline(&self) -> Option<Suggestion> {
        self.baseline_is_due().then(|| {
            let reason = Reason::Baseline {
                number: self.baseline_runs() + 1,
                of: u64::from(self.epoch.settings.baseline_runs),
            };
            self.run(Phase::Baseline, Role::Baseline, &self.view.default, reason)
        })
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
            settings: &self.epoch.settings,
            explored: self.explored(),
            held,
            regret_left: self.regret().regret_left(),
        }
    }

    fn stage(&self) -> Stage {
        if self.explored() >= u64::from(self.epoch.settings.budget) {
            return Stage::Over;
        }
        let regret = self.regret();
        if regret.is_spent() {
            return Stage::Over;
        }
        let held = regret.is_reached();
        let paused = Stage::Paused(regret.into());
        let context = self.context(held);
        if let Some((index, point)) = context.next_design_point(self.method()) {
            return if held && regret::may_regret_at(&self.view, point) {
                paused
            } else {
                Stage::Design(index, point.clone())
            };
        }
        match stopping::met(&self.view, &self.epoch.settings.stop, &mut self.rng()) {
            // What is left may only be held back.
            Some(_) if held => paused,
            Some(_) => Stage::Over,
            None => Stage::Search { held },
        }
    }

    fn next(&self) -> Next {
        let held = match self.stage() {
            Stage::Over => return self.conclude(),
            Stage::Paused(because) => return Next::Wait(because),
            Stage::Design(index, point) => {
                let reason = self.epoch.reason_of_design_point(index);
                return Next::Run(Phase::Design, Role::Design, point, reason);
            }
            Stage::Search { held } => held,
        };
        match self.method().propose(&self.context(held), &mut self.rng()) {
            Proposal::Run { point, .. } if held && regret::may_regret_at(&self.view, &point) => {
                Next::Wait(self.regret().into())
            }
            Proposal::Run { point, reason } => {
                Next::Run(Phase::Search, Role::Search, point, reason)
            }
            Proposal::Wait(because) => Next::Wait(because),
            // What is left may only be held back.
            Proposal::Exhausted if held => Next::Wait(self.regret().into()),
            Proposal::Exhausted => self.conclude(),
        }
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.epoch.seed);
        // Stream 0 is the design's.
        rng.set_stream(self.runs().wrapping_add(1));
        rng
    }

    /// What ends the search before its budget is spent, if anything does.
    fn stopped(&self) -> Option<Stopped> {
        let within = self.explored() < u64::from(self.epoch.settings.budget);
        if !within {
            return None;
        }
        let regret = self.regret();
        let spent = regret.is_spent().then_some(Stopped::RegretBudget {
            regret: regret.regret,
            bound: regret.bound,
        });
        spent.or_else(|| stopping::met(&self.view, &self.epoch.settings.stop, &mut self.rng()))
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

    /// The end of the search: results are waited for, and a lucky run is not believed.
    fn conclude(&self) -> Next {
        if self.view.exploring() > 0 {
            return Next::Wait(BestKnownBecause::AwaitingResults);
        }
        // Runs that end without counting could ask for a confirmation for ever.
        let bound = 2 * u64::from(self.epoch.settings.budget);
        if let Some((point, known)) = first_of(&self.view, &self.ranking(), 1)
            && let Some(mean) = known.mean()
            && known.count() < MIN_RUNS
            && self.history.tally.explored < bound
        {
            let default_mean = self.view.default_known().mean();
            let reason = Reason::Confirm { mean, default_mean };
            return Next::Run(Phase::Search, Role::Search, point, reason);
        }
        Next::Settle
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
        let default = self.view.default_known();
        let best = recommend::recommend(&self.view, self.method(), &self.epoch.settings);
        let recommended = best
            .as_ref()
            .and_then(|best| self.view.space.validate(&best.parametrization).ok());
        let in_flight = InFlight {
            controls: self.in_flight(Role::Control),
            settled: self.in_flight(Role::Settled),
        };
        let control_is_due = self.epoch.settings.controls
            && control_runs::is_due(
                self.view.space,
                self.history,
                in_flight,
                recommended.as_ref().unwrap_or(&self.view.default),
                &self.epoch.settings,
            );
        if control_is_due {
            return self.control(Phase::Settled);
        }
        let (parametrization, mean, n) = match best {
            Some(best) => (best.parametrization, Some(best.mean), best.n),
            None => (self.view.space.default(), None, default.count()),
        };
        let is_default = parametrization == self.view.space.default();
        Suggestion {
            phase: Phase::Settled,
            role: Role::Settled,
            parametrization,
            reason: Reason::Settled {
                mean,
                n,
                default_mean: default.mean(),
                is_default,
                stopped: self.stopped(),
            },
        }
    }
}

fn count<'a>(pending: impl Iterator<Item = &'a Pending>) -> u64 {
    pending.fold(0, |runs, run| runs.saturating_add(run.count))
}
