//! Extractors of handlers: the parts of a request, and who sent it.

use axum::extract::rejection::ExtensionRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::{Extension, Json};
use io_autotune_protocol::bounds::Bounded;
use serde::de::DeserializeOwned;

use super::ApiError;
use super::deciding::Asker;

/// An extractor whose rejection is answered in the API's form. It also refuses a request whose path
/// or query holds a NUL.
pub(super) struct Checked<E>(pub(super) E);

impl<S, E> FromRequestParts<S> for Checked<E>
where
    S: Send + Sync,
    E: FromRequestParts<S>,
    ApiError: From<E::Rejection>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        // Its names are looked up in the database, whose texts have no NUL.
        let asked = parts.uri.path_and_query();
        if asked.is_some_and(|asked| asked.as_str().contains("%00")) {
            return Err(ApiError::bad_request(
                "the path and the query of a request have no zero byte (%00)".into(),
            ));
        }
        Ok(Self(E::from_request_parts(parts, state).await?))
    }
}

impl<S: Send + Sync, T: Bounded + DeserializeOwned> FromRequest<S> for Checked<Json<T>> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Json(body) = Json::<T>::from_request(request, state).await?;
        let body = body.fitted();
        body.check()?;
        Ok(Self(Json(body)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = ExtensionRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ExtensionRejection> {
        let Extension(reader) = Extension::from_request_parts(parts, state).await?;
        let Extension(caller) = Extension::from_request_parts(parts, state).await?;
        Ok(Self { reader, caller })
    }
}
