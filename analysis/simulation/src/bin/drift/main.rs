//! The false alarm rate and the delay of drift detection: `make -C analysis drift`.

#[path = "../../../../../tuner-service/engine/src/settled/drift/tests/world.rs"]
mod world;

use std::io::Write;

use io_autotune_engine::{Changed, Drift, DriftSettings, SettledRun, drift};
use world::{What, World, found};

const NOISES: [f64; 4] = [0.05, 0.1, 0.2, 0.3];
/// Studies for each false alarm rate, and for each delay.
const QUIET_STUDIES: u64 = 200;
const STUDIES: u64 = 100;
/// Runs without a change; runs before a change; the longest delay.
const QUIET: usize = 700;
const BEFORE: usize = 300;
const AFTER: usize = 400;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "False alarms: of {QUIET_STUDIES} studies of {QUIET} settled runs without a change, how many have one"
    )?;
    writeln!(out, "noise   alone   with memory 0.5")?;
    for noise in NOISES {
        let [alone, memory] = [0.0, 0.5].map(|memory| quiet(noise, memory));
        writeln!(out, "{noise:<5}  {alone:5.1} %  {memory:5.1} %")?;
    }
    writeln!(
        out,
        "\nDelay: after a change at run {BEFORE}, the median and the ninth decile of the runs until it is found\n\
         (- where fewer find it within {AFTER} runs), how many of {STUDIES} find it within {AFTER}, and\n\
         how many of them say that the advantage changed"
    )?;
    writeln!(
        out,
        "what     factor  noise  median    90 %   found  advantage"
    )?;
    for what in [What::Alike, What::Tuned, What::Default] {
        for factor in [1.1, 1.2, 1.5] {
            for noise in NOISES {
                let factor = if what == What::Default {
                    1.0 / factor
                } else {
                    factor
                };
                let row = delays(what, factor, noise);
                writeln!(
                    out,
                    "{:<8} {factor:6.2}  {noise:5}  {row}",
                    format!("{what:?}")
                )?;
            }
        }
    }
    Ok(())
}

fn quiet(noise: f64, memory: f64) -> f64 {
    let world = World {
        noise,
        memory,
        change: None,
    };
    let wrong = (0..QUIET_STUDIES).filter(|seed| found(world, 1, QUIET, *seed).is_some());
    100.0 * wrong.count() as f64 / QUIET_STUDIES as f64
}

fn delays(what: What, factor: f64, noise: f64) -> String {
    let world = World {
        noise,
        memory: 0.0,
        change: Some((what, factor, BEFORE)),
    };
    let mut delays = Vec::new();
    let mut advantages = 0;
    for seed in 0..STUDIES {
        if let Some((count, drift)) = found(world, BEFORE + 1, BEFORE + AFTER, seed) {
            delays.push(count - BEFORE);
            advantages += usize::from(drift.changed == Changed::Advantage);
        }
    }
    delays.sort_unstable();
    let studies = usize::try_from(STUDIES).unwrap_or(usize::MAX);
    let decile = |tenths: usize| {
        let place = (studies * tenths).div_ceil(10).saturating_sub(1);
        let delay = delays.get(place);
        delay.map_or_else(|| "-".to_owned(), usize::to_string)
    };
    let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
    format!(
        "{:>6}  {:>6}  {:4.0} %  {:7.0} %",
        decile(5),
        decile(9),
        share(delays.len(), studies),
        share(advantages, delays.len())
    )
}
