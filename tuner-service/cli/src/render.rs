//! The API's answers as text.

mod accelerators;
mod checks;
pub(crate) mod columns;
pub(crate) mod compare;
mod gain;
pub(crate) mod history;
mod markup;
mod measures;
mod online;
pub(crate) mod order;
pub(crate) mod page;
mod replay;
mod rules;
mod sharing;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod steering;
pub(crate) mod units;

use std::fmt::Display;

use io_autotune_model::{Elapsed, OTHERS_RATIO, Parametrization};
use io_autotune_protocol::{
    Applied, BegunFrom, Cleaned, FinishRequest, Request, RunDetail, RunState, RunSummary,
    StudySummary, shown_lines,
};

use serde::Deserialize;

pub(crate) use accelerators::{accelerator, accelerators};
pub(crate) use checks::checks;
pub(crate) use replay::replays;
pub(crate) use rules::{checked, trial};

use crate::people::called;
use crate::screen::Screen;

/// The text in the place of values that would reveal a run's label before the run has ended.
const UNTOLD: &str = "told once it has ended";

fn told(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNTOLD.to_owned())
}

fn opened(at: impl Display, why: &str) -> String {
    format!("{at}: {why}")
}

/// The line with the reason why a study's epoch was opened; empty for the first epoch.
fn opening(study: &StudySummary, screen: &Screen) -> String {
    match study.epoch {
        1 => String::new(),
        _ => format!(
            "opened       {}\n",
            opened(screen.short(study.opened.at), &study.opened.why)
        ),
    }
}

/// Every launch of a job in full.
pub(crate) fn explain(details: &[RunDetail], screen: &Screen) -> String {
    let launches = details.iter().map(|detail| explain_one(detail, screen));
    shown_lines(&launches.collect::<Vec<_>>().join("\n"))
}

/// The values that the nodes read back, one a line.
fn in_force(reports: &[serde_json::Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports {
        let Ok(report) = FinishRequest::deserialize(report) else {
            continue;
        };
        let node = &report.job.node;
        lines.extend(
            report
                .in_force
                .iter()
                .map(|(name, value)| format!("{name} = {value} (on {node}, by the kernel)")),
        );
        lines.extend(report.observed.iter().map(|observed| {
            let given = match &observed.asked {
                Some(asked) if !observed.as_asked => format!(", and it was given {asked}"),
                _ => String::new(),
            };
            let (name, value) = (&observed.name, &observed.in_force);
            format!("{name} = {value} (on {node}, by the library{given})")
        }));
    }
    lines
}

/// The moves of levers while the job ran, by node.
fn moved_inside(reports: &[serde_json::Value]) -> Vec<String> {
    let reports = reports
        .iter()
        .filter_map(|report| FinishRequest::deserialize(report).ok());
    let drawn = reports.filter_map(|report| {
        let record = report.online.as_ref()?;
        Some(online::online(record, &report.job.node))
    });
    drawn.flatten().collect()
}

/// A line on the origin of the application's name; none if the user gave it.
fn named(request: Option<&Request>) -> String {
    let Some(request) = request else {
        return String::new();
    };
    let by = match (&request.rule, request.note) {
        (Some(rule), _) => format!("by rule {rule}"),
        (None, Some(_)) => "it says nothing of the program".to_owned(),
        (None, None) => "by no rule".to_owned(),
    };
    match (&request.job_name, &request.comment) {
        (None, None) => String::new(),
        (Some(name), None) => format!("named        {by}, from the job's name {name:?}\n"),
        (None, Some(comment)) => {
            format!("named        {by}, from the job's comment {comment:?}\n")
        }
        (Some(name), Some(comment)) => {
            format!("named        {by}, from the job's name {name:?} and comment {comment:?}\n")
        }
    }
}

/// The rule that decided, as after the next run in `status`; empty if it is not known.
fn rule(detail: &RunDetail) -> String {
    let rule = detail.suggestion.get("rule").and_then(|rule| rule.as_str());
    rule.map_or_else(String::new, |rule| format!(" [{rule}]"))
}

fn explain_one(detail: &RunDetail, screen: &Screen) -> String {
    let run = &detail.run;
    let applied = match &run.applied {
        None if run.role.is_none() => UNTOLD.to_owned(),
        None => "not reported yet".to_owned(),
        Some(Applied::Default) => "nothing: a run of the default".to_owned(),
        Some(Applied::Parametrization { parametrization }) => parametrization.to_string(),
        Some(Applied::User { variables }) => {
            format!(
                "nothing: the user's own {} was left alone",
                variables.join(", ")
            )
        }
        Some(Applied::Incomplete { detail }) => format!("not everywhere: {detail}"),
    };
    let is_elapsed = run.objective.is_elapsed();
    let spread = detail.expected.filter(|_| is_elapsed);
    let spread = spread.and_then(|expected| spread_of(&expected));
    let elapsed = elapsed(run, spread);
    let elapsed = elapsed.map_or_else(|| "unknown".into(), |seconds| format!("{seconds} s"));
    let verdict = run
        .verdict
        .as_deref()
        .unwrap_or("waits for its report or for Slurm's word");
    let mut text = format!(
        "job          {} (cluster {}, node {})\nstudy        {}, epoch {}, application {}\n{}{}phase, role  {}, {}\ngiven        {}\nbecause      {}\n{}applied      {applied}\nended        {}, elapsed {elapsed}\n{}counts       {}: {verdict}\n",
        job(run),
        run.cluster,
        run.node,
        run.study_id,
        run.epoch,
        run.application_called(),
        named(detail.request.as_ref()),
        match run.epoch {
            1 => String::new(),
            _ => format!(
                "opened       {}\n",
                opened(screen.exact(run.epoch_opened_at), &run.epoch_opened_why)
            ),
        },
        run.phase,
        told(run.role.map(|role| role.to_string())),
        told(run.parametrization.as_ref().map(ToString::to_string)),
        because(run) + &rule(detail),
        detail
            .decided_by
            .as_ref()
            .map_or_else(String::new, |order| order::decided_by(order, screen)),
        run.outcome.as_deref().unwrap_or("not known yet"),
        expected(detail).map_or_else(String::new, |line| format!("expected     {line}\n")),
        counts(run),
    );
    if let Some(known) = &detail.cleaned {
        text.push_str(&format!("busy         {}\n", cleaned(known, run)));
    }
    if let Some(begun_from) = &detail.begun_from {
        text.push_str(&format!("begun from   {}\n", others(begun_from)));
    }
    if !is_elapsed {
        text.push_str(&format!("objective    {}\n", objective(run)));
    }
    let did = measures::measures(&run.measures, run.elapsed);
    for (number, line) in did.iter().enumerate() {
        let label = if number == 0 { "I/O" } else { "" };
        text.push_str(&format!("{label:<13}{line}\n"));
    }
    for line in in_force(&detail.reports) {
        text.push_str(&format!("in force     {line}\n"));
    }
    for line in moved_inside(&detail.reports) {
        text.push_str(&format!("in the job   {line}\n"));
    }
    let findings = detail.findings.iter();
    for finding in findings.filter(|one| {
        let about = one.parametrization.as_ref();
        about.is_none_or(|about| Some(about) == run.parametrization.as_ref())
    }) {
        text.push_str(&format!(
            "its study    {} {}\n",
            finding.what, finding.action
        ));
    }
    for file in detail.delivery.iter().flat_map(|delivery| &delivery.files) {
        text.push_str(&format!(
            "file         {} (named by {}):\n",
            file.name, file.variable
        ));
        for line in file.content.lines() {
            text.push_str(&format!("             {line}\n"));
        }
    }
    text
}

/// The other studies whose results a choice could rest on, with the names of those that the reader
/// may see.
fn others(begun_from: &BegunFrom) -> String {
    let seen = begun_from.seen.iter();
    let mut of: Vec<String> = seen
        .map(|one| format!("study {} ({})", one.id, one.application))
        .collect();
    let unseen = begun_from.studies.saturating_sub(of.len() as u64);
    if unseen > 0 {
        let studies = if unseen == 1 { "study" } else { "studies" };
        of.push(format!("{unseen} {studies} of other users"));
    }
    format!("what is known by {}", of.join(", "))
}

/// The objective of the run's study, and the run's value of it.
fn objective(run: &RunSummary) -> String {
    let (objective, elapsed) = (&run.objective, run.elapsed.unwrap_or_default());
    let value = objective.value(elapsed, &run.measures).map_or_else(
        || "the run has not told it".to_owned(),
        |value| format!("{}{}", objective.told(value), objective.unit()),
    );
    format!("{}: {value}", gain::named(objective))
}

/// The standard deviation of the runs behind a mean, derived from its interval.
#[expect(clippy::cast_precision_loss, reason = "a number of runs")]
fn spread_of(elapsed: &Elapsed) -> Option<f64> {
    let (low, high) = elapsed.interval?;
    // Student's t is near 2 unless there are few runs; the decimals need no more accuracy.
    Some((high - low) / 4.0 * (elapsed.n as f64).sqrt())
}

/// How busy the machine was, the part of the time that this explains, and the estimate without it.
fn cleaned(known: &Cleaned, run: &RunSummary) -> String {
    let unit = run.objective.unit();
    let others = match (run.measures.get(OTHERS_RATIO), known.took) {
        (Some(ratio), Some(took)) => {
            let took = units::seconds(took, spread_of(&known.estimate));
            format!("others took {ratio:.2} times as long as ever; without that {took}{unit}; ")
        }
        _ => String::new(),
    };
    let (low, high) = known.estimate.interval.unwrap_or_default();
    let mean = status::mean(&known.estimate);
    let [low, high] = [low, high].map(|end| units::seconds(end, Some((high - low) / 4.0)));
    format!(
        "{others}its parametrization {mean}{unit} ({low} to {high}); {:.0} % of the noise is explained",
        100.0 * known.share
    )
}

/// The expected time of a run against the time that it took, if there was an expectation.
fn expected(detail: &RunDetail) -> Option<String> {
    let objective = &detail.run.objective;
    let of = |one: &Elapsed| {
        let runs = if one.n == 1 { "run" } else { "runs" };
        let (mean, unit) = (status::mean(one), objective.unit());
        format!("{mean}{unit} ({} {runs} before it)", one.n)
    };
    let came_to = detail.run.elapsed.and_then(|elapsed| {
        let value = objective.value(elapsed, &detail.run.measures)?;
        Some(objective.told(value))
    });
    let is_default = detail.run.differs.as_ref()?.0.is_empty();
    let mut line = match &detail.expected {
        Some(expected) => of(expected),
        None => "nothing: no run of it had counted before".to_owned(),
    };
    if let (Some(expected), Some(took)) = (&detail.expected, came_to)
        && detail.run.state != RunState::Censored
    {
        let percent = 100.0 * (took / expected.mean - 1.0);
        let took = if objective.is_elapsed() {
            "took"
        } else {
            "has"
        };
        line.push_str(&format!("; it {took} {percent:+.1} %"));
    }
    if let (Some(default), false) = (&detail.default_then, is_default) {
        line.push_str(&format!("; the default {}", of(default)));
    }
    Some(line)
}

fn because(run: &RunSummary) -> String {
    match (&run.reason, run.role) {
        (Some(reason), _) => reason.clone(),
        (None, None) => UNTOLD.to_owned(),
        (None, Some(_)) => {
            "told once the runs that were in flight at its start have ended".to_owned()
        }
    }
}

fn user(study: &StudySummary) -> String {
    called(study.user.as_deref(), study.uid)
}

/// The study's context, with its cluster if there are several.
fn context(study: &StudySummary) -> String {
    let cluster = study.cluster.iter();
    let cluster = cluster.map(|cluster| format!("cluster={cluster}"));
    let facets = study.context.iter();
    let facets = facets.map(|(name, value)| format!("{name}={value}"));
    cluster.chain(facets).collect::<Vec<_>>().join(" ")
}

fn phase(study: &StudySummary) -> String {
    match &study.ordered {
        Some(ordered) => format!("{}, {ordered}", study.phase),
        None => study.phase.to_string(),
    }
}

fn job(run: &RunSummary) -> String {
    launch(run.job_id, run.restart_count)
}

fn launch(job_id: u32, restart_count: u32) -> String {
    match restart_count {
        0 => job_id.to_string(),
        restarts => format!("{job_id} (restart {restarts})"),
    }
}

/// Elapsed in seconds; for a censored run a lower bound.
fn elapsed(run: &RunSummary, spread: Option<f64>) -> Option<String> {
    let seconds = units::seconds(run.elapsed?, spread);
    Some(match run.state {
        RunState::Censored => format!("at least {seconds}"),
        _ => seconds,
    })
}

fn counts(run: &RunSummary) -> String {
    match run.state {
        RunState::InFlight => "in flight".to_owned(),
        RunState::Counted => "yes".to_owned(),
        RunState::Censored => "lower bound".to_owned(),
        RunState::NotCounted => "no".to_owned(),
    }
}

fn differing(differs: &Parametrization) -> String {
    if differs.0.is_empty() {
        "the default".to_owned()
    } else {
        differs.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::{Finding, FindingKind, Phase, Role};
    use io_autotune_protocol::{Delivery, Note};

    use super::*;

    fn runs(list: &[RunSummary]) -> String {
        history::runs(list, &Screen::plain())
    }

    fn explain(details: &[RunDetail]) -> String {
        super::explain(details, &Screen::plain())
    }

    pub(super) fn run(state: RunState) -> RunSummary {
        RunSummary {
            run_id: 17,
            study_id: 3,
            application: "ocean".to_owned(),
            full_name: None,
            uid: 1000,
            user: Some("alice".to_owned()),
            accelerator: "romio".to_owned(),
            nodes: Some(2),
            epoch: 1,
            epoch_opened_at: jiff::Timestamp::UNIX_EPOCH,
            epoch_opened_why: "first run".to_owned(),
            objective: Default::default(),
            cluster: "c".to_owned(),
            job_id: 4711,
            restart_count: 1,
            node: "n1".to_owned(),
            phase: Phase::Search,
            role: Some(Role::Search),
            parametrization: Some(Parametrization::default()),
            differs: Some(Parametrization::default()),
            reason: Some("child".to_owned()),
            state,
            verdict: Some("its time limit ended it".to_owned()),
            not_counted_because: None,
            outcome: Some("TIMEOUT".to_owned()),
            applied: None,
            elapsed: Some(60.0),
            wait_status: None,
            measures: BTreeMap::new(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            finished_at: None,
            quarantined: None,
        }
    }

    fn detail_of(run: RunSummary) -> RunDetail {
        RunDetail {
            run,
            request: None,
            suggestion: serde_json::Value::Null,
            expected: None,
            default_then: None,
            cleaned: None,
            delivery: Some(Delivery::default()),
            reports: Vec::new(),
            findings: Vec::new(),
            decided_by: None,
            begun_from: None,
        }
    }

    #[test]
    fn how_busy_the_machine_was_is_said_with_what_is_estimated_without_it() {
        let of = |took, others: &[(&str, f64)]| {
            let mut known = detail_of(run(RunState::Counted));
            let others = others.iter().map(|(name, one)| ((*name).to_owned(), *one));
            known.run.measures = others.collect();
            known.cleaned = Some(Cleaned {
                took,
                estimate: Elapsed {
                    n: 4,
                    mean: 50.0,
                    interval: Some((46.0, 54.0)),
                },
                share: 0.42,
            });
            explain(&[known])
        };
        let text = of(Some(48.0), &[(OTHERS_RATIO, 1.25)]);
        let busy = "busy         others took 1.25 times as long as ever; without that 48 s; ";
        let estimate = "its parametrization 50 s (46 to 54); 42 % of the noise is explained\n";
        assert!(text.contains(&format!("{busy}{estimate}")), "{text}");
        let text = of(None, &[]);
        assert!(text.contains(&format!("busy         {estimate}")), "{text}");
    }

    #[test]
    fn a_later_epoch_says_when_and_why_it_was_opened() {
        let mut later = run(RunState::Counted);
        later.epoch = 2;
        later.epoch_opened_why = "drift: tuned runs took 10 s and take 20 s since".to_owned();
        let told = "1970-01-01T00:00:00: drift: tuned runs took 10 s and take 20 s since";
        let text = runs(&[run(RunState::Counted), later.clone(), later.clone()]);
        let line = "study 3, epoch 2: opened 01-01 00:00: drift: tuned runs took 10 s and take 20 s since\n";
        assert_eq!(text.matches(line).count(), 1, "{text}");
        assert!(!text.contains("first run"), "{text}");
        let text = explain(&[detail_of(later), detail_of(run(RunState::Counted))]);
        assert_eq!(
            text.matches(&format!("opened       {told}\n")).count(),
            1,
            "{text}"
        );
    }

    #[test]
    fn what_named_an_application_is_said_unless_it_was_the_user() {
        let of = |request: Request| named(Some(&request));
        let request: Request = "name=a%1Bb,mode=tune".parse().unwrap();
        let by_rule = Request {
            rule: Some("nextflow".into()),
            comment: Some("rule_a".into()),
            ..request.clone()
        };
        assert_eq!(
            of(by_rule),
            "named        by rule nextflow, from the job's name \"a\\u{1b}b\" and comment \"rule_a\"\n"
        );
        let nothing = Request {
            note: Some(Note::MeaninglessName),
            ..request
        };
        assert!(of(nothing).contains("it says nothing of the program, from the job's name"));
        assert_eq!(of("app=a,mode=tune".parse().unwrap()), "");
        assert_eq!(named(None), "");
    }

    #[test]
    fn of_the_studies_that_it_begins_from_those_are_named_that_the_reader_may_see() {
        let ocean = io_autotune_protocol::NamedStudy {
            id: 12,
            application: "ocean".to_owned(),
        };
        let of = |studies, seen: &[_]| {
            others(&BegunFrom {
                studies,
                seen: seen.to_vec(),
            })
        };
        assert_eq!(of(2, &[]), "what is known by 2 studies of other users");
        let one = [ocean];
        assert_eq!(of(1, &one), "what is known by study 12 (ocean)");
        assert_eq!(
            of(2, &one),
            "what is known by study 12 (ocean), 1 study of other users"
        );
    }

    #[test]
    fn a_run_cut_short_is_a_lower_bound_and_what_is_found_of_it_is_said() {
        let about = |parametrization| Finding {
            kind: FindingKind::Quarantine,
            what: "found this:".to_owned(),
            action: "do that".to_owned(),
            parametrization,
        };
        let of_another = Parametrization(BTreeMap::from([("size".to_owned(), 99.into())]));
        let detail = RunDetail {
            request: Some("name=nf-A_%281%29,mode=tune".parse().unwrap()),
            findings: vec![about(None), about(Some(of_another))],
            ..detail_of(run(RunState::Censored))
        };
        let text = explain(&[detail]);
        assert!(
            text.contains("its study    found this: do that\n"),
            "{text}"
        );
        assert_eq!(text.matches("its study").count(), 1, "{text}");
        assert!(
            text.contains("\nnamed        by no rule, from the job's name \"nf-A_(1)\"\nphase"),
            "{text}"
        );
        assert!(
            text.contains("ended        TIMEOUT, elapsed at least 60.0 s\n"),
            "{text}"
        );
        assert!(
            text.contains("counts       lower bound: its time limit ended it\n"),
            "{text}"
        );
        let text = runs(&[run(RunState::Censored), run(RunState::Counted)]);
        assert_eq!(text.matches("at least 60.0").count(), 1);
        assert_eq!(text.matches("60.0").count(), 2);
    }

    #[test]
    fn of_a_run_in_flight_whose_label_was_drawn_it_is_said_that_it_is_told_later() {
        let drawn = RunSummary {
            role: None,
            parametrization: None,
            differs: None,
            reason: None,
            verdict: None,
            outcome: None,
            elapsed: None,
            ..run(RunState::InFlight)
        };
        let of_one = Parametrization(BTreeMap::from([("size".to_owned(), 99.into())]));
        let detail = |run| RunDetail {
            delivery: None,
            findings: vec![Finding {
                kind: FindingKind::Quarantine,
                what: "found this:".to_owned(),
                action: "do that".to_owned(),
                parametrization: Some(of_one.clone()),
            }],
            ..detail_of(run)
        };
        let text = explain(&[detail(drawn.clone())]);
        for line in [
            "phase, role  search, told once it has ended\n",
            "given        told once it has ended\n",
            "because      told once it has ended\n",
            "applied      told once it has ended\n",
            "counts       in flight: waits for its report or for Slurm's word\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("found this"), "{text}");
        let text = runs(&[drawn]);
        assert_eq!(text.matches("told once it has ended").count(), 1, "{text}");

        // A run that has ended beside such runs shows everything except what they were.
        let ended = RunSummary {
            reason: None,
            ..run(RunState::Counted)
        };
        let text = explain(&[detail(ended)]);
        assert!(text.contains("phase, role  search, search\n"), "{text}");
        assert!(
            text.contains(
                "because      told once the runs that were in flight at its start have ended\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_a_run_changed_can_be_read_on_eighty_columns() {
        let mut changed = run(RunState::Counted);
        changed.application = "an-application-of-a-long-name".to_owned();
        changed.differs = Some(Parametrization(
            [("cb_nodes".to_owned(), 1234.into())].into(),
        ));
        let how = history::How {
            screen: &Screen::wide(80),
            exact: false,
        };
        let text = history::columns(&[changed], None, how).text(how.screen);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains("cb_nodes=1234"), "{text}");
        assert!(!text.contains("Start"), "{text}");
    }

    #[test]
    fn what_is_quarantined_is_said_once_below_the_runs() {
        let failed = || RunSummary {
            quarantined: Some("2 of 2 jobs failed under it".to_owned()),
            differs: Some(Parametrization([("size".to_owned(), 4.into())].into())),
            ..run(RunState::NotCounted)
        };
        let text = runs(&[failed(), failed(), run(RunState::Counted)]);
        let note = "\nquarantined: study 3: size=4: 2 of 2 jobs failed under it\n";
        assert!(text.ends_with(note), "{text}");
        assert_eq!(text.matches("quarantined").count(), 1);
    }

    #[test]
    fn an_empty_answer_says_what_to_do() {
        assert!(status::studies(&[], &Screen::plain()).contains("sbatch --io-autotune"));
        assert!(runs(&[]).contains("sbatch --io-autotune"));
    }
}
