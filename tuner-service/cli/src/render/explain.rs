//! A job's launches: what it ran with, whether that helped, whether it counts, and what comes next.

use io_autotune_model::{Elapsed, OTHERS_RATIO};
use io_autotune_protocol::{
    Applied, BegunFrom, Cleaned, FinishRequest, Request, RunDetail, RunState, RunSummary,
    shown_lines,
};
use serde::Deserialize;

use super::{
    UNTOLD, counts, differing, fold, gain, job, measures, online, opened, order, plain, status,
    told, units,
};
use crate::screen::Screen;

/// Every launch of a job, with what comes next in its study.
pub(crate) fn explain(details: &[RunDetail], is_detailed: bool, screen: &Screen) -> String {
    let launches = details.iter().map(|detail| match is_detailed {
        true => answers(detail, screen) + &inside(detail, screen),
        false => answers(detail, screen),
    });
    let mut text = launches.collect::<Vec<_>>().join("\n");
    if let Some(study) = details.last().and_then(|last| last.study.as_ref()) {
        let (gain, next) = (gain::of_study(study), status::next(study, screen));
        text.push_str(&format!("\nin all       {gain}\nnext         {next}\n"));
    }
    fold::labelled(&shown_lines(&text), screen)
}

/// The values that the nodes read back, one a line.
fn in_force(reports: &[FinishRequest]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports {
        let node = &report.job.node;
        let kernel = report.in_force.iter();
        let by_kernel = |(name, value)| format!("{name} = {value} (on {node}, by the kernel)");
        lines.extend(kernel.map(by_kernel));
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

/// A line on the origin of the application's name; empty if the user gave it.
fn named(request: Option<&Request>) -> String {
    let Some(request) = request else {
        return String::new();
    };
    let by = match (&request.rule, request.note) {
        (Some(rule), _) => format!("by rule {rule}"),
        (None, Some(_)) => "it says nothing of the program".to_owned(),
        (None, None) => "by no rule".to_owned(),
    };
    let name = request.job_name.iter().map(|name| format!("name {name:?}"));
    let comment = request.comment.iter();
    let from = name.chain(comment.map(|comment| format!("comment {comment:?}")));
    match from.collect::<Vec<_>>().join(" and ") {
        from if from.is_empty() => String::new(),
        from => format!("named        {by}, from the job's {from}\n"),
    }
}

/// The answers of `explain`: what a job ran with, whether that helped, and whether it counts.
fn answers(detail: &RunDetail, screen: &Screen) -> String {
    let run = &detail.run;
    let ran_with = match &run.applied {
        None if run.role.is_none() => UNTOLD.to_owned(),
        None => "not reported yet".to_owned(),
        Some(Applied::Default) => "the default".to_owned(),
        Some(Applied::Parametrization { .. }) => told(run.differs.as_ref().map(differing)),
        Some(Applied::User { variables }) => {
            format!(
                "the user's own {}, which was left alone",
                variables.join(", ")
            )
        }
        Some(Applied::Incomplete { detail }) => format!("not the same everywhere: {detail}"),
    };
    let because = match (run.role, &run.reason) {
        (Some(role), Some(reason)) => plain::because(role, reason),
        _ => because(run),
    };
    let spread = detail.expected.filter(|_| run.objective.is_elapsed());
    let elapsed = elapsed(run, spread.and_then(|expected| spread_of(&expected)));
    let elapsed = elapsed.map_or_else(|| "unknown".into(), |seconds| format!("{seconds} s"));
    let decided_by = detail.decided_by.as_ref();
    let mut text = format!(
        "job          {} (cluster {}, node {})\nstudy        {}, application {}\n{}\n\
         ran with     {ran_with}\n{}because      {because}\n{}ended        {}, elapsed {elapsed}\n\
         helped       {}\ncounts       {}: {}\n",
        job(run),
        run.cluster,
        run.node,
        run.study_id,
        run.application_called(),
        named(detail.request.as_ref()),
        detail
            .risks
            .iter()
            .map(|risk| format!("at risk      {risk}\n"))
            .collect::<String>(),
        decided_by.map_or_else(String::new, |order| order::decided_by(order, screen)),
        run.outcome.as_deref().unwrap_or("not known yet"),
        helped(detail),
        counts(run),
        run.verdict
            .as_deref()
            .unwrap_or("waits for its report or for Slurm's word"),
    );
    for finding in detail.findings.iter().filter(|one| {
        let about = one.parametrization.as_ref();
        about.is_none_or(|about| Some(about) == run.parametrization.as_ref())
    }) {
        let found = plain::plain(&format!("{} {}", finding.what, finding.action));
        text.push_str(&format!("its study    {found}\n"));
    }
    text
}

/// How a run compares with those of the default before it.
fn helped(detail: &RunDetail) -> String {
    let (run, objective) = (&detail.run, &detail.run.objective);
    let value = run
        .elapsed
        .and_then(|took| objective.value(took, &run.measures));
    let is_default = run
        .differs
        .as_ref()
        .is_some_and(|differs| differs.0.is_empty());
    match (run.state, &detail.default_then, value) {
        (RunState::InFlight, ..) => UNTOLD.to_owned(),
        (RunState::NotCounted, ..) => "not known: it does not count".to_owned(),
        (RunState::Censored, ..) => "not known: it was cut short".to_owned(),
        _ if is_default => "nothing was changed: other runs are compared with this one".to_owned(),
        (_, Some(default), Some(value)) => {
            let (unit, mean) = (objective.unit(), status::mean(default));
            let share = objective.told(value) / default.mean - 1.0;
            let by = match units::percent(share.abs()).as_str() {
                "0.0" => "as much".to_owned(),
                percent if share < 0.0 => format!("{percent} % less"),
                percent => format!("{percent} % more"),
            };
            let than = if by == "as much" { "as" } else { "than" };
            let runs = if default.n == 1 { "run" } else { "runs" };
            format!(
                "{by} {} {than} the default before it ({mean}{unit}, {} {runs}); one run alone may be luck",
                gain::what(objective),
                default.n,
            )
        }
        _ => "not known: no run of the default had counted before".to_owned(),
    }
}

/// The search's knowledge of a run, in its own words.
fn inside(detail: &RunDetail, screen: &Screen) -> String {
    let run = &detail.run;
    let rule = detail.suggestion.get("rule").and_then(|rule| rule.as_str());
    let mut text = format!(
        "\nphase, role  {}, {}, epoch {}\n",
        run.phase,
        told(run.role.map(|role| role.to_string())),
        run.epoch
    );
    let mut line = |label: &str, said: &str| text.push_str(&format!("{label:<13}{said}\n"));
    if run.epoch > 1 {
        let at = screen.exact(run.epoch_opened_at);
        line("opened", &opened(at, &run.epoch_opened_why));
    }
    let given = run.parametrization.as_ref().map(ToString::to_string);
    line("given", &told(given));
    let rule = rule.map_or_else(String::new, |rule| format!(" [{rule}]"));
    line("reason", &(because(run) + &rule));
    if let Some(expected) = expected(detail) {
        line("expected", &expected);
    }
    if let Some(known) = &detail.cleaned {
        line("busy", &cleaned(known, run));
    }
    if let Some(begun_from) = &detail.begun_from {
        line("begun from", &others(begun_from));
    }
    if !run.objective.is_elapsed() {
        line("objective", &objective(run));
    }
    let did = measures::measures(&run.measures, run.elapsed);
    for (number, did) in did.iter().enumerate() {
        line(if number == 0 { "I/O" } else { "" }, did);
    }
    let reports = detail.reports.iter().map(FinishRequest::deserialize);
    let reports: Vec<FinishRequest> = reports.flatten().collect();
    for one in in_force(&reports) {
        line("in force", &one);
    }
    for report in &reports {
        let moved = report.online.iter();
        for one in moved.flat_map(|record| online::online(record, &report.job.node)) {
            line("in the job", &one);
        }
    }
    for file in detail.delivery.iter().flat_map(|delivery| &delivery.files) {
        let named = format!("{} (named by {}):", file.name, file.variable);
        line("file", &named);
        for one in file.content.lines() {
            line("", one);
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
            format!(
                "other jobs took {ratio:.2} times their usual time; had they not, this run would have \
                 taken {took}{unit}; "
            )
        }
        _ => String::new(),
    };
    let (low, high) = known.estimate.interval.unwrap_or_default();
    let mean = status::mean(&known.estimate);
    let [low, high] = [low, high].map(|end| units::seconds(end, Some((high - low) / 4.0)));
    format!(
        "{others}runs of its parametrization then take {mean}{unit} ({low} to {high}); how others fared \
         explains {:.0} % of the noise",
        100.0 * known.share
    )
}

/// The expected time of a run, and of the default, if it has one that differs.
fn expected(detail: &RunDetail) -> Option<String> {
    let of = |one: &Elapsed| {
        let (mean, unit) = (status::mean(one), detail.run.objective.unit());
        let runs = if one.n == 1 { "run" } else { "runs" };
        format!("{mean}{unit} ({} {runs} before it)", one.n)
    };
    let is_default = detail.run.differs.as_ref()?.0.is_empty();
    let own = detail.expected.as_ref().map(of);
    let own = own.unwrap_or_else(|| "nothing: no run of it had counted before".to_owned());
    let default = detail.default_then.as_ref().filter(|_| !is_default);
    let default = default.map_or_else(String::new, |one| format!("; the default {}", of(one)));
    Some(own + &default)
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

/// Elapsed in seconds; for a censored run a lower bound.
fn elapsed(run: &RunSummary, spread: Option<f64>) -> Option<String> {
    let seconds = units::seconds(run.elapsed?, spread);
    Some(match run.state {
        RunState::Censored => format!("at least {seconds}"),
        _ => seconds,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use io_autotune_model::{Finding, FindingKind, Parametrization, Phase, Role};
    use io_autotune_protocol::{Delivery, Note};

    use super::*;

    fn runs(list: &[RunSummary]) -> String {
        super::super::history::runs(list, &Screen::plain())
    }

    fn explain(details: &[RunDetail]) -> String {
        super::explain(details, true, &Screen::plain())
    }

    pub(in crate::render) fn run(state: RunState) -> RunSummary {
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
            risks: Vec::new(),
            study: None,
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
        let busy = "busy         other jobs took 1.25 times their usual time; had they not, this run would have taken 48 s; ";
        let estimate = "runs of its parametrization then take 50 s (46 to 54); how others fared explains 42 % of the noise\n";
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
        let line =
            "study 3: begun anew 01-01 00:00: a change: tuned runs took 10 s and take 20 s since\n";
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
            text.contains(
                "\nnamed        by no rule, from the job's name \"nf-A_(1)\"\n\nran with"
            ),
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
            "ran with     told once it has ended\n",
            "because      told once it has ended\n",
            "helped       told once it has ended\n",
            "phase, role  search, told once it has ended, epoch 1\n",
            "given        told once it has ended\n",
            "reason       told once it has ended\n",
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
        assert!(
            text.contains("phase, role  search, search, epoch 1\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "because      told once the runs that were in flight at its start have ended\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_job_is_told_what_it_ran_with_if_that_helped_and_counts_and_what_comes_next() {
        let ended = |role, values: &[(&str, i64)]| {
            let values = values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).into()));
            let parametrization = Parametrization(values.collect());
            let applied = match parametrization.0.is_empty() {
                true => Applied::Default,
                false => Applied::Parametrization {
                    parametrization: parametrization.clone(),
                },
            };
            let run = RunSummary {
                role: Some(role),
                differs: Some(parametrization),
                applied: Some(applied),
                elapsed: Some(30.0),
                reason: Some("child of (size=1) and (size=2), mutated in size".to_owned()),
                verdict: Some("completed in 30.000 s".to_owned()),
                outcome: Some("COMPLETED".to_owned()),
                ..run(RunState::Counted)
            };
            let default = Elapsed {
                n: 4,
                mean: 40.0,
                interval: Some((39.0, 41.0)),
            };
            RunDetail {
                default_then: Some(default),
                ..detail_of(run)
            }
        };
        let study = status::tests::settled(serde_json::json!({ "next": {
            "rule": "settled", "short": "a control run",
            "says": "the chosen values or, as drawn, the default, as a control run",
        } }));
        let said = |detail: RunDetail| {
            let study = Some(Box::new(study.clone()));
            super::explain(&[RunDetail { study, ..detail }], false, &Screen::plain())
        };
        let text = said(ended(Role::Search, &[("size", 4)]));
        plain::tests::assert_plain(&text);
        let answers = [
            "\nran with     size=4\n",
            "\nbecause      values are tried out, to find faster ones\n",
            "\nended        COMPLETED, elapsed 30.0 s\n",
            "\nhelped       25.0 % less time than the default before it (40 s, 4 runs); one run alone may be luck\n",
            "\ncounts       yes: completed in 30.000 s\n",
            "\nnext         the chosen values or, as drawn, the default, for comparison\n",
        ];
        let places = answers.map(|answer| {
            text.find(answer)
                .unwrap_or_else(|| panic!("{answer}{text}"))
        });
        assert!(places.is_sorted(), "{text}");
        let text = said(ended(Role::Control, &[]));
        plain::tests::assert_plain(&text);
        assert!(text.contains("\nran with     the default\n"), "{text}");
        assert!(
            text.contains("\nhelped       nothing was changed: "),
            "{text}"
        );
        let mut failed = ended(Role::Search, &[("size", 4)]);
        failed.run.state = RunState::NotCounted;
        assert!(said(failed).contains("\nhelped       not known: it does not count\n"));
        let mut first = ended(Role::Search, &[("size", 4)]);
        first.default_then = None;
        assert!(said(first).contains("\nhelped       not known: no run of the default "));
    }
}
