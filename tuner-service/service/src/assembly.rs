//! How the service is put together from its configuration, before anything listens or sweeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use io_autotune_catalogue::{LiveCatalogue, LiveRules, canonical_name};
use io_autotune_protocol::credentials::Credentials;
use io_autotune_store::{Store, StoreOptions};
use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::api::{self, CredentialCalls, Service};
use crate::clock::SystemClock;
use crate::config::{Config, StartupError};
use crate::door::Door;
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::reconcile::{Reconciled, Reconciliation};
use crate::reload::{Doorway, Reloading};
use crate::sharing::Sharing;
use crate::slurm::Cluster;
use crate::tls::{self, Tls, TlsConfig};

/// Users' reads are bounded by pages; a longer statement is ended before its client gives up.
const USERS_STATEMENT_TIMEOUT: Duration = Duration::from_secs(5);

/// The files that a site changes while the service runs.
pub(crate) struct SiteFiles {
    /// service.toml.
    pub(crate) path: PathBuf,
    pub(crate) catalogue: Arc<LiveCatalogue>,
    pub(crate) rules: Arc<LiveRules>,
}

/// The parts of a service, wired to each other.
pub(crate) struct Assembly {
    /// For nodes and the service's own work.
    pub(crate) store: Store,
    /// For users' requests: it has connections of its own, and its statements end earlier.
    pub(crate) users_store: Store,
    pub(crate) nodes: Service,
    pub(crate) users: Service,
    pub(crate) config: Config,
    /// The certificate in force, if there is one.
    tls: watch::Sender<Option<Arc<Tls>>>,
    pub(crate) files: SiteFiles,
}

impl Assembly {
    /// The store that nodes and the service's own work use.
    pub(crate) fn open_store(config: &Config) -> Store {
        Store::of(config.database.url.clone(), options(config))
    }

    /// Puts a service together. `store` is the one of [`open_store`](Self::open_store), and
    /// `credentials` read requests and sign answers.
    pub(crate) fn new(
        config: Config,
        files: SiteFiles,
        store: Store,
        credentials: Arc<dyn Credentials>,
    ) -> Result<Self, StartupError> {
        let certificate = config.tls.as_ref().map(TlsConfig::load).transpose()?;
        let metrics = Arc::new(Metrics::default());
        tls::announce(certificate.as_ref(), &metrics);
        let (tls, certificate) = watch::channel(certificate.map(Arc::new));
        let clusters = config.slurm.clusters(config.access.check_origins);
        let associations = clusters.iter();
        let associations = associations.filter_map(|cluster| cluster.associations.clone());
        let associations: Arc<[_]> = associations.collect();
        let sharing = Arc::new(Sharing::new(
            config.sharing.clone(),
            Arc::clone(&associations),
        ));
        let nodes = Service {
            door: Door::Nodes,
            store: store.clone(),
            credential_calls: CredentialCalls::of_nodes(),
            at_work: Arc::new(Semaphore::new(api::AT_WORK)),
            long_bodies: Arc::new(Semaphore::new(api::LONG_BODIES)),
            surrogates: Arc::default(),
            ready: Arc::default(),
            quotas: Arc::new(Quotas::new(config.users)),
            most_studies: config.users.studies,
            catalogue: Arc::clone(&files.catalogue),
            rules: Arc::clone(&files.rules),
            report: config.report.clone(),
            default_accelerator: canonical_name(&config.accelerators.default),
            otherwise: config.accelerators.otherwise.clone().into(),
            settings: config.study.settings(),
            exploring: config.exploring,
            access: Arc::new(Access::new(
                config.access.clone(),
                Arc::clone(&associations),
            )),
            credentials,
            clusters,
            associations,
            sharing,
            stuck_after: config.reconcile.lost_after(),
            retention: config.retention,
            admissions: Arc::default(),
            launches: Arc::default(),
            hosts: Arc::default(),
            apart: Arc::default(),
            certificate,
            metrics,
            clock: Arc::new(SystemClock),
            draw: Arc::new(rand::random),
        };
        let users_store = Store::of(
            config.database.url.clone(),
            StoreOptions {
                connections: config.database.user_connections,
                statement_timeout: USERS_STATEMENT_TIMEOUT,
                ..options(&config)
            },
        );
        let users = Service {
            door: Door::Users,
            store: users_store.clone(),
            credential_calls: CredentialCalls::of_users(),
            long_bodies: Arc::new(Semaphore::new(api::LONG_BODIES)),
            surrogates: Arc::default(),
            ..nodes.clone()
        };
        Ok(Self {
            store,
            users_store,
            nodes,
            users,
            config,
            tls,
            files,
        })
    }

    /// A reconciliation for each cluster. The first one's sweeps also do the work that concerns no
    /// single cluster.
    pub(crate) fn reconciliations(&self, reconciled: &Reconciled) -> Vec<Reconciliation> {
        let clusters = self.nodes.clusters.iter().enumerate();
        clusters
            .map(|(place, cluster): (usize, &Arc<Cluster>)| {
                let cluster = Arc::clone(cluster);
                let apart = Arc::clone(&self.nodes.apart);
                Reconciliation::new(
                    self.store.clone(),
                    cluster,
                    apart,
                    Arc::clone(&self.nodes.surrogates),
                    Arc::clone(&self.nodes.metrics),
                    place == 0,
                    reconciled.clone(),
                )
            })
            .collect()
    }

    /// The reloading of the site's files, with the routers of the nodes' and the users' door and
    /// the configuration of reconciliation, each as a channel of its latest value.
    pub(crate) fn reloading(self) -> (Reloading, Routers, watch::Receiver<Reconciled>) {
        let metrics = Arc::clone(&self.nodes.metrics);
        let (nodes_doorway, nodes) = Doorway::new(self.nodes);
        let (users_doorway, users) = Doorway::new(self.users);
        let (reconciled, as_reconciled) = watch::channel(self.config.reconciled());
        let reloading = Reloading {
            path: self.files.path,
            in_force: self.config,
            catalogue: self.files.catalogue,
            rules: self.files.rules,
            doorways: [nodes_doorway, users_doorway],
            reconciled,
            tls: self.tls,
            metrics,
        };
        (reloading, Routers { nodes, users }, as_reconciled)
    }
}

/// The routers that answer at each door now.
pub(crate) struct Routers {
    pub(crate) nodes: watch::Receiver<axum::Router>,
    pub(crate) users: watch::Receiver<axum::Router>,
}

fn options(config: &Config) -> StoreOptions {
    StoreOptions {
        connections: config.database.connections,
        most_studies: config.users.studies,
        reads_sources: config.reads_sources(),
        pooler: config.database.pooler,
        ..StoreOptions::default()
    }
}
