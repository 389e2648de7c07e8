//! The client's configuration, for the CLI and the node helper: `/etc/io-autotune/client.toml`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use io_autotune_configuration::{File, Mistake, Shown, ShownError, parse, read_text};
use serde::{Deserialize, Serialize};

use crate::believed::may_be_used;
use crate::signer::{Addressed, Audience, Auth, Signer};
use crate::tls;

/// An address where the service listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Endpoint {
    /// `unix:/path/of/the.sock`
    Unix(PathBuf),
    /// `tcp:host:port`, in clear text
    Tcp(String),
    /// `tls:host:port`, where the service's certificate must be for this host
    Tls(String),
}

/// Returns true for `host:port`.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) if is_address(address) => Ok(Self::Tcp(address.to_owned())),
            Some(("tls", address)) if is_address(address) && tls::name(address).is_some() => {
                Ok(Self::Tls(address.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is not an endpoint: write unix:/path, tcp:host:port or tls:host:port"
            )),
        }
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> Self {
        endpoint.to_string()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Tls(address) => write!(f, "tls:{address}"),
        }
    }
}

/// The service's account, by name or number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ServiceAccount {
    /// A uid.
    Uid(u32),
    /// A login name.
    Name(String),
}

/// The configuration that says how to reach the service, and how to recognise it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The addresses, asked in this order within the caller's deadline.
    pub endpoints: Vec<Endpoint>,
    /// The service's addresses for nodes, which root of a node asks instead unless the list is
    /// empty.
    #[serde(default)]
    pub node_endpoints: Vec<Endpoint>,
    /// The PEM file of the authorities whose certificates are believed at `tls:` endpoints.
    pub tls_ca: Option<PathBuf>,
    /// Only answers signed by this account are believed.
    pub service_user: ServiceAccount,
    /// The back-end of credentials; absent: the one that is found.
    pub auth: Option<Auth>,
    /// The name of the service, if several services share a key and an account.
    pub audience: Option<Audience>,
    /// munged's socket, if it is not libmunge's default.
    pub munge_socket: Option<PathBuf>,
    /// SACK's sockets, in the order in which they are asked, if they are not Slurm's defaults.
    #[serde(default)]
    pub sack_sockets: Vec<PathBuf>,
}

/// The reason why a configuration could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file has a wrong form; the message has line and column.
    #[error("{path}: {source}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: Mistake,
    },
    /// Root refuses a file that others can write.
    #[error("{0} must be root's, and nobody else's to write, for root to use it")]
    Untrusted(PathBuf),
    /// The list of endpoints is empty.
    #[error(
        "{0}: endpoints is empty: name at least one, such as \"unix:/run/io-autotuned/io-autotuned.sock\""
    )]
    NoEndpoint(PathBuf),
    /// An endpoint has TLS, and nothing says whose certificates are believed.
    #[error(
        "{0}: {1} needs tls_ca: name the PEM file of the authority that has signed the service's certificate"
    )]
    NoAuthority(PathBuf, Endpoint),
    /// The configuration cannot be shown.
    #[error(transparent)]
    Shown(#[from] ShownError),
    /// The service's account does not exist on this machine.
    #[error("service_user = {0:?}: no such account on this machine")]
    NoAccount(String),
}

impl ClientConfig {
    /// Reads a configuration file. Returns an error with the line if it cannot be read or is wrong;
    /// for root also if another user could have written it.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Ok(Self::read(path)?.0)
    }

    /// Adds the configuration in force with this file to `shown`, below a table `client`. Errors
    /// are those of [`ClientConfig::load`].
    pub fn show(path: &Path, shown: &mut Shown) -> Result<(), ConfigError> {
        let (config, text) = Self::read(path)?;
        let file = File {
            path,
            text: Some(&text),
            renamed: &[],
        };
        Ok(shown.file("client", &config, file)?)
    }

    fn read(path: &Path) -> Result<(Self, String), ConfigError> {
        let unreadable = |source| ConfigError::Io {
            path: path.to_owned(),
            source,
        };
        if !may_be_used(path).map_err(unreadable)? {
            return Err(ConfigError::Untrusted(path.to_owned()));
        }
        let text = read_text(path).map_err(unreadable)?;
        let config: Self = parse(&text).map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source,
        })?;
        if config.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint(path.to_owned()));
        }
        let mut all = config.endpoints.iter().chain(&config.node_endpoints);
        let secured = all.find(|endpoint| matches!(endpoint, Endpoint::Tls(_)));
        if let (Some(endpoint), None) = (secured, &config.tls_ca) {
            let endpoint = endpoint.clone();
            return Err(ConfigError::NoAuthority(path.to_owned(), endpoint));
        }
        Ok((config, text))
    }

    /// The same configuration for root of a node, which asks the addresses for nodes.
    #[must_use]
    pub fn for_node(mut self) -> Self {
        if !self.node_endpoints.is_empty() {
            self.endpoints = std::mem::take(&mut self.node_endpoints);
        }
        self
    }

    /// The signer of requests on this host.
    #[must_use]
    pub fn signer(&self) -> Addressed<Signer> {
        let signer = Signer::new(
            self.auth,
            self.munge_socket.clone(),
            self.sack_sockets.clone(),
        );
        Addressed::to(self.audience.as_ref(), signer)
    }

    /// The service's uid. Returns an error if the account does not exist on this machine.
    pub fn service_uid(&self) -> Result<u32, ConfigError> {
        match &self.service_user {
            ServiceAccount::Uid(uid) => Ok(*uid),
            ServiceAccount::Name(name) => nix::unistd::User::from_name(name)
                .ok()
                .flatten()
                .map(|user| user.uid.as_raw())
                .ok_or_else(|| ConfigError::NoAccount(name.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    const GOOD: &str =
        "endpoints = [\"unix:/run/x.sock\", \"tcp:127.0.0.1:80\"]\nservice_user = \"root\"\n";

    /// Attack (files): A file that root reads, or its directory, is a link, a FIFO, too long, or
    /// writable by others.
    #[test]
    fn root_uses_no_configuration_that_another_can_have_written() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.toml");
        std::fs::write(&path, GOOD).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o644);
        ClientConfig::load(&path).unwrap();
        for open in [0o646, 0o664] {
            mode(open);
            let error = ClientConfig::load(&path).unwrap_err();
            assert!(matches!(error, ConfigError::Untrusted(_)), "{error}");
        }
        mode(0o644);
        chown(&path, Some(1000), None).unwrap();
        assert!(matches!(
            ClientConfig::load(&path),
            Err(ConfigError::Untrusted(_))
        ));
        assert!(matches!(
            ClientConfig::load(Path::new("/dev/zero")),
            Err(ConfigError::Untrusted(_))
        ));
    }

    #[test]
    fn a_file_is_utf_8_with_or_without_a_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.toml");
        std::fs::write(&path, format!("\u{feff}{}", GOOD.replace('\n', "\r\n"))).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let endpoints = parse::<ClientConfig>(GOOD).unwrap().endpoints;
        assert_eq!(ClientConfig::load(&path).unwrap().endpoints, endpoints);
        std::fs::write(&path, [GOOD.as_bytes(), b"# \xfc\n"].concat()).unwrap();
        let error = ClientConfig::load(&path).unwrap_err().to_string();
        let line = GOOD.matches('\n').count() + 1;
        assert!(
            error.contains(&format!("line {line} is not in UTF-8")),
            "{error}"
        );
    }

    #[test]
    fn tls_needs_an_authority_whichever_door_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.toml");
        let at_nodes = format!("{GOOD}node_endpoints = [\"tls:[::1]:80\"]\n");
        for text in [GOOD.replace("tcp:", "tls:"), at_nodes] {
            std::fs::write(&path, &text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            let error = ClientConfig::load(&path).unwrap_err().to_string();
            assert!(error.contains(":80 needs tls_ca"), "{error}");
            std::fs::write(&path, format!("{text}tls_ca = \"/ca.pem\"\n")).unwrap();
            ClientConfig::load(&path).unwrap();
        }
    }

    /// Attack (parsers): A file of an admin's.
    #[test]
    fn fuzz_client_toml() {
        io_autotune_fuzzing::Target::new("client_toml", &[GOOD]).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match toml::from_str::<ClientConfig>(text) {
                Ok(config) => {
                    let _ = config.service_uid();
                }
                Err(error) => assert!(error.to_string().contains("line"), "{error}"),
            }
        });
    }

    #[test]
    fn the_shipped_sample_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/etc/client.toml");
        ClientConfig::load(&path).unwrap();
    }

    #[test]
    fn what_is_shown_is_read_again_as_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("client.toml");
        let sample = include_str!("../../../deploy/etc/client.toml");
        let more = format!(
            "{GOOD}audience = \"a\"\nmunge_socket = \"/m\"\nsack_sockets = [\"/s\"]\nauth = \"munge\"\n"
        );
        let secured = format!("{}tls_ca = \"/ca.pem\"\n", GOOD.replace("tcp:", "tls:"));
        for text in [
            sample,
            GOOD,
            &more,
            &more.replace("\"root\"", "0"),
            &secured,
        ] {
            std::fs::write(&path, text).unwrap();
            let mut shown = Shown::default();
            ClientConfig::show(&path, &mut shown).unwrap();
            let shown = shown.text();
            let read = toml::from_str::<toml::Table>(&shown).unwrap()["client"].clone();
            assert_eq!(
                read.try_into::<ClientConfig>().unwrap(),
                ClientConfig::load(&path).unwrap(),
                "{shown}"
            );
            assert!(shown.contains("client.toml:"), "{shown}");
        }
    }

    #[test]
    fn a_configuration_is_read_and_mistakes_are_named() {
        let good = GOOD;
        let config: ClientConfig = toml::from_str(good).unwrap();
        assert_eq!(config.endpoints.len(), 2);
        assert_eq!(config.service_uid().unwrap(), 0);
        assert_eq!(config.auth, None);
        let slurm = format!("{good}auth = \"slurm\"\nsack_sockets = [\"/run/x/sack.socket\"]\n");
        let config: ClientConfig = toml::from_str(&slurm).unwrap();
        assert_eq!(config.auth, Some(Auth::Slurm));
        for (bad, expected) in [
            (
                good.replace("unix:", "unix"),
                "write unix:/path, tcp:host:port or tls:host:port",
            ),
            (
                good.replace(":80", ":http"),
                "write unix:/path, tcp:host:port or tls:host:port",
            ),
            (
                good.replace("tcp:127.0.0.1", "tls:not a name"),
                "write unix:/path, tcp:host:port or tls:host:port",
            ),
            (
                good.replace("service_user", "servce_user"),
                "did you mean `service_user`?",
            ),
            (
                format!("{good}auth = \"slrum\"\n"),
                "expected `munge` or `slurm`; did you mean `slurm`?",
            ),
        ] {
            let message = parse::<ClientConfig>(&bad).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
