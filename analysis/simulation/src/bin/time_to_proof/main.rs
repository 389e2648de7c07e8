//! Measures the runs from a user's first submission to a gain that the report claims: `make -C
//! analysis time-to-proof`.
//!
//! Prints the figures of its own engine, a line of JSON for each cell. `--page FILE..` makes
//! docs/measurements/time-to-proof.md of such lines. `--studies` and `--seed` alone decide the
//! page's figures. To look at one lever alone, `--cell` selects the cell of a name, or all that have
//! it in theirs, `--settings JSON` changes `[study]`, `--runs` shortens lives, and `--parameters N`
//! tunes the N most important alone.

mod application;
mod engine;
mod figures;
mod life;
mod page;
mod section;
#[path = "../guarantees/surroundings.rs"]
mod surroundings;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use application::{Application, Made};
use figures::Figures;
use io_autotune_engine::Settings;
use life::{Outcome, Study, live};
use surroundings::{WORLDS, What, World};

type Failure = Box<dyn std::error::Error>;

/// The runs of a study's life.
const HORIZON: u32 = 600;
/// The same of a study that begins from others'.
const HOT_HORIZON: u32 = 300;
/// In the names of cells.
const NO_GAIN: &str = "no gain";
const BEGUN: &str = ", from ";
const USAGE: &str =
    "time_to_proof [--studies N] [--seed N] [--cell NAME] [--settings JSON] [--runs N]
                     [--parameters N] | --page FILE..";

/// A world, and what there is to win in it.
struct Cell {
    name: String,
    world: World,
    gain: f64,
    at_once: usize,
    /// Noise that all runs of an hour share.
    hourly: f64,
    /// True if the site's other runs show how busy it is.
    others: bool,
    /// The site whose studies it begins from.
    from: Option<engine::hot::From>,
}

fn main() -> Result<(), Failure> {
    let (mut studies, mut seed, mut only) = (60, 1, String::new());
    let (mut settings, mut runs, mut parameters) = (Settings::default(), HORIZON, usize::MAX);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match name.as_str() {
            "--studies" => studies = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--cell" => only = value()?,
            "--parameters" => parameters = value()?.parse()?,
            "--runs" => runs = value()?.parse()?,
            "--settings" => settings = serde_json::from_str(&value()?)?,
            "--page" => {
                let files: Vec<String> = arguments.collect();
                return page::print(&mut std::io::stdout().lock(), &files);
            }
            _ => return Err(USAGE.into()),
        }
    }
    let mut out = std::io::stdout().lock();
    let cells = cells();
    let is_one = cells.iter().any(|cell| cell.name == only);
    let is_asked_for = |name: &str| name == only || !is_one && name.contains(&only);
    let cells = (0_u64..).zip(cells);
    for (place, cell) in cells.filter(|(_, cell)| is_asked_for(&cell.name)) {
        // Of equal seeds for each engine: they meet the same noise as long as they choose alike.
        let Cell {
            at_once,
            hourly,
            others,
            ..
        } = cell;
        let study =
            |application: &dyn Application, prior: Option<&engine::Prior>, horizon, number| {
                let study = Study {
                    application,
                    settings: &settings,
                    prior,
                    at_once,
                    hourly,
                    others,
                    horizon,
                };
                live(&study, &cell.world, number)
            };
        let site = engine::hot::space()?;
        let made = Made::new(cell.gain, parameters)?;
        // Hot starts of one site and noise differ in what they begin from alone.
        let first = seed + 1_000_000 * if cell.from.is_some() { 1000 } else { place };
        let (outcomes, seconds) = measure(studies, first, |number| match cell.from {
            Some(from) => {
                let hot = engine::hot::begin(&site, from, cell.gain, cell.world.noise, number);
                study(&hot.0, hot.1.as_ref(), runs.min(HOT_HORIZON), number)
            }
            None => study(&made, None, runs, number),
        });
        let figures = Figures::of(engine::NAME, &cell.name, seed, &outcomes, seconds);
        writeln!(out, "{}", serde_json::to_string(&figures)?)?;
        out.flush()?;
    }
    Ok(())
}

fn cells() -> Vec<Cell> {
    let named = |name: &str| WORLDS.into_iter().find(|world| world.name == name);
    let cell = |name: String, world: Option<World>, gain, at_once| {
        let world = world?;
        Some(Cell {
            name,
            world,
            gain,
            at_once,
            hourly: 0.0,
            others: false,
            from: None,
        })
    };
    let noise = |percent: u32| named(&format!("noise {percent} %"));
    let named_gain = |gain: f64| match gain {
        0.0 => NO_GAIN.to_owned(),
        gain => format!("gain {:.0} %", 100.0 * gain),
    };
    let usual = noise(17);
    let worlds = [
        ("episodes", named("noise 17 %, episodes"), 1),
        ("with memory", named("noise 17 %, with memory"), 1),
        ("weekly", named("noise 17 %, weekly"), 1),
        ("heavy tails", named("noise 17 %, heavy tails"), 1),
        (
            "of the default 34 %",
            usual.map(|one| one.of_the_default(0.34)),
            1,
        ),
        (
            "2 steps, one +10 %",
            named("noise 17 %, 2 steps, one +10 %"),
            1,
        ),
        (
            "5 steps, one +30 %",
            named("noise 17 %, 5 steps, one +30 %"),
            1,
        ),
        ("8 at once", usual, 8),
    ];
    let in_noise = [5, 10, 17, 30].into_iter().flat_map(|percent| {
        [0.05, 0.10, 0.20, 0.50, 0.0].map(|gain| {
            let name = format!("noise {percent} %, {}", named_gain(gain));
            cell(name, noise(percent), gain, 1)
        })
    });
    let in_worlds = worlds.into_iter().flat_map(|(name, world, at_once)| {
        [0.20, 0.0].map(|gain| {
            let name = format!("noise 17 %, {}, {name}", named_gain(gain));
            cell(name, world, gain, at_once)
        })
    });
    // 60 % of the noise is that of the hour.
    let own = World::new("", 0.17 * 0.4_f64.sqrt(), What::Nothing);
    let beside_others = [
        ("60 % of it of the hour", Some(own), 0.17 * 0.6_f64.sqrt()),
        ("episodes", named("noise 17 %, episodes"), 0.0),
        ("with memory", named("noise 17 %, with memory"), 0.0),
    ]
    .into_iter()
    .flat_map(|(name, world, hourly)| {
        [(0.20, false), (0.20, true), (0.0, true)].map(|(gain, others)| {
            let seen = if others { ", other runs seen" } else { "" };
            let name = format!("noise 17 %, {}, {name}{seen}", named_gain(gain));
            let cell = cell(name, world, gain, 1)?;
            Some(Cell {
                hourly,
                others,
                ..cell
            })
        })
    });
    let hot = engine::hot::CELLS.into_iter().flat_map(|(gain, these)| {
        these.iter().map(move |(from, begins)| {
            let name = format!("noise 17 %, {}{BEGUN}{begins}", named_gain(gain));
            let cell = cell(name, usual, gain, 1)?;
            Some(Cell {
                from: Some(*from),
                ..cell
            })
        })
    });
    let mut cells: Vec<Cell> = in_noise
        .chain(in_worlds)
        .chain(beside_others)
        .chain(hot)
        .flatten()
        .collect();
    let mut names = BTreeSet::new();
    cells.retain(|cell| names.insert(cell.name.clone()));
    cells
}

/// All lives of a cell, over all processors; and what they took of one.
fn measure(lives: usize, seed: u64, life: impl Fn(u64) -> Outcome + Sync) -> (Vec<Outcome>, f64) {
    let slots: Vec<OnceLock<(Outcome, f64)>> = (0..lives).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((number, slot)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            slots.get(number).map(|slot| (number as u64, slot))
        } {
            let began = processor_seconds();
            let outcome = life(seed + number);
            slot.get_or_init(|| (outcome, processor_seconds() - began));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let done: Vec<(Outcome, f64)> = slots.into_iter().filter_map(OnceLock::into_inner).collect();
    let seconds = done.iter().map(|(_, seconds)| seconds).sum();
    let outcomes = done.into_iter().map(|(outcome, _)| outcome).collect();
    (outcomes, seconds)
}

/// Returns the processor time of this thread.
fn processor_seconds() -> f64 {
    let read = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanoseconds = read
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}
