//! The answer fits the space, whatever a history, its runs in flight and the settings hold.

use proptest::prelude::*;

use super::Epoch;
use crate::study::settings::{MethodName, Settings};
use crate::study::stopping::settings::{LittleIo, Stop};
use crate::testing::{
    any_constrained, categories, grid, huge, integers, recommend, storage, suggest,
};
use io_autotune_baselines::robert2019::{Restart, Robert2019Cooling};
use io_autotune_baselines::robert2020::{Crossover, Noise, Regression, Resampling, Selection};
use io_autotune_model::reason::Suggestion;
use io_autotune_model::space::{Parametrization, Point, Space, Value};
use io_autotune_search::history::{
    History, Moments, Pending, Phase, RecentRun, Role, Tally, Tested,
};

fn any_space() -> impl Strategy<Value = Space> {
    prop_oneof![
        Just(grid(&[1])),
        Just(grid(&[3])),
        Just(grid(&[2, 3])),
        Just(grid(&[6, 6, 3, 4])),
        Just(grid(&[1000; 20])),
        any::<u64>().prop_map(any_constrained),
        Just(storage()),
        Just(huge()),
        Just(Space::new(vec![integers("p00", -5, 50, 7), categories("p01", 3)]).unwrap()),
    ]
}

fn any_parametrization() -> impl Strategy<Value = Parametrization> {
    let value = prop_oneof![
        (0_i64..6).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Real),
        "c[0-3]".prop_map(Value::Text),
    ];
    prop::collection::btree_map("p0[0-3]", value, 0..5).prop_map(Parametrization)
}

fn any_moments() -> impl Strategy<Value = Moments> {
    let count = prop_oneof![0_u64..4, any::<u64>()];
    let number = prop_oneof![any::<f64>(), 1.0..100.0];
    (count, number.clone(), number).prop_map(|(count, mean, m2)| Moments { count, mean, m2 })
}

prop_compose! {
    fn any_tested()(
        parametrization in any_parametrization(),
        elapsed in any_moments(),
        log_elapsed in any_moments(),
        measures in prop::collection::btree_map("m[0-4]", any_moments(), 0..5),
        failed in prop_oneof![0_u64..4, any::<u64>()],
        out_of_memory in prop_oneof![Just(0_u64), any::<u64>()],
        first_ordinal: i64,
        level in prop::option::of(any::<u32>()),
    ) -> (Tested, Option<u32>) {
        let recent = vec![RecentRun::new(first_ordinal, elapsed.mean)];
        let censored = vec![RecentRun::new(first_ordinal, log_elapsed.mean)];
        (Tested { parametrization, elapsed, log_elapsed, recent, censored, measures, failed, out_of_memory, first_ordinal }, level)
    }
}

prop_compose! {
    fn any_tally()(numbers in prop::array::uniform7(prop_oneof![0_u64..60, any::<u64>()])) -> Tally {
        let [explored, baseline, controls, settled, settled_controls, proof, total] = numbers;
        // Without zeros nearly every epoch would have settled.
        let few = |number: u64| if number.is_multiple_of(2) { 0 } else { number };
        Tally {
            explored,
            baseline,
            controls,
            settled: few(settled),
            settled_controls: few(settled_controls),
            proof: few(proof),
            total,
        }
    }
}

prop_compose! {
    fn any_settings()(
        numbers in prop::array::uniform7(prop_oneof![0_u32..60, any::<u32>()]),
        rate: f64,
        share: f64,
        kinds in any::<[bool; 5]>(),
        method in prop::sample::select(MethodName::ALL),
    ) -> Settings {
        let [baseline_runs, design_points, budget, exploring, control_every, pool_size, points] = numbers;
        let mut settings = Settings {
            method,
            baseline_runs: baseline_runs % 8,
            design_points: design_points % 40,
            budget,
            exploring,
            control_every,
            ..Settings::default()
        };
        settings.robert2020.mutation_rate = rate;
        settings.robert2020.resampling_share = share;
        settings.method = method;
        let regression = Regression::Quadratic;
        settings.robert2020.noise = match (kinds[2], kinds[3]) {
            (true, true) => Noise::Both {
                resampling: Resampling::Averaging,
                regression,
                neighbour_share: rate,
            },
            (true, false) => Noise::Regression {
                regression,
                neighbour_share: share,
            },
            (false, true) => Noise::None,
            (false, false) => Noise::default(),
        };
        settings.robert2019_annealing.initial_temperature = rate;
        settings.robert2019_annealing.cooling = Robert2019Cooling::Logarithmic { factor: share };
        settings.robert2019_annealing.restart = Restart::Threshold { share };
        settings.cao2018_annealing.initial_share = share;
        settings.cao2018_genetic.population = pool_size;
        settings.cao2018_genetic.mutation_rate = rate;
        if kinds[4] {
            let runs = points % 20;
            settings.stop = Stop {
                little_io: LittleIo { share, call_ms: 1.0, mb_per_second: 10.0 },
                unread_runs: runs,
                least_gain: share,
            };
        }
        if kinds[0] {
            settings.robert2020.selection = Selection::Tournament { pool_size };
        } else {
            settings.robert2020.selection = Selection::Probabilistic;
        }
        if kinds[1] {
            settings.robert2020.crossover = Crossover::NPoint { points };
        }
        settings
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn anything_gets_a_fitting_answer(
        space in any_space(),
        entries in prop::collection::vec(any_tested(), 0..12),
        tally in any_tally(),
        flights in prop::collection::vec((any_parametrization(), any::<[u8; 2]>()), 0..12),
        settings in any_settings(),
        seed: u64,
        limit in prop_oneof![0.0..200.0, any::<f64>()],
    ) {
        let tested = entries
            .into_iter()
            .map(|(mut tested, level)| {
                // Half of the entries are points of the space.
                if let Some(level) = level {
                    let levels = space.parameters().iter().map(|p| level % p.levels() as u32);
                    tested.parametrization = space.parametrization(&Point(levels.collect()));
                }
                tested
            })
            .collect();
        let history = History { tested, tally };
        let pending: Vec<Pending> = flights
            .into_iter()
            .map(|(parametrization, [phase, role])| Pending {
                parametrization,
                phase: Phase::ALL[phase as usize % Phase::ALL.len()],
                role: Role::ALL[role as usize % Role::ALL.len()],
                count: 1,
            })
            .collect();
        let suggestion = suggest(&space, &history, &pending, &settings, seed);
        prop_assert!(space.validate(&suggestion.parametrization).is_ok());
        prop_assert!(!suggestion.reason.to_string().is_empty());
        prop_assert_eq!(&suggestion, &suggest(&space, &history, &pending, &settings, seed));
        let json = serde_json::to_string(&suggestion).unwrap();
        prop_assert!(serde_json::from_str::<Suggestion>(&json).is_ok(), "{}", json);
        prop_assert_eq!(Epoch::new(&space, &settings, seed).phase(&history, &pending), suggestion.phase);
        let within = Epoch::new(&space, &settings, seed).suggest_within(&history, &pending, Some(limit));
        // A longer limit measures a default again that shorter limits have cut short.
        let measures_again = within.role == Role::Baseline;
        let is_held_back = suggestion.role.explores() && !within.role.explores();
        prop_assert!(within == suggestion || is_held_back || measures_again);
        prop_assert!(within.phase == suggestion.phase || measures_again);
        if let Some(best) = recommend(&space, &history, &settings) {
            prop_assert!(best.n >= 2 && best.mean.is_finite() && best.standard_error.is_finite());
        }
    }
}
