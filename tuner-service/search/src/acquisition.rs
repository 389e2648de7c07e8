//! A Gaussian process with an acquisition function: Robert, Zertal and Goret 2019 (sections II-B-1
//! and III-B-1); Cao, Tarasov, Tiwari and Zadok 2018. The process is on log elapsed
//! ([`Surrogate`]), so that times are log-normal, or on seconds ([`Scale`]). The closed forms below
//! are in seconds, as in the paper. The best known point is the one with the lowest prediction
//! among those that ran.

use crate::math::{Portable, normal_cdf, normal_pdf};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::history::by_point::{Known, View};
use crate::method::{MethodContext, Proposal};
use crate::surrogate::{Observation, Prediction, Scatter, Surrogate, ranked};
use crate::{neighbourhood, random};
use io_autotune_model::reason::{Acquisition, Reason};
use io_autotune_model::space::Point;

const MOST_POINTS: usize = 96;
/// The number of random candidates in a large space.
const DRAWN: usize = 1000;
/// The number of best points whose single changes are candidates too, in a large space.
const CLIMBED: usize = 3;

/// The standard deviation of the known times on the linear scale: seconds are divided so that the
/// means spread by this much, which is the spread that the process's prior expects of logarithms.
const SPREAD: f64 = 0.25;

/// The quantity that the process models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The logarithm of elapsed.
    #[default]
    Log,
    /// Elapsed in seconds, scaled to the spread of the known times.
    Seconds,
}

/// The points among which the acquisition function chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Revisits {
    /// The untested points: nothing runs twice.
    #[default]
    Never,
    /// All points: a tested one runs again where the function is highest there.
    Any,
}

/// The point with the highest acquisition function.
pub fn propose(
    context: &MethodContext<'_>,
    acquisition: Acquisition,
    scale: Scale,
    revisits: Revisits,
    rng: &mut ChaCha8Rng,
) -> Proposal {
    let model = || Model::new(context.view, scale);
    propose_by(context, model, acquisition, revisits, rng)
}

/// [`propose`] with another process than the surrogate.
pub fn propose_by<P: Process>(
    context: &MethodContext<'_>,
    model: impl FnOnce() -> Option<Model<P>>,
    acquisition: Acquisition,
    revisits: Revisits,
    rng: &mut ChaCha8Rng,
) -> Proposal {
    if let Some(wait) = context.nothing_known() {
        return wait;
    }
    let Some(model) = model() else {
        return random::draw(context, rng);
    };
    let mut candidates = model.candidates(context.view, rng);
    candidates.retain(|point| {
        let again = revisits == Revisits::Any && context.can_run_again(point);
        again || context.is_untested(point)
    });
    let count = candidates.len() as u64;
    let predictions = model.process.expect_all(&candidates);
    let best = candidates
        .into_iter()
        .zip(predictions)
        .map(|(point, prediction)| (model.worth(acquisition, prediction), point, prediction))
        .max_by(|(a, point, _), (b, other, _)| {
            let higher = a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
            higher.then_with(|| other.cmp(point))
        });
    let Some((_, point, prediction)) = best else {
        return random::draw(context, rng);
    };
    Proposal::Run {
        point,
        reason: Reason::Acquired {
            acquisition,
            candidates: count,
            predicted: model.seconds(prediction.mean),
            factor: model.factor(prediction),
            best: model.seconds(model.best),
            measures: model.process.measures(),
        },
    }
}

/// A model that predicts log elapsed.
pub trait Process {
    /// Log elapsed at these points, in their order, without the noise of a run.
    fn expect_all(&self, points: &[Point]) -> Vec<Prediction>;

    /// The names of the measures that the model learnt from.
    fn measures(&self) -> Vec<String> {
        Vec::new()
    }

    /// A space of at most this many points is evaluated whole.
    const MOST_CANDIDATES: usize;
}

impl Process for Surrogate {
    fn expect_all(&self, points: &[Point]) -> Vec<Prediction> {
        self.predict_all(points)
    }

    const MOST_CANDIDATES: usize = neighbourhood::SMALL;
}

/// A process fitted to a history.
pub struct Model<P> {
    process: P,
    /// Points that ran, the lowest prediction first.
    ranked: Vec<Point>,
    best: f64,
    /// The seconds that correspond to 1 on a linear scale; none on the log scale.
    unit: Option<f64>,
}

impl Model<Surrogate> {
    /// Fits the process. None before a run has counted.
    fn new(view: &View<'_>, scale: Scale) -> Option<Self> {
        let (observations, scatter, unit) = match scale {
            Scale::Log => {
                let (observations, scatter) = observe(view, MOST_POINTS);
                (observations, scatter, None)
            }
            Scale::Seconds => {
                let (observations, scatter, unit) = observe_seconds(view, MOST_POINTS);
                (observations, scatter, Some(unit))
            }
        };
        let fitted = Surrogate::fit(view.space, &observations, scatter)?;
        let flights = view.flights(MOST_POINTS);
        let surrogate = if flights.is_empty() {
            fitted
        } else {
            fitted.fantasising(&observations, scatter, &flights)?
        };
        let ran = observations.into_iter().map(|o| o.point).collect();
        let model = Model::of(surrogate, ran)?;
        Some(Model { unit, ..model })
    }
}

impl<P: Process> Model<P> {
    /// A model of a fitted process and the points that ran; none if no point ran.
    pub fn of(process: P, ran: Vec<Point>) -> Option<Self> {
        let expected = process.expect_all(&ran).into_iter();
        let ranked = ranked(ran, expected.map(|one| one.mean).collect());
        Some(Model {
            best: ranked.first()?.0,
            unit: None,
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            process,
        })
    }

    /// The points among which the acquisition function chooses: "We simply evaluated the function
    /// over the whole grid" (section III-B-1). In a larger grid they are random points, and single
    /// changes of the best points.
    fn candidates(&self, view: &View<'_>, rng: &mut ChaCha8Rng) -> Vec<Point> {
        let space = view.space;
        if let Some(points) = space.points(P::MOST_CANDIDATES) {
            return points;
        }
        let mut candidates: Vec<Point> = (0..DRAWN).map(|_| space.draw(rng)).collect();
        for best in self.ranked.iter().take(CLIMBED) {
            let changed = neighbourhood::single_changes(space, best, rng);
            candidates.extend(changed.into_iter().map(|(_, near)| near));
        }
        candidates.sort();
        candidates.dedup();
        candidates
    }

    /// The acquisition function (higher is better), with the negated prediction to break ties.
    fn worth(&self, acquisition: Acquisition, prediction: Prediction) -> (f64, f64) {
        let worth = match acquisition {
            Acquisition::ExpectedImprovement => self.improvement(prediction),
            Acquisition::ProbabilityOfImprovement => self.probability(prediction),
            Acquisition::PosteriorMinimum => -prediction.mean,
        };
        (worth, -prediction.mean)
    }

    /// Maximum probability of improvement, `P(T < best) = Phi(z)`, `z = (ln best - m) / s`.
    fn probability(&self, prediction: Prediction) -> f64 {
        normal_cdf(deviations(self.best, prediction))
    }

    /// Converts a prediction on the process's scale to seconds.
    fn seconds(&self, mean: f64) -> f64 {
        match self.unit {
            Some(unit) => unit * mean,
            None => mean.exponential(),
        }
    }

    /// One standard deviation above the prediction, as a factor on its time.
    fn factor(&self, Prediction { mean, variance }: Prediction) -> f64 {
        match self.unit {
            Some(_) => 1.0 + variance.sqrt() / mean.abs().max(f64::MIN_POSITIVE),
            None => variance.sqrt().exponential(),
        }
    }

    /// Expected improvement. On the linear scale the time T itself is normal: `(best - m) Phi(z) +
    /// s phi(z)`. On the log scale see [`improvement`].
    fn improvement(&self, prediction: Prediction) -> f64 {
        if self.unit.is_none() {
            return improvement(self.best, prediction);
        }
        let Prediction { mean, variance } = prediction;
        let gap = self.best - mean;
        if variance > 0.0 {
            let z = deviations(self.best, prediction);
            gap * normal_cdf(z) + variance.sqrt() * normal_pdf(z)
        } else {
            gap.max(0.0)
        }
    }
}

/// Expected improvement `E max(best - T, 0)` over the best, a logarithm, as a share of it, for
/// `ln T` normal with mean m and deviation s: `Phi(z) - exp(m + s^2 / 2 - ln best) Phi(z - s)`.
pub fn improvement(best: f64, prediction: Prediction) -> f64 {
    let z = deviations(best, prediction);
    let Prediction { mean, variance } = prediction;
    let ratio = (mean + variance / 2.0 - best).exponential();
    // `max` turns NaN (both terms infinitely small) into 0.
    (normal_cdf(z) - ratio * normal_cdf(z - variance.sqrt())).max(0.0)
}

/// z: the best known above the prediction, in standard deviations.
fn deviations(best: f64, prediction: Prediction) -> f64 {
    let gap = best - prediction.mean;
    if prediction.variance > 0.0 {
        gap / prediction.variance.sqrt()
    } else {
        gap.signum() * f64::INFINITY
    }
}

/// The observations of at most `most` points on the log scale, with their scatter.
pub fn observe(view: &View<'_>, most: usize) -> (Vec<Observation>, Scatter) {
    let mut scatter = Scatter::default();
    let observations = chosen(view, most)
        .into_iter()
        .map(|(point, known, mean)| {
            let logs = known.logs();
            let runs = logs.len().max(1) as f64;
            // Censored runs raise the logarithm by as much as they raise the mean.
            let log_mean = if logs.is_empty() {
                mean.logarithm()
            } else {
                scatter.add(logs) + known.raised()
            };
            Observation {
                point: point.clone(),
                log_mean,
                runs,
            }
        })
        .collect();
    (observations, scatter)
}

/// The observations on the linear scale, with their scatter and the unit in seconds. The unit makes
/// the means spread by [`SPREAD`].
fn observe_seconds(view: &View<'_>, most: usize) -> (Vec<Observation>, Scatter, f64) {
    let known = chosen(view, most);
    let count = known.len().max(1) as f64;
    let middle = known.iter().map(|(.., mean)| mean).sum::<f64>() / count;
    let squares = known.iter().map(|(.., mean)| (mean - middle).powi(2));
    let spread = (squares.sum::<f64>() / count).sqrt();
    // If all times are equal they have no spread, so the mean is the unit.
    let unit = if spread > 0.0 {
        spread / SPREAD
    } else {
        middle
    };
    let mut scatter = Scatter::default();
    let observations = known.into_iter().map(|(point, known, mean)| {
        let logs = known.logs();
        if !logs.is_empty() {
            let times: Vec<f64> = logs.iter().map(|log| log.exponential() / unit).collect();
            scatter.add(&times);
        }
        Observation {
            point: point.clone(),
            log_mean: mean / unit,
            runs: logs.len().max(1) as f64,
        }
    });
    (observations.collect(), scatter, unit)
}

/// At most `most` points with their means: two thirds are the fastest, the rest the latest.
fn chosen<'a>(view: &'a View<'_>, most: usize) -> Vec<(&'a Point, &'a Known, f64)> {
    let mut known: Vec<(&Point, &Known, f64)> = view
        .iter()
        .filter_map(|(point, known)| Some((point, known, known.mean()?)))
        .collect();
    if known.len() > most {
        known.sort_by(|(a, _, mean), (b, _, other)| mean.total_cmp(other).then_with(|| a.cmp(b)));
        known[most / 3 * 2..].sort_by_key(|(_, known, _)| std::cmp::Reverse(known.first_ordinal));
        known.truncate(most);
        known.sort_by_key(|(point, ..)| *point);
    }
    known
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::testing::{grid, history, normal, tested, with_context};

    fn model() -> Model<Surrogate> {
        model_of(Scale::Log)
    }

    fn model_of(scale: Scale) -> Model<Surrogate> {
        let space = grid(&[9]);
        let entries = [(0, 50.0), (4, 40.0), (8, 60.0)]
            .map(|(level, time)| tested(&space, &[level], &[time; 3], 0));
        let history = history(entries.to_vec(), 0, 0);
        Model::new(&View::new(&space, &history, &[]), scale).unwrap()
    }

    /// Robert 2019, section II-B-1: the expectation of "the difference between the predicted
    /// execution time and the current optimum".
    #[test]
    fn robert2019_ii_b_1_improvement_in_seconds_is_what_a_simulation_gives() {
        let model = model_of(Scale::Seconds);
        assert!((model.seconds(model.best) - 40.0).abs() < 2.0);
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (mean, deviation) in [(0.1, 0.3), (-0.2, 0.1), (0.5, 0.5)] {
            let prediction = Prediction {
                mean: model.best + mean,
                variance: deviation * deviation,
            };
            let draws = 200_000;
            let improvement: f64 = (0..draws)
                .map(|_| (-mean - deviation * normal(&mut rng)).max(0.0) / f64::from(draws))
                .sum();
            // The standard error is below 0.0012.
            assert!((model.improvement(prediction) - improvement).abs() < 0.004);
        }
    }

    #[test]
    fn robert2019_ii_b_1_the_closed_forms_are_what_a_simulation_gives() {
        let model = model();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (mean, deviation) in [(0.1, 0.3), (-0.2, 0.1), (0.5, 0.5)] {
            let prediction = Prediction {
                mean: model.best + mean,
                variance: deviation * deviation,
            };
            let draws = 200_000;
            let (mut improvement, mut probability) = (0.0, 0.0);
            for _ in 0..draws {
                let ratio = (mean + deviation * normal(&mut rng)).exponential();
                improvement += (1.0 - ratio).max(0.0) / f64::from(draws);
                probability += f64::from(u8::from(ratio < 1.0)) / f64::from(draws);
            }
            // The standard errors are below 0.0012 and 0.0005.
            assert!((model.probability(prediction) - probability).abs() < 0.006);
            assert!((model.improvement(prediction) - improvement).abs() < 0.003);
        }
    }

    #[test]
    fn what_is_sure_improves_by_what_it_is_quicker() {
        let model = model();
        let sure = |mean| Prediction {
            mean: model.best + mean,
            variance: 0.0,
        };
        assert!((model.improvement(sure(-0.1)) - (1.0 - (-0.1_f64).exponential())).abs() < 1e-9);
        assert!(model.improvement(sure(0.1)) < 1e-12);
        assert_eq!(model.probability(sure(-0.1)), 1.0);
        assert_eq!(model.probability(sure(0.1)), 0.0);
    }

    #[test]
    fn each_acquisition_has_its_own_choice() {
        let model = model();
        let worth = |acquisition, level: u32| {
            model.worth(acquisition, model.process.predict(&Point(vec![level])))
        };
        let quick_and_sure = worth(Acquisition::PosteriorMinimum, 4);
        let other = worth(Acquisition::PosteriorMinimum, 7);
        assert!(quick_and_sure > other);
        // Near the best point hardly anything can be gained; far from all known points it can.
        let near = worth(Acquisition::ExpectedImprovement, 4);
        let far = worth(Acquisition::ExpectedImprovement, 2);
        assert!(far > near);
    }

    /// Robert 2019, section III-B-1: "We simply evaluated the function over the whole grid and
    /// selected the maximum value".
    #[test]
    fn robert2019_iii_b_1_the_whole_grid_may_have_its_maximum_where_it_was_tested() {
        let space = grid(&[9]);
        let entries = [(0, 50.0), (4, 40.0), (5, 20.0), (6, 40.0), (8, 60.0)]
            .map(|(level, time)| tested(&space, &[level], &[time; 3], 0));
        let history = history(entries.to_vec(), 0, 0);
        let next = |revisits| {
            let least = Acquisition::PosteriorMinimum;
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let method = crate::random::Random;
            with_context(&space, &history, &[], &method, 1, |context| {
                match propose(context, least, Scale::Log, revisits, &mut rng) {
                    Proposal::Run { point, .. } => point.0[0],
                    other => panic!("there is much to try: {other:?}"),
                }
            })
        };
        assert_eq!(next(Revisits::Any), 5);
        assert!(![0, 4, 5, 6, 8].contains(&next(Revisits::Never)));
    }
}
