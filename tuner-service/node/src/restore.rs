use io_autotune_protocol::Job;

use crate::agent::journal;
use crate::config::{NodeConfig, NodeConfigError};
use crate::directory::JobDirectory;
use crate::job;
use crate::output::say;
use crate::places::Places;
use crate::service_arguments::ServiceArguments;
use crate::settings::{self, Outcome};
use crate::user_files;

/// Restores all changes on this node: a job that changes settings has the node to itself, so
/// nothing of it is needed when another job's hook runs.
pub(crate) fn put_back(config: &Result<NodeConfig, NodeConfigError>, places: &Places) {
    let unset;
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            say(&format!(
                "{error}; saved settings are put back where the kernel has them by default"
            ));
            unset = NodeConfig::default();
            &unset
        }
    };
    match job::node(|name| std::env::var(name).ok()) {
        Ok((cluster, node)) => {
            settings::restore(
                Some((&cluster, &node)),
                config,
                &places.spool_dir,
                &note(places),
            );
        }
        Err(error) => say(&format!("settings are not put back: {error}")),
    }
}

pub(crate) fn restore(
    service: &ServiceArguments,
    places: &Places,
    all: bool,
) -> Result<(), NodeConfigError> {
    let config = service.node_config();
    if all {
        if let Err(error) = user_files::forget_all(&places.spool_dir) {
            say(&format!("what jobs have told is not removed: {error}"));
        }
        let config = config?;
        settings::restore(None, &config, &places.spool_dir, &note(places));
        settings::forget_commands(&config, &places.spool_dir);
    } else {
        put_back(&config, places);
    }
    Ok(())
}

/// The note that a hook writes in a job's directory before it puts back the settings saved for that
/// job: unless the job's own end came first, the settings were not in force until its end.
fn note(places: &Places) -> impl Fn((&str, &str), u32) {
    |(cluster, node), job_id| {
        let why = "its settings were put back before it ended";
        let noted = JobDirectory::of_node(&places.run_dir, (cluster, node), job_id)
            .and_then(|found| found.map_or(Ok(()), |found| found.note_put_back(Some(why))));
        if let Err(error) = noted {
            say(&format!(
                "{error}: that the settings of job {job_id} are put back is not noted"
            ));
        }
    }
}

/// The reason why a launch whose settings another job's prolog has put back did not have them until
/// its end, as far as it was noted.
pub(crate) fn noted(directory: &JobDirectory) -> Option<String> {
    if let Some(noted) = directory.put_back() {
        return noted.changed;
    }
    let start = directory.read_start().ok()?;
    // Nothing is saved for it any more: it had no settings, or it is not known until when it had
    // them.
    let had_settings = matches!(start.settings, Some(Outcome::InForce { .. }));
    had_settings.then(|| "until when its settings were in force is not known".to_owned())
}

/// Ends the agent that moves settings while a job runs. Returns the reason why the job did not have
/// its settings until its end, or had some of them from a killed helper; none if it had them.
///
/// The answer is noted in the job's directory before it is returned, because once the settings are
/// put back it cannot be found again.
pub(crate) fn changed_meanwhile(
    job: &Job,
    directory: Option<&JobDirectory>,
    places: &Places,
    config: &NodeConfig,
) -> Option<String> {
    let ended = settings::end_agent(job, &places.spool_dir);
    if let Some(noted) = directory.and_then(JobDirectory::put_back) {
        return noted.changed;
    }
    let start = directory.and_then(|directory| directory.read_start().ok());
    let is_saved = settings::is_anything_changed(job, &places.spool_dir);
    let is_untouched = start
        .as_ref()
        .is_some_and(|start| start.is_complete && start.settings.is_none());
    // Changes of an earlier launch that could not be put back are in force in this one too.
    if is_untouched && !is_saved {
        return None;
    }
    let given = start.as_ref().and_then(|start| start.settings.as_ref());
    let changed = match (given, &start) {
        (Some(Outcome::InForce { values, levers, .. }), Some(start)) => ended.or_else(|| {
            if !levers.is_empty() && !is_saved {
                return Some("its levers were put back before it ended".to_owned());
            }
            let left = directory
                .and_then(|directory| journal::read(&directory.file(journal::FILE)))
                .and_then(|record| Some(record.entries.last()?.values.clone()));
            let delivery = &start.answer.as_ref()?.delivery;
            settings::changed_meanwhile(values, (levers, left.as_deref()), delivery, config)
        }),
        _ => is_saved.then(|| {
            "the node helper was killed while it changed settings: some of them were in force"
                .to_owned()
        }),
    };
    if (is_saved || given.is_some())
        && let Some(directory) = directory
        && let Err(error) = directory.note_put_back(changed.as_deref())
    {
        say(&format!(
            "{error}: what became of the settings is not noted"
        ));
    }
    changed
}
