//! A new configuration without a restart, on SIGHUP. Each request is answered by the configuration
//! that was in force when it came; a file that is wrong changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use io_autotune_catalogue::{Change, LiveCatalogue, LiveRules, canonical_name};
use io_autotune_configuration::differences;
use sd_notify::NotifyState;
use tokio::signal::unix::Signal;
use tokio::sync::watch;

use crate::access::Access;
use crate::api::{self, Service};
use crate::config::{Config, StartupError};
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::reconcile::Reconciled;
use crate::supervisor;
use crate::tls::{self, Tls, TlsConfig};

/// The keys of service.toml, with all keys below them, that stay as they were at the start.
const STAYS: &[&str] = &[
    "access.check_origins",
    "audience",
    "auth",
    "database",
    "listen",
    "munge",
    "sack",
    "slurm",
];

/// The router of one door, which a reload replaces.
pub(crate) struct Doorway {
    service: Service,
    router: watch::Sender<Router>,
}

impl Doorway {
    pub(crate) fn new(service: Service) -> (Self, watch::Receiver<Router>) {
        let (router, routed) = watch::channel(api::router(service.clone()));
        (Self { service, router }, routed)
    }
}

/// The site's files, which are read again as they change, and all that depends on them.
pub(crate) struct Reloading {
    pub(crate) path: PathBuf,
    pub(crate) in_force: Config,
    pub(crate) catalogue: Arc<LiveCatalogue>,
    pub(crate) rules: Arc<LiveRules>,
    pub(crate) doorways: [Doorway; 2],
    pub(crate) reconciled: watch::Sender<Reconciled>,
    pub(crate) tls: watch::Sender<Option<Arc<Tls>>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// A configuration that was read completely and can be put in force.
struct Read {
    config: Config,
    catalogue: Option<Arc<LiveCatalogue>>,
    rules: Option<Arc<LiveRules>>,
    /// Read anew each time: a renewed certificate is in the same files.
    tls: Option<Tls>,
    /// The keys that differ from those in force.
    changed: Vec<String>,
    /// The changed keys that wait for a restart.
    waiting: Vec<String>,
}

impl Reloading {
    /// Follows the catalogue and the rules: polls names and times of the files, which works on
    /// network file systems too. On SIGHUP the configuration as well.
    pub(crate) async fn follow(mut self, mut hangup: Signal, mut stopping: watch::Receiver<bool>) {
        const EVERY: std::time::Duration = std::time::Duration::from_secs(1);
        loop {
            let asked = tokio::select! {
                _ = stopping.changed() => return,
                Some(()) = hangup.recv() => true,
                () = tokio::time::sleep(EVERY) => false,
            };
            if asked {
                supervisor::tell_reloading();
                self = self.reloaded().await;
            }
            self.look().await;
            if asked {
                supervisor::tell(&[NotifyState::Ready]);
            }
        }
    }

    /// Reads service.toml anew, and puts it in force if it is valid.
    pub(crate) async fn reloaded(mut self) -> Self {
        // Files are read, and reading may block.
        let (reloading, read) = match tokio::task::spawn_blocking(move || {
            let read = self.read();
            (self, read)
        })
        .await
        {
            Ok(both) => both,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        self = reloading;
        match read {
            Ok(read) => self.put_in_force(read),
            Err(error) => {
                self.metrics.count_reload(false);
                tracing::error!(
                    %error,
                    "the configuration is not reloaded: the one in force stays as it is"
                );
            }
        }
        self
    }

    fn read(&self) -> Result<Read, StartupError> {
        let mut config = Config::load(&self.path)?;
        let mut changed = Vec::new();
        let mut waiting = Vec::new();
        for key in differences(&self.in_force, &config)? {
            let stays = STAYS.iter().any(|stays| {
                key.strip_prefix(stays)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            let keys = if stays { &mut waiting } else { &mut changed };
            keys.push(key);
        }
        // The URL is compared as it is shown, without its password.
        let database = "database.url".to_owned();
        if config.database.url != self.in_force.database.url && !waiting.contains(&database) {
            waiting.push(database);
        }
        config.keep(&self.in_force);
        let rules = (config.applications != self.in_force.applications)
            .then(|| LiveRules::open(config.applications.rules.as_deref()).map(Arc::new))
            .transpose()?;
        let catalogue = (config.accelerators.directory != self.in_force.accelerators.directory)
            .then(|| LiveCatalogue::open(&config.accelerators.directory).map(Arc::new))
            .transpose()?;
        let tls = config.tls.as_ref().map(TlsConfig::load).transpose()?;
        let named = catalogue.as_ref().unwrap_or(&self.catalogue);
        config.has_default(&named.current())?;
        config.can_be_chosen(&named.current())?;
        Ok(Read {
            config,
            catalogue,
            rules,
            tls,
            changed,
            waiting,
        })
    }

    fn put_in_force(&mut self, read: Read) {
        let config = read.config;
        if let Some(catalogue) = read.catalogue {
            self.catalogue = catalogue;
        }
        if let Some(rules) = read.rules {
            self.rules = rules;
        }
        let [nodes, _] = &self.doorways;
        let access = Arc::new(Access::new(
            config.access.clone(),
            Arc::clone(&nodes.service.associations),
        ));
        let sharing = Arc::clone(&nodes.service.sharing);
        let quotas = if config.users == self.in_force.users {
            Arc::clone(&nodes.service.quotas)
        } else {
            Arc::new(Quotas::new(config.users))
        };
        for doorway in &mut self.doorways {
            let service = &mut doorway.service;
            service.store = service
                .store
                .with(config.users.studies, config.reads_sources());
            service.most_studies = config.users.studies;
            service.quotas = Arc::clone(&quotas);
            service.access = Arc::clone(&access);
            service.catalogue = Arc::clone(&self.catalogue);
            service.rules = Arc::clone(&self.rules);
            service.default_accelerator = canonical_name(&config.accelerators.default);
            service.otherwise = config.accelerators.otherwise.clone().into();
            service.report = config.report.clone();
            service.settings = config.study.settings();
            service.exploring = config.exploring;
            service.stuck_after = config.reconcile.lost_after();
            service.retention = config.retention;
            let _previous = doorway.router.send_replace(api::router(service.clone()));
        }
        sharing.replace(config.sharing.clone());
        tls::announce(read.tls.as_ref(), &self.metrics);
        // Connections that are open go on with the certificate that they began with.
        self.tls.send_replace(read.tls.map(Arc::new));
        self.reconciled.send_replace(config.reconciled());
        self.in_force = config;
        self.metrics.count_reload(true);
        tracing::info!(
            changed = read.changed.join(", "),
            "the configuration is reloaded"
        );
        if !read.waiting.is_empty() {
            tracing::warn!(
                waiting = read.waiting.join(", "),
                "these have changed and hold only after a restart"
            );
        }
    }

    /// Follows what has changed in the catalogue and the rules.
    pub(crate) async fn look(&self) {
        let (catalogue, rules) = (Arc::clone(&self.catalogue), Arc::clone(&self.rules));
        let looked = tokio::task::spawn_blocking(move || (catalogue.refresh(), rules.refresh()));
        let Ok((changes, rules)) = looked.await else {
            return;
        };
        match rules {
            None => {}
            Some(Ok(rules)) => tracing::info!(rules, "rules for applications loaded"),
            Some(Err(refused)) => tracing::error!(
                path = %refused.path.display(), problem = refused.problem,
                "the rules for applications are refused: the last valid ones stay"
            ),
        }
        for change in changes {
            match change {
                Change::Loaded(accelerator) => tracing::info!(accelerator, "accelerator loaded"),
                Change::Gone(accelerator) => tracing::info!(accelerator, "accelerator gone"),
                Change::Refused(refused) => tracing::error!(
                    path = %refused.path.display(), problem = refused.problem,
                    "a catalogue file is refused: what it last described rightly stays"
                ),
            }
        }
    }
}
