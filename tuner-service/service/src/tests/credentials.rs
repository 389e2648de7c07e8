//! Credentials that a test plays: unprotected, for one reader, and read once, as munged's are.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use io_autotune_protocol::credentials::{Backend, CredentialError, Credentials, Decoded};

/// The credentials that one uid makes and reads: `UID|ORIGIN|READER|NUMBER|PAYLOAD`.
#[derive(Debug)]
pub(crate) struct PlayedCredentials {
    uid: u32,
    origin: Option<IpAddr>,
    read: Mutex<HashSet<String>>,
    fails: AtomicBool,
    fails_when_tried: AtomicBool,
}

/// The payload of doctor's own credential: it is made for the account of the process, which is not
/// the uid that is played.
const TRIED: &[u8] = b"io-autotune doctor";

impl PlayedCredentials {
    /// The credentials of a uid, whose host the back-end does not give.
    pub(crate) fn of(uid: u32) -> Self {
        Self {
            uid,
            origin: None,
            read: Mutex::default(),
            fails: AtomicBool::default(),
            fails_when_tried: AtomicBool::default(),
        }
    }

    /// The credentials of a uid on a host for which the back-end vouches.
    pub(crate) fn from(uid: u32, origin: Option<IpAddr>) -> Self {
        Self {
            origin,
            ..Self::of(uid)
        }
    }

    /// Sets whether the back-end fails from now on.
    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }

    /// Sets whether the back-end fails from now on when doctor tries it.
    pub(crate) fn fail_when_tried(&self, fails: bool) {
        self.fails_when_tried.store(fails, Ordering::Relaxed);
    }

    fn ask(&self) -> Result<(), CredentialError> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(CredentialError::Unavailable {
                backend: Backend::Munge,
                problem: "Socket communication error".into(),
            }),
            false => Ok(()),
        }
    }
}

fn refused(problem: &str) -> CredentialError {
    CredentialError::Refused {
        backend: Backend::Munge,
        problem: problem.into(),
    }
}

impl Credentials for PlayedCredentials {
    fn backend(&self) -> Backend {
        Backend::Munge
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        self.ask()?;
        let is_tried = payload == TRIED;
        if is_tried && self.fails_when_tried.load(Ordering::Relaxed) {
            return Err(refused("Invalid credential"));
        }
        let uid = if is_tried { reader } else { self.uid };
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let origin = self.origin.map(|origin| origin.to_string());
        let payload = String::from_utf8_lossy(payload);
        Ok(format!(
            "{uid}|{}|{reader}|{number}|{payload}",
            origin.unwrap_or_default()
        ))
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        self.ask()?;
        let parts: Vec<&str> = credential.splitn(5, '|').collect();
        let [uid, origin, reader, _, payload] = parts[..] else {
            return Err(refused("Invalid credential"));
        };
        if reader != self.uid.to_string() && payload.as_bytes() != TRIED {
            return Err(refused("Unauthorized credential decode"));
        }
        if !self.read.lock().unwrap().insert(credential.to_owned()) {
            return Err(refused("Replayed credential"));
        }
        Ok(Decoded {
            payload: payload.as_bytes().to_vec(),
            uid: uid.parse().map_err(|_| refused("Invalid credential"))?,
            gid: 0,
            origin: origin.parse().ok(),
        })
    }
}
