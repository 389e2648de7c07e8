//! The API's requests and answers.

use std::collections::BTreeMap;

use io_autotune_model::{
    Assessment, Elapsed, Finding, Gain, JobName, Next, NotCountedBecause, Objective, Outcome,
    Parametrization, Phase, Pin, Removed, Role, Sluid, Space,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::application::called;
use crate::once::each_once;
use crate::online::{DeliveredOnline, OnlineRecord};
use crate::request::Request;
use crate::setting::SettingKind;

/// Runs of a page, at most. Pages are short because the others' requests wait for the processor
/// that makes one.
pub const RUNS_PAGE: u32 = 100;

/// Studies of a page, at most.
pub const STUDIES_PAGE: u32 = 250;

/// Orders of a page, at most.
pub const ORDERS_PAGE: u32 = 100;

/// Bytes of a piece of an import, at most.
pub const IMPORT_CHUNK: usize = 512 * 1024;
/// Pieces of an import, at most: 64 MiB, which are written well within the life of a connection.
pub const IMPORT_CHUNKS: u32 = 128;

/// A job, as root on its node sees it in the prolog's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// How often the job was restarted: 0 for the first launch.
    pub restart_count: u32,
    /// Slurm's id of this launch, which it never gives again (Slurm 25.11 on).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sluid: Option<Sluid>,
    /// The owner's user id.
    pub uid: u32,
    /// The job's group id.
    pub gid: u32,
    /// The user's login name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The node that sends the request.
    pub node: String,
    /// The number of nodes of the job.
    pub nodes: u32,
    /// The partition.
    pub partition: String,
    /// CPUs per node in Slurm's own notation, such as `8(x2)`.
    pub cpus_per_node: String,
}

/// `POST /v1/preview`: a user asks what would happen to a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// The user's request.
    pub request: Request,
}

/// `GET /v1/applications/rules`: the site's rules, by which a job's name becomes an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplicationRules {
    /// The file on the service's host; absent: the built-in rules.
    pub file: Option<String>,
    /// The rules, as TOML.
    pub text: String,
}

/// `GET /v1/applications/names`: the job names of the runs of the last 30 days, most frequent first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobNames {
    /// The names, at most 10,000.
    pub names: Vec<JobName>,
    /// Whether there are more.
    pub more: bool,
}

/// The answer to a preview.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PreviewAnswer {
    /// One line for the user's terminal.
    pub line: String,
}

/// `POST /v1/runs/start`: root, in the prolog, asks for a job's parametrization.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// The job.
    pub job: Job,
    /// The user's request.
    pub request: Request,
    /// The job's time limit in seconds, if this Slurm tells it to the prolog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// When this launch began, by slurmctld's clock, if this Slurm tells it to the prolog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// What the node says of itself, for `doctor`. Nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_state: Option<NodeState>,
}

/// How a node is, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeState {
    /// The helper's version.
    pub version: String,
    /// When it was told, by the node's clock.
    pub told_at: Timestamp,
    /// The plugin's arguments in plugstack.conf, in alphabetical order, if the line is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Vec<String>>,
    /// The reports that wait in the spool.
    pub waiting: u32,
    /// The age of the oldest of them, in seconds.
    pub oldest_seconds: u64,
    /// The reports that the service has refused.
    pub refused: u32,
    /// Why the spool cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool_problem: Option<String>,
}

/// What a job gets. Every question about one launch of one job has the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartAnswer {
    /// The run.
    pub run_id: i64,
    /// The study's phase; `settled` of a run whose role was drawn, by which nodes tell nobody of it.
    pub phase: Phase,
    /// The run's role in it.
    pub role: Role,
    /// The parametrization of the run.
    pub parametrization: Parametrization,
    /// Why this parametrization, in one sentence.
    pub reason: String,
    /// How the parametrization reaches the job.
    pub delivery: Delivery,
    /// What became of its directives. Absent: nobody has said that they were completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directives: Option<CompletedDirectives>,
}

/// What became of the directives of a job's burst buffer, which slurmctld's host completes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletedDirectives {
    /// The names that the user had written. They were left alone.
    pub kept: Vec<String>,
}

/// `POST /v1/runs/directives`: the burst buffer's account says that a job's buffer was set up with
/// completed directives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectivesRequest {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// How often the job was restarted.
    pub restart_count: u32,
    /// The run, as the start's answer names it.
    pub run_id: i64,
    /// What became of them.
    pub directives: CompletedDirectives,
}

impl DirectivesRequest {
    /// The most names.
    pub const MOST: usize = 64;
}

/// The answer to a [`DirectivesRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectivesAnswer {
    /// The run that it is stored with.
    pub run_id: i64,
}

/// How a parametrization reaches a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Environment variables to set, unless the user has set them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<DeliveredVariable>,
    /// Files to write into the job's own directory. A variable names each to the application.
    #[serde(default)]
    pub files: Vec<DeliveredFile>,
    /// Settings of the node. Root changes them on every node of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<DeliveredSetting>,
    /// A command of the site. It starts a service for the job on each node and stops it afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<DeliveredCommand>,
    /// Directives with which the job's burst buffer directives are completed before its prologs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<DeliveredDirective>,
    /// Tuning inside the job, on each of its nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<DeliveredOnline>,
    /// What a profiling library in the job reads back, into a file that the node provides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_back: Vec<ReadBack>,
    /// Variables that keep the user's value if the user has set one.
    pub watch: Vec<String>,
    /// Names of burst buffer directives that keep the user's value if the user has written one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch_directives: Vec<String>,
}

impl Delivery {
    /// The names of the variables to set, with those that name files.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let set = self
            .environment
            .iter()
            .map(|variable| variable.name.as_str());
        set.chain(self.filled_files().map(|file| file.variable.as_str()))
    }

    /// The files that carry something: an [empty one](DeliveredFile::is_sign) does not.
    pub fn filled_files(&self) -> impl Iterator<Item = &DeliveredFile> {
        self.files.iter().filter(|file| !file.is_sign())
    }

    /// Whether there is nothing to deliver: the job runs as without the tuner.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.environment.is_empty()
            && self.filled_files().next().is_none()
            && self.settings.is_empty()
            && self.command.is_none()
            && self.directives.is_empty()
            && self.online.is_none()
    }
}

/// A parameter whose value can be read back from the accelerator in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadBack {
    /// The parameter.
    pub parameter: String,
    /// The accelerator's name for it.
    pub name: String,
    /// The value that the job was given. Absent: none was given, and any value is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Whether the value is an upper limit: a smaller number is then as given.
    #[serde(default)]
    pub at_most: bool,
}

/// The observed value of a parameter that a [`ReadBack`] asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservedParameter {
    /// The parameter.
    pub parameter: String,
    /// The accelerator's name for it.
    pub name: String,
    /// The value that the job was given; absent if none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The value in force. Several values are separated by `, `.
    pub in_force: String,
    /// Whether the value in force is as given, or none was given.
    pub as_asked: bool,
}

/// One environment variable of a [`Delivery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredVariable {
    /// Its name.
    pub name: String,
    /// Its value: printable text.
    pub value: String,
}

/// One directive of a [`Delivery`]: a word `NAME=VALUE` of a burst buffer's directive line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredDirective {
    /// Its name.
    pub name: String,
    /// Its value: one word.
    pub value: String,
}

/// Whether a burst buffer's directive can have this name. Scripts and shells may read it.
#[must_use]
pub fn is_directive_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Whether a burst buffer's directive can have this value: one word that no shell acts on.
#[must_use]
pub fn is_directive_value(value: &str) -> bool {
    (1..=64).contains(&value.len())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | ':' | '%'))
}

/// One setting of a [`Delivery`]. A node changes it only if its own configuration allows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredSetting {
    /// Where the setting is.
    pub kind: SettingKind,
    /// Its name there.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The command of a [`Delivery`]. A node runs it only if its own configuration has that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredCommand {
    /// Its name in the node's configuration.
    pub name: String,
    /// Its environment, besides what the node tells it about the job.
    pub environment: Vec<DeliveredVariable>,
    /// Variables of the job that it may set by printing `NAME=VALUE`.
    pub provides: Vec<String>,
}

/// One file of a [`Delivery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredFile {
    /// The file's name: one plain component.
    pub name: String,
    /// The environment variable that names it to the application.
    pub variable: String,
    /// Its text.
    pub content: String,
    /// A file that the application reads where the variable names none: on a node that has it this
    /// one is not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_exists: Option<String>,
}

impl DeliveredFile {
    /// Whether it is empty: it changes nothing, and whether it is read shows whether the job uses
    /// the accelerator.
    #[must_use]
    pub fn is_sign(&self) -> bool {
        self.content.is_empty()
    }
}

/// The state of a variable in the steps of one job on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableState {
    /// The plugin set it, and it was in force.
    Set,
    /// The user had set or removed it; the plugin left it alone.
    User,
    /// Nobody set it.
    Absent,
}

/// One step of a job on one node, as the plugin recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Slurm's step id; the batch step is [`Step::BATCH`].
    pub step_id: u32,
    /// When it started on this node, by the node's clock. Told only where steps may overlap: by a job
    /// that has several of them and no batch step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Nanoseconds of the node's monotonic clock, from the step's start until its last task ended
    /// on this node. Absent if the end was not seen.
    pub duration_ns: Option<u64>,
    /// The first non-zero wait status of its tasks, else 0.
    pub wait_status: i32,
    /// The number of nodes of the step; each of them reports its part.
    #[serde(default = "Step::one_node")]
    pub nodes: u32,
    /// The state of each variable.
    pub variables: BTreeMap<String, VariableState>,
}

impl Step {
    /// The batch step's id (SLURM_BATCH_SCRIPT in slurm.h).
    pub const BATCH: u32 = 0xffff_fffb;

    fn one_node() -> u32 {
        1
    }
}

/// How the job ended, as slurmd tells the epilog. Not final: cancelled, timed-out and preempted
/// jobs mostly look successful here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EpilogOutcome {
    /// SLURM_JOB_EXIT_CODE2: the batch script's exit code and signal, such as `0:0`.
    pub exit_code: String,
    /// SLURM_JOB_DERIVED_EC: the highest exit code of the steps, in the same form.
    pub derived_exit_code: String,
    /// The job's time limit in seconds, if this Slurm tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
}

/// What was applied to a job on one node. It decides which parametrization a run counts for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Applied {
    /// Nothing was to be applied and nothing was: a run of the default.
    Default,
    /// This parametrization, in every step.
    Parametrization {
        /// The parametrization.
        parametrization: Parametrization,
    },
    /// In at least one step the user had own settings, which were left alone.
    User {
        /// The variables that were the user's.
        variables: Vec<String>,
    },
    /// The delivery did not reach every step.
    Incomplete {
        /// What was missing.
        detail: String,
    },
}

/// `POST /v1/runs/finish`: root, in the epilog, reports how a job went on its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The job.
    pub job: Job,
    /// The user's request: with it, a finish without a start can be recorded too.
    pub request: Request,
    /// The run, if the start had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// When the job's prolog ran on this node, by the node's clock, if known. If the start had no
    /// answer, this tells launches with the same job id apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolog_at: Option<Timestamp>,
    /// Why the start had no answer, if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_failure: Option<String>,
    /// What was applied.
    pub applied: Applied,
    /// The steps that ran on this node.
    pub steps: Vec<Step>,
    /// The settings that the job was given on this node, as read back from the kernel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_force: BTreeMap<String, String>,
    /// Observed values that a profiling library in the job read back ([`Delivery::read_back`]).
    #[serde(
        default,
        rename = "told",
        alias = "observed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub observed: Vec<ObservedParameter>,
    /// What tuning inside the job did on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineRecord>,
    /// What slurmd told the epilog, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<EpilogOutcome>,
    /// Positive numbers by name, at most 64: what the steps on this node read, wrote and computed
    /// ([`Measure`](io_autotune_model::Measure)), an application's own figure of merit.
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
}

/// The answer to a finish: the report is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishAnswer {
    /// The run that the report belongs to.
    pub run_id: i64,
    /// Whether the report had been stored before; it counts once.
    pub duplicate: bool,
}

/// `POST /v1/runs/over`: root on a node asks about launches that no epilog has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OverRequest {
    /// The runs of these launches, at most 10,000.
    pub runs: Vec<i64>,
}

/// The answer: the runs that are over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverAnswer {
    /// Runs whose outcome record has been known for a minute, and runs that were given up.
    pub over: Vec<i64>,
}

/// `POST /v1/outcomes`: the collector delivers what Slurm's job-completion script wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomesRequest {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// The outcome records, at most [`OutcomesRequest::MOST`].
    pub outcomes: Vec<Outcome>,
}

impl OutcomesRequest {
    /// The most outcome records in one request.
    pub const MOST: usize = 1000;
}

/// The answer to [`OutcomesRequest`]: the records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomesAnswer {
    /// How many records were new.
    pub stored: u64,
    /// How many records had been stored before.
    pub duplicates: u64,
}

/// A file of the nightly report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReportFileName {
    /// The HTML page.
    #[serde(rename = "index.html")]
    Page,
    /// The whole report as data.
    #[serde(rename = "report.json")]
    Json,
    /// One row for each study.
    #[serde(rename = "studies.csv")]
    Studies,
    /// One row for each application, user, account and accelerator.
    #[serde(rename = "groups.csv")]
    Groups,
    /// The text of the mail.
    #[serde(rename = "mail.txt")]
    Mail,
}

io_autotune_model::words!(
    ReportFileName, "report file",
    Page => "index.html",
    Json => "report.json",
    Studies => "studies.csv",
    Groups => "groups.csv",
    Mail => "mail.txt",
);

/// `GET /v1/report/{file}`: a file of the latest nightly report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportFile {
    /// The night's name, such as `2026-11-20`.
    pub night: String,
    /// The file's text.
    pub content: String,
}

/// `GET /v1/accelerators`: one accelerator of the list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorSummary {
    /// The name that users type.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Whether it is used if the request names none.
    pub is_default: bool,
    /// Its parameters, by name.
    pub parameters: Vec<String>,
    /// What it needs besides a request: `exclusive`, `root`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What it was tested on. Absent: only its delivery was tested, on a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_on: Option<String>,
}

/// `GET /v1/accelerators/{name}`: one accelerator in full.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorDetail {
    /// Its entry in the list.
    #[serde(flatten)]
    pub summary: AcceleratorSummary,
    /// A paragraph about it.
    pub description: String,
    /// When a parameter takes effect.
    pub takes_effect: String,
    /// Its parameters and constraints, as in the catalogue file.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// How parametrizations are delivered, one line each.
    pub delivery: Vec<String>,
    /// What its studies search in, and how many they are. Told to admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<Vec<SpaceInUse>>,
}

/// Studies that search in the same space, which an earlier catalogue file may have described.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceInUse {
    /// Parameters and constraints.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// Whether they have settled.
    pub settled: bool,
    /// How many there are.
    pub studies: u64,
}

/// The gain for clients before 0.2. Newer ones read [`Assessment::gain`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GainSummary {
    /// 1 - tuned/default: 0.25 means that a quarter of the time is saved.
    pub gain: f64,
    /// The ends of its interval, valid for all looks at the study together.
    pub interval: (f64, f64),
    /// Whether a gain or a loss is claimed.
    pub resolved: bool,
}

impl GainSummary {
    /// The summary of a gain, if the gain has an interval.
    #[must_use]
    pub fn of(gain: &Gain) -> Option<Self> {
        Some(Self {
            gain: gain.share?,
            interval: gain.low.zip(gain.high)?,
            resolved: gain.verdict.is_resolved(),
        })
    }
}

/// The time that exploring has cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RegretSummary {
    /// In runs of the default: the most that it was estimated to be in the epoch, which never falls.
    pub runs: f64,
    /// What is expected by all that is known now, which the budget bounds.
    #[serde(default)]
    pub expected: f64,
    /// The budget by now, in runs of the default.
    pub budget: f64,
    /// In node-seconds; null before a run of the default has counted.
    pub node_seconds: Option<f64>,
}

/// A parametrization's runs in an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestedSummary {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The values that differ from the default.
    pub differs: Parametrization,
    /// Its counted runs; null before one has counted.
    pub elapsed: Option<Elapsed>,
    /// Runs that a time limit ended.
    pub censored: u64,
    /// Runs that failed under it.
    pub failed: u64,
    /// Why it is quarantined, if it is.
    pub quarantined: Option<String>,
}

/// `GET /v1/studies/{id}`: a study with its space and all that it has tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StudyDetail {
    /// The study.
    pub study: StudySummary,
    /// The epoch's space, as in the catalogue file.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// How many parametrizations the space has, or at least so many.
    pub size: u64,
    /// Those of two counted runs or more, the quickest mean first; then those of one; then the others.
    pub tested: Vec<TestedSummary>,
    /// What the parameters explain of the epoch's times; an older service does not say.
    pub importance: Option<ImportanceSummary>,
}

/// What the parameters explain of the spread of log elapsed, by the study's surrogate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportanceSummary {
    /// Why nothing is said, in words.
    pub silent: Option<String>,
    /// The share of the spread between parametrizations that the surrogate foretells of one from
    /// the others: 1 is all of it, 0 and less nothing. `None` if it was not asked.
    pub skill: Option<f64>,
    /// The parameter that explains most first; empty if nothing is said.
    pub shares: Vec<ImportanceShare>,
}

/// What a parameter explains of the expected spread over the values that ran, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportanceShare {
    /// The parameter.
    pub parameter: String,
    /// By itself, whatever the others are.
    pub alone: f64,
    /// With its interactions, so at least as much; all together may exceed 1.
    pub in_all: f64,
}

/// A parametrization that is not run again, because jobs fail under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineSummary {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The values that differ from the default.
    pub differs: Parametrization,
    /// Why, in words.
    pub why: String,
}

/// How an epoch was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OpenedSummary {
    /// When, by the database's clock.
    pub at: Timestamp,
    /// Why, in one sentence; after a drift, what changed.
    pub why: String,
    /// What it took from the previous epoch: `nothing`, `ranks` or `runs`.
    pub takes: String,
    /// The drift that opened it, if any, with the settings it was found with.
    pub drift: Option<serde_json::Value>,
}

/// A study as `status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StudySummary {
    /// The study's number.
    pub study_id: i64,
    /// Slurm's ClusterName, where the service has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The application's name.
    pub application: String,
    /// What the application is called in full, if its name is not all of it: the job's name that
    /// squeue shows, or what a rule makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// Its owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The account that the latest run was charged to of which it is known.
    pub account: Option<String>,
    /// The study's context: the facets that make runs incomparable, by name.
    pub context: BTreeMap<String, String>,
    /// What the epoch makes small, or large with ` maximised` after it: `elapsed`, `marked_seconds` or
    /// `objective.NAME`. Means and gains are of it.
    #[serde(default)]
    #[schema(value_type = String)]
    pub objective: Objective,
    /// The epoch, from 1.
    pub epoch: i32,
    /// How the epoch was opened.
    pub opened: OpenedSummary,
    /// The phase.
    pub phase: Phase,
    /// What the next run gets, by which rule, and until when. Null from a service before 0.4.
    #[serde(default)]
    pub next: Option<Next>,
    /// The epoch's counted runs.
    pub counted: i64,
    /// The epoch's runs that ended and do not count.
    pub not_counted: i64,
    /// The epoch's runs in flight.
    pub in_flight: i64,
    /// Ended exploring runs, and their budget; runs that confirm the best come on top.
    pub explored: (u64, u32),
    /// All counted runs of the default in the epoch, whatever they were for.
    pub default: Option<Elapsed>,
    /// Counted control runs since the study settled: the tuned runs are compared with these.
    pub control: Option<Elapsed>,
    /// Counted runs of the recommended parametrization since the study settled.
    pub tuned: Option<Elapsed>,
    /// The gain of the tuned runs over the control runs, for clients before 0.2.
    pub gain: Option<GainSummary>,
    /// The gain with its evidence, and the findings. Absent from a service before 0.2.
    pub assessment: Option<Assessment>,
    /// The parametrization recommended now.
    pub recommended: Option<Parametrization>,
    /// The values that differ from the default.
    pub differs: Parametrization,
    /// Why it is recommended, in one sentence.
    pub why: String,
    /// Set while the study is pinned.
    pub pin: Option<Pin>,
    /// What every run gets by an order or the study's pin: `off`, `pinned` or `frozen`; null if
    /// nothing is ordered.
    pub ordered: Option<String>,
    /// The order, or the study's own pin, by which they get it. Null from a service before 0.3.
    pub decided_by: Option<OrderSummary>,
    /// In the answer to a change of the study: the change's line of the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// Its jobs are only observed: their name says nothing of the program, and none counts.
    #[serde(default)]
    pub nameless: bool,
    /// What exploring has cost in the epoch. Null from a service before 0.3.
    pub regret: Option<RegretSummary>,
    /// The epoch's runs that were started in the last seven days.
    #[serde(default)]
    pub lately: i64,
    /// The parametrizations that are quarantined in the epoch.
    #[serde(default)]
    pub quarantined: Vec<QuarantineSummary>,
    /// Problems of the whole study and what to do: mixed work, for example, or no headroom.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Set if the study hears others, by a rule of the site.
    pub sharing: Option<SharingSummary>,
}

/// The other users' studies that a study hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharingSummary {
    /// By what they share: `group G` or `account A`.
    pub by: String,
    /// How many others have runs that ended.
    pub others: usize,
    /// Their counted runs.
    pub runs: u64,
    /// Whether these decide with the study's own.
    pub together: bool,
    /// Why they do not, in one sentence; empty if they do.
    #[serde(default)]
    pub why: String,
    /// Login names or uids, if the site shows them.
    #[serde(default)]
    pub members: Vec<String>,
}

impl StudySummary {
    /// Its application for people: the name, and what it is called in full.
    #[must_use]
    pub fn application_called(&self) -> String {
        called(&self.application, self.full_name.as_deref())
    }

    /// The progress of the search, in words.
    #[must_use]
    pub fn progress(&self) -> String {
        let (explored, budget) = self.explored;
        let within = explored.min(u64::from(budget));
        let confirming = match explored - within {
            0 => String::new(),
            more => format!(", {more} more to confirm the best"),
        };
        format!("{within} of {budget} exploring runs done{confirming}")
    }
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Started, or waiting for its report or its outcome record.
    InFlight,
    /// It counts for a parametrization.
    Counted,
    /// Its time limit ended it: its elapsed is a lower bound.
    Censored,
    /// It ended and does not count; the verdict says why.
    NotCounted,
}

io_autotune_model::words!(
    RunState, "state of a run",
    InFlight => "in_flight",
    Counted => "counted",
    Censored => "censored",
    NotCounted => "not_counted",
);

/// A run as `history` shows it. Whether a settled study's run is a control run is drawn at its start
/// and told once it has ended, for who knows may cancel it: until then what tells it is null, for
/// all but admins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// The run's number.
    pub run_id: i64,
    /// The study.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// What the application is called in full, if its name is not all of it: the job's name that
    /// squeue shows, or what a rule makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator. Empty from a service before 0.3.
    #[serde(default)]
    pub accelerator: String,
    /// How many nodes it had, if known.
    pub nodes: Option<u32>,
    /// The epoch, from 1.
    pub epoch: i32,
    /// When the epoch was opened, by the database's clock.
    pub epoch_opened_at: Timestamp,
    /// Why the epoch was opened, in one sentence.
    pub epoch_opened_why: String,
    /// What the epoch makes small or large, as in a study.
    #[serde(default)]
    #[schema(value_type = String)]
    pub objective: Objective,
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// The restart count.
    pub restart_count: u32,
    /// The node that started it.
    pub node: String,
    /// The study's phase at its start.
    pub phase: Phase,
    /// Its role. Null: told once the run has ended.
    pub role: Option<Role>,
    /// The parametrization that it was launched under. Null: told once the run has ended.
    pub parametrization: Option<Parametrization>,
    /// The values that differ from the default. Null: told once the run has ended.
    pub differs: Option<Parametrization>,
    /// Why this parametrization, in one sentence; it may tell what was in flight at the start. Null:
    /// told once the run and those drawn before it in its epoch have ended.
    pub reason: Option<String>,
    /// Its state.
    pub state: RunState,
    /// Why it counts or does not.
    pub verdict: Option<String>,
    /// Why it does not count, of the list in docs/run.md. Null of other runs, and of runs that a service
    /// before 0.4 judged.
    #[serde(default)]
    pub not_counted_because: Option<NotCountedBecause>,
    /// Slurm's job state at its end, such as `COMPLETED`.
    pub outcome: Option<String>,
    /// What was applied; like its role.
    pub applied: Option<Applied>,
    /// Seconds, by the node's monotonic clock.
    pub elapsed: Option<f64>,
    /// The first non-zero wait status of its steps, else 0.
    pub wait_status: Option<i32>,
    /// Positive numbers by name: what its steps read, wrote and computed together, and what else
    /// the job left; none as long as its role is null.
    pub measures: BTreeMap<String, f64>,
    /// When it started, by the database's clock.
    pub started_at: Timestamp,
    /// When its report came.
    pub finished_at: Option<Timestamp>,
    /// Why its parametrization is quarantined; only in lists of one application or study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
}

impl RunSummary {
    /// Its application for people: the name, and what it is called in full.
    #[must_use]
    pub fn application_called(&self) -> String {
        called(&self.application, self.full_name.as_deref())
    }
}

/// `GET /v1/runs/{job_id}`: one run with the inputs of its suggestion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// The run.
    pub run: RunSummary,
    /// What the user asked for, and the rule that made the application of the job's name. Absent
    /// from a service before 0.2.
    pub request: Option<Request>,
    /// The inputs of the suggestion: seed, settings, engine version, runs in flight. Null: like its
    /// reason.
    pub suggestion: serde_json::Value,
    /// What was expected of it at its start: the counted runs of its parametrization by then. Null:
    /// there were none, or like its reason.
    pub expected: Option<Elapsed>,
    /// The counted runs of the default by then; like `expected`.
    pub default_then: Option<Elapsed>,
    /// Without the noise that how others fared meanwhile explains. Null: nothing is known of others,
    /// the run is of an earlier epoch, or like its role.
    pub cleaned: Option<Cleaned>,
    /// How the parametrization was delivered. Null: told once the run has ended.
    pub delivery: Option<Delivery>,
    /// The node reports, as received; none as long as its role is null.
    pub reports: Vec<serde_json::Value>,
    /// What is known of its study now.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The order, or the study's own pin, that decided it. Null: none did, or like its reason.
    pub decided_by: Option<OrderSummary>,
    /// Other studies, from whose knowledge it could be chosen. Null: none were, or like its reason.
    pub begun_from: Option<BegunFrom>,
}

/// A run and its parametrization, as if others had taken as long as ever meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cleaned {
    /// What the run would have taken, or come to; null before its end, or if nothing is known of
    /// others while it ran.
    pub took: Option<f64>,
    /// What is estimated of its parametrization by now, with the surrogate's 95 % interval.
    pub estimate: Elapsed,
    /// The share of the noise's variance that how others fared explains, 0 to 1.
    pub share: f64,
}

/// Other studies of a run's accelerator that its choice could begin from (docs/priors.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BegunFrom {
    /// How many they are.
    pub studies: u64,
    /// Those of them that are the asker's own; an admin and an operator see all.
    pub seen: Vec<NamedStudy>,
}

/// A study by its number and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedStudy {
    /// Its number.
    pub id: i64,
    /// Its application.
    pub application: String,
}

/// `POST /v1/studies/{id}/pin`: fixes the parametrization of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// Values as text, by parameter; other parameters keep the default. Absent: the recommendation.
    #[serde(default, deserialize_with = "each_once")]
    pub values: Option<BTreeMap<String, String>>,
    /// It is in force before; absent: until the study is unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// Which studies an order is about. Absent: any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OrderScope {
    /// The study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub study: Option<i64>,
    /// The owner's uid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The application's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// The accelerator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// The cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// What is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Every run gets the same values. Of several studies: a pin of one is its own.
    Pin,
    /// Every run gets the best known; nothing is explored.
    Freeze,
    /// Runs are measured, and nothing is applied.
    Off,
}

/// `POST /v1/orders` and `/v1/orders/end`: steers all studies of a scope, those that begin later
/// too. A user's scope is their own studies, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    /// What.
    pub kind: OrderKind,
    /// Which studies.
    #[serde(default)]
    pub scope: OrderScope,
    /// Of a pin: values as text, by parameter; other parameters keep the default.
    #[serde(
        default,
        deserialize_with = "each_once",
        skip_serializing_if = "Option::is_none"
    )]
    pub values: Option<BTreeMap<String, String>>,
    /// It is in force before; absent: until it is ended. An end has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Change nothing; say what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// A study that an order is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Affected {
    /// The study.
    pub study_id: i64,
    /// Slurm's ClusterName, where the service has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The application's name.
    pub application: String,
    /// Its owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// What its runs get now, in words.
    pub now: String,
    /// What they get then, in words; the same if it changes nothing.
    pub then: String,
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAnswer {
    /// The order's number. Null: a dry run, or an end of an order that is not in force.
    pub order_id: Option<i64>,
    /// The change's line of the audit. Null: like the number.
    pub line: Option<i64>,
    /// The studies of the scope: those that begin later are not listed.
    pub studies: Vec<Affected>,
    /// There are more than are listed.
    pub more: bool,
}

/// `GET /v1/orders`: an order in force. Elsewhere also one that has ended, or a study's own pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderSummary {
    /// Its number. Null: a study's own pin.
    pub order_id: Option<i64>,
    /// What.
    pub kind: OrderKind,
    /// Which studies.
    pub scope: OrderScope,
    /// Of a pin: its values.
    pub values: Option<BTreeMap<String, String>>,
    /// Who ordered it.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// Why.
    pub why: String,
    /// When.
    pub at: Timestamp,
    /// It is in force before; null: until it is ended.
    pub until: Option<Timestamp>,
    /// It is in force no more.
    #[serde(default)]
    pub is_over: bool,
    /// Whether who asks may end it.
    #[serde(default)]
    pub may_end: bool,
}

/// A suggestion, as given or as recomputed from its stored inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Suggested {
    /// The phase.
    pub phase: Phase,
    /// The run's role in it.
    pub role: Role,
    /// The parametrization of the run.
    pub parametrization: Parametrization,
    /// Why, in one sentence.
    pub reason: String,
}

/// `GET /v1/runs/{job_id}/replay`: whether the stored inputs give a launch's suggestion again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Replay {
    /// The run.
    pub run_id: i64,
    /// The restart count.
    pub restart_count: u32,
    /// The suggestion that the run was given. Null: told once the run and those drawn before it in
    /// its epoch have ended.
    pub given: Option<Suggested>,
    /// The engine's suggestion now. Null if the run has none, or one that cannot be recomputed or told.
    pub recomputed: Option<Suggested>,
    /// Whether they are the same.
    pub same: bool,
    /// A remark, such as another engine version, or why nothing can be recomputed.
    pub note: Option<String>,
}

/// The result of a check of `doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// All is well.
    Ok,
    /// Something needs attention.
    Warning,
    /// Something is wrong.
    Failed,
}

/// One check of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How it went.
    pub state: CheckState,
    /// What was found.
    pub detail: String,
    /// What to do, unless all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: CheckState::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    /// Something needs attention, and what to do.
    pub fn warning(
        name: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: CheckState::Warning,
            fix: Some(fix.into()),
            ..Self::ok(name, detail)
        }
    }

    /// Something is wrong, and what to do.
    pub fn failed(
        name: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            state: CheckState::Failed,
            ..Self::warning(name, detail, fix)
        }
    }
}

/// The arguments of the plugin on some nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginOnNodes {
    /// In alphabetical order: `key=value`.
    pub arguments: Vec<String>,
    /// The nodes that have told these last.
    pub nodes: Vec<String>,
}

/// `GET /v1/doctor`: the service's own checks. For admins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The service's version.
    pub version: String,
    /// The checks.
    pub checks: Vec<Check>,
    /// When it was made, by the service's clock. Null from a service before 0.3.
    pub time: Option<Timestamp>,
    /// What the nodes have told of their plugin.
    #[serde(default)]
    pub plugins: Vec<PluginOnNodes>,
}

/// `POST /v1/studies/{id}/unpin`, `/reset` and `/accept`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// `POST /v1/studies/{study_id}/objective`: what the study makes small or large from now on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveRequest {
    /// `elapsed`, `marked`, or the NAME of a measure that jobs report themselves.
    pub objective: String,
    /// More is better: only of a measure of the application's own.
    #[serde(default)]
    pub maximise: bool,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// `POST /v1/studies/{study_id}/warm-start`: begin with what another study has learnt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmStartRequest {
    /// The other study, of the same accelerator.
    pub from: i64,
    /// Change nothing; say what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// The answer to a [`WarmStartRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WarmStartAnswer {
    /// The study as it is now.
    pub study: StudySummary,
    /// The other study.
    pub from: i64,
    /// The other study's application.
    pub from_application: String,
    /// What the study's epoch begins with, the best first: where each differs from the default.
    pub inherited: Vec<Parametrization>,
    /// The new epoch's number; `None`: nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i32>,
}

/// `POST /v1/retention`: remove runs that no study needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionRequest {
    /// Those older than so many days, at least 30; as `[retention]` of service.toml has it, if left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_days: Option<u32>,
    /// Change nothing; say what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// The answer to a [`RetentionRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionAnswer {
    /// Older than so many days.
    pub older_than_days: u32,
    /// What was removed, or would be.
    #[serde(flatten)]
    pub removed: Removed,
    /// There may be more: ask again.
    pub more: bool,
}

/// `GET /v1/ready`: whether the service is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether the service can serve requests.
    pub ready: bool,
    /// What is missing, if anything.
    pub problems: Vec<String>,
    /// The service's version.
    pub version: String,
}

/// The body of every refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// A stable word for programs.
    pub code: String,
    /// What was asked, what is wrong, what to do.
    pub message: String,
}

/// `GET /v1/studies/{id}/export`: a page of a study as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportPage {
    /// The version of the format.
    pub version: u32,
    /// Lines of the format of `docs/transfer.md`, without header and end.
    pub lines: Vec<String>,
    /// Where the next page begins; none after the last one.
    pub next: Option<String>,
}

/// `POST /v1/imports/{upload}`: a piece of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportChunk {
    /// Its place in the file, from 0.
    pub place: u32,
    /// Its text, 512 KiB at the most.
    pub text: String,
}

/// What is to be done with the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportStep {
    /// Say what would be imported. The pieces stay.
    Look,
    /// Import it, all or nothing.
    Import,
    /// Remove the pieces.
    Discard,
}

/// `POST /v1/imports/{upload}/end`: what is to be done with the pieces.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// How many there are.
    pub chunks: u32,
    /// What is to be done.
    pub step: ImportStep,
    /// Leave out the studies that exist. Otherwise they make the service refuse the file.
    #[serde(default)]
    pub skip_existing: bool,
    /// Whose studies they become; the service's only cluster's, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Why, for the audit table. It may be left out, or empty, where nobody but the caller is concerned.
    #[serde(default)]
    pub why: String,
}

/// What was, or would be, imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportAnswer {
    /// The studies of the file; none of what was laid down or removed.
    pub studies: Vec<ImportedStudy>,
}

/// A study of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedStudy {
    /// Its number here; none before it is imported.
    pub study_id: Option<i64>,
    /// The application's name.
    pub application: String,
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// What makes runs incomparable, such as nodes and partition.
    pub context: BTreeMap<String, String>,
    /// How many epochs it has.
    pub epochs: u64,
    /// How many runs.
    pub runs: u64,
    /// It is left out, because it exists.
    pub skipped: bool,
}
