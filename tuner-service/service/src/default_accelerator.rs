//! The accelerator of a job that names none: the site's default, unless that cannot matter to the
//! job and another of the site's can.

use std::sync::Arc;

use io_autotune_catalogue::{Accelerator, Catalogue, Need};
use io_autotune_engine::{
    Candidate, Choice, Chosen, Epoch, History, Settings, Space, Stopped, Tested, chosen,
};
use io_autotune_protocol::{Mode, Request};
use io_autotune_store::StudyState;

use crate::decide::restricted;

/// The accelerators of `[accelerators] otherwise` that the catalogue has now.
pub(crate) fn candidates(catalogue: &Catalogue, otherwise: &[String]) -> Vec<Candidate> {
    let known = otherwise
        .iter()
        .filter_map(|name| catalogue.find(name).ok());
    known.map(|accelerator| candidate(&accelerator)).collect()
}

fn candidate(accelerator: &Arc<Accelerator>) -> Candidate {
    let mut needs = accelerator.needs.iter();
    Candidate {
        name: accelerator.name.clone(),
        used_if: accelerator.used_if,
        changes_nodes: needs.any(|need| matches!(need, Need::Exclusive | Need::Root)),
    }
}

/// Returns true if the tuner may choose the accelerator of a job: the request names none, and the
/// job is to be tuned.
pub(crate) fn leaves_it_open(request: &Request) -> bool {
    request.accelerator.is_none()
        && request.mode == Mode::Tune
        && request.note.is_none()
        && request.app.is_some()
}

/// The choice that a study of the default accelerator leaves; none before its baseline is over,
/// while that accelerator can matter, or if the study is steered.
pub(crate) fn choice(
    state: &StudyState,
    default: &str,
    candidates: Vec<Candidate>,
    settings: &Settings,
    nodes: u32,
) -> Option<Choice> {
    let ordered = &state.ordered;
    if state.pin.is_some() || ordered.off || ordered.frozen || candidates.is_empty() {
        return None;
    }
    let restricted = restricted(state);
    let epoch = Epoch::restricted(&restricted, settings, state.seed);
    let (space, history) = (restricted.space(), restricted.history());
    let (tested, unread) = unread_baseline(&epoch, space, history)?;
    Some(Choice {
        default: default.to_owned(),
        unread,
        candidates,
        nodes,
        epoch_id: state.epoch_id,
        runs: tested.elapsed.count,
        elapsed: tested.elapsed_seconds(),
        measures: tested.measures.clone(),
    })
}

/// The runs of the default and their number, if the baseline is over and none of that many runs has
/// read what the accelerator provides. Where there is little I/O, no accelerator can matter, and
/// there is nothing to choose.
fn unread_baseline<'a>(
    epoch: &Epoch<'_>,
    space: &Space,
    history: &'a History,
) -> Option<(&'a Tested, u64)> {
    let default = space.default();
    let mut tested = history.tested.iter();
    let tested = tested.find(|tested| tested.parametrization == default)?;
    if tested.elapsed.count < u64::from(epoch.settings().baseline_runs) {
        return None;
    }
    match epoch.cannot_matter(history)? {
        Stopped::Unread { runs } => Some((tested, runs)),
        _ => None,
    }
}

/// The outlook for jobs that name no accelerator, in a study of the default one.
pub(crate) fn outlook(choice: &Choice, settings: &Settings) -> Chosen {
    chosen(choice, &settings.stop)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::Measure;

    use super::*;

    /// The number of runs of an unread baseline, `None` if it is not one. The default has `runs`
    /// runs of 2 s each, of which `read` have read their file.
    fn unread(runs: usize, read: usize, calls: f64) -> Option<u64> {
        let space: Space = serde_json::from_value(serde_json::json!([
            { "name": "size", "kind": "integer", "min": 1, "max": 8, "default": 1 }
        ]))
        .unwrap();
        let mut default = Tested::new(space.default(), 1);
        for run in 0..runs {
            default
                .record(i64::try_from(run).unwrap() + 1, 2.0)
                .unwrap();
            let measures = [
                (Measure::Steps, 1.0),
                (Measure::WriteCalls, calls),
                (Measure::DeliveredFiles, 1.0),
                (Measure::DeliveredFilesRead, f64::from(u8::from(run < read))),
            ];
            let measures = measures.map(|(measure, value)| (measure.as_str().to_owned(), value));
            default.record_measures(&BTreeMap::from(measures));
        }
        let mut history = History::default();
        history.tested.push(default);
        let settings = Settings::default();
        let epoch = Epoch::new(&space, &settings, 1);
        unread_baseline(&epoch, &space, &history).map(|(_, runs)| runs)
    }

    #[test]
    fn there_is_a_choice_once_the_default_accelerator_is_known_not_to_matter() {
        assert_eq!(unread(4, 0, 2000.0), Some(4));
        assert_eq!(unread(4, 1, 2000.0), None, "it is used");
        assert_eq!(unread(3, 0, 2000.0), None, "the baseline is not over");
        assert_eq!(unread(4, 0, 20.0), None, "there is hardly any I/O");
    }

    #[test]
    fn who_names_an_accelerator_or_is_observed_gets_no_other() {
        let open = |text: &str| leaves_it_open(&text.parse().unwrap());
        assert!(open("app=ocean"));
        for text in [
            "app=ocean,accelerator=romio",
            "app=ocean,mode=observe",
            "app=wrap,note=meaningless_name",
            "mode=tune",
        ] {
            assert!(!open(text), "{text}");
        }
    }
}
