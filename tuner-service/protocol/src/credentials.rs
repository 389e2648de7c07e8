//! Credentials: MUNGE or SACK vouches for who signs what, for which reader, and each credential is
//! read once.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The seconds for which a credential is valid: above a cluster's clock skew, with little time for
/// a replay.
pub(crate) const TIME_TO_LIVE: u8 = 60;

/// The back-end that vouches for a credential's sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// munged.
    Munge,
    /// SACK, the socket of Slurm's auth/slurm.
    Sack,
}

impl Backend {
    /// A stable word for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Munge => "munge",
            Self::Sack => "sack",
        }
    }

    /// The key that all hosts share.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Munge => "munge key",
            Self::Sack => "slurm.key",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Munge => "MUNGE",
            Self::Sack => "SACK",
        })
    }
}

/// A decoded credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The signed text.
    pub payload: Vec<u8>,
    /// The sender's effective uid, as the back-end vouches for it.
    pub uid: u32,
    /// The sender's effective gid.
    pub gid: u32,
    /// The address of the sender's host, if the back-end has it: munged determines it.
    pub origin: Option<IpAddr>,
}

/// The reason why there is no credential, or no valid one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// The back-end could not be asked, or failed.
    #[error("{backend}: {problem}")]
    Unavailable {
        /// The back-end that was asked.
        backend: Backend,
        /// The problem, and what to do.
        problem: String,
    },
    /// The credential is forged, expired, replayed or for another reader.
    #[error("{backend} refuses the credential: {problem}")]
    Refused {
        /// The back-end that was asked.
        backend: Backend,
        /// The problem.
        problem: String,
    },
}

/// A maker and reader of credentials. Tests replace the back-end here.
pub trait Credentials: Send + Sync {
    /// The back-end that vouches at present.
    fn backend(&self) -> Backend;

    /// A credential over `payload` for the uid `reader` alone. Two credentials over the same
    /// payload differ. Returns an error if the back-end cannot be asked.
    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError>;

    /// Decodes a credential once. Returns an error if the back-end cannot be asked, or if the
    /// credential is refused (also as a replay).
    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError>;
}

impl<C: Credentials + ?Sized> Credentials for Arc<C> {
    fn backend(&self) -> Backend {
        (**self).backend()
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        (**self).encode(payload, reader)
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        (**self).decode(credential)
    }
}

/// Makes a credential for this process's own uid, and reads it. Returns an error in words if that
/// fails.
pub fn round_trip(credentials: &dyn Credentials) -> Result<(), String> {
    const PAYLOAD: &[u8] = b"io-autotune doctor";
    let own = nix::unistd::geteuid().as_raw();
    let decoded = credentials
        .encode(PAYLOAD, own)
        .and_then(|credential| credentials.decode(&credential))
        .map_err(|error| error.to_string())?;
    if decoded.payload != PAYLOAD || decoded.uid != own {
        return Err(format!(
            "a credential of uid {own} was read as one of uid {}",
            decoded.uid
        ));
    }
    Ok(())
}
