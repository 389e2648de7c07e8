//! Where studies stand: a line each, or one in full.

use io_autotune_model::Objective;
use io_autotune_model::{FindingKind, Gain, GainVerdict, Phase};
use io_autotune_protocol::{Elapsed, RegretSummary, StudySummary, shown_lines};

use super::columns::{Cell, Column, Columns, Tone};
use super::{context, differing, gain, opening, order, phase, sharing, units, user};
use crate::screen::Screen;

/// One study in full, several as a list.
pub(crate) fn studies(studies: &[StudySummary], screen: &Screen) -> String {
    match studies {
        [] => "no study yet: one begins when a job that was submitted with `sbatch --io-autotune` starts\n".to_owned(),
        [one] => study(one, screen),
        several => {
            let mut text = columns(several, screen).text(screen);
            let warned: Vec<String> = several
                .iter()
                .filter(|study| !study.warnings.is_empty())
                .map(|study| study.study_id.to_string())
                .collect();
            text.push_str("\nRegret: the nodes' time that exploring has cost beyond the default's.\n`io-autotune status --study N` shows one in full.");
            if !warned.is_empty() {
                text.push_str(&format!(" Warnings are on {}.", warned.join(", ")));
            }
            text.push('\n');
            text
        }
    }
}

/// A line a study.
pub(crate) fn columns(studies: &[StudySummary], screen: &Screen) -> Columns {
    let first = studies.first().map(|study| study.uid);
    let of_several = studies.iter().any(|study| Some(study.uid) != first);
    let mut columns = vec![
        Column::right("Study"),
        Column::left("Application").least(8),
        Column::left("Accelerator").least(6),
        Column::left("Phase"),
        Column::left("Gain").least(9),
        Column::left("Next").least(8),
        Column::right("Regret"),
    ];
    if of_several {
        columns.insert(2, Column::left("User").least(6));
    }
    let on_several = studies.iter().any(|study| study.cluster.is_some());
    if on_several {
        columns.insert(1, Column::left("Cluster").least(6));
    }
    let mut list = Columns::new(columns);
    for study in studies {
        let mut row = vec![
            Cell::new(study.study_id.to_string()),
            Cell::new(study.application.clone()),
            Cell::new(study.accelerator.clone()),
            phase_cell(study),
            gain_cell(study),
            Cell::new(next(study, screen)),
            Cell::new(
                study
                    .regret
                    .map_or_else(|| "-".to_owned(), |regret| spent(&regret)),
            ),
        ];
        if of_several {
            row.insert(2, Cell::new(user(study)));
        }
        if on_several {
            let cluster = study.cluster.clone().unwrap_or_default();
            row.insert(1, Cell::new(cluster));
        }
        list.row(row);
    }
    list
}

/// All there is of studies, for `--csv`.
pub(crate) fn table(studies: &[StudySummary]) -> Columns {
    const NAMES: [&str; 28] = [
        "Study",
        "Application",
        "User",
        "UID",
        "Accelerator",
        "Context",
        "Epoch",
        "Phase",
        "Ordered",
        "Explored",
        "Budget",
        "Counted",
        "NotCounted",
        "InFlight",
        "DefaultRuns",
        "DefaultMean",
        "TunedRuns",
        "TunedMean",
        "Gain",
        "GainLow",
        "GainHigh",
        "Verdict",
        "RegretRuns",
        "RegretNodeSeconds",
        "Chosen",
        "Account",
        "Objective",
        "Cluster",
    ];
    let mut list = Columns::new(NAMES.map(Column::left).to_vec());
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
                study.phase,
                explored.min(u64::from(budget))
            )
        }
        (None, other) => other.to_string(),
    };
    let tone = match study.ordered {
        Some(_) => Tone::Notable,
        None => Tone::Plain,
    };
    Cell::toned(text, tone)
}

fn gain_cell(study: &StudySummary) -> Cell {
    if let Some(shared) = sharing::claimed(study) {
        return claim(&shared.gain, &format!(", shared{}", of_objective(study)));
    }
    let Some(gain) = study.assessment.as_ref().map(|known| &known.gain) else {
        return Cell::new("-");
    };
    claim(gain, &of_objective(study))
}

/// What a gain is of, if not of elapsed.
fn of_objective(study: &StudySummary) -> String {
    match study.objective.is_elapsed() {
        true => String::new(),
        false => format!(", {}", study.objective.words()),
    }
}

/// `whose`: is added to what is claimed.
fn claim(gain: &Gain, whose: &str) -> Cell {
    let interval = gain
        .low
        .zip(gain.high)
        .map_or_else(String::new, |(low, high)| {
            format!(" ({} .. {})", units::percent(low), units::percent(high))
        });
    match (gain.share, gain.verdict) {
        (None, _) => Cell::new("-"),
        (Some(share), GainVerdict::Faster) => {
            let text = format!("{} %{interval}{whose}", units::percent(share));
            Cell::toned(text, Tone::Good)
        }
        (Some(share), GainVerdict::Slower) => {
            let text = format!("{} %{interval}{whose}", units::percent(share));
            Cell::toned(text, Tone::Bad)
        }
        (Some(_), GainVerdict::NoEffect) => Cell::new("none"),
        (Some(share), _) => Cell::new(format!("~{} %{interval}", units::percent(share))),
    }
}

fn has(study: &StudySummary, kind: FindingKind) -> bool {
    let mut findings = study.assessment.iter().flat_map(|known| &known.findings);
    findings.any(|finding| finding.kind == kind)
}

/// What is next, and about when it will be known.
fn next(study: &StudySummary, screen: &Screen) -> String {
    let gain = study.assessment.as_ref().map(|known| &known.gain);
    let (explored, budget) = study.explored;
    let left = u64::from(budget).saturating_sub(explored);
    if let Some(ordered) = &study.ordered {
        let order = study.decided_by.as_ref().and_then(|order| order.order_id);
        return match order {
            Some(number) => format!("nothing, by order {number}"),
            None => format!("nothing while it is {ordered}"),
        };
    }
    let to_go = |runs| {
        let age = screen.now.duration_since(study.opened.at);
        units::runs_to_go(runs, study.lately, age.as_secs_f64())
    };
    let to_a_proof = |runs| format!("{} to a proof{}", units::runs(runs), to_go(runs));
    if study.nameless {
        return "observed: its job name says nothing of the program; submit with --io-autotune=app=NAME".to_owned();
    }
    let mut findings = study.assessment.iter().flat_map(|known| &known.findings);
    if let Some(why) = findings.find_map(|one| one.kind.instead_of_tuning()) {
        return why.to_owned();
    }
    if has(study, FindingKind::DefaultLost)
        && let Some(next) = without_the_default(study, left)
    {
        return next;
    }
    let is_proving = study.assessment.as_ref().is_some_and(|one| one.is_proving);
    match study.phase {
        Phase::Baseline => "measures the default".to_owned(),
        Phase::Design | Phase::Search if is_proving => {
            let runs = gain
                .and_then(|gain| gain.runs_needed)
                .filter(|runs| *runs > 0);
            let proof = runs.map_or("a proof".to_owned(), to_a_proof);
            format!("{proof}, then {} to a choice", units::runs(left))
        }
        Phase::Design | Phase::Search if left == 0 => "confirms the best".to_owned(),
        Phase::Design | Phase::Search => {
            format!("{} to a choice{}", units::runs(left), to_go(left))
        }
        Phase::Settled => match gain.map(|gain| (gain.verdict.is_resolved(), gain.runs_needed)) {
            // So many were enough by the estimate: which run proves it is chance.
            Some((false, Some(0))) => "more control runs, for a proof".to_owned(),
            Some((false, Some(more))) => to_a_proof(more),
            _ => "watches for drift".to_owned(),
        },
    }
}

/// What is next in a study whose default does not complete; none where that makes no difference.
fn without_the_default(study: &StudySummary, left: u64) -> Option<String> {
    match study.phase {
        Phase::Baseline => Some("waits for a run that completes".to_owned()),
        Phase::Design | Phase::Search if left > 0 => Some(format!(
            "{} to a choice: the default fails",
            units::runs(left)
        )),
        _ => None,
    }
}

fn spent(regret: &RegretSummary) -> String {
    match regret.node_seconds {
        Some(seconds) => units::short_node_time(seconds),
        None => "-".to_owned(),
    }
}

/// What a study makes small or large, if not elapsed.
pub(crate) fn objective_line(study: &StudySummary) -> String {
    match study.objective.is_elapsed() {
        true => String::new(),
        false => format!("objective    {}\n", gain::named(&study.objective)),
    }
}

/// One study in full.
pub(crate) fn study(study: &StudySummary, screen: &Screen) -> String {
    let text = format!(
        "application  {} (user {}{})\naccelerator  {}\ncontext      {}\nstudy        {}, epoch {}\n{}{}phase        {}: {}; runs: {} counted, {} not counted, {} in flight\nnext         {}\n\n",
        study.application,
        user(study),
        match &study.account {
            Some(account) => format!(", account {account}"),
            None => String::new(),
        },
        study.accelerator,
        context(study),
        study.study_id,
        study.epoch,
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
        "gain         {}\nchosen       {}\nwhy          {}\n",
        study.assessment.as_ref().map_or_else(
            || "not said: the service is older than this command".to_owned(),
            gain::of
        ),
        match &study.recommended {
            None if has(study, FindingKind::NothingToWin) => "the default".to_owned(),
            None => "nothing yet".to_owned(),
            Some(_) => differing(&study.differs),
        },
        study.why
    );
    if let Some(regret) = &study.regret {
        let time = regret.node_seconds.map(units::node_time);
        let time = time.map_or_else(String::new, |time| format!(" ({time})"));
        rest.push_str(&format!(
            "regret       exploring has cost about {:.1} runs of the default{time}; {:.1} allowed by now\n",
            regret.runs + 0.0,
            regret.budget
        ));
    }
    rest.push_str(&sharing::lines(study));
    if let Some(decided) = &study.decided_by {
        rest.push_str(&order::decided_by(decided, screen));
    }
    for one in &study.quarantined {
        rest.push_str(&format!(
            "quarantined  {}: {}\n",
            differing(&one.differs),
            one.why
        ));
    }
    for warning in &study.warnings {
        rest.push_str(&format!("warning      {warning}\n"));
    }
    let list = list.map_or_else(String::new, |list| format!("{list}\n"));
    format!("{}{list}{}", shown_lines(&text), shown_lines(&rest))
}

/// What is compared: the default and, once it has run, the choice.
pub(crate) fn comparison(study: &StudySummary) -> Columns {
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
        row(
            "default",
            &study.control,
            "control runs, interleaved since the choice",
        );
        row("tuned", &study.tuned, "runs made after the choice");
    } else {
        row("default", &study.default, "all runs of the default so far");
    }
    list
}

/// What the means of a study are of.
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
    elapsed.interval.map_or_else(
        || "-".to_owned(),
        |(low, high)| {
            let half = half(elapsed);
            format!(
                "{} .. {}",
                units::seconds(low, half),
                units::seconds(high, half)
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settled(change: serde_json::Value) -> StudySummary {
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
    fn all_runs_of_the_default_are_shown_until_there_are_tuned_ones_to_compare_with() {
        let text = study(&settled(json!({})), &Screen::plain());
        assert!(text.contains("default     5"), "{text}");
        assert!(text.contains("all runs of the default so far"), "{text}");
        let tuned = settled(json!({ "tuned": { "n": 3, "mean": 8.0, "interval": [7.0, 9.0] } }));
        let text = study(&tuned, &Screen::plain());
        assert!(text.contains("default     1"), "{text}");
        assert!(text.contains("tuned       3"), "{text}");
    }

    #[test]
    fn what_is_next_says_that_the_default_does_not_complete() {
        let next_of = |phase: &str, explored: u64| {
            let gain = json!({
                "verdict": "not_yet", "reason": "x", "share": null, "low": null, "high": null, "level": 0.95,
                "tuned_runs": 0, "control_runs": 0, "detectable": null, "runs_needed": null, "evidence": 1.0
            });
            let found =
                json!([{ "kind": "default_lost", "what": "The default fails.", "do": "Look." }]);
            let assessment = json!({ "epoch": 1, "gain": gain, "effects": [], "findings": found });
            let change =
                json!({ "phase": phase, "explored": [explored, 50], "assessment": assessment });
            next(&settled(change), &Screen::plain())
        };
        assert_eq!(
            next_of("design", 8),
            "42 runs to a choice: the default fails"
        );
        assert_eq!(next_of("baseline", 15), "waits for a run that completes");
        assert_eq!(next_of("search", 50), "confirms the best");
        assert_eq!(next_of("settled", 50), "watches for drift");
    }

    #[test]
    fn a_proof_is_so_many_runs_away_but_never_none() {
        let next_of = |phase: &str, verdict: &str, needed: Option<u64>| {
            let gain = json!({
                "verdict": verdict, "reason": "The interval includes no effect.", "share": 0.1,
                "low": -0.1, "high": 0.2, "level": 0.95, "tuned_runs": 90, "control_runs": 10,
                "detectable": 0.1, "runs_needed": needed, "evidence": 1.0
            });
            let assessment = json!({
                "epoch": 1, "gain": gain, "effects": [], "findings": [], "is_proving": true
            });
            let change = json!({ "phase": phase, "explored": [30, 50], "assessment": assessment });
            next(&settled(change), &Screen::plain())
        };
        let settled = |verdict, needed| next_of("settled", verdict, needed);
        assert_eq!(settled("not_yet", Some(12)), "12 runs to a proof");
        assert_eq!(
            settled("not_yet", Some(0)),
            "more control runs, for a proof"
        );
        assert_eq!(settled("faster", None), "watches for drift");
        let search = |needed| next_of("search", "not_yet", needed);
        assert_eq!(
            search(Some(7)),
            "7 runs to a proof, then 20 runs to a choice"
        );
        assert_eq!(search(Some(0)), "a proof, then 20 runs to a choice");
    }

    #[test]
    fn a_study_of_nameless_jobs_says_what_to_submit_with() {
        let nameless = settled(json!({ "phase": "baseline", "nameless": true }));
        let text = study(&nameless, &Screen::plain());
        let said = "next         observed: its job name says nothing of the program; submit with --io-autotune=app=NAME\n";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn what_holds_a_study_is_said_in_its_line_and_in_full() {
        let held = settled(json!({
            "ordered": "off",
            "decided_by": {
                "order_id": 12, "kind": "off", "scope": {}, "values": null, "uid": 0, "user": "root",
                "why": "a test", "at": "1970-01-01T00:00:00Z", "until": null, "may_end": true
            }
        }));
        let text = study(&held, &Screen::plain());
        assert!(text.contains("phase        settled, off: "), "{text}");
        assert!(
            text.contains("next         nothing, by order 12\n"),
            "{text}"
        );
        assert!(
            text.contains("to end it: io-autotune on --all --why"),
            "{text}"
        );
        let list = columns(&[held], &Screen::plain()).parsable();
        assert!(list.contains("|off|-|nothing, by order 12|"), "{list}");
    }
}
