use super::cholesky::Symmetric;
use super::ensemble::Ensemble;
use super::observed::Observed;
use super::*;
use crate::math::Portable;
use crate::testing::{categories, grid, integers};
use io_autotune_model::space::ABSENT;

fn seen(levels: &[u32], seconds: f64, runs: f64) -> Observation {
    Observation {
        point: Point(levels.to_vec()),
        log_mean: seconds.logarithm(),
        runs,
    }
}

fn at(surrogate: &Surrogate, levels: &[u32]) -> Prediction {
    surrogate.predict(&Point(levels.to_vec()))
}

#[test]
fn the_factor_solves_what_it_factors() {
    let entries = [[4.0, 0.0, 0.0], [2.0, 5.0, 0.0], [0.4, -1.0, 3.0]];
    let entry = |row: usize, column: usize| entries[row.max(column)][row.min(column)];
    let factor = Cholesky::new(Symmetric::from_fn(3, entry)).unwrap();
    let wanted = [1.0, -2.0, 0.5];
    let right: Vec<f64> = (0..3)
        .map(|row| {
            (0..3)
                .map(|column| entry(row, column) * wanted[column])
                .sum()
        })
        .collect();
    let solution = factor.solve_transposed(&factor.solve(&right));
    for (solution, wanted) in solution.iter().zip(wanted) {
        assert!((solution - wanted).abs() < 1e-12, "{solution} {wanted}");
    }
    // 4 (5*3 - 1) - 2 (2*3 + 0.4) + 0.4 (-2 - 2)
    let determinant: f64 = 41.6;
    assert!((2.0 * factor.half_log_determinant() - determinant.logarithm()).abs() < 1e-12);
}

/// More rows than are factored side by side, and not a multiple of them.
#[test]
fn a_larger_factor_is_one_too() {
    let size = 29;
    let entry = |row: usize, column: usize| {
        let apart = row.abs_diff(column) as f64;
        (-0.1 * apart).exponential() + if row == column { 0.1 } else { 0.0 }
    };
    let factor = Cholesky::new(Symmetric::from_fn(size, entry)).unwrap();
    let wanted: Vec<f64> = (0..size).map(|n| (n as f64).sin()).collect();
    let right: Vec<f64> = (0..size)
        .map(|row| {
            (0..size)
                .map(|column| entry(row, column) * wanted[column])
                .sum()
        })
        .collect();
    let solution = factor.solve_transposed(&factor.solve(&right));
    for (solution, wanted) in solution.iter().zip(wanted) {
        assert!((solution - wanted).abs() < 1e-10, "{solution} {wanted}");
    }
    let lanes = factor.solve_lanes(right.iter().map(|value| [0.0, *value]).collect());
    for (lanes, alone) in lanes.iter().zip(factor.solve(&right)) {
        assert!(lanes[0] == 0.0 && (lanes[1] - alone).abs() < 1e-12);
    }
}

#[test]
fn a_point_is_correlated_with_several_as_with_each() {
    let mut parameters = grid(&[5, 3]).parameters().to_vec();
    parameters.push(categories("kind", 3));
    let space = Space::new(parameters).unwrap();
    let hyperparameters = Hyperparameters::of(&[0.2, 1.6, 0.8], 0.3, 0.01, 0.03);
    let kernel = Kernel::new(&space, hyperparameters);
    let mut points = space.points(45).unwrap();
    for place in 0..3 {
        let mut absent = points[20].clone();
        absent.0[place] = ABSENT;
        points.push(absent);
    }
    let by_level = ByLevel::new(&points);
    for some in points.chunks(5) {
        let with_all = kernel.with_several::<8>(&by_level, some);
        for (other, lanes) in points.iter().zip(with_all) {
            let each: Vec<f64> = some
                .iter()
                .map(|point| kernel.correlation(point, other))
                .collect();
            assert_eq!(lanes[..some.len()], each);
        }
    }
}

#[test]
fn points_are_predicted_together_as_they_are_alone() {
    let space = grid(&[9, 5]);
    let known: Vec<Observation> = (0..9)
        .map(|level| seen(&[level, level % 5], 10.0 + f64::from(level), 1.0))
        .collect();
    let surrogate = Surrogate::fit(&space, &known, Scatter::default()).unwrap();
    let points = space.points(45).unwrap();
    let together = surrogate.predict_all(&points);
    let alone: Vec<Prediction> = points
        .iter()
        .map(|point| surrogate.predict(point))
        .collect();
    assert_eq!(together, alone);
}

#[test]
fn what_is_not_positive_definite_has_no_factor() {
    let entry = |row: usize, column: usize| if row == column { 1.0 } else { 2.0 };
    assert!(Cholesky::new(Symmetric::from_fn(2, entry)).is_none());
    assert!(Cholesky::new(Symmetric::from_fn(2, |_, _| f64::NAN)).is_none());
}

#[test]
fn a_point_that_ran_often_is_known_and_one_that_never_ran_is_guessed_between_its_neighbours() {
    let space = grid(&[9]);
    let known = [
        seen(&[0], 10.0, 50.0),
        seen(&[4], 20.0, 50.0),
        seen(&[8], 80.0, 50.0),
    ];
    let scatter = Scatter {
        squares: 147.0 * 0.01,
        degrees: 147.0,
    };
    let surrogate = Surrogate::fit(&space, &known, scatter).unwrap();
    for known in &known {
        let here = surrogate.predict(&known.point);
        assert!((here.mean - known.log_mean).abs() < 0.03, "{here:?}");
    }
    let (between, here) = (at(&surrogate, &[6]), at(&surrogate, &[4]));
    assert!(between.mean > 20_f64.logarithm() && between.mean < 80_f64.logarithm());
    assert!(between.variance > 10.0 * here.variance);
}

#[test]
fn more_runs_of_a_point_make_it_and_its_neighbours_surer() {
    let space = grid(&[9, 3]);
    let fit = |runs: f64| {
        let known = [
            seen(&[0, 0], 10.0, runs),
            seen(&[4, 1], 12.0, 2.0),
            seen(&[8, 2], 40.0, 2.0),
            seen(&[2, 2], 11.0, 2.0),
        ];
        let scatter = Scatter {
            squares: 0.4,
            degrees: 10.0,
        };
        Surrogate::fit(&space, &known, scatter).unwrap()
    };
    let (few, many) = (fit(1.0), fit(100.0));
    assert!(at(&many, &[0, 0]).variance < at(&few, &[0, 0]).variance);
    assert!(at(&many, &[1, 0]).variance < at(&few, &[1, 0]).variance);
}

#[test]
fn runs_in_flight_are_believed_and_change_no_expectation_much() {
    let space = grid(&[9]);
    let known = [seen(&[0], 10.0, 3.0), seen(&[8], 30.0, 3.0)];
    let scatter = Scatter {
        squares: 0.04,
        degrees: 4.0,
    };
    let fitted = Surrogate::fit(&space, &known, scatter).unwrap();
    let flights = [(Point(vec![4]), 1.0)];
    let fantasising = fitted.fantasising(&known, scatter, &flights).unwrap();
    assert!(at(&fantasising, &[4]).variance < 0.5 * at(&fitted, &[4]).variance);
    assert!((at(&fantasising, &[5]).mean - at(&fitted, &[5]).mean).abs() < 0.05);
}

#[test]
fn the_noise_is_what_runs_of_the_same_parametrization_scatter_by() {
    let space = grid(&[20]);
    let known: Vec<Observation> = (0..20)
        .map(|level| seen(&[level], 10.0 * (0.2 * f64::from(level)).exponential(), 5.0))
        .collect();
    for deviation in [0.05_f64, 0.2] {
        let scatter = Scatter {
            squares: 80.0 * deviation * deviation,
            degrees: 80.0,
        };
        let noise = Surrogate::fit(&space, &known, scatter)
            .unwrap()
            .noise()
            .sqrt();
        assert!(
            noise > 0.6 * deviation && noise < 1.6 * deviation,
            "{noise} for {deviation}"
        );
    }
}

#[test]
fn a_parameter_without_effect_is_seen_through() {
    let mut parameters = vec![categories("idle", 4)];
    parameters.extend(grid(&[5]).parameters().to_vec());
    let space = Space::new(parameters).unwrap();
    let known: Vec<Observation> = (0..16)
        .map(|n| seen(&[n % 4, n / 4], 10.0 * f64::from(1 + n / 4), 1.0))
        .collect();
    let surrogate = Surrogate::fit(&space, &known, Scatter::default()).unwrap();
    let known_elsewhere = at(&surrogate, &[0, 2]);
    assert!((known_elsewhere.mean - 30_f64.logarithm()).abs() < 0.05);
    let spread: Vec<f64> = (0..4).map(|c| at(&surrogate, &[c, 4]).mean).collect();
    assert!(
        spread.iter().all(|mean| (mean - spread[0]).abs() < 0.05),
        "{spread:?}"
    );
}

#[test]
fn nothing_and_nonsense_have_no_process_and_the_same_times_have_one() {
    let space = grid(&[9]);
    let scatter = Scatter::default();
    assert!(Surrogate::fit(&space, &[], scatter).is_none());
    assert!(Surrogate::fit(&space, &[seen(&[1], f64::NAN, 1.0)], scatter).is_none());
    assert!(Surrogate::fit(&space, &[seen(&[1], 1.0, 0.0)], scatter).is_none());
    let one = Surrogate::fit(&space, &[seen(&[1], 3.0, 1.0)], scatter).unwrap();
    assert!((at(&one, &[7]).mean - 3_f64.logarithm()).abs() < 1e-9);
    let same = [seen(&[1], 3.0, 2.0), seen(&[5], 3.0, 2.0)];
    let same = Surrogate::fit(&space, &same, scatter).unwrap();
    assert!((at(&same, &[3]).mean - 3_f64.logarithm()).abs() < 1e-9);
    assert!(at(&same, &[3]).variance.is_finite());
}

/// Of the same data, the kernel and its hyperparameters given: `make -C analysis reference`,
/// `analysis/laboratory/reference`.
#[test]
fn the_process_is_scikit_learns() {
    #[derive(serde::Deserialize)]
    struct Reference {
        lengths: Vec<f64>,
        additive: f64,
        own: f64,
        noise: f64,
        levels: [u32; 2],
        categories: u32,
        known: Vec<Known>,
        predicted: Vec<Predicted>,
    }
    #[derive(serde::Deserialize)]
    struct Known {
        point: Vec<u32>,
        log_mean: f64,
        runs: f64,
    }
    #[derive(serde::Deserialize)]
    struct Predicted {
        point: Vec<u32>,
        mean: f64,
        variance: f64,
    }
    let reference: Reference = serde_json::from_str(include_str!("scikit-learn.json")).unwrap();
    let ordered = reference.levels.iter().enumerate();
    let mut parameters: Vec<_> = ordered
        .map(|(index, levels)| integers(&format!("p{index}"), 1, i64::from(*levels), 1))
        .collect();
    parameters.push(categories("p2", reference.categories));
    let space = Space::new(parameters).unwrap();
    let hyperparameters = Hyperparameters::of(
        &reference.lengths,
        reference.additive,
        reference.own,
        reference.noise,
    );
    let known: Vec<Observation> = reference
        .known
        .into_iter()
        .map(|known| Observation {
            point: Point(known.point),
            log_mean: known.log_mean,
            runs: known.runs,
        })
        .collect();
    let shared = &mut Shared::of(&space, &known);
    let ours = Surrogate::with(
        shared,
        hyperparameters,
        Data::of(&known, Scatter::default()),
    )
    .unwrap();
    assert_eq!(reference.predicted.len() as u128, space.size());
    for theirs in reference.predicted {
        let prediction = at(&ours, &theirs.point);
        // Theirs is for a process of variance 1, which ours estimates.
        let variance = prediction.variance / ours.variance;
        let (mean, point) = (prediction.mean, theirs.point);
        assert!(
            (mean - theirs.mean).abs() < 1e-5,
            "{point:?}: {mean} {}",
            theirs.mean
        );
        assert!(
            (variance - theirs.variance).abs() < 1e-5,
            "{point:?}: {variance} {}",
            theirs.variance
        );
    }
}

#[test]
fn processes_that_disagree_are_less_sure_than_one_and_those_that_agree_are_not() {
    let space = grid(&[9, 9]);
    let few = [
        seen(&[0, 0], 10.0, 1.0),
        seen(&[4, 4], 14.0, 1.0),
        seen(&[8, 2], 40.0, 1.0),
    ];
    let scatter = Scatter::default();
    let one = Surrogate::fit(&space, &few, scatter).unwrap();
    let several = Ensemble::fit(&space, &few, scatter).unwrap();
    let unseen = Point(vec![1, 8]);
    let (one, all) = (one.predict(&unseen), several.predict(&unseen));
    assert!((one.mean - all.mean).abs() > 1e-3, "{one:?} {all:?}");
    assert_eq!(several.predict_all(&[few[0].point.clone(), unseen])[1], all);
    // What ran often is known whatever the hyperparameters are.
    let often: Vec<Observation> = few
        .iter()
        .map(|known| Observation {
            runs: 200.0,
            ..known.clone()
        })
        .collect();
    let scatter = Scatter {
        squares: 600.0 * 0.0004,
        degrees: 600.0,
    };
    let several = Ensemble::fit(&space, &often, scatter).unwrap();
    for known in &often {
        let here = several.predict(&known.point);
        assert!((here.mean - known.log_mean).abs() < 0.02, "{here:?}");
    }
    let noise = several.noise().sqrt();
    assert!((0.01..0.04).contains(&noise), "{noise}");
    assert!(Ensemble::fit(&space, &[], scatter).is_none());
}

#[test]
fn several_processes_believe_runs_in_flight() {
    let space = grid(&[9]);
    let known = [seen(&[0], 10.0, 3.0), seen(&[8], 30.0, 3.0)];
    let scatter = Scatter {
        squares: 0.04,
        degrees: 4.0,
    };
    let fitted = Ensemble::fit(&space, &known, scatter).unwrap();
    let middle = Point(vec![4]);
    let flights = [(middle.clone(), 1.0)];
    let observed = Observed::of(&known, scatter);
    let fantasising = fitted.fantasising(&observed, &flights).unwrap();
    let (before, after) = (fitted.predict(&middle), fantasising.predict(&middle));
    assert!(after.variance < 0.7 * before.variance, "{after:?}");
    assert!((after.mean - before.mean).abs() < 0.01);
}
