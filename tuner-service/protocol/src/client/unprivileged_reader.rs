//! Reads answers in a process apart from root: until its signature is verified, an answer may be
//! anybody's.
//!
//! Root connects, signs, and writes the request. Another process of the same program reads the
//! answer from the connection. It runs as nobody, with a filter of system calls that only lets it
//! read the connection, write its result and end. Root takes one structure from it: a line `STATUS
//! LENGTH SIGNATURE` (`-` without a signature), followed by that many bytes of body. If there is no
//! answer, the line has the reason instead: after `!` if the peer does not speak HTTP to its end,
//! after `%` if there is no TLS with it, after `?` if the answer is not acceptable.
//!
//! With TLS each byte that is sent depends on bytes that have come. So the whole connection is that
//! process's: root, which has connected, gives it the request in clear text and touches the
//! connection no more.

mod source;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

use self::source::{Clear, Encrypted, Source};
use super::{ANSWER_LIMIT, Reply};
use crate::confined::confine;
use crate::printable::shown;
use crate::signature::ANSWER_HEADER;

/// A function that builds the command by which this program starts itself to call [`read_answer`].
pub(super) type Reader = fn() -> Command;

/// The most bytes of status line and headers, of which the signature is the longest.
const HEAD_LIMIT: usize = 32 * 1024;
const HEADERS: usize = 32;
/// The most bytes of a reader's first line.
const LINE_LIMIT: usize = HEAD_LIMIT;
/// The life of a reader in seconds, far above any deadline, after which a forgotten reader ends.
const LIFE: u32 = 300;
/// The most data of a reader in bytes: several times what the longest request and answer take, and
/// far less than what would make a node's other processes suffer.
const MEMORY: u64 = 64 * 1024 * 1024;

/// The reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Unread {
    #[error("the connection ended before the answer did")]
    Ended,
    #[error("the answer is no HTTP")]
    NoHttp,
    #[error("the answer is longer than {ANSWER_LIMIT} bytes")]
    TooLong,
    #[error("the answer does not say how long it is")]
    NoLength,
    #[error("{0}")]
    Tls(String),
}

/// What a reader needs to know for TLS.
pub(super) struct Secured {
    /// `host:port`, for whose host the certificate must be.
    pub(super) address: String,
    /// The file of the authorities that are believed.
    pub(super) authority: Arc<Path>,
}

/// A connection whose answers are read by another process. With TLS it carries one request: the
/// keys are gone with its reader.
pub(super) struct Apart {
    requests: Box<dyn AsyncWrite + Send + Unpin>,
    answers: OwnedFd,
    reader: Reader,
    secured: Option<Secured>,
}

/// A reader, which is killed when nobody waits for it any more.
struct Reading(Child);

impl Drop for Reading {
    fn drop(&mut self) {
        // It runs as nobody and does little, so it ends at once.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Apart {
    pub(super) fn over<S>(stream: S, reader: Reader, secured: Option<Secured>) -> io::Result<Self>
    where
        S: AsFd + AsyncWrite + Send + Unpin + 'static,
    {
        Ok(Self {
            answers: stream.as_fd().try_clone_to_owned()?,
            requests: Box::new(stream),
            reader,
            secured,
        })
    }

    pub(super) async fn send(&mut self, request: http::Request<Bytes>) -> io::Result<Reply> {
        let (ours, readers) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (result, mut to_reader) = UnixStream::from_std(ours)?.into_split();
        let mut told = Vec::new();
        let limit = (LINE_LIMIT + ANSWER_LIMIT) as u64;
        let mut result = result.take(limit);
        let request = wire(request);
        let (answers, reader, secured) = (&self.answers, self.reader, &self.secured);
        let sent = async {
            let _ = match secured {
                None => self.requests.write_all(&request).await,
                Some(_) => match to_reader.write_all(&request).await {
                    Ok(()) => to_reader.shutdown().await,
                    lost => lost,
                },
            };
            Ok(())
        };
        // It starts while the service works on the request. The service may send a refusal before
        // it has read the whole request.
        let read = async {
            let _reading = Reading(started(reader, secured.as_ref(), answers, readers)?);
            result.read_to_end(&mut told).await
        };
        tokio::try_join!(sent, read)?;
        reply(told)
    }
}

/// Starts a reader of this connection, which tells its result to `readers`.
fn started(
    reader: Reader,
    secured: Option<&Secured>,
    answers: &OwnedFd,
    readers: StdUnixStream,
) -> io::Result<Child> {
    let mut command = reader();
    if let Some(secured) = secured {
        command.arg(&secured.address).arg(&*secured.authority);
    }
    // The command is dropped here: while it holds the reader's side, its end would not be seen.
    command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(answers.try_clone()?))
        .stdout(Stdio::from(OwnedFd::from(readers)))
        .stderr(Stdio::null())
        .spawn()
}

/// A request in the form in which HTTP/1.1 sends it.
fn wire(request: http::Request<Bytes>) -> Vec<u8> {
    let (parts, body) = request.into_parts();
    let mut wire = format!("{} {} HTTP/1.1\r\n", parts.method, parts.uri).into_bytes();
    for (name, value) in &parts.headers {
        wire.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    wire.extend(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    wire.extend(body);
    wire
}

/// The reply of a reader. An attacker may have taken the reader over, so only the reply's form is
/// trusted.
fn reply(mut told: Vec<u8>) -> io::Result<Reply> {
    let unreadable = || io::Error::other("its reader has told nothing that could be read");
    let end = told
        .iter()
        .take(LINE_LIMIT)
        .position(|byte| *byte == b'\n')
        .ok_or_else(unreadable)?;
    let body = told.split_off(end + 1);
    let line = str::from_utf8(&told[..end]).map_err(|_| unreadable())?;
    for (mark, kind) in [
        ('!', io::ErrorKind::UnexpectedEof),
        ('%', io::ErrorKind::ConnectionAborted),
        ('?', io::ErrorKind::InvalidData),
    ] {
        if let Some(why) = line.strip_prefix(mark) {
            return Err(io::Error::new(kind, shown(why)));
        }
    }
    let mut words = line.split(' ');
    let (Some(status), Some(length), Some(signature), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(unreadable());
    };
    if length.parse() != Ok(body.len()) {
        return Err(unreadable());
    }
    Ok(Reply {
        status: status.parse::<StatusCode>().map_err(|_| unreadable())?,
        signature: (signature != "-").then(|| signature.to_owned()),
        body: body.into(),
    })
}

/// The reader: reads one answer from the connection that is its standard input, and writes it to
/// standard output in the form above. Returns an error if it cannot be written.
///
/// `secured`: with TLS, `host:port` and the file of authorities. Then standard output is a socket
/// from which the request is to be taken first.
pub fn read_answer(secured: Option<(&str, &Path)>) -> io::Result<()> {
    let mut received = vec![0; HEAD_LIMIT + ANSWER_LIMIT];
    let mut line = Vec::with_capacity(LINE_LIMIT);
    let connection = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut result = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let read = match secured {
        None => {
            let mut connection = Clear(connection);
            confine(Some(LIFE), MEMORY, &[]);
            let read = answer(&mut connection, &mut received);
            // Nothing is closed, because that system call is no longer allowed.
            std::mem::forget(connection);
            read
        }
        Some((address, authority)) => {
            // Both are root's: what comes from the network is read by nobody.
            let mut request = Vec::new();
            result.read_to_end(&mut request)?;
            let session = Encrypted::begun(connection, address, authority, &request);
            confine(Some(LIFE), MEMORY, &Encrypted::CALLS);
            session.and_then(|mut session| {
                let read = answer(&mut session, &mut received);
                std::mem::forget(session);
                read
            })
        }
    };
    let told = match read {
        Ok(Answer {
            status,
            signature,
            body,
        }) => {
            let signature = signature.unwrap_or("-");
            writeln!(line, "{status} {} {signature}", body.len())?;
            result.write_all(&line)?;
            result.write_all(body)
        }
        Err(why) => {
            let mark = match why {
                Unread::Ended | Unread::NoHttp => '!',
                Unread::Tls(_) => '%',
                Unread::TooLong | Unread::NoLength => '?',
            };
            writeln!(line, "{mark}{why}")?;
            result.write_all(&line)
        }
    };
    std::mem::forget(result);
    told
}

#[derive(Debug, PartialEq)]
struct Answer<'a> {
    status: u16,
    signature: Option<&'a str>,
    body: &'a [u8],
}

/// Reads one answer; in clear text without allocating, because that is no longer allowed.
fn answer<'a>(connection: &mut impl Source, received: &'a mut [u8]) -> Result<Answer<'a>, Unread> {
    let mut length = 0;
    let end = loop {
        if let Some(end) = end_of(&received[..length])? {
            if end <= length {
                break end;
            }
            if end > received.len() {
                return Err(Unread::TooLong);
            }
        } else if length >= HEAD_LIMIT {
            return Err(Unread::NoHttp);
        }
        match connection.read(&mut received[length..])? {
            0 => return Err(Unread::Ended),
            more => length += more,
        }
    };
    taken(&received[..end])
}

/// The end of the answer; `None` if its head is not complete.
fn end_of(received: &[u8]) -> Result<Option<usize>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_length) =
        head.parse(received).map_err(|_| Unread::NoHttp)?
    else {
        return Ok(None);
    };
    let body_length = header(head.headers, http::header::CONTENT_LENGTH.as_str())
        .and_then(|text| text.parse::<usize>().ok())
        .ok_or(Unread::NoLength)?;
    match body_length {
        0..=ANSWER_LIMIT => Ok(Some(head_length + body_length)),
        _ => Err(Unread::TooLong),
    }
}

/// The parts of a complete answer.
fn taken(received: &[u8]) -> Result<Answer<'_>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    match (head.parse(received), head.code) {
        (Ok(httparse::Status::Complete(length)), Some(status)) => Ok(Answer {
            status,
            signature: header(head.headers, ANSWER_HEADER),
            body: &received[length..],
        }),
        _ => Err(Unread::NoHttp),
    }
}

/// The value of a header, if it is one word of printable text.
fn header<'a>(headers: &[httparse::Header<'a>], name: &str) -> Option<&'a str> {
    let found = headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case(name))?;
    let text = str::from_utf8(found.value).ok()?;
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_word.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &str =
        "HTTP/1.1 200 OK\r\nX-IO-Autotune-Signature: MUNGE:abc:\r\nContent-Length: 2\r\n\r\n{}";

    fn read(sent: &[u8]) -> Result<Reply, String> {
        let (connection, mut peer) = io::pipe().unwrap();
        let sent = sent.to_vec();
        let writing = std::thread::spawn(move || {
            let _ = peer.write_all(&sent);
        });
        let mut received = vec![0; HEAD_LIMIT + ANSWER_LIMIT];
        let mut connection = Clear(File::from(OwnedFd::from(connection)));
        let read = answer(&mut connection, &mut received).map_err(|why| why.to_string());
        let read = read.map(|answer| Reply {
            status: StatusCode::from_u16(answer.status).unwrap(),
            signature: answer.signature.map(str::to_owned),
            body: Bytes::copy_from_slice(answer.body),
        });
        drop(connection);
        writing.join().unwrap();
        read
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_no_further() {
        let expected = Reply {
            status: StatusCode::OK,
            signature: Some("MUNGE:abc:".into()),
            body: "{}".into(),
        };
        assert_eq!(read(SIGNED.as_bytes()).unwrap(), expected);
        assert_eq!(
            read(format!("{SIGNED} and more").as_bytes()).unwrap(),
            expected
        );
        let unsigned = read(b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n").unwrap();
        assert_eq!((unsigned.signature, unsigned.body.len()), (None, 0));
    }

    #[test]
    fn what_is_no_whole_answer_is_none() {
        let long = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            ANSWER_LIMIT + 1
        );
        let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(2 * HEAD_LIMIT));
        for (sent, why) in [
            (&SIGNED.as_bytes()[..SIGNED.len() - 1], "ended before"),
            (b"", "ended before"),
            (b"\x00\xff nonsense\r\n\r\n", "no HTTP"),
            (endless.as_bytes(), "no HTTP"),
            (long.as_bytes(), "longer than"),
            (b"HTTP/1.1 200 OK\r\n\r\n{}", "how long"),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}",
                "how long",
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 2 2\r\n\r\n{}",
                "how long",
            ),
        ] {
            let error = read(sent).unwrap_err();
            assert!(
                error.contains(why),
                "{:?}: {error}",
                String::from_utf8_lossy(sent)
            );
        }
    }

    /// Attack (service): An answer takes over the process that parses it.
    /// Outcome: That process is nobody, under a filter of system calls; root takes only a whole
    /// structure from it.
    #[test]
    fn nothing_but_a_whole_structure_is_taken_from_a_reader() {
        let whole = reply(b"200 2 MUNGE:abc:\n{}".to_vec()).unwrap();
        assert_eq!((whole.status.as_u16(), &whole.body[..]), (200, &b"{}"[..]));
        assert_eq!(reply(b"503 0 -\n".to_vec()).unwrap().signature, None);
        let error = reply(b"!it is \x1b[31mred\n".to_vec())
            .unwrap_err()
            .to_string();
        assert!(!error.contains('\x1b'), "{error:?}");
        for told in [
            &b""[..],
            b"200 2 MUNGE:abc:",
            b"200 2\n{}",
            b"200 2 MUNGE:abc: x\n{}",
            b"200 1 MUNGE:abc:\n{}",
            b"200 3 MUNGE:abc:\n{}",
            b"999999 2 -\n{}",
            b"two 2 -\n{}",
            b"\xff\n{}",
        ] {
            assert!(
                reply(told.to_vec()).is_err(),
                "{:?}",
                String::from_utf8_lossy(told)
            );
        }
    }

    /// Attack (parsers): An answer's head, and what its reader tells of it.
    #[test]
    fn fuzz_answer_and_reply() {
        io_autotune_fuzzing::Target::new("read_answer", &[SIGNED, "200 2 MUNGE:abc:\n{}"]).run(
            |input| {
                if let Ok(Some(end)) = end_of(input) {
                    assert!(end <= HEAD_LIMIT.max(input.len()) + ANSWER_LIMIT);
                    if end <= input.len() {
                        taken(&input[..end]).unwrap();
                    }
                }
                if let Ok(reply) = reply(input.to_vec()) {
                    assert!(reply.signature.is_none_or(|word| !word.contains(' ')));
                }
            },
        );
    }
}
