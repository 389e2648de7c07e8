//! Remembers the endpoint of client.toml that answered last, so that a silent replica delays one
//! job only.
//!
//! It is the file `.endpoint` in the run directory, for the breaker's reasons, and is absent while
//! the first endpoint answers. The flush timer, for which no job waits, asks in the configured
//! order.

use std::fs;
use std::path::{Path, PathBuf};

use io_autotune_protocol::{Client, Endpoint};

use crate::files::{ensure_top_directory, read_own, replace};
use crate::output::say;

#[derive(Debug)]
pub(crate) struct Route {
    path: PathBuf,
}

impl Route {
    pub(crate) fn of(run_dir: &Path) -> Self {
        Self {
            path: run_dir.join(".endpoint"),
        }
    }

    /// Returns true if an endpoint other than the first is remembered.
    pub(crate) fn is_there(&self) -> bool {
        self.path.exists()
    }

    pub(crate) fn recall(&self, client: &Client) {
        client.prefer(self.remembered().as_ref());
    }

    pub(crate) fn keep(&self, client: &Client) {
        let answered = client.preferred();
        if answered == self.remembered().as_ref() {
            return;
        }
        let kept = match answered {
            None => fs::remove_file(&self.path).map_err(|error| error.to_string()),
            Some(endpoint) => ensure_top_directory(self.path.parent().unwrap_or(Path::new("/")))
                .and_then(|()| replace(&self.path, endpoint.to_string().as_bytes(), 0o600, None))
                .map_err(|error| error.to_string()),
        };
        if let Err(error) = kept
            && self.remembered().as_ref() != answered
        {
            say(&format!(
                "{}: who answered cannot be remembered: {error}",
                self.path.display()
            ));
        }
    }

    fn remembered(&self) -> Option<Endpoint> {
        read_own(&self.path).ok()?.trim_end().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::ClientConfig;

    use super::*;

    fn client() -> Client {
        let config = "endpoints = [\"tcp:a:1\", \"tcp:b:1\"]\nservice_user = 0\n";
        Client::new(&toml::from_str::<ClientConfig>(config).unwrap()).unwrap()
    }

    #[test]
    fn one_helper_remembers_for_the_next_until_the_first_endpoint_answers() {
        let run_dir = tempfile::tempdir().unwrap();
        let route = Route::of(run_dir.path());
        let (asked, second) = (client(), "tcp:b:1".parse().unwrap());
        route.keep(&asked);
        assert!(!route.is_there());
        asked.prefer(Some(&second));
        route.keep(&asked);
        let next = client();
        route.recall(&next);
        assert_eq!(next.preferred(), Some(&second));
        next.prefer(None);
        route.keep(&next);
        assert!(!route.is_there());
    }

    #[test]
    fn what_is_no_endpoint_is_not_remembered() {
        let run_dir = tempfile::tempdir().unwrap();
        let route = Route::of(run_dir.path());
        for left in ["", "b:1", "unix:relative"] {
            fs::write(&route.path, left).unwrap();
            let asked = client();
            route.recall(&asked);
            assert_eq!(asked.preferred(), None, "{left:?}");
        }
    }
}
