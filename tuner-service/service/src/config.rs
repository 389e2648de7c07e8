//! `/etc/io-autotune/service.toml`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use io_autotune_catalogue::{CatalogueError, LookupError, RulesFileError};
use io_autotune_engine::{Settings, SettingsError};
use io_autotune_protocol::{Audience, Auth, Signer};
use io_autotune_store::StoreError;
use serde::Deserialize;

use crate::access::AccessConfig;
use crate::api::ReportConfig;
use crate::quota::QuotaConfig;
use crate::reconcile::ReconcileConfig;
use crate::retention::RetentionConfig;
use crate::sharing::SharingRule;
use crate::slurm::SlurmConfig;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// What is found if absent.
    auth: Option<Auth>,
    /// Which of several services this is, if they share a key and an account.
    audience: Option<Audience>,
    pub(crate) listen: ListenConfig,
    pub(crate) database: DatabaseConfig,
    #[serde(default)]
    munge: MungeConfig,
    #[serde(default)]
    sack: SackConfig,
    #[serde(default)]
    pub(crate) access: AccessConfig,
    #[serde(default)]
    pub(crate) users: QuotaConfig,
    pub(crate) accelerators: AcceleratorsConfig,
    #[serde(default)]
    pub(crate) applications: ApplicationsConfig,
    pub(crate) slurm: SlurmConfig,
    #[serde(default)]
    pub(crate) report: ReportConfig,
    #[serde(default)]
    pub(crate) reconcile: ReconcileConfig,
    #[serde(default)]
    pub(crate) retention: RetentionConfig,
    #[serde(default)]
    pub(crate) sharing: Vec<SharingRule>,
    #[serde(default)]
    pub(crate) study: Settings,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenConfig {
    /// A Unix socket open to every user: access is decided per request.
    pub(crate) unix: Option<PathBuf>,
    pub(crate) tcp: Option<SocketAddr>,
    /// The same for root of nodes alone. Nobody else's connection is accepted.
    pub(crate) nodes_unix: Option<PathBuf>,
    pub(crate) nodes_tcp: Option<SocketAddr>,
    /// Nodes may come from any port: where something between translates their addresses.
    #[serde(default)]
    pub(crate) nodes_any_port: bool,
    /// Where Prometheus reads `/metrics`, without a credential.
    pub(crate) metrics: Option<SocketAddr>,
    /// The most open connections of a host at each door.
    #[serde(default = "ListenConfig::default_host_connections")]
    pub(crate) host_connections: usize,
}

impl ListenConfig {
    fn default_host_connections() -> usize {
        64
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseConfig {
    pub(crate) url: String,
    /// For nodes and the service itself.
    #[serde(default = "DatabaseConfig::default_connections")]
    pub(crate) connections: u32,
    #[serde(default = "DatabaseConfig::default_user_connections")]
    pub(crate) user_connections: u32,
}

impl DatabaseConfig {
    fn default_connections() -> u32 {
        16
    }

    fn default_user_connections() -> u32 {
        6
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MungeConfig {
    /// munged's socket; libmunge's default if `None`.
    socket: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SackConfig {
    /// Asked in this order; Slurm's own if empty.
    sockets: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcceleratorsConfig {
    pub(crate) directory: PathBuf,
    /// The accelerator of requests that name none.
    pub(crate) default: String,
    /// Those that they get where that one cannot matter: the first that can.
    #[serde(default)]
    pub(crate) otherwise: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplicationsConfig {
    /// The file of rules; the built-in ones if `None`.
    pub(crate) rules: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartupError {
    #[error("cannot read the configuration {path}: {source}")]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {source}")]
    Syntax {
        path: PathBuf,
        source: Box<toml::de::Error>,
    },
    #[error(
        "[listen] names neither `unix` nor `tcp`, and systemd passes no socket: name at least one"
    )]
    NoListener,
    #[error("{path}: [study]: {source}")]
    Settings {
        path: PathBuf,
        source: SettingsError,
    },
    #[error("{path}: [[sharing]] {problem}")]
    Sharing { path: PathBuf, problem: String },
    #[error("{path}: [retention] {problem}")]
    Retention { path: PathBuf, problem: String },
    #[error(
        "{path}: [access] coordinators = true needs [slurm] associations = true, by which Slurm is asked who coordinates"
    )]
    Coordinators { path: PathBuf },
    #[error("{path}: [users] {problem}")]
    Quota { path: PathBuf, problem: String },
    #[error("a socket that systemd passes cannot be used: {0}")]
    Inherited(std::io::Error),
    #[error("the users' threads cannot be started: {0}")]
    Runtime(std::io::Error),
    #[error("the catalogue: {0}")]
    Catalogue(#[from] CatalogueError),
    #[error("[applications] rules: {0}")]
    Rules(#[from] RulesFileError),
    #[error("[accelerators] default = {name:?} is not in the catalogue: {problem}")]
    DefaultAccelerator { name: String, problem: LookupError },
    #[error("[accelerators] otherwise: {name:?} cannot be chosen for a job: {problem}")]
    Otherwise { name: String, problem: String },
    #[error("the database: {0}")]
    Store(#[from] StoreError),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        source: std::io::Error,
    },
}

impl Config {
    pub(crate) fn load(path: &Path) -> Result<Self, StartupError> {
        let text = std::fs::read_to_string(path).map_err(|source| StartupError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let config: Self = toml::from_str(&text).map_err(|source| StartupError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        config
            .users
            .validate()
            .map_err(|problem| StartupError::Quota {
                path: path.to_owned(),
                problem,
            })?;
        if config.access.coordinators && !config.slurm.associations {
            return Err(StartupError::Coordinators {
                path: path.to_owned(),
            });
        }
        SharingRule::validate(&config.sharing, config.slurm.associations).map_err(|problem| {
            StartupError::Sharing {
                path: path.to_owned(),
                problem,
            }
        })?;
        config
            .retention
            .validate()
            .map_err(|problem| StartupError::Retention {
                path: path.to_owned(),
                problem,
            })?;
        config
            .study
            .validate()
            .map_err(|source| StartupError::Settings {
                path: path.to_owned(),
                source,
            })?;
        Ok(config)
    }

    /// What reads requests and signs answers.
    pub(crate) fn signer(&self) -> Signer {
        Signer::new(
            self.auth,
            self.munge.socket.clone(),
            self.sack.sockets.clone(),
        )
        .among_others(self.audience.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_sample_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/etc/service.toml");
        Config::load(&path).unwrap();
    }

    #[test]
    fn coordinators_need_associations() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        for (associations, is_taken) in [("true", true), ("false", false)] {
            let text = sample
                .replace("coordinators = false", "coordinators = true")
                .replace(
                    "associations = false",
                    &format!("associations = {associations}"),
                );
            assert_ne!(text, sample);
            std::fs::write(&path, text).unwrap();
            match Config::load(&path) {
                Ok(_) => assert!(is_taken),
                Err(error) => {
                    assert!(!is_taken, "{error}");
                    assert!(error.to_string().contains("[slurm] associations = true"));
                }
            }
        }
    }

    #[test]
    fn a_typing_mistake_is_named() {
        let text = "[listen]\ntcp = \"127.0.0.1:1\"\n[databse]\nurl = \"x\"\n";
        let error = toml::from_str::<Config>(text).unwrap_err().to_string();
        assert!(error.contains("databse"), "{error}");
    }
}
