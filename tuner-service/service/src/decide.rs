//! The decision on a run: the engine's choice of its parametrization, and how that is delivered.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use io_autotune_catalogue::Accelerator;
use io_autotune_engine::{
    Choice, Decided, ENGINE_VERSION, Epoch, History, IneffectiveParameter, Outlook,
    Parametrization, Pending, PriorFrom, Reason, Recipe, Recommendation, RestrictedSpace, Role,
    Settings, SharedSource, Space, Standing, Steering, Suggestion, SurrogateCache, mixture,
};
use io_autotune_model::Objective;
use io_autotune_protocol::{Mode, Request};
use io_autotune_store::{Budgets, BusyStart, Decision, StartedTogether, StudyState};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::crowd::Crowd;
use crate::exploring;
use crate::joined_history::{Heard, Hearing, heard};
use crate::limits::{TimeLimit, known_limit};
use crate::surrogates::{self, SurrogateCaches};

/// A recent state of a study, for starts that cannot wait for it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) state: StudyState,
    /// The recommendation in that state, once computed.
    pub(crate) recommended: OnceLock<Option<Recommendation>>,
    /// Its starts, which are written together.
    pub(crate) starts: Crowd<BusyStart, StartedTogether>,
}

impl Snapshot {
    pub(crate) fn new(state: StudyState) -> Self {
        Self {
            state,
            recommended: OnceLock::new(),
            starts: Crowd::default(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion<'a> {
    pub(crate) request: &'a Request,
    pub(crate) restart_count: u32,
    /// The job's time limit in seconds, if Slurm passes it to the prolog.
    pub(crate) start_limit: Option<u64>,
    /// The job's time limit, if squeue listed it.
    pub(crate) listed_limit: Option<TimeLimit>,
    pub(crate) accelerator: &'a Accelerator,
    /// The choice of the accelerator, if the default one cannot matter.
    pub(crate) choice: Option<&'a Choice>,
    pub(crate) settings: &'a Settings,
    /// The number of the job's nodes.
    pub(crate) nodes: u32,
    /// The site's budgets for exploring, if it has any.
    pub(crate) budgets: Option<Budgets>,
    /// Fitted surrogates. They save time and change no decision.
    pub(crate) surrogates: Option<&'a SurrogateCaches>,
    /// Set if the study was busy: the run may not explore then, as exploring is serialised. Starts
    /// with the same state share the recommendation.
    pub(crate) busy: Option<&'a OnceLock<Option<Recommendation>>>,
    /// A number from 0 to 1 that decides whether a settled run is a control run.
    pub(crate) draw: f64,
}

/// The steering of a start's run: that of its study, its request and its job.
fn steering(occasion: &Occasion<'_>, state: &StudyState) -> Steering {
    let request = occasion.request;
    Steering {
        restart_count: occasion.restart_count,
        busy: occasion.busy.is_some(),
        observed: request.mode == Mode::Observe || request.note.is_some() || request.app.is_none(),
        limit: known_limit(
            occasion.start_limit,
            occasion.listed_limit,
            state.limit_seconds,
        ),
        choice: occasion.choice.cloned(),
        ..ordered(state)
    }
}

/// The steering that applies to every run of a study.
pub(crate) fn ordered(state: &StudyState) -> Steering {
    Steering {
        pin: state.pin.clone(),
        accepts_mixed: state.accepts_mixed,
        ineffective: ineffective(state),
        off: state.ordered.off,
        frozen: state.ordered.frozen,
        site_default: state.site_default(),
        ..Steering::default()
    }
}

/// All inputs of a decision. They are stored, so that it can be replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) space: &'a Space,
    pub(crate) history: &'a History,
    /// The histories of the studies that share their runs with it.
    pub(crate) others: &'a [&'a History],
    /// The sources of a prior: other studies of the accelerator.
    pub(crate) sources: &'a [Arc<SharedSource>],
    /// The accelerator's recipes that fit what runs of the default showed.
    pub(crate) recipes: &'a [Recipe],
    pub(crate) pending: &'a [Pending],
    pub(crate) settings: &'a Settings,
    pub(crate) seed: u64,
    /// `None` in decisions from before control runs were drawn.
    pub(crate) draw: Option<f64>,
    /// The outlook: whether a gain or a loss of the epoch's choice was claimed.
    pub(crate) outlook: Outlook,
    /// The parametrizations that the epoch took from its parent or from another study, the best
    /// first.
    pub(crate) inherited: &'a [Parametrization],
    /// True if these are from another study.
    pub(crate) is_warm_started: bool,
    pub(crate) steering: &'a Steering,
    /// The recommendation: a function of the other inputs, computed on demand.
    pub(crate) recommended: &'a OnceLock<Option<Recommendation>>,
    pub(crate) surrogates: &'a SurrogateCache,
}

/// The decision on a run: a pure function of the inputs.
pub(crate) fn choose(inputs: &Inputs<'_>) -> Decided {
    let Inputs {
        space,
        history,
        others,
        sources,
        recipes,
        pending,
        settings,
        seed,
        draw,
        outlook,
        inherited,
        is_warm_started,
        steering,
        recommended,
        surrogates,
    } = *inputs;
    let known = heard(history, others.iter().copied(), &space.default());
    let restrict = |history| RestrictedSpace::new(space, history, inherited, &steering.ineffective);
    // Without others the two are the same.
    let own = known.hearing.map(|_| restrict(Cow::Borrowed(history)));
    let restricted = restrict(known.history);
    let own = own.as_ref().unwrap_or(&restricted).history();
    let prior = surrogates.prior(restricted.space(), sources);
    let mut epoch = Epoch::restricted(&restricted, settings, seed)
        .with_cache(surrogates)
        .with_outlook(outlook)
        .with_prior(prior.as_ref())
        .with_recipes(recipes);
    if let Some(draw) = draw {
        epoch = epoch.with_draw(draw);
    }
    let mixture = mixture(space, own, settings);
    let Decided {
        rule,
        suggestion,
        expected_within,
    } = epoch
        .situation(restricted.history(), pending, steering)
        .with_mixture(mixture, own)
        .with_recommended(recommended)
        .decide();
    let chosen = match is_warm_started {
        true => suggestion.of_another_study(),
        false => suggestion,
    };
    let chosen = chosen.with_frozen(restricted.frozen_parameters());
    let chosen = match known.hearing {
        Some(Hearing::Together { users }) => chosen.by_users(users),
        _ => chosen,
    };
    let chosen = match &steering.choice {
        Some(choice) => chosen.of_accelerator(io_autotune_engine::chosen(choice, &settings.stop)),
        None => chosen,
    };
    let suggestion = match steering.undeliverable {
        true => Suggestion {
            parametrization: space.default(),
            ..chosen
        },
        false => chosen,
    };
    Decided {
        rule,
        suggestion,
        expected_within,
    }
}

pub(crate) fn ineffective(state: &StudyState) -> Vec<IneffectiveParameter> {
    state.effects.ineffective().map(|(one, _)| one).collect()
}

/// The standing of a study; `own` has its own runs among those of its history.
pub(crate) fn standing_of(epoch: &Epoch<'_>, history: &History, own: &History) -> Standing {
    let steering = Steering::default();
    let situation = epoch.situation(history, &[], &steering);
    let mixture = mixture(epoch.space(), own, epoch.settings());
    situation.with_mixture(mixture, own).standing()
}

/// A study's space, restricted by the history that it shares with others.
pub(crate) fn restricted(state: &StudyState) -> RestrictedSpace<'_> {
    of_history(state, heard_by(state).history)
}

/// The same, restricted by its own runs alone.
pub(crate) fn restricted_to_own(state: &StudyState) -> RestrictedSpace<'_> {
    of_history(state, Cow::Borrowed(&state.history))
}

/// The same, restricted by this history.
pub(crate) fn of_history<'a>(
    state: &'a StudyState,
    history: Cow<'a, History>,
) -> RestrictedSpace<'a> {
    RestrictedSpace::new(&state.space, history, &state.inherited, &ineffective(state))
}

pub(crate) fn heard_by(state: &StudyState) -> Heard<'_> {
    let others = state.siblings.iter().map(|one| &one.history);
    heard(&state.history, others, &state.space.default())
}

pub(crate) fn decide(occasion: &Occasion<'_>, state: &StudyState) -> Decision {
    let mut steering = steering(occasion, state);
    let own = OnceLock::new();
    let surrogates = occasion
        .surrogates
        .map_or_else(Arc::default, |surrogates| surrogates.of(state.epoch_id));
    let recommended = occasion.busy.unwrap_or(&own);
    let others: Vec<&History> = state.siblings.iter().map(|one| &one.history).collect();
    let (begun_from, sources) = sources_of(state, occasion.settings, occasion.surrogates);
    let recipes = recipes_of(occasion.accelerator, state);
    let chosen = |steering: &Steering| {
        choose(&Inputs {
            space: &state.space,
            history: &state.history,
            others: &others,
            sources: &sources,
            recipes: &recipes,
            pending: &state.pending,
            settings: occasion.settings,
            seed: state.seed,
            draw: Some(occasion.draw),
            outlook: state.outlook,
            inherited: &state.inherited,
            is_warm_started: state.is_warm_started(),
            steering,
            recommended,
            surrogates: &surrogates,
        })
    };
    let mut decided = chosen(&steering);
    let cost = exploring::cost(occasion.nodes, decided.expected_within);
    if decided.suggestion.role.explores()
        && let Some(budgets) = &occasion.budgets
    {
        steering.over_budget = exploring::over(budgets, &state.spent, cost);
        if steering.over_budget.is_some() {
            decided = chosen(&steering);
        }
    }
    let Decided {
        rule,
        mut suggestion,
        ..
    } = decided;
    let rendered = match suggestion.role {
        Role::Baseline if occasion.settings.stop.unread_runs > 0 => occasion
            .accelerator
            .render_signs(&suggestion.parametrization),
        _ => occasion.accelerator.render(&suggestion.parametrization),
    };
    let delivery = match rendered {
        Ok(delivery) if suggestion.role != Role::Observe => delivery,
        Ok(_) => occasion.accelerator.render_nothing(),
        // Only without the lock can the epoch's space be one that the catalogue does not have any
        // more.
        Err(_) => {
            steering.undeliverable = true;
            suggestion = chosen(&steering).suggestion;
            occasion.accelerator.render_nothing()
        }
    };
    Decision {
        phase: suggestion.phase,
        role: suggestion.role,
        reason: in_words(&suggestion.reason, &state.objective),
        suggestion: with_others(
            state,
            &begun_from,
            &recipes,
            json!({
                "rule": rule,
                "reason": suggestion.reason,
                "engine_version": ENGINE_VERSION,
                "seed": state.seed.to_string(),
                "draw": occasion.draw,
                "outlook": state.outlook,
                "control_chance": suggestion.control_chance,
                "settings": occasion.settings.of_the_method(),
                "epoch": state.epoch,
                "judged": state.judged,
                "tally": state.history.tally,
                "pending": state.pending,
                "overrides": steering,
                "order": state.ordered.decides,
            }),
        ),
        delivery: json!(delivery),
        explores: suggestion.role.explores().then_some(cost),
        parametrization: suggestion.parametrization,
    }
}

/// An epoch of another study whose judgements a decision used, up to the given number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Other {
    pub(crate) epoch_id: i64,
    pub(crate) judged: i64,
}

/// A source of a decision's prior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BegunFrom {
    #[serde(flatten)]
    pub(crate) epoch: Other,
    /// The user whose study it is, as a number that tells the users of this decision's sources
    /// apart. Decisions of engine 14 and earlier have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<u32>,
}

fn with_others(
    state: &StudyState,
    sources: &[BegunFrom],
    recipes: &[Recipe],
    mut suggestion: serde_json::Value,
) -> serde_json::Value {
    if !state.siblings.is_empty() {
        suggestion["others"] = json!(others_of(state));
    }
    if !sources.is_empty() {
        suggestion["sources"] = json!(sources);
    }
    if !recipes.is_empty() {
        suggestion["recipes"] = json!(recipes);
    }
    suggestion
}

/// The accelerator's recipes that fit what the study's runs of the default showed; none once the
/// epoch has settled, because they are where a search begins.
fn recipes_of(accelerator: &Accelerator, state: &StudyState) -> Vec<Recipe> {
    if state.history.tally.has_settled() {
        return Vec::new();
    }
    let default = state.space.default();
    let mut tested = state.history.tested.iter();
    let default = tested.find(|one| one.parametrization == default);
    let unknown = BTreeMap::new();
    accelerator.recipes_for(default.map_or(&unknown, |one| &one.measures))
}

/// The sources of a prior that can be read, and the epochs that they are from; none unless the
/// settings ask for a prior.
pub(crate) fn sources_of(
    state: &StudyState,
    settings: &Settings,
    surrogates: Option<&SurrogateCaches>,
) -> (Vec<BegunFrom>, Vec<Arc<SharedSource>>) {
    let wanted = state.sources.iter();
    let wanted = wanted.filter(|_| settings.prior == PriorFrom::Site);
    let mut users: Vec<u32> = Vec::new();
    wanted
        .filter_map(|one| {
            let known = users.iter().position(|user| *user == one.owner_uid);
            let user = known.unwrap_or_else(|| {
                users.push(one.owner_uid);
                users.len() - 1
            });
            let other = BegunFrom {
                epoch: Other {
                    epoch_id: one.epoch_id,
                    judged: one.judged,
                },
                user: u32::try_from(user).ok(),
            };
            let source = match surrogates {
                Some(surrogates) => surrogates.source(one),
                None => surrogates::read(one),
            };
            Some((other, source?))
        })
        .unzip()
}

fn others_of(state: &StudyState) -> Vec<Other> {
    let others = state.siblings.iter().map(|one| Other {
        epoch_id: one.epoch_id,
        judged: one.judged,
    });
    others.collect()
}

/// A reason as text for a person. Its numbers are the objective's, which the reason does not name.
pub(crate) fn in_words(reason: &Reason, objective: &Objective) -> String {
    match objective {
        Objective::Elapsed => reason.to_string(),
        other if other.is_maximised() => format!(
            "{reason} [by {0}: what is called seconds is 1 / {0}]",
            other.words()
        ),
        other => format!("{reason} [by {}, not elapsed]", other.words()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_engine::{
        MethodName, ObservedValue, ParameterEffects, Phase, RecentRun, Value,
    };
    use io_autotune_protocol::Delivery;

    use super::*;

    fn accelerator() -> Accelerator {
        Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4, 8]
            default = 2
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            omit_default = true
            empty_shows_use = {}
            parameters = ["size"]
            "#,
        )
        .unwrap()
    }

    fn point(size: i64) -> Parametrization {
        Parametrization(BTreeMap::from([("size".to_owned(), Value::Integer(size))]))
    }

    fn state(pin: Option<Parametrization>) -> StudyState {
        let mut history = History::default();
        let mut default = io_autotune_engine::Tested::new(point(2), 1);
        for ordinal in 1..=4 {
            default.record(ordinal, 1.0).unwrap();
        }
        history.tested.push(default);
        history.tally.baseline = 4;
        history.tally.total = 4;
        StudyState {
            study_id: 1,
            epoch_id: 1,
            epoch: 1,
            seed: 7,
            space: accelerator().space.into(),
            objective: io_autotune_model::Objective::Elapsed,
            opened: io_autotune_store::EpochOpening {
                at: jiff::Timestamp::UNIX_EPOCH,
                why: "first run".to_owned(),
                takes: "nothing".to_owned(),
                drift: None,
            },
            inherited: Vec::new(),
            judged: 4,
            history: history.into(),
            effects: ParameterEffects::default().into(),
            pending: Vec::new(),
            limit_seconds: None,
            pin,
            ordered: io_autotune_store::Ordered::default(),
            accepts_mixed: false,
            outlook: Outlook::Open,
            share: None,
            siblings: Vec::new(),
            sources: Vec::new(),
            spent: Vec::new(),
        }
    }

    fn history(state: &mut StudyState) -> &mut History {
        Arc::make_mut(&mut state.history)
    }

    fn decided(request: &str, restart_count: u32, busy: bool, state: &StudyState) -> Decision {
        drawn(0.5, request, restart_count, busy, state)
    }

    fn drawn(
        draw: f64,
        request: &str,
        restart_count: u32,
        busy: bool,
        state: &StudyState,
    ) -> Decision {
        let request = request.parse().unwrap();
        let (accelerator, settings) = (accelerator(), Settings::default());
        let recommended = OnceLock::new();
        let occasion = Occasion {
            request: &request,
            restart_count,
            start_limit: None,
            listed_limit: None,
            accelerator: &accelerator,
            choice: None,
            settings: &settings,
            nodes: 2,
            budgets: None,
            surrogates: None,
            busy: busy.then_some(&recommended),
            draw,
        };
        decide(&occasion, state)
    }

    #[test]
    fn a_plain_run_explores_and_is_given_a_file() {
        let decision = decided("app=ocean", 0, false, &state(None));
        assert_eq!(decision.role, Role::Design);
        let delivery: Delivery = serde_json::from_value(decision.delivery).unwrap();
        assert_eq!(delivery.files.len(), 1);
    }

    #[test]
    fn a_run_of_the_baseline_is_given_an_empty_file_and_an_observed_one_nothing() {
        let mut first = state(None);
        first.history = Arc::default();
        let files = |request: &str, state: &StudyState| {
            let decision = decided(request, 0, false, state);
            let delivery: Delivery = serde_json::from_value(decision.delivery).unwrap();
            (decision.role, delivery.is_empty(), delivery.files.len())
        };
        assert_eq!(files("app=ocean", &first), (Role::Baseline, true, 1));
        assert_eq!(
            files("app=ocean,mode=observe", &first),
            (Role::Observe, true, 0)
        );
        first.pin = Some(point(2));
        assert_eq!(files("app=ocean", &first), (Role::Pinned, true, 0));
    }

    #[test]
    fn a_restarted_job_or_a_busy_study_never_explores() {
        assert_eq!(
            decided("app=ocean", 1, false, &state(None)).role,
            Role::BestKnown
        );
        assert_eq!(
            decided("app=ocean", 0, true, &state(None)).role,
            Role::BestKnown
        );
    }

    #[test]
    fn a_job_whose_time_limit_leaves_no_room_never_explores() {
        let request = "app=ocean".parse().unwrap();
        let (accelerator, settings) = (accelerator(), Settings::default());
        let decided = |start_limit, listed_limit, latest| {
            let mut state = state(None);
            state.limit_seconds = latest;
            let occasion = Occasion {
                request: &request,
                restart_count: 0,
                start_limit,
                listed_limit,
                accelerator: &accelerator,
                choice: None,
                settings: &settings,
                nodes: 2,
                budgets: None,
                surrogates: None,
                busy: None,
                draw: 0.5,
            };
            decide(&occasion, &state)
        };
        let listed = |seconds| Some(TimeLimit::Seconds(seconds));
        for none in [
            decided(Some(2), listed(60), Some(60)),
            decided(None, listed(2), Some(60)),
            decided(None, None, Some(2)),
        ] {
            assert_eq!((none.phase, none.role), (Phase::Design, Role::BestKnown));
            assert_eq!(none.parametrization, point(2));
            assert!(
                none.reason.contains("the time limit of 2 s leaves no room"),
                "{}",
                none.reason
            );
        }
        for room in [
            decided(Some(60), listed(2), Some(2)),
            decided(None, listed(60), Some(2)),
            decided(None, Some(TimeLimit::Unlimited), Some(2)),
            decided(None, None, Some(60)),
        ] {
            assert_eq!(room.role, Role::Design, "{}", room.reason);
        }
    }

    #[test]
    fn what_was_best_before_a_drift_is_run_first_and_is_the_best_known_meanwhile() {
        let mut state = state(None);
        state.inherited = vec![point(8), point(2)];
        let first = decided("app=ocean", 0, false, &state);
        assert_eq!(
            (first.role, &first.parametrization),
            (Role::Design, &point(8))
        );
        assert!(
            first.reason.contains("the epoch before"),
            "{}",
            first.reason
        );
        let restarted = decided("app=ocean", 1, false, &state);
        assert_eq!(
            (restarted.role, restarted.parametrization),
            (Role::BestKnown, point(8))
        );
    }

    #[test]
    fn an_observed_run_is_given_nothing_whatever_is_pinned_and_is_still_watched() {
        for request in [
            "app=ocean,mode=observe",
            "app=wrap,note=meaningless_name",
            "mode=tune",
        ] {
            let decision = decided(request, 0, false, &state(Some(point(8))));
            assert_eq!(decision.role, Role::Observe, "{request}");
            assert_eq!(decision.parametrization, point(2));
            let delivery: Delivery = serde_json::from_value(decision.delivery).unwrap();
            assert!(delivery.files.is_empty());
            assert_eq!(delivery.watch, ["HINTS"]);
        }
    }

    #[test]
    fn a_pinned_run_gets_the_pin_unless_the_space_has_left_it() {
        let decision = decided("app=ocean", 1, false, &state(Some(point(8))));
        assert_eq!(
            (decision.role, decision.parametrization),
            (Role::Pinned, point(8))
        );
        assert_ne!(
            decided("app=ocean", 0, false, &state(Some(point(3)))).role,
            Role::Pinned
        );
    }

    #[test]
    fn a_study_of_different_work_is_observed_until_that_is_accepted() {
        let mut mixed = state(None);
        let mut default = io_autotune_engine::Tested::new(point(2), 1);
        for (ordinal, elapsed) in [1.0, 10.0, 1.01, 10.2, 1.02, 10.1, 0.99, 9.9]
            .iter()
            .enumerate()
        {
            default.record(ordinal as i64 + 1, *elapsed).unwrap();
        }
        history(&mut mixed).tested = vec![default];
        let observed = decided("app=ocean", 0, false, &mixed);
        assert_eq!(
            (observed.role, observed.parametrization),
            (Role::Observe, point(2))
        );
        assert!(observed.reason.contains("app="), "{}", observed.reason);
        let busy = decided("app=ocean", 0, true, &mixed);
        assert_eq!(busy.role, Role::Observe);
        mixed.pin = Some(point(8));
        assert_eq!(decided("app=ocean", 0, false, &mixed).role, Role::Pinned);
        mixed.pin = None;
        mixed.accepts_mixed = true;
        assert_ne!(decided("app=ocean", 0, false, &mixed).role, Role::Observe);
    }

    /// Adds eight runs of the default, ten minutes apart, and eight tuned ones in between. Each
    /// takes 1 s, or 4 s if `is_slow` says so of its index.
    fn slow_at_times(mut state: StudyState, is_slow: impl Fn(i64) -> bool) -> StudyState {
        let mut default = io_autotune_engine::Tested::new(point(2), 1);
        let mut tuned = io_autotune_engine::Tested::new(point(8), 2);
        for run in 0..16 {
            let (tested, usual) = match run % 2 {
                0 => (&mut default, 1.0),
                _ => (&mut tuned, 0.8),
            };
            let elapsed = usual * if is_slow(run) { 4.0 } else { 1.0 };
            let run = RecentRun::new(run + 1, elapsed).started_at(300 * run);
            tested.record_run(run).unwrap();
        }
        history(&mut state).tested = vec![default, tuned];
        state
    }

    #[test]
    fn a_busy_hour_stops_no_tuning() {
        let busy = slow_at_times(state(None), |run| (4..12).contains(&run));
        let decision = decided("app=ocean", 0, false, &busy);
        assert_eq!(decision.role, Role::Design, "{}", decision.reason);
        let found = mixture(&busy.space, &busy.history, &Settings::default()).unwrap();
        assert!(!found.in_turn && found.modes.is_some(), "{found:?}");
        assert!(found.to_string().contains("tuning goes on"), "{found}");
    }

    #[test]
    fn a_settled_study_is_never_observed_and_its_two_works_are_a_finding() {
        let mut works = slow_at_times(state(None), |run| run.count_ones() % 2 == 0);
        history(&mut works).tally.explored = 50;
        history(&mut works).tally.total = 54;
        for (settled, busy, restarts) in [(0, false, 0), (1, false, 0), (1, true, 0), (1, false, 1)]
        {
            history(&mut works).tally.settled = settled;
            let decision = decided("app=ocean", restarts, busy, &works);
            assert_ne!(decision.role, Role::Observe, "{}", decision.reason);
            assert_eq!(decision.phase, Phase::Settled);
        }
        let found = mixture(&works.space, &works.history, &Settings::default()).unwrap();
        assert!(found.in_turn, "{found:?}");
        assert!(found.to_string().contains("two works under one name"));
        // The same runs before it has settled.
        history(&mut works).tally = state(None).history.tally;
        let decision = decided("app=ocean", 0, false, &works);
        assert_eq!(decision.role, Role::Observe, "{}", decision.reason);
    }

    #[test]
    fn what_the_catalogue_cannot_deliver_is_the_default_and_is_kept_as_such() {
        let mut elsewhere = state(Some(point(8)));
        elsewhere.space = Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "other"
            kind = "ordered"
            values = [1, 2]
            default = 1
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            omit_default = true
            parameters = ["other"]
            "#,
        )
        .unwrap()
        .space
        .into();
        elsewhere.history = Arc::default();
        let decision = decided("app=ocean", 0, true, &elsewhere);
        assert_eq!(decision.parametrization, elsewhere.space.default());
        assert_eq!(decision.suggestion["overrides"]["undeliverable"], true);
    }

    fn unheeding(mut state: StudyState) -> StudyState {
        for given in ["4", "8"] {
            Arc::make_mut(&mut state.effects).record(&[ObservedValue {
                parameter: "size".into(),
                name: "size".into(),
                given: Some(given.into()),
                in_force: "1".into(),
                as_given: false,
            }]);
        }
        state
    }

    #[test]
    fn what_the_application_does_not_heed_is_no_longer_varied_and_said() {
        let mut state = unheeding(state(None));
        state.inherited = vec![point(8)];
        let decision = decided("app=ocean", 0, false, &state);
        assert_eq!(decision.phase, Phase::Settled);
        assert_eq!(decision.parametrization, point(2));
        let busy = decided("app=ocean", 0, true, &state);
        assert_eq!(
            (busy.role, busy.parametrization),
            (Role::BestKnown, point(2))
        );
        assert!(
            busy.reason.ends_with("does not heed it: size"),
            "{}",
            busy.reason
        );
        // A pin wins: an admin may want to see whether the value has an effect by now.
        state.pin = Some(point(8));
        let pinned = decided("app=ocean", 0, false, &state);
        assert_eq!(pinned.parametrization, point(8));
        assert!(!pinned.reason.contains("heed"), "{}", pinned.reason);
    }

    #[test]
    fn a_run_of_a_warm_start_says_that_its_ranks_are_another_studys_and_replays_so() {
        let mut state = state(None);
        state.inherited = vec![point(8), point(2)];
        state.opened.takes = "ranks".to_owned();
        for (restart_count, words) in [
            (
                0,
                "number 1 of the 1 that are run first of those that another study ranked best",
            ),
            (1, "best known parametrization of another study, because"),
        ] {
            let decision = decided("app=ocean", restart_count, false, &state);
            assert_eq!(decision.parametrization, point(8));
            assert!(decision.reason.starts_with(words), "{}", decision.reason);
            assert_eq!(
                replayed(&decision, &state).reason.to_string(),
                decision.reason
            );
        }
        // The same ranks after a drift are the study's own.
        state.opened.drift = Some(json!({}));
        let drifted = decided("app=ocean", 0, false, &state);
        assert!(
            drifted.reason.contains("the epoch before"),
            "{}",
            drifted.reason
        );
    }

    #[test]
    fn what_decided_on_the_accelerator_is_kept_and_decides_again() {
        let choice = Choice {
            default: "romio".to_owned(),
            unread: 4,
            candidates: Vec::new(),
            nodes: 1,
            epoch_id: 7,
            runs: 4,
            elapsed: 1.0,
            measures: BTreeMap::new(),
        };
        let (request, state) = ("app=ocean".parse().unwrap(), state(None));
        let (accelerator, settings) = (accelerator(), Settings::default());
        let occasion = Occasion {
            request: &request,
            restart_count: 0,
            start_limit: None,
            listed_limit: None,
            accelerator: &accelerator,
            choice: Some(&choice),
            settings: &settings,
            nodes: 2,
            budgets: None,
            surrogates: None,
            busy: None,
            draw: 0.5,
        };
        let decision = decide(&occasion, &state);
        let why = "; romio cannot matter";
        assert!(decision.reason.ends_with(why), "{}", decision.reason);
        let again = replayed(&decision, &state);
        assert_eq!(again.reason.to_string(), decision.reason);
    }

    #[test]
    fn a_run_is_stored_with_the_settings_of_its_method_and_replays_by_them() {
        let (request, state) = ("app=ocean".parse().unwrap(), state(None));
        let accelerator = accelerator();
        for method in MethodName::ALL {
            let mut settings = Settings {
                method: *method,
                ..Settings::default()
            };
            settings.surrogate_genetic.design_points = 4;
            settings.robert2020.mutation_rate = 0.5;
            let occasion = Occasion {
                request: &request,
                restart_count: 0,
                start_limit: None,
                listed_limit: None,
                accelerator: &accelerator,
                choice: None,
                settings: &settings,
                nodes: 2,
                budgets: None,
                surrogates: None,
                busy: None,
                draw: 0.5,
            };
            let mut decision = decide(&occasion, &state);
            let stored = &decision.suggestion["settings"];
            let mut others = MethodName::ALL.iter().filter(|one| *one != method);
            assert!(others.all(|other| stored.get(other.as_str()).is_none()));
            let again = replayed(&decision, &state);
            assert_eq!(again.parametrization, decision.parametrization, "{method}");
            // Up to 0.3.0 the tables of all methods were stored.
            decision.suggestion["settings"] = json!(settings);
            let again = replayed(&decision, &state);
            assert_eq!(again.parametrization, decision.parametrization, "{method}");
        }
    }

    fn replayed(decision: &Decision, state: &StudyState) -> Suggestion {
        // Through text, as the database stores it.
        let text = decision.suggestion.to_string();
        let kept = crate::replay::Kept::read(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(kept.judged, state.judged);
        let epoch = io_autotune_store::EpochInputs {
            epoch_id: state.epoch_id,
            space: state.space.as_ref().clone(),
            seed: state.seed,
            inherited: state.inherited.clone(),
            is_warm_started: state.is_warm_started(),
            objective: state.objective.clone(),
        };
        assert_eq!(kept.others, others_of(state));
        let others: Vec<&History> = state.siblings.iter().map(|one| &one.history).collect();
        let sources: Vec<_> = state
            .sources
            .iter()
            .filter_map(|one| surrogates::read(one))
            .collect();
        let again = kept.choose(&epoch, &state.history, &others, &sources);
        assert_eq!(json!(again.rule), decision.suggestion["rule"]);
        again.suggestion
    }

    #[test]
    fn what_others_learnt_decides_is_kept_and_replays() {
        let mut state = state(None);
        let learnt = [(2, 0.0), (8, -0.7), (4, -0.2), (1, 0.3)].map(|(size, log_ratio)| {
            json!({ "parametrization": point(size), "log_ratio": log_ratio, "runs": 3.0 })
        });
        let learnt = json!({ "learnt": learnt, "squares": 0.01, "degrees": 8.0, "measures": {} });
        let learnt_by = |owner_uid: u32, epoch_id: i64, judged: i64| {
            Arc::new(io_autotune_store::Learnt {
                epoch_id,
                owner_uid,
                judged,
                learnt: learnt.clone(),
            })
        };
        state.sources = vec![learnt_by(1001, 7, 30), learnt_by(1001, 9, 12)];
        // A source that cannot be read is left out, and not stored.
        state.sources.push(Arc::new(io_autotune_store::Learnt {
            epoch_id: 11,
            owner_uid: 1001,
            judged: 1,
            learnt: json!({ "later": true }),
        }));
        let decision = decided("app=ocean", 0, false, &state);
        // 8 promises most, and is more than a step away.
        assert_eq!(
            (decision.role, &decision.parametrization),
            (Role::Design, &point(4))
        );
        assert!(
            decision.reason.starts_with("2 other studies"),
            "{}",
            decision.reason
        );
        let kept = |users: &[(i64, i64, u32)]| {
            let each = users.iter().map(|(epoch_id, judged, user)| {
                json!({ "epoch_id": epoch_id, "judged": judged, "user": user })
            });
            each.collect::<serde_json::Value>()
        };
        assert_eq!(
            decision.suggestion["sources"],
            kept(&[(7, 30, 0), (9, 12, 0)])
        );
        let again = replayed(&decision, &state);
        assert_eq!(again.parametrization, decision.parametrization);
        assert_eq!(again.reason.to_string(), decision.reason);

        // What three more users have found runs in one step. No user's id is stored with the run.
        let users = [(1002, 13), (1003, 17), (1004, 19)];
        let of_users = users.map(|(owner_uid, epoch_id)| learnt_by(owner_uid, epoch_id, 20));
        state.sources.extend(of_users);
        let decision = decided("app=ocean", 0, false, &state);
        assert_eq!(decision.parametrization, point(8), "{}", decision.reason);
        assert!(
            decision.reason.starts_with("the studies of 3 other users"),
            "{}",
            decision.reason
        );
        assert_eq!(
            decision.suggestion["sources"],
            kept(&[
                (7, 30, 0),
                (9, 12, 0),
                (13, 20, 1),
                (17, 20, 2),
                (19, 20, 3)
            ])
        );
        let again = replayed(&decision, &state);
        assert_eq!(again.parametrization, decision.parametrization);
        assert_eq!(again.reason.to_string(), decision.reason);
        state.sources.clear();
        let alone = decided("app=ocean", 0, false, &state);
        assert!(alone.suggestion.get("sources").is_none());
        assert!(alone.reason.starts_with("design point"), "{}", alone.reason);
    }

    /// A study that shares with others, each of which has run the default and the two other points
    /// the given numbers of times.
    fn hearing(others: &[(u64, u64)]) -> StudyState {
        let mut state = state(None);
        state.share = Some("group ocean".to_owned());
        for (study_id, (fast, slow)) in (10..).zip(others) {
            let mut history = state.history.as_ref().clone();
            for (size, runs, elapsed) in [(8, fast, 0.5), (4, slow, 1.5)] {
                let mut tested = io_autotune_engine::Tested::new(point(size), study_id);
                for _ in 0..*runs {
                    tested.record(study_id, elapsed).unwrap();
                }
                history.tested.push(tested);
                history.tally.explored += runs;
                history.tally.total += runs;
            }
            state.siblings.push(io_autotune_store::Sibling {
                study_id,
                uid: u32::try_from(study_id).unwrap(),
                user: None,
                epoch_id: study_id,
                judged: i64::try_from(4 + fast + slow).unwrap(),
                history,
            });
        }
        state
    }

    #[test]
    fn what_other_users_found_is_the_best_known_and_is_said_and_replayed() {
        let alone = decided("app=ocean", 1, false, &state(None));
        assert_eq!(alone.parametrization, point(2));
        let state = hearing(&[(2, 1), (2, 1), (2, 1), (2, 1)]);
        let decision = decided("app=ocean", 1, false, &state);
        assert_eq!(decision.parametrization, point(8));
        let words = "by the runs of 5 users who share them";
        assert!(decision.reason.ends_with(words), "{}", decision.reason);
        let again = replayed(&decision, &state);
        assert_eq!(again.parametrization, decision.parametrization);
        assert_eq!(again.reason.to_string(), decision.reason);
        let explored = decided("app=ocean", 0, false, &state);
        assert!(explored.reason.ends_with(words), "{}", explored.reason);
        assert_eq!(
            replayed(&explored, &state).reason.to_string(),
            explored.reason
        );
    }

    #[test]
    fn what_one_other_user_alone_found_is_never_given_as_the_best_known() {
        for others in [
            &[(9, 1), (0, 1), (0, 1), (0, 1)][..],
            &[(2, 1), (2, 1), (2, 1)],
        ] {
            let decision = decided("app=ocean", 1, false, &hearing(others));
            assert_eq!(decision.parametrization, point(2), "{others:?}");
        }
    }

    #[test]
    fn who_has_not_measured_the_default_yet_hears_nobody() {
        let mut state = hearing(&[(2, 1), (2, 1), (2, 1), (2, 1)]);
        state.history = Arc::default();
        let decision = decided("app=ocean", 0, false, &state);
        assert_eq!(decision.role, Role::Baseline);
        assert_eq!(decision.reason, "baseline run 1 of 4");
    }

    #[test]
    fn others_works_do_not_make_ones_own_different() {
        let mut state = hearing(&[(2, 1), (2, 1), (2, 1), (2, 1)]);
        let mixed = slow_at_times(hearing(&[]), |run| run.count_ones() % 2 == 0);
        for one in &mut state.siblings {
            one.history = mixed.history.as_ref().clone();
        }
        assert_ne!(decided("app=ocean", 0, false, &state).role, Role::Observe);
        state.history = mixed.history;
        assert_eq!(decided("app=ocean", 0, false, &state).role, Role::Observe);
    }

    #[test]
    fn a_settled_run_is_a_control_run_by_its_draw_and_seldom_once_a_gain_is_claimed() {
        let mut state = state(None);
        history(&mut state).tally.settled = 1;
        for (draw, outlook, role, chance) in [
            (0.25, Outlook::Open, Role::Control, 0.5),
            (0.25, Outlook::Resolved, Role::Settled, 0.05),
            (0.04, Outlook::Resolved, Role::Control, 0.05),
        ] {
            state.outlook = outlook;
            let decision = drawn(draw, "app=ocean", 0, false, &state);
            assert_eq!(decision.role, role, "{draw} {outlook:?}");
            let kept = decision.suggestion["control_chance"].as_f64().unwrap();
            assert!((kept - chance).abs() < 1e-12, "{kept} is not {chance}");
            assert_eq!(replayed(&decision, &state).role, role);
        }
        assert_eq!(
            drawn(0.0, "app=ocean", 1, false, &state).role,
            Role::BestKnown
        );
    }

    #[test]
    fn what_is_kept_with_a_decision_gives_the_same_decision() {
        for (request, restart_count, busy, pin, limit) in [
            ("app=ocean", 0, false, None, None),
            ("app=ocean", 0, false, None, Some(2)),
            ("app=ocean", 0, false, None, Some(60)),
            ("app=ocean", 2, false, None, None),
            ("app=ocean", 0, true, None, None),
            ("app=ocean", 0, false, Some(point(8)), None),
            ("app=ocean,mode=observe", 0, false, Some(point(8)), None),
        ] {
            let mut state = state(pin);
            state.limit_seconds = limit;
            if restart_count == 0 {
                state.inherited = vec![point(8), point(2)];
            }
            if limit.is_none() {
                state = unheeding(state);
            }
            let decision = decided(request, restart_count, busy, &state);
            let again = replayed(&decision, &state);
            assert_eq!(
                (
                    again.phase,
                    again.role,
                    again.parametrization,
                    again.reason.to_string()
                ),
                (
                    decision.phase,
                    decision.role,
                    decision.parametrization,
                    decision.reason
                )
            );
        }
    }
}
