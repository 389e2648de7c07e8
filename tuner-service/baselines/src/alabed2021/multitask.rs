//! Bayesian optimisation with multi-task learning as in Alabed and Yoneki 2021: elapsed and
//! measures are tasks of one Gaussian process. The acquisition function, which the paper's slides
//! leave open, is that of `robert2019-surrogate`; without measures the two methods are equal.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use super::settings::{Alabed2021Multitask, Clusters, MOST_TASKS, Objective};
use io_autotune_model::space::{ABSENT, Point, Space};
use io_autotune_search::acquisition::{self, Model, Process, Revisits};
use io_autotune_search::history::Moments;
use io_autotune_search::history::by_point::View;
use io_autotune_search::surrogate::coregionalisation::Cluster;
use io_autotune_search::surrogate::multitask::{MultiTask, Task};
use io_autotune_search::surrogate::{Observation, Prediction, Scatter};
use io_autotune_search::{Method, MethodContext, Proposal};

/// The maximum number of points, and of observations of all tasks together.
const MOST_POINTS: usize = 96;
const MOST_OBSERVATIONS: usize = 144;
/// The minimum number of points of a measure. The following is the minimum spread of its
/// logarithms.
const LEAST_POINTS: usize = 4;
const LEAST_SPREAD: f64 = 1e-9;
/// The largest number of runs that a mean weighs as much as.
const MOST_RUNS: u64 = 1 << 20;

impl Method for Alabed2021Multitask {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        self.design_points
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let model = || model(context.view, self);
        acquisition::propose_by(context, model, self.acquisition, Revisits::Never, rng)
    }
}

struct Joint {
    process: MultiTask,
    measures: Vec<String>,
}

impl Process for Joint {
    fn expect_all(&self, points: &[Point]) -> Vec<Prediction> {
        self.process.predict_all(points)
    }

    fn measures(&self) -> Vec<String> {
        self.measures.clone()
    }

    const MOST_CANDIDATES: usize = 1024;
}

fn model(view: &View<'_>, settings: &Alabed2021Multitask) -> Option<Model<Joint>> {
    let names = chosen(view, settings);
    let most = MOST_POINTS.min(MOST_OBSERVATIONS / (names.len() + 1));
    let (observations, scatter) = acquisition::observe(view, most);
    let ran: Vec<Point> = observations.iter().map(|o| o.point.clone()).collect();
    let like = spread(&observations);
    let measured = names
        .into_iter()
        .filter_map(|name| Some((measured(view, &name, &ran, like)?, name)));
    let (measured, names): (Vec<_>, Vec<String>) = measured.unzip();
    let competing = (settings.objective == Objective::Own).then_some(&observations[..]);
    let clusters = clusters(view.space, &settings.clusters, &names, &measured, competing);
    let mut tasks = vec![Task {
        cluster: match competing {
            Some(_) => left(view.space, &clusters),
            None => Cluster::ALL,
        },
        observations,
        scatter,
    }];
    let mut learnt = Vec::new();
    for ((name, (observations, scatter)), cluster) in names.into_iter().zip(measured).zip(clusters)
    {
        if let Some(cluster) = cluster {
            learnt.push(name);
            tasks.push(Task {
                observations,
                scatter,
                cluster,
            });
        }
    }
    let mut process = MultiTask::fit(view.space, &tasks)?;
    let flights = view.flights(most);
    if !flights.is_empty() {
        process = process.fantasising(&flights)?;
    }
    let telling = learnt.into_iter().zip(process.correlations());
    let measures = telling
        .filter(|(_, correlation)| **correlation != 0.0)
        .map(|(name, _)| name)
        .collect();
    Model::of(Joint { process, measures }, ran)
}

fn chosen(view: &View<'_>, settings: &Alabed2021Multitask) -> Vec<String> {
    let mut known: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let counted = view.iter().filter(|(_, known)| known.mean().is_some());
    for (_, point) in counted {
        for (name, moments) in &point.measures {
            known.entry(name).or_default().push(moments.mean);
        }
    }
    known.retain(|_, means| means.len() >= LEAST_POINTS && spread_of(means) > LEAST_SPREAD);
    if !settings.measures.is_empty() {
        let mut names = settings.measures.clone();
        names.dedup();
        names.retain(|name| known.contains_key(name.as_str()));
        names.truncate(MOST_TASKS);
        return names;
    }
    let mut names: Vec<(usize, &str)> = known.iter().map(|(n, means)| (means.len(), *n)).collect();
    names.sort_by(|(a, name), (b, other)| b.cmp(a).then_with(|| name.cmp(other)));
    names.truncate(MOST_TASKS);
    names.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// A measure's observations at these points, scaled to the spread `like`; none if they are too few.
fn measured(
    view: &View<'_>,
    name: &str,
    points: &[Point],
    like: f64,
) -> Option<(Vec<Observation>, Scatter)> {
    let of = |point: &Point| -> Option<(Point, Moments)> {
        let moments = view.get(point)?.measures.get(name)?;
        Some((point.clone(), *moments))
    };
    let known: Vec<(Point, Moments)> = points.iter().filter_map(of).collect();
    let means: Vec<f64> = known.iter().map(|(_, moments)| moments.mean).collect();
    let own = spread_of(&means);
    if known.len() < LEAST_POINTS || own <= LEAST_SPREAD {
        return None;
    }
    let stretch = if like > LEAST_SPREAD { like / own } else { 1.0 };
    let mut scatter = Scatter::default();
    let mut observations = Vec::with_capacity(known.len());
    for (point, moments) in known {
        let runs = moments.count.min(MOST_RUNS) as f64;
        scatter.squares += moments.m2 / moments.count as f64 * runs * stretch * stretch;
        scatter.degrees += runs - 1.0;
        observations.push(Observation {
            point,
            log_mean: stretch * moments.mean,
            runs,
        });
    }
    Some((observations, scatter))
}

fn spread(observations: &[Observation]) -> f64 {
    spread_of(
        &observations
            .iter()
            .map(|o| o.log_mean)
            .collect::<Vec<f64>>(),
    )
}

fn spread_of(numbers: &[f64]) -> f64 {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares = numbers
        .iter()
        .map(|number| (number - mean) * (number - mean));
    (squares.sum::<f64>() / count).sqrt()
}

/// The parameters that belong to no measure.
fn left(space: &Space, clusters: &[Option<Cluster>]) -> Cluster {
    let covered = |place: usize| {
        clusters
            .iter()
            .flatten()
            .any(|cluster| cluster.contains(place))
    };
    Cluster::of((0..space.parameters().len()).filter(|place| !covered(*place)))
}

/// The parameters of each measure; none for a measure to which none are left. Elapsed competes for
/// them if its observations are given.
fn clusters(
    space: &Space,
    setting: &Clusters,
    names: &[String],
    measured: &[(Vec<Observation>, Scatter)],
    elapsed: Option<&[Observation]>,
) -> Vec<Option<Cluster>> {
    let parameters = space.parameters();
    let whole = |mut places: Vec<usize>| {
        // A conditional parameter's cluster includes its condition's parameter, listed before it.
        for place in (0..parameters.len()).rev() {
            let under = parameters[place].when.as_ref().map(|when| &when.parameter);
            let under = parameters.iter().position(|p| Some(&p.name) == under);
            if let Some(under) = under.filter(|u| places.contains(&place) && !places.contains(u)) {
                places.push(under);
            }
        }
        match places.is_empty() || places.len() == parameters.len() {
            true => Cluster::ALL,
            false => Cluster::of(places),
        }
    };
    match setting {
        Clusters::All => names.iter().map(|_| Some(Cluster::ALL)).collect(),
        Clusters::ByHand { parameters: named } => {
            let of = |name: &String| {
                let wanted = named.get(name).map_or(&[][..], Vec::as_slice);
                let places =
                    (0..parameters.len()).filter(|place| wanted.contains(&parameters[*place].name));
                Some(whole(places.collect()))
            };
            names.iter().map(of).collect()
        }
        Clusters::Covariance => {
            let mut places: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
            for place in 0..parameters.len() {
                let of = |seen: &[Observation]| explained(space, place, seen);
                let strongest = measured
                    .iter()
                    .map(|(seen, _)| of(seen))
                    .enumerate()
                    .reduce(|best, next| if next.1 > best.1 { next } else { best });
                let own = elapsed.map_or(f64::NEG_INFINITY, of);
                if let Some((measure, _)) = strongest.filter(|(_, share)| *share >= own) {
                    places[measure].push(place);
                }
            }
            let of = |places: Vec<usize>| (!places.is_empty()).then(|| whole(places));
            places.into_iter().map(of).collect()
        }
    }
}

/// The share of a measure's variance that a parameter explains (adjusted R^2; M. Ezekiel 1930): an
/// ordered one by a line through its levels, a category by its means.
fn explained(space: &Space, place: usize, observations: &[Observation]) -> f64 {
    let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for observation in observations {
        let level = space.seen(&observation.point).0[place];
        groups.entry(level).or_default().push(observation.log_mean);
    }
    let ordered = space.parameters()[place].is_ordered();
    if ordered {
        groups.remove(&ABSENT);
    }
    let pairs: Vec<(f64, f64)> = groups
        .iter()
        .flat_map(|(level, values)| {
            let group = values.iter().sum::<f64>() / values.len() as f64;
            let told = if ordered { f64::from(*level) } else { group };
            values.iter().map(move |value| (told, *value))
        })
        .collect();
    let count = pairs.len() as f64;
    let coefficients = if ordered { 2.0 } else { groups.len() as f64 };
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in &pairs {
        xx += (a - x) * (a - x);
        xy += (a - x) * (b - y);
        yy += (b - y) * (b - y);
    }
    if groups.len() < 2 || count <= coefficients || xx <= 0.0 || yy <= 0.0 {
        return 0.0;
    }
    let share = xy * xy / (xx * yy);
    1.0 - (1.0 - share) * (count - 1.0) / (count - coefficients)
}

#[cfg(test)]
mod tests {
    use io_autotune_search::math::Portable;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::robert2019::Robert2019Surrogate;
    use io_autotune_model::reason::Reason;
    use io_autotune_search::history::History;
    use io_autotune_search::testing::{categories, integers, normal, tested, with_context};

    fn space() -> Space {
        let mut parameters: Vec<_> = (0..3)
            .map(|n| integers(&format!("p{n}"), 0, 5, 1))
            .collect();
        parameters.push(categories("mode", 3));
        Space::new(parameters).unwrap()
    }

    /// The logarithms of the measures, whose sum is log elapsed: `bytes` depends on p0 and the
    /// mode, `calls` on p1, and nothing on p2.
    fn parts(point: &Point) -> (f64, f64) {
        let mode = [0.0, 0.9, 0.4][point.0[3] as usize];
        (
            0.3 * f64::from(point.0[0]) + mode,
            0.25 * f64::from(point.0[1]),
        )
    }

    fn history(space: &Space, points: usize, seed: u64) -> History {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut entries = vec![tested(space, &space.default_point().0, &[1.0, 1.1], 0)];
        while entries.len() < points {
            let point = space.draw(&mut rng);
            let (bytes, calls) = parts(&point);
            let elapsed = (bytes + calls + 0.1 * normal(&mut rng)).exponential();
            let ordinal = entries.len() as i64;
            let mut entry = tested(space, &point.0, &[elapsed], ordinal);
            entry.record_measures(&BTreeMap::from([
                (
                    "bytes".to_owned(),
                    1e6 * (3.0 * bytes + 0.02 * normal(&mut rng)).exponential(),
                ),
                (
                    "calls".to_owned(),
                    40.0 * (calls + 0.02 * normal(&mut rng)).exponential(),
                ),
                ("constant".to_owned(), 4096.0),
                ("noise".to_owned(), rng.random_range(1.0..2.0)),
            ]));
            if entries
                .iter()
                .all(|known| known.parametrization != entry.parametrization)
            {
                entries.push(entry);
            }
        }
        io_autotune_search::testing::history(entries, points as u64, points as u64)
    }

    fn propose(history: &History, method: &dyn Method) -> (Point, Vec<String>) {
        with_context(&space(), history, &[], method, 1, |context| {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            match method.propose(context, &mut rng) {
                Proposal::Run {
                    point,
                    reason: Reason::Acquired { measures, .. },
                } => (point, measures),
                other => panic!("{other:?}"),
            }
        })
    }

    #[test]
    fn it_says_which_measures_it_learnt_from() {
        let space = space();
        let history = history(&space, 30, 3);
        let mut settings = Alabed2021Multitask::default();
        assert_eq!(propose(&history, &settings).1, ["bytes", "calls"]);
        settings.measures = vec!["calls".to_owned(), "constant".to_owned()];
        assert_eq!(propose(&history, &settings).1, ["calls"]);
        settings.measures = vec!["constant".to_owned()];
        assert!(propose(&history, &settings).1.is_empty());
    }

    /// Alabed and Yoneki 2021: "reducing the maximum effective dimension": elapsed depends on its own
    /// parameters and, through measures, on theirs.
    #[test]
    fn alabed2021_structured_elapsed_learns_through_measures() {
        let space = space();
        let history = history(&space, 30, 3);
        let structured = Alabed2021Multitask {
            clusters: Clusters::Covariance,
            objective: Objective::Own,
            ..Alabed2021Multitask::default()
        };
        let (point, measures) = propose(&history, &structured);
        assert_eq!(measures, ["bytes", "calls"]);
        // The fastest point is where both measures are least.
        let (bytes, calls) = parts(&point);
        assert!(bytes + calls < 0.7, "{point:?}");
    }

    #[test]
    fn without_measures_it_is_the_surrogate_of_2019() {
        let space = space();
        let mut history = history(&space, 20, 4);
        for tested in &mut history.tested {
            tested.measures.clear();
        }
        let multitask = propose(&history, &Alabed2021Multitask::default());
        let surrogate = propose(&history, &Robert2019Surrogate::default());
        assert_eq!(multitask, surrogate);
    }

    #[test]
    fn alabed2021_assignment_is_by_the_highest_covariance() {
        let space = space();
        let history = history(&space, 40, 5);
        let view = View::new(&space, &history, &[]);
        let names = ["bytes".to_owned(), "calls".to_owned()];
        let ran: Vec<Point> = view.iter().map(|(point, _)| point.clone()).collect();
        let measured: Vec<_> = names
            .iter()
            .map(|name| measured(&view, name, &ran, 1.0).unwrap())
            .collect();
        for (seen, _) in &measured {
            assert!((spread(seen) - 1.0).abs() < 1e-9);
        }
        let found = clusters(&space, &Clusters::Covariance, &names, &measured, None);
        let [Some(bytes), Some(calls)] = found[..] else {
            panic!("{found:?}");
        };
        assert!(bytes.contains(0) && bytes.contains(3) && !bytes.contains(1));
        assert!(calls.contains(1) && !calls.contains(0) && !calls.contains(3));
        // A parameter that explains neither belongs to one of them.
        assert!(bytes.contains(2) != calls.contains(2));
        let by_hand = Clusters::ByHand {
            parameters: [("bytes".to_owned(), vec!["mode".to_owned(), "p9".to_owned()])].into(),
        };
        let found = clusters(&space, &by_hand, &names, &measured, None);
        assert_eq!(found, [Some(Cluster::of([3])), Some(Cluster::ALL)]);
        let all = clusters(
            &space,
            &Clusters::Covariance,
            &names[..1],
            &measured[..1],
            None,
        );
        assert_eq!(all, [Some(Cluster::ALL)]);
        // Elapsed takes the parameters that explain more of it: here p2 alone.
        let elapsed: Vec<Observation> = ran
            .iter()
            .map(|point| Observation {
                point: point.clone(),
                log_mean: f64::from(point.0[2]),
                runs: 1.0,
            })
            .collect();
        let covariance = Clusters::Covariance;
        let found = clusters(&space, &covariance, &names, &measured, Some(&elapsed));
        assert!(found.iter().flatten().all(|cluster| !cluster.contains(2)));
        let own = left(&space, &found);
        assert!(own.contains(2) && !own.contains(0) && !own.contains(1));
    }

    #[test]
    fn what_a_parameter_exists_under_is_of_its_cluster() {
        let space = io_autotune_search::testing::storage();
        let by_hand = Clusters::ByHand {
            parameters: [("bytes".to_owned(), vec!["flush".to_owned()])].into(),
        };
        let found = clusters(&space, &by_hand, &["bytes".to_owned()], &[], None);
        assert_eq!(found, [Some(Cluster::of([2, 3, 4]))]);
    }

    #[test]
    fn what_a_parameter_explains_by_hand() {
        let space = space();
        let observation = |levels: [u32; 4], log_mean| Observation {
            point: Point(levels.to_vec()),
            log_mean,
            runs: 1.0,
        };
        let seen = [
            observation([0, 0, 0, 0], 1.0),
            observation([1, 3, 0, 0], 2.0),
            observation([2, 3, 0, 1], 3.0),
            observation([3, 0, 0, 1], 4.0),
        ];
        assert!((explained(&space, 0, &seen) - 1.0).abs() < 1e-12);
        // R^2 is 0: 1 - 3 / 2.
        assert!((explained(&space, 1, &seen) + 0.5).abs() < 1e-12);
        assert_eq!(explained(&space, 2, &seen), 0.0, "it has one level here");
        // The means are 1.5 and 3.5, R^2 = 4 / 5: 1 - 0.2 * 3 / 2.
        assert!((explained(&space, 3, &seen) - 0.7).abs() < 1e-12);
    }
}
