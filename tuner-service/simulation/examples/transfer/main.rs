//! Measures what a prior from other studies does: `make transfer-report`.
//!
//! Prints docs/measurements/transfer.md. `--sites` and `--seed` alone decide the figures.

mod life;
#[path = "../time_to_proof/section.rs"]
mod section;
mod site;
#[path = "../guarantees/surroundings.rs"]
#[allow(dead_code)]
mod surroundings;

use std::io::Write;
use std::num::NonZero;

use io_autotune_engine::{MOST_SOURCES, Source, Space};
use io_autotune_simulation::parallel;
use life::{LOOKS, Life, live};
use section::section;
use site::{Application, Site};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "transfer [--sites N] [--seed N]";
const NOISES: [f64; 3] = [0.05, 0.10, 0.20];

/// Whose studies a study begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nobody,
    /// The other applications of the site.
    Site,
    /// Applications that have nothing in common with it.
    Unrelated,
    /// One that measures like it, and whose best is its worst.
    Adversary,
    /// Three of these, and as many of its site.
    Mixed,
}

const ALL: [(From, &str); 5] = [
    (From::Nobody, "nobody"),
    (From::Site, "the site"),
    (From::Unrelated, "unrelated"),
    (From::Adversary, "one whose best is worst"),
    (From::Mixed, "three of these, three of the site"),
];

fn main() -> Result<(), Failure> {
    let (mut sites, mut seed) = (4, 1000);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?.parse::<u64>()?;
        match name.as_str() {
            "--sites" => sites = value,
            "--seed" => seed = value,
            _ => return Err(USAGE.into()),
        }
    }
    let out = &mut std::io::stdout().lock();
    let space = space_of_all()?;
    for noise in NOISES {
        measure(out, &space, noise, sites, seed)?;
    }
    Ok(())
}

fn space_of_all() -> Result<Space, Failure> {
    site::space()
}

struct Target {
    lives: Vec<Life>,
}

fn measure(
    out: &mut impl Write,
    space: &Space,
    noise: f64,
    sites: u64,
    seed: u64,
) -> Result<(), Failure> {
    let sites: Vec<Site> = (0..sites)
        .map(|number| Site::new(space, seed + number))
        .collect();
    let number = |site: usize, application: usize, what: u64| {
        (seed << 32) + ((site as u64) << 20) + ((application as u64) << 8) + what
    };
    let count = sites[0].applications.len();
    let studied = |application: &Application, seed: u64| {
        Source::of(space, &live(space, application, noise, &[], seed).history)
    };
    // Of each application of each site: its study, its negation's, an unrelated one's.
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
    let targets = each(sites.len() * count, |cell| {
        let (site, place) = (cell / count, cell % count);
        let own = &sites[site].applications[place];
        let of_site = &learnt[site * count..(site + 1) * count];
        let measures = own
            .measures
            .iter()
            .map(|(name, value)| (name.clone(), value.ln()));
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
        let lives = ALL.map(|(from, _)| {
            let sources: Vec<Source> = match from {
                From::Nobody => Vec::new(),
                From::Site => siblings.iter().copied().cloned().collect(),
                From::Unrelated => unrelated.clone().cloned().collect(),
                From::Adversary => against.iter().take(1).copied().cloned().collect(),
                From::Mixed => {
                    let both = against.iter().chain(siblings.iter().take(3));
                    both.copied().cloned().collect()
                }
            };
            live(space, own, noise, &sources, number(site, place, 3))
        });
        Target {
            lives: lives.into(),
        }
    });
    for (place, (_, name)) in ALL.iter().enumerate() {
        let took: f64 = targets.iter().map(|target| target.lives[place].took).sum();
        let each = took / targets.len() as f64 / LOOKS[LOOKS.len() - 1] as f64;
        eprintln!("{name}: {each:.1} ms for a suggestion");
    }
    let mut head = vec!["begins from".to_owned()];
    for look in LOOKS {
        head.push(format!("after {look}"));
    }
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let percent = 100.0 * noise;
    section(
        out,
        &format!("Noise {percent:.0} %: what is recommended"),
        "Over the best.",
        &head,
        1,
    )?;
    table(out, &targets, |life, look| life.recommended[look])?;
    section(
        out,
        "The same, difference to nobody, worst target-mean",
        "",
        &head,
        1,
    )?;
    for (place, (_, name)) in ALL.iter().enumerate().skip(1) {
        write!(out, "| {name} |")?;
        for look in 0..LOOKS.len() {
            let mut differences: Vec<f64> = targets
                .iter()
                .map(|target| {
                    target.lives[place].recommended[look] / target.lives[0].recommended[look] - 1.0
                })
                .collect();
            differences.sort_by(f64::total_cmp);
            let worse = differences.iter().filter(|one| **one > 0.01).count();
            write!(
                out,
                " {:+.1} / {:+.1} % ({worse} of {}) |",
                100.0 * differences[differences.len() * 9 / 10],
                100.0 * differences[differences.len() - 1],
                differences.len()
            )?;
        }
        writeln!(out)?;
    }
    section(out, "The average run", "Over the default.", &head, 1)?;
    table(out, &targets, |life, look| life.average[look])?;
    section(out, "Harm", "In runs of the default.", &head, 1)?;
    table(out, &targets, |life, look| life.harm[look])?;
    section(out, "Harm, difference: mean, 90 %, most", "", &head, 1)?;
    for (place, (_, name)) in ALL.iter().enumerate().skip(1) {
        write!(out, "| {name} |")?;
        for look in 0..LOOKS.len() {
            let mut differences: Vec<f64> = targets
                .iter()
                .map(|target| target.lives[place].harm[look] - target.lives[0].harm[look])
                .collect();
            differences.sort_by(f64::total_cmp);
            write!(
                out,
                " {:+.2} {:+.2} {:+.2} |",
                differences.iter().sum::<f64>() / differences.len() as f64,
                differences[differences.len() * 9 / 10],
                differences[differences.len() - 1],
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn table(
    out: &mut impl Write,
    targets: &[Target],
    of: impl Fn(&Life, usize) -> f64,
) -> Result<(), Failure> {
    for (place, (_, name)) in ALL.iter().enumerate() {
        write!(out, "| {name} |")?;
        for look in 0..LOOKS.len() {
            let values: Vec<f64> = targets
                .iter()
                .map(|target| of(&target.lives[place], look))
                .collect();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let square: f64 = values.iter().map(|one| (one - mean).powi(2)).sum();
            let half = 1.96 * (square / (count - 1.0) / count).sqrt();
            write!(out, " {mean:.3} ± {half:.3} |")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// All of so many, over all processors.
fn each<T: Send + Sync>(count: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    parallel::each(count, threads, one)
}
