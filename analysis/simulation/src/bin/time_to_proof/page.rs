//! docs/measurements/time-to-proof.md.

use std::collections::BTreeMap;
use std::io::Write;

use crate::figures::{Figures, Quantile, Share};
use crate::section::section;
use crate::{BEGUN, Failure, HORIZON, HOT_HORIZON, NO_GAIN};

/// Prints the page of these files' lines, each file one engine's.
pub(crate) fn print(out: &mut impl Write, files: &[String]) -> Result<(), Failure> {
    let mut engines: Vec<Vec<Figures>> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)?;
        let figures: Result<_, _> = text.lines().map(serde_json::from_str).collect();
        engines.push(figures?);
    }
    let cells = engines.first().ok_or("--page needs a file of figures")?;
    let first = cells.first().ok_or("the file has no figures")?;
    let (studies, seed) = (first.studies, first.seed);
    let names: Vec<&str> = engines
        .iter()
        .filter_map(|figures| Some(figures.first()?.engine.as_str()))
        .collect();
    let seconds: Vec<String> = engines
        .iter()
        .zip(&names)
        .map(|(figures, name)| {
            let cold = figures.iter().filter(|one| !is_hot(one));
            let seconds: f64 = cold.map(|one| one.seconds).sum();
            format!("{seconds:.0} s for {name}")
        })
        .collect();
    writeln!(
        out,
        "# Runs to a proof, measured\n\n\
         Written by `make -C analysis time-to-proof PROOF_ARGS=\"--studies {studies} --seed {seed}\"`; do not edit. What is claimed,\n\
         and how: [statistics](../derivation/report-statistics.md).\n\n\
         A study begins with a user's first submission. The engine is driven as the service does: it suggests,\n\
         each verdict goes into history and evidence, and after each it is asked what may be claimed. Engines:\n\
         {}; each is its own code, built beside the other, by the same seeds.\n\n\
         - The application is made: 5 parameters, 2592 points; effects add up but for one pair, and two\n  \
         parameters bring three quarters of them. *Gain*: what the best point takes less than the default. The\n  \
         search finds a part of it (*found*), and only that can be proved.\n\
         - Noise and worlds are those of [what the report promises](report-guarantees.md). *Of the default 34 %*:\n  \
         its noise is twice the tuned runs'. *8 at once*: so many runs in flight, 1 elsewhere.\n\
         - *Of the hour*: 60 % of the variance is shared by all runs of an hour. *Other runs seen*: six runs of\n  \
         the half hour before, each with the noise of its own, show how the machine is.\n\
         - {studies} studies of each cell, {HORIZON} runs each; drift is not looked for. In brackets 95 % intervals:\n  \
         quantiles between order statistics, shares by Wilson. A dash: fewer studies got so far.\n\
         - Processor time, nearly all of it the surrogate's: {}.\n  \
         Half an hour of two processors allows 60 studies of each cell and engine. False claims are rare: all cells\n  \
         without a gain are also taken together.",
        names.join(", "),
        seconds.join(", "),
    )?;
    let by_cell: Vec<BTreeMap<&str, &Figures>> = engines
        .iter()
        .map(|figures| figures.iter().map(|one| (one.cell.as_str(), one)).collect())
        .collect();
    let rows = |of_nulls: bool| {
        let of_kind = move |one: &&Figures| is_null(one) == of_nulls && !is_hot(one);
        let cells: Vec<&Figures> = cells.iter().filter(of_kind).collect();
        let by_cell = &by_cell;
        cells.into_iter().flat_map(move |cell| {
            let rows = by_cell.iter().filter_map(|one| one.get(cell.cell.as_str()));
            rows.copied().collect::<Vec<_>>()
        })
    };
    section(
        out,
        "To the claim of a gain",
        "Runs from the first submission, control runs included, until `faster` is claimed; before the first that is\n\
         compared, of a proof or of the settled phase; and from it. *Claimed*: studies that got so far in their life.",
        &[
            "cell", "engine", "runs", "80 %", "before", "after", "80 %", "claimed",
        ],
        2,
    )?;
    for one in rows(false) {
        let [median, most] = one.runs.map(quantile);
        let [after, most_after] = one.after.map(quantile);
        let (search, claimed) = (quantile(one.search), share(one.faster));
        writeln!(
            out,
            "| {} | {} | {median} | {most} | {search} | {after} | {most_after} | {claimed} |",
            one.cell, one.engine
        )?;
    }
    section(
        out,
        "What it costs, and what is said",
        "*Found*: the gain of the last choice; in brackets standard errors. *Regret*: the run time of all runs over that\n\
         of as many of the last choice, without noise. *Loss claimed*: ever, though there is a gain. Intervals: studies\n\
         whose interval held, at every look, the gain *of the choice* at that time; and the mean *of the tuned runs*;\n\
         of a proof and of what came later each by itself.\n\
         Evidence by ranks promises the first alone.",
        &[
            "cell",
            "engine",
            "found",
            "regret",
            "loss claimed",
            "of the choice",
            "of the tuned runs",
        ],
        2,
    )?;
    for one in rows(false) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            one.cell,
            one.engine,
            mean(one.found),
            mean(one.regret),
            share(one.slower),
            share(one.holds_choice),
            share(one.holds_tuned),
        )?;
    }
    section(
        out,
        "Without a gain",
        "All points take what the default takes. Claimed in a life, at any look; promised: at most 5 % together.",
        &[
            "cell",
            "engine",
            "gain claimed",
            "loss claimed",
            "interval holds 0",
        ],
        2,
    )?;
    for one in rows(true) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            one.cell,
            one.engine,
            share(one.faster),
            share(one.slower),
            share(one.holds_choice),
        )?;
    }
    for (figures, name) in engines.iter().zip(&names) {
        let together = |of: &dyn Fn(&Figures) -> &Share| {
            let nulls = figures.iter().filter(|one| is_null(one) && !is_hot(one));
            share(Share::together(nulls.map(|one| (of(one), one.studies))))
        };
        writeln!(
            out,
            "| all | {name} | {} | {} | {} |",
            together(&|one| &one.faster),
            together(&|one| &one.slower),
            together(&|one| &one.holds_choice),
        )?;
    }
    section(
        out,
        "Begun from what others learnt",
        &format!(
            "This tree's, of the applications of [priors](priors.md): each study has a site of its own, whose other studies\n\
             have run 50 times. *1, 2, 8 of its site*: those that measure most like it. *Harm*: what runs slower than the\n\
             default cost together, in runs of the default. {HOT_HORIZON} runs each. {}",
            "*After* is from the first run that is compared."
        ),
        &[
            "cell",
            "runs",
            "80 %",
            "before",
            "after",
            "claimed",
            "found",
            "harm",
            "loss claimed",
        ],
        1,
    )?;
    for one in engines.iter().flatten().filter(|one| is_hot(one)) {
        let ([median, most], [after, _]) = (one.runs.map(quantile), one.after.map(quantile));
        let (before, (harm, error)) = (quantile(one.search), one.harm);
        let (claimed, found, lost) = (share(one.faster), mean(one.found), share(one.slower));
        writeln!(
            out,
            "| {} | {median} | {most} | {before} | {after} | {claimed} | {found} | {harm:.2} ({error:.2}) | {lost} |",
            one.cell,
        )?;
    }
    Ok(())
}

fn is_null(figures: &Figures) -> bool {
    figures.cell.contains(NO_GAIN)
}

fn is_hot(figures: &Figures) -> bool {
    figures.cell.contains(BEGUN)
}

fn quantile(quantile: Quantile) -> String {
    let number = |runs: Option<u32>| runs.map_or_else(|| "-".to_owned(), |runs| runs.to_string());
    match quantile.value {
        None => "-".to_owned(),
        value => format!(
            "{} ({}..{})",
            number(value),
            number(quantile.low),
            number(quantile.high)
        ),
    }
}

fn mean((mean, error): (f64, f64)) -> String {
    format!("{:.1} % ({:.1})", 100.0 * mean, 100.0 * error)
}

fn share(share: Share) -> String {
    format!(
        "{:.0} % ({:.0}..{:.0})",
        100.0 * share.value,
        100.0 * share.low,
        100.0 * share.high
    )
}
