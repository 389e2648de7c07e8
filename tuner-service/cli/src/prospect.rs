//! `io-autotune prospect`: the share of a site's node-hours in applications that run often enough
//! to be tuned, by what accounting has of its jobs.

mod sacct;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use io_autotune_catalogue::{Rules, SHIPPED};
use io_autotune_model::Moments;
use serde::Serialize;

use crate::rules;
use crate::service::CliError;
use sacct::Job;
pub(crate) use sacct::Unread;

/// The numbers of runs for which the share is told, the largest first. docs/worth.md says what so
/// many runs are worth.
pub(crate) const RUNS: [u64; 4] = [200, 50, 25, 10];

/// Times that vary by less are steady: the coefficient of variation up to which docs/worth.md calls
/// work comparable.
pub(crate) const STEADY: f64 = 0.2;

/// The most studies that are told apart, so that no file takes all memory.
const MOST_STUDIES: usize = 1_000_000;

/// The jobs of a site, as accounting has them.
#[derive(Debug, Serialize)]
pub(crate) struct Prospect {
    /// All jobs that ran.
    pub(crate) all: Share,
    /// Jobs that did not complete, of which nothing is learnt.
    pub(crate) not_completed: Share,
    /// Jobs whose name says nothing of the program: they are only observed, unless their users or a
    /// rule name the application.
    pub(crate) unnamed: Share,
    /// The studies with so many runs or more, the most runs first.
    pub(crate) often: Vec<Often>,
    /// The studies, those with the most node-seconds first.
    pub(crate) studies: Vec<Study>,
    /// Jobs of studies that were not told apart, because there are too many studies.
    pub(crate) beyond: Share,
    /// Lines that could not be read.
    pub(crate) unread: Unread,
}

/// A number of jobs, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) jobs: u64,
    pub(crate) node_seconds: f64,
}

impl Share {
    fn add(&mut self, job: &Job<'_>) {
        self.jobs += 1;
        self.node_seconds += job.node_seconds();
    }
}

/// The studies with so many runs or more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Often {
    pub(crate) runs: u64,
    pub(crate) studies: usize,
    #[serde(flatten)]
    pub(crate) share: Share,
    /// The part of it in studies whose times vary by less than [`STEADY`].
    pub(crate) steady_node_seconds: f64,
}

/// The identity of a study: the runs of one user's application in one context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Key {
    pub(crate) cluster: String,
    pub(crate) user: String,
    pub(crate) application: String,
    pub(crate) partition: String,
    pub(crate) nodes: u64,
    pub(crate) cpus_per_node: u64,
}

/// A study that there would be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Study {
    #[serde(flatten)]
    pub(crate) key: Key,
    #[serde(rename = "runs")]
    pub(crate) jobs: u64,
    pub(crate) node_seconds: f64,
    /// The coefficient of variation of its times; `None` under two runs.
    pub(crate) varies_by: Option<f64>,
}

#[derive(Default)]
struct Runs {
    share: Share,
    logarithms: Moments,
}

/// Reads a file of sacct's, or standard input for `-`. Names become applications by the rules of a
/// file, or by those that the product ships.
pub(crate) fn of_file(file: &Path, of_rules: Option<&Path>) -> Result<Prospect, CliError> {
    let rules = match of_rules {
        Some(file) => rules::read(file)?,
        None => Rules::parse(SHIPPED)?,
    };
    let unreadable = |source| CliError::Unreadable {
        path: file.to_owned(),
        source,
    };
    if file == Path::new("-") {
        return of(io::stdin().lock(), &rules).map_err(unreadable);
    }
    let opened = File::open(file).map_err(unreadable)?;
    of(BufReader::new(opened), &rules).map_err(unreadable)
}

/// Reads what sacct printed.
fn of(input: impl BufRead, rules: &Rules) -> io::Result<Prospect> {
    let [mut all, mut not_completed, mut unnamed, mut beyond] = [Share::default(); 4];
    let mut studies: HashMap<Key, Runs> = HashMap::new();
    let unread = sacct::jobs(input, |job| {
        all.add(job);
        if !job.completed {
            return not_completed.add(job);
        }
        let named = rules.named(Some(job.name), job.comment);
        let Some(application) = named.application.filter(|_| !named.meaningless) else {
            return unnamed.add(job);
        };
        let key = Key {
            cluster: job.cluster.to_owned(),
            user: job.user.to_owned(),
            application: application.name().to_owned(),
            partition: job.partition.to_owned(),
            nodes: job.nodes,
            cpus_per_node: job.cpus.div_ceil(job.nodes),
        };
        if studies.len() >= MOST_STUDIES && !studies.contains_key(&key) {
            return beyond.add(job);
        }
        let runs = studies.entry(key).or_default();
        runs.share.add(job);
        let entered = runs.logarithms.push(seconds(job.seconds).ln());
        debug_assert!(entered.is_ok(), "a logarithm is finite");
    })?;
    let mut studies: Vec<Study> = studies.into_iter().map(study).collect();
    studies.sort_by(|a, b| {
        let by_size = b.node_seconds.total_cmp(&a.node_seconds);
        by_size.then_with(|| a.key.named().cmp(&b.key.named()))
    });
    Ok(Prospect {
        all,
        not_completed,
        unnamed,
        often: RUNS.iter().map(|runs| often(&studies, *runs)).collect(),
        studies,
        beyond,
        unread,
    })
}

fn study((key, runs): (Key, Runs)) -> Study {
    // Of a logarithm, the deviation is the coefficient of variation for as long as that is small.
    let varies_by = runs.logarithms.variance().map(f64::sqrt);
    Study {
        key,
        jobs: runs.share.jobs,
        node_seconds: runs.share.node_seconds,
        varies_by,
    }
}

fn often(studies: &[Study], runs: u64) -> Often {
    let those = studies.iter().filter(|study| study.jobs >= runs);
    let mut often = Often {
        runs,
        studies: 0,
        share: Share::default(),
        steady_node_seconds: 0.0,
    };
    for study in those {
        often.studies += 1;
        often.share.jobs += study.jobs;
        often.share.node_seconds += study.node_seconds;
        if study.is_steady() {
            often.steady_node_seconds += study.node_seconds;
        }
    }
    often
}

impl Study {
    /// True if its times vary so little that runs can be compared.
    pub(crate) fn is_steady(&self) -> bool {
        self.varies_by.is_some_and(|by| by < STEADY)
    }
}

impl Key {
    fn named(&self) -> (&str, &str, &str, &str, u64, u64) {
        (
            &self.cluster,
            &self.user,
            &self.application,
            &self.partition,
            self.nodes,
            self.cpus_per_node,
        )
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a job's seconds and nodes are bounded where they are read"
)]
fn seconds(whole: u64) -> f64 {
    whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "Cluster|JobID|User|Partition|State|NNodes|NCPUS|ElapsedRaw|Comment|JobName\n";

    fn read(rows: &str) -> Prospect {
        let rules = Rules::parse(SHIPPED).unwrap();
        of((HEADER.to_owned() + rows).as_bytes(), &rules).unwrap()
    }

    fn rows(runs: u64, user: &str, nodes: u64, seconds: impl Fn(u64) -> u64, name: &str) -> String {
        let row = |run| {
            let (cpus, seconds) = (nodes * 8, seconds(run));
            format!("c|{run}|{user}|batch|COMPLETED|{nodes}|{cpus}|{seconds}||{name}\n")
        };
        (0..runs).map(row).collect()
    }

    #[test]
    fn a_site_of_known_shape_has_the_shares_that_it_was_made_with() {
        let steady = |run| 1000 + run % 2;
        let wild = |run| if run % 2 == 0 { 100 } else { 1900 };
        let text = [
            rows(200, "a", 2, steady, "ocean"),
            rows(60, "a", 2, wild, "cloud"),
            // Another context is another study, and so is another user.
            rows(24, "a", 4, steady, "ocean"),
            rows(9, "b", 2, steady, "ocean"),
            rows(7, "b", 1, steady, "run.sh"),
            "c|1|b|batch|TIMEOUT|1|8|500||ocean\n".to_owned(),
        ];
        let found = read(&text.concat());
        let jobs = 200 + 60 + 24 + 9 + 7 + 1;
        assert_eq!(found.all.jobs, jobs);
        assert_eq!((found.unnamed.jobs, found.not_completed.jobs), (7, 1));
        assert_eq!(found.not_completed.node_seconds, 500.0);
        let often: Vec<(u64, usize, u64)> = found
            .often
            .iter()
            .map(|one| (one.runs, one.studies, one.share.jobs))
            .collect();
        assert_eq!(
            often,
            [(200, 1, 200), (50, 2, 260), (25, 2, 260), (10, 3, 284)]
        );
        // Two nodes for 1000 or 1001 s.
        assert_eq!(found.often[0].share.node_seconds, 400_200.0);
        assert_eq!(found.often[0].steady_node_seconds, 400_200.0);
        assert_eq!(found.often[1].share.node_seconds, 400_200.0 + 120_000.0);
        assert_eq!(found.often[1].steady_node_seconds, 400_200.0);
        let largest = &found.studies[0];
        assert_eq!(
            (
                largest.key.application.as_str(),
                largest.key.nodes,
                largest.key.cpus_per_node
            ),
            ("ocean", 2, 8)
        );
        let all: f64 = found.studies.iter().map(|study| study.node_seconds).sum();
        let others = found.unnamed.node_seconds + found.not_completed.node_seconds;
        assert_eq!(all + others, found.all.node_seconds);
    }

    #[test]
    fn names_become_applications_by_the_rules() {
        let named =
            |run: u64| format!("c|{run}|a|batch|COMPLETED|1|8|60||nf-ALIGN_(sample_{run})\n");
        let found = read(&(0..12).map(named).collect::<String>());
        assert_eq!(found.studies.len(), 1);
        assert_eq!(found.studies[0].key.application, "nf-ALIGN");
        let snakemake =
            "c|1|a|batch|COMPLETED|1|8|60|rule_map|0f8fad5b-d9cb-469f-a165-70867728950e\n";
        assert_eq!(read(snakemake).studies[0].key.application, "smk-map");
    }

    #[test]
    fn the_same_file_gives_the_same_order() {
        let text = [
            rows(3, "b", 1, |_| 60, "one"),
            rows(3, "a", 1, |_| 60, "two"),
            rows(3, "a", 1, |_| 60, "one"),
        ];
        let found = read(&text.concat());
        let order: Vec<(&str, &str)> = found
            .studies
            .iter()
            .map(|study| (study.key.user.as_str(), study.key.application.as_str()))
            .collect();
        assert_eq!(order, [("a", "one"), ("a", "two"), ("b", "one")]);
    }

    #[test]
    fn a_site_without_jobs_has_no_share() {
        let found = read("");
        assert_eq!(found.all, Share::default());
        assert!(found.studies.is_empty());
        assert!(found.often.iter().all(|often| often.studies == 0));
    }
}
