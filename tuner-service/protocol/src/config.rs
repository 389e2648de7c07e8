//! How the service is reached, for the CLI and the node helper: `/etc/io-autotune/client.toml`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Deserialize;

/// Where the service listens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Endpoint {
    /// `unix:/path/of/the.sock`
    Unix(PathBuf),
    /// `tcp:host:port`
    Tcp(String),
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("tcp", address))
                if address.rsplit_once(':').is_some_and(|(host, port)| {
                    !host.is_empty() && port.parse::<u16>().is_ok()
                }) =>
            {
                Ok(Self::Tcp(address.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is not an endpoint: write unix:/path or tcp:host:port"
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

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// The account that the service runs under, by name or number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ServiceAccount {
    /// A uid.
    Uid(u32),
    /// A login name.
    Name(String),
}

/// How the service is reached and how it is known to be the service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// Tried in this order, within the caller's one deadline.
    pub endpoints: Vec<Endpoint>,
    /// Only answers signed by this account are believed.
    pub service_user: ServiceAccount,
    /// munged's socket, where it is not libmunge's default.
    #[serde(default)]
    pub munge_socket: Option<PathBuf>,
}

/// Why a configuration could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read the configuration {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// The file is not of the expected form; the message has line and column.
    #[error("{path}: {source}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Box<toml::de::Error>,
    },
    /// No endpoint.
    #[error(
        "{0}: endpoints is empty: name at least one, such as \"unix:/run/io-autotuned/io-autotuned.sock\""
    )]
    NoEndpoint(PathBuf),
    /// The service's account does not exist here.
    #[error("service_user = {0:?}: no such account on this machine")]
    NoAccount(String),
}

impl ClientConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// When it cannot be read or is wrong; the message names the line.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Io {
            path: path.to_owned(),
            source,
        })?;
        let config: Self = toml::from_str(&text).map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        if config.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint(path.to_owned()));
        }
        Ok(config)
    }

    /// The service's uid.
    ///
    /// # Errors
    ///
    /// When the account does not exist on this machine.
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
    use super::*;

    #[test]
    fn the_shipped_sample_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/etc/client.toml");
        ClientConfig::load(&path).unwrap();
    }

    #[test]
    fn a_configuration_is_read_and_mistakes_are_named() {
        let good =
            "endpoints = [\"unix:/run/x.sock\", \"tcp:127.0.0.1:80\"]\nservice_user = \"root\"\n";
        let config: ClientConfig = toml::from_str(good).unwrap();
        assert_eq!(config.endpoints.len(), 2);
        assert_eq!(config.service_uid().unwrap(), 0);
        for (bad, expected) in [
            (
                good.replace("unix:", "unix"),
                "write unix:/path or tcp:host:port",
            ),
            (
                good.replace(":80", ":http"),
                "write unix:/path or tcp:host:port",
            ),
            (
                good.replace("service_user", "servce_user"),
                "unknown field `servce_user`",
            ),
        ] {
            let message = toml::from_str::<ClientConfig>(&bad)
                .unwrap_err()
                .to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
