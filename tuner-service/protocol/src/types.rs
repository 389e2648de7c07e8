//! The API's requests and answers.

use std::collections::BTreeMap;
use std::str::FromStr;

use io_autotune_model::{Assessment, Gain, GainVerdict, Parametrization, Phase, Role, Space};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::Request;

/// A job as root on its node knows it, from the prolog's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// How often the job was restarted: 0 for the first launch.
    pub restart_count: u32,
    /// Whose job it is.
    pub uid: u32,
    /// The job's group.
    pub gid: u32,
    /// The user's login name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The node that speaks.
    pub node: String,
    /// How many nodes the job has.
    pub nodes: u32,
    /// The partition it runs in.
    pub partition: String,
    /// CPUs per node in Slurm's own notation, such as `8(x2)`.
    pub cpus_per_node: String,
}

/// `POST /v1/preview`: what would happen to a job of mine?
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewRequest {
    /// What the user asked for.
    pub request: Request,
}

/// The answer to a preview.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PreviewAnswer {
    /// One line for the user's terminal.
    pub line: String,
}

/// `POST /v1/runs/start`: root in the prolog asks for the run of a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartRequest {
    /// The job.
    pub job: Job,
    /// What its user asked for.
    pub request: Request,
    /// The job's time limit in seconds, where this Slurm tells the prolog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// When this launch of the job began, by slurmctld's clock, where this Slurm tells the prolog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub started_at: Option<Timestamp>,
}

/// What a job is to be given. The same answer for every question about one launch of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StartAnswer {
    /// The run.
    pub run_id: i64,
    /// The phase its study is in.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// The run's part in it.
    #[schema(value_type = String)]
    pub role: Role,
    /// What the run is launched under.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub parametrization: Parametrization,
    /// Why this parametrization, in one sentence.
    pub reason: String,
    /// How it reaches the job.
    pub delivery: Delivery,
}

/// How a parametrization reaches a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// Environment variables to set where the user has not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<DeliveredVariable>,
    /// Files to write in the job's own directory, each named by a variable.
    #[serde(default)]
    pub files: Vec<DeliveredFile>,
    /// Settings of the node, to be changed by root on every node of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<DeliveredSetting>,
    /// A command of the site's that starts something for the job on every node of it, and stops it after the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<DeliveredCommand>,
    /// What a profiling library in the job is to read back; the node then gives the job a file to write it into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_back: Vec<ReadBack>,
    /// Variables that are the user's where the user has set them.
    pub watch: Vec<String>,
}

impl Delivery {
    /// The variables that are to be set, those that name files among them.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let set = self
            .environment
            .iter()
            .map(|variable| variable.name.as_str());
        set.chain(self.files.iter().map(|file| file.variable.as_str()))
    }

    /// Whether there is nothing to deliver, so that the job runs as it would without us.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.environment.is_empty()
            && self.files.is_empty()
            && self.settings.is_empty()
            && self.command.is_none()
    }
}

/// One parameter that the accelerator itself can be asked for, when it is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadBack {
    /// The parameter.
    pub parameter: String,
    /// What the accelerator calls it.
    pub name: String,
    /// The value that the job was given; absent where it was given none, and any is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Whether the value is an upper limit, and a smaller number is no other value.
    #[serde(default)]
    pub at_most: bool,
}

/// What an accelerator said it has of one parameter, of those it was to be asked for ([`ReadBack`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The parameter.
    pub parameter: String,
    /// What the accelerator calls it.
    pub name: String,
    /// The value that the job was given; absent where it was given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The value in force; several, if it was used with several, with `, ` between.
    pub in_force: String,
    /// Whether that is what was asked for, or nothing was.
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

/// One setting of a [`Delivery`]: a node changes it only if its own configuration lets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredSetting {
    /// Where it is.
    pub kind: SettingKind,
    /// Its name there.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The command of a [`Delivery`]: a node runs it only if its own configuration has one of that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveredCommand {
    /// What the node's configuration calls it.
    pub name: String,
    /// Its environment, besides what it is told of the job.
    pub environment: Vec<DeliveredVariable>,
    /// Variables of the job that it may set, by printing `NAME=VALUE`.
    pub provides: Vec<String>,
}

/// Where a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// Below /proc/sys: `vm.dirty_bytes`.
    Sysctl,
    /// In the queue of a block device that the node names: `read_ahead_kb`.
    Block,
    /// A parameter of Lustre's client, or a pattern of several: `osc.*.max_rpcs_in_flight`.
    Lctl,
}

impl SettingKind {
    /// Whether a setting of this kind can have this name.
    #[must_use]
    pub fn takes_name(self, name: &str) -> bool {
        let of = |more: &[char]| {
            (1..=200).contains(&name.len())
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-' || more.contains(&c))
        };
        match self {
            Self::Sysctl => of(&['.']) && name.split('.').all(|part| !part.is_empty()),
            Self::Block => of(&[]),
            Self::Lctl => of(&['.', '*']),
        }
    }
}

impl std::fmt::Display for SettingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sysctl => "sysctl",
            Self::Block => "block",
            Self::Lctl => "lctl",
        })
    }
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
}

/// What became of a variable in the steps of one job on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableState {
    /// We set it, and it was in force.
    Set,
    /// The user had set or removed it, and it was left alone.
    User,
    /// Nobody set it.
    Absent,
}

/// One step of a job on one node, as the plugin stamped it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Slurm's step id; the batch step is [`Step::BATCH`].
    pub step_id: u32,
    /// From the step's start until its last task ended on this node, in nanoseconds of the node's
    /// monotonic clock; absent when its end was not seen.
    pub duration_ns: Option<u64>,
    /// The first wait status of its tasks that is not 0, else 0.
    pub wait_status: i32,
    /// How many nodes the step has; each of them reports its part.
    #[serde(default = "Step::one_node")]
    pub nodes: u32,
    /// What became of each variable.
    pub variables: BTreeMap<String, VariableState>,
}

impl Step {
    /// The batch step's id (SLURM_BATCH_SCRIPT in slurm.h).
    pub const BATCH: u32 = 0xffff_fffb;

    fn one_node() -> u32 {
        1
    }
}

/// What slurmd tells the epilog of how the job ended. It is not Slurm's last word: cancelled,
/// timed out and preempted jobs mostly read as if all were well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EpilogWord {
    /// SLURM_JOB_EXIT_CODE2: the batch script's exit code and signal, such as `0:0`.
    pub exit_code: String,
    /// SLURM_JOB_DERIVED_EC: the highest exit code of its steps, in the same form.
    pub derived_exit_code: String,
    /// The job's time limit in seconds, where this Slurm tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
}

/// What was really applied to a job on one node: the finish, not the start, decides which
/// parametrization a run counts for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Applied {
    /// Nothing was to be applied and nothing was: a run of the default.
    Default,
    /// This parametrization, in every step.
    Parametrization {
        /// The parametrization.
        #[schema(value_type = BTreeMap<String, serde_json::Value>)]
        parametrization: Parametrization,
    },
    /// The user's own settings stood in the way in at least one step, and were left alone.
    User {
        /// The variables that were the user's.
        variables: Vec<String>,
    },
    /// Something was to be applied and did not reach every step.
    Incomplete {
        /// What was missing.
        detail: String,
    },
}

/// `POST /v1/runs/finish`: root in the epilog reports how a job went on its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FinishRequest {
    /// The job.
    pub job: Job,
    /// What its user asked for, so that a finish without a start can be recorded too.
    pub request: Request,
    /// The run, where the start had an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<i64>,
    /// When the job's prolog ran on this node, by its clock, where that is known. It tells launches apart to which
    /// Slurm has given the same job id, where the start had no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub prolog_at: Option<Timestamp>,
    /// Why the start had no answer, where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_failure: Option<String>,
    /// What was really applied.
    pub applied: Applied,
    /// The steps that ran on this node.
    pub steps: Vec<Step>,
    /// The settings that the job was given on this node, as the kernel read them back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub in_force: BTreeMap<String, String>,
    /// What a profiling library in the job told of what was to be read back ([`Delivery::read_back`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Told>,
    /// What slurmd told the epilog, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epilog: Option<EpilogWord>,
    /// Positive numbers the job left: bytes written, an application's own figure of merit.
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
}

/// The answer to a finish: it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FinishAnswer {
    /// The run it belongs to.
    pub run_id: i64,
    /// Whether it had been stored before; it counts once.
    pub duplicate: bool,
}

/// `POST /v1/runs/over`: root of a node has directories of launches that no epilog has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OverRequest {
    /// The runs that it was given, 10,000 at the most.
    pub runs: Vec<i64>,
}

/// The answer: which of them are over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverAnswer {
    /// Those of which Slurm's word has been known for a minute, and those that have been given up.
    pub over: Vec<i64>,
}

/// Slurm's word for how one launch of a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Slurm's job id.
    pub job_id: u32,
    /// Slurm's word, such as `COMPLETED`; `REQUEUED` for a launch that was put back into the queue.
    pub state: String,
    /// The exit code and signal, such as `0:0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<String>,
    /// The restart count, where the source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_count: Option<u32>,
    /// When the launch began, by slurmctld's clock; absent for a job that never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub started_at: Option<Timestamp>,
    /// When it ended, by slurmctld's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub ended_at: Option<Timestamp>,
    /// For how long it was suspended, where the source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended_seconds: Option<u64>,
    /// Its time limit, where it has one and the source knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
    /// The account that was charged, where the source tells it: [`is_account`](crate::is_account).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// `POST /v1/outcomes`: the collector delivers what Slurm's job-completion script has written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomesRequest {
    /// Slurm's ClusterName.
    pub cluster: String,
    /// The outcomes, at most [`OutcomesRequest::MOST`].
    pub outcomes: Vec<Outcome>,
}

impl OutcomesRequest {
    /// How many outcomes one request may carry.
    pub const MOST: usize = 1000;
}

/// The answer to [`OutcomesRequest`]: they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomesAnswer {
    /// How many were new.
    pub stored: u64,
    /// How many had been stored before.
    pub duplicates: u64,
}

/// A file of the nightly report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReportFileName {
    /// The page.
    #[serde(rename = "index.html")]
    Page,
    /// The whole report as data.
    #[serde(rename = "report.json")]
    Json,
    /// A row for each study.
    #[serde(rename = "studies.csv")]
    Studies,
    /// A row for each application, user, account and accelerator.
    #[serde(rename = "groups.csv")]
    Groups,
    /// The mail's text.
    #[serde(rename = "mail.txt")]
    Mail,
}

impl ReportFileName {
    /// Every file.
    pub const ALL: [Self; 5] = [
        Self::Page,
        Self::Json,
        Self::Studies,
        Self::Groups,
        Self::Mail,
    ];

    /// Its name in the night's directory.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Page => "index.html",
            Self::Json => "report.json",
            Self::Studies => "studies.csv",
            Self::Groups => "groups.csv",
            Self::Mail => "mail.txt",
        }
    }
}

impl FromStr for ReportFileName {
    type Err = UnknownReportFile;

    fn from_str(name: &str) -> Result<Self, UnknownReportFile> {
        Self::ALL
            .into_iter()
            .find(|file| file.as_str() == name)
            .ok_or(UnknownReportFile)
    }
}

/// The report has no file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the report has no such file; it has index.html, report.json, studies.csv, groups.csv and mail.txt"
)]
pub struct UnknownReportFile;

/// `GET /v1/report/{file}`: a file of the latest nightly report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportFile {
    /// The night's name, such as `2026-11-20`.
    pub night: String,
    /// The file's text.
    pub content: String,
}

/// `GET /v1/accelerators`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorSummary {
    /// What users type.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Whether it is meant when none is named.
    pub is_default: bool,
    /// Its parameters, by name.
    pub parameters: Vec<String>,
    /// What it needs besides a job that asks for it: `exclusive`, `root`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// On what it was tried; absent: only its delivery was, on a stand-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_on: Option<String>,
}

/// `GET /v1/accelerators/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceleratorDetail {
    /// What the list says of it.
    #[serde(flatten)]
    pub summary: AcceleratorSummary,
    /// What it is, in a paragraph.
    pub description: String,
    /// When a parameter takes effect.
    pub takes_effect: String,
    /// Its parameters, constraints among them, as the catalogue file has them.
    #[schema(value_type = serde_json::Value)]
    pub space: Space,
    /// How parametrizations are delivered, a line each.
    pub delivery: Vec<String>,
}

/// The mean elapsed of a set of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Elapsed {
    /// How many runs.
    pub n: u64,
    /// Their mean, in seconds.
    pub mean: f64,
    /// Ends of the mean's 95 % interval (Student's t), where there are at least two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

/// The gain as clients before 0.2 read it. Newer ones read [`Assessment::gain`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GainSummary {
    /// 1 - tuned/default: 0.25 says a quarter of the time is saved.
    pub gain: f64,
    /// Ends of its interval, which holds for all looks at the study together.
    pub interval: (f64, f64),
    /// Whether a gain or a loss is claimed.
    pub resolved: bool,
}

impl GainSummary {
    /// A gain that has an interval.
    #[must_use]
    pub fn of(gain: &Gain) -> Option<Self> {
        Some(Self {
            gain: gain.share?,
            interval: gain.low.zip(gain.high)?,
            resolved: matches!(gain.verdict, GainVerdict::Faster | GainVerdict::Slower),
        })
    }
}

/// A parametrization that an admin, or the study's owner, has fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PinSummary {
    /// What every run gets.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub parametrization: Parametrization,
    /// Who pinned it.
    pub uid: u32,
    /// When.
    #[schema(value_type = String)]
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// A parametrization that is not run any more, because jobs fail under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineSummary {
    /// The parametrization.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub parametrization: Parametrization,
    /// Its values that differ from the default's.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub differs: Parametrization,
    /// Why, in words.
    pub why: String,
}

/// How an epoch came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OpenedSummary {
    /// When, by the database's clock.
    #[schema(value_type = String)]
    pub at: Timestamp,
    /// Why, in one sentence: after a drift from what to what.
    pub why: String,
    /// What it took from the epoch before: `nothing`, `ranks` or `runs`.
    pub takes: String,
    /// The change that opened it, where drift did, with the settings it was found with.
    pub drift: Option<serde_json::Value>,
}

/// A study as `status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StudySummary {
    /// The study's number.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// Its owner.
    pub uid: u32,
    /// The owner's login name, where known.
    pub user: Option<String>,
    /// The accelerator.
    pub accelerator: String,
    /// The facets that make histories incomparable, by name.
    pub context: BTreeMap<String, String>,
    /// The epoch, from 1.
    pub epoch: i32,
    /// How the epoch came to be.
    pub opened: OpenedSummary,
    /// The phase.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// Runs of the epoch that counted.
    pub counted: i64,
    /// Runs of the epoch that ended and did not count.
    pub not_counted: i64,
    /// Runs of the epoch in flight.
    pub in_flight: i64,
    /// Design and search runs that ended, and how many there are to be; those that confirm the best come on
    /// top.
    pub explored: (u64, u32),
    /// Counted runs of the default, over the whole epoch.
    pub default: Option<Elapsed>,
    /// Counted control runs since the study settled: what the tuned runs are compared with.
    pub control: Option<Elapsed>,
    /// Counted runs since the study settled that were given the recommended parametrization.
    pub tuned: Option<Elapsed>,
    /// What the tuned runs gain against the control runs, as clients before 0.2 read it.
    pub gain: Option<GainSummary>,
    /// The gain with its evidence, and the findings. Absent from a service before 0.2.
    #[serde(default)]
    pub assessment: Option<Assessment>,
    /// The parametrization recommended now.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    pub recommended: Option<Parametrization>,
    /// Its values that differ from the default's.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub differs: Parametrization,
    /// Why it is recommended, in one sentence.
    pub why: String,
    /// Set while the study is pinned.
    pub pin: Option<PinSummary>,
    /// What is quarantined in the epoch.
    #[serde(default)]
    pub quarantined: Vec<QuarantineSummary>,
    /// What is wrong with the study as a whole, and what to do: its runs are too different to be
    /// one application's, for instance, or their time limit leaves no room to explore.
    #[serde(default)]
    pub warnings: Vec<String>,
}

impl StudySummary {
    /// How far the search has come, in words.
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

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Started, or waiting for its report or for Slurm's word.
    InFlight,
    /// It counts for a parametrization.
    Counted,
    /// Its time limit cut it short: its elapsed is a lower bound.
    Censored,
    /// It ended and does not count; the reason says why.
    NotCounted,
}

/// A run as `history` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// The run's number.
    pub run_id: i64,
    /// The study.
    pub study_id: i64,
    /// The application's name.
    pub application: String,
    /// The owner.
    pub uid: u32,
    /// The epoch, from 1.
    pub epoch: i32,
    /// When that was opened, by the database's clock.
    #[schema(value_type = String)]
    pub epoch_opened_at: Timestamp,
    /// Why it was, in one sentence.
    pub epoch_opened_why: String,
    /// Slurm's ClusterName.
    pub cluster: String,
    /// Slurm's job id.
    pub job_id: u32,
    /// The restart count.
    pub restart_count: u32,
    /// The node that started it.
    pub node: String,
    /// The study's phase at its start.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// Its part.
    #[schema(value_type = String)]
    pub role: Role,
    /// What it was launched under.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub parametrization: Parametrization,
    /// Its values that differ from the default's.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub differs: Parametrization,
    /// Why, in one sentence.
    pub reason: String,
    /// Where it is in its life.
    pub state: RunState,
    /// Why it counts or does not.
    pub verdict: Option<String>,
    /// Slurm's word for its end, such as `COMPLETED`.
    pub outcome: Option<String>,
    /// What was really applied.
    pub applied: Option<Applied>,
    /// Seconds, by the node's monotonic clock.
    pub elapsed: Option<f64>,
    /// The first wait status of its steps that is not 0, else 0.
    pub wait_status: Option<i32>,
    /// Numbers the job left.
    pub measures: BTreeMap<String, f64>,
    /// When it started, by the database's clock.
    #[schema(value_type = String)]
    pub started_at: Timestamp,
    /// When its report came.
    #[schema(value_type = Option<String>)]
    pub finished_at: Option<Timestamp>,
    /// Why what it was launched under is quarantined now, where that is so; told where the runs of one application or
    /// study were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined: Option<String>,
}

/// `GET /v1/runs/{job_id}`: one run with what the suggestion was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunDetail {
    /// The run.
    pub run: RunSummary,
    /// Everything the suggestion was made from: seed, settings, engine version, runs in flight.
    pub suggestion: serde_json::Value,
    /// How the parametrization was delivered.
    pub delivery: Delivery,
    /// The node reports, as they came.
    pub reports: Vec<serde_json::Value>,
}

/// `POST /v1/studies/{id}/pin`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// Values as text, by parameter; parameters left out keep the default.
    /// Absent: what is recommended now.
    #[serde(default)]
    pub values: Option<BTreeMap<String, String>>,
    /// Why, for the audit table.
    pub why: String,
}

/// One suggestion recomputed from its stored inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Suggested {
    /// The phase.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// The run's part in it.
    #[schema(value_type = String)]
    pub role: Role,
    /// What the run gets.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub parametrization: Parametrization,
    /// Why, in one sentence.
    pub reason: String,
}

/// `GET /v1/runs/{job_id}/replay`: for each launch, whether the stored inputs give the suggestion
/// that the run was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Replay {
    /// The run.
    pub run_id: i64,
    /// The restart count.
    pub restart_count: u32,
    /// What the run was given.
    pub given: Suggested,
    /// What the engine says now; absent where the run has no suggestion, or one that cannot be
    /// recomputed.
    pub recomputed: Option<Suggested>,
    /// Whether they are the same.
    pub same: bool,
    /// What to know about it: another engine version, for instance, or why there is nothing to
    /// recompute.
    pub note: Option<String>,
}

/// How a check of `doctor` went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// All is well.
    Ok,
    /// Something deserves a look.
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
    /// What was found, and what to do about it.
    pub detail: String,
}

/// `GET /v1/doctor`: what the service says of itself. For admins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diagnosis {
    /// The service's version.
    pub version: String,
    /// The checks.
    pub checks: Vec<Check>,
}

/// `POST /v1/studies/{id}/unpin`, `/reset` and `/accept`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyRequest {
    /// Why, for the audit table.
    pub why: String,
}

/// `GET /v1/ready`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether requests can be served.
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
