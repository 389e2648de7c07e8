//! The requests and answers of the API.

use std::collections::BTreeMap;

use io_autotune_model::{
    Assessment, BudgetOf, Elapsed, Finding, Gain, JobName, Next, NotCountedBecause, Objective,
    Outcome, Parametrization, Phase, Pin, Ratio, Removed, Role, Sluid, Space,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::application::called;
use crate::online::{DeliveredOnline, OnlineRecord};
use crate::request::Request;
use crate::setting::SettingKind;
use crate::unique_names::each_once;

/// The most runs of a page. Pages are short because other requests wait for the processor that
/// makes one.
pub const RUNS_PAGE: u32 = 100;

/// The most studies of a page.
pub const STUDIES_PAGE: u32 = 500;

/// The most orders of a page.
pub const ORDERS_PAGE: u32 = 100;

/// The most bytes of a piece of an import.
pub const IMPORT_CHUNK: usize = 512 * 1024;
/// The most pieces of an import: 64 MiB, which are written well within the life of a connection.
pub const IMPORT_CHUNKS: u32 = 128;

/// A job, as root on its node sees it in the prolog's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// The number of times that the job was restarted: 0 for the first launch.
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
    /// True if there are more.
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
    /// The job's time limit in seconds, if the prolog of this Slurm version has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// The start of this launch by slurmctld's clock, if the prolog of this Slurm version has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The node's state, for `doctor`. Nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_state: Option<NodeState>,
}

/// The state of a node, as the node itself describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeState {
    /// The helper's version.
    pub version: String,
    /// The time of this description, by the node's clock.
    pub told_at: Timestamp,
    /// The plugin's arguments in plugstack.conf, in alphabetical order, if the line was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Vec<String>>,
    /// The number of reports that wait in the spool.
    pub waiting: u32,
    /// The age of the oldest of them, in seconds.
    pub oldest_seconds: u64,
    /// The number of reports that the service has refused.
    pub refused: u32,
    /// The reason why the spool cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool_problem: Option<String>,
}

/// The parametrization of a job. Every request for the same launch of a job gets the same answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartAnswer {
    /// The run.
    pub run_id: i64,
    /// The study's phase. For a run whose role was drawn it is `settled`, so that nodes know not to
    /// show the role.
    pub phase: Phase,
    /// The run's role in that phase.
    pub role: Role,
    /// The parametrization of the run.
    pub parametrization: Parametrization,
    /// Why this parametrization, in one sentence.
    pub reason: String,
    /// How the parametrization reaches the job.
    pub delivery: Delivery,
    /// The result of completing the burst buffer's directives. Absent: nobody has reported that
    /// they were completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directives: Option<CompletedDirectives>,
}

/// The result of completing the directives of a job's burst buffer, which slurmctld's host does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompletedDirectives {
    /// The names that the user had written, whose values were left alone.
    pub kept: Vec<String>,
}

/// `POST /v1/runs/directives`: the account of the burst buffer reports that a job's buffer was set
/// up with completed directives.
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
    /// The result of completing the directives.
    pub directives: CompletedDirectives,
}

impl DirectivesRequest {
    /// The most names.
    pub const MOST: usize = 64;
}

/// The answer to a [`DirectivesRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectivesAnswer {
    /// The run with which the result is stored.
    pub run_id: i64,
}

/// How a parametrization reaches a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Environment variables to set, unless the user has set them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<DeliveredVariable>,
    /// Files to write into the job's own directory. For each a variable tells the application its
    /// path.
    #[serde(default)]
    pub files: Vec<DeliveredFile>,
    /// Settings of the node, which root changes on every node of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<DeliveredSetting>,
    /// A command of the site, which starts a service for the job on each node and stops it
    /// afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<DeliveredCommand>,
    /// Directives that are added to the job's burst buffer directives before its prologs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<DeliveredDirective>,
    /// Tuning inside the job, on each of its nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<DeliveredOnline>,
    /// The parameters whose values a profiling library in the job reads back, into a file that the
    /// node provides.
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

    /// The files with content: an [empty one](DeliveredFile::is_sign) changes nothing.
    pub fn filled_files(&self) -> impl Iterator<Item = &DeliveredFile> {
        self.files.iter().filter(|file| !file.is_sign())
    }

    /// Returns true if there is nothing to deliver: the job runs as without the tuner.
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
    /// True if the value is an upper limit, so that a smaller number counts as the given value.
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
    /// True if the value in force is the given one, or if none was given.
    pub as_asked: bool,
}

/// One environment variable of a [`Delivery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredVariable {
    /// The variable's name.
    pub name: String,
    /// The value: printable text.
    pub value: String,
}

/// One directive of a [`Delivery`]: a word `NAME=VALUE` of a burst buffer's directive line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredDirective {
    /// The directive's name.
    pub name: String,
    /// The value: one word.
    pub value: String,
}

/// Returns true if a burst buffer's directive can have this name, which scripts and shells may
/// read.
#[must_use]
pub fn is_directive_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns true if a burst buffer's directive can have this value: one word that no shell acts on.
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
    /// The kind of setting, which says where it is.
    pub kind: SettingKind,
    /// The setting's name there.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The command of a [`Delivery`]. A node runs it only if its own configuration has that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredCommand {
    /// The command's name in the node's configuration.
    pub name: String,
    /// The command's environment, in addition to what the node adds about the job.
    pub environment: Vec<DeliveredVariable>,
    /// Variables of the job that the command may set by printing `NAME=VALUE`.
    pub provides: Vec<String>,
}

/// One file of a [`Delivery`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredFile {
    /// The file's name: one plain component.
    pub name: String,
    /// The environment variable that tells the application the file's path.
    pub variable: String,
    /// The file's text.
    pub content: String,
    /// A file that the application reads if the variable is not set. On a node that has it, this
    /// file is not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_exists: Option<String>,
}

impl DeliveredFile {
    /// Returns true if the file is empty. It changes nothing then; whether it is read shows if the
    /// job uses the accelerator.
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
    /// The user had set or removed it, so the plugin left it alone.
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
    /// The start on this node, by the node's clock. Only sent if steps may overlap: by a job that
    /// has several steps and no batch step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Nanoseconds of the node's monotonic clock from the step's start until its last task ended on
    /// this node. Absent if the end was not seen.
    pub duration_ns: Option<u64>,
    /// The first non-zero wait status of the step's tasks, otherwise 0.
    pub wait_status: i32,
    /// The number of nodes of the step, each of which reports its part.
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

/// The end of a job as slurmd tells it to the epilog. It is not final: cancelled, timed-out and
/// preempted jobs mostly look successful here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EpilogOutcome {
    /// SLURM_JOB_EXIT_CODE2: the batch script's exit code and signal, such as `0:0`.
    pub exit_code: String,
    /// SLURM_JOB_DERIVED_EC: the highest exit code of the steps, in the same form.
    pub derived_exit_code: String,
    /// The job's time limit in seconds, if the epilog of this Slurm version has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
}

/// The settings that were applied to a job on one node. They decide for which parametrization
/// the run counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Applied {
    /// Nothing was to be applied and nothing was: a run of the default.
    Default,
    /// This parametrization was applied in every step.
    Parametrization {
        /// The parametrization.
        parametrization: Parametrization,
    },
    /// In at least one step the user had settings of their own, which were left alone.
    User {
        /// The variables that the user had set.
        variables: Vec<String>,
    },
    /// The delivery did not reach every step.
    Incomplete {
        /// The missing part.
        detail: String,
    },
}

/// `POST /v1/runs/finish`: root, in the epilog, reports how a job ran on its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The job.
    pub job: Job,
    /// The user's request, with which a finish without a start can be recorded too.
    pub request: Request,
    /// The run, if the start had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// When the job's prolog ran on this node, by the node's clock, if known. If the start had no
    /// answer, this tells launches with the same job id apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolog_at: Option<Timestamp>,
    /// The reason why the start had no answer, if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_failure: Option<String>,
    /// The settings that were applied.
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
    /// The record of tuning inside the job on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<OnlineRecord>,
    /// The end of the job as slurmd told it to the epilog, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<EpilogOutcome>,
    /// Positive numbers by name, at most 64: what the steps on this node read, wrote and computed
    /// ([`Measure`](io_autotune_model::Measure)), and an application's own figure of merit.
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
}

/// The answer to a finish: the report is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishAnswer {
    /// The run that the report belongs to.
    pub run_id: i64,
    /// True if the report had been stored before. It counts once.
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
    /// The number of new records.
    pub stored: u64,
    /// The number of records that had been stored before.
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

io_autotune_model::word_enum!(
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
    /// True for the accelerator that is used if a request names none.
    pub is_default: bool,
    /// The parameters, by name.
    pub parameters: Vec<String>,
    /// Requirements in addition to a request: `exclusive`, `root`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The system on which it was tested. Absent: only its delivery was tested, on a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_on: Option<String>,
}

/// `GET /v1/accelerators/{name}`: one accelerator in full.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorDetail {
    /// The accelerator's entry in the list.
    #[serde(flatten)]
    pub summary: AcceleratorSummary,
    /// A paragraph about it.
    pub description: String,
    /// When a parameter takes effect.
    pub takes_effect: String,
    /// The parameters and constraints, as in the catalogue file.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// How parametrizations are delivered, one line each.
    pub delivery: Vec<String>,
    /// Settings that were published for it, one line each: a name, the values that it changes, why,
    /// and the source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<String>,
    /// The values that change more than a job's time, and what else they change, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// The name under which a user gets the values that are left out because of their risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_risk: Option<String>,
    /// The spaces in which the accelerator's studies search, with the numbers of studies. Only
    /// shown to admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use: Option<Vec<SpaceInUse>>,
}

/// `GET /v1/site-defaults/{name}`, for a cluster: what the studies of an accelerator have
/// in common, and what an admin made the site's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SiteDefault {
    /// Slurm's ClusterName, if the service has several clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// When it was last looked for what the studies have in common. Null: not yet, because the
    /// studies of fewer than four users know enough.
    pub made_at: Option<Timestamp>,
    /// The setting that they have in common; null if there is none.
    pub in_common: Option<InCommon>,
    /// The order that makes a setting the site's default; null if there is none.
    pub in_force: Option<OrderSummary>,
}

/// A setting that the studies of an accelerator have in common. The studies of the user whose study
/// found it do not judge it, and are not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InCommon {
    /// The values that differ from the accelerator's default.
    pub values: Parametrization,
    /// The number of other users whose studies find it harmless.
    pub users: u64,
    /// Elapsed over the default's for one more application.
    pub ratio: Ratio,
    /// The number of studies that judge it.
    pub studies: u64,
    /// The number of these that gain: the whole 95 % interval of each is below 1.
    pub gain: u64,
    /// The number of these that are expected to lose.
    pub lose: u64,
    /// The smallest ratio that a study expects.
    pub smallest: f64,
    /// The largest.
    pub largest: f64,
    /// The largest upper end of their intervals: none loses more.
    pub worst: f64,
    /// The studies that are expected to lose, at most 20, those that lose most first. Only shown to
    /// those who read everyone's studies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losers: Vec<Loser>,
}

/// A study that is expected to lose by a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Loser {
    /// The study.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// The owner's uid.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// Elapsed over the default's, as the study expects it.
    pub ratio: Ratio,
}

/// Studies that search in the same space, which may come from an earlier catalogue file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceInUse {
    /// Parameters and constraints.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// True if these studies have settled.
    pub settled: bool,
    /// The number of studies.
    pub studies: u64,
}

/// The gain for clients before 0.2. Newer ones read [`Assessment::gain`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GainSummary {
    /// 1 - tuned/default: 0.25 means that a quarter of the time is saved.
    pub gain: f64,
    /// The ends of the gain's interval, valid for all looks at the study together.
    pub interval: (f64, f64),
    /// True if a gain or a loss is claimed.
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
    /// The largest estimate so far of the cost of exploring in the epoch, in runs of the default.
    /// It never falls.
    pub runs: f64,
    /// The expected regret by present knowledge, which the budget bounds.
    #[serde(default)]
    pub expected: f64,
    /// The budget by now, in runs of the default.
    pub budget: f64,
    /// The same as `runs`, in node-seconds; null before a run of the default has counted.
    pub node_seconds: Option<f64>,
}

/// A budget for exploring that a study's runs are charged to, with what is spent of it today. Amounts
/// are node-hours of a day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BudgetSummary {
    /// Whose budget it is.
    pub of: BudgetOf,
    /// The account or the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The budget.
    pub node_hours: f64,
    /// What exploring runs have taken, and what those in flight are expected to take. Null unless it is
    /// the user's own budget, or the caller reads every user's studies.
    pub spent: Option<f64>,
    /// True if a run of the study has room in it.
    pub has_room: bool,
}

/// A parametrization's runs in an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TestedSummary {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The values that differ from the default.
    pub differs: Parametrization,
    /// The elapsed of counted runs; null before a run has counted.
    pub elapsed: Option<Elapsed>,
    /// Runs that a time limit ended.
    pub censored: u64,
    /// Runs that failed with this parametrization.
    pub failed: u64,
    /// The reason of the quarantine, if the parametrization is quarantined.
    pub quarantined: Option<String>,
}

/// `GET /v1/studies/{id}`: a study with its space and all tested parametrizations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StudyDetail {
    /// The study.
    pub study: StudySummary,
    /// The epoch's space, as in the catalogue file.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// The number of parametrizations of the space, or a lower bound of it.
    pub size: u64,
    /// The tested parametrizations: first those with at least two counted runs, the fastest mean
    /// first, then those with one, then the others.
    pub tested: Vec<TestedSummary>,
    /// The parameters' shares of the spread of the epoch's times. An older service does not send
    /// them.
    pub importance: Option<ImportanceSummary>,
}

/// The parameters' shares of the spread of log elapsed, by the study's surrogate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportanceSummary {
    /// The reason why no shares can be given, in words.
    pub silent: Option<String>,
    /// The share of the spread between parametrizations that the surrogate predicts for each one
    /// from the others: 1 is all of it, 0 or less is nothing. `None` if it was not computed.
    pub skill: Option<f64>,
    /// The shares, the largest first; empty if none can be given.
    pub shares: Vec<ImportanceShare>,
}

/// A parameter's shares of the expected spread over the values that ran, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ImportanceShare {
    /// The parameter.
    pub parameter: String,
    /// The share of the parameter by itself.
    pub alone: f64,
    /// The share with the parameter's interactions, so at least `alone`. The shares of all
    /// parameters may sum to more than 1.
    pub in_all: f64,
}

/// A parametrization that is not run again, because jobs fail under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineSummary {
    /// The parametrization.
    pub parametrization: Parametrization,
    /// The values that differ from the default.
    pub differs: Parametrization,
    /// The reason, in words.
    pub why: String,
}

/// The opening of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OpenedSummary {
    /// The time, by the database's clock.
    pub at: Timestamp,
    /// The reason, in one sentence; after a drift, what changed.
    pub why: String,
    /// The knowledge that the epoch took from the previous one: `nothing`, `ranks` or `runs`.
    pub takes: String,
    /// The drift that opened it, if any, with the settings it was found with.
    pub drift: Option<serde_json::Value>,
}

/// A study as `status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StudySummary {
    /// The study's number.
    pub study_id: i64,
    /// Slurm's ClusterName, if the service has several clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The application's name.
    pub application: String,
    /// The application's full name, if its name does not have all of it: the job's name that squeue
    /// shows, or the text that a rule makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// The owner's uid.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The account that the latest run was charged to whose account is known.
    pub account: Option<String>,
    /// The study's context: the facets that make runs incomparable, by name.
    pub context: BTreeMap<String, String>,
    /// The objective of the epoch, of which means and gains are: `elapsed`, `marked_seconds` or
    /// `objective.NAME`, followed by ` maximised` if more is better.
    #[serde(default)]
    #[schema(value_type = String)]
    pub objective: Objective,
    /// The epoch, from 1.
    pub epoch: i32,
    /// How the epoch was opened.
    pub opened: OpenedSummary,
    /// The phase.
    pub phase: Phase,
    /// The next run: what it gets, by which rule, and until when. Null from a service before 0.4.
    #[serde(default)]
    pub next: Option<Next>,
    /// The epoch's counted runs.
    pub counted: i64,
    /// The epoch's runs that ended and do not count.
    pub not_counted: i64,
    /// The epoch's runs in flight.
    pub in_flight: i64,
    /// The number of ended exploring runs, and their budget. Runs that confirm the best are not
    /// part of the budget.
    pub explored: (u64, u32),
    /// All counted runs of the default in the epoch, in whatever role.
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
    /// The reason why it is recommended, in one sentence.
    pub why: String,
    /// Set while the study is pinned.
    pub pin: Option<Pin>,
    /// The effect of an order, or of the study's own pin, on every run: `off`, `pinned` or
    /// `frozen`; null if there is none.
    pub ordered: Option<String>,
    /// The order, or the study's own pin, that decides this. Null from a service before 0.3.
    pub decided_by: Option<OrderSummary>,
    /// In the answer to a change of the study: the number of the change's line in the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
    /// True if the study's jobs are only observed, and none counts, because their name does not
    /// name a program.
    #[serde(default)]
    pub nameless: bool,
    /// The cost of exploring in the epoch. Null from a service before 0.3.
    pub regret: Option<RegretSummary>,
    /// The budgets for exploring that the study's runs are charged to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetSummary>,
    /// The epoch's runs that were started in the last seven days.
    #[serde(default)]
    pub lately: i64,
    /// The parametrizations that are quarantined in the epoch.
    #[serde(default)]
    pub quarantined: Vec<QuarantineSummary>,
    /// Problems of the whole study, such as mixed work or no headroom, and what to do.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Set if the study shares with studies of other users, by a rule of the site.
    pub sharing: Option<SharingSummary>,
}

/// The other users' studies with which a study shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SharingSummary {
    /// The site's rule by which they share: `group G` or `account A`.
    pub by: String,
    /// The number of other studies with runs that ended.
    pub others: usize,
    /// The number of their counted runs.
    pub runs: u64,
    /// True if their runs decide together with the study's own.
    pub together: bool,
    /// The reason why they do not, in one sentence; empty if they do.
    #[serde(default)]
    pub why: String,
    /// Login names or uids of the other users, if the site shows them.
    #[serde(default)]
    pub members: Vec<String>,
}

impl StudySummary {
    /// The application as shown to people: the name, followed by the full name if that differs.
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
    /// The run's time limit ended it: its elapsed is a lower bound.
    Censored,
    /// It ended and does not count; the verdict says why.
    NotCounted,
}

io_autotune_model::word_enum!(
    RunState, "state of a run",
    InFlight => "in_flight",
    Counted => "counted",
    Censored => "censored",
    NotCounted => "not_counted",
);

/// A run as `history` shows it. Whether a settled study's run is a control run is drawn at its
/// start, and shown only once the run has ended, because a user who knows may cancel it. Until then
/// every field that would reveal it is null, except for admins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// The run's number.
    pub run_id: i64,
    /// The study.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// The application's full name, if its name does not have all of it: the job's name that squeue
    /// shows, or the text that a rule makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<String>,
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator. Empty from a service before 0.3.
    #[serde(default)]
    pub accelerator: String,
    /// The number of nodes, if known.
    pub nodes: Option<u32>,
    /// The epoch, from 1.
    pub epoch: i32,
    /// When the epoch was opened, by the database's clock.
    pub epoch_opened_at: Timestamp,
    /// The reason why the epoch was opened, in one sentence.
    pub epoch_opened_why: String,
    /// The objective of the epoch, as in a study.
    #[serde(default)]
    #[schema(value_type = String)]
    pub objective: Objective,
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// The restart count.
    pub restart_count: u32,
    /// The node that started the run.
    pub node: String,
    /// The study's phase at the run's start.
    pub phase: Phase,
    /// The run's role. Null: shown once the run has ended.
    pub role: Option<Role>,
    /// The parametrization that the run was launched with. Null: shown once the run has ended.
    pub parametrization: Option<Parametrization>,
    /// The values that differ from the default. Null: shown once the run has ended.
    pub differs: Option<Parametrization>,
    /// The reason for this parametrization, in one sentence, which may reveal runs in flight at the
    /// start. Null: shown once the run and those drawn before it in its epoch have ended.
    pub reason: Option<String>,
    /// The run's state.
    pub state: RunState,
    /// The reason why it counts or does not.
    pub verdict: Option<String>,
    /// The reason why it does not count, from the list in docs/run.md. Null for other runs, and for
    /// runs that a service before 0.4 judged.
    #[serde(default)]
    pub not_counted_because: Option<NotCountedBecause>,
    /// Slurm's state of the job at its end, such as `COMPLETED`.
    pub outcome: Option<String>,
    /// The settings that were applied; null as long as the role is.
    pub applied: Option<Applied>,
    /// Elapsed in seconds, by the node's monotonic clock.
    pub elapsed: Option<f64>,
    /// The first non-zero wait status of its steps, otherwise 0.
    pub wait_status: Option<i32>,
    /// Positive numbers by name: what the run's steps read, wrote and computed together, and what
    /// else the job reported. Empty as long as the role is null.
    pub measures: BTreeMap<String, f64>,
    /// The start, by the database's clock.
    pub started_at: Timestamp,
    /// The arrival of the run's report.
    pub finished_at: Option<Timestamp>,
    /// The reason why its parametrization is quarantined. Only in lists of one application or
    /// study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
}

impl RunSummary {
    /// The application as shown to people: the name, followed by the full name if that differs.
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
    /// The user's request, with the rule that made the application of the job's name. Absent from a
    /// service before 0.2.
    pub request: Option<Request>,
    /// The inputs of the suggestion: seed, settings, engine version, runs in flight. Null as long
    /// as the reason is.
    pub suggestion: serde_json::Value,
    /// The expectation at the run's start: the counted runs of its parametrization by then. Null if
    /// there were none, and as long as the reason is.
    pub expected: Option<Elapsed>,
    /// The counted runs of the default by then. Null in the same cases as `expected`.
    pub default_then: Option<Elapsed>,
    /// The run without the noise that is explained by how other runs fared at the same time. Null
    /// if nothing is known of other runs, if the run is of an earlier epoch, and as long as the
    /// role is.
    pub cleaned: Option<Cleaned>,
    /// The delivery of the parametrization. Null: shown once the run has ended.
    pub delivery: Option<Delivery>,
    /// The node reports, as received; empty as long as the role is null.
    pub reports: Vec<serde_json::Value>,
    /// The present findings of the run's study.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The order, or the study's own pin, that decided it. Null if none did, and as long as the
    /// reason is.
    pub decided_by: Option<OrderSummary>,
    /// Other studies whose results its choice could rest on. Null if there were none, and as long
    /// as the reason is.
    pub begun_from: Option<BegunFrom>,
    /// The values it was launched with that change more than its time, and what else they change, one
    /// line each. Empty as long as the parametrization is null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// The run's study as it is now, with what its next run gets. Only with the job's last launch, and
    /// absent from a service before 0.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<Box<StudySummary>>,
}

/// A run and its parametrization, estimated for the case that other runs took as long as usual at
/// the same time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cleaned {
    /// The estimate for the run, in seconds or the objective's unit. Null before its end, and if
    /// nothing is known of other runs at that time.
    pub took: Option<f64>,
    /// The present estimate for its parametrization, with the surrogate's 95 % interval.
    pub estimate: Elapsed,
    /// The share of the noise's variance that other runs explain, from 0 to 1.
    pub share: f64,
}

/// Other studies of a run's accelerator whose results its choice could rest on (docs/priors.md).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BegunFrom {
    /// The number of these studies.
    pub studies: u64,
    /// The studies of the caller among them; an admin and an operator see all.
    pub seen: Vec<NamedStudy>,
}

/// A study by its number and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedStudy {
    /// The study's number.
    pub id: i64,
    /// The study's application.
    pub application: String,
}

/// `POST /v1/studies/{id}/pin`: fixes the parametrization of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// Values as text, by parameter; other parameters keep the default. Absent: the recommendation.
    #[serde(default, deserialize_with = "each_once")]
    pub values: Option<BTreeMap<String, String>>,
    /// The pin is in force before this time; absent: until the study is unpinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// The studies that an order applies to. An absent field: any.
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

/// The kind of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderKind {
    /// Every run gets the same values. An order on several studies; a single study has a pin of its
    /// own.
    Pin,
    /// Every run gets the best known parametrization; nothing is explored.
    Freeze,
    /// Runs are measured, and nothing is applied.
    Off,
    /// The first exploring run of a study gets these values. Only admins give it, for an
    /// accelerator and for everybody's studies.
    #[serde(rename = "site-default")]
    SiteDefault,
}

/// `POST /v1/orders` and `/v1/orders/end`: an order for all studies of a scope, including those
/// that begin later. A user's scope is always restricted to their own studies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    /// The kind.
    pub kind: OrderKind,
    /// The studies.
    #[serde(default)]
    pub scope: OrderScope,
    /// The values of a pin or of a site's default, as text, by parameter; other parameters keep the
    /// default.
    #[serde(
        default,
        deserialize_with = "each_once",
        skip_serializing_if = "Option::is_none"
    )]
    pub values: Option<BTreeMap<String, String>>,
    /// The order is in force before this time; absent: until it is ended. A request to end an order
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// True to change nothing and return what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// A study that an order applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Affected {
    /// The study.
    pub study_id: i64,
    /// Slurm's ClusterName, if the service has several clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The application's name.
    pub application: String,
    /// The owner's uid.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// A few words about what the study's runs get at present.
    pub now: String,
    /// The same about what they get with the order; the same text if the order changes nothing.
    pub then: String,
}

/// The answer to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderAnswer {
    /// The order's number. Null for a dry run, and for the end of an order that is not in force.
    pub order_id: Option<i64>,
    /// The number of the change's line in the audit. Null in the same cases.
    pub line: Option<i64>,
    /// The studies of the scope that exist. Those that begin later are not listed.
    pub studies: Vec<Affected>,
    /// True if there are more than are listed.
    pub more: bool,
}

/// `GET /v1/orders`: an order in force. In other answers also one that has ended, or a study's own
/// pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderSummary {
    /// The order's number. Null for a study's own pin.
    pub order_id: Option<i64>,
    /// The kind.
    pub kind: OrderKind,
    /// The studies.
    pub scope: OrderScope,
    /// The values of a pin, or of a site's default.
    pub values: Option<BTreeMap<String, String>>,
    /// The uid of the user who gave the order.
    pub uid: u32,
    /// That user's login name, if known.
    pub user: Option<String>,
    /// The reason.
    pub why: String,
    /// The time when it was given.
    pub at: Timestamp,
    /// The order is in force before this time; null: until it is ended.
    pub until: Option<Timestamp>,
    /// True if it is no longer in force.
    #[serde(default)]
    pub is_over: bool,
    /// True if the caller may end it.
    #[serde(default)]
    pub may_end: bool,
}

/// A suggestion, as given or as recomputed from its stored inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Suggested {
    /// The phase.
    pub phase: Phase,
    /// The run's role in that phase.
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
    /// The suggestion that the run was given. Null: shown once the run and those drawn before it in
    /// its epoch have ended.
    pub given: Option<Suggested>,
    /// The suggestion by the present engine. Null if the run has none, or one that cannot be
    /// recomputed or must not be shown.
    pub recomputed: Option<Suggested>,
    /// True if the two are the same.
    pub same: bool,
    /// A remark, such as another engine version, or the reason why nothing can be recomputed.
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
    /// The subject of the check.
    pub name: String,
    /// The result.
    pub state: CheckState,
    /// The finding.
    pub detail: String,
    /// The remedy, if the check has found something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    /// A check with the result that all is well.
    pub fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            state: CheckState::Ok,
            detail: detail.into(),
            fix: None,
        }
    }

    /// A check with the result that something needs attention, with what to do.
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

    /// A check with the result that something is wrong, with what to do.
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
    /// The arguments, `key=value`, in alphabetical order.
    pub arguments: Vec<String>,
    /// The nodes that sent these arguments last.
    pub nodes: Vec<String>,
}

/// `GET /v1/doctor`: the service's own checks. For admins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The service's version.
    pub version: String,
    /// The checks.
    pub checks: Vec<Check>,
    /// The time of the checks, by the service's clock. Null from a service before 0.3.
    pub time: Option<Timestamp>,
    /// The plugin's arguments, as the nodes sent them.
    #[serde(default)]
    pub plugins: Vec<PluginOnNodes>,
}

/// `POST /v1/studies/{id}/unpin`, `/reset` and `/accept`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// `POST /v1/studies/{study_id}/objective`: sets the study's objective from now on.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveRequest {
    /// `elapsed`, `marked`, or the NAME of a measure that jobs report themselves.
    pub objective: String,
    /// True if more is better. Only possible for a measure that the application reports itself.
    #[serde(default)]
    pub maximise: bool,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// `POST /v1/studies/{study_id}/warm-start`: begins a new epoch with the results of another study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WarmStartRequest {
    /// The other study, of the same accelerator.
    pub from: i64,
    /// True to change nothing and return what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
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
    /// The parametrizations that the new epoch begins with, the best first: for each, the values
    /// that differ from the default.
    pub inherited: Vec<Parametrization>,
    /// The new epoch's number; `None`: nothing was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i32>,
}

/// `POST /v1/retention`: removes runs that no study needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionRequest {
    /// The least age of the runs in days, at least 30; if left out, the age in `[retention]` of
    /// service.toml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_days: Option<u32>,
    /// True to change nothing and return what would be removed.
    #[serde(default)]
    pub dry_run: bool,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// The answer to a [`RetentionRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionAnswer {
    /// The least age of the runs, in days.
    pub older_than_days: u32,
    /// The rows that were removed, or would be.
    #[serde(flatten)]
    pub removed: Removed,
    /// True if there may be more: send the request again.
    pub more: bool,
}

/// `GET /v1/ready`: whether the service is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// True if the service can serve requests.
    pub ready: bool,
    /// The problems, if any.
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
    /// One message: the request, the problem, and what to do.
    pub message: String,
}

/// `GET /v1/studies/{id}/export`: a page of a study as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExportPage {
    /// The version of the format.
    pub version: u32,
    /// Lines of the format of `docs/transfer.md`, without header and end.
    pub lines: Vec<String>,
    /// The key of the next page; none after the last one.
    pub next: Option<String>,
}

/// `POST /v1/imports/{upload}`: a piece of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportChunk {
    /// The place of the piece in the file, from 0.
    pub place: u32,
    /// The text of the piece, at most 512 KiB.
    pub text: String,
}

/// The use that is made of the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportStep {
    /// Returns what would be imported. The pieces stay.
    Look,
    /// Imports all studies or none.
    Import,
    /// Removes the pieces.
    Discard,
}

/// `POST /v1/imports/{upload}/end`: uses the pieces of a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// The number of pieces.
    pub chunks: u32,
    /// The use that is made of the pieces.
    pub step: ImportStep,
    /// True to leave out the studies that exist. Otherwise they make the service refuse the file.
    #[serde(default)]
    pub skip_existing: bool,
    /// The cluster to which the studies will belong; if left out, the service's only cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The reason, for the audit table. It may be left out, or empty, if the change concerns nobody
    /// but the caller.
    #[serde(default)]
    pub why: String,
}

/// The studies that were imported, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportAnswer {
    /// The studies of the file; none if pieces were only uploaded or removed.
    pub studies: Vec<ImportedStudy>,
}

/// A study of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedStudy {
    /// The study's number in this service; none before it is imported.
    pub study_id: Option<i64>,
    /// The application's name.
    pub application: String,
    /// The owner.
    pub uid: u32,
    /// The owner's login name, if known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The study's context, which makes runs incomparable, such as nodes and partition.
    pub context: BTreeMap<String, String>,
    /// The number of epochs.
    pub epochs: u64,
    /// The number of runs.
    pub runs: u64,
    /// True if the study is left out because it exists.
    pub skipped: bool,
}
