use std::collections::BTreeMap;
use std::path::PathBuf;

use io_autotune_protocol::bounds::Bounded;
use io_autotune_protocol::{EpilogOutcome, FinishRequest};

use crate::agent::journal;
use crate::applied::applied;
use crate::clock::Clocks;
use crate::config::NodeConfig;
use crate::directory::{JobDirectory, Stamps, StartRecord};
use crate::files::DirectoryError;
use crate::job::{JobError, NodeJob};
use crate::output::say;
use crate::settings::Outcome;
use crate::spool::Spool;
use crate::user_files::Left;
use crate::{in_force, measures, stamp};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error("this run is not reported: {0}")]
    Job(#[from] JobError),
    #[error("this run is not reported: {0}")]
    Directory(#[from] DirectoryError),
}

/// A report that survives this process.
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    /// False if it is an earlier report of the launch, which waited already.
    pub(crate) is_new: bool,
}

/// Keeps the report where it survives this process, and then removes the job's directory.
pub(crate) fn keep(
    spool: &Spool,
    directory: Option<JobDirectory>,
    report: &FinishRequest,
) -> Result<Kept, DirectoryError> {
    // slurmd was killed in the epilog and runs it again, or its prolog ran twice and the directory
    // of the first run was found: the waiting report has more information.
    let knows_less = directory.as_ref().is_none_or(JobDirectory::is_taken);
    let earlier = spool.waits(&report.job).filter(|_| knows_less);
    let is_new = earlier.is_none();
    let path = match earlier {
        Some(path) => path,
        None => spool.add(report)?,
    };
    // A second report would change nothing.
    if let Some(Err(error)) = directory.map(JobDirectory::remove) {
        say(&error.to_string());
    }
    Ok(Kept { path, is_new })
}

/// The reason why a run without an answer does not count, if there is one. Such a job ran as
/// without the tuner, but only variables that an earlier answer named show whether its user had
/// settings of their own.
fn unwatched(start: &StartRecord) -> Option<String> {
    (start.answer.is_none() && start.unwatched).then(|| {
        "no answer has told this node yet which variables may be the user's own".to_owned()
    })
}

/// The reason why a run with more steps than a report has room for does not count: it is not known
/// what those steps were given.
fn unread(stamps: &Stamps) -> Option<String> {
    (stamps.left_out > 0).then(|| {
        format!(
            "it had {} steps on this node more than a report has room for",
            stamps.left_out
        )
    })
}

pub(crate) fn report(
    node_job: NodeJob,
    directory: Option<&JobDirectory>,
    config: &NodeConfig,
    changed: Option<String>,
    left: &Left,
) -> Result<FinishRequest, ReportError> {
    let unknown = |failure: String| StartRecord::without_answer(node_job.job.clone(), failure);
    let (start, stamps) = match directory {
        Some(directory) => {
            let start = directory.read_start().unwrap_or_else(|error| {
                unknown(format!("what the start left cannot be read: {error}"))
            });
            (start, directory.stamps()?)
        }
        None => (
            unknown("no prolog ran on this node".into()),
            Stamps::default(),
        ),
    };
    let left_out = unread(&stamps);
    let steps: Vec<_> = stamps
        .texts
        .into_iter()
        .filter_map(|(name, text)| {
            let refused = |error: &dyn std::fmt::Display| {
                say(&format!("the stamp {name:?} is not believed: {error}"));
            };
            let text = text.map_err(|error| refused(&error)).ok()?;
            stamp::parse(&text).map_err(|error| refused(&error)).ok()
        })
        .collect();
    let steps = stamp::steps(steps, Clocks::now());
    let mut measures = directory.map_or_else(BTreeMap::new, |directory| {
        let delivery = start.answer.as_ref().map(|answer| &answer.delivery);
        let mut measures = measures::of(directory, &steps);
        measures.extend(delivery.map_or_else(BTreeMap::new, |delivery| {
            measures::of_files(directory, delivery, &steps)
        }));
        measures.extend(measures::of_node(config, &start.job, start.moved_on_lustre));
        measures
    });
    measures.extend(measures::of_marks(&left.marks));
    let epilog = node_job.epilog.map(|outcome| EpilogOutcome {
        limit_seconds: start.limit_seconds,
        ..outcome
    });
    let unwatched = unwatched(&start);
    let online = directory.and_then(|directory| journal::read(&directory.file(journal::FILE)));
    let (in_force, obstacle) = match start.settings {
        Some(Outcome::InForce { values, .. }) => (values, changed),
        Some(Outcome::NotApplied { why }) => (BTreeMap::new(), Some(changed.unwrap_or(why))),
        None => (BTreeMap::new(), changed),
    };
    let answer = start.answer.as_ref();
    let values = in_force::parse(&String::from_utf8_lossy(&left.values));
    let observed = answer.map_or_else(Vec::new, |answer| {
        in_force::observed(&answer.delivery.read_back, &values)
    });
    let obstacle = obstacle.or_else(|| in_force::obstacle(&observed));
    let obstacle = obstacle.or(unwatched).or(left_out);
    Ok(FinishRequest {
        applied: applied(answer, obstacle, &steps),
        run_id: start.answer.map(|answer| answer.run_id),
        prolog_at: start.prolog_at,
        start_failure: start.failure,
        job: start.job,
        request: node_job.request,
        steps,
        in_force,
        observed,
        online,
        epilog,
        measures,
    }
    .fitted())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;
    use crate::files::read_limited;
    use crate::testing::{job, node_job, places};

    fn made(directory: Option<&JobDirectory>) -> FinishRequest {
        let config = NodeConfig::default();
        report(node_job(), directory, &config, None, &Default::default()).unwrap()
    }

    #[test]
    fn without_an_answer_ever_nobody_knows_whether_it_was_the_default() {
        let parent = tempfile::tempdir().unwrap();
        for unwatched in [true, false] {
            let directory = JobDirectory::create(&parent.path().join("run"), &job()).unwrap();
            let start = StartRecord {
                unwatched,
                ..StartRecord::without_answer(job(), "the service is down")
            };
            directory.write_start(&start).unwrap();
            let report = made(Some(&directory));
            assert_eq!(
                report.applied == io_autotune_protocol::Applied::Default,
                !unwatched,
                "{report:?}"
            );
        }
    }

    /// Attack (files): A job has 1,200 steps with 64 long names of variables each.
    /// Outcome: The report stays below 8 MiB and says that there was more.
    #[test]
    fn however_many_steps_a_job_makes_its_report_has_room_in_the_spool() {
        let parent = tempfile::tempdir().unwrap();
        let directory = JobDirectory::create(&parent.path().join("run"), &job()).unwrap();
        let variables: String = (0..64)
            .map(|number| format!("variable {}{number} absent\n", "V".repeat(60)))
            .collect();
        for step in 0..1200 {
            let stamp = format!(
                "io-autotune-stamp 1\nstep {step}\nstart_ns 1\nend_ns 9\nwait_status 0\n{variables}"
            );
            fs::write(directory.file(&format!("step-{step}.stamp")), stamp).unwrap();
        }
        let report = made(Some(&directory));
        let length = serde_json::to_vec(&report).unwrap().len();
        assert!(length < 8 * 1024 * 1024, "{length}");
        let applied = format!("{:?}", report.applied);
        assert!(
            applied.contains("more than a report has room for"),
            "{applied}"
        );
    }

    #[test]
    fn a_second_epilog_leaves_the_report_of_the_first() {
        let parent = tempfile::tempdir().unwrap();
        let places = places(parent.path());
        let spool = Spool::of(&places);
        let kept = |directory| {
            let kept = keep(&spool, directory, &made(None)).unwrap();
            (kept.path, kept.is_new)
        };
        let (first, is_new) = kept(None);
        assert!(is_new);
        fs::write(&first, "the first").unwrap();
        assert_eq!(kept(None), (first.clone(), false));
        assert_eq!(read_limited(&first).unwrap(), "the first");

        // Unless a launch has left its directory: then it is another one.
        let directory = JobDirectory::create(&places.run_dir, &job()).unwrap();
        assert_eq!(kept(Some(directory)), (first.clone(), true));
        assert_ne!(read_limited(&first).unwrap(), "the first");
        assert!(
            JobDirectory::open(&places.run_dir, &job())
                .unwrap()
                .is_none()
        );
    }

    /// A way to make a spool unusable.
    type Spoil = fn(&Path);

    /// Promise: a report is lost
    #[test]
    fn a_spool_that_cannot_be_used_is_a_full_one() {
        let spoilt: [(&str, Spoil); 5] = [
            ("others can write it", |spool| {
                fs::create_dir(spool).unwrap();
                fs::set_permissions(spool, Permissions::from_mode(0o777)).unwrap();
            }),
            ("a file", |spool| fs::write(spool, "").unwrap()),
            ("a link", |spool| symlink("/tmp", spool).unwrap()),
            ("a dangling link", |spool| {
                symlink("/nowhere", spool).unwrap()
            }),
            ("no room", |spool| {
                // There is a directory in the place of the report.
                let name = "c.7.0.n1.json";
                fs::create_dir_all(spool.join(name).join("x")).unwrap();
            }),
        ];
        for (what, spoil) in spoilt {
            let parent = tempfile::tempdir().unwrap();
            let places = places(parent.path());
            spoil(&places.spool_dir);
            let spool = Spool::of(&places);
            let directory = JobDirectory::create(&places.run_dir, &job()).unwrap();
            let path = keep(&spool, Some(directory), &made(None)).unwrap().path;
            assert!(path.starts_with(&places.run_dir), "{what}");
            assert!(spool.waiting().contains(&path), "{what}");
            assert!(
                JobDirectory::open(&places.run_dir, &job())
                    .unwrap()
                    .is_none(),
                "{what}"
            );
            // Nor does the next launch of the job remove it.
            JobDirectory::create(&places.run_dir, &job()).unwrap();
            assert!(path.is_file(), "{what}");
            assert_eq!(
                keep(&spool, None, &made(None)).unwrap().path,
                path,
                "{what}"
            );
        }
    }

    #[test]
    fn a_launch_whose_report_can_be_kept_nowhere_keeps_its_directory() {
        let parent = tempfile::tempdir().unwrap();
        let places = places(parent.path());
        fs::write(&places.spool_dir, "").unwrap();
        let directory = JobDirectory::create(&places.run_dir, &job()).unwrap();
        fs::write(places.run_dir.join(".reports"), "").unwrap();
        let spool = Spool::of(&places);
        assert!(keep(&spool, Some(directory), &made(None)).is_err());
        assert!(
            JobDirectory::open(&places.run_dir, &job())
                .unwrap()
                .is_some()
        );
    }
}
