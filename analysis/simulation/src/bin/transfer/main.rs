//! Measures what a prior from other studies does: `make -C analysis transfer-report`.
//!
//! Prints docs/measurements/priors.md. `--sites`, `--lives`, `--seed` and the tables of `--patterns`
//! alone decide the figures.

mod life;
mod patterns;
#[path = "../time_to_proof/section.rs"]
mod section;
mod site;
#[path = "../guarantees/surroundings.rs"]
#[expect(dead_code, reason = "other measurements need more of it")]
mod surroundings;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use io_autotune_engine::{MOST_SOURCES, Parametrization, Settings, SharedSource, Source, Space};
use io_autotune_optimize::session::outside_slurm;
use io_autotune_simulation::parallel;
use io_autotune_simulation::preset::without_proofs;
use life::{
    Application as _, EXPLORED, LOOKS, Life, Noisy, best_common, learnt, live, nearest, shared,
};
use patterns::Pattern;
use section::section;
use serde::Serialize;
use site::{Application, Site};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str =
    "transfer [--sites N] [--lives N] [--seed N] [--patterns FOLDER] [--only-patterns FILE]";
const NOISES: [f64; 3] = [0.05, 0.10, 0.20];

/// The most points of a space that are looked at for the best common setting.
const MOST_POINTS: usize = 1 << 16;

/// Whose studies a study begins from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Nobody,
    /// The other applications of the site.
    Site,
    /// Applications that have nothing in common with it.
    Unrelated,
    /// Sources that measure like it, and whose best is its worst.
    Adversaries,
    /// Three of these, and as many of its site.
    Mixed,
    /// Four of these, each of another user: as many as are believed.
    Conspiracy,
}

const ALL: [(From, &str); 6] = [
    (From::Nobody, "nobody"),
    (From::Site, "the site"),
    (From::Unrelated, "unrelated"),
    (From::Adversaries, "best is worst"),
    (From::Mixed, "three of these, three of the site"),
    (From::Conspiracy, "four of these"),
];

/// Lives of each pattern, for one of each simulated application.
const PATTERN_LIVES: u64 = 5;

fn main() -> Result<(), Failure> {
    let mut of = Measured {
        sites: 4,
        lives: 4,
        seed: 1,
        patterns: PathBuf::from("analysis/data/patterns"),
        only_patterns: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--sites" => of.sites = value.parse()?,
            "--lives" => of.lives = value.parse()?,
            "--seed" => of.seed = value.parse()?,
            "--patterns" => of.patterns = value.into(),
            "--only-patterns" => of.only_patterns = Some(value.into()),
            _ => return Err(USAGE.into()),
        }
    }
    let patterns = Pattern::read(&of.patterns)?;
    let measured = measure_patterns(&patterns, &of);
    if let Some(path) = &of.only_patterns {
        return Ok(serde_json::to_writer(
            std::fs::File::create(path)?,
            &measured,
        )?);
    }
    let space = site::space()?;
    let targets: Vec<(String, Vec<Target>)> = NOISES
        .into_iter()
        .map(|noise| {
            (
                format!("{:.0} %", 100.0 * noise),
                measure(&space, noise, &of),
            )
        })
        .collect();
    let mut out = std::io::stdout().lock();
    page(&mut out, &targets, &of)?;
    page_of_beginnings(&mut out, &targets, &common_of_sites(&space, &of))?;
    let measured: Vec<Target> = measured
        .iter()
        .map(|one| vec![Life::mean(&one.from_nobody), Life::mean(&one.from_others)])
        .collect();
    page_of_patterns(&mut out, &patterns, &measured, &of)?;
    page_of_pattern_beginnings(&mut out, &patterns, &measured)
}

/// The extent of a measurement: the number of sites, and of lives of each target.
struct Measured {
    sites: u64,
    lives: u64,
    seed: u64,
    patterns: PathBuf,
    /// A file for the lives of patterns; then nothing else is measured, and no page printed.
    only_patterns: Option<PathBuf>,
}

/// The mean life of one application, from each of [`ALL`]; a pattern's, from nobody and from the
/// others.
type Target = Vec<Life>;

fn measure(space: &Space, noise: f64, of: &Measured) -> Vec<Target> {
    let Measured {
        sites, lives, seed, ..
    } = *of;
    let sites: Vec<Site> = (0..sites)
        .map(|number| Site::new(space, seed + number))
        .collect();
    let number = |site: usize, application: usize, what: u64| {
        (seed << 32) + ((site as u64) << 20) + ((application as u64) << 8) + what
    };
    let count = site::FAMILIES * site::MEMBERS;
    let usual = without_proofs();
    let studied = |application: &Application, seed: u64| {
        learnt(space, &Noisy(application, noise), &usual, seed)
    };
    // Of each application of each site: its study, some of its negation, an unrelated one's.
    let known = parallel::each(sites.len() * count, parallel::processors(), |cell| {
        let (site, place) = (cell / count, cell % count);
        let own = &sites[site].applications[place];
        let negated = own.negated();
        let unrelated = sites[site].unrelated.get(place);
        let against = (0..4).map(|which| studied(&negated, number(site, place, 10 + which)));
        (
            studied(own, number(site, place, 1)),
            against.collect::<Vec<_>>(),
            unrelated.and_then(|one| studied(one, number(site, place, 2))),
        )
    });
    parallel::each(sites.len() * count, parallel::processors(), |cell| {
        let (site, place) = (cell / count, cell % count);
        let own = &sites[site].applications[place];
        let of_site = &known[site * count..(site + 1) * count];
        let siblings = of_site.iter().enumerate();
        let siblings = siblings.filter(|(other, _)| *other != place);
        let siblings = siblings.filter_map(|(_, (study, ..))| study.clone());
        let siblings = nearest(siblings.collect(), &own.measures, MOST_SOURCES);
        let against: Vec<&Source> = of_site[place].1.iter().flatten().collect();
        let unrelated = of_site.iter().filter_map(|(_, _, study)| study.as_ref());
        let of_all = ALL.iter().map(|(from, _)| {
            let sources: Vec<Source> = match from {
                From::Nobody => Vec::new(),
                From::Site => siblings.clone(),
                From::Unrelated => unrelated.clone().cloned().collect(),
                From::Adversaries => against.iter().take(3).copied().cloned().collect(),
                From::Conspiracy => against.iter().copied().cloned().collect(),
                From::Mixed => {
                    let three = against.iter().take(3).copied();
                    let both = three.chain(siblings.iter().take(3));
                    both.cloned().collect()
                }
            };
            let sources = shared(sources);
            let own = Noisy(own, noise);
            let live = |number| live(space, &own, (&usual, &sources), number);
            let numbers = (0..lives).map(|life| number(site, place, 32 + life));
            Life::mean(&numbers.map(live).collect::<Vec<_>>())
        });
        of_all.collect()
    })
}

/// What each application of each site takes with the best common setting of the site's other
/// applications, over its own best.
fn common_of_sites(space: &Space, of: &Measured) -> Vec<f64> {
    let points = space.points(MOST_POINTS).unwrap_or_default();
    let points: Vec<_> = points
        .iter()
        .map(|one| space.parametrization(one))
        .collect();
    let count = site::FAMILIES * site::MEMBERS;
    let sites = usize::try_from(of.sites).unwrap_or_default();
    parallel::each(sites * count, parallel::processors(), |cell| {
        let site = Site::new(space, of.seed + (cell / count) as u64);
        // Noise is of runs, not of what a setting is worth.
        let all: Vec<Noisy<'_>> = site
            .applications
            .iter()
            .map(|one| Noisy(one, 0.0))
            .collect();
        over_own_best(space, &points, &all, cell % count)
    })
}

/// What the application at this place takes with the best common setting of the others, over its
/// own best.
fn over_own_best<A: life::Application>(
    space: &Space,
    points: &[Parametrization],
    all: &[A],
    place: usize,
) -> f64 {
    let others = all.iter().enumerate();
    let others = others
        .filter(|(other, _)| *other != place)
        .map(|(_, one)| one);
    let common = best_common(space, points, others);
    (all[place].log_ratio(space, &common) - all[place].best()).exp()
}

/// The head of the tables about first runs.
const BEGINNINGS: [&str; 5] = [
    "recommended after 5 exploring runs",
    "after 10",
    "first ten runs",
    "the worst target's",
    "harm of the first ten",
];
const BEGINNINGS_TEXT: &str = "\
*Recommended*: what it takes, as a multiple of the best point's. *First ten runs*: what they take on average, runs
of the default for the baseline included, as a multiple of ten of the default. *The best common setting*: what would
be fastest for all the others on average, known without noise, at once and without a run for trying.";

/// The first runs of simulated studies.
fn page_of_beginnings(
    out: &mut impl Write,
    all: &[(String, Vec<Target>)],
    common: &[f64],
) -> Result<(), Failure> {
    let mut head = vec!["noise", "begins from"];
    head.extend(BEGINNINGS);
    section(out, "The first runs", BEGINNINGS_TEXT, &head, 2)?;
    let common = mean(common.iter().copied());
    writeln!(
        out,
        "| any | the best common setting | {common} | {common} | | | |"
    )?;
    for (label, targets) in all {
        for (place, (_, name)) in ALL.iter().enumerate() {
            let lives: Vec<&Life> = targets.iter().map(|one| &one[place]).collect();
            writeln!(out, "| {label} | {name} | {} |", beginning(&lives))?;
        }
    }
    Ok(())
}

/// The cells of a line about first runs.
fn beginning(lives: &[&Life]) -> String {
    let ten = LOOKS.iter().position(|look| *look == 10).unwrap_or(0);
    let average = lives.iter().map(|one| one.average[ten]);
    let worst = average.clone().fold(0.0, f64::max);
    let explored = (0..EXPLORED.len()).map(|look| mean(lives.iter().map(|one| one.explored[look])));
    let mut cells: Vec<String> = explored.collect();
    cells.push(mean(average));
    cells.push(format!("{worst:.2}"));
    cells.push(mean(lives.iter().map(|one| one.harm[ten])));
    cells.join(" | ")
}

/// The first runs on the access patterns.
fn page_of_pattern_beginnings(
    out: &mut impl Write,
    patterns: &[Pattern],
    targets: &[Target],
) -> Result<(), Failure> {
    let mut head = vec!["part", "begins from"];
    head.extend(BEGINNINGS);
    section(
        out,
        "First runs on access patterns",
        BEGINNINGS_TEXT,
        &head,
        2,
    )?;
    let space = patterns.first().ok_or("no patterns")?.space();
    let points = space.points(MOST_POINTS).unwrap_or_default();
    let points: Vec<_> = points
        .iter()
        .map(|one| space.parametrization(one))
        .collect();
    for (name, part) in parts(patterns) {
        let common = part
            .iter()
            .map(|place| over_own_best(space, &points, patterns, *place));
        let common = mean(common);
        writeln!(
            out,
            "| {name} | the best common setting | {common} | {common} | | | |"
        )?;
        for (from, begins) in [(0, "nobody"), (1, "the others")] {
            let lives: Vec<&Life> = part.iter().map(|place| &targets[*place][from]).collect();
            writeln!(out, "| {name} | {begins} | {} |", beginning(&lives))?;
        }
    }
    Ok(())
}

/// The places of the patterns of each part.
fn parts(patterns: &[Pattern]) -> [(&'static str, Vec<usize>); 3] {
    let of = |held_out: Option<bool>| {
        let is_of = |place: &usize| held_out.is_none_or(|is| patterns[*place].is_held_out() == is);
        (0..patterns.len()).filter(is_of).collect()
    };
    [
        ("development", of(Some(false))),
        ("held out", of(Some(true))),
        ("all twelve", of(None)),
    ]
}

/// A pattern's lives, and what the others had learnt.
#[derive(Serialize)]
struct Begun<'a> {
    pattern: &'a str,
    held_out: bool,
    others: Vec<Source>,
    from_nobody: Vec<Life>,
    from_others: Vec<Life>,
    /// Outside Slurm: the default runs once, and nothing bounds what is lost.
    unbounded: Vec<Life>,
}

/// Each pattern, from nobody and from all the others.
fn measure_patterns<'a>(patterns: &'a [Pattern], of: &Measured) -> Vec<Begun<'a>> {
    let number = |place: usize, what: u64| (of.seed << 32) + ((place as u64) << 16) + what;
    let settings = without_proofs();
    let unbounded = outside_slurm(settings.clone(), LOOKS[LOOKS.len() - 1] as u32);
    let known = parallel::each(patterns.len(), parallel::processors(), |place| {
        let one = &patterns[place];
        learnt(one.space(), one, &settings, number(place, 1))
    });
    parallel::each(patterns.len(), parallel::processors(), |place| {
        let own = &patterns[place];
        let others = known.iter().enumerate();
        let others = others.filter(|(other, _)| *other != place);
        let others = others.filter_map(|(_, one)| one.clone()).collect();
        let others = nearest(others, own.measures(), MOST_SOURCES);
        let lives = |settings: &Settings, sources: &[Arc<SharedSource>]| {
            let numbers = (0..PATTERN_LIVES * of.lives).map(|life| number(place, 32 + life));
            numbers
                .map(|number| live(own.space(), own, (settings, sources), number))
                .collect()
        };
        let sources = shared(others.clone());
        Begun {
            pattern: own.name(),
            held_out: own.is_held_out(),
            others,
            from_nobody: lives(&settings, &[]),
            from_others: lives(&settings, &sources),
            unbounded: lives(&unbounded, &sources),
        }
    })
}

fn page(out: &mut impl Write, all: &[(String, Vec<Target>)], of: &Measured) -> Result<(), Failure> {
    let Measured {
        sites, lives, seed, ..
    } = *of;
    let count = all.first().map_or(0, |(_, targets)| targets.len());
    writeln!(
        out,
        "# Studies that begin from what others learnt, measured\n\n\
         Written by `make -C analysis transfer-report TRANSFER_ARGS=\"--sites {sites} --lives {lives} --seed {seed}\"`; do not edit.\n\
         What it is measured for: [what a study begins from](../priors.md). Studies are simulated; the engine's own\n\
         code decides.\n\n\
         - {sites} sites of {} applications of one space of 18,144 points, in {} families: {count} targets. Of the log of\n  \
         elapsed a part is everyone's, a part the family's, a part the application's own. Measures tell families, with noise.\n\
         - *The site*: the other eleven have run 50 times each, without a prior. *Unrelated*: eight that have nothing in\n  \
         common with it. *Best is worst*: three of an application that measures like it, and is fast where it is slow.\n\
         - Noise is log-normal. A target's figures are means of {lives} lives, whose noise has the same seeds with\n  \
         all priors.\n\
         - Constants were chosen on sites of seeds 1000 to 1009, two constants by reasoning alone.\n\
         - Intervals are of 95 %, over targets.\n\
         - Ax's transfer learning is beside it [on the access patterns](ax-transfer.md) alone: it would take too long for\n  \
         so many studies.",
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
    rows(out, all, &ALL, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].recommended[look]))
    })?;
    section(
        out,
        "The average run",
        "What it takes, as a multiple of the default's.",
        &head,
        2,
    )?;
    rows(out, all, &ALL, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].average[look]))
    })?;
    section(
        out,
        "Harm",
        "What slower runs than the default have cost together, in runs of the default.",
        &head,
        2,
    )?;
    rows(out, all, &ALL, |targets, from, look| {
        mean(targets.iter().map(|one| one[from].harm[look]))
    })?;
    section(
        out,
        "More harm than without a prior",
        "In runs of the default: the mean, what nine of ten targets have at most, and the most.",
        &head,
        2,
    )?;
    rows(out, all, &ALL[1..], |targets, from, look| {
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
    rows(out, all, &ALL[1..], |targets, from, look| {
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
    rows(out, all, &ALL[1..], |targets, from, look| {
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
    })?;
    Ok(())
}

/// A line of each label and each of these.
fn rows(
    out: &mut impl Write,
    all: &[(String, Vec<Target>)],
    these: &[(From, &str)],
    cell: impl Fn(&[Target], usize, usize) -> String,
) -> Result<(), Failure> {
    for (label, targets) in all {
        for (from, name) in these {
            let place = ALL.iter().position(|(other, _)| other == from);
            let cells = (0..LOOKS.len()).map(|look| cell(targets, place.unwrap_or(0), look));
            let cells: Vec<String> = cells.collect();
            writeln!(out, "| {label} | {name} | {} |", cells.join(" | "))?;
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

/// The second part: what was measured.
fn page_of_patterns(
    out: &mut impl Write,
    patterns: &[Pattern],
    targets: &[Target],
    of: &Measured,
) -> Result<(), Failure> {
    let (nobody, others) = (0, 1);
    let lives = PATTERN_LIVES * of.lives;
    section(
        out,
        "Measured access patterns",
        &format!(
            "Twelve applications of romio, [measured](tables.md#access-patterns) over one grid. Each begins from the eleven\n\
             others, which have run 50 times each, and was no source of its own. A run takes what one of the point's four\n\
             measured runs took. Means of {lives} lives. *Noise*: of a run; *default*: over the best point."
        ),
        &[
            "pattern",
            "part",
            "noise",
            "default",
            "begins from",
            "after 5 runs",
            "after 10 runs",
            "after 25 runs",
            "after 50 runs",
            "harm",
        ],
        2,
    )?;
    for (pattern, target) in patterns.iter().zip(targets) {
        for (place, from) in [(nobody, "nobody"), (others, "the others")] {
            let life = &target[place];
            let looks: Vec<String> = life
                .recommended
                .iter()
                .map(|one| format!("{one:.3}"))
                .collect();
            writeln!(
                out,
                "| {} | {} | {:.0} % | {:.2} | {from} | {} | {:.2} |",
                pattern.name(),
                if pattern.is_held_out() {
                    "held out"
                } else {
                    "development"
                },
                100.0 * pattern.noise(),
                (-pattern.best()).exp(),
                looks.join(" | "),
                life.harm[LOOKS.len() - 1],
            )?;
        }
    }
    let parts = parts(patterns)
        .map(|(name, places)| (name, places.iter().map(|place| &targets[*place]).collect()));
    let parts: [(&str, Vec<&Target>); 3] = parts;
    let looks = LOOKS.map(|look| format!("after {look} runs"));
    let mut head = vec!["part", "figure"];
    head.extend(looks.iter().map(String::as_str));
    section(
        out,
        "Access patterns together",
        "*Recommended*: over that without a prior, the geometric mean and the worst. *Average run*: likewise. *Harm*: more\n\
         than without a prior, in runs of the default, and the most.",
        &head,
        2,
    )?;
    for (name, targets) in &parts {
        let ratio = |of: fn(&Life) -> &Vec<f64>, look: usize| {
            let logs = targets
                .iter()
                .map(|one| (of(&one[others])[look] / of(&one[nobody])[look]).ln());
            let (.., worst) = spread(logs.clone());
            let (mean, half) = interval(logs);
            let (low, high) = ((mean - half).exp(), (mean + half).exp());
            format!(
                "{:.3} ({low:.3}..{high:.3}), {:.2}",
                mean.exp(),
                worst.exp()
            )
        };
        let harm = |look: usize| {
            let more = targets
                .iter()
                .map(|one| one[others].harm[look] - one[nobody].harm[look]);
            let (.., worst) = spread(more.clone());
            let (mean, half) = interval(more);
            format!("{mean:+.2} ± {half:.2}, {worst:+.2}")
        };
        let figures: [(&str, &dyn Fn(usize) -> String); 3] = [
            ("recommended", &|look| ratio(|life| &life.recommended, look)),
            ("average run", &|look| ratio(|life| &life.average, look)),
            ("harm", &harm),
        ];
        for (figure, cell) in figures {
            let cells: Vec<String> = (0..LOOKS.len()).map(cell).collect();
            writeln!(out, "| {name} | {figure} | {} |", cells.join(" | "))?;
        }
    }
    Ok(())
}
