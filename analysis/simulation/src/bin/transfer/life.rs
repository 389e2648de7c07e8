//! A study, from its first run on.

use std::collections::BTreeMap;
use std::sync::Arc;

use io_autotune_engine::{
    Epoch, History, Parametrization, Prior, RecentRun, Settings, SharedSource, Source, Space,
    SurrogateCache, Tally, Tested,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::site;
use crate::surroundings::normal;

/// The runs after which is looked.
pub(crate) const LOOKS: [usize; 4] = [5, 10, 25, 50];

/// The exploring runs after which is looked.
pub(crate) const EXPLORED: [u64; 2] = [5, 10];

/// The application that is tuned.
pub(crate) trait Application: Sync {
    /// Returns what its runs do, by the measures' names.
    fn measures(&self) -> &BTreeMap<String, f64>;
    /// Log of the best point's elapsed over the default's.
    fn best(&self) -> f64;
    /// The log of a point's elapsed over the default's, without noise.
    fn log_ratio(&self, space: &Space, given: &Parametrization) -> f64;
    /// Returns how long a run takes, in seconds.
    fn run(&self, space: &Space, given: &Parametrization, rng: &mut ChaCha8Rng) -> f64;
}

/// An application with so much noise.
pub(crate) struct Noisy<'a>(pub(crate) &'a site::Application, pub(crate) f64);

impl Application for Noisy<'_> {
    fn measures(&self) -> &BTreeMap<String, f64> {
        &self.0.measures
    }

    fn best(&self) -> f64 {
        self.0.best
    }

    fn log_ratio(&self, space: &Space, given: &Parametrization) -> f64 {
        self.0.log_ratio(space, given)
    }

    fn run(&self, space: &Space, given: &Parametrization, rng: &mut ChaCha8Rng) -> f64 {
        let Noisy(application, noise) = self;
        application.seconds * (application.log_ratio(space, given) + noise * normal(rng)).exp()
    }
}

/// At each look.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Life {
    /// The time of the recommended parametrization over the best's.
    pub(crate) recommended: Vec<f64>,
    /// The same after so many exploring runs; after the last run if there were fewer.
    pub(crate) explored: Vec<f64>,
    /// The average run, over the default.
    pub(crate) average: Vec<f64>,
    /// The time above the default's, in runs of the default.
    pub(crate) harm: Vec<f64>,
    #[serde(skip)]
    pub(crate) history: History,
}

impl Life {
    /// The mean of each figure; without a history.
    pub(crate) fn mean(lives: &[Life]) -> Life {
        let mean = |of: fn(&Life) -> &Vec<f64>, looks: usize| {
            let at = |look| lives.iter().map(|one| of(one)[look]).sum::<f64>() / lives.len() as f64;
            (0..looks).map(at).collect()
        };
        Life {
            recommended: mean(|one| &one.recommended, LOOKS.len()),
            explored: mean(|one| &one.explored, EXPLORED.len()),
            average: mean(|one| &one.average, LOOKS.len()),
            harm: mean(|one| &one.harm, LOOKS.len()),
            history: History::default(),
        }
    }
}

/// The logarithms of measures, as sources know them.
fn logs(measures: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let measures = measures.iter().filter(|(_, value)| **value > 0.0);
    measures
        .map(|(name, value)| (name.clone(), value.ln()))
        .collect()
}

/// So many of these sources that measure most like an application.
pub(crate) fn nearest(
    mut sources: Vec<Source>,
    like: &BTreeMap<String, f64>,
    most: usize,
) -> Vec<Source> {
    let like = logs(like);
    sources.sort_by(|a, b| a.distance(&like).total_cmp(&b.distance(&like)));
    sources.truncate(most);
    sources
}

/// Each of these as the study of a user of its own.
pub(crate) fn shared(sources: Vec<Source>) -> Vec<Arc<SharedSource>> {
    let sources = sources.into_iter().zip(1..);
    sources
        .map(|(source, user)| Arc::new(SharedSource::of_user(source, user)))
        .collect()
}

/// Returns what a study learns that begins from nobody.
pub(crate) fn learnt(
    space: &Space,
    application: &impl Application,
    settings: &Settings,
    seed: u64,
) -> Option<Source> {
    let life = live(space, application, (settings, &[]), seed);
    Source::of(space, &life.history)
}

/// A study that begins from these sources, if there are any.
pub(crate) fn live(
    space: &Space,
    application: &impl Application,
    (settings, sources): (&Settings, &[Arc<SharedSource>]),
    seed: u64,
) -> Life {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let cache = SurrogateCache::default();
    let prior: Option<Arc<Prior>> = cache.prior(space, sources);
    let epoch = Epoch::new(space, settings, seed)
        .with_cache(&cache)
        .with_prior(prior.as_ref());
    let mut life = Life::default();
    let history = &mut life.history;
    let (mut sum, mut harm, mut exploring) = (0.0, 0.0, 0);
    let recommended = |history: &History| {
        let best = epoch.recommend_now(history);
        let best = best.unwrap_or_else(|| space.default());
        (application.log_ratio(space, &best) - application.best()).exp()
    };
    for number in 1..=LOOKS[LOOKS.len() - 1] {
        let next = epoch.suggest(history, &[]);
        let given = &next.parametrization;
        let log_ratio = application.log_ratio(space, given);
        let elapsed = application.run(space, given, &mut rng);
        sum += log_ratio.exp();
        harm += (log_ratio.exp() - 1.0).max(0.0);
        let place = history
            .tested
            .iter()
            .position(|one| one.parametrization == *given);
        let ordinal = number as i64;
        let place = place.unwrap_or_else(|| {
            history.tested.push(Tested::new(given.clone(), ordinal));
            history.tested.len() - 1
        });
        // Log-normal times are finite and positive.
        if history.tested[place]
            .record_run(RecentRun::new(ordinal, elapsed))
            .is_ok()
        {
            history.tested[place].record_measures(application.measures());
            history.tally += Tally::of(next.phase, next.role);
        }
        if next.role.explores() {
            exploring += 1;
            if EXPLORED.contains(&exploring) {
                life.explored.push(recommended(history));
            }
        }
        if LOOKS.contains(&number) {
            life.recommended.push(recommended(history));
            life.average.push(sum / number as f64);
            life.harm.push(harm);
        }
    }
    let last = *life.recommended.last().unwrap_or(&f64::NAN);
    life.explored.resize(EXPLORED.len(), last);
    life
}

/// The setting that takes the least time on average, in logarithms, of all that these points can
/// be: what an expert would make the default who knew every time of every application but the one
/// that is tuned.
pub(crate) fn best_common<'a, A: Application + 'a>(
    space: &Space,
    points: &[Parametrization],
    others: impl Iterator<Item = &'a A> + Clone,
) -> Parametrization {
    let sum = |given: &Parametrization| -> f64 {
        others.clone().map(|one| one.log_ratio(space, given)).sum()
    };
    let sums = points.iter().map(|given| (sum(given), given));
    let best = sums.min_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(|| space.default(), |(_, given)| given.clone())
}
