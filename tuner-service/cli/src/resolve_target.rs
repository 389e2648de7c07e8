//! The meaning of a word, decided by what exists: if it fits two things, neither is preferred.

use io_autotune_protocol::StudySummary;

use crate::arguments::{StudiesAsked, StudiesOf};
use crate::service::{CliError, Service};
use crate::slurm;
use crate::targets::{Ambiguity, Job, Named, Reading, Target, Thing};

/// One of two things to compare.
#[derive(Debug)]
pub(crate) enum Compared {
    Job(u32),
    Study(i64),
}

impl Service {
    /// The study or application that a target names. A number that fits nothing is taken for a
    /// study's.
    pub(crate) async fn named(&self, target: &Target) -> Result<Named, CliError> {
        let (study, name) = match target {
            Target::Study(study) => return Ok(Named::Study(*study)),
            Target::Application(name) => return Ok(Named::Application(name.clone())),
            Target::Number { study, name } => (*study, name),
        };
        let readings = self.readings(study, name).await?;
        match readings.as_slice() {
            [] => Ok(Named::Study(study)),
            [(named, _)] => Ok(named.clone()),
            _ => Err(ambiguous(name, readings.into_iter().map(|(_, one)| one))),
        }
    }

    /// The study and the application that digits alone may name.
    async fn readings(&self, study: i64, name: &str) -> Result<Vec<(Named, Reading)>, CliError> {
        let mut readings = Vec::new();
        if let Some(StudySummary { application, .. }) = self.study_of_number(study).await? {
            readings.push((Named::Study(study), Reading::study(study, &application)));
        }
        let named = Named::Application(name.to_owned());
        if !self.studies(&StudiesOf::named(&named)).await?.is_empty() {
            readings.push((named, Reading::application(name)));
        }
        Ok(readings)
    }

    /// The one study that a target names.
    pub(crate) async fn resolve(&self, target: &Target) -> Result<i64, CliError> {
        let name = match self.named(target).await? {
            Named::Study(study) => return Ok(study),
            Named::Application(name) => name,
        };
        let named = Named::Application(name.clone());
        let studies = self.studies(&StudiesOf::named(&named)).await?;
        match studies.as_slice() {
            [] => Err(self.no_study(&name).await),
            [one] => Ok(one.study_id),
            several => Err(CliError::SeveralStudies {
                name,
                numbers: several
                    .iter()
                    .map(|study| format!("study:{}", study.study_id))
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// The selection of studies on the command line.
    pub(crate) async fn wanted(&self, asked: &StudiesAsked) -> Result<StudiesOf, CliError> {
        let named = match &asked.target {
            Some(target) => Some(self.named(target).await?),
            None => None,
        };
        let (study, application) = match (named, asked.study) {
            (Some(Named::Study(one)), Some(other)) if one != other => {
                return Err(CliError::Usage(format!(
                    "study {one} and study {other}: name one of them"
                )));
            }
            (Some(Named::Study(study)), _) => (Some(study), None),
            (Some(Named::Application(name)), study) => (study, Some(name)),
            (None, study) => (study, None),
        };
        Ok(StudiesOf {
            application,
            study,
            accelerator: asked.accelerator.clone(),
            user: asked.user,
            account: asked.account.clone(),
        })
    }

    /// Slurm's own number of a job.
    pub(crate) fn job_id(&self, job: Job) -> Result<u32, CliError> {
        match job {
            Job::Id(id) => Ok(id),
            // A run belongs to all components, and the first one carries it.
            Job::Component { leader, .. } => Ok(leader),
            Job::Task { array, task } => slurm::id_of_task(array, task, self.cluster())
                .ok_or(CliError::UnknownTask { array, task }),
        }
    }

    /// The job or study of one side of a comparison.
    pub(crate) async fn compared(&self, thing: &Thing) -> Result<Compared, CliError> {
        let (word, job, target) = match thing {
            Thing::Job(job) => return Ok(Compared::Job(self.job_id(*job)?)),
            Thing::Target(target) => return Ok(Compared::Study(self.resolve(target).await?)),
            Thing::Either { word, job, target } => (word, *job, target),
        };
        let others = match target {
            Target::Number { study, name } => self.readings(*study, name).await?,
            Target::Application(name) => {
                let named = Named::Application(name.clone());
                match self.studies(&StudiesOf::named(&named)).await?.is_empty() {
                    true => Vec::new(),
                    false => vec![(named, Reading::application(name))],
                }
            }
            Target::Study(_) => Vec::new(),
        };
        let job_id = self.job_id(job);
        if others.is_empty() {
            return Ok(Compared::Job(job_id?));
        }
        let is_job = match job_id {
            Ok(job_id) => self.has_run(job_id).await?,
            Err(_) => false,
        };
        let mut readings: Vec<Reading> = others.into_iter().map(|(_, one)| one).collect();
        if is_job {
            readings.push(Reading::job(job));
        }
        match readings.len() {
            1 => Ok(Compared::Study(self.resolve(target).await?)),
            _ => Err(ambiguous(word, readings.into_iter())),
        }
    }
}

fn ambiguous(word: &str, readings: impl Iterator<Item = Reading>) -> CliError {
    CliError::Ambiguous(Ambiguity {
        word: word.to_owned(),
        readings: readings.collect(),
    })
}
