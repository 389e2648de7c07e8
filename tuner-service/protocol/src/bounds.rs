//! The bounds of requests.
//!
//! Root of any node and every user can send anything, and what is accepted is stored and read by
//! every later sweep and report. So each request defines the bounds of each of its fields.
//! [`Bounded`] is implemented by destructuring a type field by field: a new field does not compile
//! until its bounds are defined.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use io_autotune_model::{LARGEST_MEASURE, Outcome, Parametrization, Value};
use jiff::Timestamp;

use crate::application::{ApplicationName, is_application};
use crate::online::{OnlineEntry, OnlineRecord};
use crate::printable::shown;
use crate::request::{Request, is_name};
use crate::types::{
    Applied, CompletedDirectives, DirectivesRequest, EpilogOutcome, FinishRequest, ImportChunk,
    ImportRequest, Job, NodeState, ObjectiveRequest, ObservedParameter, OrderRequest, OrderScope,
    OutcomesRequest, OverRequest, PinRequest, PreviewRequest, RetentionRequest, StartRequest, Step,
    WarmStartRequest, WhyRequest, is_directive_name,
};
use crate::{is_account, is_hostlist};

/// The most bytes of a name that Slurm or a site gives: of a node, a partition, an account.
pub const NAME_BYTES: usize = 256;
/// The most bytes of a text that a node writes: a failure in words, a setting's name, its value.
pub const TEXT_BYTES: usize = 4096;
/// The most entries of a list or a map in a node's report.
pub const ENTRIES: usize = 1024;
/// The most values of a pin: several times the parameters of any accelerator, or of several
/// accelerators together.
pub const VALUES: usize = 64;
/// The most steps of a job on one node: three times as many as a node reports.
pub const STEPS: usize = 1 << 16;
/// The most runs that a node asks about in one request.
pub const RUNS: usize = 10_000;
/// The most measures of a report.
pub const MEASURES: usize = 64;
/// The most nodes of a job: sixteen times as many as Slurm manages.
pub const NODES: u32 = 1 << 20;
/// The most seconds of a time limit or a suspension: Slurm counts limits in minutes, in 32 bits.
pub const SECONDS: u64 = 60 * u32::MAX as u64;
/// The most characters of a reason.
pub const REASON_CHARACTERS: usize = 500;

/// The range of times, in seconds since 1970. No clock gives a time before, and the result of an
/// arithmetic on a time in the year 9999 may be beyond what a database or a library can hold.
const YEARS: std::ops::Range<i64> = 0..32_503_680_000;

/// An error in a request: the field, and the problem with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The path from the request's root, such as `steps[3].nodes`.
    field: String,
    problem: String,
}

impl OutOfBounds {
    /// An error for a field that is not as expected.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }

    fn of(self, parent: &str) -> Self {
        Self {
            field: format!("{parent}.{}", self.field),
            ..self
        }
    }
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field, self.problem)
    }
}

impl std::error::Error for OutOfBounds {}

type Checked = Result<(), OutOfBounds>;

/// A request whose fields all have bounds.
pub trait Bounded {
    /// Returns an error for the first field that is out of bounds.
    fn check(&self) -> Checked;

    /// The same request with texts and lists that are too long cut, for requests whose refusal
    /// would lose everything else in them.
    #[must_use]
    fn fitted(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

fn refused(field: &str, value: impl fmt::Debug, expected: &str) -> OutOfBounds {
    let value: String = format!("{value:?}").chars().take(100).collect();
    OutOfBounds::new(field, format!(" = {}: {expected}", shown(&value)))
}

fn at_most(field: &str, entries: usize, most: usize) -> Checked {
    if entries <= most {
        return Ok(());
    }
    let problem = format!(" has {entries} entries: at most {most} are taken");
    Err(OutOfBounds::new(field, problem))
}

/// Checks a name: printable ASCII without blanks.
fn name(field: &str, value: &str) -> Checked {
    let is_name =
        (1..=NAME_BYTES).contains(&value.len()) && value.bytes().all(|b| b.is_ascii_graphic());
    match is_name {
        true => Ok(()),
        false => Err(refused(
            field,
            value,
            "1 to 256 printable ASCII characters are expected",
        )),
    }
}

/// Checks the length of a text. Any characters are allowed: they are made printable where the text
/// is shown.
fn text(field: &str, value: &str) -> Checked {
    if value.len() > TEXT_BYTES {
        let problem = format!(" has {} bytes: at most {TEXT_BYTES} are taken", value.len());
        return Err(OutOfBounds::new(field, problem));
    }
    match value.contains('\0') {
        true => Err(OutOfBounds::new(field, " has a zero byte")),
        false => Ok(()),
    }
}

fn texts<'a>(field: &str, values: impl IntoIterator<Item = &'a String>) -> Checked {
    let mut values = values.into_iter();
    values.try_for_each(|value| text(field, value))
}

fn map(field: &str, values: &BTreeMap<String, String>) -> Checked {
    at_most(field, values.len(), ENTRIES)?;
    texts(field, values.keys().chain(values.values()))
}

fn time(field: &str, at: Option<Timestamp>) -> Checked {
    match at {
        Some(at) if !YEARS.contains(&at.as_second()) => Err(refused(
            field,
            at.to_string(),
            "a time from 1970 on and before the year 3000 is expected",
        )),
        _ => Ok(()),
    }
}

fn seconds(field: &str, value: Option<u64>) -> Checked {
    match value {
        Some(value) if value > SECONDS => Err(refused(
            field,
            value,
            &format!("at most {SECONDS} seconds are expected"),
        )),
        _ => Ok(()),
    }
}

fn signed(field: &str, value: u64) -> Checked {
    match i64::try_from(value) {
        Ok(_) => Ok(()),
        Err(_) => Err(refused(field, value, "a number below 2^63 is expected")),
    }
}

fn restart_count(field: &str, value: u32) -> Checked {
    match value > i32::MAX.cast_unsigned() {
        true => Err(refused(field, value, "a number below 2^31 is expected")),
        false => Ok(()),
    }
}

fn positive(field: &str, value: u32) -> Checked {
    match value {
        0 => Err(refused(field, value, "a positive number is expected")),
        _ => Ok(()),
    }
}

fn nodes(field: &str, value: u32) -> Checked {
    positive(field, value)?;
    match value > NODES {
        true => Err(refused(
            field,
            value,
            &format!("at most {NODES} nodes are expected"),
        )),
        false => Ok(()),
    }
}

fn reason(why: &str) -> Checked {
    // Its other rules are checked where a reason is shown.
    match why.chars().take(2 * REASON_CHARACTERS + 1).count() > 2 * REASON_CHARACTERS {
        true => Err(OutOfBounds::new(
            "why",
            format!(" is too long: at most {REASON_CHARACTERS} characters are taken"),
        )),
        false => text("why", why),
    }
}

/// Returns true if a text is an exit code and a signal as Slurm writes them: `0:0`.
#[must_use]
pub fn is_exit_code(text: &str) -> bool {
    let number = |text: &str| {
        (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.split_once(':')
        .is_some_and(|(code, signal)| number(code) && number(signal))
}

fn exit_code(field: &str, code: &str) -> Checked {
    match is_exit_code(code) {
        true => Ok(()),
        false => Err(refused(
            field,
            code,
            "an exit code and a signal are expected, such as 0:0",
        )),
    }
}

impl Bounded for Job {
    fn check(&self) -> Checked {
        let Self {
            cluster,
            job_id,
            restart_count: count,
            // The type only admits Slurm's form.
            sluid: _,
            // Every number may be the id of some user or group.
            uid: _,
            gid: _,
            user,
            node,
            nodes: of,
            partition,
            cpus_per_node,
        } = self;
        text("job.cluster", cluster)?;
        positive("job.job_id", *job_id)?;
        restart_count("job.restart_count", *count)?;
        nodes("job.nodes", *of)?;
        name("job.node", node)?;
        name("job.partition", partition)?;
        name("job.cpus_per_node", cpus_per_node)?;
        // A login name may have blanks and any letters.
        if let Some(user) = user
            && (user.is_empty() || user.len() > NAME_BYTES || user.contains(char::is_control))
        {
            return Err(refused(
                "job.user",
                user,
                "1 to 256 bytes without control characters are expected",
            ));
        }
        Ok(())
    }
}

impl Bounded for Request {
    fn check(&self) -> Checked {
        let Self {
            app: _,
            accelerator: _,
            mode: _,
            note: _,
            job_name: _,
            comment: _,
            tell: _,
            dir: _,
            rule,
        } = self;
        if let Some(rule) = rule {
            text("request.rule", rule)?;
        }
        self.validate()
            .map_err(|error| OutOfBounds::new("request: ", error.to_string()))
    }
}

impl Bounded for PreviewRequest {
    fn check(&self) -> Checked {
        let Self { request } = self;
        request.check()
    }
}

impl Bounded for StartRequest {
    fn check(&self) -> Checked {
        let Self {
            job,
            request,
            limit_seconds,
            started_at,
            node_state,
        } = self;
        request.check()?;
        job.check()?;
        seconds("limit_seconds", *limit_seconds)?;
        time("started_at", *started_at)?;
        match node_state {
            Some(state) => state.check().map_err(|error| error.of("node_state")),
            None => Ok(()),
        }
    }
}

impl Bounded for NodeState {
    fn check(&self) -> Checked {
        let Self {
            // Of these, values that are too long are simply not stored: what a node says about
            // itself must not make a start fail.
            version: _,
            plugin: _,
            spool_problem: _,
            told_at,
            waiting: _,
            oldest_seconds: _,
            refused: _,
        } = self;
        time("told_at", Some(*told_at))
    }
}

impl Bounded for CompletedDirectives {
    fn check(&self) -> Checked {
        let Self { kept } = self;
        let most = DirectivesRequest::MOST;
        if kept.len() > most || !kept.iter().all(|name| is_directive_name(name)) {
            let problem = format!(
                " has {} names: at most {most} are taken, of letters, digits, '-' and '_'",
                kept.len()
            );
            return Err(OutOfBounds::new("directives.kept", problem));
        }
        Ok(())
    }
}

impl Bounded for DirectivesRequest {
    fn check(&self) -> Checked {
        let Self {
            cluster,
            job_id: _,
            restart_count: count,
            run_id: _,
            directives,
        } = self;
        text("cluster", cluster)?;
        restart_count("restart_count", *count)?;
        directives.check()
    }
}

impl Bounded for Parametrization {
    fn check(&self) -> Checked {
        at_most("parametrization", self.0.len(), ENTRIES)?;
        for (name, value) in &self.0 {
            text("parametrization", name)?;
            match value {
                Value::Integer(_) | Value::Real(_) => {}
                Value::Text(value) => text("parametrization", value)?,
            }
        }
        Ok(())
    }
}

impl Bounded for Applied {
    fn check(&self) -> Checked {
        match self {
            Self::Default => Ok(()),
            Self::Parametrization { parametrization } => parametrization.check(),
            Self::User { variables } => {
                at_most("variables", variables.len(), ENTRIES)?;
                texts("variables", variables)
            }
            Self::Incomplete { detail } => text("detail", detail),
        }
    }
}

impl Bounded for Step {
    fn check(&self) -> Checked {
        let Self {
            step_id: _,
            started_at,
            // Every duration is accepted; a sum that overflows counts as unknown.
            duration_ns: _,
            wait_status: _,
            nodes: of,
            variables,
        } = self;
        time("started_at", *started_at)?;
        nodes("nodes", *of)?;
        at_most("variables", variables.len(), ENTRIES)?;
        texts("variables", variables.keys())
    }
}

impl Bounded for ObservedParameter {
    fn check(&self) -> Checked {
        let Self {
            parameter,
            name,
            asked,
            in_force,
            as_asked: _,
        } = self;
        text("parameter", parameter)?;
        text("name", name)?;
        text("in_force", in_force)?;
        texts("asked", asked)
    }
}

impl Bounded for EpilogOutcome {
    fn check(&self) -> Checked {
        let Self {
            exit_code: code,
            derived_exit_code,
            limit_seconds,
        } = self;
        exit_code("exit_code", code)?;
        exit_code("derived_exit_code", derived_exit_code)?;
        seconds("limit_seconds", *limit_seconds)
    }
}

impl Bounded for OnlineRecord {
    fn check(&self) -> Checked {
        let Self {
            policy: _,
            period_ms,
            levers,
            began,
            entries,
        } = self;
        at_most("levers", levers.len(), Self::LEVERS)?;
        at_most("entries", entries.len(), Self::ENTRIES)?;
        for lever in levers {
            name("levers", lever)?;
        }
        signed("period_ms", *period_ms)?;
        let values = |field: &str, values: &[u64]| {
            if values.len() != levers.len() {
                let problem = format!(
                    " has {} values: one of each of the {} levers is expected",
                    values.len(),
                    levers.len()
                );
                return Err(OutOfBounds::new(field, problem));
            }
            let mut values = values.iter();
            values.try_for_each(|value| signed(field, *value))
        };
        values("began", began)?;
        for (place, entry) in entries.iter().enumerate() {
            let OnlineEntry {
                at_ms,
                periods,
                bandwidth,
                requests,
                cached,
                dirty,
                values: set,
                moves,
                reason: _,
            } = entry;
            let check = || {
                for (field, value) in [
                    ("at_ms", at_ms),
                    ("periods", periods),
                    ("bandwidth", bandwidth),
                    ("requests", requests),
                    ("cached", cached),
                    ("dirty", dirty),
                    ("moves", moves),
                ] {
                    signed(field, *value)?;
                }
                values("values", set)
            };
            check().map_err(|error: OutOfBounds| error.of(&format!("entries[{place}]")))?;
        }
        Ok(())
    }
}

fn measures(measures: &BTreeMap<String, f64>) -> Checked {
    at_most("measures", measures.len(), MEASURES)?;
    for (of, value) in measures {
        name("the name of a measure", of)?;
        if !(value.is_finite() && *value > 0.0 && *value <= LARGEST_MEASURE) {
            return Err(refused(
                &format!("measures.{of}"),
                value,
                "it must be positive, and at most 2^63",
            ));
        }
    }
    Ok(())
}

impl Bounded for FinishRequest {
    /// A refused report is lost, so texts that are too long are cut: by the node itself, and here
    /// for nodes of earlier releases.
    fn fitted(mut self) -> Self {
        if let Some(why) = &mut self.start_failure {
            cut(why);
        }
        match &mut self.applied {
            Applied::Incomplete { detail } => cut(detail),
            Applied::User { variables } => {
                variables.truncate(ENTRIES);
                variables.iter_mut().for_each(cut);
            }
            Applied::Default | Applied::Parametrization { .. } => {}
        }
        self.steps.truncate(STEPS);
        self.observed.truncate(ENTRIES);
        for one in &mut self.observed {
            let texts = [&mut one.parameter, &mut one.name, &mut one.in_force];
            texts.into_iter().chain(&mut one.asked).for_each(cut);
        }
        let in_force = std::mem::take(&mut self.in_force).into_iter().take(ENTRIES);
        self.in_force = in_force
            .map(|(mut name, mut value)| {
                cut(&mut name);
                cut(&mut value);
                (name, value)
            })
            .collect();
        self
    }

    fn check(&self) -> Checked {
        let Self {
            job,
            request,
            run_id: _,
            prolog_at,
            start_failure,
            applied,
            steps,
            in_force,
            observed,
            online,
            epilog,
            measures: measured,
        } = self;
        request.check()?;
        job.check()?;
        time("prolog_at", *prolog_at)?;
        texts("start_failure", start_failure)?;
        applied.check().map_err(|error| error.of("applied"))?;
        at_most("steps", steps.len(), STEPS)?;
        let mut seen = HashSet::new();
        for (place, step) in steps.iter().enumerate() {
            let of = format!("steps[{place}]");
            step.check().map_err(|error| error.of(&of))?;
            if !seen.insert(step.step_id) {
                return Err(OutOfBounds::new(
                    of,
                    format!(": step {} is told twice", step.step_id),
                ));
            }
        }
        map("in_force", in_force)?;
        at_most("told", observed.len(), ENTRIES)?;
        for (place, one) in observed.iter().enumerate() {
            one.check()
                .map_err(|error| error.of(&format!("told[{place}]")))?;
        }
        if let Some(online) = online {
            online.check().map_err(|error| error.of("online"))?;
        }
        if let Some(epilog) = epilog {
            epilog.check().map_err(|error| error.of("epilog"))?;
        }
        measures(measured)
    }
}

impl Bounded for OverRequest {
    fn check(&self) -> Checked {
        let Self { runs } = self;
        at_most("runs", runs.len(), RUNS)
    }
}

impl Bounded for Outcome {
    fn check(&self) -> Checked {
        let Self {
            job_id,
            state,
            exit_code: code,
            restart_count: count,
            started_at,
            ended_at,
            suspended_seconds,
            limit_seconds,
            account,
            // Every number may be the id of some user.
            uid: _,
            node_list,
        } = self;
        positive("job_id", *job_id)?;
        let is_word = (1..=32).contains(&state.len())
            && state.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
        if !is_word {
            return Err(refused(
                "state",
                state,
                "a word of 1 to 32 capital letters and _ is expected",
            ));
        }
        if let Some(code) = code {
            exit_code("exit_code", code)?;
        }
        restart_count("restart_count", count.unwrap_or_default())?;
        time("started_at", *started_at)?;
        time("ended_at", *ended_at)?;
        if let (Some(started_at), Some(ended_at)) = (started_at, ended_at)
            && ended_at < started_at
        {
            return Err(OutOfBounds::new(
                "ended_at",
                format!(" = {ended_at} is before started_at = {started_at}"),
            ));
        }
        seconds("suspended_seconds", *suspended_seconds)?;
        seconds("limit_seconds", *limit_seconds)?;
        if let Some(account) = account
            && !is_account(account)
        {
            return Err(refused(
                "account",
                account,
                "a name of 1 to 64 letters, digits and _-.+ is expected",
            ));
        }
        if let Some(node_list) = node_list
            && !is_hostlist(node_list)
        {
            return Err(refused(
                "node_list",
                node_list,
                "a hostlist is expected, such as n[1-3,7]",
            ));
        }
        Ok(())
    }
}

impl Bounded for OutcomesRequest {
    fn check(&self) -> Checked {
        let Self { cluster, outcomes } = self;
        text("cluster", cluster)?;
        at_most("outcomes", outcomes.len(), Self::MOST)?;
        for outcome in outcomes {
            let of = format!("the outcome of job {}: ", outcome.job_id);
            outcome.check().map_err(|OutOfBounds { field, problem }| {
                OutOfBounds::new(format!("{of}{field}"), problem)
            })?;
        }
        Ok(())
    }
}

fn values(values: &Option<BTreeMap<String, String>>) -> Checked {
    let Some(values) = values else {
        return Ok(());
    };
    at_most("values", values.len(), VALUES)?;
    for (of, value) in values {
        name("values", of)?;
        let is_value = value.len() <= NAME_BYTES && !value.contains(char::is_control);
        if !is_value {
            return Err(refused(
                &format!("values.{of}"),
                value,
                "at most 256 bytes without control characters are expected",
            ));
        }
    }
    Ok(())
}

impl Bounded for PinRequest {
    fn check(&self) -> Checked {
        let Self {
            values: pinned,
            until,
            why,
        } = self;
        values(pinned)?;
        time("until", *until)?;
        reason(why)
    }
}

/// Returns true if a text can be an application's full name: as long as a job's name may be.
fn is_full_name(text: &str) -> bool {
    text.len() <= NAME_BYTES && !text.contains('\0') && ApplicationName::of(text).is_some()
}

impl Bounded for OrderScope {
    fn check(&self) -> Checked {
        let Self {
            study: _,
            uid: _,
            application,
            accelerator,
            cluster,
        } = self;
        let is_good = |of: &str| is_application(of) || is_full_name(of);
        for (field, of) in [
            (
                "scope.application",
                application.as_ref().filter(|of| !is_good(of)),
            ),
            (
                "scope.accelerator",
                accelerator.as_ref().filter(|of| !is_name(of)),
            ),
        ] {
            if let Some(of) = of {
                return Err(refused(
                    field,
                    of,
                    "a name is expected: at most 128 of letters, digits and . _ + @ -, starting with a letter or digit",
                ));
            }
        }
        texts("scope.cluster", cluster)
    }
}

impl Bounded for OrderRequest {
    fn check(&self) -> Checked {
        let Self {
            kind: _,
            scope,
            values: pinned,
            until,
            dry_run: _,
            why,
        } = self;
        scope.check()?;
        values(pinned)?;
        time("until", *until)?;
        reason(why)
    }
}

impl Bounded for WhyRequest {
    fn check(&self) -> Checked {
        let Self { why } = self;
        reason(why)
    }
}

impl Bounded for ObjectiveRequest {
    fn check(&self) -> Checked {
        let Self {
            objective,
            maximise: _,
            why,
        } = self;
        text("objective", objective)?;
        reason(why)
    }
}

impl Bounded for WarmStartRequest {
    fn check(&self) -> Checked {
        let Self {
            from: _,
            dry_run: _,
            why,
        } = self;
        reason(why)
    }
}

impl Bounded for RetentionRequest {
    fn check(&self) -> Checked {
        let Self {
            // The handler checks the least and the largest number.
            older_than_days: _,
            dry_run: _,
            why,
        } = self;
        reason(why)
    }
}

impl Bounded for ImportChunk {
    fn check(&self) -> Checked {
        let Self { place, text } = self;
        let (pieces, bytes) = (crate::IMPORT_CHUNKS, crate::IMPORT_CHUNK);
        if *place >= pieces || text.len() > bytes || text.is_empty() {
            let problem = format!(
                "a file has at most {pieces} pieces of at most {bytes} bytes each: import fewer studies at once"
            );
            return Err(OutOfBounds::new("", problem));
        }
        match text.contains('\0') {
            true => Err(OutOfBounds::new("text", " has a zero byte")),
            false => Ok(()),
        }
    }
}

impl Bounded for ImportRequest {
    fn check(&self) -> Checked {
        let Self {
            // A file cannot have more pieces than were accepted.
            chunks: _,
            step: _,
            skip_existing: _,
            cluster,
            why,
        } = self;
        texts("cluster", cluster)?;
        reason(why)
    }
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    if text.contains('\0') {
        *text = text.replace('\0', "?");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_this_millennium_and_the_last_thirty_years_of_the_other() {
        for (at, is_good) in [
            ("1969-12-31T23:59:59Z", false),
            ("-009999-01-02T01:59:59Z", false),
            ("1970-01-01T00:00:00Z", true),
            ("2999-12-31T23:59:59Z", true),
            ("3000-01-01T00:00:00Z", false),
            ("9999-12-30T22:00:00Z", false),
        ] {
            let checked = time("prolog_at", Some(at.parse().unwrap()));
            assert_eq!(checked.is_ok(), is_good, "{at}");
        }
        assert_eq!(time("prolog_at", None), Ok(()));
    }

    #[test]
    fn exit_codes_are_two_numbers() {
        for good in ["0:0", "0:125", "3:0"] {
            assert!(is_exit_code(good), "{good}");
        }
        for bad in [
            "",
            "0",
            ":",
            "0:",
            "-1:0",
            "0:0:0",
            "00000000000:0",
            "0:0\n",
        ] {
            assert!(!is_exit_code(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_problem_names_its_field_and_quotes_little_of_it() {
        let step = Step {
            started_at: None,
            step_id: 0,
            duration_ns: Some(u64::MAX),
            wait_status: 0,
            nodes: 0,
            variables: BTreeMap::new(),
        };
        let error = step.check().unwrap_err().of("steps[3]").to_string();
        assert_eq!(error, "steps[3].nodes = 0: a positive number is expected");
        let long = "\u{1b}[31m".repeat(3000);
        let error = name("job.node", &long).unwrap_err().to_string();
        assert!(error.len() < 300 && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn a_report_that_is_cut_is_taken() {
        let long = || format!("a\0{}", "\u{20ac}".repeat(TEXT_BYTES));
        let body = serde_json::json!({
            "job": {"cluster": "c", "job_id": 1, "restart_count": 0, "uid": 1, "gid": 1, "node": "n1", "nodes": 1,
                    "partition": "main", "cpus_per_node": "1"},
            "request": {"app": "ocean"}, "start_failure": long(),
            "applied": {"kind": "incomplete", "detail": long()}, "steps": [],
            "in_force": {long(): long()},
            "told": [{"parameter": long(), "name": long(), "asked": long(), "in_force": long(), "as_asked": true}],
        });
        let mut report: FinishRequest = serde_json::from_value(body).unwrap();
        assert!(report.check().is_err());
        for number in 0..2 * ENTRIES {
            report.in_force.insert(number.to_string(), "1".into());
            report.observed.push(report.observed[0].clone());
        }
        let report = report.fitted();
        assert_eq!(report.check(), Ok(()));
        let cut = report.start_failure.unwrap();
        assert!(
            cut.starts_with("a?\u{20ac}") && (TEXT_BYTES - 3..=TEXT_BYTES).contains(&cut.len())
        );
        let users = Applied::User {
            variables: vec![long(); 2 * ENTRIES],
        };
        let report = FinishRequest {
            start_failure: None,
            applied: users,
            ..report
        };
        assert_eq!(report.fitted().check(), Ok(()));
    }

    fn outcome() -> Outcome {
        Outcome {
            job_id: 7,
            state: "COMPLETED".into(),
            exit_code: Some("0:0".into()),
            restart_count: None,
            started_at: Some("2026-11-21T12:00:00Z".parse().unwrap()),
            ended_at: Some("2026-11-21T12:00:05Z".parse().unwrap()),
            suspended_seconds: None,
            limit_seconds: Some(60),
            account: Some("physics".into()),
            uid: Some(1000),
            node_list: Some("n[1-2]".into()),
        }
    }

    #[test]
    fn what_slurm_says_is_taken() {
        outcome().check().unwrap();
        for state in ["REQUEUED", "OUT_OF_MEMORY", "A_WORD_OF_SOME_LATER_SLURM"] {
            let outcome = Outcome {
                job_id: 7,
                state: state.into(),
                ..Outcome::default()
            };
            outcome.check().unwrap();
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        type Edit = fn(&mut Outcome);
        let edits: [(&str, Edit); 11] = [
            ("job_id", |o| o.job_id = 0),
            ("a word of 1 to 32", |o| o.state = "completed".into()),
            ("a word of 1 to 32", |o| o.state = String::new()),
            ("a word of 1 to 32", |o| o.state = "A".repeat(33)),
            ("exit_code", |o| o.exit_code = Some("0:0; drop".into())),
            ("restart_count", |o| o.restart_count = Some(u32::MAX)),
            ("is before started_at", |o| {
                o.ended_at = Some("2026-11-21T11:00:00Z".parse().unwrap())
            }),
            ("from 1970 on", |o| {
                o.started_at = Some("1969-11-21T11:00:00Z".parse().unwrap())
            }),
            ("limit_seconds", |o| o.limit_seconds = Some(u64::MAX)),
            ("account", |o| o.account = Some("a b".into())),
            ("node_list", |o| o.node_list = Some("n1 n2".into())),
        ];
        for (expected, edit) in edits {
            let mut outcome = outcome();
            edit(&mut outcome);
            let problem = outcome.check().unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
