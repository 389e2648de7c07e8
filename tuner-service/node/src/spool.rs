//! The spool: reports on local disk until the service has stored them.
//!
//! A report is written durably before it is sent and removed once the service has acknowledged
//! it, so neither a service that is down nor a helper that is killed loses one. The service takes
//! a report once, however often it is sent.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use io_autotune_protocol::{Call, Client, ClientError, FinishAnswer, FinishRequest, Job, Method};

use crate::directory::{DirectoryError, ensure_directory, read_limited, replace};
use crate::{Deadline, say};

/// A spool directory, root's.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
}

/// What became of a report that was sent.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The service has it.
    Stored,
    /// The service will never take it; it is kept aside.
    Refused(ClientError),
    /// It stays and is tried again.
    Later(ClientError),
}

impl Spool {
    /// Opens the spool, made where there is none.
    pub(crate) fn open(directory: &Path) -> Result<Self, DirectoryError> {
        ensure_directory(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// Writes a report durably.
    pub(crate) fn add(&self, report: &FinishRequest) -> Result<PathBuf, DirectoryError> {
        let path = self.directory.join(file_name(&report.job));
        let text = serde_json::to_vec(report).map_err(|source| DirectoryError::Json {
            path: path.clone(),
            source,
        })?;
        replace(&path, &text, 0o400, None)?;
        let synced = File::open(&self.directory).and_then(|directory| directory.sync_all());
        synced.map_err(|source| DirectoryError::Io {
            path: self.directory.clone(),
            source,
        })?;
        Ok(path)
    }

    /// The reports that wait, by name.
    pub(crate) fn waiting(&self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Sends one report, and removes it if the service has it.
    pub(crate) async fn deliver(
        &self,
        client: &Client,
        path: &Path,
        deadline: Deadline,
    ) -> Delivery {
        let report = match read_limited(path) {
            // Another flush was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Delivery::Stored,
            Err(error) => {
                return Delivery::Later(ClientError::Malformed {
                    endpoint: path.display().to_string(),
                    problem: error.to_string(),
                });
            }
            Ok(text) => match serde_json::from_str::<FinishRequest>(&text) {
                Ok(report) => report,
                Err(error) => {
                    self.put_aside(path);
                    return Delivery::Refused(ClientError::Malformed {
                        endpoint: path.display().to_string(),
                        problem: error.to_string(),
                    });
                }
            },
        };
        let call = Call {
            method: Method::Post,
            path: "/v1/runs/finish",
            body: Some(&report),
            idempotent: true,
        };
        match client.call::<_, FinishAnswer>(call, deadline.left()).await {
            Ok(_) => {
                self.remove(path);
                Delivery::Stored
            }
            Err(error) if error.is_transient() => Delivery::Later(error),
            Err(error) => {
                self.put_aside(path);
                Delivery::Refused(error)
            }
        }
    }

    fn remove(&self, path: &Path) {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                say(&format!(
                    "{}: cannot be removed ({error}); it will be sent again",
                    path.display()
                ));
            }
            _ => {}
        }
    }

    /// Nothing is thrown away: an admin can look at what the service refused.
    fn put_aside(&self, path: &Path) {
        let aside = path.with_extension("refused");
        if let Err(error) = fs::rename(path, &aside) {
            say(&format!("{}: cannot be put aside: {error}", path.display()));
        }
    }
}

fn file_name(job: &Job) -> String {
    format!(
        "{}.{}.{}.{}.json",
        job.cluster, job.job_id, job.restart_count, job.node
    )
}
