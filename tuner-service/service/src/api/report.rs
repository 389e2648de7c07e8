//! Serves the files of the latest nightly report to those who may read it, and to each user the page
//! of their own studies.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{self, State};
use axum::{Extension, Json};
use io_autotune_protocol::{ErrorBody, ReportFile, ReportFileName};
use serde::{Deserialize, Serialize};

use super::checked::Checked;
use super::{ApiError, Service};
use crate::access::Caller;

/// Bytes of a file. The answer is held in memory and signed.
const MOST_BYTES: u64 = 32 << 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReportConfig {
    /// Directory of the nights, where `latest` links to the latest; `None`: no report.
    directory: Option<PathBuf>,
}

/// A file of the latest report.
#[utoipa::path(get, path = "/v1/report/{file}", params(("file" = inline(ReportFileName), Path)), responses(
    (status = 200, body = ReportFile), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(super) async fn file(
    State(service): State<Arc<Service>>,
    Checked(extract::Path(file)): Checked<extract::Path<ReportFileName>>,
) -> Result<Json<ReportFile>, ApiError> {
    let missing = "no report has been made yet, or none with this file";
    latest(&service, file.as_str(), missing).await
}

/// The page of the caller's own studies, of the latest report.
#[utoipa::path(get, path = "/v1/report/mine", responses(
    (status = 200, body = ReportFile), (status = 404, body = ErrorBody)))]
pub(super) async fn mine(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ReportFile>, ApiError> {
    let missing = "no page of your studies has been made yet: the nightly report makes one once a study \
                   of yours has runs. `io-autotune status` says how your studies are now";
    latest(&service, &format!("users/{}.html", caller.uid), missing).await
}

async fn latest(
    service: &Service,
    file: &str,
    missing: &'static str,
) -> Result<Json<ReportFile>, ApiError> {
    let Some(directory) = &service.report.directory else {
        return Err(ApiError::no_report(
            "the service serves no report: [report] directory of service.toml names none",
        ));
    };
    read_latest(directory, file, missing).await.map(Json)
}

/// Resolves `latest` once, so that night and file agree while a new night replaces it.
async fn read_latest(
    directory: &Path,
    file: &str,
    missing: &'static str,
) -> Result<ReportFile, ApiError> {
    let unread = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => ApiError::no_report(missing),
        _ => ApiError::unreadable_report(&error),
    };
    let night = tokio::fs::read_link(directory.join("latest"))
        .await
        .map_err(unread)?;
    let night = night
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| unread(ErrorKind::InvalidData.into()))?;
    let path = directory.join(night).join(file);
    let size = tokio::fs::metadata(&path).await.map_err(unread)?.len();
    if size > MOST_BYTES {
        return Err(unread(ErrorKind::FileTooLarge.into()));
    }
    let content = tokio::fs::read_to_string(&path).await.map_err(unread)?;
    Ok(ReportFile {
        night: night.to_owned(),
        content,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use axum::http::StatusCode;

    use super::*;

    #[tokio::test]
    async fn the_latest_nights_file_is_read_and_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = read_latest(directory.path(), "index.html", "none").await;
        assert_eq!(missing.unwrap_err().status(), StatusCode::NOT_FOUND);
        let night = directory.path().join("2026-11-20");
        fs::create_dir(&night).unwrap();
        fs::write(night.join("index.html"), "<!doctype html>").unwrap();
        symlink("2026-11-20", directory.path().join("latest")).unwrap();
        let read = read_latest(directory.path(), "index.html", "none")
            .await
            .unwrap();
        assert_eq!(
            (read.night.as_str(), read.content.as_str()),
            ("2026-11-20", "<!doctype html>")
        );
        let missing = read_latest(directory.path(), "mail.txt", "none").await;
        assert_eq!(missing.unwrap_err().status(), StatusCode::NOT_FOUND);
    }
}
