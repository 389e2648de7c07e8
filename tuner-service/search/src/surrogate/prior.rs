//! A prior mean from other studies of the space: what each of them learnt of points relative to its
//! own default. Sources that rank the study's points as its runs do weigh more (as in the
//! ranking-weighted ensemble of M. Feurer, B. Letham, F. Hutter, E. Bakshy, "Practical transfer
//! learning for Bayesian optimization", 2018). Before the study has runs, sources whose runs have
//! similar measures weigh more.
//!
//! The study's processes lean on this mean by a factor from 0 to 1, one more hyperparameter that
//! the likelihood of the study's own runs decides. A prior that these runs contradict has therefore
//! no weight after a few of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::observed::{Observed, observe};
use super::{Observation, Prediction, Scatter, Surrogate, mixture};
use crate::history::History;
use crate::history::by_point::{Known, MIN_RUNS, View};
use crate::math::Portable;
use io_autotune_model::OTHERS_RATIO;
use io_autotune_model::space::{Parametrization, Point, Space};

/// The most sources of a prior. Each is a process, which is fitted and asked for predictions.
pub const MOST_SOURCES: usize = 8;
/// The most points that a source keeps, those with most runs: fitting takes time proportional to
/// the cube of their number.
const MOST_LEARNT: usize = 48;
/// The least number of points that a source must have: fewer do not show a shape.
const LEAST_LEARNT: usize = 6;
/// How far a process leans on the mean, with prior probabilities. Without a prior it leans by 0.
pub(super) const LEANS: [(f64, f64); 5] = [
    (0.0, 0.4),
    (0.25, 0.15),
    (0.5, 0.15),
    (0.75, 0.15),
    (1.0, 0.15),
];
/// The spread of measures: a source whose measures differ on average by this much, in logarithms,
/// has the weight exp(-1/2).
const MEASURES_SPREAD: f64 = 0.7;
/// The largest distance of measures, in spreads. The cap keeps a small weight for every source.
const FARTHEST: f64 = 3.0;
/// The distance if there is no measure that both have.
const UNKNOWN: f64 = 1.0;
/// The log weight that a source gains per point if it ranks all points as the study does.
const RANKS: f64 = 0.6;
/// The most points that count in the ranking.
const MOST_RANKED: f64 = 20.0;
/// The number of standard deviations by which a prediction must be faster, or too slow, before a
/// point counts as promised, or as terrible.
const DOUBT: f64 = 1.0;
/// The number of sources that must agree on it.
const AGREEING: usize = 2;
/// The number of users, other than the one whose study found a point, whose studies must find it
/// harmless before it runs in one step. One person can submit as many studies as they like, so
/// studies are not counted here.
const USERS: usize = 3;
/// The weight below which sources are not counted.
const COUNTED: f64 = 0.05;
/// How far the study must lean on the mean before the mean replaces design points and steps.
pub const TRUSTED: f64 = 0.45;
/// The smallest promised gain, as the log of a ratio.
const LEAST_PROMISE: f64 = 0.03;

/// The results of a study about its space, from which another study can take its prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    learnt: Vec<Learnt>,
    squares: f64,
    degrees: f64,
    /// The means of the logarithms of the measures of runs of the default, by name.
    measures: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Learnt {
    parametrization: Parametrization,
    /// The log of the point's mean elapsed over the default's.
    log_ratio: f64,
    runs: f64,
}

impl Source {
    /// A source from a study's history. None if too little is known of the default, or of other
    /// points.
    pub fn of(space: &Space, history: &History) -> Option<Self> {
        let view = View::new(space, history, &[]);
        let known: Vec<(&Point, &Known)> = view.iter().filter(|(_, k)| k.is_eligible()).collect();
        let Observed {
            mut observations,
            scatter,
            ..
        } = observe(&known, &view.default);
        let is_default = |one: &&Observation| one.point == view.default;
        let default = observations.iter().find(is_default)?.clone();
        if default.runs < MIN_RUNS as f64 || observations.len() < LEAST_LEARNT {
            return None;
        }
        // The default is kept or left out like any other point. The sort is stable, so equal ones
        // keep the space's order.
        observations.sort_by(|a, b| b.runs.total_cmp(&a.runs));
        observations.truncate(MOST_LEARNT);
        let learnt = observations.iter().map(|one| Learnt {
            parametrization: space.parametrization(&one.point),
            log_ratio: one.log_mean - default.log_mean,
            runs: one.runs,
        });
        Some(Source {
            learnt: learnt.collect(),
            squares: scatter.squares,
            degrees: scatter.degrees,
            measures: measures(&view),
        })
    }

    /// The means of the logarithms of the measures of runs of the default, by name.
    pub fn measures(&self) -> &BTreeMap<String, f64> {
        &self.measures
    }

    /// The distance of this source's measures from another study's, from 0 to 3.
    pub fn distance(&self, measures: &BTreeMap<String, f64>) -> f64 {
        let squares: Vec<f64> = measures
            .iter()
            .filter_map(|(name, own)| Some((self.measures.get(name)? - own) / MEASURES_SPREAD))
            .map(|difference| difference * difference)
            .collect();
        if squares.is_empty() {
            return UNKNOWN;
        }
        let mean = squares.iter().sum::<f64>() / squares.len() as f64;
        mean.sqrt().min(FARTHEST)
    }
}

/// The means of the logarithms of the measures of runs of the default, by name.
pub fn measures(view: &View<'_>) -> BTreeMap<String, f64> {
    let default = view.default_known();
    let measures = default.measures.iter();
    // How busy the machine was says nothing about an application.
    let measures = measures.filter(|(name, one)| one.count > 0 && *name != OTHERS_RATIO);
    measures
        .map(|(name, one)| (name.clone(), one.mean))
        .collect()
}

/// A source with its process, which is fitted once for all studies that begin from it.
#[derive(Debug)]
pub struct SharedSource {
    source: Source,
    /// The user whose study it is, as a number that tells users apart and says no more. None if it
    /// is not known; such a source is no witness for what others found.
    user: Option<u32>,
    /// The process in the space of the first study that asked for it. Studies with another space
    /// fit their own.
    process: OnceLock<(Space, Option<Arc<Process>>)>,
}

impl From<Source> for SharedSource {
    fn from(source: Source) -> Self {
        SharedSource {
            source,
            user: None,
            process: OnceLock::new(),
        }
    }
}

impl SharedSource {
    /// A source of this user's study.
    #[must_use]
    pub fn of_user(source: Source, user: u32) -> Self {
        SharedSource {
            user: Some(user),
            ..source.into()
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.user == other.user && self.source == other.source
    }

    fn process(&self, space: &Space) -> Option<Arc<Process>> {
        let fit = || Process::new(space, &self.source).map(Arc::new);
        let (of, process) = self.process.get_or_init(|| (space.clone(), fit()));
        match of == space {
            true => process.clone(),
            false => fit(),
        }
    }
}

/// Sources with their processes.
#[derive(Debug)]
pub struct Prior {
    space: Space,
    sources: Vec<Arc<SharedSource>>,
    /// The processes, with their places among the sources.
    processes: Vec<(usize, Arc<Process>)>,
}

#[derive(Debug)]
struct Process {
    surrogate: Surrogate,
    /// The prediction of the default.
    default: f64,
    /// The points that the source's study ran, in this space.
    points: Vec<Point>,
}

impl Process {
    fn new(space: &Space, source: &Source) -> Option<Self> {
        let observations: Vec<Observation> = source
            .learnt
            .iter()
            .filter_map(|one| {
                Some(Observation {
                    point: space.validate(&one.parametrization).ok()?,
                    log_mean: one.log_ratio,
                    runs: one.runs,
                })
            })
            .collect();
        let scatter = Scatter {
            squares: source.squares,
            degrees: source.degrees,
        };
        let surrogate = Surrogate::fit(space, &observations, scatter)?;
        Some(Process {
            default: surrogate.predict(&space.default_point()).mean,
            points: observations.into_iter().map(|one| one.point).collect(),
            surrogate,
        })
    }

    /// The predictions of the log ratio to the default.
    fn predict(&self, points: &[Point]) -> Vec<Prediction> {
        let mut predictions = self.surrogate.predict_all(points);
        for one in &mut predictions {
            one.mean -= self.default;
        }
        predictions
    }

    /// The points that the source's study ran and found faster than the default.
    fn found_faster(&self) -> impl Iterator<Item = &Point> {
        let means = self.expect(&self.points).into_iter();
        let found = self.points.iter().zip(means);
        found
            .filter(|(_, mean)| *mean < 0.0)
            .map(|(point, _)| point)
    }

    /// The means alone, which are cheaper.
    fn expect(&self, points: &[Point]) -> Vec<f64> {
        let mut means = self.surrogate.expect_seen(&self.surrogate.seen(points));
        for mean in &mut means {
            *mean -= self.default;
        }
        means
    }
}

/// The prediction for one more application, from those for several: the spread between these, and
/// the uncertainty of their mean, to which each adds by the square of its share of the weights.
fn pooled(each: impl Iterator<Item = (f64, Prediction)> + Clone) -> Prediction {
    let sum: f64 = each.clone().map(|(weight, _)| weight).sum();
    let shares = each.map(|(weight, one)| (weight / sum, one));
    let mean: f64 = shares.clone().map(|(share, one)| share * one.mean).sum();
    let variance =
        shares.map(|(share, one)| share * (one.mean - mean).powi(2) + share * share * one.variance);
    Prediction {
        mean,
        variance: variance.sum(),
    }
}

impl Prior {
    /// The prior of the first [`MOST_SOURCES`] sources; none if no source has this space's points.
    pub fn new(space: &Space, sources: &[Arc<SharedSource>]) -> Option<Self> {
        let sources = &sources[..sources.len().min(MOST_SOURCES)];
        let processes = sources.iter().enumerate();
        let processes: Vec<(usize, Arc<Process>)> = processes
            .filter_map(|(place, source)| Some((place, source.process(space)?)))
            .collect();
        (!processes.is_empty()).then(|| Prior {
            space: space.clone(),
            sources: sources.to_vec(),
            processes,
        })
    }

    pub(super) fn is_of(&self, space: &Space, sources: &[Arc<SharedSource>]) -> bool {
        let sources = &sources[..sources.len().min(MOST_SOURCES)];
        let mut both = self.sources.iter().zip(sources);
        self.sources.len() == sources.len()
            && both.all(|(one, other)| Arc::ptr_eq(one, other) || one.is_same(other))
            && self.space == *space
    }

    /// The mean, weighted for a study that has made these observations.
    pub fn mean(self: &Arc<Self>, view: &View<'_>, seen: &[Observation], scatter: Scatter) -> Mean {
        let points: Vec<Point> = seen.iter().map(|one| one.point.clone()).collect();
        let own = measures(view);
        let noise = scatter.squares / scatter.degrees.max(1.0);
        let logs: Vec<f64> = self
            .processes
            .iter()
            .map(|(source, process)| {
                let distance = self.sources[*source].source.distance(&own);
                let ranked = agreement(seen, &process.expect(&points), noise);
                -0.5 * distance * distance + RANKS * ranked
            })
            .collect();
        let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut weights: Vec<f64> = logs
            .iter()
            .map(|log| (log - highest).exponential())
            .collect();
        let sum: f64 = weights.iter().sum();
        for weight in &mut weights {
            *weight /= sum;
        }
        Mean {
            prior: Arc::clone(self),
            weights,
        }
    }
}

/// How far expected times rank points as the observed times do: from minus to plus the number of
/// points less one, of which at most [`MOST_RANKED`] count. Pairs whose difference may be noise
/// count less.
fn agreement(seen: &[Observation], expected: &[f64], noise: f64) -> f64 {
    let (mut sum, mut all) = (0.0, 0.0);
    for (place, (one, mean)) in seen.iter().zip(expected).enumerate() {
        for (other, other_mean) in seen.iter().zip(expected).take(place) {
            let difference = one.log_mean - other.log_mean;
            let doubt = noise * (1.0 / one.runs + 1.0 / other.runs);
            let weight = difference * difference / (difference * difference + 2.0 * doubt);
            if weight.is_finite() {
                all += weight;
                sum += weight * (difference * (mean - other_mean)).signum();
            }
        }
    }
    let points = (seen.len() as f64 - 1.0).min(MOST_RANKED);
    if all > 0.0 { points * sum / all } else { 0.0 }
}

/// A point that the studies of several users find faster than the default.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// The point.
    pub point: Point,
    /// The log of its elapsed over the default's, as other studies than those that ran it expect.
    pub log_ratio: f64,
    /// The users whose studies find it harmless.
    pub users: u64,
}

/// The mean of a prior: the log of a point's elapsed over the default's.
#[derive(Clone, Debug)]
pub struct Mean {
    prior: Arc<Prior>,
    /// The weights of the processes; they sum to 1.
    weights: Vec<f64>,
}

impl PartialEq for Mean {
    fn eq(&self, other: &Self) -> bool {
        self.weights == other.weights && self.prior.is_of(&other.prior.space, &other.prior.sources)
    }
}

impl Mean {
    /// The mean at these points.
    pub fn at(&self, points: &[Point]) -> Vec<f64> {
        let mut means = vec![0.0; points.len()];
        for ((_, process), weight) in self.prior.processes.iter().zip(&self.weights) {
            for (mean, expected) in means.iter_mut().zip(process.expect(points)) {
                *mean += weight * expected;
            }
        }
        means
    }

    pub(super) fn at_all(&self, observations: &[Observation]) -> Vec<f64> {
        let points: Vec<Point> = observations.iter().map(|one| one.point.clone()).collect();
        self.at(&points)
    }

    /// The predictions at these points. The variance includes that between sources.
    fn predict(&self, points: &[Point]) -> Vec<Prediction> {
        let each: Vec<(f64, Vec<Prediction>)> = self
            .prior
            .processes
            .iter()
            .zip(&self.weights)
            .map(|((_, process), weight)| (*weight, process.predict(points)))
            .collect();
        (0..points.len())
            .map(|place| mixture(each.iter().map(|(weight, all)| (*weight, all[place]))))
            .collect()
    }

    /// The most promising of the points that sources ran and of `others`, with its log ratio to the
    /// default. It must be faster even by the pessimistic end of its prediction, and at least two
    /// sources must say so.
    pub fn promising(
        &self,
        others: &[Point],
        admits: impl Fn(&Point) -> bool,
    ) -> Option<(Point, f64)> {
        let known = self
            .prior
            .processes
            .iter()
            .flat_map(|(_, process)| &process.points)
            .chain(others);
        let mut points: Vec<Point> = known.filter(|point| admits(point)).cloned().collect();
        points.sort();
        points.dedup();
        let predictions = self.predict(&points);
        predictions
            .into_iter()
            .zip(points)
            .filter(|(one, point)| {
                one.end(DOUBT) < -LEAST_PROMISE && self.agree(point, |log_ratio| log_ratio < 0.0)
            })
            .min_by(|(a, point), (b, other)| {
                let by = a.end(DOUBT).total_cmp(&b.end(DOUBT));
                by.then_with(|| point.cmp(other))
            })
            .map(|(prediction, point)| (point, prediction.mean))
    }

    /// The setting that the site's users have in common: the most promising point that the study of
    /// one user ran and found faster than the default, as those of all others see it. None unless the studies of [`USERS`] other users
    /// each find it no slower than the default, even by the pessimistic end of what they predict,
    /// and all others together find it faster. The study that ran a point is no judge of it, because
    /// the best of many noisy runs looks better than it is.
    pub fn common(&self, admits: impl Fn(&Point) -> bool) -> Option<Common> {
        let mut points: Vec<(&Point, u32)> = self
            .witnesses()
            .flat_map(|(_, user, process)| process.found_faster().map(move |one| (one, user)))
            .filter(|(point, _)| admits(point))
            .collect();
        points.sort();
        points.dedup();
        let asked: Vec<Point> = points.iter().map(|(point, _)| (*point).clone()).collect();
        let said: Vec<(f64, u32, Vec<Prediction>)> = self
            .witnesses()
            .map(|(weight, user, process)| (weight, user, process.predict(&asked)))
            .collect();
        let judged = points
            .into_iter()
            .enumerate()
            .filter_map(|(place, (point, of))| {
                let judges = said.iter().filter(|(_, user, _)| *user != of);
                let judges: Vec<(f64, u32, Prediction)> = judges
                    .map(|(weight, user, all)| (*weight, *user, all[place]))
                    .collect();
                let harmless = judges.iter().filter(|(.., one)| one.end(DOUBT) < 0.0);
                let users: BTreeSet<u32> = harmless.map(|(_, user, _)| *user).collect();
                let together = pooled(judges.into_iter().map(|(weight, _, one)| (weight, one)));
                let is_common = users.len() >= USERS && together.end(DOUBT) < -LEAST_PROMISE;
                is_common.then_some((together, point, users.len() as u64))
            });
        let best = judged.min_by(|(a, one, _), (b, other, _)| {
            let by = a.end(DOUBT).total_cmp(&b.end(DOUBT));
            by.then_with(|| one.cmp(other))
        })?;
        let (together, point, users) = best;
        Some(Common {
            point: point.clone(),
            log_ratio: together.mean,
            users,
        })
    }

    /// The processes of sources whose user is known, with their weights.
    fn witnesses(&self) -> impl Iterator<Item = (f64, u32, &Process)> {
        let each = self.prior.processes.iter().zip(&self.weights);
        each.filter_map(|((source, process), weight)| {
            let user = self.prior.sources[*source].user?;
            Some((*weight, user, process.as_ref()))
        })
    }

    /// The points with the lowest means among those that sources ran, at most `most`, however
    /// uncertain.
    pub fn best(&self, most: usize) -> Vec<Point> {
        let known = self
            .prior
            .processes
            .iter()
            .flat_map(|(_, process)| &process.points);
        let mut points: Vec<Point> = known.cloned().collect();
        points.sort();
        points.dedup();
        let mut ranked: Vec<(f64, Point)> = self.at(&points).into_iter().zip(points).collect();
        ranked.sort_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| one.cmp(other)));
        ranked.truncate(most);
        ranked.into_iter().map(|(_, point)| point).collect()
    }

    /// Returns true if several sources say that a point is faster than the default.
    pub fn is_promised(&self, point: &Point) -> bool {
        self.agree(point, |log_ratio| log_ratio < -LEAST_PROMISE)
    }

    /// Returns true if several sources say that a point's log ratio to the default exceeds `most`.
    pub fn is_terrible(&self, point: &Point, most: f64) -> bool {
        let far = |one: &Prediction| one.end(-DOUBT) > most;
        self.agree(point, |log_ratio| log_ratio > most)
            && self.predict(std::slice::from_ref(point)).iter().all(far)
    }

    /// Returns true if several sources that count agree: no source is believed alone.
    fn agree(&self, point: &Point, says: impl Fn(f64) -> bool) -> bool {
        let points = std::slice::from_ref(point);
        let each = self.prior.processes.iter().zip(&self.weights);
        let counted = each.filter(|(_, weight)| **weight >= COUNTED);
        let say = counted.filter(|((_, process), _)| says(process.expect(points)[0]));
        say.count() >= AGREEING
    }

    /// The number of sources that count.
    pub fn counted(&self) -> u64 {
        self.weights
            .iter()
            .filter(|weight| **weight >= COUNTED)
            .count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::ensemble::Ensemble;
    use crate::surrogate::posterior::Modelled;
    use crate::testing::{grid, history, tested};

    /// Twelve points of a valley whose bottom is at level 5 of 7, relative to the default at level
    /// 0; upside down if `height` is negative.
    fn valley(space: &Space, height: f64, points: usize) -> History {
        let time =
            |level: u32| 100.0 * (height * 0.05 * (f64::from(level) - 5.0).powi(2)).exponential();
        let all = (0..7).flat_map(|one| [(one, 0), (one, 3)]).take(points);
        let tested = (1..).zip(all).map(|(ordinal, (level, other))| {
            let time = time(level) * (1.0 + 0.01 * f64::from(other));
            tested(space, &[level, other], &[time, 1.02 * time], ordinal)
        });
        history(tested.collect(), 20, 24)
    }

    fn shared(source: &Source) -> Arc<SharedSource> {
        Arc::new(source.clone().into())
    }

    fn mean_of(space: &Space, sources: &[Source], own: &History) -> Mean {
        let sources: Vec<_> = sources.iter().map(shared).collect();
        let prior = Arc::new(Prior::new(space, &sources).unwrap());
        let view = Modelled::new(View::new(space, own, &[]), None);
        view.on(Some(&prior)).expected().unwrap().clone()
    }

    /// How far a study leans on a source after some runs of its own.
    fn lean(space: &Space, source: &Source, own: &History) -> f64 {
        let prior = Arc::new(Prior::new(space, &[shared(source)]).unwrap());
        let view = Modelled::new(View::new(space, own, &[]), None).on(Some(&prior));
        view.posterior().unwrap().surrogate.lean()
    }

    fn first_runs(space: &Space, slow: f64) -> History {
        let own = [
            ([0, 0], 100.0),
            ([5, 0], slow),
            ([3, 3], 0.5 * (100.0 + slow)),
        ];
        let own = own.map(|(levels, time)| tested(space, &levels, &[time, 1.01 * time], 1));
        history(own.into(), 2, 6)
    }

    #[test]
    fn a_study_that_knows_little_is_no_source() {
        let space = grid(&[7, 7]);
        assert!(Source::of(&space, &valley(&space, 1.0, 5)).is_none());
        let source = Source::of(&space, &valley(&space, 1.0, 14)).unwrap();
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(serde_json::from_str::<Source>(&text).unwrap(), source);
        let mut without_default = valley(&space, 1.0, 14);
        without_default.tested.remove(0);
        assert!(Source::of(&space, &without_default).is_none());
    }

    /// Attack (sharing): What other studies promise is the slowest here, or disputed.
    /// Outcome: At most two such runs are made, and then the study's own decide; no names are told.
    #[test]
    fn what_sources_agree_on_is_promised_and_what_they_dispute_is_not() {
        let space = grid(&[7, 7]);
        let source = |height| Source::of(&space, &valley(&space, height, 14)).unwrap();
        let own = history(vec![tested(&space, &[0, 0], &[50.0; 4], 0)], 0, 4);
        let any = |_: &Point| true;
        let mean = mean_of(&space, &[source(1.0), source(0.8)], &own);
        let (point, log_ratio) = mean.promising(&[], any).unwrap();
        assert_eq!(point.0[0], 5);
        assert!((-1.4..-0.8).contains(&log_ratio), "{log_ratio}");
        let disputed = mean_of(&space, &[source(1.0), source(-1.0)], &own);
        assert_eq!(disputed.promising(&[], any), None);
        // Upside down, the bottom takes several times as long as the default. Two sources have to
        // say so.
        let worst = Point(vec![5, 0]);
        let two = mean_of(&space, &[source(-1.0), source(-0.9)], &own);
        assert!(two.is_terrible(&worst, 2.0_f64.logarithm()));
        let one = mean_of(&space, &[source(-1.0)], &own);
        assert!(!one.is_terrible(&worst, 2.0_f64.logarithm()));
    }

    /// The mean of a study that has only run the default, from sources of these users.
    fn of_users(space: &Space, sources: &[(f64, u32)]) -> Mean {
        let own = history(vec![tested(space, &[0, 0], &[50.0; 4], 0)], 0, 4);
        let shared = sources.iter().map(|(height, user)| {
            let source = Source::of(space, &valley(space, *height, 14)).unwrap();
            Arc::new(SharedSource::of_user(source, *user))
        });
        let prior = Arc::new(Prior::new(space, &shared.collect::<Vec<_>>()).unwrap());
        let view = Modelled::new(View::new(space, &own, &[]), None);
        view.on(Some(&prior)).expected().unwrap().clone()
    }

    #[test]
    fn what_the_studies_of_four_users_find_fast_they_have_in_common() {
        let (space, any) = (grid(&[7, 7]), |_: &Point| true);
        let common = |sources: &[(f64, u32)]| of_users(&space, sources).common(any);
        let four = [(1.0, 1), (0.9, 2), (0.8, 3), (1.1, 4)];
        let found = common(&four).unwrap();
        // The bottom of the valley, five levels from the default.
        assert_eq!((found.point.0[0], found.users), (5, 3));
        assert!((-1.4..-0.8).contains(&found.log_ratio), "{found:?}");
        let not_there = |point: &Point| point.0[0] != 5;
        let next = of_users(&space, &four).common(not_there).unwrap();
        assert_ne!(next.point.0[0], 5);
        // A fourth who finds it slow leaves two witnesses for each of the others.
        let disputed = [(1.0, 1), (0.9, 2), (0.8, 3), (-1.0, 4)];
        assert_eq!(common(&disputed), None);
    }

    /// Attack (sharing): One user's many studies, or a few users who collude, vouch for a
    /// parametrization that is slow elsewhere.
    /// Outcome: They are one witness, or too few; nothing runs in one step on their word.
    #[test]
    fn one_user_with_many_studies_is_one_witness_and_three_are_too_few() {
        let (space, any) = (grid(&[7, 7]), |_: &Point| true);
        let one_user = [1.0, 0.9, 0.8, 1.1, 0.7, 0.95, 1.05, 0.85].map(|height| (height, 1));
        assert_eq!(of_users(&space, &one_user).common(any), None);
        let three = [(1.0, 1), (0.9, 2), (0.8, 3), (1.1, 1), (0.7, 2), (0.95, 3)];
        assert_eq!(of_users(&space, &three).common(any), None);
        // A source whose user is not known is no witness.
        let own = history(vec![tested(&space, &[0, 0], &[50.0; 4], 0)], 0, 4);
        let source = |height| Source::of(&space, &valley(&space, height, 14)).unwrap();
        let unknown = [1.0, 0.9, 0.8, 1.1, 0.7].map(source);
        assert_eq!(mean_of(&space, &unknown, &own).common(any), None);
    }

    /// Attack (sharing): What other studies promise is the slowest here, or disputed.
    /// Outcome: At most two such runs are made, and then the study's own decide; no names are told.
    #[test]
    fn a_few_runs_bear_a_prior_out_or_drop_it() {
        let space = grid(&[7, 7]);
        let source = Source::of(&space, &valley(&space, 1.0, 14)).unwrap();
        let (alike, opposite) = (first_runs(&space, 30.0), first_runs(&space, 300.0));
        let (borne_out, dropped) = (
            lean(&space, &source, &alike),
            lean(&space, &source, &opposite),
        );
        assert!(borne_out > 0.6, "{borne_out}");
        assert!(dropped < 0.2, "{dropped}");
    }

    #[test]
    fn those_who_measure_alike_weigh_more_and_then_those_who_rank_alike() {
        let space = grid(&[7, 7]);
        let mut known = [valley(&space, 1.0, 14), valley(&space, -1.0, 14)];
        for (known, bytes) in known.iter_mut().zip([1e9, 1e6]) {
            let measured = BTreeMap::from([("bytes".to_owned(), bytes)]);
            known.tested[0].record_measures(&measured);
        }
        let sources = known.map(|known| Source::of(&space, &known).unwrap());
        let mut own = history(vec![tested(&space, &[0, 0], &[50.0; 4], 0)], 0, 4);
        own.tested[0].record_measures(&BTreeMap::from([("bytes".to_owned(), 1.1e6)]));
        let weights = mean_of(&space, &sources, &own).weights;
        assert!(weights[1] > 0.9, "{weights:?}");
        // The study's own runs contradict the source, one after the other.
        for (ordinal, level, time) in [
            (5, 5, 15.0),
            (6, 3, 22.0),
            (7, 4, 17.0),
            (8, 2, 30.0),
            (9, 6, 18.0),
        ] {
            own.tested
                .push(tested(&space, &[level, 3], &[time], ordinal));
        }
        let weights = mean_of(&space, &sources, &own).weights;
        assert!(weights[0] > 0.7, "{weights:?}");
    }

    #[test]
    fn a_member_that_does_not_lean_is_what_it_is_without_a_prior() {
        let space = grid(&[7, 7]);
        let own = first_runs(&space, 30.0);
        let view = View::new(&space, &own, &[]);
        let known: Vec<(&Point, &Known)> = view.iter().collect();
        let observed = observe(&known, &view.default);
        let (observations, scatter) = (&observed.observations, observed.scatter);
        let source = Source::of(&space, &valley(&space, 1.0, 14)).unwrap();
        let mean = Arc::new(mean_of(&space, &[source], &own));
        let alone = Ensemble::fit(&space, observations, scatter).unwrap();
        let on = Ensemble::fit_on(&space, &observed, Some(mean)).unwrap();
        let far = Point(vec![6, 6]);
        assert_eq!(alone.lean(), 0.0);
        assert!(on.lean() > 0.0);
        assert_ne!(alone.predict(&far), on.predict(&far));
        // A prediction does not depend on the other points that are asked for.
        let points = [far.clone(), Point(vec![5, 0])];
        let (each, all) = (on.predict(&far), on.predict_all(&points));
        assert_eq!(each, all[0]);
        let expected = on.expect_all(&points);
        for (expected, predicted) in expected.iter().zip(&all) {
            assert!((expected - predicted.mean).abs() < 1e-9);
        }
    }

    #[test]
    fn a_source_is_fitted_once_for_all_who_begin_from_it() {
        let (space, other) = (grid(&[7, 7]), grid(&[7, 6]));
        let source = shared(&Source::of(&space, &valley(&space, 1.0, 12)).unwrap());
        let process = |space: &Space| {
            let prior = Prior::new(space, &[Arc::clone(&source)]).unwrap();
            Arc::clone(&prior.processes[0].1)
        };
        assert!(Arc::ptr_eq(&process(&space), &process(&space)));
        // In a restricted space it is another process.
        assert_eq!(process(&other).points.len(), process(&space).points.len());
        assert!(!Arc::ptr_eq(&process(&other), &process(&space)));
    }
}
