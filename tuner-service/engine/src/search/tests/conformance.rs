//! The conformance tests that every method must pass. A new method is covered by being named.

use io_autotune_search::math::Portable;
use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::study::settings::{MethodName, Settings};
use crate::testing::{Outcome, any_constrained, categories, finish, grid, huge, integers};
use crate::testing::{design, is_complete, normal, some_of, storage, with_context, with_design};
use io_autotune_baselines::{
    alabed2021::Clusters,
    cao2018::{Cao2018Cooling, Cao2018Selection},
    robert2019::{Restart, Robert2019Cooling},
    robert2020::{ChildRevisits, Crossover, Noise, Regression, Resampling, Selection},
};
use io_autotune_model::reason::Acquisition;
use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space};
use io_autotune_search::acquisition::Revisits;
use io_autotune_search::history::{History, Moments, Pending, Phase, Role, Tested};
use io_autotune_search::{Method, Proposal};

/// A test for each method.
macro_rules! each_conforms {
    ($($test:ident: $name:ident,)+) => {
        $(
            #[test]
            fn $test() {
                conforms_in_every_way(MethodName::$name);
            }
        )+

        #[test]
        fn no_method_is_left_out() {
            assert_eq!(MethodName::ALL, [$(MethodName::$name),+]);
        }
    };
}

each_conforms! {
    surrogate_genetic: SurrogateGenetic,
    robert2020: Robert2020,
    robert2019_surrogate: Robert2019Surrogate,
    robert2019_annealing: Robert2019Annealing,
    cao2018_annealing: Cao2018Annealing,
    cao2018_genetic: Cao2018Genetic,
    cao2018_bayesian: Cao2018Bayesian,
    cao2018_dqn: Cao2018Dqn,
    alabed2021_multitask: Alabed2021Multitask,
    random: Random,
}

/// Runs the tests of a method with its default settings, and with every setting that makes it take
/// another way.
fn conforms_in_every_way(method: MethodName) {
    let number = MethodName::ALL.iter().position(|one| *one == method);
    let number = number.unwrap();
    let settings = Settings {
        method,
        ..Settings::default()
    };
    conforms(&settings, number, some_of(spaces(), number));
    for (number, settings) in variants().iter().enumerate() {
        if settings.method == method {
            let spaces = some_of(few_spaces(100 + number as u64), number);
            conforms(settings, number, spaces);
        }
    }
}

/// Settings of every kind that makes a method take another way.
fn variants() -> Vec<Settings> {
    let mut variants: Vec<Settings> = Vec::new();
    let mut vary = |method, change: &dyn Fn(&mut Settings)| {
        let mut settings = Settings {
            method,
            ..Settings::default()
        };
        change(&mut settings);
        settings.validate().unwrap();
        variants.push(settings);
    };
    for noise in noises() {
        vary(MethodName::Robert2020, &|s| s.robert2020.noise = noise);
        vary(MethodName::Robert2020, &|s| {
            s.robert2020.noise = noise;
            s.robert2020.selection = Selection::Probabilistic;
            s.robert2020.crossover = Crossover::NPoint { points: 2 };
        });
    }
    for revisits in [ChildRevisits::Never, ChildRevisits::UnlikeParents] {
        vary(MethodName::Robert2020, &|s| {
            s.robert2020.revisits = revisits
        });
    }
    vary(MethodName::Robert2019Surrogate, &|s| {
        s.robert2019_surrogate.revisits = Revisits::Any;
    });
    for acquisition in [
        Acquisition::ProbabilityOfImprovement,
        Acquisition::PosteriorMinimum,
    ] {
        vary(MethodName::Robert2019Surrogate, &|s| {
            s.robert2019_surrogate.acquisition = acquisition;
        });
    }
    for cooling in [
        Robert2019Cooling::Multiplicative { factor: 10.0 },
        Robert2019Cooling::Logarithmic { factor: 10.0 },
    ] {
        for restart in [
            Restart::Random { probability: 0.1 },
            Restart::Threshold { share: 0.01 },
        ] {
            vary(MethodName::Robert2019Annealing, &|s| {
                s.robert2019_annealing.cooling = cooling;
                s.robert2019_annealing.restart = restart;
            });
        }
    }
    vary(MethodName::Cao2018Annealing, &|s| {
        s.cao2018_annealing.cooling = Cao2018Cooling::Geometric { factor: 0.9 };
    });
    for selection in [Cao2018Selection::Best, Cao2018Selection::Ranks] {
        vary(MethodName::Cao2018Genetic, &|s| {
            s.cao2018_genetic.selection = selection;
            s.cao2018_genetic.crossover_rate = 1.0;
        });
    }
    vary(MethodName::Cao2018Genetic, &|s| {
        s.cao2018_genetic.population = 3;
        s.cao2018_genetic.mutation_rate = 0.64;
    });
    for (exploration, discount) in [(0.0, 0.0), (1.0, 1.0)] {
        vary(MethodName::Cao2018Dqn, &|s| {
            s.cao2018_dqn.exploration = exploration;
            s.cao2018_dqn.discount = discount;
        });
    }
    for clusters in [
        Clusters::Covariance,
        Clusters::ByHand {
            parameters: BTreeMap::from([
                ("m0".to_owned(), vec!["p00".to_owned(), "nodes".to_owned()]),
                ("m1".to_owned(), vec!["no such parameter".to_owned()]),
            ]),
        },
    ] {
        vary(MethodName::Alabed2021Multitask, &|s| {
            s.alabed2021_multitask.clusters = clusters.clone();
        });
    }
    variants
}

fn noises() -> Vec<Noise> {
    let mut noises = vec![Noise::None];
    for resampling in [Resampling::Sedr, Resampling::Averaging] {
        noises.push(Noise::Resampling { resampling });
        for regression in [Regression::Weighted, Regression::Quadratic] {
            let neighbour_share = 0.5;
            noises.push(Noise::Regression {
                regression,
                neighbour_share,
            });
            noises.push(Noise::Both {
                resampling,
                regression,
                neighbour_share,
            });
        }
    }
    noises
}

/// Runs a method through histories of every kind in each of these spaces.
fn conforms(settings: &Settings, number: usize, spaces: impl IntoIterator<Item = Space>) {
    let method = settings.method();
    let lives: [(u64, Kind); 3] = [
        (0, |_, world| unlucky(world)),
        (9, |_, _| Outcome::Elapsed(10.0)),
        (4, |point, _| failing_with_a_tail(point)),
    ];
    for (place, space) in spaces.into_iter().enumerate() {
        // By day only one of them is tried, and methods take turns: the three take most of the
        // time.
        for (seed, outcome) in some_of(lives, number + place) {
            random_life(method, &space, seed, outcome);
        }
        nothing_known(method, &space);
        nonsense(method, &space);
    }
}

/// How a run of a point ends.
type Kind = fn(&Point, &mut ChaCha8Rng) -> Outcome;

/// An outcome of which some fail, some do not count, and some are cut short.
fn unlucky(world: &mut ChaCha8Rng) -> Outcome {
    match world.random_range(0..10) {
        0 => Outcome::Failed,
        1 => Outcome::Ignored,
        2 => Outcome::Censored(12.0 * (0.4 * normal(world)).exponential()),
        _ => Outcome::Elapsed(10.0 * (0.4 * normal(world)).exponential()),
    }
}

/// Half of the first parameter's levels fail. The others take up to a hundred times as long, by the
/// last parameter's level.
fn failing_with_a_tail(point: &Point) -> Outcome {
    match (point.0.first(), point.0.last()) {
        (Some(first), _) if first % 2 == 1 => Outcome::Failed,
        (_, Some(last)) => Outcome::Elapsed(10.0 * 100_f64.power(f64::from(*last % 8) / 7.0)),
        _ => Outcome::Elapsed(10.0),
    }
}

/// Spaces of every kind.
fn spaces() -> impl Iterator<Item = Space> {
    [
        grid(&[1]),
        grid(&[2]),
        grid(&[40]),
        grid(&[2, 2]),
        grid(&[6, 6, 3, 4]),
        grid(&[8; 20]),
        grid(&[1000; 20]),
        mixed(),
        storage(),
        huge(),
    ]
    .into_iter()
    .chain((0..8).map(any_constrained))
}

/// Spaces that ask different things of a method: to have nothing left to run, to have nothing near,
/// to have little that is admitted.
fn few_spaces(number: u64) -> [Space; 4] {
    [mixed(), storage(), huge(), any_constrained(number)]
}

fn mixed() -> Space {
    Space::new(vec![
        integers("buffer", 1, 64, 3),
        categories("mode", 4),
        integers("one", 5, 5, 1),
    ])
    .unwrap()
}

/// A life of random starts and ends, with at most eight runs in flight. Every proposal on the way is checked.
fn random_life(method: &dyn Method, space: &Space, seed: u64, outcome: Kind) {
    let mut world = ChaCha8Rng::seed_from_u64(seed ^ 0xfeed);
    let mut history = History::default();
    let mut pending: Vec<Pending> = Vec::new();
    let mut exhausted = false;
    let design = design(space, method, seed);
    let steps = if space.parameters().len() < 20 {
        120
    } else {
        60
    };
    for _ in 0..steps {
        if pending.len() < 8 && world.random_bool(0.6) {
            let Some(started) = start(method, space, &history, &pending, &design, seed) else {
                if pending.is_empty() && history.tested.iter().any(|t| t.elapsed.count > 0) {
                    exhausted = true;
                    break;
                }
                // A method that waits must get a result; here it is a run of the default.
                pending.push(Pending {
                    parametrization: space.default(),
                    phase: Phase::Search,
                    role: Role::BestKnown,
                    count: 1,
                });
                continue;
            };
            pending.push(started);
        } else if !pending.is_empty() {
            let run = pending.swap_remove(world.random_range(0..pending.len()));
            let point = space.validate(&run.parametrization).unwrap();
            let outcome = outcome(&point, &mut world);
            finish(&mut history, &run, outcome);
            if let Outcome::Elapsed(elapsed) = outcome {
                measure(&mut history, &run, elapsed, &mut world);
            }
        }
    }
    // A large space is never exhausted.
    assert!(
        !(exhausted && space.points(1000).is_none()),
        "gave up early"
    );
}

/// Measures that go with elapsed, that are independent of it, that never change, and that are
/// nonsense.
fn measure(history: &mut History, run: &Pending, elapsed: f64, world: &mut ChaCha8Rng) {
    let mut measures = BTreeMap::from([
        (
            "m0".to_owned(),
            elapsed * (0.1 * normal(world)).exponential(),
        ),
        ("m1".to_owned(), (0.3 * normal(world)).exponential()),
        ("m2".to_owned(), 4096.0),
        ("m3".to_owned(), f64::NAN),
    ]);
    if world.random_bool(0.3) {
        measures.remove("m1");
    }
    let of_run = |tested: &&mut Tested| tested.parametrization == run.parametrization;
    if let Some(tested) = history.tested.iter_mut().find(of_run) {
        tested.record_measures(&measures);
    }
}

/// Asks for one run, checks the answer, and returns the run; none if there is nothing to run.
fn start(
    method: &dyn Method,
    space: &Space,
    history: &History,
    pending: &[Pending],
    design: &[Point],
    seed: u64,
) -> Option<Pending> {
    with_design(space, history, pending, design, |context| {
        let run = |point: &Point, phase, role| Pending {
            parametrization: space.parametrization(point),
            phase,
            role,
            count: 1,
        };
        if let Some((_, point)) = context.next_design_point(method) {
            let parametrization = space.parametrization(point);
            assert_eq!(space.validate(&parametrization), Ok(point.clone()));
            return Some(run(point, Phase::Design, Role::Design));
        }
        let stream = history.tally.total + pending.len() as u64 + 1;
        let rng = || {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream);
            rng
        };
        let proposal = method.propose(context, &mut rng());
        // By day it is checked at some steps only: a dependence on the order would show at most of
        // them.
        if is_complete() || stream.is_multiple_of(4) {
            let mut turned = history.clone();
            turned.tested.reverse();
            let again = with_design(space, &turned, pending, design, |context| {
                method.propose(context, &mut rng())
            });
            assert_eq!(
                proposal, again,
                "the same in another order has another answer"
            );
        }

        let Proposal::Run { point, reason } = proposal else {
            return None;
        };
        let parametrization = space.parametrization(&point);
        assert_eq!(
            space.validate(&parametrization),
            Ok(point.clone()),
            "bounds, conditions and constraints"
        );
        if let Some(known) = context.view.get(&point) {
            assert!(
                !known.is_quarantined(),
                "a point that fails is proposed again"
            );
            match reason {
                Reason::Resample { number, .. } => {
                    assert_eq!(number, known.count() + known.in_flight + 1);
                    let second = known.count() + known.in_flight < 2;
                    assert!(
                        known.in_flight == 0 || second,
                        "resampled too often at once"
                    );
                }
                Reason::Average { number, of } => {
                    assert_eq!(number, known.count() + known.in_flight + 1);
                    assert!(number <= of, "averaged over more runs than wanted");
                }
                _ => assert_eq!(known.in_flight, 0, "two runs in flight explore one point"),
            }
        }
        Some(run(&point, Phase::Search, Role::Search))
    })
}

/// Without any result a method can only wait, or say that there is nothing to do.
fn nothing_known(method: &dyn Method, space: &Space) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let history = History::default();
    with_context(space, &history, &[], method, 1, |context| {
        let proposal = method.propose(context, &mut rng);
        assert!(!matches!(proposal, Proposal::Run { .. }), "{proposal:?}");
    });
}

/// Moments that no times have, and times at the ends of the range, do not upset a method.
fn nonsense(method: &dyn Method, space: &Space) {
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
    ];
    let mut world = ChaCha8Rng::seed_from_u64(2);
    for seed in 0..10 {
        let mut draw = || odd[world.random_range(0..odd.len())];
        let mut entry = |point: Point| {
            let mut tested = Tested::new(space.parametrization(&point), i64::MIN);
            tested.elapsed = Moments {
                count: u64::MAX,
                mean: draw(),
                m2: draw(),
            };
            tested.log_elapsed = tested.elapsed;
            tested.measures = BTreeMap::from([("m0".to_owned(), tested.elapsed)]);
            tested
        };
        let mut tested = vec![entry(space.default_point())];
        tested.extend(
            io_autotune_search::latin_hypercube::latin_hypercube(space, 15, seed)
                .into_iter()
                .map(&mut entry),
        );
        let history = History {
            tested,
            ..History::default()
        };
        with_context(space, &history, &[], method, seed, |context| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            if let Proposal::Run { point, .. } = method.propose(context, &mut rng) {
                let parametrization = space.parametrization(&point);
                assert_eq!(space.validate(&parametrization), Ok(point));
            }
        });
    }
}
