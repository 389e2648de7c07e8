//! The choice of the back-end that signs on this host.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::credentials::{Backend, CredentialError, Credentials, Decoded};
use crate::munge::Munge;
use crate::sack::Sack;

/// The setting `auth` of client.toml and service.toml, which all hosts of a cluster share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// MUNGE credentials.
    Munge,
    /// Tokens of Slurm's auth/slurm.
    Slurm,
}

/// The name of a service among several that share a key and an account: `audience` of client.toml
/// and service.toml. A signature for one service is not valid for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Audience(String);

impl TryFrom<String> for Audience {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self(text))
        } else {
            Err(format!(
                "{text:?} is no audience: write 1 to 64 printable characters without spaces"
            ))
        }
    }
}

/// A back-end, MUNGE or SACK, as configured or as found on the host.
#[derive(Debug)]
pub struct Signer {
    auth: Option<Auth>,
    munge: Munge,
    sack: Sack,
}

impl Signer {
    /// A signer by the configuration. Without `auth`, MUNGE signs if its socket is configured or
    /// exists, otherwise SACK if one of its sockets exists. If no socket of munged is given,
    /// libmunge's default is used; if none of SACK is given, Slurm's own.
    #[must_use]
    pub fn new(
        auth: Option<Auth>,
        munge_socket: Option<PathBuf>,
        sack_sockets: Vec<PathBuf>,
    ) -> Self {
        Self {
            auth,
            munge: Munge {
                socket: munge_socket,
            },
            sack: Sack::new(sack_sockets),
        }
    }

    /// Looked up anew each time: at boot the service may start before the back-end's socket exists.
    fn found(&self) -> Auth {
        self.auth.unwrap_or_else(|| {
            let has_munge =
                self.munge.socket.is_some() || Path::new("/run/munge/munge.socket.2").exists();
            if !has_munge && self.sack.is_there() {
                Auth::Slurm
            } else {
                Auth::Munge
            }
        })
    }

    fn chosen(&self) -> &dyn Credentials {
        match self.found() {
            Auth::Munge => &self.munge,
            Auth::Slurm => &self.sack,
        }
    }

    /// Adds a hint to the error if MUNGE was asked only because no socket was found: a SACK of
    /// 26.05 removes its socket when it stops.
    fn explained<T>(&self, result: Result<T, CredentialError>) -> Result<T, CredentialError> {
        let is_a_guess = self.auth.is_none() && self.munge.socket.is_none();
        result.map_err(|error| match error {
            CredentialError::Unavailable { backend, problem }
                if backend == Backend::Munge && is_a_guess && !self.sack.is_there() =>
            {
                let problem =
                    format!("{problem} (no socket of SACK's is there, and no `auth` set)");
                CredentialError::Unavailable { backend, problem }
            }
            other => other,
        })
    }
}

impl Credentials for Signer {
    fn backend(&self) -> Backend {
        self.chosen().backend()
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        self.explained(self.chosen().encode(payload, reader))
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        self.explained(self.chosen().decode(credential))
    }
}

/// Credentials for one of several services that share a key and an account.
#[derive(Debug)]
pub struct Addressed<C> {
    credentials: C,
    /// The text that follows each payload.
    suffix: String,
}

impl<C: Credentials> Addressed<C> {
    /// Credentials for a service; `None`: for the only one.
    #[must_use]
    pub fn to(audience: Option<&Audience>, credentials: C) -> Self {
        let suffix = audience.map_or_else(String::new, |Audience(name)| format!(" for {name}"));
        Self {
            credentials,
            suffix,
        }
    }
}

impl<C: Credentials> Credentials for Addressed<C> {
    fn backend(&self) -> Backend {
        self.credentials.backend()
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        let payload = [payload, self.suffix.as_bytes()].concat();
        self.credentials.encode(&payload, reader)
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        let mut decoded = self.credentials.decode(credential)?;
        // Without an audience the digest is the whole payload, and does not fit a longer payload.
        let Some(length) = decoded
            .payload
            .strip_suffix(self.suffix.as_bytes())
            .map(<[u8]>::len)
        else {
            return Err(CredentialError::Refused {
                backend: self.backend(),
                problem: "it is for another service: `audience` differs".into(),
            });
        };
        decoded.payload.truncate(length);
        Ok(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_is_used_and_else_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let there = vec![directory.path().to_owned()];
        let gone = vec![directory.path().join("gone")];
        let munge = || Some(directory.path().join("munge"));
        let backend =
            |auth, munge, sack: &Vec<PathBuf>| Signer::new(auth, munge, sack.clone()).backend();
        assert_eq!(backend(Some(Auth::Slurm), munge(), &gone), Backend::Sack);
        assert_eq!(backend(Some(Auth::Munge), None, &there), Backend::Munge);
        // A configuration from before there was a choice.
        assert_eq!(backend(None, munge(), &there), Backend::Munge);
        assert_eq!(backend(None, None, &gone), Backend::Munge);
        if !Path::new("/run/munge/munge.socket.2").exists() {
            assert_eq!(backend(None, None, &there), Backend::Sack);
            let signer = Signer::new(None, None, gone);
            let text = signer.encode(b"", 0).unwrap_err().to_string();
            assert!(text.starts_with("MUNGE: "), "{text}");
            assert!(text.contains("no socket of SACK's is there"), "{text}");
        }
    }
}
