//! A whole service in a test: both doors, a database of its own, and around it what a test plays.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use io_autotune_catalogue::{LiveCatalogue, LiveRules};
use io_autotune_protocol::signature::{
    ANSWER_HEADER, NONCE_HEADER, Nonce, REQUEST_HEADER, sign_request, verify_answer,
};
use io_autotune_protocol::{Addressed, Audience};
use io_autotune_store::Store;
use io_autotune_test_database::Database;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use tempfile::TempDir;
use tokio::sync::watch;
use tower::ServiceExt;

use super::answer::Answer;
use super::credentials::PlayedCredentials;
use super::slurm::PlayedSlurm;
use crate::assembly::{Assembly, Routers, SiteFiles};
use crate::clock::Clock;
use crate::config::Config;
use crate::door::{Came, Door};
use crate::failed_work::Apart;
use crate::metrics;
use crate::peers::Peer;
use crate::reconcile::{Reconciled, Reconciliation};
use crate::reload::Reloading;
use crate::sharing::Sharing;
use crate::slurm::Cluster;
use crate::tls::Certificate;

/// The uids of the participants. None but root is known to the test's host, unless it happens to
/// have the uid.
pub(crate) const ROOT: u32 = 0;
pub(crate) const ADMIN: u32 = 70_900;
pub(crate) const OPERATOR: u32 = 70_901;
pub(crate) const REPORT_READER: u32 = 70_902;
pub(crate) const COLLECTOR: u32 = 70_903;
pub(crate) const BURST_BUFFER: u32 = 70_904;
pub(crate) const ALICE: u32 = 71_001;
pub(crate) const BOB: u32 = 71_002;

/// The uid of the service.
pub(crate) const SERVICE: u32 = 70_500;

/// The cluster of a service that has one.
pub(crate) const CLUSTER: &str = "alpha";

/// A service, as it is put together from a service.toml.
///
/// ```ignore
/// let service = TestService::new().await;
/// let run = service.job(ALICE, "app=ocean").runs(&service, 12.5).await;
/// let studies = service.user(ALICE).get("/v1/studies").await.ok();
/// ```
///
/// Nothing happens by itself: [`sweep`](Self::sweep) has the reconciliation of each cluster go round,
/// and time stands as it is on the host until [`advance`](Self::advance) sets the clocks of the
/// database and of the service forward.
pub(crate) struct TestService {
    pub(crate) database: Database,
    pub(crate) store: Store,
    pub(crate) credentials: Arc<PlayedCredentials>,
    pub(crate) clusters: Arc<[Arc<Cluster>]>,
    pub(crate) files: Arc<Files>,
    clock: Arc<PlayedClock>,
    draws: Arc<PlayedDraws>,
    routers: Routers,
    pub(crate) certificate: Certificate,
    metrics: Router,
    sharing: Arc<Sharing>,
    apart: Arc<Apart>,
    sweeps: tokio::sync::Mutex<Sweeps>,
    next_job: Arc<AtomicU32>,
}

/// The files that a test has put beside the service.
pub(crate) struct Files {
    directory: TempDir,
    pub(crate) slurms: Vec<(String, PlayedSlurm)>,
}

impl Files {
    fn new(clusters: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let slurms = clusters.iter().map(|name| {
            let place = directory.path().join(format!("slurm-{name}"));
            std::fs::create_dir(&place).unwrap();
            ((*name).to_owned(), PlayedSlurm::new(place))
        });
        let slurms = slurms.collect();
        Self { directory, slurms }
    }

    /// A path in the test's own directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

struct Sweeps {
    of_clusters: Vec<Reconciliation>,
    reconciled: watch::Receiver<Reconciled>,
    /// Absent only while it is at work.
    reloading: Option<Reloading>,
}

impl TestService {
    /// A service of one cluster, called [`CLUSTER`], with the shipped catalogue.
    pub(crate) async fn new() -> Self {
        Self::with("").await
    }

    /// The same, with more in its service.toml: keys in `[section]`s, which replace those of
    /// [`configuration`].
    pub(crate) async fn with(more: &str) -> Self {
        Self::of_clusters(&[CLUSTER], more).await
    }

    /// A service of several clusters.
    pub(crate) async fn of_clusters(clusters: &[&str], more: &str) -> Self {
        let database = Database::with_clock().await;
        let files = Arc::new(Files::new(clusters));
        let path = files.path("service.toml");
        std::fs::write(&path, configuration(&database, &files, more)).unwrap();
        Self::start(
            database,
            files,
            &path,
            Arc::default(),
            Arc::new(AtomicU32::new(1)),
        )
        .await
    }

    /// Another replica: a second service by the same service.toml on the same database.
    pub(crate) async fn replica(&self) -> Self {
        self.started_by(&self.files.path("service.toml")).await
    }

    /// Another service on the same database, which has a service.toml of its own, as
    /// [`with`](Self::with) would have written it; its [`reload`](Self::reload) would write this one's.
    pub(crate) async fn beside(&self, more: &str) -> Self {
        let path = self.files.path("beside.toml");
        std::fs::write(&path, configuration(&self.database, &self.files, more)).unwrap();
        self.started_by(&path).await
    }

    async fn started_by(&self, path: &Path) -> Self {
        Self::start(
            self.database.clone(),
            Arc::clone(&self.files),
            path,
            Arc::clone(&self.clock),
            Arc::clone(&self.next_job),
        )
        .await
    }

    /// The same, by a service.toml with more in it. It is not [reloaded](Self::reload).
    pub(crate) async fn replica_with(&self, more: &str) -> Self {
        let path = self.files.path("replica.toml");
        std::fs::write(&path, configuration(&self.database, &self.files, more)).unwrap();
        Self::start(
            self.database.clone(),
            Arc::clone(&self.files),
            &path,
            Arc::clone(&self.clock),
            Arc::clone(&self.next_job),
        )
        .await
    }

    /// Another replica, whose role in the database is the service's own, as deploy/sql/roles.sql makes
    /// it. Other replicas of a test are superusers.
    pub(crate) async fn replica_of_its_role(&self, more: &str) -> Self {
        // Roles are the server's: one test at a time makes them.
        static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        {
            let _one = ONE.lock().await;
            self.database.execute(ROLES).await;
        }
        let url = self.database.url_of(ROLE);
        self.replica_with(&format!("[database]\nurl = {url:?}\n{more}"))
            .await
    }

    async fn start(
        database: Database,
        files: Arc<Files>,
        path: &Path,
        clock: Arc<PlayedClock>,
        next_job: Arc<AtomicU32>,
    ) -> Self {
        let config = Config::load(path).unwrap_or_else(|error| panic!("{error}"));
        let catalogue = LiveCatalogue::open(&config.accelerators.directory).unwrap();
        let rules = LiveRules::open(config.applications.rules.as_deref()).unwrap();
        let store = Assembly::open_store(&config);
        store.serve_clusters(&config.slurm.names()).await.unwrap();
        let credentials = Arc::new(PlayedCredentials::of(SERVICE));
        let site = SiteFiles {
            path: path.to_owned(),
            catalogue: Arc::new(catalogue),
            rules: Arc::new(rules),
        };
        let backend = Arc::new(config.addressed(Arc::clone(&credentials)));
        let mut assembly = Assembly::new(config, site, store.clone(), backend).unwrap();
        let draws = Arc::new(PlayedDraws::default());
        for service in [&mut assembly.nodes, &mut assembly.users] {
            service.clock = Arc::clone(&clock) as Arc<dyn Clock>;
            let draws = Arc::clone(&draws);
            service.draw = Arc::new(move || draws.next());
        }
        let clusters = Arc::clone(&assembly.nodes.clusters);
        let sharing = Arc::clone(&assembly.nodes.sharing);
        let certificate = assembly.nodes.certificate.clone();
        let metrics = metrics::router(
            Arc::clone(&assembly.nodes.metrics),
            assembly.users_store.clone(),
            Arc::clone(&assembly.nodes.apart),
        );
        let apart = Arc::clone(&assembly.nodes.apart);
        let of_clusters = assembly.reconciliations(&assembly.config.reconciled());
        let (reloading, routers, reconciled) = assembly.reloading();
        Self {
            database,
            store,
            credentials,
            clusters,
            files,
            clock,
            draws,
            routers,
            certificate,
            metrics,
            sharing,
            apart,
            sweeps: tokio::sync::Mutex::new(Sweeps {
                of_clusters,
                reconciled,
                reloading: Some(reloading),
            }),
            next_job,
        }
    }

    /// The directory of the shipped catalogue.
    pub(crate) fn catalogue(&self) -> PathBuf {
        SHIPPED_CATALOGUE.into()
    }

    /// The Slurm of the first cluster.
    pub(crate) fn slurm(&self) -> &PlayedSlurm {
        &self.files.slurms[0].1
    }

    /// The Slurm of a cluster.
    pub(crate) fn slurm_of(&self, cluster: &str) -> &PlayedSlurm {
        let mut slurms = self.files.slurms.iter();
        let found = slurms.find(|(name, _)| name == cluster);
        &found.unwrap_or_else(|| panic!("no cluster {cluster}")).1
    }

    /// A job id that no job of this test has had.
    pub(crate) fn next_job_id(&self) -> u32 {
        self.next_job.fetch_add(1, Ordering::Relaxed)
    }

    /// One round of each cluster's reconciliation, with what a sweep looks at.
    pub(crate) async fn sweep(&self) {
        self.round(true).await;
    }

    /// One round of each cluster's reconciliation, as between two sweeps.
    pub(crate) async fn poll(&self) {
        self.round(false).await;
    }

    async fn round(&self, sweeping: bool) {
        for reconciliation in &mut self.sweeps.lock().await.of_clusters {
            reconciliation.round(sweeping).await;
        }
    }

    /// The sweep that follows the rules of sharing.
    pub(crate) async fn follow_sharing(&self) {
        self.sharing.sweep(&self.store, &self.apart).await.unwrap();
    }

    /// Asks each cluster's Slurm what the service asks now and then: associations, nodes, hooks.
    pub(crate) async fn look_at_slurm(&self) {
        for cluster in &*self.clusters {
            // What cannot be asked stays as it was, as in the service.
            let _ = cluster.hooks.ask().await;
            if let Some(nodes) = &cluster.nodes {
                nodes.renew().await;
            }
            if let Some(associations) = &cluster.associations {
                let _ = associations.ask().await;
            }
        }
    }

    /// Writes another service.toml, as [`with`](Self::with) would have written it, and has the service
    /// read it as on SIGHUP.
    pub(crate) async fn reload(&self, more: &str) {
        let path = self.files.path("service.toml");
        std::fs::write(&path, configuration(&self.database, &self.files, more)).unwrap();
        self.hang_up().await;
    }

    /// Has the service read its files, as on SIGHUP.
    pub(crate) async fn hang_up(&self) {
        let mut sweeps = self.sweeps.lock().await;
        let reloading = sweeps.reloading.take().unwrap().reloaded().await;
        reloading.look().await;
        sweeps.reloading = Some(reloading);
        if sweeps.reconciled.has_changed().unwrap() {
            let now = sweeps.reconciled.borrow_and_update().clone();
            let of_clusters = sweeps.of_clusters.iter();
            sweeps.of_clusters = of_clusters.map(|one| one.by(now.clone())).collect();
        }
    }

    /// Has the service look at its catalogue and its rules, as it does every second.
    pub(crate) async fn look_at_files(&self) {
        let sweeps = self.sweeps.lock().await;
        sweeps.reloading.as_ref().unwrap().look().await;
    }

    /// Sets the clocks of the database and of the service's host forward, and what the service measures
    /// by its monotonic clock: quotas, what it keeps for a while.
    pub(crate) async fn advance(&self, by: Duration) {
        tokio::time::pause();
        tokio::time::advance(by).await;
        tokio::time::resume();
        self.database.advance(by).await;
        self.clock.advance(by);
    }

    /// The time on the service's host.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Fixes the number that every start draws from now on: with 0 a run that may be a control run
    /// is one, with 0.999 it is none. `None`: numbers that are spread evenly, the same in each run
    /// of a test.
    pub(crate) fn draw(&self, fixed: Option<f64>) {
        *self.draws.fixed.lock().unwrap() = fixed;
    }

    /// Asks as this uid, at the users' door, by this host's socket.
    pub(crate) fn user(&self, uid: u32) -> Caller<'_> {
        Caller {
            service: self,
            uid,
            door: Door::Users,
            came: Came {
                peer: Peer::User(uid),
                address: None,
                is_privileged: uid == 0,
            },
            origin: None,
            audience: None,
        }
    }

    /// Asks as root of a node, at the nodes' door.
    pub(crate) fn node(&self) -> Caller<'_> {
        self.user(ROOT).at(Door::Nodes)
    }

    /// The router of a door, for a test that sends or listens itself.
    pub(crate) fn door(&self, door: Door) -> watch::Receiver<Router> {
        match door {
            Door::Nodes => self.routers.nodes.clone(),
            Door::Users => self.routers.users.clone(),
        }
    }

    /// The text that Prometheus reads.
    pub(crate) async fn metrics(&self) -> String {
        self.metrics_as(None).await.1
    }

    /// The same for a client that accepts this format, with its content type.
    pub(crate) async fn metrics_as(&self, accept: Option<&str>) -> (String, String) {
        let mut request = Request::get("/metrics");
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = self.metrics.clone().oneshot(request).await.unwrap();
        let kind = answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .to_owned();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (kind, String::from_utf8(body.to_vec()).unwrap())
    }
}

/// The accelerators that are shipped.
const SHIPPED_CATALOGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerators.d");

/// The service's role in the database, and what makes it.
const ROLE: &str = "io-autotune";
const ROLES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/sql/roles.sql"
));

/// The service.toml of a test. `more` has sections; a key that it has in a section replaces the one of
/// here. Quotas are out of the way, and the patience of reconciliation is the product's.
pub(crate) fn configuration(database: &Database, files: &Files, more: &str) -> String {
    let catalogue = SHIPPED_CATALOGUE;
    let base = format!(
        "[listen]\nunix = \"/nowhere/users.sock\"\nnodes_unix = \"/nowhere/nodes.sock\"\n\
         [database]\nurl = {url:?}\nconnections = 8\nuser_connections = 4\n\
         [users]\nin_flight = 64\nrequests_per_second = 1e9\nbytes_per_second = 1e12\n\
         [access]\nadmins = [{ADMIN}]\noperators = [{OPERATOR}]\nreport_readers = [{REPORT_READER}]\n\
         collectors = [{COLLECTOR}]\nburst_buffers = [{BURST_BUFFER}]\n\
         [accelerators]\ndirectory = {catalogue:?}\ndefault = \"romio\"\n",
        url = database.url(),
    );
    let mut toml: toml::Table = base.parse().unwrap();
    let mut clusters: Vec<toml::Value> = Vec::new();
    for (name, slurm) in &files.slurms {
        let text = format!("cluster = {name:?}\n{}", slurm.configuration());
        clusters.push(toml::Value::Table(text.parse().unwrap()));
    }
    let more: toml::Table = more.parse().unwrap();
    for (section, value) in more {
        match (section.as_str(), value) {
            // For each cluster alike.
            ("slurm", toml::Value::Table(keys)) => {
                for cluster in clusters.iter_mut().filter_map(toml::Value::as_table_mut) {
                    cluster.extend(keys.clone());
                }
            }
            (section, toml::Value::Table(keys)) => {
                let there = toml
                    .entry(section)
                    .or_insert_with(|| toml::Table::new().into());
                there.as_table_mut().unwrap().extend(keys);
            }
            (section, value) => {
                toml.insert(section.to_owned(), value);
            }
        }
    }
    let slurm = match clusters.len() {
        1 => clusters.remove(0),
        _ => toml::Value::Array(clusters),
    };
    toml.insert("slurm".to_owned(), slurm);
    toml.to_string()
}

/// The sender of a request, and how the request comes.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    service: &'a TestService,
    uid: u32,
    door: Door,
    came: Came,
    origin: Option<IpAddr>,
    audience: Option<&'a str>,
}

impl<'a> Caller<'a> {
    /// The same at another door.
    pub(crate) fn at(self, door: Door) -> Self {
        Self { door, ..self }
    }

    /// The same over TCP, from this address and from a port that only root can bind, or that anybody can.
    pub(crate) fn from(self, address: IpAddr, is_privileged: bool) -> Self {
        Self {
            came: Came {
                peer: Peer::at((address, 7).into()),
                address: Some(address),
                is_privileged,
            },
            ..self
        }
    }

    /// The same with a credential that says from which host it is.
    pub(crate) fn vouched(self, origin: IpAddr) -> Self {
        Self {
            origin: Some(origin),
            ..self
        }
    }

    /// The same with a client.toml that names this service among others.
    pub(crate) fn to(self, audience: &'a str) -> Self {
        Self {
            audience: Some(audience),
            ..self
        }
    }

    /// The router that answers, for a test that waits for no answer.
    pub(crate) fn router(self) -> Router {
        self.service.door(self.door).borrow().clone()
    }

    fn credentials(self) -> Addressed<PlayedCredentials> {
        let audience = self.audience.map(|name| name.to_owned().try_into());
        let audience: Option<Audience> = audience.transpose().unwrap();
        let played = PlayedCredentials::from(self.uid, self.origin);
        Addressed::to(audience.as_ref(), played)
    }

    /// Reads.
    pub(crate) async fn get(self, path: &str) -> Answer {
        self.send("GET", path, Vec::new()).await
    }

    /// Writes.
    pub(crate) async fn post(self, path: &str, body: impl Serialize) -> Answer {
        self.send("POST", path, serde_json::to_vec(&body).unwrap())
            .await
    }

    /// Sends these bytes, signed.
    pub(crate) async fn send(self, method: &str, path: &str, body: Vec<u8>) -> Answer {
        let request = self.signed(method, path, body);
        self.send_as_it_is(request).await
    }

    /// A signed request, which a test may spoil before it [sends it](Self::send_as_it_is).
    pub(crate) fn signed(self, method: &str, path: &str, body: Vec<u8>) -> Signed {
        let nonce = Nonce::fresh().unwrap();
        let credentials = self.credentials();
        let credential = sign_request(&credentials, SERVICE, method, path, &nonce, &body).unwrap();
        Signed {
            method: method.to_owned(),
            path: path.to_owned(),
            body,
            credential: Some(credential),
            nonce: nonce.as_str().to_owned(),
        }
    }

    /// Sends a request as it is, and checks the signature of the answer.
    pub(crate) async fn send_as_it_is(self, mut request: Signed) -> Answer {
        let body = std::mem::take(&mut request.body);
        self.send_with(request, Body::from(body)).await
    }

    /// A signed request with another body, which may come bit by bit.
    pub(crate) fn request(self, signed: &Signed, body: Body) -> Request<Body> {
        let mut building = Request::builder()
            .method(signed.method.as_str())
            .uri(&signed.path)
            .header(NONCE_HEADER, &signed.nonce)
            .header("content-type", "application/json")
            .extension(self.came);
        if let Some(credential) = &signed.credential {
            building = building.header(REQUEST_HEADER, credential);
        }
        building.body(body).unwrap()
    }

    /// The same, sent.
    pub(crate) async fn send_with(self, signed: Signed, body: Body) -> Answer {
        let request = self.request(&signed, body);
        let Signed {
            method,
            path,
            nonce,
            ..
        } = signed;
        let asked = format!("{method} {path} of {}", self.uid);
        let answer = self.router().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        let signature = parts.headers.get(ANSWER_HEADER);
        let is_signed = signature.is_some();
        if let Some(signature) = signature {
            let nonce = Nonce::parse(&nonce).unwrap();
            let (status, signature) = (parts.status.as_u16(), signature.to_str().unwrap());
            verify_answer(
                &self.credentials(),
                SERVICE,
                signature,
                status,
                &nonce,
                &body,
            )
            .unwrap_or_else(|error| panic!("{asked}: {error}"));
        }
        Answer {
            asked,
            status: parts.status,
            headers: parts.headers,
            body,
            is_signed,
        }
    }
}

/// A request that is signed, and may be spoilt.
#[derive(Clone, Debug)]
pub(crate) struct Signed {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    pub(crate) credential: Option<String>,
    pub(crate) nonce: String,
}

/// The host's clock, this number of microseconds ahead.
#[derive(Debug, Default)]
struct PlayedClock(AtomicU64);

impl PlayedClock {
    fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap();
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Clock for PlayedClock {
    fn now(&self) -> Timestamp {
        let ahead = i64::try_from(self.0.load(Ordering::Relaxed)).unwrap();
        Timestamp::now() + SignedDuration::from_micros(ahead)
    }
}

/// Draws that are the same in each run of a test.
#[derive(Debug, Default)]
struct PlayedDraws {
    fixed: Mutex<Option<f64>>,
    drawn: AtomicU32,
}

impl PlayedDraws {
    fn next(&self) -> f64 {
        if let Some(fixed) = *self.fixed.lock().unwrap() {
            return fixed;
        }
        // Steps of the golden ratio spread any number of draws evenly.
        let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
        (0.5 + f64::from(drawn) * 0.618_033_988_749_894_9).fract()
    }
}

/// Waits for an answer that is delayed on purpose, without the delay. The database must not be
/// asked in between, as the time-out of its answer would be over at once.
pub(crate) async fn at_once<T>(late: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let done = late.await;
    tokio::time::resume();
    done
}
