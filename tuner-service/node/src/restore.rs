use crate::config::{NodeConfig, NodeConfigError};
use crate::directory::JobDirectory;
use crate::job::{self, NodeJob};
use crate::settings::{self, Outcome};
use crate::{Places, ServiceArguments, in_force, say};

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
        if let Err(error) = in_force::forget_all(&places.spool_dir) {
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

/// Why the job did not have its settings until its end, or had some of them by a killed helper.
pub(crate) fn changed_meanwhile(
    node_job: &NodeJob,
    places: &Places,
    config: &NodeConfig,
) -> Option<String> {
    let directory = JobDirectory::open(&places.run_dir, &node_job.job)
        .ok()
        .flatten();
    let start = directory.and_then(|directory| directory.read_start().ok());
    let given = start.as_ref().and_then(|start| start.settings.as_ref());
    match (given, &start) {
        (Some(Outcome::InForce { values, .. }), Some(start)) => {
            let settings = &start.answer.as_ref()?.delivery.settings;
            settings::changed_meanwhile(values, settings, config)
        }
        _ => settings::is_anything_changed(&node_job.job, &places.spool_dir).then(|| {
            "the node helper was killed while it changed settings: some of them were in force"
                .to_owned()
        }),
    }
}
