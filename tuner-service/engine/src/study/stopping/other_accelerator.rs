//! The choice of an accelerator that can matter instead of the site's default one, which cannot.

use io_autotune_model::{Candidate, Choice, Chosen, Measure, UsedIf};

use crate::study::stopping::settings::Stop;
use io_autotune_search::math::Portable;

/// The first candidate that can matter, judged by the measures of runs of the default, all of which
/// must have been measured. Bytes that storage is asked for count as in
/// [`LittleIo`](super::settings::LittleIo), at its slowest, with the share that it has by default
/// if that rule is off.
pub fn chosen(choice: &Choice, stop: &Stop) -> Chosen {
    let mut considered = Vec::new();
    let mut instead = None;
    for candidate in &choice.candidates {
        let looked = look(choice, candidate, stop);
        let can_matter = looked.is_ok();
        let why = looked.unwrap_or_else(|why_not| why_not);
        considered.push((candidate.name.clone(), why));
        if can_matter {
            instead = Some(candidate.name.clone());
            break;
        }
    }
    Chosen {
        instead,
        default: choice.default.clone(),
        unread: choice.unread,
        considered,
    }
}

/// Describes why an accelerator can matter to a job (`Ok`), or why it cannot (`Err`).
fn look(choice: &Choice, candidate: &Candidate, stop: &Stop) -> Result<String, String> {
    let Some(used_if) = candidate.used_if else {
        return Err("no measure shows whether jobs use it".to_owned());
    };
    let measured = choice.measures.get(Measure::Steps.as_str());
    if choice.runs == 0 || measured.is_none_or(|steps| steps.count < choice.runs) {
        return Err("not every run was measured".to_owned());
    }
    // The number of a typical run. Runs in which it was zero do not make it larger.
    let of = |measure: Measure| {
        let known = choice.measures.get(measure.as_str());
        known
            .filter(|known| 2 * known.count > choice.runs)
            .map_or(0.0, |known| known.mean.exponential())
    };
    let everywhere = f64::from(choice.nodes.max(1));
    if candidate.changes_nodes && of(Measure::ChangeableNodes) < everywhere - 0.5 {
        return Err(
            "it changes nodes, which these jobs share, or which do not allow it".to_owned(),
        );
    }
    let (written, moved) = (
        of(Measure::StorageWritten),
        of(Measure::StorageRead) + of(Measure::StorageWritten),
    );
    // For network file systems the storage's numbers may be zero.
    let asked = moved.max(of(Measure::AskedRead) + of(Measure::AskedWritten));
    let (bytes, does, mounted) = match used_if {
        UsedIf::Writes => (written, "writes", None),
        UsedIf::ReadsOrWrites => (moved, "reads and writes", None),
        UsedIf::Lustre => (
            of(Measure::LustreMoved),
            "reads and writes on Lustre",
            Some((Measure::LustreMounts, "Lustre")),
        ),
        UsedIf::Fuse => (
            asked,
            "reads and writes",
            Some((Measure::FuseMounts, "FUSE")),
        ),
    };
    if let Some((mounts, kind)) = mounted
        && of(mounts) < 0.5
    {
        return Err(format!("no {kind} file system is mounted on its nodes"));
    }
    let share = match stop.little_io.share > 0.0 {
        true => stop.little_io.share,
        false => Stop::default().little_io.share,
    };
    let slowest = bytes / (stop.little_io.mb_per_second * 1e6);
    let what = format!(
        "a run {does} {:.1} MB in {:.1} s",
        bytes / 1e6,
        choice.elapsed
    );
    match slowest >= share * choice.elapsed {
        true => Ok(what),
        false => Err(what),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::Moments;

    use super::*;

    fn candidate(name: &str, used_if: Option<UsedIf>, changes_nodes: bool) -> Candidate {
        Candidate {
            name: name.to_owned(),
            used_if,
            changes_nodes,
        }
    }

    /// The choice after four runs of 10 s with these measures, in which nothing read ROMIO's
    /// settings.
    fn choice(measures: &[(Measure, f64)], candidates: Vec<Candidate>) -> Choice {
        let mut known: BTreeMap<String, Moments> = BTreeMap::new();
        for _ in 0..4 {
            for (measure, value) in measures {
                let moments = known.entry(measure.as_str().to_owned()).or_default();
                moments.push(value.logarithm()).unwrap();
            }
        }
        Choice {
            default: "romio".to_owned(),
            unread: 4,
            candidates,
            nodes: 1,
            epoch_id: 7,
            runs: 4,
            elapsed: 10.0,
            measures: known,
        }
    }

    fn told(measures: &[(Measure, f64)], candidates: Vec<Candidate>) -> (Option<String>, String) {
        let chosen = chosen(&choice(measures, candidates), &Stop::default());
        (chosen.instead.clone(), chosen.to_string())
    }

    const WRITING: [(Measure, f64); 3] = [
        (Measure::Steps, 1.0),
        (Measure::StorageWritten, 4e7),
        (Measure::ChangeableNodes, 1.0),
    ];

    fn cache() -> Candidate {
        candidate("page-cache", Some(UsedIf::Writes), true)
    }

    #[test]
    fn who_writes_gets_the_page_cache() {
        let (instead, why) = told(&WRITING, vec![cache()]);
        assert_eq!(instead.as_deref(), Some("page-cache"));
        assert_eq!(
            why,
            "page-cache, because a run writes 40.0 MB in 10.0 s, and romio cannot matter: \
             in 4 runs nothing read its settings"
        );
        let (none, why) = told(
            &[
                (Measure::Steps, 1.0),
                (Measure::ChangeableNodes, 1.0),
                (Measure::StorageWritten, 2e6),
            ],
            vec![cache()],
        );
        assert_eq!(none, None);
        assert_eq!(
            why,
            "romio cannot matter; nor can page-cache: a run writes 2.0 MB in 10.0 s"
        );
    }

    #[test]
    fn the_first_that_can_matter_is_taken() {
        let queue = candidate("block-queue", Some(UsedIf::ReadsOrWrites), true);
        let lustre = candidate("lustre-client", Some(UsedIf::Lustre), true);
        let unknown = candidate("scr", None, false);
        let (instead, why) = told(
            &WRITING,
            vec![unknown, lustre.clone(), queue.clone(), cache()],
        );
        assert_eq!(instead.as_deref(), Some("block-queue"), "{why}");
        assert_eq!(
            told(&WRITING, vec![cache(), queue]).0.as_deref(),
            Some("page-cache")
        );
        let mounted = [&WRITING[..], &[(Measure::LustreMounts, 2.0)]].concat();
        let (elsewhere, _) = told(&mounted, vec![lustre.clone(), cache()]);
        assert_eq!(
            elsewhere.as_deref(),
            Some("page-cache"),
            "nothing went there"
        );
        let moved = [&mounted[..], &[(Measure::LustreMoved, 4e7)]].concat();
        let (instead, _) = told(&moved, vec![lustre.clone(), cache()]);
        assert_eq!(instead.as_deref(), Some("lustre-client"));
        let (none, why) = told(&WRITING, vec![lustre]);
        assert_eq!(none, None);
        assert!(why.contains("no Lustre file system is mounted"), "{why}");
    }

    #[test]
    fn nodes_that_may_not_be_changed_and_runs_that_were_not_measured_choose_nothing() {
        let shared = told(&WRITING[..2], vec![cache()]);
        assert_eq!(shared.0, None);
        assert!(shared.1.contains("it changes nodes"), "{}", shared.1);
        let mut two_nodes = choice(&WRITING, vec![cache()]);
        two_nodes.nodes = 2;
        assert_eq!(
            chosen(&two_nodes, &Stop::default()).instead,
            None,
            "one of two"
        );
        let (unmeasured, why) = told(&WRITING[1..], vec![cache()]);
        assert_eq!(unmeasured, None);
        assert!(why.contains("not every run was measured"), "{why}");
    }
}
