//! Measures what a prior from other studies does: `make transfer-report`.
//!
//! Prints docs/measurements/priors.md. `--sites`, `--lives` and `--seed` alone decide the figures.

mod life;
#[path = "../time_to_proof/section.rs"]
mod section;
mod site;
#[path = "../guarantees/surroundings.rs"]
#[expect(dead_code, reason = "other measurements need more of it")]
mod surroundings;

use std::io::Write;
use std::num::NonZero;

use io_autotune_engine::{MOST_SOURCES, Source, Space};
use io_autotune_simulation::parallel;
use life::{LOOKS, Life, live};
use section::section;
use site::{Application, Site};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "transfer [--sites N] [--lives N] [--seed N]";
const NOISES: [f64; 3] = [0.05, 0.10, 0.20];

/// Whose studies a study begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nobody,
    /// The other applications of the site.
    Site,
    /// Applications that have nothing in common with it.
    Unrelated,
    /// Those that measure like it, and whose best is its worst.
    Adversaries,
    /// Three of these, and as many of its site.
    Mixed,
}

const ALL: [(From, &str); 5] = [
    (From::Nobody, "nobody"),
    (From::Site, "the site"),
    (From::Unrelated, "unrelated"),
    (From::Adversaries, "best is worst"),
    (From::Mixed, "three of these, three of the site"),
];

fn main() -> Result<(), Failure> {
    let mut of = Measured {
        sites: 4,
        lives: 4,
        seed: 1,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?.parse::<u64>()?;
        match name.as_str() {
            "--sites" => of.sites = value,
            "--lives" => of.lives = value,
            "--seed" => of.seed = value,
            _ => return Err(USAGE.into()),
        }
    }
    let space = site::space()?;
    let targets: Vec<(f64, Vec<Target>)> = NOISES
        .into_iter()
        .map(|noise| (noise, measure(&space, noise, &of)))
        .collect();
    page(&mut std::io::stdout().lock(), &targets, &of)
}

/// What is measured: so many sites, and lives of each target.
struct Measured {
    sites: u64,
    lives: u64,
    seed: u64,
}

/// The mean life of one application, from each of [`ALL`].
type Target = Vec<Life>;

fn measure(space: &Space, noise: f64, of: &Measured) -> Vec<Target> {
    let Measured { sites, lives, seed } = *of;
    let sites: Vec<Site> = (0..sites)
        .map(|number| Site::new(space, seed + number))
        .collect();
    let number = |site: usize, application: usize, what: u64| {
        (seed << 32) + ((site as u64) << 20) + ((application as u64) << 8) + what
    };
    let count = site::FAMILIES * site::MEMBERS;
    let studied = |application: &Application, seed: u64| {
        Source::of(space, &live(space, application, noise, &[], seed).history)
    };
    // Of each application of each site: its study, some of its negation, an unrelated one's.
    let learnt = each(sites.len() * count, |cell| {
        let (site, place) = (cell / count, cell % count);
        let own = &sites[site].applications[place];
        let negated = own.negated();
        let unrelated = sites[site].unrelated.get(place);
        let against = (0..3).map(|which| studied(&negated, number(site, place, 10 + which)));
        (
            studied(own, number(site, place, 1)),
            against.collect::<Vec<_>>(),
            unrelated.and_then(|one| studied(one, number(site, place, 2))),
        )
    });
    each(sites.len() * count, |cell| {
        let (site, place) = (cell / count, cell % count);
        let own = &sites[site].applications[place];
        let of_site = &learnt[site * count..(site + 1) * count];
        let measures = own.measures.iter();
        let measures = measures.map(|(name, value)| (name.clone(), value.ln()));
        let measures = measures.collect();
        let mut siblings: Vec<&Source> = of_site
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place)
            .filter_map(|(_, (study, ..))| study.as_ref())
            .collect();
        siblings.sort_by(|a, b| a.distance(&measures).total_cmp(&b.distance(&measures)));
        siblings.truncate(MOST_SOURCES);
        let against: Vec<&Source> = of_site[place].1.iter().flatten().collect();
        let unrelated = of_site.iter().filter_map(|(_, _, study)| study.as_ref());
        let of_all = ALL.map(|(from, _)| {
            let sources: Vec<Source> = match from {
                From::Nobody => Vec::new(),
                From::Site => siblings.iter().copied().cloned().collect(),
                From::Unrelated => unrelated.clone().cloned().collect(),
                From::Adversaries => against.iter().copied().cloned().collect(),
                From::Mixed => {
                    let both = against.iter().chain(siblings.iter().take(3));
                    both.copied().cloned().collect()
                }
            };
            let live = |number| live(space, own, noise, &sources, number);
            let numbers = (0..lives).map(|life| number(site, place, 32 + life));
            Life::mean(&numbers.map(live).collect::<Vec<_>>())
        });
        of_all.into()
    })
}

fn page(out: &mut impl Write, all: &[(f64, Vec<Target>)], of: &Measured) -> Result<(), Failure> {
    let Measured { sites, lives, seed } = *of;
    let count = all.first().map_or(0, |(_, targets)| targets.len());
    writeln!(
        out,
        "# Studies that begin from what others learnt, measured\n\n\
         Written by `make transfer-report TRANSFER_ARGS=\"--sites {sites} --lives {lives} --seed {seed}\"`; do not edit.\n\
         What it is measured for: [what a study begins from](../priors.md). Studies are simulated; the engine's own\n\
         code decides.\n\n\
         - {sites} sites of {} applications of one space of 18,144 points, in {} families: {count} targets. Of the log of\n  \
         elapsed a part is everyone's, a part the family's, a part the application's own. Measures tell families, with noise.\n\
         - *The site*: the other eleven have run 50 times each, without a prior. *Unrelated*: eight that have nothing in\n  \
         common with it. *Best is worst*: three of an application that measures like it, and is fast where it is slow.\n\
         - Noise is log-normal. A target's figures are means of {lives} lives, whose noise has the same seeds with\n  \
         all priors.\n\
         - Constants were chosen on sites of seed 1000 and 1001, the last two of them by reasoning.\n\
         - Intervals are of 95 %, over targets.",
        site::FAMILIES * site::MEMBERS,
        site::FAMILIES,
    )?;
    let looks = LOOKS.map(|look| format!("after {look} runs"));
    let mut head = vec!["noise", "begins from"];
    head.extend(looks.iter().map(String::as_str));
    section(
        out,
        "What is recommended",
        "What it takes, as a multiple of the best point's.",
        &head,
        2,
    )?;
    rows(out, all, 0, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].recommended[look]))
    })?;
    section(
        out,
        "The average run",
        "What it takes, as a multiple of the default's.",
        &head,
        2,
    )?;
    rows(out, all, 0, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].average[look]))
    })?;
    section(
        out,
        "Harm",
        "What slower runs than the default have cost together, in runs of the default.",
        &head,
        2,
    )?;
    rows(out, all, 0, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].harm[look]))
    })?;
    section(
        out,
        "More harm than without a prior",
        "In runs of the default: the mean, what nine of ten targets have at most, and the most.",
        &head,
        2,
    )?;
    rows(out, all, 1, |targets, from, look| {
        let more = targets
            .iter()
            .map(|one| one[from].harm[look] - one[0].harm[look]);
        let (mean, most, worst) = spread(more);
        format!("{mean:+.2}, {most:+.2}, {worst:+.2}")
    })?;
    section(
        out,
        "The recommendation, by that without a prior",
        "The geometric mean over targets, in pairs, and the worst target.",
        &head,
        2,
    )?;
    rows(out, all, 1, |targets, from, look| {
        let logs = targets
            .iter()
            .map(|one| (one[from].recommended[look] / one[0].recommended[look]).ln());
        let (.., worst) = spread(logs.clone());
        let (mean, half) = interval(logs);
        format!(
            "{:.3} ({:.3}..{:.3}), {:.2}",
            mean.exp(),
            (mean - half).exp(),
            (mean + half).exp(),
            worst.exp()
        )
    })?;
    section(
        out,
        "A worse recommendation than without a prior",
        "The share of targets for which it takes over 1 % more, and of those for which it takes over 1 % less.",
        &head,
        2,
    )?;
    rows(out, all, 1, |targets, from, look| {
        let ratio = |one: &Target| one[from].recommended[look] / one[0].recommended[look];
        let share = |is: &dyn Fn(f64) -> bool| {
            let some = targets.iter().filter(|one| is(ratio(one))).count();
            100.0 * some as f64 / targets.len() as f64
        };
        format!(
            "{:.0} %, {:.0} %",
            share(&|ratio| ratio > 1.01),
            share(&|ratio| ratio < 0.99)
        )
    })
}

/// A line of each noise and each of [`ALL`] from this one on.
fn rows(
    out: &mut impl Write,
    all: &[(f64, Vec<Target>)],
    first: usize,
    cell: impl Fn(&[Target], usize, usize) -> String,
) -> Result<(), Failure> {
    for (noise, targets) in all {
        for (from, (_, name)) in ALL.iter().enumerate().skip(first) {
            let cells = (0..LOOKS.len()).map(|look| cell(targets, from, look));
            let cells: Vec<String> = cells.collect();
            writeln!(
                out,
                "| {:.0} % | {name} | {} |",
                100.0 * noise,
                cells.join(" | ")
            )?;
        }
    }
    Ok(())
}

/// A mean with the half of its interval.
fn mean(values: impl Iterator<Item = f64>) -> String {
    let (mean, half) = interval(values);
    format!("{mean:.3} ± {half:.3}")
}

fn interval(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
    (mean, 1.96 * (square / (count - 1.0) / count).sqrt())
}

/// The mean, the ninth decile, the maximum.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (
        mean,
        values[(values.len() * 9 / 10).min(values.len() - 1)],
        values[values.len() - 1],
    )
}

/// All of so many, over all processors.
fn each<T: Send + Sync>(count: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    parallel::each(count, threads, one)
}
