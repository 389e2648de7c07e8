//! The history of an epoch: its tested parametrizations, its tally, its runs in flight.

mod migration;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::objective::ELAPSED_BESIDE;
use crate::run::{Phase, Role};
use crate::space::Parametrization;

pub use migration::{carried, carried_parametrization, stays_settled};

/// Count, mean and sum of squared deviations, updated one number at a time (Welford, Technometrics
/// 4, 1962); merged by equation 2.1 of Chan, Golub and LeVeque (1979).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// The number of numbers.
    pub count: u64,
    /// The mean; 0 if there are no numbers.
    pub mean: f64,
    /// The sum of their squared deviations from the mean.
    pub m2: f64,
}

/// Why a number did not enter a history.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// Infinite or not a number.
    #[error("{0} is not a finite number and cannot enter a mean: record the run as not counted")]
    NotFinite(f64),
    /// Not a positive time.
    #[error("an elapsed time of {0} s is not positive: record the run as not counted")]
    NotPositive(f64),
}

impl Moments {
    /// Adds a number. Returns an error, and changes nothing, if the number or a resulting moment is
    /// not finite.
    pub fn push(&mut self, number: f64) -> Result<(), SampleError> {
        let count = self.count.saturating_add(1);
        let delta = number - self.mean;
        let mean = self.mean + delta / count as f64;
        let m2 = self.m2 + delta * (number - mean);
        if !(number.is_finite() && mean.is_finite() && m2.is_finite()) {
            return Err(SampleError::NotFinite(number));
        }
        *self = Moments { count, mean, m2 };
        Ok(())
    }

    /// Adds another series.
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let count = self.count.saturating_add(other.count);
        let delta = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.m2 += other.m2 + delta * delta * self.count as f64 * share;
        self.mean += delta * share;
        self.count = count;
    }

    /// The unbiased variance (divisor n - 1); none under two numbers.
    pub fn variance(&self) -> Option<f64> {
        (self.count >= 2).then(|| self.m2.max(0.0) / (self.count - 1) as f64)
    }

    /// The standard error of the mean, the root of variance / n; none under two numbers.
    pub fn standard_error(&self) -> Option<f64> {
        self.variance()
            .map(|variance| (variance / self.count as f64).sqrt())
    }
}

/// One of the latest runs of a parametrization.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecentRun {
    /// The run's place in its epoch.
    pub ordinal: i64,
    /// Elapsed, in seconds.
    pub elapsed: f64,
    /// The start, in seconds since 1970; none if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<i64>,
    /// How long other runs took at the same time, over the means of their parametrizations: a
    /// positive ratio; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
}

impl RecentRun {
    /// A run with an unknown start.
    pub fn new(ordinal: i64, elapsed: f64) -> Self {
        RecentRun {
            ordinal,
            elapsed,
            started: None,
            others: None,
        }
    }

    /// The same run with its start, in seconds since 1970.
    pub fn started_at(self, started: i64) -> Self {
        RecentRun {
            started: Some(started),
            ..self
        }
    }

    /// The same run with `others`: how long other runs took at the same time, over the means of
    /// their parametrizations.
    pub fn beside(self, others: Option<f64>) -> Self {
        RecentRun { others, ..self }
    }
}

/// The most recent runs that a [`Tested`] keeps.
pub const RECENT_RUNS: usize = 32;

/// The most measures of which a [`Tested`] keeps moments.
pub const MOST_MEASURES: usize = 32;

/// The results of one parametrization in one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// Moments of elapsed, in seconds, of counted runs.
    pub elapsed: Moments,
    /// Moments of the natural logarithm of elapsed of counted runs.
    pub log_elapsed: Moments,
    /// The latest counted runs, oldest first, at most [`RECENT_RUNS`].
    pub recent: Vec<RecentRun>,
    /// Censored runs, oldest first; their seconds are lower bounds. Only the [`RECENT_RUNS`]
    /// largest bounds are kept: they say the most, and the result does not depend on the order of
    /// arrival.
    #[serde(default)]
    pub censored: Vec<RecentRun>,
    /// Moments of the natural logarithms of counted runs' measures. Only the first
    /// [`MOST_MEASURES`] by name are kept, so that the result does not depend on the order of
    /// arrival.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<String, Moments>,
    /// The number of failed runs, which may have failed because of the parametrization.
    pub failed: u64,
    /// The number of these that ran out of memory.
    #[serde(default)]
    pub out_of_memory: u64,
    /// The ordinal of the parametrization's first run.
    pub first_ordinal: i64,
}

impl Tested {
    /// A parametrization without runs.
    pub fn new(parametrization: Parametrization, first_ordinal: i64) -> Self {
        Tested {
            parametrization,
            elapsed: Moments::default(),
            log_elapsed: Moments::default(),
            recent: Vec::new(),
            censored: Vec::new(),
            measures: BTreeMap::new(),
            failed: 0,
            out_of_memory: 0,
            first_ordinal,
        }
    }

    /// Adds a counted run with an unknown start. Returns an error, and changes nothing, unless
    /// `elapsed`, in seconds, is finite and positive.
    pub fn record(&mut self, ordinal: i64, elapsed: f64) -> Result<(), SampleError> {
        self.record_run(RecentRun::new(ordinal, elapsed))
    }

    /// Adds a counted run. Returns an error, and changes nothing, unless its seconds are finite and
    /// positive.
    pub fn record_run(&mut self, run: RecentRun) -> Result<(), SampleError> {
        let elapsed = run.elapsed;
        if elapsed.is_finite() && elapsed <= 0.0 {
            return Err(SampleError::NotPositive(elapsed));
        }
        self.elapsed.push(elapsed)?;
        // The logarithm of a finite positive number is finite, so this cannot fail half way.
        self.log_elapsed.push(libm::log(elapsed))?;
        self.first_ordinal = self.first_ordinal.min(run.ordinal);
        insert(&mut self.recent, run);
        self.keep_latest();
        Ok(())
    }

    /// Adds the measures of a counted run. Values that are not finite and positive are left out.
    pub fn record_measures(&mut self, measures: &BTreeMap<String, f64>) {
        for (name, value) in measures {
            if !(value.is_finite() && *value > 0.0) {
                continue;
            }
            let moments = self.measures.entry(name.clone()).or_default();
            // The logarithm is between -745 and 710, so it always enters.
            let entered = moments.push(libm::log(*value));
            debug_assert!(entered.is_ok(), "{name}: {value}");
        }
        self.keep_first_measures();
    }

    /// Adds a run that its time limit ended after `elapsed` seconds. Returns an error, and changes
    /// nothing, unless `elapsed` is finite and positive.
    pub fn record_censored(&mut self, ordinal: i64, elapsed: f64) -> Result<(), SampleError> {
        if !elapsed.is_finite() {
            return Err(SampleError::NotFinite(elapsed));
        }
        if elapsed <= 0.0 {
            return Err(SampleError::NotPositive(elapsed));
        }
        self.first_ordinal = self.first_ordinal.min(ordinal);
        insert(&mut self.censored, RecentRun::new(ordinal, elapsed));
        self.keep_longest();
        Ok(())
    }

    /// Adds a failed run.
    pub fn record_failure(&mut self, ordinal: i64) {
        self.failed = self.failed.saturating_add(1);
        self.first_ordinal = self.first_ordinal.min(ordinal);
    }

    /// The elapsed seconds of a typical counted run, also if the objective is another.
    pub fn elapsed_seconds(&self) -> f64 {
        match self.measures.get(ELAPSED_BESIDE) {
            Some(logs) => libm::exp(logs.mean),
            None => self.elapsed.mean,
        }
    }

    /// Adds the results of another entry, which must be of the same parametrization.
    pub fn absorb(&mut self, other: &Tested) {
        self.elapsed.merge(&other.elapsed);
        self.log_elapsed.merge(&other.log_elapsed);
        for run in &other.recent {
            insert(&mut self.recent, *run);
        }
        self.keep_latest();
        for run in &other.censored {
            insert(&mut self.censored, *run);
        }
        self.keep_longest();
        for (name, moments) in &other.measures {
            let own = self.measures.entry(name.clone()).or_default();
            own.merge(moments);
        }
        self.keep_first_measures();
        self.failed = self.failed.saturating_add(other.failed);
        self.out_of_memory = self.out_of_memory.saturating_add(other.out_of_memory);
        self.first_ordinal = self.first_ordinal.min(other.first_ordinal);
    }

    fn keep_latest(&mut self) {
        let surplus = self.recent.len().saturating_sub(RECENT_RUNS);
        self.recent.drain(..surplus);
    }

    fn keep_longest(&mut self) {
        while self.censored.len() > RECENT_RUNS {
            let shortest = self
                .censored
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| a.elapsed.total_cmp(&b.elapsed))
                .map(|(place, _)| place);
            self.censored.remove(shortest.unwrap_or_default());
        }
    }

    fn keep_first_measures(&mut self) {
        while self.measures.len() > MOST_MEASURES {
            self.measures.pop_last();
        }
    }

    /// Adds a run that failed because it ran out of memory.
    pub fn record_out_of_memory(&mut self, ordinal: i64) {
        self.record_failure(ordinal);
        self.out_of_memory = self.out_of_memory.saturating_add(1);
    }
}

fn insert(runs: &mut Vec<RecentRun>, run: RecentRun) {
    let place = runs.partition_point(|other| other.ordinal <= run.ordinal);
    runs.insert(place, run);
}

/// The epoch's ended runs by role, counted or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tally {
    /// Design and search runs.
    pub explored: u64,
    /// Baseline runs.
    pub baseline: u64,
    /// Control runs before the epoch settled.
    pub controls: u64,
    /// Runs of the recommended parametrization once settled.
    pub settled: u64,
    /// Control runs once settled.
    pub settled_controls: u64,
    /// Runs of the best known parametrization in the proof before the search goes on.
    #[serde(skip_serializing_if = "is_none")]
    pub proof: u64,
    /// All runs, those of other roles included.
    pub total: u64,
}

fn is_none(runs: &u64) -> bool {
    *runs == 0
}

impl Tally {
    /// The tally of one ended run with this phase and role.
    pub fn of(phase: Phase, role: Role) -> Self {
        let settled = phase == Phase::Settled;
        Tally {
            explored: u64::from(role.explores()),
            baseline: u64::from(role == Role::Baseline),
            controls: u64::from(role == Role::Control && !settled),
            settled: u64::from(role == Role::Settled && settled),
            settled_controls: u64::from(role == Role::Control && settled),
            proof: u64::from(role == Role::Settled && !settled),
            total: 1,
        }
    }
}

impl Tally {
    /// Returns true if a run of the settled phase has ended.
    pub fn has_settled(&self) -> bool {
        self.settled > 0 || self.settled_controls > 0
    }

    /// The phase by the tally alone: settled after a settled run, search after an exploring one.
    pub fn phase(&self) -> Phase {
        if self.has_settled() {
            Phase::Settled
        } else if self.explored > 0 {
            Phase::Search
        } else {
            Phase::Baseline
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.explored += other.explored;
        self.baseline += other.baseline;
        self.controls += other.controls;
        self.settled += other.settled;
        self.settled_controls += other.settled_controls;
        self.proof += other.proof;
        self.total += other.total;
    }
}

/// The ended runs of an epoch: all that a suggestion depends on, except runs in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// One entry per parametrization that ever ran.
    pub tested: Vec<Tested>,
    /// The epoch's counts.
    pub tally: Tally,
}

impl History {
    /// Returns true if it is known for at least one recent run how other runs fared at the same
    /// time.
    pub fn knows_others(&self) -> bool {
        let mut recent = self.tested.iter().flat_map(|tested| &tested.recent);
        recent.any(|run| run.others.is_some())
    }
}

/// Equal runs in flight of the epoch. Counting equal runs together keeps a large job array small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    /// The parametrization that they were given.
    pub parametrization: Parametrization,
    /// The phase at their start.
    pub phase: Phase,
    /// Their role.
    pub role: Role,
    /// The number of these runs.
    #[serde(default = "Pending::one")]
    pub count: u64,
}

impl Pending {
    fn one() -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(numbers: &[f64]) -> Moments {
        let mut moments = Moments::default();
        for number in numbers {
            moments.push(*number).unwrap();
        }
        moments
    }

    #[test]
    fn moments_by_hand() {
        let all = moments(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(all.count, 8);
        assert!((all.mean - 5.0).abs() < 1e-12);
        assert!((all.variance().unwrap() - 32.0 / 7.0).abs() < 1e-12);
        assert!((all.standard_error().unwrap() - (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-12);

        let mut merged = moments(&[2.0, 4.0, 4.0]);
        merged.merge(&moments(&[4.0, 5.0, 5.0, 7.0, 9.0]));
        merged.merge(&Moments::default());
        assert_eq!(merged.count, 8);
        assert!((merged.mean - 5.0).abs() < 1e-12 && (merged.m2 - 32.0).abs() < 1e-9);
        assert_eq!(moments(&[1.0]).variance(), None);
        assert_eq!(Moments::default().standard_error(), None);
    }

    #[test]
    fn what_is_no_time_does_not_enter() {
        let mut tested = Tested::new(Parametrization::default(), 7);
        for elapsed in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = tested.record(1, elapsed).unwrap_err();
            assert!(matches!(error, SampleError::NotFinite(_)), "{error}");
        }
        for elapsed in [0.0, -1.0] {
            assert_eq!(
                tested.record(1, elapsed),
                Err(SampleError::NotPositive(elapsed))
            );
        }
        assert_eq!(tested, Tested::new(Parametrization::default(), 7));
        let mut huge = moments(&[-f64::MAX]);
        let before = huge;
        assert!(huge.push(f64::MAX).is_err());
        assert_eq!(huge, before);
    }

    #[test]
    fn recent_runs_are_the_latest_in_order() {
        let mut tested = Tested::new(Parametrization::default(), 3);
        for ordinal in (0..100).rev() {
            tested.record(ordinal, 1.0 + ordinal as f64).unwrap();
        }
        tested.record_failure(-1);
        let kept: Vec<i64> = tested.recent.iter().map(|run| run.ordinal).collect();
        assert_eq!(kept, (68..100).collect::<Vec<_>>());
        assert_eq!((tested.first_ordinal, tested.failed), (-1, 1));
        assert_eq!(tested.elapsed.count, 100);
        assert_eq!(tested.log_elapsed.count, 100);
    }

    #[test]
    fn a_start_is_kept_and_what_was_stored_without_one_is_read() {
        let mut tested = Tested::new(Parametrization::default(), 1);
        let run = RecentRun::new(1, 2.5).started_at(7);
        tested.record_run(run).unwrap();
        tested.record(2, 2.5).unwrap();
        let json = serde_json::to_string(&tested.recent).unwrap();
        assert_eq!(
            json,
            r#"[{"ordinal":1,"elapsed":2.5,"started":7},{"ordinal":2,"elapsed":2.5}]"#
        );
        let read: Vec<RecentRun> = serde_json::from_str(&json).unwrap();
        assert_eq!(read, tested.recent);
    }

    #[test]
    fn the_longest_bounds_stay_whatever_the_order() {
        let bound = |ordinal: i64| 1.0 + (ordinal * 37 % 50) as f64;
        let mut forwards = Tested::new(Parametrization::default(), 0);
        let mut backwards = forwards.clone();
        for ordinal in 0..50 {
            forwards.record_censored(ordinal, bound(ordinal)).unwrap();
            backwards
                .record_censored(49 - ordinal, bound(49 - ordinal))
                .unwrap();
        }
        assert_eq!(forwards, backwards);
        assert_eq!(forwards.censored.len(), RECENT_RUNS);
        assert!(forwards.censored.is_sorted_by_key(|run| run.ordinal));
        assert!(forwards.censored.iter().all(|run| run.elapsed > 18.0));
        assert_eq!((forwards.elapsed.count, forwards.recent.len()), (0, 0));
        let before = forwards.clone();
        assert!(forwards.record_censored(50, f64::NAN).is_err());
        assert!(forwards.record_censored(50, 0.0).is_err());
        assert_eq!(forwards, before);
    }

    #[test]
    fn measures_are_kept_as_moments_of_logarithms() {
        let mut tested = Tested::new(Parametrization::default(), 0);
        let run = |bytes: f64, other: f64| {
            BTreeMap::from([("bytes".to_owned(), bytes), ("other".to_owned(), other)])
        };
        tested.record_measures(&run(1.0, 0.0));
        tested.record_measures(&run(4.0, f64::NAN));
        tested.record_measures(&run(f64::MAX, f64::INFINITY));
        tested.record_measures(&run(f64::MIN_POSITIVE, -1.0));
        assert_eq!(tested.measures.len(), 1);
        let of_bytes = tested.measures["bytes"];
        assert_eq!(of_bytes.count, 4);
        let logs = [1.0, 4.0, f64::MAX, f64::MIN_POSITIVE].map(f64::ln);
        assert!((of_bytes.mean - logs.iter().sum::<f64>() / 4.0).abs() < 1e-9);
        let json = serde_json::to_string(&tested).unwrap();
        assert_eq!(serde_json::from_str::<Tested>(&json).unwrap(), tested);
        let mut stored: serde_json::Value = serde_json::from_str(&json).unwrap();
        stored.as_object_mut().unwrap().remove("measures");
        let stored: Tested = serde_json::from_value(stored).unwrap();
        assert!(stored.measures.is_empty());
    }

    #[test]
    fn the_first_measures_by_name_stay_whatever_the_order() {
        let name = |n: usize| format!("m{:02}", n * 7 % 40);
        let mut forwards = Tested::new(Parametrization::default(), 0);
        let mut backwards = forwards.clone();
        for n in 0..40 {
            forwards.record_measures(&BTreeMap::from([(name(n), 2.0)]));
            backwards.record_measures(&BTreeMap::from([(name(39 - n), 2.0)]));
        }
        assert_eq!(forwards, backwards);
        let kept: Vec<String> = (0..MOST_MEASURES).map(|n| format!("m{n:02}")).collect();
        assert_eq!(forwards.measures.into_keys().collect::<Vec<_>>(), kept);
    }
}
