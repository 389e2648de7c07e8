use crate::agent::journal;
use crate::config::{NodeConfig, NodeConfigError};
use crate::directory::JobDirectory;
use crate::job::{self, NodeJob};
use crate::output::say;
use crate::places::Places;
use crate::service_arguments::ServiceArguments;
use crate::settings::{self, Outcome};
use crate::written;

/// Restores all changes: a job that changes settings has the node to itself, so at another's hook
/// nothing needs to stay.
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
            settings::restore(Some((&cluster, &node)), config, &places.spool_dir);
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
        if let Err(error) = written::forget_all(&places.spool_dir) {
            say(&format!("what jobs have told is not removed: {error}"));
        }
        let config = config?;
        settings::restore(None, &config, &places.spool_dir);
        settings::forget_commands(&config, &places.spool_dir);
    } else {
        put_back(&config, places);
    }
    Ok(())
}

/// Ends the agent that moves settings while a job runs. Why the job did not have its settings until
/// its end, or had some of them by a killed helper.
pub(crate) fn changed_meanwhile(
    node_job: &NodeJob,
    places: &Places,
    config: &NodeConfig,
) -> Option<String> {
    let ended = settings::end_agent(&node_job.job, &places.spool_dir);
    let directory = JobDirectory::open(&places.run_dir, &node_job.job)
        .ok()
        .flatten();
    let left = directory
        .as_ref()
        .and_then(|directory| journal::read(&directory.file(journal::FILE)))
        .and_then(|record| Some(record.entries.last()?.values.clone()));
    let start = directory.and_then(|directory| directory.read_start().ok());
    let given = start.as_ref().and_then(|start| start.settings.as_ref());
    match (given, &start) {
        (Some(Outcome::InForce { values, levers, .. }), Some(start)) => ended.or_else(|| {
            if !levers.is_empty()
                && !settings::is_anything_changed(&node_job.job, &places.spool_dir)
            {
                return Some("its levers were put back before it ended".to_owned());
            }
            let settings = &start.answer.as_ref()?.delivery.settings;
            settings::changed_meanwhile(values, (levers, left.as_deref()), settings, config)
        }),
        _ => settings::is_anything_changed(&node_job.job, &places.spool_dir).then(|| {
            "the node helper was killed while it changed settings: some of them were in force"
                .to_owned()
        }),
    }
}
