//! Exports and imports.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use io_autotune_protocol::signature::Nonce;
use io_autotune_protocol::{
    ErrorBody, ExportPage, IMPORT_CHUNKS, ImportAnswer, ImportChunk, ImportRequest, ImportStep,
    ImportedStudy,
};
use io_autotune_store::{
    Audit, Cursor, EXPORT_VERSION, Import, ImportError, Imported, check_header,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::checked::Checked;
use super::reason::{Concerns, reason};
use super::studies::{one_row, renew};
use super::{ApiError, Service};
use crate::access::Caller;
use crate::reader::Reader;

/// The page of an export that is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuery {
    /// The position that the page before gave as the next one; absent for the first page.
    after: Option<String>,
}

/// A page of the evidence of a study, as text for an import. Runs in flight are left out.
#[utoipa::path(get, path = "/v1/studies/{study_id}/export", params(
    ("study_id" = i64, Path, description = "The study"), ExportQuery),
    responses((status = 200, body = ExportPage), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(super) async fn export(
    State(service): State<Arc<Service>>,
    Extension(reader): Extension<Reader>,
    Checked(Path(study_id)): Checked<Path<i64>>,
    Checked(Query(query)): Checked<Query<ExportQuery>>,
) -> Result<Json<ExportPage>, ApiError> {
    let from = query.after.map(|text| text.parse::<Cursor>()).transpose();
    let from = from.map_err(|error| ApiError::bad_request(error.to_string()))?;
    one_row(&service, reader, study_id).await?;
    // The inputs of a suggestion name the runs that were in flight.
    if reader != Reader::Admin && service.store.has_secrets(study_id, from).await? {
        return Err(ApiError::conflict(format!(
            "study {study_id} has runs in flight of which is not told yet whether they are control runs: export it \
             once they have ended, or ask an admin to"
        )));
    }
    let page = service.store.export(study_id, from).await?;
    Ok(Json(ExportPage {
        version: EXPORT_VERSION,
        lines: page.lines,
        next: page.next.map(|next| next.to_string()),
    }))
}

/// Stores a piece of a file. The pieces are removed when no further one comes for an hour.
#[utoipa::path(post, path = "/v1/imports/{upload}", request_body = ImportChunk,
    params(("upload" = String, Path, description = "The importer's name for the file: 32 hexadecimal digits")),
    responses((status = 200, body = ImportAnswer), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub(super) async fn chunk(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Checked(Path(upload)): Checked<Path<String>>,
    Checked(Json(body)): Checked<Json<ImportChunk>>,
) -> Result<Json<ImportAnswer>, ApiError> {
    let upload = checked_name(upload)?;
    if let (0, Some((first, _))) = (body.place, body.text.split_once('\n')) {
        check_header(first).map_err(|why| refused(format!("line 1, header: {why}")))?;
    }
    let laid = service
        .store
        .stage_chunk(&upload, caller.uid, body.place, &body.text)
        .await?;
    if laid {
        Ok(Json(ImportAnswer {
            studies: Vec::new(),
        }))
    } else {
        Err(ApiError::conflict(format!(
            "piece {} of this upload is there already, and is another",
            body.place
        )))
    }
}

/// Imports a file whose pieces are all there, says what would be imported, or removes the pieces.
#[utoipa::path(post, path = "/v1/imports/{upload}/end", request_body = ImportRequest,
    params(("upload" = String, Path, description = "The importer's name for the file")),
    responses((status = 200, body = ImportAnswer), (status = 422, body = ErrorBody)))]
pub(super) async fn end(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Checked(Path(upload)): Checked<Path<String>>,
    Checked(Json(body)): Checked<Json<ImportRequest>>,
) -> Result<Json<ImportAnswer>, ApiError> {
    let upload = checked_name(upload)?;
    if body.step == ImportStep::Discard {
        service.store.discard_import(&upload, caller.uid).await?;
        return Ok(Json(ImportAnswer {
            studies: Vec::new(),
        }));
    }
    let audit = Audit::unbounded(caller.uid, reason(&body.why, Concerns::Others)?);
    let cluster = match (body.cluster, &service.clusters[..]) {
        (Some(name), _) => service.cluster(&name)?,
        (None, [only]) => only,
        (None, _) => {
            return Err(ApiError::bad_request(
                "which cluster the studies become is not said: the file names none, and the service has several \
                 (`--cluster NAME`)"
                    .into(),
            ));
        }
    };
    let import = Import {
        upload: &upload,
        cluster: &cluster.sources.cluster,
        chunks: body.chunks.min(IMPORT_CHUNKS),
        skip_existing: body.skip_existing,
        dry_run: body.step == ImportStep::Look,
    };
    let imported = match service.store.import(import, audit).await {
        Ok(imported) => imported,
        Err(ImportError::Refused(refusal)) => return Err(refused(refusal.to_string())),
        Err(ImportError::Store(error)) => return Err(error.into()),
    };
    if !import.dry_run {
        for one in imported.iter().filter(|one| !one.skipped) {
            renew(&service, one.study_id, &one.key).await;
        }
        tracing::info!(uid = caller.uid, studies = imported.len(), "imported");
    }
    let studies = imported.into_iter();
    Ok(Json(ImportAnswer {
        studies: studies.map(|one| shown(one, import.dry_run)).collect(),
    }))
}

fn refused(why: String) -> ApiError {
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "import_refused", why)
}

fn shown(one: Imported, dry_run: bool) -> ImportedStudy {
    ImportedStudy {
        study_id: (one.skipped || !dry_run).then_some(one.study_id),
        application: one.key.application,
        uid: one.key.owner_uid,
        user: one.key.owner_name,
        accelerator: one.key.accelerator,
        context: one.key.context,
        epochs: one.epochs,
        runs: one.runs,
        skipped: one.skipped,
    }
}

/// The name of an upload, which is a nonce's.
fn checked_name(text: String) -> Result<String, ApiError> {
    match Nonce::parse(&text.to_ascii_lowercase()) {
        Ok(name) if name.as_str() == text => Ok(text),
        _ => Err(ApiError::bad_request(
            "an upload is named by 32 hexadecimal digits, in small letters".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::export_header;

    use super::*;

    #[test]
    fn a_client_frames_a_file_as_the_store_reads_it() {
        assert_eq!(check_header(&export_header(EXPORT_VERSION)), Ok(()));
    }

    #[test]
    fn an_upload_has_a_name_that_nobody_guesses() {
        let name = "0123456789abcdef0123456789abcdef".to_owned();
        assert_eq!(checked_name(name.clone()).unwrap(), name);
        for bad in ["", "7", &name.to_uppercase(), &format!("{name}0")] {
            assert!(checked_name(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
