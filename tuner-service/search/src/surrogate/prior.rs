//! A prior mean from other studies of the space: what each of them learnt of points relative to its
//! own default. Sources that rank the study's points as its runs do weigh more (as in the
//! ranking-weighted ensemble of M. Feurer, B. Letham, F. Hutter, E. Bakshy, "Practical transfer
//! learning for Bayesian optimization", 2018). Before the study has runs, sources whose runs have
//! similar measures weigh more.
//!
//! The study's processes lean on this mean by a factor from 0 to 1, one more hyperparameter that
//! the likelihood of the study's own runs decides. A prior that these runs contradict has therefore
//! no weight after a few of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::common::{self, Common, DOUBT, LEAST_PROMISE, Witness};
use super::source::{Process, SharedSource, measures};
use super::{Observation, Prediction, Scatter, mixture};
use crate::history::by_point::View;
use crate::math::Portable;
use io_autotune_model::space::{Point, Space};

/// The most sources of a prior. Each is a process, which is fitted and asked for predictions.
pub const MOST_SOURCES: usize = 8;
/// How far a process leans on the mean, with prior probabilities. Without a prior it leans by 0.
pub(super) const LEANS: [(f64, f64); 5] = [
    (0.0, 0.4),
    (0.25, 0.15),
    (0.5, 0.15),
    (0.75, 0.15),
    (1.0, 0.15),
];
/// The log weight that a source gains per point if it ranks all points as the study does.
const RANKS: f64 = 0.6;
/// The most points that count in the ranking.
const MOST_RANKED: f64 = 20.0;
/// The number of sources that must agree on it.
const AGREEING: usize = 2;
/// The weight below which sources are not counted.
const COUNTED: f64 = 0.05;
/// How far the study must lean on the mean before the mean replaces design points and steps.
pub const TRUSTED: f64 = 0.45;

/// Sources with their processes.
#[derive(Debug)]
pub struct Prior {
    space: Space,
    sources: Vec<Arc<SharedSource>>,
    /// The processes, with their places among the sources.
    processes: Vec<(usize, Arc<Process>)>,
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
                let distance = self.sources[*source].distance(&own);
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

    /// The setting that the site's users [have in common](common), among the points that may run.
    pub fn common(&self, admits: impl Fn(&Point) -> bool) -> Option<Common> {
        common::of(&self.witnesses(), admits).map(|judged| judged.common)
    }

    /// Those of these points that the site's users [have in common](common::all).
    pub fn common_among(&self, points: &[Point]) -> BTreeSet<Point> {
        let judged = common::all(&self.witnesses(), |point| points.contains(point));
        judged.into_iter().map(|one| one.common.point).collect()
    }

    /// The processes of sources whose user is known, with their weights.
    fn witnesses(&self) -> Vec<Witness<'_>> {
        let each = self.prior.processes.iter().zip(&self.weights);
        let known = each.filter_map(|((source, process), weight)| {
            let user = self.prior.sources[*source].user()?;
            Some(Witness {
                source: *source,
                user,
                weight: *weight,
                process,
            })
        });
        known.collect()
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
    use crate::history::History;
    use crate::history::by_point::Known;
    use crate::surrogate::cache::SurrogateCache;
    use crate::surrogate::ensemble::Ensemble;
    use crate::surrogate::observed::observe;
    use crate::surrogate::posterior::Modelled;
    use crate::surrogate::source::Source;
    use crate::testing::{grid, history, tested, valley};
    use std::collections::BTreeMap;

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

    /// A decision asks for both, one after the other.
    #[test]
    fn a_fit_on_a_prior_and_one_without_are_both_kept() {
        let space = grid(&[7, 7]);
        let source = Source::of(&space, &valley(&space, 1.0, 14)).unwrap();
        let prior = Arc::new(Prior::new(&space, &[shared(&source)]).unwrap());
        let (own, cache) = (first_runs(&space, 60.0), SurrogateCache::default());
        for prior in [Some(&prior), None] {
            let view = Modelled::new(View::new(&space, &own, &[]), Some(&cache)).on(prior);
            let bounds = view.fitted().unwrap().bounds();
            bounds.measured.set(1.0).unwrap();
        }
        let kept = |prior: Option<&Arc<Prior>>| {
            let view = Modelled::new(View::new(&space, &own, &[]), Some(&cache)).on(prior);
            view.fitted().unwrap().bounds().measured.get().copied()
        };
        for _ in 0..2 {
            assert_eq!([kept(None), kept(Some(&prior))], [Some(1.0), Some(1.0)]);
        }
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
        let mean = of_users(&space, &four);
        let both = [found.point.clone(), space.default_point()];
        assert_eq!(mean.common_among(&both), [found.point].into());
        // A fourth who finds it slow leaves two witnesses for each of the others.
        let disputed = [(1.0, 1), (0.9, 2), (0.8, 3), (-1.0, 4)];
        assert_eq!(common(&disputed), None);
    }

    /// Attack (sharing): One user's many studies, or a few users who collude, vouch for a
    /// parametrization that is slow elsewhere.
    /// Outcome: They are one witness, or too few; nothing runs in one step on their word, in the
    /// first run or later.
    #[test]
    fn one_user_with_many_studies_is_one_witness_and_three_are_too_few() {
        let (space, any) = (grid(&[7, 7]), |_: &Point| true);
        let one_user = [1.0, 0.9, 0.8, 1.1, 0.7, 0.95, 1.05, 0.85].map(|height| (height, 1));
        let fast = [Point(vec![5, 0])];
        let vouched = |sources: &[(f64, u32)]| {
            let mean = of_users(&space, sources);
            (mean.common(any), mean.common_among(&fast))
        };
        assert_eq!(vouched(&one_user), (None, BTreeSet::new()));
        let three = [(1.0, 1), (0.9, 2), (0.8, 3), (1.1, 1), (0.7, 2), (0.95, 3)];
        assert_eq!(vouched(&three), (None, BTreeSet::new()));
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
