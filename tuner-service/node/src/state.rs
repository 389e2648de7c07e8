//! The state that a node reports when it starts a run, for the service's `doctor`.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use io_autotune_protocol::{NodeState, plugin_line, plugstack_conf, slurm_conf};
use jiff::Timestamp;

use crate::places::Places;
use crate::spool::Spool;

/// The most files of the spool that are looked at, because a prolog waits for it.
const MOST: usize = 1000;

/// The most arguments of the plugin that are sent. The following is the most bytes of each.
const ARGUMENTS: usize = 16;
const ARGUMENT: usize = 512;

pub(crate) fn of(places: &Places, now: Timestamp) -> NodeState {
    let mut state = NodeState {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        told_at: now,
        plugin: plugin(),
        waiting: 0,
        oldest_seconds: 0,
        refused: 0,
        spool_problem: None,
    };
    let spool = Spool::of(places);
    let looked = spool.directories().into_iter().try_for_each(|directory| {
        look(&mut state, &directory, now.into())
            .map_err(|error| format!("{}: {error}", directory.display()))
    });
    let unusable = spool.usable().map_err(|error| error.to_string());
    state.spool_problem = unusable.and(looked).err();
    state
}

fn look(state: &mut NodeState, directory: &Path, now: SystemTime) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)?.take(MOST) {
        let entry = entry?;
        let path = entry.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("refused") => state.refused += 1,
            Some("json") => {
                // It may just have been delivered.
                let Ok(written) = entry.metadata().and_then(|found| found.modified()) else {
                    continue;
                };
                let age = now.duration_since(written).unwrap_or_default();
                state.waiting += 1;
                state.oldest_seconds = state.oldest_seconds.max(age.as_secs());
            }
            _ => {}
        }
    }
    Ok(())
}

fn plugin() -> Option<Vec<String>> {
    let line = plugin_line(&plugstack_conf(&slurm_conf()?))?;
    let arguments = line.arguments.into_iter().take(ARGUMENTS);
    let shortened = arguments.map(|argument| argument.chars().take(ARGUMENT).collect());
    Some(shortened.collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::places;

    #[test]
    fn what_waits_in_the_spool_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let places = places(directory.path());
        let spool = &places.spool_dir;
        let now = Timestamp::now() + Duration::from_secs(100);
        let told = of(&places, now);
        assert_eq!(
            (told.waiting, told.refused, told.spool_problem),
            (0, 0, None)
        );
        for name in ["a.json", "b.json", "c.refused", "d.new"] {
            std::fs::write(spool.join(name), "{}").unwrap();
        }
        let told = of(&places, now);
        assert_eq!((told.waiting, told.refused), (2, 1));
        assert!((99..110).contains(&told.oldest_seconds), "{told:?}");
    }

    #[test]
    fn a_spool_that_cannot_be_used_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let places = places(directory.path());
        std::fs::write(&places.spool_dir, "a file").unwrap();
        let told = of(&places, Timestamp::now());
        assert!(told.spool_problem.unwrap().contains("spool"));
    }
}
