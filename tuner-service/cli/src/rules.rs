//! `io-autotune rules`: the applications of job names, and the changes that other rules would make.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use io_autotune_catalogue::{Resolved, Rules, RulesError, RulesFileError};
use io_autotune_model::JobName;
use io_autotune_protocol::{ApplicationRules, JobNames, Mode, Request};
use serde::Serialize;

use crate::accelerators::refused;
use crate::service::CliError;

/// The result for one job's name.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Checked {
    pub(crate) job_name: String,
    pub(crate) comment: Option<String>,
    pub(crate) application: String,
    /// The application's full name, if its name does not have all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) full_name: Option<String>,
    /// True if its jobs are only observed, because the name does not name a program.
    pub(crate) observed: bool,
    /// The rule that decided; `None`: none matched.
    pub(crate) rule: Option<String>,
}

/// The changes that a file of rules would make.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Trial {
    pub(crate) changes: Vec<Change>,
    /// Runs whose history stays as it is.
    pub(crate) unchanged_runs: i64,
    /// True if there were more job names than the service returns at once.
    pub(crate) more: bool,
}

/// Runs of one history that would belong to another one, or share theirs with other runs.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    pub(crate) uid: u32,
    pub(crate) user: Option<String>,
    pub(crate) application: String,
    pub(crate) becomes: String,
    pub(crate) observed: bool,
    /// The rules that decided.
    pub(crate) rules: BTreeSet<String>,
    pub(crate) runs: i64,
    pub(crate) what: Vec<What>,
}

/// The kind of a change of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Renamed,
    Merged,
    Split,
}

/// Reads a file of rules. Returns an error with every fault, one a line.
pub(crate) fn read(file: &Path) -> Result<Rules, CliError> {
    Rules::load(file).map_err(|error| match error {
        RulesFileError::Io { path, source } => CliError::Unreadable { path, source },
        RulesFileError::File { source, .. } | RulesFileError::Shipped(source) => {
            let RulesError(faults) = source;
            refused(file, &faults)
        }
    })
}

pub(crate) fn of_site(rules: &ApplicationRules) -> Result<Rules, CliError> {
    Ok(Rules::parse(&rules.text)?)
}

pub(crate) fn check(rules: &Rules, job_names: &[String], comment: Option<&str>) -> Vec<Checked> {
    let checked = job_names.iter().map(|job_name| {
        let Resolved {
            request: resolved,
            full_name,
        } = resolved(rules, Some(job_name), comment);
        Checked {
            job_name: job_name.clone(),
            comment: comment.map(str::to_owned),
            application: resolved.application().to_owned(),
            full_name,
            observed: resolved.mode == Mode::Observe,
            rule: resolved.rule,
        }
    });
    checked.collect()
}

fn resolved(rules: &Rules, job_name: Option<&str>, comment: Option<&str>) -> Resolved {
    rules.resolve(Request {
        job_name: job_name.map(str::to_owned),
        comment: comment.map(str::to_owned),
        ..Request::default()
    })
}

/// The changes of runs' applications by the rules. Runs whose application the user named stay.
pub(crate) fn trial(rules: &Rules, names: JobNames) -> Trial {
    #[derive(Default)]
    struct Runs {
        user: Option<String>,
        observed: bool,
        rules: BTreeSet<String>,
        runs: i64,
    }
    let mut moves: BTreeMap<(u32, String, String), Runs> = BTreeMap::new();
    for name in names.names {
        let (becomes, observed, rule) = becomes(rules, &name);
        let runs = moves
            .entry((name.uid, name.application, becomes))
            .or_default();
        runs.user = name.user;
        runs.observed = observed;
        runs.rules.extend(rule);
        runs.runs += name.runs;
    }
    let mut from: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    let mut to: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    for (uid, application, becomes) in moves.keys() {
        *from.entry((*uid, application)).or_default() += 1;
        *to.entry((*uid, becomes)).or_default() += 1;
    }
    let mut changes = Vec::new();
    let mut unchanged_runs = 0;
    for ((uid, application, becomes), runs) in &moves {
        let several = |of: &BTreeMap<(u32, &str), u32>, name: &str| of[&(*uid, name)] > 1;
        let what: Vec<What> = [
            (What::Split, several(&from, application)),
            // Nothing is learnt from observed runs, so it does not matter if they share a name.
            (What::Merged, several(&to, becomes) && !runs.observed),
        ]
        .into_iter()
        .filter_map(|(what, so)| so.then_some(what))
        .collect();
        if what.is_empty() && application == becomes {
            unchanged_runs += runs.runs;
            continue;
        }
        changes.push(Change {
            uid: *uid,
            user: runs.user.clone(),
            application: application.clone(),
            becomes: becomes.clone(),
            observed: runs.observed,
            rules: runs.rules.clone(),
            runs: runs.runs,
            what: if what.is_empty() {
                vec![What::Renamed]
            } else {
                what
            },
        });
    }
    Trial {
        changes,
        unchanged_runs,
        more: names.more,
    }
}

fn becomes(rules: &Rules, name: &JobName) -> (String, bool, Option<String>) {
    if name.job_name.is_none() && name.comment.is_none() {
        return (name.application.clone(), false, None);
    }
    let Resolved { request, full_name } =
        resolved(rules, name.job_name.as_deref(), name.comment.as_deref());
    let observed = request.mode == Mode::Observe;
    let called = full_name.as_deref().unwrap_or(request.application());
    // The application may continue under an older name.
    let becomes = match name.full_name.as_deref() == Some(called) {
        true => &name.application,
        false => request.application(),
    };
    (becomes.to_owned(), observed, request.rule)
}

#[cfg(test)]
mod tests {
    use io_autotune_catalogue::SHIPPED;

    use super::*;

    fn runs(uid: u32, application: &str, job_name: Option<&str>, runs: i64) -> JobName {
        JobName {
            uid,
            user: None,
            application: application.into(),
            full_name: None,
            job_name: job_name.map(str::to_owned),
            comment: None,
            runs,
        }
    }

    type Moved = (String, String, i64, Vec<What>);

    /// The changes, and the number of runs that stay.
    fn tried(text: &str, names: Vec<JobName>) -> (Vec<Moved>, i64) {
        let names = JobNames { names, more: false };
        let trial = trial(&Rules::parse(text).unwrap(), names);
        let changes = trial.changes.into_iter();
        let changes = changes.map(|one| (one.application, one.becomes, one.runs, one.what));
        (changes.collect(), trial.unchanged_runs)
    }

    #[test]
    fn names_are_checked_as_the_service_would_take_them() {
        let rules = Rules::parse(SHIPPED).unwrap();
        let names = ["nf-ALIGN_(1)", "run.sh", "ocean"].map(str::to_owned);
        let checked = check(&rules, &names, Some("private"));
        let shown: Vec<_> = checked
            .iter()
            .map(|one| (one.application.as_str(), one.observed, one.rule.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("nf-ALIGN", false, Some("nextflow")),
                ("run.sh", true, None),
                ("ocean", false, None)
            ]
        );
    }

    #[test]
    fn histories_merge_split_and_are_renamed_within_their_owners() {
        let (old, new) = ("nf-A__1_", "nf-A");
        let names = vec![
            runs(1, old, Some("nf-A_(1)"), 3),
            runs(1, "nf-A__2_", Some("nf-A_(2)"), 4),
            runs(2, old, Some("nf-A_(1)"), 5),
            runs(1, "ocean", Some("ocean"), 6),
            runs(1, "named", None, 7),
            runs(1, "unnamed", None, 8),
        ];
        let (changes, unchanged) = tried(SHIPPED, names);
        let change = |from: &str, runs, what| (from.to_owned(), new.to_owned(), runs, vec![what]);
        assert_eq!(
            changes,
            [
                change(old, 3, What::Merged),
                change("nf-A__2_", 4, What::Merged),
                change(old, 5, What::Renamed)
            ]
        );
        assert_eq!(unchanged, 6 + 7 + 8);

        // With no rules any more, one history becomes several.
        let names = vec![
            runs(1, new, Some("nf-A_(1)"), 3),
            runs(1, new, Some("nf-A_(2)"), 4),
        ];
        let (changes, unchanged) = tried("", names);
        assert_eq!(unchanged, 0);
        assert!(
            changes.iter().all(|change| change.3 == [What::Split]),
            "{changes:?}"
        );

        // Another history joins one that the user named.
        let text = "[[rules]]\nname = \"r\"\njob_name = '^x'\napplication = \"named\"\n";
        let names = vec![runs(1, "named", None, 1), runs(1, "x1", Some("x1"), 2)];
        let (changes, _) = tried(text, names);
        assert_eq!(changes.len(), 2);
        assert!(
            changes.iter().all(|change| change.3 == [What::Merged]),
            "{changes:?}"
        );
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_with_places() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let missing = read(&path).unwrap_err().to_string();
        assert!(missing.contains("mine.toml"), "{missing}");
        std::fs::write(&path, "[[rules]]\nname = \"r\"\njob_name = '('\n").unwrap();
        let told = read(&path).unwrap_err().to_string();
        for place in [
            "mine.toml:1:1: rule \"r\"",
            "mine.toml:3:12: rule \"r\": job_name",
        ] {
            assert!(told.contains(place), "{told}");
        }
    }
}
