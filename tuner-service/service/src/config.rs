//! `/etc/io-autotune/service.toml`.

mod earlier;
mod study;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use io_autotune_catalogue::{Catalogue, CatalogueError, LookupError, RulesFileError};
use io_autotune_configuration::{
    File, Met, Mistake, Origin, Shown, ShownError, parse_with_earlier, read_text,
};
use io_autotune_engine::{PriorFrom, SettingsError};
use io_autotune_protocol::credentials::Credentials;
use io_autotune_protocol::{Addressed, Audience, Auth, Signer};
use io_autotune_store::{DatabaseUrl, Pooler, StoreError, UrlError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use self::study::StudyConfig;
use crate::access::AccessConfig;
use crate::api::ReportConfig;
use crate::exploring::ExploringConfig;
use crate::quota::QuotaConfig;
use crate::reconcile::{ReconcileConfig, Reconciled};
use crate::retention::RetentionConfig;
use crate::sharing::SharingRule;
use crate::slurm::SlurmConfigs;
use crate::tls::{TlsConfig, TlsError};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The back-end of credentials; detected if absent.
    auth: Option<Auth>,
    /// The name of this service among several that share a key and an account.
    audience: Option<Audience>,
    pub(crate) listen: ListenConfig,
    /// TLS at the TCP addresses of `listen`, except that of metrics.
    pub(crate) tls: Option<TlsConfig>,
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
    pub(crate) slurm: SlurmConfigs,
    #[serde(default)]
    pub(crate) report: ReportConfig,
    #[serde(default)]
    pub(crate) reconcile: ReconcileConfig,
    #[serde(default)]
    pub(crate) retention: RetentionConfig,
    #[serde(default)]
    pub(crate) exploring: ExploringConfig,
    #[serde(default)]
    pub(crate) sharing: Vec<SharingRule>,
    #[serde(default)]
    pub(crate) study: StudyConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenConfig {
    /// A Unix socket open to every user: access is decided per request.
    pub(crate) unix: Option<PathBuf>,
    pub(crate) tcp: Option<SocketAddr>,
    /// The same for root of nodes alone; connections of others are closed.
    pub(crate) nodes_unix: Option<PathBuf>,
    pub(crate) nodes_tcp: Option<SocketAddr>,
    /// Nodes may connect from any port, for sites where their addresses are translated.
    #[serde(default)]
    pub(crate) nodes_any_port: bool,
    /// The address at which Prometheus reads `/metrics`, without a credential.
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DatabaseConfig {
    /// Shown without its password.
    pub(crate) url: DatabaseUrl,
    /// For nodes and the service itself.
    #[serde(
        default = "DatabaseConfig::default_connections",
        deserialize_with = "connections"
    )]
    pub(crate) connections: u32,
    #[serde(
        default = "DatabaseConfig::default_user_connections",
        deserialize_with = "connections"
    )]
    pub(crate) user_connections: u32,
    #[serde(default)]
    pub(crate) pooler: Pooler,
}

impl DatabaseConfig {
    fn default_connections() -> u32 {
        16
    }

    fn default_user_connections() -> u32 {
        6
    }
}

/// A pool has one at least, and memory for all of them from the beginning.
fn connections<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    const MOST: u32 = 1000;
    match u32::deserialize(deserializer)? {
        number @ 1..=MOST => Ok(number),
        other => Err(D::Error::custom(format!(
            "{other} connections cannot be: from 1 to {MOST}"
        ))),
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MungeConfig {
    /// munged's socket; libmunge's default if `None`.
    socket: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SackConfig {
    /// Asked in this order; Slurm's own if empty.
    sockets: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcceleratorsConfig {
    pub(crate) directory: PathBuf,
    /// The accelerator of requests that name none.
    pub(crate) default: String,
    /// The accelerators for such requests where the default one cannot matter: the first that can
    /// is taken.
    #[serde(default)]
    pub(crate) otherwise: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    Syntax { path: PathBuf, source: Mistake },
    #[error(transparent)]
    Shown(#[from] ShownError),
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
    #[error("{path}: [exploring] {problem}")]
    Exploring { path: PathBuf, problem: String },
    #[error(
        "{path}: [access] coordinators = true needs [slurm] associations = true, by which Slurm is asked who coordinates"
    )]
    Coordinators { path: PathBuf },
    #[error("{path}: [slurm] {problem}")]
    Slurm { path: PathBuf, problem: String },
    #[error("--map-cluster {0}: service.toml has no cluster of this name: it has {1}")]
    NoCluster(String, String),
    #[error("{path}: [users] {problem}")]
    Quota { path: PathBuf, problem: String },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("a socket that systemd passes cannot be used: {0}")]
    Inherited(std::io::Error),
    #[error("the users' threads cannot be started: {0}")]
    Runtime(std::io::Error),
    #[error("the catalogue: {0}")]
    Catalogue(#[from] CatalogueError),
    #[error("{0}")]
    Check(String),
    #[error("[applications] rules: {0}")]
    Rules(#[from] RulesFileError),
    #[error("[accelerators] default = {name:?} is not in the catalogue: {problem}")]
    DefaultAccelerator { name: String, problem: LookupError },
    #[error("[accelerators] otherwise: {name:?} cannot be chosen for a job: {problem}")]
    Otherwise { name: String, problem: String },
    #[error("[database] url: {0}")]
    DatabaseFiles(#[from] UrlError),
    #[error(
        "{path}: [database] url sets options of a session, and with pooler = \"transaction\" there is none: set them \
         for the role (`alter role ... set ...`)"
    )]
    OptionsOfNoSession { path: PathBuf },
    #[error("--migrate: {0}")]
    MigrateUrl(UrlError),
    #[error("--database: {0}")]
    ForgetUrl(UrlError),
    #[error("root is nobody who leaves: no line of the audit loses it")]
    ForgetRoot,
    #[error(
        "nothing was changed: {1} runs of {0} are in flight or wait for a verdict. Let the jobs end or cancel them, and \
         try again when `io-autotune history --user {0}` shows none in flight"
    )]
    ForgetAwaited(String, u64),
    #[error("the database: {}", .0.with_remedy())]
    Store(#[from] StoreError),
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        source: std::io::Error,
    },
}

/// A file that was read.
struct Read {
    config: Config,
    text: String,
    /// The keys of earlier releases in it.
    met: Vec<Met>,
}

impl Config {
    /// Returns true if studies use what other studies have learnt as a prior.
    pub(crate) fn reads_sources(&self) -> bool {
        self.study.prior == PriorFrom::Site
    }

    /// Reads a file. Keys of earlier releases are logged as one line.
    pub(crate) fn load(path: &Path) -> Result<Self, StartupError> {
        let Read { config, met, .. } = Self::read(path)?;
        if !met.is_empty() {
            let lines: Vec<String> = met.iter().map(|met| met.line.to_string()).collect();
            tracing::warn!(
                path = %path.display(),
                lines = lines.join(", "),
                "keys of an earlier release are read as what replaces them: `io-autotuned --check` says what to write"
            );
        }
        Ok(config)
    }

    /// Reads a file, and says of each key of an earlier release what to write instead.
    pub(crate) fn checked(path: &Path) -> Result<(Self, Vec<String>), StartupError> {
        let Read { config, met, .. } = Self::read(path)?;
        let said = met.into_iter();
        let said = said.map(|met| format!("{}:{}: {}", path.display(), met.line, met.said));
        Ok((config, said.collect()))
    }

    /// The configuration that a file puts in force, as TOML. `origin`: why it is this file.
    pub(crate) fn shown(path: &Path, origin: &Origin) -> Result<String, StartupError> {
        let Read { config, text, .. } = Self::read(path)?;
        let file = File {
            path,
            text: Some(&text),
            renamed: earlier::RENAMED,
        };
        let mut shown = Shown::default();
        shown.note(&path.to_string_lossy(), origin);
        shown.file("", &config, file)?;
        Ok(shown.text())
    }

    fn read(path: &Path) -> Result<Read, StartupError> {
        let text = read_text(path).map_err(|source| StartupError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let read = parse_with_earlier::<Self>(&text, earlier::EARLIER);
        let (config, met) = read.map_err(|source| StartupError::Syntax {
            path: path.to_owned(),
            source,
        })?;
        if config.database.pooler == Pooler::Transaction && config.database.url.has_options() {
            return Err(StartupError::OptionsOfNoSession {
                path: path.to_owned(),
            });
        }
        config
            .users
            .validate()
            .map_err(|problem| StartupError::Quota {
                path: path.to_owned(),
                problem,
            })?;
        config
            .slurm
            .validate()
            .map_err(|problem| StartupError::Slurm {
                path: path.to_owned(),
                problem,
            })?;
        let associations = config.slurm.have_associations();
        if config.access.coordinators && !associations {
            return Err(StartupError::Coordinators {
                path: path.to_owned(),
            });
        }
        SharingRule::validate(&config.sharing, associations).map_err(|problem| {
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
            .exploring
            .validate()
            .map_err(|problem| StartupError::Exploring {
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
        Ok(Read { config, text, met })
    }

    /// Keeps the values that a reload cannot change, from the configuration of the start.
    pub(crate) fn keep(&mut self, started: &Self) {
        self.auth = started.auth;
        self.audience.clone_from(&started.audience);
        self.listen.clone_from(&started.listen);
        self.database.clone_from(&started.database);
        self.munge.clone_from(&started.munge);
        self.sack.clone_from(&started.sack);
        self.slurm.clone_from(&started.slurm);
        self.access.check_origins = started.access.check_origins;
    }

    /// The configuration of reconciliation.
    pub(crate) fn reconciled(&self) -> Reconciled {
        Reconciled {
            settings: self.study.settings(),
            config: self.reconcile,
            retention: self.retention,
        }
    }

    /// Returns an error if the catalogue lacks the default accelerator.
    pub(crate) fn has_default(&self, catalogue: &Catalogue) -> Result<(), StartupError> {
        let name = &self.accelerators.default;
        catalogue
            .find(name)
            .map(drop)
            .map_err(|problem| StartupError::DefaultAccelerator {
                name: name.clone(),
                problem,
            })
    }

    /// Returns an error if an accelerator of `otherwise` is missing, or if nothing shows that it is
    /// used.
    pub(crate) fn can_be_chosen(&self, catalogue: &Catalogue) -> Result<(), StartupError> {
        for name in &self.accelerators.otherwise {
            let problem = match catalogue.find(name) {
                Err(problem) => problem.to_string(),
                Ok(accelerator) if accelerator.used_if.is_none() => {
                    "no measure shows whether a job uses it: write one accelerator whose file has used_if"
                        .to_owned()
                }
                Ok(_) => continue,
            };
            let name = name.clone();
            return Err(StartupError::Otherwise { name, problem });
        }
        Ok(())
    }

    /// The back-end that reads requests' credentials and signs answers.
    pub(crate) fn signer(&self) -> Addressed<Signer> {
        self.addressed(Signer::new(
            self.auth,
            self.munge.socket.clone(),
            self.sack.sockets.clone(),
        ))
    }

    /// Credentials for this service, by its audience.
    pub(crate) fn addressed<C: Credentials>(&self, credentials: C) -> Addressed<C> {
        Addressed::to(self.audience.as_ref(), credentials)
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_configuration::parse;

    use super::*;

    #[test]
    fn the_shipped_sample_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/etc/service.toml");
        Config::load(&path).unwrap();
    }

    #[test]
    fn the_shipped_sample_is_one_clusters_or_several() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let other = "[[slurm]]\ncluster = \"other\"\nconf = \"/etc/slurm-other/slurm.conf\"\n";
        let in_sample = other.lines().map(|line| format!("# {line}\n"));
        let several = sample
            .replace("\n[slurm]\n", "\n[[slurm]]\n")
            .replace(&in_sample.collect::<String>(), other);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        for (text, expected) in [(sample, "mycluster"), (&several, "mycluster other")] {
            std::fs::write(&path, text).unwrap();
            let names = Config::load(&path).unwrap().slurm.names();
            assert_eq!(names.join(" "), expected);
            let shown = Config::shown(&path, &Origin::Default).unwrap();
            std::fs::write(&path, &shown).unwrap();
            assert_eq!(Config::load(&path).unwrap().slurm.names(), names, "{shown}");
        }
        std::fs::write(&path, several.replace("\"other\"", "\"Other\"")).unwrap();
        let refused = Config::load(&path).unwrap_err().to_string();
        assert!(
            refused.contains("[slurm] cluster = \"Other\" is no ClusterName"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_shown_is_read_again_as_the_same() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let least = "[listen]\nunix = \"/s\"\n[database]\nurl = \"postgres:///x\"\n[accelerators]\ndirectory = \"/a\"\ndefault = \"romio\"\n[slurm]\ncluster = \"c\"\n";
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        let shown_again = directory.path().join("shown.toml");
        let every = sample
            .replace("# programs", "programs")
            .replace("# days", "days");
        let earlier =
            format!("{least}[study.loss]\nshare = 0.2\n[study.robert2020]\nmutation_rate = 0.5\n");
        for text in [sample, least, &every, &earlier] {
            std::fs::write(&path, text).unwrap();
            let shown = Config::shown(&path, &Origin::Default).unwrap();
            std::fs::write(&shown_again, &shown).unwrap();
            assert_eq!(
                Config::load(&shown_again).unwrap(),
                Config::load(&path).unwrap(),
                "{shown}"
            );
        }
        let shown = Config::shown(&path, &Origin::Default).unwrap();
        let of_file = |line| format!("# {}:{line}\n", path.display());
        assert!(
            shown.contains(&format!("share = 0.2 {}", of_file(11))),
            "{shown}"
        );
        assert!(shown.contains(&format!("mutation_rate = 0.5 {}", of_file(13))));
        assert!(shown.contains("poll_seconds = 5.0 # default\n"));
        assert!(!shown.contains("days"));
    }

    /// A site sees all that it can set, but for the variants of papers' methods, and no more than it can
    /// read in an hour.
    #[test]
    fn the_sample_has_each_setting_and_they_are_few() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let is_key = |line: &&str| {
            let line = line.strip_prefix("# ").unwrap_or(line);
            line.split_once(" = ").is_some_and(|(key, _)| {
                key.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            })
        };
        let keys: Vec<&str> = sample.lines().filter(is_key).collect();
        assert!(keys.len() <= 80, "{} settings", keys.len());
        let with_all = sample
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(key) if is_key(&line) || key.starts_with('[') => key,
                _ => line,
            })
            .collect::<Vec<_>>()
            .join("\n");
        let table: toml::Table = with_all
            .replace("\n[slurm]\n", "\n[[slurm]]\n")
            .parse()
            .unwrap_or_else(|error| panic!("{error}: {with_all}"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        std::fs::write(&path, sample).unwrap();
        let shown: toml::Table = Config::shown(&path, &Origin::Default)
            .unwrap()
            .parse()
            .unwrap();
        for (section, keys) in &shown {
            let has = |key: &str| match table.get(section) {
                Some(toml::Value::Table(there)) => there.contains_key(key),
                Some(toml::Value::Array(rows)) => rows[0].get(key).is_some(),
                _ => false,
            };
            for key in keys.as_table().into_iter().flat_map(toml::Table::keys) {
                let is_a_methods = key == "engine" || key.contains("20");
                assert!(
                    has(key) || is_a_methods,
                    "[{section}] {key} is not in the sample"
                );
            }
        }
    }

    #[test]
    fn no_password_is_shown() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        let text = sample.replace(
            "postgres:///io_autotune?",
            "postgres://me:s3cret@db/io_autotune?",
        );
        assert_ne!(text, sample);
        std::fs::write(&path, text).unwrap();
        let shown = Config::shown(&path, &Origin::Default).unwrap();
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(
            shown.contains("postgres://me:***@db/io_autotune?host="),
            "{shown}"
        );
    }

    /// Attack (database): The database's URL is empty, another's, or misspelt.
    /// Outcome: It is refused with what to write, and no password is shown.
    #[test]
    fn a_database_that_cannot_be_reached_so_is_refused() {
        let sample = include_str!("../../../deploy/etc/service.toml");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        let url = "url = \"postgres:///io_autotune?host=/var/run/postgresql&user=io-autotune\"";
        let pooler = "pooler = \"none\"";
        for (right, wrong, expected) in [
            (url, "url = \"\"", "the URL is empty"),
            (url, "url = \"host=db password=s3cret\"", "this is no URL"),
            (url, "url = \"mysql:///x\"", "mysql:// is not PostgreSQL"),
            (
                url,
                "url = \"postgres://me:s3cret@h/x?sslmode=verify_full\"",
                "sslmode=verify_full cannot be",
            ),
            ("connections = 16 ", "connections = 0 ", "from 1 to 1000"),
            (
                "user_connections = 6 ",
                "user_connections = 4294967295 ",
                "from 1 to 1000",
            ),
            (pooler, "pooler = \"session\"", "unknown variant `session`"),
            (
                pooler,
                "pooler = \"transaction\"",
                "sets options of a session",
            ),
        ] {
            let mut text = sample.replacen(right, wrong, 1);
            assert_ne!(text, sample, "{right}");
            if expected.starts_with("sets options") {
                text = text.replacen("user=io-autotune", "options[work_mem]=1MB", 1);
            }
            std::fs::write(&path, text).unwrap();
            let refused = Config::load(&path).unwrap_err().to_string();
            assert!(refused.contains(expected), "{wrong}: {refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
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
    fn a_file_is_utf_8_with_or_without_a_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        let sample = include_str!("../../../deploy/etc/service.toml");
        std::fs::write(&path, format!("\u{feff}{}", sample.replace('\n', "\r\n"))).unwrap();
        assert_eq!(Config::load(&path).unwrap(), parse(sample).unwrap());
        std::fs::write(&path, [b"\n# f\xfcr alle\n", sample.as_bytes()].concat()).unwrap();
        let error = Config::load(&path).unwrap_err().to_string();
        assert!(error.contains("line 2 is not in UTF-8"), "{error}");
        assert!(error.contains("service.toml"), "{error}");
    }

    #[test]
    fn a_typing_mistake_is_named() {
        let text = "[listen]\ntcp = \"127.0.0.1:1\"\n[databse]\nurl = \"x\"\n";
        let error = parse::<Config>(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `databse`"), "{error}");
        assert!(error.contains("did you mean `database`?"), "{error}");
        let sample = include_str!("../../../deploy/etc/service.toml");
        for (right, wrong) in [
            ("poll_seconds", "pol_seconds"),
            ("admins", "adminz"),
            ("unread_runs", "unread_run"),
            ("control_every", "controls_every"),
            ("\"surrogate-genetic\"", "\"surogate-genetic\""),
        ] {
            let text = sample.replacen(right, wrong, 1);
            let error = parse::<Config>(&text).unwrap_err().to_string();
            let right = right.trim_matches('"');
            let expected = format!("did you mean `{right}`?");
            assert!(error.ends_with(&expected), "{error}");
        }
    }
}
