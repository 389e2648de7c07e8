//! Studies that begin with a prior from other studies.

use std::sync::Arc;

use io_autotune_model::Recipe;
use io_autotune_model::space::{Parametrization, Point, Space};
use io_autotune_search::history::{History, Pending, Role};
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::prior::Prior;
use io_autotune_search::surrogate::source::{SharedSource, Source};

use crate::study::epoch::Epoch;
use crate::study::settings::{PriorFrom, Settings};
use crate::testing::{Outcome, finish, grid, started};
use io_autotune_model::reason::{Reason, Suggestion};

const SEED: u64 = 5;

/// The recipe of this name, for a point of [`space`].
fn recipe(name: &str, levels: [u32; 3]) -> Recipe {
    Recipe {
        name: name.to_owned(),
        parametrization: space().parametrization(&Point(levels.into())),
        why: "it is said to help".to_owned(),
        source: "a manual".to_owned(),
    }
}

/// The exploring runs of a study with these recipes.
fn advised(recipes: &[Recipe], settings: &Settings, lowest: f64, runs: u32) -> Vec<Suggestion> {
    let space = space();
    let epoch = Epoch::new(&space, settings, SEED).with_recipes(recipes);
    let (mut history, mut all) = (History::default(), Vec::new());
    for _ in 0..runs {
        let next = epoch.suggest(&history, &[]);
        let point = space.validate(&next.parametrization).unwrap();
        let elapsed = Outcome::Elapsed(time(&point, lowest));
        finish(&mut history, &started(&next), elapsed);
        all.push(next);
    }
    all.retain(|one| one.role.explores());
    all
}

fn of_recipes(all: &[Suggestion]) -> Vec<&str> {
    let names = all.iter().filter_map(|one| match &one.reason {
        Reason::Recipe { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

#[test]
fn recipes_stand_in_front_of_the_design_and_need_no_steps() {
    // Many levels from the default, at the bottom of the valley and near it.
    let recipes = [recipe("bottom", [6, 4, 0]), recipe("near", [5, 4, 0])];
    let all = advised(&recipes, &Settings::default(), 40.0, 14);
    assert_eq!(of_recipes(&all), ["bottom", "near"]);
    assert_eq!(all[0].parametrization, recipes[0].parametrization);
    assert_eq!(all[0].role, Role::Design);
    assert_eq!(
        all[0].reason.to_string(),
        "the recipe bottom of this accelerator: it is said to help (a manual)"
    );
    let after = all
        .iter()
        .skip_while(|one| of_recipes(std::slice::from_ref(one)).len() == 1);
    let reason = &after.clone().next().unwrap().reason;
    assert!(
        matches!(reason, Reason::DesignPoint { number: 1, .. }),
        "{reason:?}"
    );
}

/// Attack (parsers): A recipe that is wrong for the job.
/// Outcome: It costs one run; what is near it is not tried, and the study's own design follows.
#[test]
fn a_wrong_recipe_costs_one_run() {
    // The valley is a hill here: both take several times as long as the default.
    let recipes = [recipe("bottom", [6, 4, 0]), recipe("near", [5, 4, 0])];
    let all = advised(&recipes, &Settings::default(), 1000.0, 20);
    assert_eq!(of_recipes(&all), ["bottom"]);
    let slow = |one: &&Suggestion| {
        let point = space().validate(&one.parametrization).unwrap();
        time(&point, 1000.0) > 200.0
    };
    assert_eq!(all.iter().filter(slow).count(), 1);
    assert!(all.len() > 1, "the search goes on");
}

#[test]
fn recipes_are_for_a_first_epoch_of_the_main_method_and_for_what_its_space_has() {
    let elsewhere = Recipe {
        parametrization: Parametrization([("gone".to_owned(), 7.into())].into()),
        ..recipe("elsewhere", [0, 0, 0])
    };
    let recipes = [
        elsewhere,
        recipe("default", [0, 0, 0]),
        recipe("one", [1, 0, 0]),
        recipe("two", [0, 1, 0]),
        recipe("three", [0, 0, 1]),
    ];
    let all = advised(&recipes, &Settings::default(), 40.0, 12);
    assert_eq!(of_recipes(&all), ["one", "two"]);
    let published = crate::testing::published();
    assert_eq!(
        of_recipes(&advised(&recipes, &published, 40.0, 12)),
        [""; 0]
    );
    let (space, settings) = (space(), Settings::default());
    let inherited = [space.parametrization(&Point(vec![2, 1, 1]))];
    let epoch = Epoch::new(&space, &settings, SEED)
        .inheriting(&inherited)
        .with_recipes(&recipes);
    assert_eq!(epoch.known_elsewhere(), 1);
}

/// Elapsed of a point: 100 s at the default, `lowest` at the bottom, which is at levels 6 and 4.
/// The slope between is one valley, or a hill if `lowest` is more than 100 s.
fn time(point: &Point, lowest: f64) -> f64 {
    let off = |place: usize, best: f64| (f64::from(point.0[place]) - best) / best;
    let depth = 1.0 - 0.5 * (off(0, 6.0).powi(2) + off(1, 4.0).powi(2));
    100.0 * (depth * (lowest / 100.0).logarithm()).exponential()
}

fn space() -> Space {
    grid(&[9, 7, 3])
}

/// The suggestions of `runs` runs, each made after the run before it has ended, with the history.
fn live(
    settings: &Settings,
    prior: Option<&Arc<Prior>>,
    lowest: f64,
    runs: u32,
) -> (History, Vec<Suggestion>) {
    let space = space();
    let epoch = Epoch::new(&space, settings, SEED).with_prior(prior);
    let (mut history, mut all) = (History::default(), Vec::new());
    for _ in 0..runs {
        let next = epoch.suggest(&history, &[]);
        let point = space.validate(&next.parametrization).unwrap();
        finish(
            &mut history,
            &started(&next),
            Outcome::Elapsed(time(&point, lowest)),
        );
        all.push(next);
    }
    (history, all)
}

fn prior(lowest: f64) -> Arc<Prior> {
    let sources = [35, 40].map(|runs| {
        let (history, _) = live(&Settings::default(), None, lowest, runs);
        Arc::new(Source::of(&space(), &history).unwrap().into())
    });
    Arc::new(Prior::new(&space(), &sources).unwrap())
}

fn exploring(all: &[Suggestion]) -> Vec<&Suggestion> {
    all.iter().filter(|one| one.role.explores()).collect()
}

fn promised(all: &[Suggestion]) -> usize {
    let promised = |one: &&Suggestion| matches!(one.reason, Reason::Promised { .. });
    all.iter().filter(promised).count()
}

#[test]
fn the_first_run_is_what_others_promise_and_part_of_the_design_stays() {
    let prior = prior(40.0);
    let (_, all) = live(&Settings::default(), Some(&prior), 40.0, 12);
    let exploring = exploring(&all);
    assert!(matches!(
        exploring[0].reason,
        Reason::Promised { studies: 2, .. }
    ));
    assert_eq!(exploring[0].role, Role::Design);
    let takes = |one: &Suggestion| {
        let point = space().validate(&one.parametrization).unwrap();
        time(&point, 40.0)
    };
    assert!(takes(exploring[0]) < 90.0, "{:?}", exploring[0]);
    let of_design = |one: &&&Suggestion| matches!(one.reason, Reason::DesignPoint { .. });
    assert_eq!(exploring.iter().filter(of_design).count(), 1);
    let told = exploring.iter().find_map(|one| match &one.reason {
        Reason::Prior { lean, .. } => Some(*lean),
        _ => None,
    });
    assert!(told.is_some_and(|lean| lean > 0.5), "{told:?}");
}

/// Attack (sharing): One user's many studies, or a few users who collude, vouch for a
/// parametrization that is slow elsewhere.
/// Outcome: Nothing runs in one step on their word, also after the study's own runs have confirmed
/// the rest of what they say.
#[test]
fn once_confirmed_only_several_users_word_replaces_steps() {
    let (space, settings) = (space(), Settings::default());
    let next = |users: u32| {
        let sources = (1..=4).map(|nth| {
            let (history, _) = live(&settings, None, 40.0, 34 + nth);
            let source = Source::of(&space, &history).unwrap();
            Arc::new(SharedSource::of_user(source, nth.min(users)))
        });
        let prior = Arc::new(Prior::new(&space, &sources.collect::<Vec<_>>()).unwrap());
        // The first exploring runs were steps, which made it faster as the others say.
        let (history, _) = live(&settings, None, 40.0, 7);
        let epoch = Epoch::new(&space, &settings, SEED).with_prior(Some(&prior));
        let point = epoch.suggest(&history, &[]).parametrization;
        time(&space.validate(&point).unwrap(), 40.0)
    };
    assert!(next(4) < 45.0, "{}", next(4));
    for few in [1, 3] {
        assert!(next(few) > 60.0, "{}", next(few));
    }
}

#[test]
fn a_warm_start_comes_before_what_others_promise() {
    let (prior, space, settings) = (prior(40.0), space(), Settings::default());
    let inherited = [space.parametrization(&Point(vec![2, 1, 1]))];
    let epoch = Epoch::new(&space, &settings, SEED)
        .inheriting(&inherited)
        .with_prior(Some(&prior));
    let mut history = History::default();
    let first = loop {
        let next = epoch.suggest(&history, &[]);
        if next.role.explores() {
            break next;
        }
        finish(&mut history, &started(&next), Outcome::Elapsed(100.0));
    };
    assert_eq!(first.parametrization, inherited[0], "{:?}", first.reason);
}

/// Attack (sharing): What other studies promise is the slowest here, or disputed.
/// Outcome: At most two such runs are made, and then the study's own decide; no names are told.
#[test]
fn a_contradicted_prior_gets_one_run_and_the_design_follows() {
    let prior = prior(40.0);
    let mut settings = Settings::default();
    settings.surrogate_genetic.explores_outwards = false;
    // The point that was fastest for other studies is slowest here.
    let (_, all) = live(&settings, Some(&prior), 250.0, 14);
    let exploring = exploring(&all);
    assert!(matches!(exploring[0].reason, Reason::Promised { .. }));
    assert_eq!(promised(&all), 1);
    let of_design = |one: &&&Suggestion| matches!(one.reason, Reason::DesignPoint { .. });
    assert!(exploring.iter().any(|one| of_design(&one)));
    for later in &exploring[1..] {
        let point = space().validate(&later.parametrization).unwrap();
        assert!(time(&point, 250.0) < 200.0, "{later:?}");
    }
}

#[test]
fn until_the_first_has_a_verdict_nothing_else_is_on_others_word() {
    let prior = prior(40.0);
    let (history, _) = live(&Settings::default(), None, 40.0, 4);
    let (space, settings) = (space(), Settings::default());
    let with = Epoch::new(&space, &settings, SEED).with_prior(Some(&prior));
    let without = Epoch::new(&space, &settings, SEED);
    let mut pending: Vec<Pending> = vec![started(&with.suggest(&history, &[]))];
    for _ in 0..5 {
        let next = with.suggest(&history, &pending);
        assert_eq!(next, without.suggest(&history, &pending));
        pending.push(started(&next));
    }
}

#[test]
fn what_is_recommended_stands_on_ones_own_runs() {
    let prior = prior(40.0);
    let (history, _) = live(&Settings::default(), Some(&prior), 60.0, 20);
    let (space, settings) = (space(), Settings::default());
    let with = Epoch::new(&space, &settings, SEED).with_prior(Some(&prior));
    let without = Epoch::new(&space, &settings, SEED);
    assert_eq!(with.recommend(&history), without.recommend(&history));
    assert_eq!(with.leader(&history), without.leader(&history));
}

#[test]
fn turned_off_and_for_published_methods_a_prior_changes_nothing() {
    let prior = prior(40.0);
    let off = Settings {
        prior: PriorFrom::Off,
        ..Settings::default()
    };
    for settings in [off, crate::testing::published()] {
        let without = live(&settings, None, 40.0, 25);
        assert_eq!(live(&settings, Some(&prior), 40.0, 25), without);
    }
}
