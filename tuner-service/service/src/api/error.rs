//! Refusals: a status, a stable code for programs, and a sentence for people.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use io_autotune_catalogue::LookupError;
use io_autotune_engine::SpaceError;
use io_autotune_protocol::bounds::OutOfBounds;
use io_autotune_protocol::{ErrorBody, ErrorDetail, shown};
use io_autotune_store::{Scarce, StoreError};

use crate::quota::AskAgain;
use crate::rate_limited_log::Seldom;

static REFUSED: Seldom = Seldom::new();

#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    ask_again: Option<AskAgain>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self {
            status,
            code,
            message,
            ask_again: None,
        }
    }

    /// The refusal where a user's quota is used up.
    pub(crate) fn too_many_requests(when: AskAgain) -> Self {
        let seconds = whole_seconds(when);
        Self {
            ask_again: Some(when),
            ..Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_requests",
                format!("you have asked too much at once; ask again in {seconds} s"),
            )
        }
    }

    /// The refusal where a user has made as many changes in a day as a user may.
    pub(crate) fn too_many_changes(most: u64) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_changes",
            format!(
                "you have changed {most} things within a day, the most of a user ([users] changes_per_day in \
                 service.toml): each is kept in the audit; ask again later, or an admin"
            ),
        )
    }

    pub(crate) fn unavailable(code: &'static str, message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message.to_owned())
    }

    pub(crate) fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message.to_owned())
    }

    pub(crate) fn bad_request(message: String) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_request", message)
    }

    /// The refusal where the request does not fit the present state.
    pub(crate) fn conflict(message: String) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message)
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message.to_owned())
    }

    pub(crate) fn replayed() -> Self {
        Self::unauthorized("the request has been read before")
    }

    pub(crate) fn no_report(why: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_report", why.to_owned())
    }

    pub(crate) fn unreadable_report(error: &std::io::Error) -> Self {
        tracing::error!(%error, "the report cannot be read");
        let message = format!("the report cannot be read: {error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "unreadable_report",
            message,
        )
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.message
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Also the answer for another user's study, so that nobody learns that it exists.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::not_found_in(what, "io-autotune status")
    }

    /// The same for something that another command lists.
    pub(crate) fn not_found_in(what: &str, command: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("there is no {what} among those you may see; `{command}` lists them"),
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let detail = ErrorDetail {
            code: self.code.to_owned(),
            // The message may quote the request, at any length.
            message: shown(&self.message),
        };
        let mut answer = (self.status, Json(ErrorBody { error: detail })).into_response();
        if let Some(when) = self.ask_again {
            let seconds = HeaderValue::from(whole_seconds(when));
            answer.headers_mut().insert(RETRY_AFTER, seconds);
        }
        answer
    }
}

fn whole_seconds(AskAgain(wait): AskAgain) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            // The user's own mistake, and as frequent as the user likes.
            StoreError::TooManyStudies { .. }
            | StoreError::TooManyChanges { .. }
            | StoreError::TooManyOrders { .. } => tracing::debug!(%error, "a user has enough"),
            StoreError::Removed { .. } => tracing::info!(%error, "what was removed is not had"),
            StoreError::Replayed { .. } => tracing::warn!(%error, "a request was refused"),
            // The sender's own mistake, likewise.
            refused if refused.is_refusal() => {
                if let Some(more) = REFUSED.now() {
                    tracing::warn!(%error, more, "the database refuses what was sent");
                }
            }
            _ => tracing::error!(%error, "the store failed"),
        }
        match error {
            error if error.is_refusal() => Self::bad_request(
                "the database refuses what was sent; the service's log says why".into(),
            ),
            StoreError::TooManyStudies { most, .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "too_many_studies",
                format!(
                    "the user has {most} studies, the most of a user ([users] studies in service.toml): the job runs with its defaults and is not recorded"
                ),
            ),
            StoreError::TooManyChanges { most, .. } => Self::too_many_changes(most),
            StoreError::TooManyOrders { most, .. } => Self::new(
                StatusCode::CONFLICT,
                "too_many_orders",
                format!(
                    "you have {most} orders in force, the most of a user ([users] orders in service.toml): end some \
                     that you do not need any more; `io-autotune audit orders` lists them"
                ),
            ),
            StoreError::Removed { through, .. } => Self::new(
                StatusCode::GONE,
                "removed",
                format!(
                    "runs that started up to {through} were removed by retention ([retention] in service.toml)"
                ),
            ),
            StoreError::Replayed { .. } => Self::replayed(),
            StoreError::Busy {
                scarce: Scarce::Study,
                ..
            }
            | StoreError::Outdated { .. } => {
                Self::unavailable("busy", "the study is busy; ask again")
            }
            StoreError::Busy { .. } => Self::unavailable(
                "busy",
                "every connection to the database is busy; ask again",
            ),
            error if error.is_outage() && error.is_answer() => {
                Self::unavailable("database", "the service's database takes no writes now")
            }
            StoreError::Invariant { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the store holds something it must not; the service's log says what".into(),
            ),
            _ => Self::unavailable("database", "the service cannot reach its database"),
        }
    }
}

impl From<OutOfBounds> for ApiError {
    fn from(error: OutOfBounds) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        let message = error.to_string();
        match error {
            LookupError::Unknown { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "unknown_accelerator",
                message,
            ),
            LookupError::Together(_) => Self::bad_request(message),
        }
    }
}

impl From<SpaceError> for ApiError {
    fn from(error: SpaceError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

pub(crate) async fn no_such_path() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "no_such_path",
        "there is nothing at this path; /v1/openapi.json describes the API".into(),
    )
}
