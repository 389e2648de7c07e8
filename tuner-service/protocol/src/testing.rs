//! Stand-ins for munged and for Slurm's SACK in unit tests.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::credentials::{Backend, CredentialError, Credentials, Decoded};
use crate::sack::Sack;

/// The participants of a test, uids 1000, 7 and 666, with the same back-end.
pub(crate) struct Cast {
    pub(crate) user: Arc<dyn Credentials>,
    pub(crate) service: Arc<dyn Credentials>,
    pub(crate) stranger: Arc<dyn Credentials>,
    _sockets: Option<tempfile::TempDir>,
}

/// A cast for each back-end.
pub(crate) fn casts() -> [Cast; 2] {
    [plain(), sacked()]
}

pub(crate) fn plain() -> Cast {
    let of = |uid| Arc::new(Plain::of(uid));
    Cast {
        user: of(1000),
        service: of(7),
        stranger: of(666),
        _sockets: None,
    }
}

fn sacked() -> Cast {
    let directory = tempfile::tempdir().unwrap();
    let of = |uid: u32| {
        let answer = move |asked| Some(honest(uid, asked));
        let socket = sack_server(&directory.path().join(uid.to_string()), answer);
        Arc::new(Sack::of(uid, vec![socket]))
    };
    Cast {
        user: of(1000),
        service: of(7),
        stranger: of(666),
        _sockets: Some(directory),
    }
}

/// Unprotected credentials, read once each: `UID|READER|NUMBER|PAYLOAD`.
struct Plain {
    uid: u32,
    made: Mutex<u64>,
    read: Mutex<HashSet<String>>,
}

impl Plain {
    fn of(uid: u32) -> Self {
        Self {
            uid,
            made: Mutex::default(),
            read: Mutex::default(),
        }
    }
}

fn refused(problem: &str) -> CredentialError {
    CredentialError::Refused {
        backend: Backend::Munge,
        problem: problem.into(),
    }
}

impl Credentials for Plain {
    fn backend(&self) -> Backend {
        Backend::Munge
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        let payload = String::from_utf8_lossy(payload);
        let mut made = self.made.lock().unwrap();
        *made += 1;
        Ok(format!("{}|{reader}|{made}|{payload}", self.uid))
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        let parts: Vec<&str> = credential.splitn(4, '|').collect();
        let [uid, reader, _, payload] = parts[..] else {
            return Err(refused("Invalid credential"));
        };
        if reader != self.uid.to_string() {
            return Err(refused("Unauthorized credential decode"));
        }
        if !self.read.lock().unwrap().insert(credential.to_owned()) {
            return Err(refused("Replayed credential"));
        }
        Ok(Decoded {
            payload: payload.as_bytes().to_vec(),
            uid: uid.parse().map_err(|_| refused("Invalid credential"))?,
            gid: 0,
            origin: None,
        })
    }
}

/// A back-end that hangs; libmunge waits about ten seconds when munged is down.
pub(crate) struct Hanging;

impl Credentials for Hanging {
    fn backend(&self) -> Backend {
        Backend::Munge
    }

    fn encode(&self, _: &[u8], _: u32) -> Result<String, CredentialError> {
        std::thread::sleep(Duration::from_secs(10));
        Err(refused("too late"))
    }

    fn decode(&self, _: &str) -> Result<Decoded, CredentialError> {
        self.encode(&[], 0)
            .map(|_| unreachable!("encode always fails"))
    }
}

/// A request that a server of SACK receives.
pub(crate) enum Asked {
    Create { reader: u32, payload: Vec<u8> },
    Verify { token: String },
}

/// A server of SACK that runs until the process ends. It keeps connections open to which it gives
/// no answer.
pub(crate) fn sack_server(
    path: &Path,
    answer: impl Fn(Asked) -> Option<Vec<u8>> + Send + 'static,
) -> PathBuf {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let Ok(asked) = asked(&mut stream) else {
                continue;
            };
            match answer(asked) {
                // The client may have gone.
                Some(bytes) => drop(stream.write_all(&bytes)),
                None => held.push(stream),
            }
        }
    });
    path.to_owned()
}

/// Reads a request, and checks that nothing more was sent.
fn asked(stream: &mut UnixStream) -> io::Result<Asked> {
    let mut version = [0; 2];
    stream.read_exact(&mut version)?;
    let mut number = || {
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes)?;
        Ok::<u32, io::Error>(u32::from_be_bytes(bytes))
    };
    let (length, command) = (number()?, number()?);
    let mut body = vec![0; length as usize - 8];
    stream.read_exact(&mut body)?;
    let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
    Ok(match command {
        64_001 => {
            assert_eq!(number(4) as usize, body.len() - 8);
            Asked::Create {
                reader: number(0),
                payload: body[8..].to_vec(),
            }
        }
        64_002 => {
            assert_eq!(number(0) as usize, body.len() - 4);
            let token = str::from_utf8(&body[4..]).unwrap().strip_suffix('\0');
            Asked::Verify {
                token: token.unwrap().to_owned(),
            }
        }
        other => unreachable!("SACK has no command {other}"),
    })
}

/// The answer of Slurm 24.11 to a client of uid `peer`.
pub(crate) fn honest(peer: u32, asked: Asked) -> Vec<u8> {
    match asked {
        Asked::Create { reader, payload } => created(&token(&claims(peer, reader, &payload))),
        Asked::Verify { token } => match is_good(peer, &token) {
            true => vec![0; 4],
            false => vec![0xff; 4],
        },
    }
}

pub(crate) fn created(token: &str) -> Vec<u8> {
    let length = u32::try_from(token.len() + 1).unwrap().to_be_bytes();
    [&length, token.as_bytes(), b"\0"].concat()
}

pub(crate) fn claims(uid: u32, reader: u32, payload: &[u8]) -> Value {
    let now = jiff::Timestamp::now().as_second();
    json!({
        "cluster": "test", "context": "sack", "exp": now + 60, "gid": uid, "host": "n1", "iat": now,
        "payload": BASE64_STANDARD.encode(payload), "ruid": reader, "uid": uid, "ver": 10752,
    })
}

pub(crate) fn token(claims: &Value) -> String {
    let part = |json: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(json);
    let header = part(br#"{"alg":"HS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", part(claims.to_string().as_bytes()));
    format!("{signed}.{}", signature(&signed))
}

fn signature(signed: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(format!("key {signed}")))
}

fn is_good(peer: u32, token: &str) -> bool {
    let Some((signed, signed_by)) = token.rsplit_once('.') else {
        return false;
    };
    let Some((_, claims)) = signed.split_once('.') else {
        return false;
    };
    let json = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap_or_default();
    let claims: Value = serde_json::from_slice(&json).unwrap_or_default();
    let is_for = |reader| claims["ruid"] == json!(reader);
    signed_by == signature(signed)
        && claims["exp"].as_i64() >= Some(jiff::Timestamp::now().as_second())
        && (is_for(peer) || is_for(u32::MAX))
}
