//! The command line.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use io_autotune_simulation::MethodSpec;
use io_autotune_simulation::metrics::weight;

const EXAMPLES: &str = "\
Examples:
  io-autotune-simulate --table burst-buffer.json --method default --method robert2020
  io-autotune-simulate --table a.json --table b.json --method default --budget 100 --seeds 50 --format csv
  io-autotune-simulate --table a.json --method robert2020:selection=probabilistic,mutation_rate=0.1 \\
                       --method default:design_points=6 --in-flight 8 --plot plots
  io-autotune-simulate --table burst-buffer.json --preset robert2020-table-v

Formats, metrics and methods: docs/papers/simulate.md.";

/// Try tuning methods on tables of measurements
///
/// Every metric of the papers is printed.
#[derive(Debug, Parser)]
#[command(name = "io-autotune-simulate", after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file of a data set's space, TOML or JSON, with its CSV file beside it. May be given several
    /// times.
    #[arg(long = "table", required = true)]
    pub(crate) tables: Vec<PathBuf>,
    /// NAME or NAME:key=value,...: a method and its settings. May be given several times; others are
    /// compared with the first.
    #[arg(long = "method", required_unless_present = "preset")]
    pub(crate) methods: Vec<MethodSpec>,
    /// A comparison of the papers, as it was made there, with the methods given beside it.
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// How many runs each study has.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) budget: u32,
    /// How many studies of each method and table; 20, with a preset as many as it had.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) seeds: Option<u32>,
    /// The first seed; the others follow it.
    #[arg(long, default_value_t = 0)]
    pub(crate) first_seed: u64,
    /// How many runs of a study are in flight at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) in_flight: u32,
    /// Count design and search runs alone, for budget and metrics: the papers have no others, and
    /// presets imply it.
    #[arg(long)]
    pub(crate) exploring_only: bool,
    /// Replay what `optimize` asks for, and not a site's studies: the default runs once, there are no
    /// control runs, and nothing bounds the loss.
    #[arg(long, conflicts_with_all = ["exploring_only", "preset"])]
    pub(crate) outside_slurm: bool,
    /// The outcome of a run that the table lacks: it fails after the default's time, or counts as twice as
    /// slow as the slowest and takes no time, as in the 2018 paper.
    #[arg(long, value_enum, default_value_t = Outside::Fails)]
    pub(crate) outside: Outside,
    /// Begin each study with the other defaults that the tables name (`first`), before the design.
    #[arg(long)]
    pub(crate) defaults_first: bool,
    /// SHARE: all effects shrunk alike, so that the best is faster than the default by this share at most.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) most_to_win: Option<f64>,
    /// FACTOR: as if runs scattered by this many times as much as they do.
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub(crate) noise: Option<f64>,
    /// How many threads replay; all cores, if left out. The figures do not depend on it.
    #[arg(long)]
    pub(crate) threads: Option<NonZero<usize>>,
    /// METRIC=WEIGHT: what a metric weighs in the scores of the 2020 paper, 1 if left out. May be given
    /// several times.
    #[arg(long = "weigh", value_name = "METRIC=WEIGHT", value_parser = weight)]
    pub(crate) weights: Vec<(String, f64)>,
    /// How the figures are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    /// Say in JSON what each study did: the places in the table of its runs and of what it recommends.
    #[arg(long)]
    pub(crate) per_seed: bool,
    /// Write plots (SVG) into this directory too.
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

/// Comparisons of the papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The 252 methods of table V and the random sampler, 30 studies of 50 runs each; printed as
    /// table VI.
    #[value(name = "robert2020-table-v")]
    Robert2020TableV,
    /// Only those of the 252 that regress, with neighbourhoods that are shares of the tested points.
    #[value(name = "robert2020-table-v-of-the-tested")]
    Robert2020TableVOfTheTested,
}

/// How a comparison is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// A row for each table, method and metric.
    Csv,
    /// All there is, curves included.
    Json,
}

/// The outcome of a run that the table lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Outside {
    Fails,
    Slow,
}

fn share(word: &str) -> Result<f64, String> {
    number(word)
        .filter(|share| *share < 1.0)
        .ok_or_else(|| "a share is from 0 to below 1".to_owned())
}

fn factor(word: &str) -> Result<f64, String> {
    number(word)
        .filter(|factor| *factor <= 10.0)
        .ok_or_else(|| "a factor is from 0 to 10".to_owned())
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
