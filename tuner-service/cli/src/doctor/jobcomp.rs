//! On slurmctld's host: checks that the records of the job-completion script are delivered.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use io_autotune_protocol::Check;

use super::spool::age;

const NAME: &str = "collector";

/// The age from which undelivered records are a problem: the collector passes every few seconds,
/// and then writes its state.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Checks the delivery; `state` is the directory of the collector's state. `None` if the script has
/// written nothing, or if the caller may not look.
pub(super) fn check(spool: &Path, state: &Path) -> Option<Check> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a person is told how old a file is; nothing is decided by it"
    )]
    let now = SystemTime::now();
    look(spool, state, now)
}

fn look(spool: &Path, state: &Path, now: SystemTime) -> Option<Check> {
    let written = newest(spool).ok()??;
    // Only root and the collector may look.
    let delivered = match newest(state) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => return None,
    };
    let waits = now.duration_since(written).unwrap_or_default();
    Some(if Some(written) > delivered && waits > PATIENCE {
        Check::failed(
            NAME,
            format!(
                "what the job-completion script wrote in {} has waited for {}",
                spool.display(),
                age(waits)
            ),
            "`systemctl enable --now io-autotune-collector`; its log says what is in the way",
        )
    } else {
        Check::ok(NAME, "delivers what the job-completion script writes")
    })
}

/// The time of the last write to a file of a directory; `None` if it has none.
fn newest(directory: &Path) -> io::Result<Option<SystemTime>> {
    let mut newest = None;
    for entry in std::fs::read_dir(directory)? {
        newest = newest.max(Some(entry?.metadata()?.modified()?));
    }
    Ok(newest)
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    #[test]
    fn a_collector_that_delivers_nothing_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let (spool, state) = (
            directory.path().join("spool"),
            directory.path().join("state"),
        );
        let look = |now| look(&spool, &state, now);
        assert_eq!(look(SystemTime::UNIX_EPOCH), None);
        std::fs::create_dir(&spool).unwrap();
        assert_eq!(look(SystemTime::UNIX_EPOCH), None);
        std::fs::write(spool.join("outcomes-20261125"), "x").unwrap();
        let written = newest(&spool).unwrap().unwrap();
        assert_eq!(look(written).unwrap().state, CheckState::Ok);
        let later = written + Duration::from_secs(3 * 3600);
        let check = look(later).unwrap();
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.detail.ends_with("has waited for 3 h"), "{check:?}");
        assert!(check.fix.unwrap().contains("io-autotune-collector"));
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("position.json"), "x").unwrap();
        assert_eq!(look(later).unwrap().state, CheckState::Ok);
    }
}
