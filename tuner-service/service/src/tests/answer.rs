//! The service's answers, as tests check them.

use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An answer whose signature has been checked, where it has one.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The method and the path of the request, for what a failed test prints.
    pub(crate) asked: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) is_signed: bool,
}

impl Answer {
    /// The body of an answer that grants what was asked.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        self.read()
    }

    /// The same, as a type of the protocol.
    #[track_caller]
    pub(crate) fn read<T: DeserializeOwned>(&self) -> T {
        assert_eq!(self.status, StatusCode::OK, "{self}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// The message of a refusal with this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status.as_u16(), status, "{self}");
        let body: Value =
            serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self}"));
        assert_eq!(body["error"]["code"], code, "{self}");
        body["error"]["message"].as_str().unwrap().to_owned()
    }

    /// The message of a bad request.
    #[track_caller]
    pub(crate) fn bad_request(&self) -> String {
        self.refused(422, "bad_request")
    }

    /// The message of a refusal for lack of rights.
    #[track_caller]
    pub(crate) fn forbidden(&self) -> String {
        self.refused(403, "forbidden")
    }

    /// The message of a refusal of something that is not there for the caller.
    #[track_caller]
    pub(crate) fn not_found(&self) -> String {
        self.refused(404, "not_found")
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} {}", self.asked, self.status, self.text())
    }
}
