use io_autotune_model::run::Role;
use io_autotune_model::space::{Parametrization, Point};
use io_autotune_model::{BudgetOf, Outlook, OverBudget, Pause, Progress};
use io_autotune_search::history::History;
use io_autotune_search::math::Portable;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;

use super::*;
use crate::guards::mixture::mixture;
use crate::study::epoch::Epoch;
use crate::study::settings::Settings;
use crate::study::steering::{KnownLimit, ToldBy};
use crate::testing::{Outcome, finish, grid, normal, published, started};

/// A study of an application with a fast region somewhere, noise, failures and limits, and with
/// orders that people give. Several runs are in flight at once.
struct Life {
    space: Space,
    settings: Settings,
    world: ChaCha8Rng,
    history: History,
    pending: Vec<Pending>,
    /// How much faster or slower each level of the first two parameters makes a run.
    slopes: [f64; 2],
    /// True if every second run is of different work.
    works: bool,
    fails: f64,
    /// The most runs that are in flight after a start.
    at_once: usize,
    seed: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut world = ChaCha8Rng::seed_from_u64(seed);
        let settings = match world.random_range(0..4) {
            0 => published(),
            _ => Settings::default(),
        };
        Self {
            space: grid(&[6, 6, 3, 4]),
            settings: Settings {
                exploring: world.random_range(1..9),
                ..settings
            },
            slopes: [world.random_range(-0.4..0.4), world.random_range(-0.2..1.0)],
            works: world.random_bool(0.1),
            fails: [0.0, 0.05, 0.9][world.random_range(0..3)],
            at_once: [0, 0, 1, 5][world.random_range(0..4)],
            history: History::default(),
            pending: Vec::new(),
            seed,
            world,
        }
    }

    fn outcome(&mut self, given: &Parametrization) -> Outcome {
        if self.world.random_bool(self.fails) {
            return Outcome::Failed;
        }
        let point = self.space.validate(given).unwrap();
        let slow: f64 = (self.slopes.iter().zip(&point.0))
            .map(|(slope, level)| slope * f64::from(*level))
            .sum();
        let work = f64::from(u8::from(
            self.works && self.history.tally.total.is_multiple_of(2),
        ));
        let log = slow + work * 1.5 + 0.05 * normal(&mut self.world);
        Outcome::Elapsed(100.0 * log.exponential())
    }

    fn steering(&mut self) -> Steering {
        let seldom = |world: &mut ChaCha8Rng| world.random_bool(0.03);
        let site_default = self.seed.is_multiple_of(3).then(|| {
            let point = Point(vec![2, 1, 0, 0]);
            self.space.parametrization(&point)
        });
        let world = &mut self.world;
        Steering {
            restart_count: u32::from(seldom(world)),
            busy: seldom(world),
            observed: seldom(world),
            pin: seldom(world).then(|| self.space.default()),
            accepts_mixed: seldom(world),
            off: seldom(world),
            frozen: seldom(world),
            limit: world.random_bool(0.5).then(|| KnownLimit {
                seconds: world.random_range(60..400),
                told_by: ToldBy::Squeue,
            }),
            over_budget: seldom(world).then_some(OverBudget {
                of: BudgetOf::User,
                budget: 20.0,
                run: 1.0,
                spent: Some(19.5),
            }),
            site_default,
            ..Steering::default()
        }
    }
}

fn standing(search: Rule, explored: u64) -> Standing {
    Standing {
        search,
        explores: search.explores(),
        pause: None,
        others: Others::None,
        progress: Progress {
            settled: search == Rule::Concluded,
            total: 30,
            explored,
            budget: 50,
            exploring: 8,
            controls: true,
            default_counted: 10,
            between: false,
            baseline_runs: 4,
            baseline_given_up: false,
            longer_limit: None,
            mixed: false,
            headroom: Headroom::Seconds(300.0),
            design_left: 0,
            proof: 0,
            proof_most: 40,
        },
    }
}

fn said(standing: &Standing, steering: &Steering, gain: Option<&Gain>) -> Next {
    next(standing, &grid(&[6, 6]), &[], steering, gain)
}

#[test]
fn a_pause_says_what_it_cost_and_after_how_many_runs_it_explores_again() {
    let paused = Standing {
        pause: Some(Pause {
            regret: 21.4,
            bound: 3.9,
            runs: 9,
            worst: 22.3,
            forgiven: 17.0,
        }),
        ..standing(Rule::RegretBudget, 1)
    };
    let next = said(&paused, &Steering::default(), None);
    assert_eq!((next.rule, next.runs), (Rule::RegretBudget, Some(9)));
    assert_eq!(
        next.says,
        "the best known values, because exploring is expected to have cost 21.4 runs of the default, of the 3.9 \
         that it may by now (one trial took 22 times as long as the default, and the first such excess is forgiven): it \
         explores again after about 9 more runs, and then has 49 runs left"
    );
    let endless = Standing {
        pause: paused.pause.map(|pause| Pause {
            runs: u64::MAX,
            ..pause
        }),
        ..paused
    };
    let next = said(&endless, &Steering::default(), None);
    assert!(
        next.says.contains("does not explore again"),
        "{}",
        next.says
    );
    assert_eq!(next.runs, None);
}

#[test]
fn runs_between_two_trials_count_on_the_way_to_a_choice() {
    let mut searching = standing(Rule::Search, 20);
    let left = |searching: &Standing| {
        let next = said(searching, &Steering::default(), None);
        (next.rule, next.says)
    };
    let (rule, says) = left(&searching);
    assert_eq!(rule, Rule::Search);
    assert!(
        says.ends_with("it chooses after about 30 more runs"),
        "{says}"
    );
    searching.progress.between = true;
    let (rule, says) = left(&searching);
    assert_eq!(rule, Rule::Search, "30 is a multiple of three");
    assert!(
        says.ends_with("it chooses after about 90 more runs, of which 30 explore"),
        "{says}"
    );
    searching.progress.total = 31;
    assert_eq!(
        left(&searching),
        (
            Rule::BestBetween,
            "the best known values, as two runs of three: it explores again after 2 runs, and it \
             chooses after about 90 more runs, of which 30 explore"
                .to_owned()
        )
    );
    // Six trials in a row come first, up to run 10.
    searching.progress.total = 4;
    searching.progress.explored = 0;
    let (_, says) = left(&searching);
    let all = 6 + 3 * 44;
    assert!(
        says.ends_with(&format!(
            "it chooses after about {all} more runs, of which 50 explore"
        )),
        "{says}"
    );
}

#[test]
fn an_order_and_a_short_limit_decide_before_the_search() {
    let searching = standing(Rule::Search, 20);
    let rule = |steering: Steering| said(&searching, &steering, None).rule;
    let limit = |seconds| {
        let told_by = ToldBy::LatestRun;
        Some(KnownLimit { seconds, told_by })
    };
    let plain = Steering::default;
    assert_eq!(rule(plain()), Rule::Search);
    assert_eq!(
        rule(Steering {
            limit: limit(299),
            ..plain()
        }),
        Rule::NoHeadroom
    );
    assert_eq!(
        rule(Steering {
            limit: limit(300),
            ..plain()
        }),
        Rule::Search
    );
    assert_eq!(
        rule(Steering {
            frozen: true,
            limit: limit(299),
            ..plain()
        }),
        Rule::Frozen
    );
    assert_eq!(
        rule(Steering {
            frozen: true,
            off: true,
            ..plain()
        }),
        Rule::Off
    );
    let next = said(
        &searching,
        &Steering {
            limit: limit(299),
            ..plain()
        },
        None,
    );
    assert_eq!(next.unless, [Unknown::Limit]);
    assert!(next.says.contains("may take 300 s"), "{}", next.says);
}

#[test]
fn a_spent_budget_stops_what_would_explore_and_nothing_else() {
    let over = |budget| {
        let over_budget = Some(OverBudget {
            of: BudgetOf::User,
            budget,
            run: 2.0,
            spent: Some(19.5),
        });
        Steering {
            over_budget,
            ..Steering::default()
        }
    };
    let next = said(&standing(Rule::Search, 20), &over(20.0), None);
    assert_eq!(next.rule, Rule::ExploringBudget);
    assert!(next.says.starts_with(
        "the best known values, because the user has spent 19.5 of 20 node-hours for exploring today, and this run may \
         take 2: it explores again tomorrow"
    ), "{}", next.says);
    let small = said(&standing(Rule::Search, 20), &over(1.0), None);
    assert!(!small.says.contains("tomorrow"), "{}", small.says);
    for rule in [
        Rule::Concluded,
        Rule::Proof,
        Rule::RegretBudget,
        Rule::AwaitingResults,
    ] {
        let known = standing(rule, 20);
        let without = said(&known, &Steering::default(), None);
        assert_eq!(said(&known, &over(20.0), None), without, "{rule}");
    }
}

#[test]
fn different_work_stops_only_a_search() {
    let mut mixed = standing(Rule::Search, 20);
    mixed.progress.mixed = true;
    assert_eq!(
        said(&mixed, &Steering::default(), None).rule,
        Rule::MixedWork
    );
    let accepted = Steering {
        accepts_mixed: true,
        ..Steering::default()
    };
    assert_eq!(said(&mixed, &accepted, None).rule, Rule::Search);
    let mut settled = standing(Rule::Concluded, 50);
    settled.progress.mixed = true;
    assert_eq!(
        said(&settled, &Steering::default(), None).rule,
        Rule::Settled
    );
}

/// A reader fits nothing, so the search may decide otherwise because of runs in flight; these are
/// then named as unknown. If they are not named, the next start gets what the reader was told.
#[test]
fn what_is_said_of_the_next_run_is_what_it_gets() {
    let (mut starts, mut open) = (0, 0);
    let mut met = BTreeSet::new();
    for seed in 0..60 {
        let mut life = Life::new(seed);
        let mut standing = None;
        for _ in 0..90 {
            let steering = life.steering();
            let epoch = Epoch::new(&life.space, &life.settings, life.seed)
                .with_outlook(Outlook::Promising)
                .with_draw(life.world.random());
            let mixed = || mixture(&life.space, &life.history, &life.settings);
            let known = standing.get_or_insert_with(|| {
                let steering = Steering::default();
                let situation = epoch.situation(&life.history, &[], &steering);
                situation.with_mixture(mixed(), &life.history).standing()
            });
            let said = next(known, &life.space, &life.pending, &steering, None);
            let situation = epoch.situation(&life.history, &life.pending, &steering);
            let decided = situation.with_mixture(mixed(), &life.history).decide();
            let is_open = said.unless.contains(&Unknown::InFlight);
            assert!(
                is_open || said.rule == decided.rule,
                "life {seed}, {known:?}: {said:?}, and it got {decided:?}"
            );
            starts += 1;
            open += u32::from(is_open);
            met.insert(decided.rule);
            life.pending.push(started(&decided.suggestion));
            let most = life.world.random_range(0..=life.at_once);
            while life.pending.len() > most {
                let place = life.world.random_range(0..life.pending.len());
                let run = life.pending.swap_remove(place);
                let outcome = life.outcome(&run.parametrization);
                finish(&mut life.history, &run, outcome);
                standing = None;
            }
        }
    }
    assert!(open * 10 <= starts, "{open} of {starts} are open");
    let never: Vec<&Rule> = Rule::ALL
        .iter()
        .filter(|rule| !met.contains(rule))
        .collect();
    let of_other_tests = [Rule::LongerLimit, Rule::Promised, Rule::NothingToWin];
    assert!(
        never.iter().all(|rule| of_other_tests.contains(rule)),
        "{never:?}"
    );
}

/// A run that would explore gets the best known over the budget, in the same phase; every other run
/// gets what it would have got.
#[test]
fn a_spent_budget_changes_what_would_explore_and_nothing_else() {
    let mut spared = 0;
    for seed in 0..20 {
        let mut life = Life::new(seed);
        for _ in 0..60 {
            let steering = Steering {
                over_budget: None,
                ..life.steering()
            };
            let over = OverBudget {
                of: BudgetOf::Site,
                budget: 20.0,
                run: 1.0,
                spent: None,
            };
            let without_room = Steering {
                over_budget: Some(over),
                ..steering.clone()
            };
            let epoch = Epoch::new(&life.space, &life.settings, life.seed).with_draw(0.3);
            let mixture = mixture(&life.space, &life.history, &life.settings);
            let decided = |steering: &Steering| {
                let situation = epoch.situation(&life.history, &life.pending, steering);
                situation.with_mixture(mixture, &life.history).decide()
            };
            let (free, bound) = (decided(&steering), decided(&without_room));
            match free.suggestion.role.explores() {
                true => {
                    spared += 1;
                    assert_eq!(bound.suggestion.role, Role::BestKnown, "{free:?}");
                    assert_eq!(bound.suggestion.phase, free.suggestion.phase);
                }
                false => assert_eq!(bound, free),
            }
            life.pending.push(started(&free.suggestion));
            while life.pending.len() > life.at_once {
                let run = life.pending.remove(0);
                let outcome = life.outcome(&run.parametrization);
                finish(&mut life.history, &run, outcome);
            }
        }
    }
    assert!(spared > 200, "{spared}");
}
