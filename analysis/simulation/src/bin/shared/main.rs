//! Measures what one liar among five users can do to a study that they share: `make -C analysis
//! shared-report`.
//!
//! Prints docs/measurements/shared.md. `--studies`, `--lives` and `--seed` alone decide the figures.

#[path = "../time_to_proof/application.rs"]
#[expect(dead_code, reason = "its runs are not asked what they did")]
mod application;
mod claims;
mod lives;
#[path = "../time_to_proof/section.rs"]
mod section;
#[path = "../guarantees/surroundings.rs"]
mod surroundings;

use std::io::Write;

use application::Made;
use claims::{Claims, Group, Lie, claims};
use io_autotune_simulation::parallel;
use lives::{Deed, Life, Way, live};
use section::section;
use surroundings::{GAP, RUNS, WORLDS, What, World};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "shared [--studies N] [--lives N] [--seed N]";
/// The runs of a life with a search, of all users together.
const LIFE: u32 = 150;
const GAIN: f64 = 0.20;
/// A recommendation that is slower by more is bad.
const BAD: f64 = -0.03;

const LIES: [(&str, Lie); 6] = [
    ("all honest", Lie::None),
    ("control runs twice as long", Lie::For(2.0)),
    ("control runs 20 % longer", Lie::For(1.2)),
    ("tuned runs twice as long", Lie::Against(2.0)),
    ("tuned runs 20 % longer", Lie::Against(1.2)),
    ("noise of 70 % besides", Lie::Noise(0.7)),
];
const DEEDS: [(&str, Deed); 5] = [
    ("all honest", Deed::Lie(Lie::None)),
    ("the default twice as long", Deed::Lie(Lie::For(2.0))),
    (
        "all but the default twice as long",
        Deed::Lie(Lie::Against(2.0)),
    ),
    (
        "ends runs of what is slow at half of their time",
        Deed::Shorten,
    ),
    ("noise of 70 % besides", Deed::Lie(Lie::Noise(0.7))),
];

fn main() -> Result<(), Failure> {
    let (mut studies, mut lives, mut seed) = (400, 100, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or(USAGE)?
                .parse::<u64>()
                .map_err(Failure::from)
        };
        match name.as_str() {
            "--studies" => studies = value()?,
            "--lives" => lives = value()?,
            "--seed" => seed = value()?,
            _ => return Err(USAGE.into()),
        }
    }
    let out = &mut std::io::stdout().lock();
    let error = 100.0 * (0.05 * 0.95 / studies as f64).sqrt();
    writeln!(
        out,
        "# What one of five users can do to a study that they share, measured\n\n\
         Written by `make -C analysis shared-report SHARED_ARGS=\"--studies {studies} --lives {lives} --seed {seed}\"`; do not edit.\n\
         What it is measured for: [studies that users share](../sharing.md). Studies are simulated; the engine's own\n\
         code decides.\n\n\
         - Five users, each run by one of them at random, {GAP} h apart. The first lies, and knows what each run got.\n\
         - *Pooled*: as if all runs were one user's. *Shared*: as the engine bounds it.\n\
         - Noise is log-normal, of 17 %. One run in 16 is an outlier, 30 to 60 % slower.\n\
         - Times are said as Slurm would account them. A job that ends before its work is done is as fast as it\n  \
         likes: the lies go both ways.\n\
         - A rate of 5 % has a binomial standard error of {error:.1} points."
    )?;
    without_gain(out, studies, seed)?;
    until_claims(out, studies, seed + 1)?;
    recommendations(out, lives, seed + 2)
}

fn without_gain(out: &mut impl Write, studies: u64, seed: u64) -> Result<(), Failure> {
    section(
        out,
        "False claims",
        &format!(
            "Nothing is gained or lost. Claimed ever in {RUNS} runs, looked at after each. Promised: a gain in at most 4 %, a\n\
             loss in at most 1 %, whatever one user does. Worlds are those of\n\
             [what the report promises](report-guarantees.md)."
        ),
        &[
            "world",
            "the liar",
            "pooled: gain",
            "pooled: loss",
            "shared: gain",
            "shared: loss",
        ],
        2,
    )?;
    let usual = World::new("noise 17 %", 0.17, What::Nothing);
    let hard = [
        "noise 17 %, episodes",
        "noise 17 %, with memory",
        "noise 20 %, of the default 10 %",
    ];
    let hard = WORLDS
        .into_iter()
        .filter(|world| hard.contains(&world.name));
    let of_usual = LIES.map(|lie| (usual, lie));
    let of_hard = hard.flat_map(|world| [LIES[0], LIES[1]].map(|lie| (world, lie)));
    for (place, (world, (name, lie))) in (0..).zip(of_usual.into_iter().chain(of_hard)) {
        let group = Group {
            world,
            log_ratio: 0.0,
            lie,
            inputs: 0.0,
        };
        let all = parallel::on_all(studies, |number| claims(&group, of(seed, place, number)));
        let rate = |claimed: fn(&Claims) -> Option<usize>| {
            let hits = all.iter().filter(|one| claimed(one).is_some()).count();
            format!("{:.1} %", 100.0 * hits as f64 / all.len() as f64)
        };
        writeln!(
            out,
            "| {} | {name} | {} | {} | {} | {} |",
            world.name,
            rate(|one| one.pooled),
            rate(|one| one.pooled_loss),
            rate(|one| one.shared),
            rate(|one| one.shared_loss)
        )?;
        out.flush()?;
    }
    Ok(())
}

fn until_claims(out: &mut impl Write, studies: u64, seed: u64) -> Result<(), Failure> {
    let studies = studies.min(100);
    section(
        out,
        "Runs to a claim",
        &format!(
            "From the choice to the claim of a gain, in runs of all users: the median of {studies} studies, and what four of five\n\
             have reached; - if not in {RUNS}. *Inputs differ*: users' levels by 30 %. A user who shares nothing needs 5 times\n\
             [what one study takes](report-guarantees.md#runs-to-a-claim), in runs of all five. *Pooled* has the control runs\n\
             that the shared claim asks for."
        ),
        &[
            "gain",
            "the liar",
            "inputs differ",
            "pooled",
            "80 %",
            "shared",
            "80 %",
        ],
        3,
    )?;
    let world = World::new("noise 17 %", 0.17, What::Nothing);
    let equal = LIES.map(|lie| (lie, 0.0));
    let cells: Vec<_> = equal
        .into_iter()
        .chain([(LIES[0], 0.3), (LIES[3], 0.3)])
        .collect();
    for (place, gain) in (0..).zip([0.20_f64, 0.10]) {
        for (cell, ((name, lie), inputs)) in (0..).zip(&cells) {
            let group = Group {
                world,
                log_ratio: -(-gain).ln_1p(),
                lie: *lie,
                inputs: *inputs,
            };
            let all = parallel::on_all(studies, |number| {
                claims(&group, of(seed, 100 * place + cell, number))
            });
            let runs = |claimed: fn(&Claims) -> Option<usize>| {
                let mut runs: Vec<usize> = all
                    .iter()
                    .map(|one| claimed(one).unwrap_or(usize::MAX))
                    .collect();
                runs.sort_unstable();
                [0.5, 0.8]
                    .map(
                        |share| match runs[((runs.len() - 1) as f64 * share) as usize] {
                            usize::MAX => "-".to_owned(),
                            runs => runs.to_string(),
                        },
                    )
                    .join(" | ")
            };
            writeln!(
                out,
                "| {:.0} % | {name} | {} | {} | {} |",
                100.0 * gain,
                if *inputs > 0.0 { "yes" } else { "no" },
                runs(|one| one.pooled),
                runs(|one| one.shared)
            )?;
            out.flush()?;
        }
    }
    Ok(())
}

fn recommendations(out: &mut impl Write, lives: u64, seed: u64) -> Result<(), Failure> {
    section(
        out,
        "What is recommended",
        &format!(
            "After {LIFE} runs of all five, search included, of the application of [runs to a proof](time-to-proof.md), whose\n\
             best point gains {:.0} %. The gain of what the honest users are recommended: the mean of {lives} studies (standard\n\
             error), and the share of studies in which one of them is recommended what is more than {:.0} % slower than the\n\
             default. *Alone*: everyone has a study of their own.",
            100.0 * GAIN,
            -100.0 * BAD
        ),
        &[
            "the liar",
            "inputs differ",
            "alone",
            "bad",
            "pooled",
            "bad",
            "shared",
            "bad",
        ],
        2,
    )?;
    let application = Made::new(GAIN, usize::MAX)?;
    let equal = DEEDS.map(|deed| (deed, 0.0));
    for (place, ((name, deed), inputs)) in
        (0..).zip(equal.into_iter().chain([(DEEDS[0], 0.3), (DEEDS[3], 0.3)]))
    {
        let cells = [Way::Alone, Way::Pooled, Way::Shared].map(|way| {
            let life = Life {
                application: &application,
                world: World::new("noise 17 %", 0.17, What::Nothing),
                way,
                deed,
                inputs,
                runs: LIFE,
            };
            let all = parallel::on_all(lives, |number| live(&life, of(seed, place, number)));
            let count = all.len() as f64;
            let mean = all.iter().map(|[mean, _]| mean).sum::<f64>() / count;
            let square = all.iter().map(|[one, _]| (one - mean).powi(2)).sum::<f64>();
            let error = (square / (count - 1.0) / count).sqrt();
            let bad = all.iter().filter(|[_, least]| *least < BAD).count();
            format!(
                "{:.1} % ({:.1}) | {:.0} %",
                100.0 * mean,
                100.0 * error,
                100.0 * bad as f64 / count
            )
        });
        let differ = if inputs > 0.0 { "yes" } else { "no" };
        writeln!(out, "| {name} | {differ} | {} |", cells.join(" | "))?;
        out.flush()?;
    }
    Ok(())
}

fn of(seed: u64, place: u64, number: u64) -> u64 {
    (seed << 40) + (place << 24) + number
}
