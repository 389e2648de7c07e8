//! This node's spool: reports that the service has not accepted yet, or never will, and commands
//! that could not be stopped.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use io_autotune_model::text::listed;
use io_autotune_protocol::Check;

const NAME: &str = "spool";
/// The age from which a report is stuck: a timer delivers once a minute.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The most files of a kind that are named.
const NAMED: usize = 3;

#[derive(Debug, Default, PartialEq)]
struct Spool {
    waiting: usize,
    /// The age of the oldest report.
    oldest: Duration,
    /// The names of the refused reports.
    refused: Vec<String>,
    /// The names of commands that could not be stopped.
    unstopped: Vec<String>,
}

/// Checks the spool. `None` if there is none or the caller may not read it: only compute nodes have
/// one, which is root's.
pub(super) fn check(directory: &Path) -> Option<Check> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a person is told how old a file is; nothing is decided by it"
    )]
    let now = SystemTime::now();
    match look(directory, now) {
        Ok(spool) => Some(judge(directory, &spool)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => None,
            _ => Some(Check::failed(
                NAME,
                format!("{} cannot be read: {error}", directory.display()),
                "make it a directory of root's, mode 0700, or name the right one by --spool-dir",
            )),
        },
    }
}

fn look(directory: &Path, now: SystemTime) -> io::Result<Spool> {
    let mut spool = Spool::default();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".refused") {
            spool.refused.push(name);
        } else if name.ends_with(".unstopped") {
            spool.unstopped.push(name);
        } else if name.ends_with(".json") {
            let written = match entry.metadata().and_then(|metadata| metadata.modified()) {
                // It has just been delivered.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                written => written?,
            };
            spool.waiting += 1;
            spool.oldest = spool
                .oldest
                .max(now.duration_since(written).unwrap_or_default());
        }
    }
    spool.refused.sort();
    spool.unstopped.sort();
    Ok(spool)
}

fn judge(directory: &Path, spool: &Spool) -> Check {
    let directory = directory.display();
    let waiting = match spool.waiting {
        0 => "no report waits".to_owned(),
        1 => format!("1 report has waited for {}", age(spool.oldest)),
        more => format!("{more} reports wait, the oldest for {}", age(spool.oldest)),
    };
    let (mut lost, mut fixes) = (Vec::new(), Vec::new());
    if !spool.refused.is_empty() {
        lost.push(format!(
            "the service has refused {} for good",
            listed(&spool.refused, NAMED)
        ));
        fixes.push("the service's log says why: after the cure rename what was refused to .json, or remove it");
    }
    if !spool.unstopped.is_empty() {
        lost.push(format!(
            "commands of the site's have not stopped: {}",
            listed(&spool.unstopped, NAMED)
        ));
        fixes.push("see in the .unstopped files what was started, end it, and remove the files");
    }
    if !lost.is_empty() {
        let lost = lost.join("; ");
        let detail = format!("{directory}: {lost}; {waiting}");
        return Check::failed(NAME, detail, fixes.join("; "));
    }
    if spool.oldest > PATIENCE {
        return Check::warning(
            NAME,
            format!("{directory}: {waiting}"),
            "`systemctl enable --now io-autotune-flush.timer` delivers every minute; `io-autotune-node flush` says \
             what is in the way",
        );
    }
    Check::ok(NAME, format!("{directory}: {waiting}"))
}

/// The duration in its largest unit, rounded down.
pub(super) fn age(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    #[test]
    fn a_spool_is_looked_through() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(check(&path.join("none")), None);
        assert_eq!(check(path).unwrap().state, CheckState::Ok);
        for name in ["c.2.0.n1.refused", "c.1.0.n1.refused", "c.3.0.n1.json"] {
            std::fs::write(path.join(name), "{}").unwrap();
        }
        let written = path.join("c.3.0.n1.json").metadata().unwrap().modified();
        let later = written.unwrap() + Duration::from_secs(7300);
        let spool = look(path, later).unwrap();
        assert_eq!((spool.waiting, spool.oldest.as_secs()), (1, 7300));
        assert_eq!(spool.refused, ["c.1.0.n1.refused", "c.2.0.n1.refused"]);
        let check = judge(path, &spool);
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.detail.contains("c.2.0.n1.refused for good"));
        assert!(check.detail.contains("1 report has waited for 2 h"));
        assert!(super::check(&path.join("c.3.0.n1.json")).is_some());
        std::fs::write(path.join("c.n1.7.99.unstopped"), "{}").unwrap();
        let check = judge(path, &look(path, later).unwrap());
        assert!(check.detail.contains("not stopped: c.n1.7.99.unstopped"));
    }

    #[test]
    fn a_report_on_its_way_is_no_problem_and_one_that_is_stuck_is() {
        let spool = |seconds| Spool {
            waiting: 2,
            oldest: Duration::from_secs(seconds),
            ..Spool::default()
        };
        let judged = |seconds| judge(Path::new("/spool"), &spool(seconds));
        assert_eq!(judged(59).state, CheckState::Ok);
        let stuck = judged(600);
        assert_eq!(stuck.state, CheckState::Warning);
        assert!(
            stuck
                .detail
                .contains("2 reports wait, the oldest for 10 min")
        );
        assert!(stuck.fix.unwrap().contains("io-autotune-node flush"));
    }

    #[test]
    fn ages_are_short() {
        for (seconds, text) in [
            (5, "5 s"),
            (3600, "60 min"),
            (90_000, "25 h"),
            (172_800, "2 days"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
