//! Measures the guarantees of a study's gain: `make -C analysis report-guarantees`.
//!
//! Prints the single-study part of docs/measurements/report-guarantees.md. With `--sites` it prints
//! studies of sites, from which `python -m guarantees` writes the rest with the report's own code.
//! `--studies` and `--seed` alone decide the figures. `--world` selects worlds by name.

mod measure;
mod sites;
mod world;
mod yuen;

use std::io::Write;

use measure::{coverage, detectable, null, until_claim};
use world::{WORLDS, What, World};

type Failure = Box<dyn std::error::Error>;

const NUMBERS: [usize; 8] = [10, 20, 40, 70, 100, 200, 350, 560];
/// Studies of a site whose claims are counted.
const CLAIMING: u64 = 300;
const USAGE: &str = "guarantees [--studies N] [--seed N] [--world NAME] [--sites]";

fn main() -> Result<(), Failure> {
    let (mut studies, mut seed, mut only, mut is_of_sites) = (1000, 1, String::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match name.as_str() {
            "--studies" => studies = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--world" => only = value()?,
            "--sites" => is_of_sites = true,
            _ => return Err(USAGE.into()),
        }
    }
    let worlds: Vec<(u64, World)> = (0..)
        .zip(WORLDS)
        .filter(|(_, world)| world.name.contains(&only))
        .collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if is_of_sites {
        sites::print_claims(&mut out, (studies / 50).max(1), CLAIMING, seed)?;
        return sites::print_nights(&mut out, &worlds, (studies / 4).max(2), seed);
    }
    let out = &mut out;
    let standard_error = 100.0 * (0.05 * 0.95 / studies as f64).sqrt();
    writeln!(
        out,
        "# What the report promises, measured\n\n\
         Written by `make -C analysis report-guarantees GUARANTEES_ARGS=\"--studies {studies} --seed {seed}\"`; do not edit.\n\
         What is claimed, and how: [statistics](../derivation/report-statistics.md). The studies are\n\
         simulated. The code that is measured is what acts: the engine's for a study, the report's for many\n\
         studies. A test repeats them with fewer. The binomial standard error of 5 % is {standard_error:.1} points.\n\n{WORDS}"
    )?;
    nulls(out, &worlds, studies, seed)?;
    coverages(out, &worlds, studies, seed + 1)?;
    until_claims(out, studies.min(400), seed + 4)?;
    detectables(out, studies.min(400), seed + 2)?;
    Ok(writeln!(out, "{MIXED}")?)
}

const WORDS: &str = "\
- Noise is log-normal. One run in 16 is an outlier, 30 to 60 % slower.
- *Drift* makes everything slower over 560 runs.
- *Heavy tails*: noise of the same standard deviation is Student's with 3 degrees of freedom.
- *Episodes*: the machine is busy for 10 h of 110 h on average; runs, 2 h apart, take twice as long.
- *With memory*: as much noise again comes from an autoregression with the coefficient 0.9.
- *Weekly*: 15 % slower and faster in the course of a week.
- *Steps*: a workflow's steps run under one name, one after the other; one of them is slower.";

const MIXED: &str = "
## Mixed work

How often a busy machine is taken for mixed work, and mixed work is missed, in worlds like these:
[mixed work, measured](mixture.md).";

fn nulls(
    out: &mut impl Write,
    worlds: &[(u64, World)],
    studies: u64,
    seed: u64,
) -> Result<(), Failure> {
    section(
        out,
        "Studies without an effect",
        "What was chosen is the best of 13 parametrizations by 3 runs each, which all take what the default takes.\n\
         560 runs follow, and each study is looked at after each of them. Promised: a false claim in at most 5 % of\n\
         studies, over all their looks.",
        &[
            "world",
            "claimed falsely, ever",
            "faster",
            "slower",
            "Yuen at 5 %, every tenth run",
            "from the search's runs",
        ],
    )?;
    for (place, world) in worlds {
        let null = null(world, studies, seed + 100 * place);
        row(
            out,
            world,
            &[null.ever, null.faster, null.slower, null.yuen, null.lucky],
        )?;
    }
    writeln!(
        out,
        "\nThe last two columns are not what the report does: an interval made for one look, looked at after\n\
         every tenth run; and a gain of 8 % or more of the chosen parametrization's three runs over four runs of the\n\
         default from the start. Steps of a workflow meet control runs by chance, as the engine draws them."
    )?;
    Ok(())
}

fn coverages(
    out: &mut impl Write,
    worlds: &[(u64, World)],
    studies: u64,
    seed: u64,
) -> Result<(), Failure> {
    section(
        out,
        "Intervals",
        "The 13 parametrizations differ, by -25 to 50 %. Promised: 97.5 % for the first comparison of a study, over\n\
         all looks.",
        &["world", "hold the truth at the end", "at each of 560 looks"],
    )?;
    for (place, world) in worlds {
        row(out, world, &coverage(world, studies, seed + 100 * place))?;
    }
    writeln!(
        out,
        "\nUnequal noise is corrected for, yet no theorem covers it."
    )?;
    Ok(())
}

fn until_claims(out: &mut impl Write, studies: u64, seed: u64) -> Result<(), Failure> {
    section(
        out,
        "Runs to a claim",
        "From the choice to the first claim of a gain, in runs, control runs included: the median of studies, and what\n\
         four of five have reached; - if not in 560 runs. The search's runs come before. *Evenly*: one control run in\n\
         ten, as without `controls_at_first` and `controls_promising`.",
        &[
            "noise",
            "gain",
            "median",
            "four of five",
            "evenly: median",
            "four of five",
        ],
    )?;
    for noise in [0.05, 0.10, 0.17, 0.30] {
        let world = World::new("", noise, What::Nothing);
        for gain in [0.05, 0.10, 0.20, 0.50] {
            let [ours, evenly] =
                [false, true].map(|is_even| until_claim(&world, gain, is_even, studies, seed));
            let cells = [ours, evenly].concat();
            let cells: Vec<String> = cells
                .into_iter()
                .map(|runs| runs.map_or_else(|| "-".to_owned(), |runs| runs.to_string()))
                .collect();
            writeln!(
                out,
                "| {:.0}% | {:.0}% | {} |",
                100.0 * noise,
                100.0 * gain,
                cells.join(" | ")
            )?;
        }
    }
    Ok(())
}

fn detectables(out: &mut impl Write, studies: u64, seed: u64) -> Result<(), Failure> {
    let numbers = NUMBERS.map(|runs| runs.to_string());
    let head: Vec<&str> = std::iter::once("noise")
        .chain(numbers.iter().map(String::as_str))
        .collect();
    section(
        out,
        "The smallest detectable gain",
        &format!(
            "Claimed in 80 % of {studies} studies after so many runs since the choice. A dash: not even 70 %."
        ),
        &head,
    )?;
    for world in WORLDS.iter().take(4) {
        let found = detectable(world, &NUMBERS, studies, seed);
        let said = found
            .iter()
            .map(|share| share.map_or("-".to_owned(), |share| format!("{:.0}%", 100.0 * share)));
        writeln!(
            out,
            "| {:.0}% | {} |",
            100.0 * world.noise,
            said.collect::<Vec<_>>().join(" | ")
        )?;
    }
    Ok(())
}

fn section(out: &mut impl Write, title: &str, text: &str, head: &[&str]) -> Result<(), Failure> {
    writeln!(out, "\n## {title}\n\n{text}\n\n| {} |", head.join(" | "))?;
    writeln!(out, "| --- |{}", " ---: |".repeat(head.len() - 1))?;
    Ok(())
}

fn row(out: &mut impl Write, world: &World, shares: &[f64]) -> Result<(), Failure> {
    let shares: Vec<String> = shares
        .iter()
        .map(|share| format!("{:.1}%", 100.0 * share))
        .collect();
    writeln!(out, "| {} | {} |", world.name, shares.join(" | "))?;
    Ok(out.flush()?)
}
