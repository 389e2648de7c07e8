//! `io-autotune campaign`: a user's own job, submitted again and again, each time with what its study
//! wants to know next.
//!
//! Slurm and the service know how the jobs are. They are asked at an interval, so nothing is lost
//! while nobody asks.

mod course;
mod kept;
mod render;
mod submission;

use std::collections::BTreeSet;
use std::time::Duration;

use io_autotune_console as console;
use io_autotune_protocol::{ClientError, RunState, StudySummary, shown_lines};
use nix::unistd::Uid;

use self::course::{End, HOUR, Job, Limits, Step};
use self::kept::{Agreed, Begun, JobName, Kept};
use self::submission::{Named, Submission};
use crate::arguments::campaign::{Campaign, hours};
use crate::arguments::{StudiesOf, campaign};
use crate::screen::Screen;
use crate::service::{CliError, RunsOf, Service};
use crate::signals::Signals;
use crate::{Answer, question, rules, say};

/// The time between two looks at an sbatch that runs.
const OF_SBATCH: Duration = Duration::from_millis(50);
/// The looks at a job that is over until the service is believed to have no run of it: a node may
/// report a little later.
const LOOKS: u32 = 3;
/// The runs of before by which the time of the next ones is estimated.
const OF_BEFORE: u32 = 10;

/// Does what the command line asks for, until the campaign ends or the user ends the watching.
pub(crate) async fn run(asked: &Campaign, service: &Service) -> Result<Answer, CliError> {
    let submission = Submission::of(&asked.words, service.cluster())?;
    let usual = usual(&submission, service).await?;
    let begun = Begun {
        format: kept::FORMAT,
        directory: std::env::current_dir()?,
        words: asked.words.clone(),
        cluster: service.cluster().map(str::to_owned),
    };
    let mut kept = Kept::open(&name(asked, &submission)?, &begun)?;
    let agreed = agreed(asked, &submission, &kept, usual)?;
    kept.agree(agreed)?;
    let jobs = kept.jobs.iter().map(|name| Job {
        job_id: name.job_id,
        is_old: true,
        ..Job::default()
    });
    let mut watched = Watched {
        service,
        limits: Limits {
            runs: agreed.runs,
            node_seconds: agreed.node_hours * HOUR,
            at_once: asked.at_once,
        },
        jobs: jobs.collect(),
        kept,
        submission,
        usual,
        study: None,
        unseen: Vec::new(),
        said: BTreeSet::new(),
        signals: Signals::taken()?,
    };
    let end = watched.until_end(asked.every).await?;
    let text = render::ended(end, &watched.jobs, watched.limits, watched.study.as_ref());
    let text = shown_lines(&text);
    if end.is_done() {
        watched.kept.remove()?;
        return Ok(text.into());
    }
    Ok(Answer::from(text).good_if(false))
}

/// The campaign's name.
fn name(asked: &Campaign, submission: &Submission) -> Result<String, CliError> {
    let script = || campaign::name(submission.script.as_deref()?).ok();
    asked.name.clone().or_else(script).ok_or_else(|| {
        CliError::Usage(
            "the campaign has no name: none of sbatch's words is a script whose name could be its own; give it one by --name".to_owned(),
        )
    })
}

/// The node-seconds of a run of the same application, by its latest ones; 0 if none is known. Returns
/// an error if the job would only be observed.
async fn usual(submission: &Submission, service: &Service) -> Result<f64, CliError> {
    let application = match submission.named() {
        Named::Application(name) => name.to_owned(),
        Named::Job(job_name) => {
            let rules = rules::of_site(&service.rules().await?)?;
            let named = rules.named(Some(job_name), None);
            match named.application.filter(|_| !named.meaningless) {
                Some(application) => application.name().to_owned(),
                None => {
                    return Err(CliError::Usage(format!(
                        "{job_name} says nothing of its program, so its jobs would only be observed: put --io-autotune=app=NAME in front of it"
                    )));
                }
            }
        }
        Named::Unknown => return Ok(0.0),
    };
    let wanted = RunsOf {
        of: StudiesOf {
            application: Some(application),
            user: Some(Uid::effective().as_raw()),
            ..StudiesOf::default()
        },
        state: Some(RunState::Counted),
        limit: OF_BEFORE,
        ..RunsOf::default()
    };
    let runs = service.runs(&wanted).await?;
    Ok(runs.iter().map(course::node_seconds).fold(0.0, f64::max))
}

/// What the user agrees to, who is asked unless that is agreed to already.
fn agreed(
    asked: &Campaign,
    submission: &Submission,
    kept: &Kept,
    usual: f64,
) -> Result<Agreed, CliError> {
    let agreed = |node_hours| Agreed {
        runs: asked.runs,
        node_hours,
    };
    let before = kept.agreed;
    let node_hours = asked.node_hours.or(before.map(|before| before.node_hours));
    if let (Some(node_hours), Some(before)) = (node_hours, before)
        && node_hours <= before.node_hours
        && asked.runs <= before.runs
    {
        return Ok(agreed(node_hours));
    }
    if let (Some(node_hours), true) = (node_hours, asked.yes) {
        return Ok(agreed(node_hours));
    }
    let what = render::question(submission, asked, kept.jobs.len(), usual);
    let typed = match node_hours {
        None => question::answer(&shown_lines(&format!(
            "{what}\nHow many node-hours may they take together? "
        )))?,
        Some(node_hours) => {
            let amount = render::node_hours(node_hours * HOUR);
            question::answer(&shown_lines(&format!(
                "{what}\nThey may take {amount} together. Submit them? [y/N] "
            )))?
        }
    };
    match (typed.as_deref(), node_hours) {
        (None, _) => Err(CliError::Usage(
            "nothing was submitted: nobody can be asked how much the campaign may take; add --node-hours HOURS and --yes".to_owned(),
        )),
        (Some(typed), Some(node_hours)) if question::is_yes(typed) => Ok(agreed(node_hours)),
        (Some(typed), None) if !typed.is_empty() => hours(typed).map(agreed).map_err(CliError::Usage),
        _ => Err(CliError::Usage("nothing was submitted".to_owned())),
    }
}

/// A campaign that is watched.
struct Watched<'a> {
    service: &'a Service,
    submission: Submission,
    kept: Kept,
    limits: Limits,
    usual: f64,
    jobs: Vec<Job>,
    /// The study of the run that was told last.
    study: Option<StudySummary>,
    /// A job for each look at which it was over, and the service had no run of it.
    unseen: Vec<u32>,
    /// The problems that were told. They are told once.
    said: BTreeSet<String>,
    signals: Signals,
}

impl Watched<'_> {
    async fn until_end(&mut self, every: Duration) -> Result<End, CliError> {
        if !self.jobs.is_empty() {
            self.look().await?;
        }
        loop {
            if self.signals.came() {
                return Err(self.interrupted());
            }
            let study = self.study.as_ref();
            match course::next(&self.jobs, study, self.limits, self.usual) {
                Step::Submit => self.submit()?,
                Step::End(end) => return Ok(end),
                Step::Wait => {
                    self.signals.wait(every);
                    if !self.signals.came() {
                        self.look().await?;
                    }
                }
            }
        }
    }

    /// Submits the next job. sbatch that still runs when the user ends the watching is left alone:
    /// its job belongs to the campaign all the same.
    fn submit(&mut self) -> Result<(), CliError> {
        let mut sbatch = self.submission.start(self.kept.for_sbatch()?)?;
        let (status, words) = loop {
            if let Some(ended) = sbatch.ended()? {
                break ended;
            }
            if self.signals.came() {
                return Err(self.interrupted());
            }
            self.signals.wait(OF_SBATCH);
        };
        let new = self.kept.submitted()?;
        if !status.success() || new == 0 {
            let words = match words.is_empty() {
                true => format!("it says nothing, and ends with {status}"),
                false => words,
            };
            return Err(CliError::Campaign(format!(
                "sbatch submits nothing, {} of {} runs are done: {words}",
                course::done(&self.jobs),
                self.limits.runs
            )));
        }
        self.problem(&words);
        for name in &self.kept.jobs[self.jobs.len()..] {
            self.jobs.push(Job {
                job_id: name.job_id,
                ..Job::default()
            });
            print(&render::submitted(&self.jobs, self.limits.runs))?;
        }
        Ok(())
    }

    /// Asks Slurm and the service how the open jobs are, and tells of those that are over.
    async fn look(&mut self) -> Result<(), CliError> {
        let places: Vec<usize> = (0..self.jobs.len())
            .filter(|place| !self.jobs[*place].is_over)
            .collect();
        let names: Vec<JobName> = places
            .iter()
            .map(|at| self.kept.jobs[*at].clone())
            .collect();
        let over = match submission::over(&names) {
            Ok(over) => over,
            Err(problem) => {
                self.problem(&problem);
                Vec::new()
            }
        };
        for (place, name) in places.into_iter().zip(names) {
            match self.service.explain(name.job_id).await {
                Ok(details) => self.take(place, &name, details),
                Err(CliError::Client(ClientError::Refused { status: 404, .. })) => {}
                // The job goes on without the service, and so does the campaign.
                Err(error) if error.status() == 3 => {
                    self.problem(&error.to_string());
                    continue;
                }
                Err(error) => return Err(error),
            }
            if let Some((_, state)) = over.iter().find(|(job_id, _)| *job_id == name.job_id) {
                self.is_over(place, state.as_deref())?;
            }
        }
        Ok(())
    }

    /// Takes what the service has of a job. A job of another cluster, or of before the numbers began
    /// anew, may have the same number.
    fn take(
        &mut self,
        place: usize,
        name: &JobName,
        details: Vec<io_autotune_protocol::RunDetail>,
    ) {
        let own = Uid::effective().as_raw();
        let is_of_cluster = |of: &String| name.cluster.as_ref().is_none_or(|one| one == of);
        let mut launches = Vec::new();
        for detail in details {
            if detail.run.uid == own && is_of_cluster(&detail.run.cluster) {
                launches.push(detail.run);
                self.study = detail.study.map(|study| *study).or(self.study.take());
            }
        }
        self.jobs[place].launches = launches;
    }

    /// Ends a job that Slurm says is over, once its run has a verdict or there is none.
    fn is_over(&mut self, place: usize, state: Option<&str>) -> Result<(), CliError> {
        let job = &self.jobs[place];
        match job.launches.last() {
            Some(run) if run.state == RunState::InFlight => return Ok(()),
            Some(_) => {}
            None => {
                self.unseen.push(job.job_id);
                let looks = self.unseen.iter().filter(|id| **id == job.job_id).count();
                // Of what was submitted before, nothing is waited for any more.
                if looks < LOOKS as usize && !job.is_old {
                    return Ok(());
                }
            }
        }
        self.jobs[place].is_over = true;
        let screen = Screen::of_stdout();
        let study = self.study.as_ref();
        let line = render::run(&self.jobs, place, state, self.limits.runs, study, &screen);
        print(&line)
    }

    fn interrupted(&mut self) -> CliError {
        // What sbatch has written since.
        let _ = self.kept.submitted();
        let over: BTreeSet<u32> = self
            .jobs
            .iter()
            .filter(|job| job.is_over)
            .map(|job| job.job_id)
            .collect();
        let ids = self.kept.jobs.iter().map(|job| job.job_id);
        let open: Vec<String> = ids
            .filter(|id| !over.contains(id))
            .map(|id| id.to_string())
            .collect();
        CliError::Campaign(render::interrupted(&open, over.len(), self.limits.runs))
    }

    /// Says a problem, or words of sbatch's, once.
    fn problem(&mut self, words: &str) {
        if !words.is_empty() && self.said.insert(words.to_owned()) {
            say(words);
        }
    }
}

fn print(text: &str) -> Result<(), CliError> {
    console::print(&shown_lines(text)).map_err(|lost| CliError::Campaign(lost.to_string()))
}
