//! Quotas: the most requests at once, requests a second and bytes a second of one user. A host has
//! the same quota for its users' requests over TCP without a credential.
//!
//! Root of nodes and collectors have no quota: Slurm bounds the jobs for which they act.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::peers::Peer;

/// Longest wait for one's own other requests.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of users above which those are forgotten who have their whole quota.
const REMEMBERED: usize = 1024;

/// `[users]` of service.toml: the quota of each user.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuotaConfig {
    /// The most requests of a user that are worked on at once; further ones wait.
    in_flight: usize,
    /// Requests a second in the long run. Steering counts as [`Cost::Steering`] does.
    requests_per_second: f64,
    /// Bytes a second of bodies and answers in the long run.
    bytes_per_second: f64,
    /// The most studies; jobs that would begin another one run with the default.
    pub(crate) studies: u32,
    /// The most orders in force.
    orders: u64,
    /// The most changes in a day: each is a line of the audit.
    changes_per_day: u64,
}

impl Default for QuotaConfig {
    fn default() -> Self {
        Self {
            in_flight: 2,
            requests_per_second: 20.0,
            bytes_per_second: 1e6,
            studies: 1000,
            orders: 100,
            changes_per_day: 500,
        }
    }
}

/// How long a user must rest to have all requests at once, in seconds.
const REST: f64 = 5.0;
/// The same for bytes: an answer may be many megabytes long.
const REST_OF_BYTES: f64 = 16.0;

impl QuotaConfig {
    /// Requests at once after a rest: one change at least, or nobody could ever change anything.
    fn burst(&self) -> f64 {
        (REST * self.requests_per_second).max(Cost::Steering.requests())
    }

    /// Bytes at once after a rest.
    fn bytes_burst(&self) -> f64 {
        REST_OF_BYTES * self.bytes_per_second
    }

    /// Returns an error, as text, if no request could ever be admitted.
    pub(crate) fn validate(&self) -> Result<(), String> {
        for (name, value, least) in [
            ("requests_per_second", self.requests_per_second, 0.01),
            ("bytes_per_second", self.bytes_per_second, 1e3),
        ] {
            if !value.is_finite() || value < least {
                return Err(format!("{name} = {value}: at least {least} is expected"));
            }
        }
        if self.in_flight == 0 || self.in_flight > Semaphore::MAX_PERMITS {
            return Err(format!(
                "in_flight = {}: at least 1 is expected",
                self.in_flight
            ));
        }
        Ok(())
    }
}

/// How much a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// It reads.
    Reading,
    /// It reads a page of runs or studies.
    Listing,
    /// It changes a study: rows are kept for ever, and its snapshots are read anew.
    Steering,
}

impl Cost {
    fn requests(self) -> f64 {
        match self {
            Self::Reading => 1.0,
            Self::Listing => 4.0,
            Self::Steering => 10.0,
        }
    }
}

/// A token bucket. It may go into debt, which has to be paid back before the next request.
#[derive(Debug)]
struct Bucket {
    level: f64,
    at: Instant,
}

impl Bucket {
    fn full(burst: f64, now: Instant) -> Self {
        Self {
            level: burst,
            at: now,
        }
    }

    fn fill(&mut self, rate: f64, burst: f64, now: Instant) {
        let since = now.duration_since(self.at).as_secs_f64();
        self.level = (self.level + since * rate).min(burst);
        self.at = now;
    }

    /// The time until the bucket holds `wanted`; `None` if it does already.
    fn wait(&self, wanted: f64, rate: f64) -> Option<Duration> {
        let lack = wanted - self.level;
        // A debt of a burst at the lowest rate is a few days.
        (lack > 0.0).then(|| Duration::from_secs_f64((lack / rate).min(1e6)))
    }
}

#[derive(Debug)]
struct User {
    requests: Bucket,
    bytes: Bucket,
    places: Arc<Semaphore>,
}

/// The time after which to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskAgain(pub(crate) Duration);

/// A request's place among its user's requests, and a list's place among all lists.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "held")] [Option<OwnedSemaphorePermit>; 2]);

#[derive(Debug)]
pub(crate) struct Quotas {
    config: QuotaConfig,
    users: Mutex<HashMap<Peer, User>>,
    /// Lists are made one at a time: several at once would keep a processor from prologs for
    /// longer.
    lists: Arc<Semaphore>,
}

impl Quotas {
    pub(crate) fn new(config: QuotaConfig) -> Self {
        Self {
            config,
            users: Mutex::default(),
            lists: Arc::new(Semaphore::new(1)),
        }
    }

    /// The most orders in force of a user.
    pub(crate) fn orders(&self) -> u64 {
        self.config.orders
    }

    /// The most changes of a user in a day.
    pub(crate) fn changes_per_day(&self) -> u64 {
        self.config.changes_per_day
    }

    /// A place for a user's request, until it is dropped. Returns an error if the quota is used up.
    pub(crate) async fn admit(&self, of: Peer, cost: Cost) -> Result<Place, AskAgain> {
        let places = self.take(of, cost)?;
        let both = async {
            let own = places.acquire_owned().await.ok();
            let list = match cost {
                Cost::Listing => Arc::clone(&self.lists).acquire_owned().await.ok(),
                Cost::Reading | Cost::Steering => None,
            };
            Place([own, list])
        };
        let place = tokio::time::timeout(PATIENCE, both).await;
        place.map_err(|_| AskAgain(PATIENCE))
    }

    /// Returns an error if a user's quota is used up, and takes nothing from it: this is asked
    /// before the request's sender is known, about the user whose connection it came by.
    pub(crate) fn look(&self, of: Peer) -> Result<(), AskAgain> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(user) = users.get_mut(&of) else {
            return Ok(());
        };
        user.fill(&self.config, Instant::now());
        match user.wait(&self.config, Cost::Reading) {
            Some(wait) => Err(AskAgain(wait)),
            None => Ok(()),
        }
    }

    /// Counts an unsigned request against the quota of its user or host.
    pub(crate) fn count(&self, of: Peer) -> Result<(), AskAgain> {
        self.take(of, Cost::Reading).map(drop)
    }

    fn take(&self, of: Peer, cost: Cost) -> Result<Arc<Semaphore>, AskAgain> {
        let (config, now) = (&self.config, Instant::now());
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= REMEMBERED && !users.contains_key(&of) {
            users.retain(|_, user| !user.is_rested(config, now));
        }
        let user = users.entry(of).or_insert_with(|| User {
            requests: Bucket::full(config.burst(), now),
            bytes: Bucket::full(config.bytes_burst(), now),
            places: Arc::new(Semaphore::new(config.in_flight)),
        });
        user.fill(config, now);
        if let Some(wait) = user.wait(config, cost) {
            return Err(AskAgain(wait));
        }
        user.requests.level -= cost.requests();
        Ok(Arc::clone(&user.places))
    }

    /// Counts the bytes of a request and its answer. They may exceed the quota; the next request
    /// then has to wait.
    #[expect(clippy::cast_precision_loss, reason = "no answer is that long")]
    pub(crate) fn charge(&self, of: Peer, bytes: usize) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(user) = users.get_mut(&of) {
            user.bytes.level -= bytes as f64;
        }
    }
}

impl User {
    fn fill(&mut self, config: &QuotaConfig, now: Instant) {
        self.requests
            .fill(config.requests_per_second, config.burst(), now);
        self.bytes
            .fill(config.bytes_per_second, config.bytes_burst(), now);
    }

    fn wait(&self, config: &QuotaConfig, cost: Cost) -> Option<Duration> {
        self.requests
            .wait(cost.requests(), config.requests_per_second)
            .max(self.bytes.wait(0.0, config.bytes_per_second))
    }

    /// Returns true if the user has the whole quota, so that nothing is lost by forgetting the
    /// user.
    fn is_rested(&mut self, config: &QuotaConfig, now: Instant) -> bool {
        self.fill(config, now);
        self.requests.level >= config.burst()
            && self.bytes.level >= config.bytes_burst()
            && self.places.available_permits() == config.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas() -> Quotas {
        Quotas::new(QuotaConfig {
            in_flight: 2,
            requests_per_second: 4.0,
            bytes_per_second: 625.0,
            studies: 1,
            orders: 1,
            changes_per_day: 1,
        })
    }

    async fn admitted(quotas: &Quotas, uid: u32, cost: Cost) -> usize {
        let mut admitted = 0;
        while quotas.admit(Peer::User(uid), cost).await.is_ok() {
            admitted += 1;
        }
        admitted
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_a_burst_and_then_a_rate_and_others_do_not_notice() {
        let quotas = quotas();
        assert_eq!(admitted(&quotas, 1000, Cost::Reading).await, 20);
        let refused = quotas
            .admit(Peer::User(1000), Cost::Reading)
            .await
            .unwrap_err();
        assert_eq!(refused, AskAgain(Duration::from_millis(250)));
        assert_eq!(quotas.look(Peer::User(1000)), Err(refused));
        assert_eq!(
            quotas.look(Peer::User(1002)),
            Ok(()),
            "who has not asked yet"
        );
        assert_eq!(admitted(&quotas, 1001, Cost::Steering).await, 2);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(admitted(&quotas, 1000, Cost::Reading).await, 12);
        tokio::time::advance(Duration::from_hours(1)).await;
        assert_eq!(admitted(&quotas, 1000, Cost::Reading).await, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_at_once_wait_and_then_ask_again() {
        let quotas = quotas();
        let first = quotas.admit(Peer::User(1000), Cost::Reading).await.unwrap();
        let _second = quotas.admit(Peer::User(1000), Cost::Reading).await.unwrap();
        let began = Instant::now();
        assert!(quotas.admit(Peer::User(1000), Cost::Reading).await.is_err());
        assert_eq!(began.elapsed(), PATIENCE);
        drop(quotas.admit(Peer::User(1001), Cost::Reading).await.unwrap());
        drop(first);
        drop(quotas.admit(Peer::User(1000), Cost::Reading).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn who_moved_many_bytes_rests_until_they_are_paid() {
        let quotas = quotas();
        drop(quotas.admit(Peer::User(1000), Cost::Reading).await.unwrap());
        quotas.charge(Peer::User(1000), 12_000);
        let refused = quotas
            .admit(Peer::User(1000), Cost::Reading)
            .await
            .unwrap_err();
        assert_eq!(refused, AskAgain(Duration::from_millis(3200)));
        tokio::time::advance(Duration::from_millis(3200)).await;
        drop(quotas.admit(Peer::User(1000), Cost::Reading).await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_have_rested_are_forgotten() {
        let quotas = quotas();
        for uid in 0..2 * u32::try_from(REMEMBERED).unwrap() {
            if uid == 1000 {
                tokio::time::advance(Duration::from_hours(1)).await;
            }
            quotas.take(Peer::User(uid), Cost::Reading).unwrap();
        }
        assert!(quotas.users.lock().unwrap().len() <= 1100);
    }

    #[test]
    fn a_quota_that_lets_nobody_ask_is_refused() {
        let default = QuotaConfig::default();
        default.validate().unwrap();
        assert_eq!((default.burst(), default.bytes_burst()), (100.0, 16e6));
        for (line, named) in [
            ("in_flight = 0", "in_flight"),
            ("requests_per_second = nan", "requests_per_second"),
            ("bytes_per_second = 0.0", "bytes_per_second"),
        ] {
            let config: QuotaConfig = toml::from_str(line).unwrap();
            let refused = config.validate().unwrap_err();
            assert!(refused.starts_with(named), "{refused}");
        }
    }
}
