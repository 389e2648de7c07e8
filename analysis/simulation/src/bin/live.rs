//! One study of a method on a program that runs: each suggestion is a line of JSON on stdout, and
//! what came of it a line on stdin. The settings are those of `io-autotune optimize`, and the method
//! may have its own, as with `io-autotune-simulate`.
//!
//!     > {"parametrization":{"block_size":4096,...},"reason":{...}}
//!     < {"elapsed":0.41,"measures":{"flushed_bytes":81920}}    or {"failed":true}

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;

use io_autotune_engine::{Epoch, History, ProofSettings, Tally, Tested};
use io_autotune_optimize::SpaceFile;
use io_autotune_optimize::session::outside_slurm;
use io_autotune_simulation::MethodSpec;
use serde::Deserialize;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "live --space FILE --method NAME[:key=value,...] --runs N [--seed N]";

/// The outcome of a run.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Told {
    elapsed: f64,
    measures: BTreeMap<String, f64>,
    failed: bool,
}

fn main() -> Result<(), Failure> {
    let (mut space, mut method, mut runs, mut seed) = (None, None, None, 1_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--space" => space = Some(SpaceFile::read(Path::new(&value))?.space),
            "--method" => method = Some(value.parse::<MethodSpec>()?),
            "--runs" => runs = Some(value.parse::<u32>()?),
            "--seed" => seed = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let (space, method) = (space.ok_or(USAGE)?, method.ok_or(USAGE)?);
    let runs = runs.ok_or(USAGE)?;
    let mut settings = outside_slurm(method.settings, runs);
    settings.proof = ProofSettings::NEVER;
    let epoch = Epoch::new(&space, &settings, seed);
    let mut history = History::default();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for ordinal in 0..i64::from(runs) {
        let suggestion = epoch.suggest(&history, &[]);
        serde_json::to_writer(&mut output, &suggestion)?;
        writeln!(output)?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let told: Told = serde_json::from_str(&line)?;
        history.tally += Tally::of(suggestion.phase, suggestion.role);
        let tested = of(&mut history, suggestion.parametrization, ordinal);
        if told.failed {
            tested.record_failure(ordinal);
        } else {
            tested.record(ordinal, told.elapsed)?;
            tested.record_measures(&told.measures);
        }
    }
    Ok(())
}

fn of(
    history: &mut History,
    parametrization: io_autotune_engine::Parametrization,
    ordinal: i64,
) -> &mut Tested {
    let mut tested = history.tested.iter();
    let known = tested.position(|tested| tested.parametrization == parametrization);
    let place = known.unwrap_or_else(|| {
        history.tested.push(Tested::new(parametrization, ordinal));
        history.tested.len() - 1
    });
    &mut history.tested[place]
}
