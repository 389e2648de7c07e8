//! The lines of `io-autotune campaign`.

use io_autotune_protocol::{RunState, StudySummary};

use super::course::{End, HOUR, IN_VAIN, Job, Limits, done, expected_end, spent};
use super::submission::Submission;
use crate::arguments::campaign::Campaign;
use crate::render::units::{grouped, seconds};
use crate::render::{differing, gain, plain, status};
use crate::screen::Screen;

/// An amount of node-hours, for a comparison with what was agreed to.
pub(crate) fn node_hours(node_seconds: f64) -> String {
    let hours = node_seconds / HOUR;
    match hours {
        few if few > 0.0 && few < 0.1 => format!("{few:.3} node-hours"),
        many if many >= 10.0 => format!("{} node-hours", grouped(&format!("{many:.0}"))),
        hours => format!("{hours:.1} node-hours"),
    }
}

/// What is submitted, and what that may take.
pub(crate) fn question(
    submission: &Submission,
    asked: &Campaign,
    before: usize,
    usual: f64,
) -> String {
    let done = match before {
        0 => String::new(),
        before => format!(" ({before} of them are submitted already)"),
    };
    let at_once = match asked.at_once {
        1 => "one at a time".to_owned(),
        several => format!("{several} at once"),
    };
    let usual = match usual > 0.0 {
        true => format!(
            "The longest of the latest runs of this application took {}, so all take about {}.",
            node_hours(usual),
            node_hours(usual * f64::from(asked.runs))
        ),
        false => "No run of this application is known yet: the first one says how long they take."
            .to_owned(),
    };
    format!(
        "{} runs{done}, {at_once}: {}\n{usual}",
        asked.runs,
        submission.line()
    )
}

/// A job was submitted: the last one.
pub(crate) fn submitted(jobs: &[Job], runs: u32) -> String {
    let job_id = jobs.last().map_or(0, |job| job.job_id);
    format!("run {} of {runs}: job {job_id} is submitted\n", jobs.len())
}

/// A job is over: what it ran with, the best so far, and when the last one should be.
pub(crate) fn run(
    jobs: &[Job],
    place: usize,
    state: Option<&str>,
    runs: u32,
    study: Option<&StudySummary>,
    screen: &Screen,
) -> String {
    let job = &jobs[place];
    let done = done(jobs);
    let beginning = format!("{done} of {runs}: job {}", job.job_id);
    let Some(run) = job.launches.last() else {
        let state = state.unwrap_or("a state that Slurm has forgotten");
        return format!("{beginning} ended in {state}, and the service has no run of it\n");
    };
    let elapsed = run
        .elapsed
        .map(|elapsed| format!(" took {} s", seconds(elapsed, None)));
    let elapsed = elapsed.unwrap_or_else(|| " has ended".to_owned());
    let role = run.role.map_or("", |role| plain::role(role, run.phase));
    let differs = run.differs.as_ref().filter(|differs| !differs.0.is_empty());
    let with = differs.map_or_else(|| role.to_owned(), |differs| format!("{role}, {differs}"));
    let counts = match run.state {
        RunState::NotCounted => {
            let why = run
                .verdict
                .as_deref()
                .unwrap_or("for a reason that is not told");
            format!("; it does not count: {}", plain::plain(why))
        }
        _ => String::new(),
    };
    let best = study.map_or_else(String::new, |study| {
        format!("; best so far {}", best(study))
    });
    let end = expected_end(jobs, runs, screen.now).filter(|_| done < runs as usize);
    let end = end.map_or_else(String::new, |end| {
        format!("; expected end {}", screen.short(end))
    });
    format!("{beginning}{elapsed} ({with}){counts}{best}{end}\n")
}

/// The best that is known, with the gain as lists have it, once there is one.
fn best(study: &StudySummary) -> String {
    let best = differing(&study.differs);
    match status::gain_in_short(study) {
        Some(gain) => format!("{best}, gain {gain}"),
        None => best,
    }
}

/// The campaign has ended.
pub(crate) fn ended(
    end: End,
    jobs: &[Job],
    limits: Limits,
    study: Option<&StudySummary>,
) -> String {
    let why = match end {
        End::Claimed => "a gain is claimed".to_owned(),
        End::NothingLeft => "nothing is left to win".to_owned(),
        End::Runs => "all runs are done".to_owned(),
        End::NodeHours => format!(
            "another run may take more than is left of {}: give it more by --node-hours, and the same command goes on",
            node_hours(limits.node_seconds)
        ),
        End::Ordered => "its runs are given what somebody ordered: `io-autotune status` says who, and how to end that".to_owned(),
        End::Observed => "its jobs are only observed: `io-autotune status` says why, and what to do".to_owned(),
        End::InVain => format!(
            "the last {IN_VAIN} runs do not count: mend the job, and the same command goes on"
        ),
        End::Unknown(job_id) => format!(
            "the service has no run of job {job_id}: was it cancelled before it began, and does `io-autotune doctor` find a fault? The same command goes on"
        ),
    };
    let counted = jobs.iter().filter(|job| job.counts()).count();
    let mut text = format!(
        "the campaign has ended after {} of {} runs ({counted} count), with {}: {why}\n",
        jobs.len(),
        limits.runs,
        node_hours(spent(jobs))
    );
    if let Some(study) = study {
        text.push_str(&format!(
            "gain         {}\nchosen       {}\nmore         io-autotune status study:{}\n",
            gain::of_study(study),
            status::chosen(study),
            study.study_id
        ));
    }
    text
}

/// The user has ended the watching.
pub(crate) fn interrupted(open: &[String], done: usize, runs: u32) -> String {
    let jobs = match open {
        [] => "no job of it is in Slurm".to_owned(),
        [one] => format!("job {one} goes on in Slurm"),
        several => format!("jobs {} go on in Slurm", several.join(", ")),
    };
    format!(
        "the watching has ended: {jobs}; {done} of {runs} runs are done. The same command, in the same directory, goes on with the campaign"
    )
}
