//! Tokens by SACK, the socket of Slurm's auth/slurm (23.11 and newer): slurmd, sackd and slurmctld
//! make and verify them there. Formats: Slurm's `src/common/sack_api.c` and
//! `src/plugins/auth/slurm`.
//!
//! A connection has one request: u16 version, u32 length of itself and of what follows, u32
//! command, body; big endian. The body of the command to create a token is u32 reader, u32 length,
//! payload; the answer is u32 length and the token with its NUL. The body of the command to verify
//! one is u32 length and the token with its NUL; the answer is a u32, zero if the token is good,
//! and otherwise another number (24.11) or nothing (26.05).
//!
//! The kernel tells the server its client's uid. A token contains the uid of its maker, and is
//! verified for its reader alone, but as often as the reader asks; that it is read only once is
//! ensured here. A token is a JWT; its claims are used only after the server has verified exactly
//! this text.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::credentials::{Backend, CredentialError, Credentials, Decoded, TIME_TO_LIVE};

/// The sockets of Slurm's daemons. The environment cannot name another one, because it is the
/// user's.
const SOCKETS: [&str; 2] = ["/run/slurm/sack.socket", "/run/slurmctld/sack.socket"];

/// The time for one request to one socket. The server would wait for ever for the rest of a
/// message.
const PATIENCE: Duration = Duration::from_secs(2);

/// The protocol version of 23.11, the first release with SACK. Servers only log it.
const VERSION: u16 = 40 << 8;
const CREATE: u32 = 64_001;
const VERIFY: u32 = 64_002;

/// The most bytes of a payload. A digest and its salt need less.
const PAYLOAD_LIMIT: usize = 1024;

/// The most bytes of a token; longer ones are not passed on to Slurm. The tokens made here have
/// some 450 bytes. With Slurm's `use_client_ids` a user's groups are in them; with 150 groups a
/// token had 6 KiB.
const TOKEN_LIMIT: usize = 16 * 1024;

/// The number of random bytes after the payload: SACK's tokens over the same payload are equal
/// within a second.
const SALT: usize = 16;

/// The most tokens that are remembered: enough for thousands a second during their life.
const REMEMBERED: usize = 1 << 20;

/// SACK, by its sockets, which are asked in order until one answers.
#[derive(Debug)]
pub(crate) struct Sack {
    sockets: Vec<PathBuf>,
    /// This process's uid.
    reader: u32,
    accepted: Mutex<Accepted>,
}

impl Sack {
    /// A back-end with these sockets, or with Slurm's own if there are none.
    pub(crate) fn new(sockets: Vec<PathBuf>) -> Self {
        let sockets = if sockets.is_empty() {
            SOCKETS.map(PathBuf::from).to_vec()
        } else {
            sockets
        };
        Self::of(nix::unistd::geteuid().as_raw(), sockets)
    }

    /// A back-end for a process of the uid `reader`, which the kernel would tell the server.
    pub(crate) fn of(reader: u32, sockets: Vec<PathBuf>) -> Self {
        Self {
            sockets,
            reader,
            accepted: Mutex::default(),
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.sockets.iter().any(|socket| socket.exists())
    }

    fn ask<T>(
        &self,
        command: u32,
        body: &[&[u8]],
        read: impl Fn(&mut Connection) -> io::Result<T>,
    ) -> Result<T, CredentialError> {
        let request = request(command, body);
        let mut problems = Vec::new();
        for socket in &self.sockets {
            let answer = Connection::open(socket).and_then(|mut connection| {
                connection.write_all(&request)?;
                read(&mut connection)
            });
            match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => problems.push(format!("{}: {}", socket.display(), told(&error))),
            }
        }
        Err(unavailable(format!(
            "{}; is slurmd, sackd or slurmctld running here with AuthType=auth/slurm, and is its \
             socket the one configured?",
            problems.join(", ")
        )))
    }
}

impl Credentials for Sack {
    fn backend(&self) -> Backend {
        Backend::Sack
    }

    fn encode(&self, payload: &[u8], reader: u32) -> Result<String, CredentialError> {
        if payload.len() > PAYLOAD_LIMIT {
            return Err(unavailable("the payload is too long".into()));
        }
        let mut salted = [payload, &[0; SALT]].concat();
        getrandom::fill(&mut salted[payload.len()..])
            .map_err(|error| unavailable(error.to_string()))?;
        let body = [&reader.to_be_bytes()[..], &length(salted.len()), &salted];
        self.ask(CREATE, &body, read_token)
    }

    fn decode(&self, credential: &str) -> Result<Decoded, CredentialError> {
        let token = Token::parse(credential).map_err(refused)?;
        let terminated = [credential.as_bytes(), b"\0"].concat();
        let body = [&length(terminated.len())[..], &terminated];
        if !self.ask(VERIFY, &body, read_verdict)? {
            return Err(refused("it is forged, expired, or for another reader"));
        }
        let claims =
            Claims::parse(&token.claims()).ok_or_else(|| refused("its claims are wrong"))?;
        let payload = claims.check(self.reader).map_err(refused)?;
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock is read under the lock, so that a token that one call forgets as expired is not
        // accepted by another.
        accepted.admit(&token, &claims, Timestamp::now().as_second())?;
        Ok(Decoded {
            payload,
            uid: claims.uid,
            gid: claims.gid,
            origin: None,
        })
    }
}

fn unavailable(problem: String) -> CredentialError {
    CredentialError::Unavailable {
        backend: Backend::Sack,
        problem,
    }
}

fn refused(problem: &str) -> CredentialError {
    CredentialError::Refused {
        backend: Backend::Sack,
        problem: problem.to_owned(),
    }
}

fn told(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("no answer within {} s", PATIENCE.as_secs())
        }
        ErrorKind::UnexpectedEof => "it hung up".to_owned(),
        _ => error.to_string(),
    }
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, problem)
}

/// A connection that ends within [`PATIENCE`], however slowly the server sends.
struct Connection {
    stream: UnixStream,
    end: Instant,
}

impl Connection {
    fn open(path: &Path) -> io::Result<Self> {
        let end = Instant::now() + PATIENCE;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // `connect` waits this long for a place in the server's queue.
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.connect(&SockAddr::unix(path)?)?;
        let stream = UnixStream::from(OwnedFd::from(socket));
        Ok(Self { stream, end })
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn request(command: u32, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let (version, command) = (VERSION.to_be_bytes(), command.to_be_bytes());
    let length = length(4 + command.len() + body.len());
    [&version[..], &length, &command, &body].concat()
}

/// A length as SACK writes it. Lengths here are far below 4 GiB; a wrong one would be refused.
fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

/// Reads the answer to [`CREATE`].
fn read_token(answer: &mut impl Read) -> io::Result<String> {
    let mut length = [0; 4];
    answer.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > TOKEN_LIMIT + 1 {
        return Err(invalid("its token is too long"));
    }
    let mut token = vec![0; length];
    answer.read_exact(&mut token)?;
    if token.pop() != Some(0) {
        return Err(invalid("its token has no end"));
    }
    let token = String::from_utf8(token).map_err(|_| invalid("its token is no text"))?;
    Token::parse(&token).map_err(invalid)?;
    Ok(token)
}

/// Reads the answer to [`VERIFY`]: true if the token is good, which only zero means.
fn read_verdict(answer: &mut impl Read) -> io::Result<bool> {
    let mut code = [u8::MAX; 4];
    match answer.read_exact(&mut code) {
        Ok(()) => Ok(code == [0; 4]),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A token of the right form, whose maker is not known yet.
#[derive(Debug)]
struct Token<'a> {
    /// The token without its signature, which may have several spellings.
    signed: &'a str,
    claims: &'a str,
}

impl<'a> Token<'a> {
    fn parse(text: &'a str) -> Result<Self, &'static str> {
        if text.len() > TOKEN_LIMIT {
            return Err("it is too long for a token");
        }
        if text.starts_with("MUNGE:") {
            return Err("it is MUNGE's, and `auth` must be the same on all hosts");
        }
        let part = |part: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !part.is_empty() && part.bytes().all(allowed)
        };
        let parts: Vec<&str> = text.split('.').collect();
        match parts[..] {
            [header, claims, _] if parts.iter().all(|one| part(one)) => Ok(Self {
                signed: &text[..header.len() + 1 + claims.len()],
                claims,
            }),
            _ => Err("it is no token"),
        }
    }

    /// The JSON of the claims; empty if it cannot be decoded.
    fn claims(&self) -> Vec<u8> {
        BASE64_URL_SAFE_NO_PAD
            .decode(self.claims)
            .unwrap_or_default()
    }
}

/// The claims of a token that are used here; `cluster`, `host` and others are not.
#[derive(Debug, Deserialize)]
struct Claims {
    uid: u32,
    gid: u32,
    /// The uid of the reader.
    ruid: u32,
    context: String,
    /// The payload, in base64.
    payload: String,
    /// The time when the token was made, in seconds since 1970.
    iat: i64,
    /// The time when it expires, by the site's `AuthInfo=ttl=`.
    exp: i64,
}

impl Claims {
    fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// The payload without its salt. Returns an error if the token was not made by this protocol
    /// for `reader`.
    fn check(&self, reader: u32) -> Result<Vec<u8>, &'static str> {
        if self.context != "sack" {
            return Err("it was not made by SACK for a client");
        }
        // The server also accepts a token that is for anybody.
        if self.ruid != reader {
            return Err("it is for another reader");
        }
        match BASE64_STANDARD.decode(&self.payload) {
            Ok(mut payload) if payload.len() >= SALT => {
                payload.truncate(payload.len() - SALT);
                Ok(payload)
            }
            _ => Err("its payload is wrong"),
        }
    }

    /// The second from which on the token is refused: after [`TIME_TO_LIVE`], also if the site's
    /// own limit is longer.
    fn end(&self) -> i64 {
        self.exp
            .min(self.iat.saturating_add(i64::from(TIME_TO_LIVE)))
    }
}

/// The tokens that were accepted, until they expire.
#[derive(Debug, Default)]
struct Accepted(BTreeSet<(i64, [u8; 32])>);

impl Accepted {
    /// Accepts a token once. Returns an error if it is a replay, expired or of the future, or if
    /// there is no room to remember it.
    fn admit(&mut self, token: &Token, claims: &Claims, now: i64) -> Result<(), CredentialError> {
        let end = claims.end();
        while self.0.first().is_some_and(|(end, _)| *end <= now) {
            self.0.pop_first();
        }
        if end <= now {
            return Err(refused("it has expired"));
        }
        if claims.iat > now.saturating_add(i64::from(TIME_TO_LIVE)) {
            return Err(refused("it is of the future: compare the hosts' clocks"));
        }
        // The same token always has the same end.
        let known = (end, Sha256::digest(token.signed).into());
        if self.0.contains(&known) {
            return Err(refused("it is a replay"));
        }
        if self.0.len() >= REMEMBERED {
            return Err(unavailable("too many tokens at once".into()));
        }
        self.0.insert(known);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Asked, claims, created, honest, sack_server, token};

    const USER: u32 = 1000;
    const SERVICE: u32 = 7;
    const PAYLOAD: &[u8] = b"io-autotune request 1 00";

    /// The back-end of a reader whose SACK gives this answer.
    fn sack(
        reader: u32,
        answer: impl Fn(Asked) -> Option<Vec<u8>> + Send + 'static,
    ) -> (Sack, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let socket = sack_server(&directory.path().join("sack.socket"), answer);
        (Sack::of(reader, vec![socket]), directory)
    }

    /// A token of [`USER`] for [`SERVICE`] with other claims.
    fn changed(change: impl Fn(&mut Value)) -> String {
        let mut claims = claims(USER, SERVICE, &[PAYLOAD, &[0; SALT]].concat());
        change(&mut claims);
        token(&claims)
    }

    /// The result for a token if the server verifies every token.
    fn decoded(token: &str) -> Result<Decoded, CredentialError> {
        let (service, _socket) = sack(SERVICE, |_| Some(vec![0; 4]));
        service.decode(token)
    }

    fn is_refused<T>(result: &Result<T, CredentialError>) -> bool {
        matches!(result, Err(CredentialError::Refused { .. }))
    }

    fn is_unavailable<T>(result: &Result<T, CredentialError>) -> bool {
        matches!(result, Err(CredentialError::Unavailable { .. }))
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn a_token_is_read_once_by_its_reader() {
        let (user, _user) = sack(USER, |asked| Some(honest(USER, asked)));
        let (service, _service) = sack(SERVICE, |asked| Some(honest(SERVICE, asked)));
        let first = user.encode(PAYLOAD, SERVICE).unwrap();
        let second = user.encode(PAYLOAD, SERVICE).unwrap();
        let read = service.decode(&first).unwrap();
        assert_eq!((read.uid, &*read.payload), (USER, PAYLOAD));
        assert!(is_refused(&service.decode(&first)));
        // Another token over the same payload is not a replay, even within the same second.
        assert_eq!(service.decode(&second).unwrap().payload, PAYLOAD);
        // Another spelling of the same token's end is a replay.
        let respelled = format!("{}A", &second[..second.len() - 1]);
        let (service_of_lax_base64, _socket) = sack(SERVICE, |_| Some(vec![0; 4]));
        service_of_lax_base64.decode(&second).unwrap();
        assert!(is_refused(&service_of_lax_base64.decode(&respelled)));
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn a_token_is_believed_only_if_it_is_ours_for_this_reader() {
        assert!(decoded(&changed(|_| {})).is_ok());
        let wrong: [(&str, Value); 10] = [
            ("ruid", json!(USER)),
            // A token for anybody.
            ("ruid", json!(u32::MAX)),
            ("context", json!("auth")),
            ("context", json!(null)),
            ("exp", json!(1)),
            ("exp", json!("tomorrow")),
            (
                "iat",
                json!(claims(0, 0, b"")["iat"].as_i64().unwrap() + 3600),
            ),
            ("uid", json!(-1)),
            ("payload", json!("AAAA")),
            ("payload", json!("no base64")),
        ];
        for (claim, value) in wrong {
            let refused = decoded(&changed(|claims| claims[claim] = value.clone()));
            assert!(is_refused(&refused), "{claim} = {value}: {refused:?}");
        }
        // A site's `ttl` may be longer, but no credential of this protocol lives longer.
        let aged = decoded(&changed(|claims| {
            claims["iat"] = json!(claims["iat"].as_i64().unwrap() - 61);
        }));
        assert!(is_refused(&aged));
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn what_is_no_token_is_not_even_sent() {
        // Sending it would give an outage, because there is no server.
        let service = Sack::of(SERVICE, vec!["/nonexistent".into()]);
        let good = changed(|_| {});
        let long = changed(|claims| claims["payload"] = json!("A".repeat(TOKEN_LIMIT)));
        let others = [
            "", ".", "..", "a.b", "a.b.c.d", "a.b.", "a.b c.d", "a.b.c\0",
        ];
        for text in others.into_iter().chain([&*long, &good.replace('.', ",")]) {
            assert!(is_refused(&service.decode(text)), "{text}");
        }
        assert!(is_unavailable(&service.decode(&good)));
        let error = service.decode("MUNGE:AwQFAAC:").unwrap_err().to_string();
        assert!(error.contains("`auth` must be the same"), "{error}");
    }

    /// Attack (service): SLURM_SACK_SOCKET in the environment names another socket.
    /// Outcome: It is not asked.
    #[test]
    fn the_environment_names_no_socket() {
        const NAME: &str = "SLURM_SACK_SOCKET";
        assert_eq!(Sack::new(Vec::new()).sockets, SOCKETS.map(PathBuf::from));
        if std::env::var_os(NAME).is_none() {
            let again = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "sack::tests::the_environment_names_no_socket"])
                .env(NAME, "/tmp/sack.socket")
                .output();
            assert!(again.unwrap().status.success());
        }
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn zero_alone_is_a_yes() {
        let refusals: [&[u8]; 6] = [
            // The answers of 24.11 and of 26.05.
            &[0xff; 4],
            &[],
            &[0],
            &[0, 0, 0],
            &[0, 0, 0, 1],
            &[1, 0, 0, 0],
        ];
        for refusal in refusals {
            let (service, _socket) = sack(SERVICE, move |_| Some(refusal.to_vec()));
            let read = service.decode(&changed(|_| {}));
            assert!(is_refused(&read), "{refusal:?}: {read:?}");
        }
    }

    #[test]
    fn a_token_that_is_cut_or_none_is_not_passed_on() {
        let good = created(&changed(|_| {}));
        let long = created(&changed(|claims| {
            claims["host"] = json!("n".repeat(TOKEN_LIMIT))
        }));
        let mut endless = good.clone();
        *endless.last_mut().unwrap() = b'A';
        let answers = [
            vec![],
            vec![0; 4],
            vec![0xff; 4],
            good[..3].to_vec(),
            good[..good.len() - 1].to_vec(),
            endless,
            long,
            created("no token"),
            created("a.b.\u{e9}"),
            [&[0, 0, 0, 2][..], b"\xff\0"].concat(),
        ];
        for answer in answers {
            let told = answer.clone();
            let (user, _socket) = sack(USER, move |_| Some(answer.clone()));
            let made = user.encode(PAYLOAD, SERVICE);
            assert!(is_unavailable(&made), "{}: {made:?}", told.escape_ascii());
        }
        let (user, _socket) = sack(USER, move |_| Some(good.clone()));
        assert!(user.encode(PAYLOAD, SERVICE).is_ok());
        assert!(is_unavailable(
            &user.encode(&[0; PAYLOAD_LIMIT + 1], SERVICE)
        ));
    }

    /// Attack (service): A socket of SACK is dead, silent, or drips its answer.
    /// Outcome: It is left after 2 s and the next is asked.
    #[test]
    fn a_server_that_is_silent_or_drips_is_left_and_the_next_is_asked() {
        const LATENESS: Duration = Duration::from_secs(2);
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        // The socket that a killed slurmd leaves behind.
        drop(UnixListener::bind(at("dead")).unwrap());
        sack_server(&at("silent"), |_| None);
        sack_server(&at("good"), |asked| Some(honest(USER, asked)));
        let of = |names: &[&str]| Sack::of(USER, names.iter().map(|name| at(name)).collect());
        let made = of(&["gone", "dead", "good"]).encode(PAYLOAD, SERVICE);
        assert!(made.is_ok(), "{made:?}");
        let began = Instant::now();
        assert!(of(&["silent", "good"]).encode(PAYLOAD, SERVICE).is_ok());
        assert!(began.elapsed() < PATIENCE + LATENESS);
        let error = of(&["gone", "silent"])
            .encode(PAYLOAD, SERVICE)
            .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("silent: no answer within 2 s"), "{text}");
        assert!(text.contains("AuthType=auth/slurm"), "{text}");

        let listener = UnixListener::bind(at("dripping")).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for byte in created(&changed(|_| {})) {
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let began = Instant::now();
        let made = of(&["dripping"]).encode(PAYLOAD, SERVICE);
        assert!(is_unavailable(&made), "{made:?}");
        assert!(began.elapsed() < PATIENCE + LATENESS);
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn a_replay_is_refused_by_one_of_many_threads_only() {
        let (service, _socket) = sack(SERVICE, |asked| Some(honest(SERVICE, asked)));
        let token = changed(|_| {});
        let accepted = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| service.decode(&token).is_ok()))
                .collect();
            calls
                .into_iter()
                .map(|call| usize::from(call.join().unwrap()))
                .sum::<usize>()
        });
        assert_eq!(accepted, 1);
    }

    #[test]
    fn tokens_are_remembered_until_they_end() {
        let mut accepted = Accepted::default();
        let mut claims =
            Claims::parse(&claims(USER, SERVICE, b"").to_string().into_bytes()).unwrap();
        let (now, end) = (claims.iat, claims.iat + 60);
        let mut admit = |text: &str, claims: &Claims, now| {
            let token = Token::parse(text).unwrap();
            let admitted = accepted.admit(&token, claims, now).is_ok();
            (admitted, accepted.0.len())
        };
        assert_eq!(admit("a.b.c", &claims, now), (true, 1));
        assert_eq!(admit("a.b.c", &claims, now), (false, 1));
        assert_eq!(admit("a.b.c", &claims, end - 1), (false, 1));
        assert_eq!(admit("a.c.c", &claims, end - 1), (true, 2));
        // At its end the token is forgotten, and is refused as expired.
        assert_eq!(admit("a.b.c", &claims, end), (false, 0));
        claims.iat += 60;
        claims.exp += 3600;
        assert_eq!(admit("a.d.c", &claims, end), (true, 1));
        assert_eq!(admit("a.e.c", &claims, end + 60), (false, 0));
    }

    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    fn more_than_can_be_remembered_is_not_accepted() {
        let many = (0..REMEMBERED).map(|number| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            (i64::MAX, digest)
        });
        let mut accepted = Accepted(many.collect());
        let claims = Claims::parse(&claims(USER, SERVICE, b"").to_string().into_bytes()).unwrap();
        let token = Token::parse("a.b.c").unwrap();
        assert!(is_unavailable(&accepted.admit(&token, &claims, claims.iat)));
        accepted.0.pop_first();
        accepted.admit(&token, &claims, claims.iat).unwrap();
    }

    /// Attack (parsers): Tokens of SACK, their claims, and its answers.
    /// Outcome: No claims of another's are believed.
    #[test]
    fn fuzz_sack() {
        let good = changed(|_| {});
        let json = claims(USER, SERVICE, PAYLOAD).to_string();
        let samples = [created(&good), good.into_bytes(), json.into_bytes()];
        io_autotune_fuzzing::Target::new("sack", &samples).run(|input| {
            if let Ok(token) = read_token(&mut &*input) {
                assert!(token.len() <= TOKEN_LIMIT && token.is_ascii());
                assert!(!token.contains(|letter: char| letter.is_control()));
            }
            assert_eq!(
                read_verdict(&mut &*input).unwrap(),
                input.starts_with(&[0; 4])
            );
            let token = str::from_utf8(input).ok().map(Token::parse);
            let claimed = token.and_then(Result::ok).map(|token| token.claims());
            for json in claimed.iter().map(Vec::as_slice).chain([input]) {
                if let Some(claims) = Claims::parse(json) {
                    let own = claims.ruid == SERVICE && claims.context == "sack";
                    assert!(own || claims.check(SERVICE).is_err());
                    assert!(claims.end() <= claims.exp);
                }
            }
        });
    }

    /// Runs this test again in another process with another uid, with a token to read, or without
    /// one to make one.
    fn nobody(token: &str) -> Result<String, String> {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "sack::tests::the_real_sack",
            ])
            .env("SACK_TOKEN", token)
            .uid(65_534)
            .gid(65_534)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = said.lines().find_map(|line| line.split_once("nobody: "));
        match (output.status.success(), line) {
            (true, Some((_, line))) => Ok(line.to_owned()),
            _ => Err(said),
        }
    }

    /// The real SACK behaves as the stand-ins above. Run this test as root where slurmd or sackd
    /// has a SACK socket. Run it as root where slurmd or sackd has a SACK socket.
    ///
    /// Attack (service): A token of SACK is read twice or by another, expired, of another context,
    /// made up, malformed or too long.
    /// Outcome: Slurm is not asked about what is no token.
    #[test]
    #[ignore = "needs root and Slurm with AuthType=auth/slurm"]
    #[expect(clippy::print_stdout, reason = "how the other process speaks")]
    fn the_real_sack() {
        const NOBODY: u32 = 65_534;
        let sack = Sack::new(Vec::new());
        if let Ok(token) = std::env::var("SACK_TOKEN") {
            match &*token {
                "" => println!("nobody: {}", sack.encode(PAYLOAD, 0).unwrap()),
                token => println!("nobody: reads {}", sack.decode(token).unwrap().uid),
            }
            return;
        }
        assert!(nix::unistd::geteuid().is_root());
        crate::credentials::round_trip(&sack).unwrap();

        let own = sack.encode(PAYLOAD, 0).unwrap();
        let read = sack.decode(&own).unwrap();
        assert_eq!((read.uid, read.gid, &*read.payload), (0, 0, PAYLOAD));
        assert!(is_refused(&sack.decode(&own)), "a replay");

        let theirs = nobody("").unwrap();
        let read = sack.decode(&theirs).unwrap();
        assert_eq!((read.uid, &*read.payload), (NOBODY, PAYLOAD));
        nobody(&theirs).expect_err("it is for root");

        let for_nobody = sack.encode(PAYLOAD, NOBODY).unwrap();
        assert!(is_refused(&sack.decode(&for_nobody)), "it is for nobody");
        assert_eq!(nobody(&for_nobody).unwrap(), "reads 0");

        let (signed, signature) = own.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let (other, _) = for_nobody.rsplit_once('.').unwrap();
        let forged = |text: String| is_refused(&sack.decode(&text));
        assert!(
            forged(format!("{other}.{signature}")),
            "another's signature"
        );
        let root = BASE64_URL_SAFE_NO_PAD.encode(claims(0, 0, PAYLOAD).to_string());
        assert!(forged(format!("{header}.{root}.{signature}")), "made up");
        let none = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        assert!(forged(format!("{none}.{root}.{signature}")), "alg none");
        // The longest token that is sent at all.
        let long = "a".repeat(TOKEN_LIMIT - header.len() - root.len() - 2);
        assert!(forged(format!("{header}.{root}.{long}")), "a long one");
        let again = sack.encode(PAYLOAD, 0).unwrap();
        sack.decode(&again).unwrap();
    }
}
