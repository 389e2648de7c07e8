//! The main method: a genetic algorithm whose candidate children are ranked by a surrogate.
//!
//! The published algorithm runs each child that it draws, and repeats it until its standard error
//! is small, however bad it is. Here a few hundred children of the best parametrizations compete
//! with the known ones for the highest
//!
//! ```text
//! value = ok * improvement * PROFITING - excess - LOST * (1 - ok)
//! ```
//!
//! `ok` is the probability that the run is not lost (`surrogate/failures.rs`). `improvement` is the
//! augmented expected improvement of log elapsed (D. Huang, T. T. Allen, W. I. Notz, N. Zeng,
//! "Global optimization of stochastic black-box systems via sequential kriging meta-models", 2006,
//! equation 11). `PROFITING` later runs gain it: an application lives longer than its search.
//! `excess` is this run's expected time above the best known, because every run is a user's job.
//!
//! With `explores_outwards`, while there is a regret budget, only points within reach of harmless
//! runs may run (`reach.rs`), and only if the upper bound of their prediction is
//! [admitted]. If nothing new passes, the quickest new point within reach
//! that the budget allows is run. The method then [alternates](Method::alternates): most runs
//! between trials profit from what has been found.
//!
//! [admitted]: crate::study::settings::RegretSettings::admitted
//!
//! If a run would exceed the study's [regret bound](crate::study::settings::RegretSettings), a
//! cheaper informative one runs; without any, the one with the most improvement for its cost.
//!
//! While nothing is known, runs in flight are spread over the space within the regret bound; later
//! each is chosen as if those before it had ended as predicted.

use io_autotune_search::math::{Portable, normal_cdf, normal_pdf};
use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use io_autotune_model::reason::Reason;
use io_autotune_model::space::{Point, Space, levels_of};
use io_autotune_search::checks::{MAX_DESIGN_POINTS, SettingsError, whole};
use io_autotune_search::history::by_point::Known;
use io_autotune_search::neighbourhood::{self, step};
use io_autotune_search::regret;
use io_autotune_search::regret::Estimator;
use io_autotune_search::surrogate::Prediction;
use io_autotune_search::surrogate::posterior::{Modelled, Posterior};
use io_autotune_search::surrogate::prior::{Mean, TRUSTED};
use io_autotune_search::{Method, MethodContext, Proposal};
use serde::{Deserialize, Serialize};

use crate::search::reach::Reach;

const CHILDREN: usize = 300;
/// The number of best points whose single changes are candidates too.
const CLIMBED: usize = 3;
/// The price of a lost run, in runs: its time is spent, and after somebody has noticed, its job has
/// to run once more.
const LOST: f64 = 30.0;

/// The number of points with the best predictions from other studies, which are candidates too.
const PROMISED: usize = 16;

/// The number of runs that profit from what is found. With few, the search of a rugged response
/// keeps repeating the best known point, because each new point looks slow; with 300 or 3000 it
/// finds the same.
const PROFITING: f64 = 3000.0;

/// The number of standard deviations from the mean of a prediction to its upper bound.
const DOUBT: f64 = 1.0;

/// The minimum share of the best improvement that makes a cheaper candidate informative.
const INFORMATIVE: f64 = 0.25;
/// Added to the cost when improvement is divided by it, so that a nearly free point is not
/// preferred to a free one.
const NEARLY_FREE: f64 = 0.05;
/// The number of random points of which the one farthest from all runs in flight is taken.
const SPREAD: usize = 64;

/// The settings of the method `surrogate-genetic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SurrogateGenetic {
    /// The minimum size of the Latin hypercube, which can be small because the surrogate learns
    /// from every run. Each category runs once, up to the site's `design_points`.
    pub design_points: u32,
    /// True if a process on lost runs weighs the promised improvement of a point, and prices the
    /// loss of its run.
    pub models_failures: bool,
    /// True if a study with a regret budget explores outwards (`reach.rs`), so that the upper bound
    /// of a prediction decides what is too slow, and most runs between trials get the best known.
    pub explores_outwards: bool,
}

impl Default for SurrogateGenetic {
    fn default() -> Self {
        SurrogateGenetic {
            design_points: 3,
            models_failures: true,
            explores_outwards: true,
        }
    }
}

impl SurrogateGenetic {
    /// Returns an error for the first setting that cannot be used.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        let setting = "surrogate-genetic.design_points";
        whole(setting, self.design_points, 2, MAX_DESIGN_POINTS)
    }
}

impl Method for SurrogateGenetic {
    fn ranking(&self, view: &Modelled<'_>) -> Vec<Point> {
        let eligible = |point: &&Point| view.get(point).is_some_and(Known::is_eligible);
        let fitted = view.fitted();
        fitted
            .map(|fitted| fitted.ranked.iter())
            .into_iter()
            .flatten()
            .filter(eligible)
            .cloned()
            .collect()
    }

    /// The surrogate learns from every run, but each category must run once.
    fn design_points(&self, space: &Space, usual: u32) -> u32 {
        let parameters = space.parameters().iter();
        let categories = parameters.filter(|parameter| !parameter.is_ordered());
        let most = categories.map(levels_of).max().unwrap_or(0);
        self.design_points.max(most.min(usual))
    }

    fn alternates(&self) -> bool {
        self.explores_outwards
    }

    fn estimator(&self) -> Estimator {
        Estimator::Surrogate
    }

    /// A quick answer: false while the default, which is a candidate too, has run and could run
    /// again.
    fn is_exhausted(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> bool {
        let can_run = |known: &Known| !known.logs().is_empty() && known.in_flight == 0;
        let default_can = context.view.get(&context.view.default).is_some_and(can_run)
            && context.regret.design_most >= 1.0
            && context.space().points(1).is_none();
        !default_can && self.propose(context, rng) == Proposal::Exhausted
    }

    fn admits(&self, context: &MethodContext<'_>, point: &Point) -> bool {
        let Some(model) = self.model(context) else {
            return !self.is_careful(context) || context.is_known_elsewhere(point);
        };
        let prediction = model.posterior.surrogate.predict(point);
        // A point that ran well in an earlier epoch, or that experts advise, is not unknown, so the
        // mean of its prediction decides.
        let is_near = if context.is_known_elsewhere(point) {
            prediction.mean <= model.most
        } else {
            let within = |reach: &Reach<'_>| reach.contains(point);
            !model.is_far(prediction) && model.reach.as_ref().is_none_or(within)
        };
        is_near && fits(context, model.posterior, prediction)
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let Some(model) = self.model(context) else {
            let blind = (!self.is_careful(context)).then(|| spread(context, rng));
            return blind
                .flatten()
                .unwrap_or_else(|| context.nothing_to_go_by());
        };
        let mut candidates = model.candidates(rng);
        if candidates.len() == 1 && context.space().points(1).is_some() {
            return Proposal::Exhausted;
        }
        if let Some(reach) = &model.reach {
            reach.retain(&mut candidates);
        }
        let lean = model.posterior.surrogate.lean();
        if let Some(expected) = context.view.expected().filter(|_| lean > 0.0) {
            let promised = expected.best(PROMISED);
            // In one step only if the epoch's own runs have confirmed the other studies.
            let far = match lean >= TRUSTED {
                true => expected.common_among(&promised),
                false => BTreeSet::new(),
            };
            let may_run = |point: &Point| model.is_within_reach(point) || far.contains(point);
            for point in promised.into_iter().filter(may_run) {
                candidates.entry(point).or_insert(None);
            }
        }
        candidates.retain(|point, _| model.is_free(point));
        let (points, origins): (Vec<Point>, Vec<Option<Origin>>) = candidates.into_iter().unzip();
        let predictions = model.posterior.surrogate.predict_all(&points);
        let successes = if self.models_failures {
            context.view.succeed(&points)
        } else {
            vec![1.0; points.len()]
        };
        let mut candidates: Vec<Candidate> = points
            .into_iter()
            .zip(origins)
            .zip(predictions)
            .zip(successes)
            .map(|(((point, origin), prediction), ok)| {
                let improvement = ok * model.improvement(prediction);
                let value = improvement * PROFITING - model.excess(prediction) - LOST * (1.0 - ok);
                Candidate {
                    point,
                    origin,
                    prediction,
                    improvement,
                    value,
                }
            })
            .collect();
        candidates.retain(|candidate| {
            !context.held || !regret::may_regret(model.posterior, candidate.prediction)
        });
        let nearest = model.nearest_beyond(context, &candidates);
        candidates.retain(|candidate| {
            nearest.as_ref().map_or_else(
                || !model.is_far(candidate.prediction),
                |nearest| candidate.point == *nearest,
            )
        });
        let count = candidates.len() as u64;
        match model.choose(context, candidates) {
            Some(candidate) => Proposal::Run {
                point: candidate.point.clone(),
                reason: model.reason(candidate, count),
            },
            None => context.nothing_to_run(),
        }
    }
}

impl SurrogateGenetic {
    /// Returns true if runs must do no harm because they are users' jobs. A search on request has
    /// no regret budget, and there is nothing to harm where the default does not complete.
    fn is_careful(&self, context: &MethodContext<'_>) -> bool {
        let is_free = context.regret.drops_nothing() || context.view.default_never_completed();
        self.explores_outwards && !is_free
    }

    /// The model of the epoch. None before a run has counted.
    fn model<'a>(&self, context: &MethodContext<'a>) -> Option<Model<'a>> {
        let posterior = context.view.posterior()?;
        let times = |of_default: f64| match context.view.default_never_completed() {
            true => f64::INFINITY,
            false => posterior.default + of_default.logarithm(),
        };
        let careful = self.is_careful(context);
        Some(Model {
            view: context.view,
            posterior,
            most: times(context.regret.admitted()),
            doubt: if careful { DOUBT } else { 0.0 },
            reach: careful.then(|| Reach::new(context.view, times(context.regret.design_most))),
        })
    }
}

fn fits(context: &MethodContext<'_>, posterior: &Posterior, prediction: Prediction) -> bool {
    let costs =
        regret::may_regret(posterior, prediction) && !context.view.default_never_completed();
    !costs || !context.held && regret::cost(posterior, prediction) <= context.regret_left
}

/// The proposal while nothing is known: of some random points, the one farthest from all runs in
/// flight. Each counts as one run of the default, so that the regret bound limits them.
fn spread(context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Option<Proposal> {
    let view = context.view;
    let flights = view.iter().filter(|(_, known)| known.in_flight > 0);
    let (mut running, mut regret_so_far) = (vec![&view.default], 0.0);
    for (point, known) in flights.filter(|(point, _)| **point != view.default) {
        running.push(point);
        regret_so_far += known.in_flight as f64;
    }
    // If nothing is in flight, waiting is no use. Failures mean that something is wrong.
    let waits = view.iter().any(|(_, known)| known.in_flight > 0);
    let failed = view.iter().any(|(_, known)| known.failed > 0);
    if !waits || failed || regret_so_far + 1.0 > context.regret_left {
        return None;
    }
    let space = view.space;
    let metric = space.metric();
    let apart = |point: &Point| {
        let distances = running.iter().map(|other| metric.distance(point, other));
        distances.fold(f64::INFINITY, f64::min)
    };
    (0..SPREAD)
        .map(|_| space.draw(rng))
        .filter(|point| context.is_untested(point))
        .map(|point| (apart(&point), point))
        .max_by(|(a, point), (b, other)| a.total_cmp(b).then_with(|| other.cmp(point)))
        .map(|(_, point)| Proposal::Run {
            point,
            reason: Reason::Drawn,
        })
}

struct Candidate {
    point: Point,
    origin: Option<Origin>,
    prediction: Prediction,
    /// The expected improvement; it is zero for a run that is lost.
    improvement: f64,
    value: f64,
}

struct Origin {
    parents: [Point; 2],
    mutated: Vec<String>,
}

struct Model<'a> {
    view: &'a Modelled<'a>,
    posterior: &'a Posterior,
    /// The slowest log elapsed that an exploring run may have.
    most: f64,
    /// The number of standard deviations above the mean of a prediction that must not exceed
    /// `most`.
    doubt: f64,
    reach: Option<Reach<'a>>,
}

impl<'a> Model<'a> {
    fn is_far(&self, prediction: Prediction) -> bool {
        prediction.end(self.doubt) > self.most
    }

    /// The quickest new point by its prediction, if nothing new is near enough and this point
    /// [fits].
    ///
    /// After one terrible run beside the default the process's mean lies between the two, so that
    /// all new points look far, even those within reach: the search would end with its second
    /// point.
    fn nearest_beyond(
        &self,
        context: &MethodContext<'_>,
        candidates: &[Candidate],
    ) -> Option<Point> {
        self.reach.as_ref()?;
        let new = || {
            let untested = |candidate: &&Candidate| context.is_untested(&candidate.point);
            candidates.iter().filter(untested)
        };
        if new().any(|candidate| !self.is_far(candidate.prediction)) {
            return None;
        }
        let fitting = new().filter(|candidate| fits(context, self.posterior, candidate.prediction));
        highest(fitting, |candidate| -candidate.prediction.mean).map(|one| one.point.clone())
    }

    fn is_within_reach(&self, point: &Point) -> bool {
        let reach = self.reach.as_ref();
        reach.is_none_or(|reach| reach.contains(point))
    }

    fn is_free(&self, point: &Point) -> bool {
        let free = |known: &Known| known.in_flight == 0 && !known.is_quarantined();
        self.view.get(point).is_none_or(free)
    }

    /// The candidate with the highest value, if it [fits], or the highest one that fits among the
    /// informative ones, or else the one with the most improvement for its cost.
    fn choose(&self, context: &MethodContext<'_>, candidates: Vec<Candidate>) -> Option<Candidate> {
        let fits = |candidate: &Candidate| fits(context, self.posterior, candidate.prediction);
        let best = highest(candidates.iter(), |candidate| candidate.value)?;
        let least = INFORMATIVE * best.improvement;
        let informative = candidates
            .iter()
            .filter(|candidate| fits(candidate) && candidate.improvement >= least);
        let valuable = if fits(best) {
            Some(best)
        } else {
            highest(informative, |candidate| candidate.value)
        };
        let chosen = valuable.or_else(|| {
            highest(candidates.iter(), |candidate| {
                let cost = regret::cost(self.posterior, candidate.prediction);
                candidate.improvement / (cost + NEARLY_FREE)
            })
        })?;
        let point = chosen.point.clone();
        candidates
            .into_iter()
            .find(|candidate| candidate.point == point)
    }

    fn candidates(&self, rng: &mut ChaCha8Rng) -> BTreeMap<Point, Option<Origin>> {
        let mut candidates = BTreeMap::new();
        let space = self.view.space;
        for _ in 0..CHILDREN {
            let (child, origin) = self.child(rng);
            let child = space.approach(&origin.parents[0], &space.canonical(child), rng);
            candidates.entry(child).or_insert(Some(origin));
        }
        for best in self.posterior.ranked.iter().take(CLIMBED) {
            for (parameter, near) in neighbourhood::single_changes(space, best, rng) {
                let origin = Origin {
                    parents: [best.clone(), best.clone()],
                    mutated: vec![parameter.name.clone()],
                };
                candidates.entry(near).or_insert(Some(origin));
            }
        }
        for known in &self.posterior.ranked {
            candidates.insert(known.clone(), None);
        }
        candidates
    }

    /// A child of two parents, each the better of two random points. Every level is a parent's; on
    /// average one parameter mutates, half the time by a step, half the time to any level.
    fn child(&self, rng: &mut ChaCha8Rng) -> (Point, Origin) {
        let ranked = &self.posterior.ranked;
        let pick = |rng: &mut ChaCha8Rng| {
            let drawn = [(); 2].map(|()| rng.random_range(0..ranked.len()));
            &ranked[drawn[0].min(drawn[1])]
        };
        let (one, other) = (pick(rng), pick(rng));
        let space = self.view.space;
        let parameters = space.parameters();
        let mut child = Point(
            one.0
                .iter()
                .zip(&other.0)
                .map(|(a, b)| if rng.random::<bool>() { *a } else { *b })
                .collect(),
        );
        let rate = 1.0 / parameters.len() as f64;
        let mut mutated = Vec::new();
        for (index, parameter) in parameters.iter().enumerate() {
            if rng.random::<f64>() >= rate {
                continue;
            }
            if rng.random::<bool>() {
                child.0[index] = rng.random_range(0..levels_of(parameter));
                mutated.push(parameter.name.clone());
            } else if let Some(index) = step(space, &mut child, rng) {
                mutated.push(parameters[index].name.clone());
            }
        }
        let parents = [one.clone(), other.clone()];
        (child, Origin { parents, mutated })
    }

    /// The expected time above the best known, in runs of the best known.
    fn excess(&self, prediction: Prediction) -> f64 {
        (prediction.mean - self.posterior.incumbent).exponential() - 1.0
    }

    /// The augmented expected improvement, which is reduced as far as the noise of a run hides it.
    fn improvement(&self, Prediction { mean, variance }: Prediction) -> f64 {
        let deviation = variance.sqrt();
        if deviation.is_nan() || deviation <= 0.0 {
            return 0.0;
        }
        let gap = self.posterior.incumbent - mean;
        let z = gap / deviation;
        let expected = gap * normal_cdf(z) + deviation * normal_pdf(z);
        let noise = self.posterior.surrogate.noise();
        expected * (1.0 - (noise / (variance + noise)).sqrt())
    }

    fn reason(&self, candidate: Candidate, candidates: u64) -> Reason {
        let Candidate {
            point,
            origin,
            prediction,
            ..
        } = candidate;
        let predicted = prediction.mean.exponential();
        let factor = prediction.variance.sqrt().exponential();
        let best = self.posterior.incumbent.exponential();
        let space = self.view.space;
        match origin {
            Some(origin) => Reason::Promising {
                parents: origin.parents.map(|parent| space.parametrization(&parent)),
                mutated: origin.mutated,
                candidates,
                predicted,
                factor,
                best,
            },
            None if self.view.get(&point).is_none() => Reason::Promised {
                studies: self.view.expected().map_or(0, Mean::counted),
                predicted: (prediction.mean - self.posterior.default).exponential(),
                users: None,
            },
            None => Reason::Repeat {
                number: self.view.get(&point).map_or(0, Known::runs) + 1,
                candidates,
                predicted,
                factor,
                best,
            },
        }
    }
}

/// The candidate with the highest rating; of equal ones the first point.
fn highest<'a>(
    candidates: impl Iterator<Item = &'a Candidate>,
    rating: impl Fn(&Candidate) -> f64,
) -> Option<&'a Candidate> {
    candidates
        .map(|candidate| (rating(candidate), candidate))
        .max_by(|(a, one), (b, other)| a.total_cmp(b).then_with(|| other.point.cmp(&one.point)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::study::settings::Settings;
    use crate::testing::{categories, grid, history, started, tested, with_context};
    use io_autotune_search::history::{History, Pending, Role};
    use io_autotune_search::regret::settings::RegretSettings;
    use rand::SeedableRng;

    #[test]
    fn the_design_has_as_many_points_as_there_are_categories() {
        let points = |space: &Space| SurrogateGenetic::default().design_points(space, 15);
        assert_eq!(points(&grid(&[9, 9])), 3);
        for (count, wanted) in [(2, 3), (5, 5), (40, 15)] {
            let mut parameters = grid(&[9]).parameters().to_vec();
            parameters.push(categories("kind", count));
            assert_eq!(points(&Space::new(parameters).unwrap()), wanted);
        }
    }

    /// The points of the first `runs` runs, all in flight at once, and the runs.
    fn blind(settings: &Settings, runs: usize) -> (Vec<Point>, Vec<Pending>) {
        let space = grid(&[6, 6, 3, 4]);
        let mut pending: Vec<Pending> = Vec::new();
        for _ in 0..runs {
            let next = crate::testing::suggest(&space, &History::default(), &pending, settings, 7);
            pending.push(started(&next));
        }
        let point = |run: &Pending| space.validate(&run.parametrization).unwrap();
        (pending.iter().map(point).collect(), pending)
    }

    fn outside(regret: RegretSettings) -> Settings {
        Settings {
            baseline_runs: 1,
            controls: false,
            exploring: 50,
            regret,
            ..Settings::default()
        }
    }

    #[test]
    fn while_nothing_is_known_runs_are_spread_as_far_as_they_may_lose() {
        let distinct = |points: &[Point]| points.iter().collect::<BTreeSet<_>>().len();
        let (points, _) = blind(&outside(RegretSettings::UNBOUNDED), 12);
        assert_eq!(distinct(&points), 12, "{points:?}");
        // First the default and new points up to the regret bound, then the default again.
        let bounded = RegretSettings {
            default_runs: 5.0,
            share: 0.0,
            ..RegretSettings::default()
        };
        let mut settings = outside(bounded);
        settings.surrogate_genetic.explores_outwards = true;
        let (points, _) = blind(&settings, 12);
        assert_eq!(distinct(&points), 1, "users' jobs explore nothing blindly");
        settings.surrogate_genetic.explores_outwards = false;
        let (points, pending) = blind(&settings, 12);
        assert_eq!(distinct(&points), 6, "{points:?}");
        assert!(pending[6..].iter().all(|run| run.role == Role::BestKnown));
    }

    /// The expected regret of the next run if this much regret is left; none if nothing is to run.
    fn chosen(context: &MethodContext<'_>, regret_left: f64) -> Option<f64> {
        let context = MethodContext {
            regret_left,
            ..*context
        };
        let Proposal::Run { point, .. } =
            SurrogateGenetic::default().propose(&context, &mut ChaCha8Rng::seed_from_u64(3))
        else {
            return None;
        };
        let posterior = context.view.posterior()?;
        Some(regret::cost(posterior, posterior.surrogate.predict(&point)))
    }

    #[test]
    fn a_run_that_would_pass_the_bound_gives_way_to_something_cheaper() {
        let space = grid(&[6, 6, 3, 4]);
        let settings = SurrogateGenetic::default();
        let (mut passing, mut gave_way) = (0, 0);
        for seed in 0..120 {
            let mut world = ChaCha8Rng::seed_from_u64(seed);
            let mut known = vec![tested(&space, &space.default_point().0, &[100.0; 4], 0)];
            for ordinal in 4..9 {
                let point = space.draw(&mut world);
                let time = 100.0 * 4.0_f64.power(world.random_range(-0.5..1.0));
                known.push(tested(&space, &point.0, &[time], ordinal));
            }
            let history = history(known, 5, 9);
            with_context(&space, &history, &[], &settings, 1, |context| {
                let free = chosen(context, f64::INFINITY).unwrap();
                let regret_left = 0.9 * free;
                if free > 0.1 {
                    passing += 1;
                    gave_way += u32::from(chosen(context, regret_left).unwrap() <= regret_left);
                }
                assert_eq!(chosen(context, 1.1 * free.max(0.2)), Some(free));
            });
        }
        assert!(
            passing >= 8 && gave_way * 4 >= passing * 3,
            "{gave_way} of {passing}"
        );
    }

    /// A space of categories whose default took 100 s and one other category 490 s, with its
    /// history.
    fn one_terrible() -> (Space, History) {
        let names = ["level", "march", "vectorize", "unroll"];
        let parameters = names.map(|name| categories(name, 5)).to_vec();
        let space = Space::new(parameters).unwrap();
        let mut terrible = space.default_point().0;
        terrible[0] = 4;
        let known = vec![
            tested(&space, &space.default_point().0, &[100.0; 4], 0),
            tested(&space, &terrible, &[490.0], 4),
        ];
        (space, history(known, 1, 5))
    }

    #[test]
    fn one_terrible_run_does_not_end_a_search() {
        let (space, history) = one_terrible();
        for seed in 0..10 {
            with_context(
                &space,
                &history,
                &[],
                &SurrogateGenetic::default(),
                seed,
                |context| {
                    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
                    let next = SurrogateGenetic::default().propose(context, rng);
                    let Proposal::Run { point, .. } = next else {
                        panic!("{next:?}");
                    };
                    assert!(context.is_untested(&point), "{point:?}");
                    let default = space.default_point();
                    let changed = point.0.iter().zip(&default.0).filter(|(a, b)| a != b);
                    assert_eq!(changed.count(), 1, "a step from what is known: {point:?}");
                    assert_ne!(point.0[0], 4, "that direction was terrible");
                },
            );
        }
    }

    #[test]
    fn what_looks_far_waits_for_its_budget() {
        let (space, history) = one_terrible();
        let method = SurrogateGenetic::default();
        with_context(&space, &history, &[], &method, 1, |context| {
            let chosen = chosen(context, 0.1);
            assert!(chosen.is_none_or(|cost| cost <= 0.1), "{chosen:?}");
        });
    }
}
