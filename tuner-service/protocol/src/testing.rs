//! Stand-ins for munged in unit tests.

use std::time::Duration;

use crate::munge::{Credentials, Decoded, MungeError};

/// Unprotected credentials: `UID|READER|PAYLOAD`.
pub(crate) struct Plain {
    pub(crate) uid: u32,
}

impl Credentials for Plain {
    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, MungeError> {
        let payload = String::from_utf8_lossy(payload);
        Ok(format!("{}|{reader}|{payload}", self.uid))
    }

    fn decode(&self, credential: &str) -> Result<Decoded, MungeError> {
        let refused = || MungeError::Refused("Invalid credential".into());
        let mut parts = credential.splitn(3, '|');
        let mut next = || parts.next().ok_or_else(refused);
        let (uid, reader, payload) = (next()?, next()?, next()?);
        if reader != self.uid.to_string() {
            return Err(MungeError::Refused("Unauthorized credential decode".into()));
        }
        Ok(Decoded {
            payload: payload.as_bytes().to_vec(),
            uid: uid.parse().map_err(|_| refused())?,
            gid: 0,
        })
    }
}

/// A munged that hangs; libmunge waits about ten seconds when munged is down.
pub(crate) struct Hanging;

impl Credentials for Hanging {
    fn encode(&self, _: &[u8], _: u32) -> Result<String, MungeError> {
        std::thread::sleep(Duration::from_secs(10));
        Err(MungeError::Refused("too late".into()))
    }

    fn decode(&self, _: &str) -> Result<Decoded, MungeError> {
        self.encode(&[], 0)
            .map(|_| unreachable!("encode always fails"))
    }
}
