//! The situation in which a run is decided, and what each rule gives in it. The order of the rules,
//! and the phases for which they apply, are the business of the list of rules and its readers.

use std::cell::OnceCell;
use std::sync::OnceLock;

use io_autotune_model::history::{History, Pending};
use io_autotune_model::reason::{BestKnownBecause, LostDefault, Reason, Stopped, Suggestion};
use io_autotune_model::run::{Phase, Role};
use io_autotune_model::space::Point;
use io_autotune_model::{Headroom, Mixture, Outlook, Pause, Progress};
use io_autotune_search::history::by_point::{Known, MIN_RUNS, View};
use io_autotune_search::random;
use io_autotune_search::regret::{self, ExpectedRegret};
use io_autotune_search::surrogate::posterior::Modelled;
use io_autotune_search::{Method, MethodContext, Proposal};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::guards::{lost_default, time_limit};
use crate::settled::control_runs::control_chance;
use crate::study::epoch::Epoch;
use crate::study::facts::{Facts, InFlight};
use crate::study::recommend::{self, Recommendation, first_of};
use crate::study::settings::Settings;
use crate::study::steering::Steering;
use crate::study::{prior, proof, stopping};

/// The situation of the next run of an epoch: its history and runs in flight, its steering, and
/// values that are computed from these once.
#[derive(Debug)]
pub struct Situation<'a> {
    epoch: &'a Epoch<'a>,
    history: &'a History,
    pending: &'a [Pending],
    pub(crate) facts: Facts<'a>,
    view: Modelled<'a>,
    mixture: Option<Mixture>,
    recommended: Option<&'a OnceLock<Option<Recommendation>>>,
    /// The view without a prior.
    own: OnceCell<Modelled<'a>>,
    /// The phase of the first step that applies.
    pub(crate) phase: OnceCell<Phase>,
    regret: OnceCell<ExpectedRegret>,
    proof: OnceCell<Option<(Point, Known)>>,
    promised: OnceCell<Option<(Point, Reason)>>,
    design: OnceCell<Option<(usize, Point)>>,
    nothing_to_win: OnceCell<Option<Stopped>>,
}

impl<'a> Situation<'a> {
    /// The situation for this history and these runs in flight, of both of which `view` is made.
    pub(crate) fn new(
        epoch: &'a Epoch<'a>,
        view: Modelled<'a>,
        history: &'a History,
        pending: &'a [Pending],
        steering: &'a Steering,
    ) -> Self {
        let facts = Facts {
            progress: progress(epoch, &view, history),
            in_flight: InFlight::of(epoch.space(), pending),
            steering,
        };
        Self {
            epoch,
            history,
            pending,
            facts,
            view,
            mixture: None,
            recommended: None,
            own: OnceCell::new(),
            phase: OnceCell::new(),
            regret: OnceCell::new(),
            proof: OnceCell::new(),
            promised: OnceCell::new(),
            design: OnceCell::new(),
            nothing_to_win: OnceCell::new(),
        }
    }

    /// Adds the mixed work in the study's own runs, if any was found; `own` is their history.
    #[must_use]
    pub fn with_mixture(mut self, mixture: Option<Mixture>, own: &History) -> Self {
        let in_turn = mixture.as_ref().is_some_and(|mixture| mixture.in_turn);
        self.facts.progress.mixed = in_turn && own.tally.phase() != Phase::Settled;
        self.mixture = mixture;
        self
    }

    /// Adds the recommendation, which is computed once for all starts that share it.
    #[must_use]
    pub fn with_recommended(mut self, shared: &'a OnceLock<Option<Recommendation>>) -> Self {
        self.recommended = Some(shared);
        self
    }
}

fn progress(epoch: &Epoch<'_>, view: &View<'_>, history: &History) -> Progress {
    let settings = epoch.settings();
    let default = view.default_known();
    let within = u64::from(settings.proof.within);
    Progress {
        settled: history.tally.has_settled(),
        total: history.tally.total,
        explored: history.tally.explored,
        budget: settings.budget,
        exploring: settings.exploring,
        controls: settings.controls,
        default_counted: default.count(),
        baseline_runs: settings.baseline_runs,
        baseline_given_up: lost_default::given_up(&default, settings).is_some(),
        longer_limit: lost_default::longer_limit(view, settings),
        mixed: false,
        between: epoch.is_careful() && epoch.method().alternates() && knows_better(view),
        // Only a reader needs this number: a start looks at the design itself.
        design_left: 0,
        headroom: time_limit::needed(view, settings).map_or(Headroom::Any, |needed| {
            needed.seconds.map_or(Headroom::Unknown, Headroom::Seconds)
        }),
        proof: history.tally.proof,
        proof_most: match epoch.outlook() {
            Outlook::Open => within / 4,
            Outlook::Promising | Outlook::Resolved => within,
        },
    }
}

/// Returns true if a parametrization was faster than the default, by their means.
fn knows_better(view: &View<'_>) -> bool {
    let default = view.default_known().mean();
    let is_better = |known: &Known| {
        let both = known.mean().zip(default);
        known.is_eligible() && both.is_some_and(|(mean, default)| mean < default)
    };
    let mut others = view.iter().filter(|(point, _)| **point != view.default);
    others.any(|(_, known)| is_better(known))
}

/// The suggestions of the rules above the study's steps.
impl Situation<'_> {
    pub(crate) fn observed(&self, phase: Phase) -> Suggestion {
        self.unapplied(phase, Reason::Observe)
    }

    pub(crate) fn off(&self, phase: Phase) -> Suggestion {
        self.unapplied(phase, Reason::Off)
    }

    pub(crate) fn pinned(&self, phase: Phase) -> Option<Suggestion> {
        let pin = self.facts.steering.pin.as_ref();
        let pin = pin.filter(|pin| self.epoch.whole().validate(pin).is_ok())?;
        Some(Suggestion {
            parametrization: pin.clone(),
            role: Role::Pinned,
            ..self.unapplied(phase, Reason::Pinned)
        })
    }

    pub(crate) fn observed_as_mixed(&self, phase: Phase) -> Option<Suggestion> {
        let mixture = self.mixture?;
        Some(self.unapplied(phase, mixture.into()))
    }

    fn unapplied(&self, phase: Phase, reason: Reason) -> Suggestion {
        Suggestion {
            phase,
            role: Role::Observe,
            parametrization: self.epoch.whole().default(),
            reason,
            control_chance: None,
        }
    }

    pub(crate) fn restarted(&self) -> Suggestion {
        self.barred(BestKnownBecause::Restarted)
    }

    pub(crate) fn busy(&self) -> Suggestion {
        self.barred(BestKnownBecause::Busy)
    }

    pub(crate) fn frozen(&self) -> Suggestion {
        self.barred(BestKnownBecause::Frozen)
    }

    /// The best known parametrization by the runs that have ended, so that it is the same for all
    /// starts of a busy study.
    fn barred(&self, because: BestKnownBecause) -> Suggestion {
        let own = OnceLock::new();
        let shared = self.recommended.unwrap_or(&own);
        let best = shared.get_or_init(|| self.epoch.recommend(self.history));
        self.epoch
            .best_known_of(best.as_ref(), self.history, because)
    }
}

/// The suggestions of the baseline, control runs and proofs.
impl Situation<'_> {
    pub(crate) fn baseline(&self) -> Suggestion {
        let of = u64::from(self.facts.progress.baseline_runs);
        let number = (self.facts.baseline_runs() + 1).min(of);
        let reason = Reason::Baseline { number, of };
        self.run(Phase::Baseline, Role::Baseline, &self.view.default, reason)
    }

    pub(crate) fn control(&self, phase: Phase) -> Suggestion {
        let reason = Reason::Control {
            number: self.view.default_known().runs().saturating_add(1),
            runs: self.facts.runs(),
        };
        self.run(phase, Role::Control, &self.view.default, reason)
    }

    /// Returns true if this run is one of a proof before the search has ended.
    pub(crate) fn proves(&self) -> bool {
        let settings = &self.settings().proof;
        proof::goes_on(settings, self.history, self.pending, self.epoch.outlook())
            || self
                .proof()
                .is_some_and(|(_, known)| known.count() >= MIN_RUNS)
    }

    pub(crate) fn confirms_for_a_proof(&self) -> bool {
        let is_unconfirmed = |known: &Known| known.count() + known.in_flight < MIN_RUNS;
        self.is_open() && self.proof().is_some_and(|(_, known)| is_unconfirmed(known))
    }

    pub(crate) fn confirm_for_a_proof(&self) -> Option<Suggestion> {
        let (point, known) = self.proof()?;
        Some(self.confirmed(point, known))
    }

    /// The parametrization with which a proof may begin, with its runs.
    fn proof(&self) -> Option<&(Point, Known)> {
        let begins = || {
            let settings = self.settings();
            let may = settings.controls && self.has_budget() && self.nothing_to_win().is_none();
            // Without a completed run of the default there is nothing to compare with.
            if !may || self.view.default_never_completed() {
                return None;
            }
            let holds = || self.prior_replaces_design(&self.context(false));
            if proof::is_untimely(&settings.proof, self.history, holds) {
                return None;
            }
            proof::begins(&settings.proof, self.own(), self.method())
        };
        self.proof.get_or_init(begins).as_ref()
    }
}

/// The suggestions of the best known parametrization where a run may not explore.
impl Situation<'_> {
    pub(crate) fn waits_for_a_place(&self, phase: Phase) -> Suggestion {
        let exploring = self.facts.progress.exploring;
        let because = BestKnownBecause::ExploringFull { exploring };
        self.best_known(phase, because)
    }

    /// The best known parametrization. In the search, what the method ranks first runs a second time
    /// if it has run only once and this run may explore: it is not recommended before.
    pub(crate) fn best_between(&self, phase: Phase) -> Suggestion {
        let facts = &self.facts;
        let may_explore =
            !facts.lacks_headroom() && !facts.exploring_is_full() && !facts.is_over_budget();
        let may_confirm = phase == Phase::Search && may_explore;
        let confirm = may_confirm.then(|| self.confirm()).flatten();
        confirm.unwrap_or_else(|| self.best_known(phase, BestKnownBecause::Between))
    }

    pub(crate) fn instead_of_exploring(&self, phase: Phase) -> Option<Suggestion> {
        let limit = self.facts.steering.limit_seconds()?;
        let lack = time_limit::lacks(&self.view, self.settings(), limit)?;
        Some(self.best_known(phase, BestKnownBecause::NoHeadroom(lack)))
    }

    pub(crate) fn spares_the_budget(&self, phase: Phase) -> Option<Suggestion> {
        let over = self.facts.steering.over_budget?;
        Some(self.best_known(phase, BestKnownBecause::ExploringBudget(over)))
    }

    /// The site's default; none if the study's space does not have it, or if it is the default of
    /// the accelerator.
    pub(crate) fn site_default(&self, phase: Phase) -> Option<Suggestion> {
        let given = self.facts.steering.site_default.as_ref()?;
        let point = self.view.space.validate(given).ok()?;
        let is_new = point != self.view.default && self.context(false).is_untested(&point);
        is_new.then(|| self.run(phase, Role::Design, &point, Reason::SiteDefault))
    }

    pub(crate) fn pauses(&self) -> Suggestion {
        self.best_known(Phase::Search, (*self.regret()).into())
    }

    pub(crate) fn awaits_results(&self) -> Suggestion {
        self.best_known(Phase::Search, BestKnownBecause::AwaitingResults)
    }

    fn best_known(&self, phase: Phase, because: BestKnownBecause) -> Suggestion {
        let best = || recommend::recommend(self.own(), self.settings());
        let (tally, inherited) = (&self.history.tally, self.epoch.inherited());
        recommend::best_known(&self.view, tally, inherited, best, phase, because)
    }
}

/// The suggestions of a search whose default does not complete.
impl Situation<'_> {
    pub(crate) fn has_design_without_default(&self) -> bool {
        self.searches_without_default() && self.untested_of_design().is_some()
    }

    pub(crate) fn design_without_default(&self) -> Option<Suggestion> {
        let (index, point) = self.untested_of_design()?;
        let reason = self.epoch.reason_of_design_point(index);
        Some(self.run(Phase::Design, Role::Design, point, reason))
    }

    /// Returns true if the search goes on. At a site a program may fail whatever it is given, until
    /// its user mends it: as many runs as the design has points are enough to know that, and the
    /// rest of the budget is kept for runs that complete. Outside Slurm there is nothing to keep it
    /// for.
    pub(crate) fn searches_without_default(&self) -> bool {
        let settings = self.settings();
        let design = u64::from(settings.design_points);
        let is_enough = settings.controls && self.facts.explored() >= design;
        self.has_something_to_search() && self.is_blind() && !is_enough
    }

    /// A random new point for every method, because there are no results to learn from.
    pub(crate) fn search_without_default(&self) -> Option<Suggestion> {
        match random::draw(&self.context(false), &mut self.rng()) {
            Proposal::Run { point, reason } => {
                Some(self.run(Phase::Search, Role::Search, &point, reason))
            }
            Proposal::Wait(_) | Proposal::Exhausted => None,
        }
    }

    /// Returns true if the default runs again although it never completed. If the study settled on
    /// something that never completed, nobody would ever know better.
    pub(crate) fn tries_the_default_again(&self) -> bool {
        let has_ended = || self.view.exploring() == 0 && self.nothing_to_win().is_none();
        self.is_blind() && (self.has_something_to_search() || has_ended())
    }

    fn untested_of_design(&self) -> Option<(usize, &Point)> {
        let mut design = self.epoch.design().iter().enumerate();
        design.find(|(_, point)| self.context(false).is_untested(point))
    }

    /// Returns true if the default is given up, and no run of any parametrization has completed.
    fn is_blind(&self) -> bool {
        self.facts.progress.baseline_given_up && self.view.nothing_completed()
    }

    pub(crate) fn lost_default(&self) -> Option<LostDefault> {
        lost_default::given_up(&self.view.default_known(), self.settings())
    }
}

/// The suggestions of the design and the search.
impl Situation<'_> {
    fn has_budget(&self) -> bool {
        self.facts.explored() < u64::from(self.facts.progress.budget)
    }

    fn has_something_to_search(&self) -> bool {
        self.has_budget() && self.nothing_to_win().is_none()
    }

    /// Returns true if the design and the search may continue, judged by the regret budget.
    fn is_open(&self) -> bool {
        self.has_something_to_search() && !self.is_blind() && !self.regret().is_spent()
    }

    /// Returns true if only points that should beat the default may be explored.
    pub(crate) fn is_held(&self) -> bool {
        self.is_open() && self.regret().is_reached()
    }

    /// The point that other studies promise, with the reason. None if a user named another study to
    /// begin from, because that study's ranks come first.
    pub(crate) fn promised(&self) -> Option<&(Point, Reason)> {
        let promised = || {
            let context = self.context(false);
            if !self.is_open() || self.is_held() || !self.epoch.inherited().is_empty() {
                return None;
            }
            let admits = |point: &Point| self.method().admits(&context, point);
            prior::promised(&self.view, self.facts.explored(), admits, &mut self.rng())
        };
        self.promised.get_or_init(promised).as_ref()
    }

    pub(crate) fn promise(&self) -> Option<Suggestion> {
        let (point, reason) = self.promised()?;
        Some(self.run(Phase::Design, Role::Design, point, reason.clone()))
    }

    pub(crate) fn may_run_a_design_point(&self) -> bool {
        let may_run = |point| !(self.is_held() && regret::may_regret_at(&self.view, point));
        self.is_open() && (self.next_of_design()).is_some_and(|(_, point)| may_run(point))
    }

    pub(crate) fn design_point(&self) -> Option<Suggestion> {
        let (index, point) = self.next_of_design()?;
        let reason = self.epoch.reason_of_design_point(*index);
        Some(self.run(Phase::Design, Role::Design, point, reason))
    }

    /// Returns true if other studies know enough to do without the rest of the design. What the
    /// epoch took from its parent, or from a study that a user named, comes before them.
    fn prior_replaces_design(&self, context: &MethodContext<'_>) -> bool {
        self.epoch.inherited().is_empty() && prior::replaces_design(context)
    }

    fn next_of_design(&self) -> Option<&(usize, Point)> {
        let next = || {
            let context = self.context(self.is_held());
            let next = context.next_design_point(self.method());
            let (index, point) = next.filter(|_| !self.prior_replaces_design(&context))?;
            Some((index, point.clone()))
        };
        self.design.get_or_init(next).as_ref()
    }

    pub(crate) fn searches(&self) -> bool {
        self.is_open() && self.next_of_design().is_none()
    }

    /// The method's proposal, or the best known parametrization while it waits for results. None if
    /// it has no proposal that the regret budget allows.
    pub(crate) fn proposal(&self) -> Option<Suggestion> {
        let held = self.is_held();
        match self.method().propose(&self.context(held), &mut self.rng()) {
            Proposal::Run { point, .. } if held && regret::may_regret_at(&self.view, &point) => {
                None
            }
            Proposal::Run { point, reason } => {
                let reason = prior::told(&self.view, reason);
                Some(self.run(Phase::Search, Role::Search, &point, reason))
            }
            Proposal::Wait(because) => Some(self.best_known(Phase::Search, because)),
            Proposal::Exhausted => None,
        }
    }

    pub(crate) fn nothing_to_win(&self) -> Option<Stopped> {
        let of = || stopping::nothing_to_win(self.own(), self.settings());
        *self.nothing_to_win.get_or_init(of)
    }

    /// The criterion that ended the search before its budget was spent.
    fn stopped(&self) -> Option<Stopped> {
        if !self.has_budget() {
            return None;
        }
        let regret = self.regret();
        let spent = || {
            regret.is_spent().then_some(Stopped::RegretBudget {
                regret: regret.regret,
                bound: regret.bound,
            })
        };
        self.nothing_to_win().or_else(spent)
    }

    /// The expected regret, runs in flight included.
    pub(crate) fn regret(&self) -> &ExpectedRegret {
        self.regret.get_or_init(|| {
            let settings = self.settings();
            let estimator = self.method().estimator();
            let runs = self.facts.runs();
            ExpectedRegret::of(
                &self.view,
                estimator,
                &settings.regret,
                settings.budget,
                runs,
            )
        })
    }

    pub(crate) fn pause(&self) -> Pause {
        let regret = self.regret();
        Pause {
            regret: regret.regret,
            bound: regret.bound,
            runs: regret.runs_to_go(&self.settings().regret, self.facts.runs()),
            worst: regret::worst_ratio(&self.view),
            forgiven: regret.forgiven,
        }
    }
}

/// The suggestions at the end of the search, and of the settled study.
impl Situation<'_> {
    /// A leader that rests on one run and has to be confirmed. The number of runs is bounded,
    /// because runs that never count must not ask for confirmation for ever.
    pub(crate) fn unconfirmed(&self) -> Option<(Point, Known)> {
        let bound = 2 * u64::from(self.facts.progress.budget);
        if self.facts.progress.explored >= bound {
            return None;
        }
        let first = first_of(&self.view, &self.method().ranking(self.own()), 1);
        first.filter(|(_, known)| known.mean().is_some() && known.count() < MIN_RUNS)
    }

    pub(crate) fn confirm(&self) -> Option<Suggestion> {
        let (point, known) = self.unconfirmed()?;
        Some(self.confirmed(&point, &known))
    }

    fn confirmed(&self, point: &Point, known: &Known) -> Suggestion {
        let reason = Reason::Confirm {
            mean: known.mean().unwrap_or_default(),
            default_mean: self.view.default_known().mean(),
        };
        self.run(Phase::Search, Role::Search, point, reason)
    }

    pub(crate) fn settled(&self) -> Suggestion {
        self.drawn(Phase::Settled)
    }

    /// The recommended parametrization or a control run, as drawn: once settled, or for a proof
    /// during the search.
    pub(crate) fn drawn(&self, phase: Phase) -> Suggestion {
        let settings = self.settings();
        let chance = settings.controls.then(|| self.control_chance(phase));
        let suggestion = match chance {
            Some(chance) if self.draw() < chance => self.control(phase),
            _ => self.tuned(phase),
        };
        Suggestion {
            control_chance: chance,
            ..suggestion
        }
    }

    fn control_chance(&self, phase: Phase) -> f64 {
        let (settings, outlook) = (self.settings(), self.epoch.outlook());
        let tally = &self.history.tally;
        if phase != Phase::Settled {
            return control_chance(settings, 0, Outlook::Open, false);
        }
        if self.view.default_never_completed() {
            return control_chance(settings, u64::MAX, Outlook::Resolved, false);
        }
        let is_control = |run: &&Pending| run.phase == Phase::Settled && run.role == Role::Control;
        let in_flight = self.pending.iter().filter(is_control);
        let controls = in_flight.fold(tally.settled_controls, |sum, run| {
            sum.saturating_add(run.count)
        });
        control_chance(settings, controls, outlook, tally.proof > 0)
    }

    fn tuned(&self, phase: Phase) -> Suggestion {
        let settings = self.settings();
        let best = recommend::recommend(self.own(), settings);
        let is_default = |one: &_| *one == self.view.space.default();
        let (parametrization, mean, n) = match best {
            Some(best) => (best.parametrization, Some(best.mean), best.n),
            None => {
                let (parametrization, mean, n) = recommend::instead(&self.view);
                let mean = mean.filter(|_| !is_default(&parametrization));
                (parametrization, mean, n)
            }
        };
        let default_mean = self.view.default_known().mean();
        let reason = match phase {
            Phase::Settled => Reason::Settled {
                mean,
                n,
                default_mean,
                is_default: is_default(&parametrization),
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
            control_chance: None,
        }
    }
}

impl<'a> Situation<'a> {
    /// The phase by the runs that have ended.
    pub(crate) fn phase_by_tally(&self) -> Phase {
        self.history.tally.phase()
    }

    /// Returns true if the method has a proposal, as far as the phase depends on it: even an
    /// exhausted search waits for runs in flight.
    pub(crate) fn may_propose(&self) -> bool {
        let is_exhausted = || {
            let context = self.context(false);
            self.method().is_exhausted(&context, &mut self.rng())
        };
        self.is_held() || self.view.exploring() > 0 || !is_exhausted()
    }

    /// The number of design points that have not run.
    pub(crate) fn design_left(&self) -> u64 {
        let context = self.context(false);
        let untested = |point: &&Point| context.is_untested(point);
        self.epoch.design().iter().filter(untested).count() as u64
    }

    fn settings(&self) -> &Settings {
        self.epoch.settings()
    }

    fn method(&self) -> &dyn Method {
        self.epoch.method()
    }

    /// The view of the epoch's own runs without a prior: the recommendation rests on these alone.
    fn own(&self) -> &Modelled<'a> {
        if !self.epoch.has_prior() {
            return &self.view;
        }
        self.own.get_or_init(|| {
            let view = View::new(self.epoch.space(), self.history, self.pending);
            self.epoch.without_prior(view)
        })
    }

    fn context(&self, held: bool) -> MethodContext<'_> {
        let settings = self.settings();
        MethodContext {
            view: &self.view,
            design: self.epoch.design(),
            known_elsewhere: self.epoch.known_elsewhere(),
            regret: &settings.regret,
            budget: settings.budget,
            explored: self.facts.explored(),
            held,
            regret_left: self.regret().regret_left(),
        }
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.epoch.seed());
        // Stream 0 belongs to the design.
        rng.set_stream(self.facts.runs().wrapping_add(1));
        rng
    }

    fn draw(&self) -> f64 {
        let drawn = self.epoch.draw();
        drawn.unwrap_or_else(|| self.rng().random())
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
}
