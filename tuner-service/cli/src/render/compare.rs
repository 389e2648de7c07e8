//! Two runs or two studies side by side.

use std::collections::BTreeSet;

use io_autotune_model::{Measure, Parametrization};
use io_autotune_protocol::{RunSummary, StudySummary};

use super::columns::{Column, Columns};
use super::status::mean;
use super::{context, counts, differing, gain, phase, told, units, user};

fn side_by_side(a: &str, b: &str) -> Columns {
    Columns::new(vec![
        Column::left(""),
        Column::left(a).least(12),
        Column::left(b).least(12),
        Column::left("Difference").least(8),
    ])
}

fn difference(a: Option<f64>, b: Option<f64>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a > 0.0 => format!("{:+.1} %", 100.0 * (b / a - 1.0)),
        _ => String::new(),
    }
}

fn mark(a: &str, b: &str) -> String {
    if a == b { "" } else { "differs" }.to_owned()
}

/// Values that differ between the two, the default if one has none.
fn parameters(list: &mut Columns, a: Option<&Parametrization>, b: Option<&Parametrization>) {
    let (Some(a), Some(b)) = (a, b) else {
        return;
    };
    let names: BTreeSet<&String> = a.0.keys().chain(b.0.keys()).collect();
    for name in names {
        let of = |one: &Parametrization| {
            one.0
                .get(name)
                .map_or_else(|| "-".into(), ToString::to_string)
        };
        let (a, b) = (of(a), of(b));
        if a != b {
            list.row([name.clone(), a, b, "differs".to_owned()]);
        }
    }
}

pub(crate) fn runs(a: &RunSummary, b: &RunSummary) -> Columns {
    let name = |run: &RunSummary| format!("job {}", super::job(run));
    let mut list = side_by_side(&name(a), &name(b));
    let mut row = |name: &str, of: &dyn Fn(&RunSummary) -> String| {
        let (a, b) = (of(a), of(b));
        let differs = mark(&a, &b);
        list.row([name.to_owned(), a, b, differs]);
    };
    row("application", &|run| run.application.clone());
    row("accelerator", &|run| run.accelerator.clone());
    row("study, epoch", &|run| {
        format!("{}, {}", run.study_id, run.epoch)
    });
    row("nodes", &|run| {
        run.nodes
            .map_or_else(|| "-".into(), |nodes| nodes.to_string())
    });
    row("role", &|run| told(run.role.map(|role| role.to_string())));
    row("ended", &|run| {
        run.outcome.clone().unwrap_or_else(|| "-".into())
    });
    row("counts", &counts);
    row("change", &|run| told(run.differs.as_ref().map(differing)));
    parameters(
        &mut list,
        a.parametrization.as_ref(),
        b.parametrization.as_ref(),
    );
    let seconds = |run: &RunSummary| {
        run.elapsed
            .map_or_else(|| "-".into(), |seconds| units::seconds(seconds, None))
    };
    let change = difference(a.elapsed, b.elapsed);
    list.row(["elapsed (s)".to_owned(), seconds(a), seconds(b), change]);
    for (name, measure) in [
        ("programs read", Measure::AskedRead),
        ("programs wrote", Measure::AskedWritten),
        ("storage gave", Measure::StorageRead),
        ("storage took", Measure::StorageWritten),
    ] {
        let of = |run: &RunSummary| match Measure::Steps.of(&run.measures) {
            0.0 => None,
            _ => Some(measure.of(&run.measures)),
        };
        if let (Some(a), Some(b)) = (of(a), of(b)) {
            let amount = super::measures::amount;
            let change = difference(Some(a), Some(b));
            list.row([name.to_owned(), amount(a), amount(b), change]);
        }
    }
    list
}

pub(crate) fn studies(a: &StudySummary, b: &StudySummary) -> Columns {
    let name = |study: &StudySummary| format!("study {}", study.study_id);
    let mut list = side_by_side(&name(a), &name(b));
    let mut row = |name: &str, of: &dyn Fn(&StudySummary) -> String| {
        let (a, b) = (of(a), of(b));
        let differs = mark(&a, &b);
        list.row([name.to_owned(), a, b, differs]);
    };
    row("application", &|study| study.application.clone());
    row("user", &user);
    row("accelerator", &|study| study.accelerator.clone());
    row("context", &context);
    row("phase", &phase);
    row("progress", &|study| study.progress());
    for (name, of) in [
        (
            "default (s)",
            (|study| study.control.or(study.default)) as fn(&StudySummary) -> _,
        ),
        ("tuned (s)", |study| study.tuned),
    ] {
        let (a, b) = (of(a), of(b));
        let shown = |elapsed: Option<io_autotune_model::Elapsed>| {
            elapsed.map_or_else(
                || "-".into(),
                |one| format!("{} ({} runs)", mean(&one), one.n),
            )
        };
        let change = difference(a.map(|one| one.mean), b.map(|one| one.mean));
        list.row([name.to_owned(), shown(a), shown(b), change]);
    }
    let mut row = |name: &str, of: &dyn Fn(&StudySummary) -> String| {
        let (a, b) = (of(a), of(b));
        list.row([name.to_owned(), a, b, String::new()]);
    };
    row("gain", &gain::of_study);
    row("chosen", &|study| match &study.recommended {
        None => "nothing yet".to_owned(),
        Some(_) => differing(&study.differs),
    });
    if a.accelerator == b.accelerator {
        parameters(&mut list, a.recommended.as_ref(), b.recommended.as_ref());
    }
    list
}
