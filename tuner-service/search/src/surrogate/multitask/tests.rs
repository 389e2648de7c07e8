use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::{categories, grid, normal};

fn seen(point: &Point, log_mean: f64) -> Observation {
    Observation {
        point: point.clone(),
        log_mean,
        runs: 1.0,
    }
}

fn task(observations: Vec<Observation>, cluster: Cluster) -> Task {
    Task {
        observations,
        scatter: Scatter::default(),
        cluster,
    }
}

/// A function of the first three parameters of a grid of 6 levels each, with an interaction.
fn truth(point: &Point) -> f64 {
    let x: Vec<f64> = point
        .0
        .iter()
        .map(|level| f64::from(*level) / 5.0)
        .collect();
    (2.5 * x[0]).sin() + (x[1] - 0.4).powi(2) + 0.8 * x[0] * x[2]
}

/// Points without repetition.
fn points(space: &Space, count: usize, rng: &mut ChaCha8Rng) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    while points.len() < count {
        let point = space.draw(rng);
        if !points.contains(&point) {
            points.push(point);
        }
    }
    points
}

/// The root mean square error of predictions, apart from an error that is the same for all points.
fn error(space: &Space, predictions: &[Prediction]) -> f64 {
    let points = space.points(1000).unwrap();
    let off: Vec<f64> = points
        .iter()
        .zip(predictions)
        .map(|(point, prediction)| prediction.mean - truth(point))
        .collect();
    let mean = off.iter().sum::<f64>() / off.len() as f64;
    let squares = off.iter().map(|off| (off - mean) * (off - mean));
    (squares.sum::<f64>() / off.len() as f64).sqrt()
}

#[test]
fn one_task_is_the_process_alone() {
    let space = Space::new(
        grid(&[6, 4])
            .parameters()
            .iter()
            .cloned()
            .chain([categories("mode", 3)])
            .collect(),
    )
    .unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let known: Vec<Observation> = points(&space, 14, &mut rng)
        .iter()
        .map(|point| Observation {
            point: point.clone(),
            log_mean: f64::from(point.0[0]) * 0.2 + 0.3 * normal(&mut rng),
            runs: f64::from(rng.random_range(1_u32..4)),
        })
        .collect();
    let scatter = Scatter {
        squares: 0.8,
        degrees: 9.0,
    };
    let alone = Surrogate::fit(&space, &known, scatter).unwrap();
    let task = Task {
        observations: known.clone(),
        scatter,
        cluster: Cluster::ALL,
    };
    let joint = MultiTask::fit(&space, &[task]).unwrap();
    let every = space.points(100).unwrap();
    let same = |alone: Vec<Prediction>, joint: Vec<Prediction>| {
        for (a, b) in alone.into_iter().zip(joint) {
            assert!((a.mean - b.mean).abs() < 1e-9, "{a:?} {b:?}");
            assert!((a.variance - b.variance).abs() < 1e-9, "{a:?} {b:?}");
        }
    };
    same(alone.predict_all(&every), joint.predict_all(&every));
    // One run in flight is at a point that ran, the other at a point that did not. The single
    // process estimates its variance anew with the believed results; this one keeps its variance.
    let free = every
        .iter()
        .find(|point| known.iter().all(|k| k.point != **point));
    let flights = [(known[0].point.clone(), 2.0), (free.unwrap().clone(), 1.0)];
    let alone = alone.fantasising(&known, scatter, &flights).unwrap();
    let joint = joint.fantasising(&flights).unwrap();
    let both = alone
        .predict_all(&every)
        .into_iter()
        .zip(joint.predict_all(&every));
    let ratio = both
        .clone()
        .next()
        .map(|(a, b)| a.variance / b.variance)
        .unwrap();
    for (a, b) in both {
        assert!((a.mean - b.mean).abs() < 1e-9, "{a:?} {b:?}");
        assert!(
            (a.variance - ratio * b.variance).abs() < 1e-9,
            "{a:?} {b:?}"
        );
    }
}

/// Bonilla, Chai and Williams 2008, equation 2, with unknown trends: the system `[K H; H' 0]` solved by
/// elimination.
#[test]
fn predictions_are_those_of_the_whole_system() {
    let space = grid(&[6, 6, 6]);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let known = points(&space, 12, &mut rng);
    let elapsed = known
        .iter()
        .map(|p| seen(p, truth(p) + 0.1 * normal(&mut rng)));
    let elapsed = task(elapsed.collect(), Cluster::ALL);
    let measure = known[3..].iter().map(|p| seen(p, 1.0 - truth(p)));
    let measure = task(measure.collect(), Cluster::ALL);
    let clustered = known.iter().map(|p| seen(p, 0.3 * f64::from(p.0[0])));
    let clustered = task(clustered.collect(), Cluster::of([0, 2]));
    let tasks = [elapsed, measure, clustered];
    let members: Vec<(usize, &Task, Alone)> = (0..3)
        .map(|place| {
            (
                place,
                &tasks[place],
                Alone::new(&space, &tasks[place]).unwrap(),
            )
        })
        .collect();
    let members: Vec<_> = members.iter().collect();
    let correlations = vec![-0.8, 0.5];
    let assumed = prior(&space, &members, &correlations);
    let joint = MultiTask::with(&space, assumed, rows(&members), correlations).unwrap();

    let (rows, prior) = (&joint.rows, &joint.prior);
    let (size, count) = (rows.len(), prior.deviations.len());
    assert_eq!(size, 12 + 9 + 12, "a row for each point that a task knows");
    let correlation = |a: &Point, b: &Point| {
        let (parts, space) = (&prior.parts, &space);
        let (a, b) = (a.clone(), b.clone());
        move |part: usize| {
            let part: &Part = &parts[part];
            part.kernel
                .correlation(&part.cluster.seen(space, &a), &part.cluster.seen(space, &b))
        }
    };
    let mut system = vec![vec![0.0; size + count]; size + count];
    for (i, row) in rows.iter().enumerate() {
        for (j, other) in rows.iter().enumerate() {
            system[i][j] =
                prior.covariance(row.task, other.task, correlation(&row.point, &other.point));
        }
        let noise = prior.noises[row.task] / row.runs + JITTER;
        system[i][i] += prior.deviations[row.task].powi(2) * noise;
        system[i][size + row.task] = 1.0;
        system[size + row.task][i] = 1.0;
    }
    for point in [Point(vec![0, 0, 0]), Point(vec![5, 2, 1]), known[0].clone()] {
        let mut right: Vec<f64> = rows
            .iter()
            .map(|row| prior.covariance(0, row.task, correlation(&point, &row.point)))
            .collect();
        right.extend((0..count).map(|task| if task == 0 { 1.0 } else { 0.0 }));
        let solved = eliminate(system.clone(), right.clone());
        let mean: f64 = solved
            .iter()
            .zip(rows)
            .map(|(weight, row)| weight * row.value)
            .sum();
        let explained: f64 = solved.iter().zip(&right).map(|(a, b)| a * b).sum();
        let variance = prior.covariance(0, 0, |_| 1.0) - explained;
        let prediction = joint.predict_all(&[point])[0];
        assert!(
            (prediction.mean - mean).abs() < 1e-7,
            "{prediction:?} {mean}"
        );
        assert!(
            (prediction.variance - variance).abs() < 1e-7,
            "{prediction:?} {variance}"
        );
    }
}

/// Gaussian elimination with row exchange.
fn eliminate(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| {
                matrix[*a][column]
                    .abs()
                    .total_cmp(&matrix[*b][column].abs())
            })
            .unwrap();
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        let leading = matrix[column].clone();
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column] / leading[column];
            for (entry, above) in matrix[row].iter_mut().zip(&leading) {
                *entry -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    (0..size).map(|row| right[row] / matrix[row][row]).collect()
}

#[test]
fn alabed2021_other_tasks_tell_more_of_each_sample() {
    let space = grid(&[6, 6, 6]);
    let every = space.points(1000).unwrap();
    let (mut alone, mut joint, mut with_noise) = (0.0, 0.0, 0.0);
    const SEEDS: u64 = 8;
    for seed in 0..SEEDS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let known = points(&space, 24, &mut rng);
        let mut of = |value: &dyn Fn(&Point) -> f64, noise: f64| {
            let seen = known
                .iter()
                .map(|p| seen(p, value(p) + noise * normal(&mut rng)));
            task(seen.collect(), Cluster::ALL)
        };
        let elapsed = of(&truth, 0.25);
        // The bandwidth falls as elapsed rises: a measure may correlate negatively.
        let bandwidth = of(&|p| 2.0 - truth(p) + 0.1 * f64::from(p.0[2] % 2), 0.02);
        let unrelated = of(&|_| 0.0, 0.3);
        let errors = |tasks: &[Task]| {
            let fitted = MultiTask::fit(&space, tasks).unwrap();
            (
                error(&space, &fitted.predict_all(&every)),
                fitted.correlations().to_vec(),
            )
        };
        alone += errors(std::slice::from_ref(&elapsed)).0;
        let (both, correlations) = errors(&[elapsed.clone(), bandwidth]);
        assert!(correlations[0] < -0.5, "seed {seed}: {correlations:?}");
        joint += both;
        with_noise += errors(&[elapsed, unrelated]).0;
    }
    let [alone, joint, with_noise] = [alone, joint, with_noise].map(|sum| sum / SEEDS as f64);
    assert!(joint < 0.85 * alone, "{joint} and {alone}");
    assert!(with_noise < 1.1 * alone, "{with_noise} and {alone}");
}

#[test]
fn alabed2021_a_task_with_few_parameters_lowers_the_error_too() {
    let space = grid(&[6, 6, 6]);
    let every = space.points(1000).unwrap();
    let (mut alone, mut joint) = (0.0, 0.0);
    for seed in 0..8 {
        let mut rng = ChaCha8Rng::seed_from_u64(100 + seed);
        let known = points(&space, 24, &mut rng);
        let noisy = known
            .iter()
            .map(|p| seen(p, truth(p) + 0.25 * normal(&mut rng)));
        let elapsed = task(noisy.collect(), Cluster::ALL);
        let part = |p: &Point| (f64::from(p.0[0]) / 2.0).sin();
        let measured = known
            .iter()
            .map(|p| seen(p, part(p) + 0.02 * normal(&mut rng)));
        let measure = task(measured.collect(), Cluster::of([0]));
        let errors = |tasks: &[Task]| {
            let fitted = MultiTask::fit(&space, tasks).unwrap();
            error(&space, &fitted.predict_all(&every))
        };
        alone += errors(std::slice::from_ref(&elapsed));
        joint += errors(&[elapsed, measure]);
    }
    assert!(joint < 0.95 * alone, "{joint} and {alone}");
}

#[test]
fn nothing_and_nonsense_have_no_process_and_a_measure_of_nonsense_is_left_out() {
    let space = grid(&[6, 6, 6]);
    let point = Point(vec![1, 2, 3]);
    assert!(MultiTask::fit(&space, &[]).is_none());
    assert!(MultiTask::fit(&space, &[task(Vec::new(), Cluster::ALL)]).is_none());
    let good = task(vec![seen(&point, 2.0)], Cluster::ALL);
    for cluster in [Cluster::ALL, Cluster::of([1])] {
        let bad = task(vec![seen(&point, f64::NAN)], cluster);
        let joint = MultiTask::fit(&space, &[good.clone(), bad]).unwrap();
        assert_eq!(joint.correlations(), [0.0]);
        assert!((joint.predict_all(std::slice::from_ref(&point))[0].mean - 2.0).abs() < 1e-9);
    }
}

/// Random hyperparameters, reached by steps of the search.
fn any_hyperparameters(space: &Space, rng: &mut ChaCha8Rng) -> Hyperparameters {
    let mut hyperparameters = Hyperparameters::start(space);
    for coordinate in hyperparameters.coordinates() {
        let mut varied = hyperparameters.varied(coordinate);
        hyperparameters = varied.swap_remove(rng.random_range(0..varied.len()));
    }
    hyperparameters
}

proptest! {
    /// For any correlations, clusters and kernels, the covariance has a Cholesky factor even
    /// without noise, apart from the jitter that rounding needs.
    #[test]
    fn the_covariance_is_positive_definite(
        seed: u64,
        measures in prop::collection::vec((-1.0..=1.0, prop::option::of(1_u32..32)), 0..4),
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut parameters = grid(&[6, 3, 9]).parameters().to_vec();
        parameters.extend([categories("c0", 4), categories("c1", 2)]);
        let space = Space::new(parameters).unwrap();
        let count = measures.len() + 1;
        let mut kernel = || Kernel::new(&space, any_hyperparameters(&space, &mut rng));
        let shared = kernel();
        let measures: Vec<(f64, Option<(Cluster, Kernel)>)> = measures
            .into_iter()
            .map(|(correlation, bits)| {
                let places = |bits: u32| (0..5).filter(move |place| bits & (1 << place) != 0);
                let cluster = bits.map(|bits| (Cluster::of(places(bits)), kernel()));
                (correlation, cluster)
            })
            .collect();
        let prior = Prior {
            parts: parts((Cluster::ALL, shared), measures),
            deviations: (0..count).map(|_| rng.random_range(0.1..3.0)).collect(),
            noises: vec![0.0; count],
        };
        for task in 0..count {
            let variance: f64 = prior.parts.iter().map(|part| part.between(task, task)).sum();
            prop_assert!((variance - 1.0).abs() < 1e-9, "task {task}: {variance}");
        }
        let known = points(&space, 12, &mut rng);
        let mut rows = Vec::new();
        for task in 0..count {
            rows.extend(known.iter().map(|point| Row {
                task,
                point: point.clone(),
                value: 0.0,
                runs: 1.0,
            }));
        }
        let seen = prior.seen(&space, &rows);
        prop_assert!(Cholesky::new(prior.matrix(&rows, &seen)).is_some());
    }
}
