//! Merges the reports of a job's nodes.

use std::collections::{BTreeMap, BTreeSet};

use io_autotune_model::text::listed;
use io_autotune_model::{
    MPI_IO_LOST, MPI_IO_READ, MPI_IO_SECONDS, MPI_IO_WRITTEN, Measure, ObservedValue,
    is_of_the_longest_node,
};
use io_autotune_protocol::{Applied, EpilogOutcome, FinishRequest, Job, has_host};
use io_autotune_store::Merged;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

const BATCH: u32 = io_autotune_protocol::Step::BATCH;
/// The most nodes that a verdict names.
const NAMED: usize = 4;

/// A run according to all reports so far.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MergedRun {
    /// Seconds; `None`: the end of a step was not seen, or there was no step.
    pub(crate) elapsed: Option<f64>,
    /// The batch step's wait status; without one the first step's that is not 0, else 0.
    pub(crate) wait_status: i32,
    pub(crate) applied: Applied,
    pub(crate) measures: BTreeMap<String, f64>,
    /// The worst of the outcomes that slurmd passed to the epilogs.
    pub(crate) epilog: Option<EpilogOutcome>,
    /// The part of the reports that is certainly missing, as a sentence.
    pub(crate) missing: Option<String>,
    pub(crate) all_reported: bool,
    /// The number of nodes that the job had when it began, by its nodes' reports.
    pub(crate) nodes: Option<u32>,
    /// There may be unreported steps: not all nodes have reported, and there is no batch step.
    pub(crate) may_lack_steps: bool,
    pub(crate) has_batch_step: bool,
    /// Why none of the reports is believed.
    pub(crate) contradiction: Option<String>,
}

impl From<MergedRun> for Merged {
    fn from(run: MergedRun) -> Self {
        Self {
            elapsed: run.elapsed,
            wait_status: run.wait_status,
            applied: json!(run.applied),
            measures: run.measures,
            missing: run.missing,
            epilog: run.epilog.map(|epilog| json!(epilog)),
        }
    }
}

/// A run's reports, merged one by one in any order: a thousand nodes may report 20,000 steps each,
/// so that steps are only kept in their merged form.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// By node; without their steps, except for their number.
    of: BTreeMap<String, Report>,
    steps: BTreeMap<u32, Step>,
}

#[derive(Debug)]
struct Report {
    body: FinishRequest,
    steps: usize,
}

impl Report {
    #[expect(clippy::cast_precision_loss, reason = "20,000 steps at most")]
    fn is_measured(&self) -> bool {
        Measure::Steps.of(&self.body.measures) >= self.steps as f64
    }
}

impl Reports {
    /// Adds a stored report. Logs and skips a report that cannot be read, or is of a node that is
    /// not in the job's node list by Slurm: root of any node can report any job.
    pub(crate) fn add(&mut self, stored: &Value, node_list: Option<&str>) {
        let report = match FinishRequest::deserialize(stored) {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(%error, "a stored report cannot be read");
                return;
            }
        };
        let Job { job_id, node, .. } = &report.job;
        match node_list {
            Some(nodes) if !has_host(nodes, node) => {
                tracing::warn!(
                    job_id,
                    node,
                    nodes,
                    "a node that the job had not reports it"
                );
            }
            _ => self.take(report),
        }
    }

    fn take(&mut self, mut body: FinishRequest) {
        let mut steps = std::mem::take(&mut body.steps);
        // A node has one part of a step, so repeated ones are dropped.
        steps.sort_by_key(|step| step.step_id);
        steps.dedup_by_key(|step| step.step_id);
        for part in &steps {
            self.steps.entry(part.step_id).or_default().add(part);
        }
        let node = body.job.node.clone();
        let steps = steps.len();
        self.of.insert(node, Report { body, steps });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(crate) fn merged(&self) -> MergedRun {
        let nodes = self.bodies().map(|report| report.job.nodes).max();
        let unheard = nodes.is_some_and(|nodes| self.of.len() < nodes as usize);
        let batch = self.steps.get(&BATCH);
        MergedRun {
            elapsed: self.elapsed(),
            wait_status: self.wait_status(),
            applied: applied(&self.speaking()),
            measures: self.measures(),
            epilog: self.epilog(),
            missing: self.missing(),
            all_reported: !unheard,
            nodes,
            may_lack_steps: unheard && batch.is_none(),
            has_batch_step: batch.is_some(),
            contradiction: self.too_many_nodes(),
        }
    }

    /// Measures that nodes collect are added up if every step was measured on each node that
    /// reports it: a part would look like a run that did less. For any other measure the value of
    /// the first node by name is taken, except for seconds that nodes spend at the same time, of
    /// which the longest counts, and for MPI-IO's bytes, which are added. Nothing is told of MPI-IO
    /// if a node does not know all of its own.
    fn measures(&self) -> BTreeMap<String, f64> {
        let complete = self.of.values().all(Report::is_measured);
        let mut merged: BTreeMap<String, f64> = BTreeMap::new();
        for (name, value) in self.bodies().flat_map(|report| &report.measures) {
            match (Measure::named(name), merged.get_mut(name)) {
                (None, Some(longest)) if is_of_the_longest_node(name) => {
                    *longest = longest.max(*value);
                }
                (None, Some(sum)) if [MPI_IO_READ, MPI_IO_WRITTEN].contains(&&**name) => {
                    *sum = (*sum + value).min(f64::MAX);
                }
                (Some(_), _) if !complete => {}
                (Some(_), Some(sum)) => *sum = (*sum + value).min(f64::MAX),
                (None, Some(_)) => {}
                (_, None) => {
                    merged.insert(name.clone(), *value);
                }
            }
        }
        if merged.remove(MPI_IO_LOST).is_some() {
            merged.retain(|name, _| {
                ![MPI_IO_SECONDS, MPI_IO_READ, MPI_IO_WRITTEN].contains(&&**name)
            });
        }
        merged
    }

    /// The values of each parameter that the nodes read back.
    pub(crate) fn observed_values(&self) -> Vec<ObservedValue> {
        let observed = self.bodies().flat_map(|report| &report.observed);
        observed
            .map(|observed| ObservedValue {
                parameter: observed.parameter.clone(),
                name: observed.name.clone(),
                given: observed.asked.clone(),
                in_force: observed.in_force.clone(),
                as_given: observed.as_asked,
            })
            .collect()
    }

    fn bodies(&self) -> impl Iterator<Item = &FinishRequest> {
        self.of.values().map(|report| &report.body)
    }

    /// The reports that decide: those of nodes with steps, if there are any.
    fn speaking(&self) -> Vec<&FinishRequest> {
        let with_steps = self.of.values().filter(|report| report.steps > 0);
        let speaking: Vec<_> = with_steps.map(|report| &report.body).collect();
        match speaking.is_empty() {
            true => self.bodies().collect(),
            false => speaking,
        }
    }

    /// Seconds. For a batch job it is the batch step's duration, because inner steps run inside it.
    /// Otherwise it is the time in which at least one step ran, each as long as its longest part: a
    /// user's thinking time between steps does not count, and steps that ran at the same time count
    /// once.
    fn elapsed(&self) -> Option<f64> {
        let nanoseconds = match self.steps.get(&BATCH) {
            Some(batch) => batch.longest?,
            None => {
                let mut steps = self.steps.values();
                let sum = steps.try_fold(0_u64, |sum, step| sum.checked_add(step.longest?))?;
                // Clocks of nodes differ a little: the time never exceeds the sum of the steps.
                self.in_which_any_ran().map_or(sum, |any| any.min(sum))
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
        let seconds = nanoseconds as f64 / 1e9;
        (nanoseconds > 0).then_some(seconds)
    }

    /// Nanoseconds; `None` if a node does not report when its steps started, as before 0.4.
    fn in_which_any_ran(&self) -> Option<u64> {
        let steps = self.steps.values();
        let mut spans: Vec<(i128, i128)> = steps
            .map(|step| {
                let start = step.started.filter(|_| step.is_placed)?.as_nanosecond();
                Some((start, start + i128::from(step.longest?)))
            })
            .collect::<Option<_>>()?;
        spans.sort_unstable();
        let (mut any, mut until) = (0, i128::MIN);
        for (start, end) in spans {
            any += (end - start.max(until)).max(0);
            until = until.max(end);
        }
        u64::try_from(any).ok()
    }

    fn wait_status(&self) -> i32 {
        match self.steps.get(&BATCH) {
            Some(batch) => batch.wait_status,
            None => self
                .steps
                .values()
                .map(|step| step.wait_status)
                .find(|status| *status != 0)
                .unwrap_or(0),
        }
    }

    fn missing(&self) -> Option<String> {
        let (step_id, Step { nodes, parts, .. }) = self
            .steps
            .iter()
            .find(|(_, step)| step.parts < step.nodes)?;
        Some(format!(
            "step {step_id} ran on {nodes} nodes, and {parts} of them reported it"
        ))
    }

    /// The contradiction where Slurm has given no node list: if more nodes report than one of them
    /// says that there are, no report is believed.
    fn too_many_nodes(&self) -> Option<String> {
        let fewest = self.bodies().map(|report| report.job.nodes).min()?;
        (self.of.len() > fewest as usize).then(|| {
            let names: Vec<&str> = self.of.keys().map(String::as_str).collect();
            format!("{} reported a job of {fewest} nodes", listed(&names, NAMED))
        })
    }

    /// The worst exit codes, and a limit if any epilog had one.
    fn epilog(&self) -> Option<EpilogOutcome> {
        let words = || self.bodies().filter_map(|report| report.epilog.as_ref());
        let worst = |field: fn(&EpilogOutcome) -> &String| {
            let text = words().map(field).find(|code| *code != "0:0");
            text.or_else(|| words().map(field).next()).cloned()
        };
        Some(EpilogOutcome {
            exit_code: worst(|word| &word.exit_code)?,
            derived_exit_code: worst(|word| &word.derived_exit_code)?,
            limit_seconds: words().find_map(|word| word.limit_seconds),
        })
    }
}

/// The merged parts of a step on several nodes.
#[derive(Debug)]
struct Step {
    /// The number of nodes that reported a part.
    parts: u32,
    /// The number of nodes of the step.
    nodes: u32,
    /// When its first part started.
    started: Option<Timestamp>,
    /// True if each part has its start.
    is_placed: bool,
    /// The longest part's nanoseconds; `None` if the end of one was not seen.
    longest: Option<u64>,
    /// The largest wait status of the parts.
    wait_status: i32,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            parts: 0,
            nodes: 0,
            started: None,
            is_placed: true,
            longest: Some(0),
            wait_status: 0,
        }
    }
}

impl Step {
    fn add(&mut self, part: &io_autotune_protocol::Step) {
        self.parts += 1;
        self.nodes = self.nodes.max(part.nodes);
        self.started = self.started.into_iter().chain(part.started_at).min();
        self.is_placed &= part.started_at.is_some();
        self.longest = self.longest.zip(part.duration_ns).map(|(a, b)| a.max(b));
        let [ours, theirs] = [self.wait_status, part.wait_status].map(i32::cast_unsigned);
        self.wait_status = ours.max(theirs).cast_signed();
    }
}

/// Merges one stored report.
pub(crate) fn merge_stored(report: &Value) -> MergedRun {
    let mut reports = Reports::default();
    reports.add(report, None);
    reports.merged()
}

/// Returns what was applied according to the nodes, if they agree.
fn applied(reports: &[&FinishRequest]) -> Applied {
    let users: BTreeSet<&str> = reports
        .iter()
        .filter_map(|report| match &report.applied {
            Applied::User { variables } => Some(variables),
            _ => None,
        })
        .flatten()
        .map(String::as_str)
        .collect();
    if !users.is_empty() {
        return Applied::User {
            variables: users.into_iter().map(str::to_owned).collect(),
        };
    }
    let incomplete = reports.iter().find_map(|report| match &report.applied {
        Applied::Incomplete { detail } => Some((report, detail)),
        _ => None,
    });
    match (reports, incomplete) {
        ([], _) => Applied::Incomplete {
            detail: "no node reported".into(),
        },
        ([_], Some((_, detail))) => Applied::Incomplete {
            detail: detail.clone(),
        },
        (_, Some((report, detail))) => Applied::Incomplete {
            detail: format!("{}: {detail}", report.job.node),
        },
        ([first, rest @ ..], None) => {
            match rest.iter().find(|other| other.applied != first.applied) {
                None => first.applied.clone(),
                Some(other) => Applied::Incomplete {
                    detail: format!(
                        "{} had {}, {} had {}",
                        first.job.node,
                        in_words(&first.applied),
                        other.job.node,
                        in_words(&other.applied)
                    ),
                },
            }
        }
    }
}

fn in_words(applied: &Applied) -> &'static str {
    match applied {
        Applied::Default => "the default",
        Applied::Parametrization { .. } => "a parametrization of its own",
        Applied::User { .. } => "the user's settings",
        Applied::Incomplete { .. } => "a part of it",
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_engine::Parametrization;
    use io_autotune_engine::Value;
    use io_autotune_protocol::Job;

    use io_autotune_protocol::Step;
    use proptest::prelude::*;

    use io_autotune_model::MARKED;

    use super::*;

    fn merge(reports: &[FinishRequest]) -> MergedRun {
        let mut all = Reports::default();
        for report in reports {
            all.take(report.clone());
        }
        all.merged()
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_nodes_were_told_is_read_and_what_is_no_report_is_passed_over() {
        let told = |parameter: &str, asked: &str, in_force: &str| {
            json!({ "parameter": parameter, "name": format!("romio_{parameter}"), "asked": asked,
                    "in_force": in_force, "as_asked": asked == in_force })
        };
        let mut stored = json!(report("n1", 1, Applied::Default, &[step(0, 1, 3)]));
        stored["told"] = json!([told("sieve", "enable", "disable"), told("nodes", "4", "4")]);
        let mut reports = Reports::default();
        reports.add(&json!("not a report"), None);
        reports.add(&stored, None);
        assert_eq!(reports.merged(), merge_stored(&stored));
        let values = reports.observed_values();
        let [sieve, nodes] = &values[..] else {
            panic!("two parameters: {values:?}")
        };
        assert_eq!((sieve.parameter.as_str(), sieve.as_given), ("sieve", false));
        assert_eq!(sieve.given.as_deref(), Some("enable"));
        assert_eq!(sieve.in_force, "disable");
        assert!(nodes.as_given);
    }

    fn at(second: i64, step: Step) -> Step {
        Step {
            started_at: Some(Timestamp::from_second(1_800_000_000 + second).unwrap()),
            ..step
        }
    }

    #[test]
    fn what_ran_at_once_counts_once() {
        let of = |steps: &[Step]| merge(&[report("n1", 1, Applied::Default, steps)]).elapsed;
        // One after the other, with thinking time between.
        assert_eq!(
            of(&[at(0, step(0, 1, 3)), at(60, step(1, 1, 4))]),
            Some(7.0)
        );
        assert_eq!(of(&[at(0, step(0, 1, 3)), at(1, step(1, 1, 4))]), Some(5.0));
        assert_eq!(of(&[at(0, step(0, 1, 9)), at(1, step(1, 1, 4))]), Some(9.0));
        // Nodes of earlier releases do not report when steps started.
        assert_eq!(of(&[at(0, step(0, 1, 3)), step(1, 1, 4)]), Some(7.0));
        // A step is as long as its longest part, wherever the other step ran.
        let parts = [
            report("n1", 2, Applied::Default, &[at(0, step(0, 2, 3))]),
            report(
                "n2",
                2,
                Applied::Default,
                &[at(0, step(0, 2, 5)), at(2, step(1, 1, 2))],
            ),
        ];
        assert_eq!(merge(&parts).elapsed, Some(5.0));
    }

    fn step(step_id: u32, nodes: u32, seconds: u64) -> Step {
        Step {
            step_id,
            started_at: None,
            duration_ns: Some(seconds * SECOND),
            wait_status: 0,
            nodes,
            variables: BTreeMap::new(),
        }
    }

    fn given(size: i64) -> Applied {
        Applied::Parametrization {
            parametrization: Parametrization(BTreeMap::from([(
                "size".to_owned(),
                Value::Integer(size),
            )])),
        }
    }

    fn report(node: &str, nodes: u32, applied: Applied, steps: &[Step]) -> FinishRequest {
        FinishRequest {
            job: Job {
                cluster: "c".into(),
                job_id: 1,
                restart_count: 0,
                sluid: None,
                uid: 1000,
                gid: 1000,
                user: None,
                node: node.into(),
                nodes,
                partition: "main".into(),
                cpus_per_node: "8".into(),
            },
            request: Default::default(),
            run_id: Some(1),
            prolog_at: None,
            start_failure: None,
            applied,
            in_force: BTreeMap::new(),
            observed: Vec::new(),
            online: None,
            steps: steps.to_vec(),
            epilog: None,
            measures: BTreeMap::new(),
        }
    }

    fn incomplete(detail: &str) -> Applied {
        Applied::Incomplete {
            detail: detail.into(),
        }
    }

    #[test]
    fn inner_steps_of_a_batch_job_do_not_count_twice() {
        let mut inner = step(0, 1, 3);
        inner.wait_status = 256;
        let run = merge(&[report("n1", 1, given(4), &[inner, step(Step::BATCH, 1, 5)])]);
        assert_eq!(run.elapsed, Some(5.0));
        assert_eq!(
            run.wait_status, 0,
            "the script decides what a failed step means"
        );
        assert_eq!((run.applied, run.missing), (given(4), None));
        assert!(!run.may_lack_steps);
    }

    #[test]
    fn without_a_batch_step_the_steps_are_added_without_the_pauses_between() {
        let mut failed = step(1, 1, 4);
        failed.wait_status = 9;
        let run = merge(&[report("n1", 1, Applied::Default, &[step(0, 1, 3), failed])]);
        assert_eq!((run.elapsed, run.wait_status), (Some(7.0), 9));
    }

    #[test]
    fn a_step_on_two_nodes_takes_as_long_as_its_slower_node() {
        let first = report("n1", 2, given(4), &[step(0, 2, 3)]);
        let second = report("n2", 2, given(4), &[step(0, 2, 5)]);
        let run = merge(&[second, first]);
        assert_eq!(run.elapsed, Some(5.0));
        assert_eq!((run.applied, run.missing), (given(4), None));
    }

    /// Attack (nodes): Root of a node reports a job that ran elsewhere, another user's, or what a
    /// run was not given.
    /// Outcome: The run counts by its own node, waits for it, or does not count.
    #[test]
    fn a_node_that_the_job_had_not_makes_all_of_them_doubtful() {
        let own = report("n1", 1, given(4), &[step(Step::BATCH, 1, 5)]);
        for nodes in [1, 2] {
            let mut failing = step(Step::BATCH, 1, 1);
            failing.wait_status = 256;
            let forged = report("n0", nodes, given(4), &[failing]);
            let run = merge(&[forged, own.clone()]);
            let why = run.contradiction.unwrap();
            assert_eq!(why, "n0, n1 reported a job of 1 nodes");
        }
    }

    #[test]
    fn a_node_that_the_job_had_not_by_slurm_is_not_heard() {
        let heard = |nodes| {
            let mut reports = Reports::default();
            for (node, seconds) in [("n1", 5), ("n9", 1)] {
                let report = report(node, 1, given(4), &[step(Step::BATCH, 1, seconds)]);
                reports.add(&json!(report), Some(nodes));
            }
            reports
        };
        let run = heard("n[1-2]").merged();
        assert_eq!((run.elapsed, run.contradiction), (Some(5.0), None));
        assert!(heard("n3").is_empty());
    }

    #[test]
    fn a_step_seen_on_fewer_nodes_than_it_has_is_waited_for() {
        let first = report("n1", 2, given(4), &[step(0, 2, 3), step(Step::BATCH, 1, 6)]);
        let run = merge(std::slice::from_ref(&first));
        assert_eq!(
            run.missing.as_deref(),
            Some("step 0 ran on 2 nodes, and 1 of them reported it")
        );
        assert!(!run.all_reported);
        let second = report("n2", 2, given(4), &[step(0, 2, 3)]);
        assert_eq!(merge(&[first.clone(), second]).missing, None);
        let blind = report("n2", 2, incomplete("no prolog ran on this node"), &[]);
        let run = merge(&[first, blind]);
        assert!(run.missing.is_some() && run.all_reported);
    }

    #[test]
    fn steps_on_a_node_that_has_not_reported_are_possible_unless_a_batch_step_was_seen() {
        let steps = [step(0, 1, 3)];
        assert!(merge(&[report("n2", 2, given(4), &steps)]).may_lack_steps);
        let batch = [step(0, 1, 3), step(Step::BATCH, 1, 6)];
        assert!(!merge(&[report("n1", 2, given(4), &batch)]).may_lack_steps);
        let both = [
            report("n2", 2, given(4), &steps),
            report("n1", 2, incomplete("no step started on this node"), &[]),
        ];
        assert!(!merge(&both).may_lack_steps);
    }

    #[test]
    fn a_node_without_steps_does_not_speak_where_another_has_some() {
        let idle = report("n1", 2, incomplete("no step started on this node"), &[]);
        let busy = report("n2", 2, given(4), &[step(0, 1, 3)]);
        let run = merge(&[idle.clone(), busy]);
        assert_eq!((run.elapsed, run.applied), (Some(3.0), given(4)));
        let alone = merge(&[idle]);
        assert_eq!(alone.elapsed, None);
        assert_eq!(alone.applied, incomplete("no step started on this node"));
    }

    #[test]
    fn nodes_that_disagree_leave_nothing_to_count_for() {
        let on = |node: &str, applied: Applied| report(node, 2, applied, &[step(0, 2, 3)]);
        let disagree = merge(&[on("n1", given(4)), on("n2", Applied::Default)]);
        let detail = "n1 had a parametrization of its own, n2 had the default";
        assert_eq!(disagree.applied, incomplete(detail));
        let part = merge(&[on("n1", given(4)), on("n2", incomplete("step 0"))]);
        assert_eq!(part.applied, incomplete("n2: step 0"));
        let user = |variable: &str| Applied::User {
            variables: vec![variable.into()],
        };
        let users = merge(&[on("n1", user("B")), on("n2", user("A"))]);
        let both = Applied::User {
            variables: vec!["A".into(), "B".into()],
        };
        assert_eq!(users.applied, both);
        let one = merge(&[on("n1", given(4)), on("n2", user("A"))]);
        assert_eq!(one.applied, user("A"));
        let default = merge(&[on("n1", Applied::Default), on("n2", Applied::Default)]);
        assert_eq!(default.applied, Applied::Default);
    }

    #[test]
    fn a_step_whose_end_was_not_seen_leaves_no_elapsed() {
        let unseen = |step_id| Step {
            started_at: None,
            duration_ns: None,
            ..step(step_id, 1, 0)
        };
        for steps in [
            vec![unseen(Step::BATCH)],
            vec![step(0, 1, 3), unseen(1)],
            vec![],
            vec![step(0, 1, u64::MAX / SECOND), step(1, 1, u64::MAX / SECOND)],
        ] {
            let run = merge(&[report("n1", 1, Applied::Default, &steps)]);
            assert_eq!(run.elapsed, None, "{steps:?}");
        }
    }

    fn measured(mut report: FinishRequest, measures: &[(&str, f64)]) -> FinishRequest {
        let owned = measures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        report.measures = owned.collect();
        report
    }

    #[test]
    fn of_seconds_at_the_same_time_the_longest_node_counts_though_not_all_was_measured() {
        let of = |node, seconds, rate| {
            let report = report(node, 2, given(4), &[step(0, 2, 3)]);
            let told = [
                (MARKED, seconds),
                ("objective.rate", rate),
                (MPI_IO_SECONDS, 2.0 * seconds),
                (MPI_IO_READ, 10.0),
            ];
            measured(report, &told)
        };
        let (first, second) = (of("n1", 1.5, 7.0), of("n2", 2.5, 8.0));
        let merged = merge(&[second, first]).measures;
        assert_eq!((merged[MARKED], merged["objective.rate"]), (2.5, 7.0));
        assert_eq!((merged[MPI_IO_SECONDS], merged[MPI_IO_READ]), (5.0, 20.0));
    }

    /// Promise: a wrong gain is reported
    #[test]
    fn where_a_node_does_not_know_all_of_its_mpi_io_nothing_is_told_of_the_runs() {
        let of = |node, measures: &[(&str, f64)]| {
            measured(report(node, 2, given(4), &[step(0, 2, 3)]), measures)
        };
        let knows = of(
            "n1",
            &[(MPI_IO_SECONDS, 2.0), (MPI_IO_READ, 10.0), (MARKED, 1.5)],
        );
        let lost = of("n2", &[(MPI_IO_LOST, 3.0)]);
        let expected = BTreeMap::from([(MARKED.to_owned(), 1.5)]);
        for reports in [[knows.clone(), lost.clone()], [lost, knows]] {
            assert_eq!(merge(&reports).measures, expected);
        }
    }

    #[test]
    fn what_nodes_collect_is_added_up_and_another_measure_is_the_first_nodes() {
        let of = |node: &str, steps: f64, bytes: f64, merit: f64| {
            let measures = [
                (Measure::Steps.as_str(), steps),
                (Measure::AskedWritten.as_str(), bytes),
                ("merit", merit),
            ];
            let steps = [step(0, 2, 3), step(1, 2, 3)];
            measured(report(node, 2, given(4), &steps), &measures)
        };
        let (first, second) = (of("n1", 2.0, 3e9, 7.0), of("n2", 2.0, 5e9, 8.0));
        let together = merge(&[second.clone(), first.clone()]).measures;
        assert_eq!(Measure::AskedWritten.of(&together), 8e9);
        assert_eq!(Measure::Steps.of(&together), 4.0);
        assert_eq!(together["merit"], 7.0);

        // A step that was not measured; a node that measures nothing, as an older one does.
        let older = measured(second.clone(), &[("merit", 8.0)]);
        for partly in [of("n2", 1.0, 5e9, 8.0), older] {
            let merged = merge(&[first.clone(), partly]).measures;
            assert_eq!(merged, BTreeMap::from([("merit".to_owned(), 7.0)]));
        }
        // One without steps has nothing to measure.
        let idle = report("n3", 3, incomplete("no step started on this node"), &[]);
        assert_eq!(merge(&[first, second, idle]).measures, together);
    }

    proptest! {
        /// Attack (values): Times, limits and sums are beyond all bounds.
        /// Outcome: What can be counted is taken.
        #[test]
        fn whatever_nodes_report_in_whatever_order_a_sum_is_finite(
            mut values in prop::collection::vec(prop_oneof![1.0..1e18, Just(f64::MAX), Just(5e-324)], 1..20),
            seed in any::<u64>(),
        ) {
            let nodes = u32::try_from(values.len()).unwrap();
            let of = |values: &[f64]| {
                let reports: Vec<_> = values.iter().enumerate().map(|(node, value)| {
                    let all = Measure::ALL.iter().map(|one| (one.as_str(), *value));
                    let known = [(Measure::Steps.as_str(), 1.0), ("merit", *value)];
                    let all: Vec<_> = all.chain(known).collect();
                    measured(report(&format!("n{node:02}"), nodes, Applied::Default, &[step(0, nodes, 3)]), &all)
                }).collect();
                merge(&reports).measures
            };
            let merged = of(&values);
            prop_assert!(merged.values().all(|value| value.is_finite() && *value > 0.0), "{merged:?}");
            prop_assert_eq!(Measure::Steps.of(&merged), f64::from(nodes));
            let sum: f64 = values.iter().sum();
            let read = Measure::AskedRead.of(&merged);
            prop_assert!(read == sum.min(f64::MAX) || (read - sum).abs() <= sum * 1e-12);
            // The nodes' order by name is another now.
            let by = usize::try_from(seed % u64::from(nodes)).unwrap();
            values.rotate_left(by);
            let again = Measure::AskedRead.of(&of(&values));
            prop_assert!((again - read).abs() <= read * 1e-12 || again == read);
        }
    }

    #[test]
    fn the_worst_word_of_an_epilog_is_kept() {
        let word = |code: &str, limit| {
            Some(EpilogOutcome {
                exit_code: code.into(),
                derived_exit_code: "0:0".into(),
                limit_seconds: limit,
            })
        };
        let mut first = report("n1", 2, Applied::Default, &[step(Step::BATCH, 1, 3)]);
        let mut second = report("n2", 2, Applied::Default, &[]);
        assert_eq!(merge(&[first.clone(), second.clone()]).epilog, None);
        first.epilog = word("0:0", Some(60));
        second.epilog = word("0:125", None);
        assert_eq!(merge(&[first, second]).epilog, word("0:125", Some(60)));
    }
}
