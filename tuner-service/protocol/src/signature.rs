//! Signatures of requests and answers, as credentials over SHA-256 digests.
//!
//! A request's digest covers method, path with query, nonce and body. Only the service's uid can
//! decode it, and only once. An answer's digest covers status, the request's nonce and the body;
//! only the caller's uid can decode it. So nobody else can make an answer, and no answer fits
//! another request. Bodies are signed, not encrypted: they contain only the user's own jobs.

use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::credentials::{CredentialError, Credentials};

/// The header with the request's credential: `MUNGE:...:`, or a token of SACK.
pub const REQUEST_HEADER: &str = "x-io-autotune-credential";
/// The header with the answer's credential.
pub const ANSWER_HEADER: &str = "x-io-autotune-signature";
/// The header with the request's nonce: 32 hexadecimal digits.
pub const NONCE_HEADER: &str = "x-io-autotune-nonce";

/// The reason why a signature was refused.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The back-end could not be asked, or refused.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// The credential is genuine, but for another request or answer.
    #[error("the credential is not for this {0}: its digest differs")]
    Digest(&'static str),
    /// The signature is genuine, but not the service's.
    #[error("the answer was signed by uid {actual}, and the service is uid {expected}")]
    Signer {
        /// The uid that signed.
        actual: u32,
        /// The service's uid.
        expected: u32,
    },
    /// The nonce does not have the form of one.
    #[error("the nonce {0:?} is not 32 hexadecimal digits")]
    Nonce(String),
}

/// A number used once: 128 random bits in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A fresh nonce. Returns an error if the system has no random source.
    pub fn fresh() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hexadecimal(&bytes)))
    }

    /// Reads a nonce from a header. Returns an error if it is not 32 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(SignatureError::Nonce(text.chars().take(40).collect()))
        }
    }

    /// The nonce as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The signed text. Each part has its own line, and the body enters by its digest, so that
/// different messages have different texts.
fn digest(kind: &str, parts: [&str; 2], nonce: &Nonce, body: &[u8]) -> String {
    let body = hexadecimal(&Sha256::digest(body));
    let text = format!("{}\n{}\n{}\n{body}", parts[0], parts[1], nonce.0);
    format!(
        "io-autotune {kind} 1 {}",
        hexadecimal(&Sha256::digest(text.as_bytes()))
    )
}

/// Signs a request for the uid `service` alone. Returns an error if the back-end fails.
pub fn sign_request(
    credentials: &dyn Credentials,
    service: u32,
    method: &str,
    path: &str,
    nonce: &Nonce,
    body: &[u8],
) -> Result<String, CredentialError> {
    credentials.encode(
        digest("request", [method, path], nonce, body).as_bytes(),
        service,
    )
}

/// The sender of a request, known before its body is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The uid, as the back-end vouches for it.
    pub uid: u32,
    /// The address of the sender's host, if the back-end tells.
    pub origin: Option<IpAddr>,
    signed: Vec<u8>,
}

impl Sender {
    /// Reads a request's credential, once. Returns an error if the back-end refuses it or cannot be
    /// asked.
    pub fn of(credentials: &dyn Credentials, credential: &str) -> Result<Self, CredentialError> {
        let decoded = credentials.decode(credential)?;
        Ok(Self {
            uid: decoded.uid,
            origin: decoded.origin,
            signed: decoded.payload,
        })
    }

    /// Checks the credential against a request. Returns an error if it is for another one.
    pub fn check(
        &self,
        method: &str,
        path: &str,
        nonce: &Nonce,
        body: &[u8],
    ) -> Result<(), SignatureError> {
        if self.signed == digest("request", [method, path], nonce, body).as_bytes() {
            Ok(())
        } else {
            Err(SignatureError::Digest("request"))
        }
    }
}

/// Signs the answer to the request with `nonce` for the uid `reader`. Returns an error if the
/// back-end fails.
pub fn sign_answer(
    credentials: &dyn Credentials,
    reader: u32,
    status: u16,
    nonce: &Nonce,
    body: &[u8],
) -> Result<String, CredentialError> {
    let status = status.to_string();
    credentials.encode(
        digest("answer", [&status, ""], nonce, body).as_bytes(),
        reader,
    )
}

/// Checks an answer to the request with `nonce`. Returns an error if the back-end refuses it or
/// cannot be asked, or if the answer is not from `service` or is for another request.
pub fn verify_answer(
    credentials: &dyn Credentials,
    service: u32,
    credential: &str,
    status: u16,
    nonce: &Nonce,
    body: &[u8],
) -> Result<(), SignatureError> {
    let decoded = credentials.decode(credential)?;
    if decoded.uid != service {
        return Err(SignatureError::Signer {
            actual: decoded.uid,
            expected: service,
        });
    }
    let status = status.to_string();
    if decoded.payload == digest("answer", [&status, ""], nonce, body).as_bytes() {
        Ok(())
    } else {
        Err(SignatureError::Digest("answer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cast, casts};

    fn verify_request(
        credentials: &dyn Credentials,
        credential: &str,
        method: &str,
        path: &str,
        nonce: &Nonce,
        body: &[u8],
    ) -> Result<u32, SignatureError> {
        let sender = Sender::of(credentials, credential)?;
        sender.check(method, path, nonce, body)?;
        Ok(sender.uid)
    }

    #[test]
    fn a_request_is_bound_to_method_path_body_and_nonce() {
        for Cast { user, service, .. } in &casts() {
            let nonce = Nonce::fresh().unwrap();
            let other = Nonce::fresh().unwrap();
            let sign = || sign_request(&**user, 7, "POST", "/v1/x", &nonce, b"body").unwrap();
            let verify = |method, path, nonce: &Nonce, body: &[u8]| {
                verify_request(&**service, &sign(), method, path, nonce, body)
            };
            assert_eq!(verify("POST", "/v1/x", &nonce, b"body").unwrap(), 1000);
            assert!(verify("PUT", "/v1/x", &nonce, b"body").is_err());
            assert!(verify("POST", "/v1/y", &nonce, b"body").is_err());
            assert!(verify("POST", "/v1/x", &other, b"body").is_err());
            assert!(verify("POST", "/v1/x", &nonce, b"bodY").is_err());
        }
    }

    /// Attack (service): A credential of MUNGE is sent for another request or reader, twice, cut,
    /// or made up.
    #[test]
    fn a_credential_is_read_once_and_by_its_reader_alone() {
        for cast in casts() {
            let nonce = Nonce::fresh().unwrap();
            let sign = || sign_request(&*cast.user, 7, "GET", "/", &nonce, b"").unwrap();
            let verify = |reader: &dyn Credentials, credential: &str| {
                verify_request(reader, credential, "GET", "/", &nonce, b"")
            };
            let (first, second) = (sign(), sign());
            assert_ne!(first, second, "one would be taken for the other's replay");
            verify(&*cast.service, &first).unwrap();
            for _ in 0..2 {
                let replay = verify(&*cast.service, &first);
                assert!(matches!(replay, Err(SignatureError::Credential(_))));
            }
            assert!(verify(&*cast.stranger, &second).is_err());
            assert!(verify(&*cast.user, &second).is_err());
            verify(&*cast.service, &second).unwrap();
        }
    }

    #[test]
    fn an_answer_is_bound_to_the_service_the_request_and_its_status() {
        for Cast { user, service, .. } in &casts() {
            let nonce = Nonce::fresh().unwrap();
            let other = Nonce::fresh().unwrap();
            let sign = || sign_answer(&**service, 1000, 200, &nonce, b"{}").unwrap();
            let verify = |service, status, nonce: &Nonce, body: &[u8]| {
                verify_answer(&**user, service, &sign(), status, nonce, body)
            };
            verify(7, 200, &nonce, b"{}").unwrap();
            assert!(matches!(
                verify(8, 200, &nonce, b"{}"),
                Err(SignatureError::Signer { .. })
            ));
            assert!(verify(7, 500, &nonce, b"{}").is_err());
            assert!(verify(7, 200, &other, b"{}").is_err());
            assert!(verify(7, 200, &nonce, b"{ }").is_err());
        }
    }

    #[test]
    fn a_request_cannot_pass_as_an_answer() {
        for Cast { user, service, .. } in &casts() {
            let nonce = Nonce::fresh().unwrap();
            let credential = sign_request(&**service, 1000, "200", "", &nonce, b"").unwrap();
            let verified = verify_answer(&**user, 7, &credential, 200, &nonce, b"");
            assert!(matches!(verified, Err(SignatureError::Digest("answer"))));
        }
    }

    #[test]
    fn a_nonce_has_one_form() {
        assert!(Nonce::parse("0123456789abcdef0123456789abcdef").is_ok());
        assert!(Nonce::parse("").is_err());
        assert!(Nonce::parse("0123456789abcdef0123456789abcde\n").is_err());
    }
}
