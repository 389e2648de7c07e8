//! The state of studies: a line each, or one in full.

use io_autotune_model::exploring::amount;
use io_autotune_model::{Elapsed, FindingKind, Gain, GainVerdict, Objective, Phase, Unknown};
use io_autotune_protocol::{RegretSummary, StudySummary, shown_lines};

use super::columns::{Cell, Column, Columns, Tone};
use super::{context, differing, fold, gain, opening, order, phase, plain, sharing, units, user};
use crate::screen::Screen;

/// One study in full, several as a list.
pub(crate) fn studies(studies: &[StudySummary], screen: &Screen) -> String {
    match studies {
        [] => "no study yet: one begins when a job that was submitted with `sbatch --io-autotune` starts\n".to_owned(),
        [one] => study(one, screen),
        several => {
            let mut text = columns(several).text(screen);
            let warned: Vec<String> = several
                .iter()
                .filter(|study| !study.warnings.is_empty())
                .map(|study| study.study_id.to_string())
                .collect();
            text.push_str("\n`io-autotune status study:N` shows one in full.");
            if !warned.is_empty() {
                let s = if warned.len() == 1 { "y" } else { "ies" };
                text.push_str(&format!(" Stud{s} {} have a warning.", warned.join(", ")));
            }
            text.push('\n');
            text
        }
    }
}

/// A line for each study.
pub(crate) fn columns(studies: &[StudySummary]) -> Columns {
    let one_accelerator = studies
        .iter()
        .all(|one| one.accelerator == studies[0].accelerator);
    let accelerator = Column::left("Accelerator").least(6);
    let mut list = Columns::new(vec![
        Column::right("Study"),
        Column::left("Cluster").least(6),
        Column::left("Application").least(8),
        Column::left("User").least(6),
        match one_accelerator {
            true => accelerator.spare(1),
            false => accelerator,
        },
        Column::left("Stage").least(9),
        Column::left("Gain").least(9),
        Column::left("Next").least(8),
        Column::right("Cost of exploring").spare(2),
    ]);
    for study in studies {
        list.row([
            Cell::new(study.study_id.to_string()),
            Cell::new(study.cluster.clone().unwrap_or_default()),
            Cell::new(study.application_called()),
            Cell::new(user(study)),
            Cell::new(study.accelerator.clone()),
            phase_cell(study),
            gain_cell(study),
            Cell::new(next_in_short(study)),
            Cell::new(spent(study.regret.as_ref())),
        ]);
    }
    if studies.iter().all(|study| study.uid == studies[0].uid) {
        list.leave_out(3);
    }
    if studies.iter().all(|study| study.cluster.is_none()) {
        list.leave_out(1);
    }
    list
}

/// All fields of studies, for `--csv`.
pub(crate) fn table(studies: &[StudySummary]) -> Columns {
    const NAMES: &str = "Study Application User UID Accelerator Context Epoch Phase Ordered Explored Budget Counted \
         NotCounted InFlight DefaultRuns DefaultMean TunedRuns TunedMean Gain GainLow GainHigh Verdict RegretRuns \
         RegretNodeSeconds Chosen Account Objective Cluster";
    let mut list = Columns::new(NAMES.split(' ').map(Column::left).collect());
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for study in studies {
        let default = study.control.or(study.default);
        let gain = study.assessment.as_ref().map(|known| &known.gain);
        let verdict = gain.and_then(|gain| serde_json::to_value(gain.verdict).ok());
        let verdict = verdict.as_ref().and_then(|verdict| verdict.as_str());
        let runs = |elapsed: Option<Elapsed>| elapsed.map_or(0, |elapsed| elapsed.n).to_string();
        list.row([
            study.study_id.to_string(),
            study.application.clone(),
            study.user.clone().unwrap_or_default(),
            study.uid.to_string(),
            study.accelerator.clone(),
            context(study),
            study.epoch.to_string(),
            study.phase.to_string(),
            study.ordered.clone().unwrap_or_default(),
            study.explored.0.to_string(),
            study.explored.1.to_string(),
            study.counted.to_string(),
            study.not_counted.to_string(),
            study.in_flight.to_string(),
            runs(default),
            number(default.map(|elapsed| elapsed.mean)),
            runs(study.tuned),
            number(study.tuned.map(|elapsed| elapsed.mean)),
            number(gain.and_then(|gain| gain.share)),
            number(gain.and_then(|gain| gain.low)),
            number(gain.and_then(|gain| gain.high)),
            verdict.unwrap_or_default().to_owned(),
            number(study.regret.map(|regret| regret.runs)),
            number(study.regret.and_then(|regret| regret.node_seconds)),
            study
                .recommended
                .as_ref()
                .map(|_| differing(&study.differs))
                .unwrap_or_default(),
            study.account.clone().unwrap_or_default(),
            study.objective.to_string(),
            study.cluster.clone().unwrap_or_default(),
        ]);
    }
    list
}

fn phase_cell(study: &StudySummary) -> Cell {
    let (explored, budget) = study.explored;
    let text = match (&study.ordered, study.phase) {
        (Some(ordered), _) => ordered.clone(),
        (None, Phase::Design | Phase::Search) => {
            format!(
                "{} {}/{budget}",
                plain::phase(study.phase),
                explored.min(u64::from(budget))
            )
        }
        (None, other) => plain::phase(other).to_owned(),
    };
    let tone = match study.ordered {
        Some(_) => Tone::Notable,
        None => Tone::Plain,
    };
    Cell::toned(text, tone)
}

/// The gain of a study, as the list of studies has it; none without a figure.
pub(crate) fn gain_in_short(study: &StudySummary) -> Option<String> {
    known_gain(study).map(Cell::into_text)
}

fn gain_cell(study: &StudySummary) -> Cell {
    known_gain(study).unwrap_or_else(|| Cell::new("-"))
}

fn known_gain(study: &StudySummary) -> Option<Cell> {
    if let Some(shared) = sharing::claimed(study) {
        return claim(&shared.gain, &format!(", shared{}", of_objective(study)));
    }
    let gain = &study.assessment.as_ref()?.gain;
    claim(gain, &of_objective(study))
}

/// The objective of a gain, if it is not elapsed.
fn of_objective(study: &StudySummary) -> String {
    match study.objective.is_elapsed() {
        true => String::new(),
        false => format!(", {}", study.objective.words()),
    }
}

/// The cell of a gain, none without a figure; `whose` is appended to the claim.
fn claim(gain: &Gain, whose: &str) -> Option<Cell> {
    let interval = gain.low.zip(gain.high).map(|(low, high)| {
        let [low, high] = [low, high].map(units::percent);
        format!(" ({low} .. {high})")
    });
    let interval = interval.unwrap_or_default();
    let share = gain.share?;
    Some(match gain.verdict {
        verdict @ (GainVerdict::Faster | GainVerdict::Slower) => {
            let is_good = verdict == GainVerdict::Faster;
            let tone = if is_good { Tone::Good } else { Tone::Bad };
            Cell::toned(
                format!("{} %{interval}{whose}", units::percent(share)),
                tone,
            )
        }
        GainVerdict::NoEffect => Cell::new("none"),
        _ => Cell::new(format!("~{} %{interval}", units::percent(share))),
    })
}

/// The next run in a few words.
fn next_in_short(study: &StudySummary) -> String {
    match (&study.next, &study.ordered) {
        (Some(next), None) => plain::plain(&next.short),
        (_, Some(ordered)) => ordered.clone(),
        (None, None) => "-".to_owned(),
    }
}

/// The text about the next run: its parametrization, the rule behind it, and until when that holds.
pub(super) fn next(study: &StudySummary, screen: &Screen) -> String {
    let Some(next) = &study.next else {
        return "not known: the service is of an earlier version".to_owned();
    };
    let age = screen.now.duration_since(study.opened.at).as_secs_f64();
    let in_time = next.runs.filter(|runs| *runs > 0);
    let in_time = in_time.map_or_else(String::new, |runs| {
        units::runs_to_go(runs, study.lately, age)
    });
    let is_open = |unknown| next.unless.contains(&unknown);
    let unless = match (is_open(Unknown::InFlight), is_open(Unknown::Others)) {
        (true, true) => "; the runs in flight, and those of other studies, may change that",
        (true, false) => "; how the runs in flight end may change that",
        (false, true) => "; what other studies show may change that",
        (false, false) => "",
    };
    plain::plain(&format!("{}{in_time}{unless}", next.says))
}

fn has_nothing_to_win(study: &StudySummary) -> bool {
    let mut findings = study.assessment.iter().flat_map(|known| &known.findings);
    findings.any(|finding| finding.kind == FindingKind::NothingToWin)
}

fn spent(regret: Option<&RegretSummary>) -> String {
    let seconds = regret.and_then(|regret| regret.node_seconds);
    seconds.map_or_else(|| "-".to_owned(), units::short_node_time)
}

/// The line with a study's objective, if it is not elapsed.
pub(crate) fn objective_line(study: &StudySummary) -> String {
    match study.objective.is_elapsed() {
        true => String::new(),
        false => format!("objective    {}\n", gain::named(&study.objective)),
    }
}

/// One study in full.
pub(crate) fn study(study: &StudySummary, screen: &Screen) -> String {
    let text = format!(
        "application  {} (user {}{})\naccelerator  {}\nstudy        {}, {}\n{}{}stage        {}: {}; runs: {} counted, {} not counted, {} in flight\nnext         {}\n\n",
        study.application_called(),
        user(study),
        match &study.account {
            Some(account) => format!(", account {account}"),
            None => String::new(),
        },
        study.accelerator,
        study.study_id,
        context(study),
        opening(study, screen),
        objective_line(study),
        phase(study),
        study.progress(),
        study.counted,
        study.not_counted,
        study.in_flight,
        next(study, screen),
    );
    let rows = comparison(study);
    let list = (!rows.is_empty()).then(|| rows.text(screen));
    let mut rest = format!(
        "gain         {}\n{:<13}{}\n",
        gain::of_study(study),
        chosen_label(study),
        chosen(study),
    );
    if let Some(regret) = &study.regret {
        let time = regret.node_seconds.map(units::node_time);
        let time = time.map_or_else(String::new, |time| format!(" ({time})"));
        let (most, expected) = (
            format!("{:.1}", regret.runs + 0.0),
            format!("{:.1}", regret.expected + 0.0),
        );
        let now = match most == expected {
            true => String::new(),
            false => format!("; by what is known now {expected}"),
        };
        rest.push_str(&format!(
            "cost         slower tries have lost about {most} runs of the default{time}{now}; exploring pauses at {:.1}\n",
            regret.budget
        ));
    }
    rest.push_str(&budgets(study));
    rest.push_str(&sharing::lines(study));
    if let Some(decided) = &study.decided_by {
        rest.push_str(&order::decided_by(decided, screen));
    }
    for one in &study.quarantined {
        rest.push_str(&format!(
            "not again    {}: {}\n",
            differing(&one.differs),
            one.why
        ));
    }
    for warning in &study.warnings {
        rest.push_str(&format!("warning      {}\n", plain::plain(warning)));
    }
    let list = list.map_or_else(String::new, |list| format!("{list}\n"));
    let [text, rest] = [text, rest].map(|lines| fold::labelled(&shown_lines(&lines), screen));
    format!("{text}{list}{rest}")
}

/// The lines with the budgets for exploring that a study's runs are charged to.
fn budgets(study: &StudySummary) -> String {
    let lines = study.budgets.iter().map(|one| {
        let name = one.name.as_ref().map(|name| format!(" {name}"));
        let whose = format!("{}{}", one.of, name.unwrap_or_default());
        let budget = amount(one.node_hours);
        let spent = match one.spent {
            Some(spent) => format!("{} of {budget} node-hours are spent today", amount(spent)),
            None => format!("{budget} node-hours a day"),
        };
        let room = match one.has_room {
            true => "",
            false => "; no room for a run that explores",
        };
        format!("budget       exploring, {whose}: {spent}{room}\n")
    });
    lines.collect()
}

/// What its best values are called: before a study has chosen they are not its choice.
pub(crate) fn chosen_label(study: &StudySummary) -> &'static str {
    match study.phase {
        Phase::Settled => "chosen",
        Phase::Baseline | Phase::Design | Phase::Search => "best so far",
    }
}

/// The choice of a study, in full.
pub(crate) fn chosen(study: &StudySummary) -> String {
    match &study.recommended {
        None if has_nothing_to_win(study) => "the default".to_owned(),
        None => "nothing yet".to_owned(),
        Some(_) => differing(&study.differs),
    }
}

/// The comparison: the default and, once it has run, the choice.
fn comparison(study: &StudySummary) -> Columns {
    let mut list = Columns::new(vec![
        Column::left(""),
        Column::right("Runs"),
        Column::right(&header(study)),
        Column::right("95 % interval"),
        Column::left("Which runs").least(10),
    ]);
    let mut row = |name: &str, elapsed: &Option<Elapsed>, which: &str| {
        if let Some(elapsed) = elapsed {
            list.row([
                name.to_owned(),
                elapsed.n.to_string(),
                mean(elapsed),
                interval(elapsed),
                which.to_owned(),
            ]);
        }
    };
    if study.tuned.is_some() {
        let compared = study
            .assessment
            .as_ref()
            .and_then(|known| known.gain.compared);
        let is_of_proof = compared.is_some_and(|runs| runs.before_choice);
        // A service before 0.4 does not say which they are.
        let (control, tuned) = match is_of_proof || study.phase != Phase::Settled {
            false => ("for comparison, since the choice", "since the choice"),
            true => (
                "for comparison, before the choice",
                "before the choice, with the best by then",
            ),
        };
        row("default", &study.control, control);
        row("tuned", &study.tuned, tuned);
    } else {
        row("default", &study.default, "all runs of the default so far");
    }
    list
}

/// The header of a study's means.
pub(crate) fn header(study: &StudySummary) -> String {
    match &study.objective {
        Objective::Elapsed => "Elapsed (s)".to_owned(),
        other => gain::named(other),
    }
}

fn half(elapsed: &Elapsed) -> Option<f64> {
    elapsed.interval.map(|(low, high)| (high - low) / 2.0)
}

/// A mean with the decimals that its interval carries.
pub(crate) fn mean(elapsed: &Elapsed) -> String {
    units::seconds(elapsed.mean, half(elapsed))
}

pub(crate) fn interval(elapsed: &Elapsed) -> String {
    let Some((low, high)) = elapsed.interval else {
        return "-".to_owned();
    };
    let [low, high] = [low, high].map(|end| units::seconds(end, half(elapsed)));
    format!("{low} .. {high}")
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn settled(change: serde_json::Value) -> StudySummary {
        let mut study = json!({
            "study_id": 7, "application": "ocean", "uid": 1000, "user": "io-alice",
            "accelerator": "romio", "context": {}, "epoch": 1,
            "opened": { "at": "1970-01-01T00:00:00Z", "why": "first run", "takes": "nothing", "drift": null },
            "phase": "settled", "counted": 9, "not_counted": 0, "in_flight": 0, "explored": [50, 50],
            "default": { "n": 5, "mean": 10.0, "interval": [9.0, 11.0] },
            "control": { "n": 1, "mean": 10.0 }, "tuned": null, "gain": null, "recommended": null,
            "differs": {}, "why": "there is nothing to win", "pin": null, "warnings": []
        });
        let fields = study.as_object_mut().unwrap();
        fields.extend(change.as_object().unwrap().clone());
        serde_json::from_value(study).unwrap()
    }

    #[test]
    fn budgets_for_exploring_are_told_as_far_as_the_reader_may_know() {
        let text = study(
            &settled(json!({ "budgets": [
                { "of": "user", "node_hours": 20.0, "spent": 3.25, "has_room": true },
                { "of": "account", "name": "physics", "node_hours": 50.0, "spent": null, "has_room": false },
            ] })),
            &Screen::plain(),
        );
        super::super::plain::tests::assert_plain(&text);
        for line in [
            "budget       exploring, user: 3.25 of 20 node-hours are spent today\n",
            "budget       exploring, account physics: 50 node-hours a day; no room for a run that explores\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!study(&settled(json!({})), &Screen::plain()).contains("budget"));
    }

    #[test]
    fn all_runs_of_the_default_are_shown_until_there_are_tuned_ones_to_compare_with() {
        let text = study(&settled(json!({})), &Screen::plain());
        super::super::plain::tests::assert_plain(&text);
        assert!(text.contains("default     5"), "{text}");
        assert!(text.contains("all runs of the default so far"), "{text}");
        let tuned = settled(json!({ "tuned": { "n": 3, "mean": 8.0, "interval": [7.0, 9.0] } }));
        let text = study(&tuned, &Screen::plain());
        assert!(text.contains("default     1"), "{text}");
        assert!(text.contains("tuned       3"), "{text}");
        assert!(text.contains("for comparison, since the choice"), "{text}");
        let side = json!({ "n": 3, "mean": 8.0 });
        let proven = settled(json!({ "tuned": side, "assessment": {
            "epoch": 1, "effects": [], "findings": [],
            "gain": {
                "verdict": "not_yet", "reason": "", "share": null, "low": null, "high": null,
                "level": 0.975, "tuned_runs": 3, "control_runs": 3, "detectable": null,
                "runs_needed": null, "evidence": 1.0,
                "compared": { "control": side, "tuned": side, "before_choice": true },
            },
        } }));
        let proving = settled(json!({ "phase": "search", "tuned": side }));
        for one in [proving, proven] {
            let text = study(&one, &Screen::plain());
            assert!(!text.contains("since the choice"), "{text}");
            assert!(text.contains("for comparison, before the choice"), "{text}");
        }
    }

    #[test]
    fn what_comes_next_is_said_by_the_rule_in_a_line_and_in_full() {
        let next = json!({
            "rule": "regret_budget", "runs": 9, "short": "explores after 9 runs",
            "says": "the best known values; it explores again after about 9 more runs"
        });
        let paused = settled(json!({ "phase": "search", "next": next }));
        let text = study(&paused, &Screen::plain());
        let said =
            "next         the best known values; it explores again after about 9 more runs\n";
        assert!(text.contains(said), "{text}");
        let mut beside = paused.clone();
        let next = beside.next.as_mut().unwrap();
        next.unless.push(Unknown::InFlight);
        let text = study(&beside, &Screen::plain());
        let said = "more runs; how the runs in flight end may change that\n";
        assert!(text.contains(said), "{text}");
        let list = columns(&[paused]).parsable();
        assert!(list.contains("|explores after 9 runs|"), "{list}");
        let earlier = settled(json!({}));
        let text = study(&earlier, &Screen::plain());
        assert!(
            text.contains("next         not known: the service is of an earlier version\n"),
            "{text}"
        );
    }

    #[test]
    fn what_holds_a_study_is_said_in_its_line_and_in_full() {
        let held = settled(json!({
            "ordered": "off",
            "next": {
                "rule": "off", "short": "nothing: off",
                "says": "nothing is applied, because tuning is turned off"
            },
            "decided_by": {
                "order_id": 12, "kind": "off", "scope": {}, "values": null, "uid": 0, "user": "root",
                "why": "a test", "at": "1970-01-01T00:00:00Z", "until": null, "may_end": true
            }
        }));
        let text = study(&held, &Screen::plain());
        assert!(text.contains("stage        chosen, off: "), "{text}");
        assert!(text.contains("because tuning is turned off\n"), "{text}");
        assert!(
            text.contains("to end it: io-autotune off --all --end --why"),
            "{text}"
        );
        let list = columns(&[held]).parsable();
        assert!(list.contains("|off|-|off|"), "{list}");
    }
}
