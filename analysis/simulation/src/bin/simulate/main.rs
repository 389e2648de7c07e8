//! Replays tables of measurements, and prints every metric of the papers: docs/papers/simulate.md.

mod arguments;

use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use io_autotune_console::{self as console, OutputLost};
use io_autotune_simulation::dataset::{DatasetError, Table};
use io_autotune_simulation::report::{csv, plot, table_vi, text};
use io_autotune_simulation::{Counted, Outside, Setup, compare, preset};

use crate::arguments::{Arguments, Format, Preset};

#[derive(Debug, thiserror::Error)]
enum SimulateError {
    #[error(transparent)]
    Dataset(#[from] Box<DatasetError>),
    #[error("tables {} and {} are both named {name:?}: give one of them another name", .one.display(), .other.display())]
    SameName {
        one: PathBuf,
        other: PathBuf,
        name: String,
    },
    #[error("cannot write {}: {error}: name a directory that you may write to", .path.display())]
    Plot {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("the figures cannot be printed: {0}")]
    Print(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Lost(#[from] OutputLost),
}

fn main() -> ExitCode {
    console::survive_file_size_limit();
    match console::arguments() {
        Ok((arguments, _)) => {
            console::ended(run(&arguments).and_then(|text| Ok(console::print(&text)?)))
        }
        Err(status) => status,
    }
}

/// Replays, writes the plots, and returns the text to print.
fn run(simulate: &Arguments) -> Result<String, SimulateError> {
    let tables = read(simulate)?;
    let mut methods = match simulate.preset {
        Some(Preset::Robert2020TableV) => preset::robert2020_table_v(),
        Some(Preset::Robert2020TableVOfTheTested) => preset::robert2020_table_v_of_the_tested(),
        None => Vec::new(),
    };
    methods.extend(simulate.methods.iter().cloned());
    let seeds = simulate.seeds.unwrap_or(match simulate.preset {
        Some(_) => 30,
        None => 20,
    });
    let setup = Setup {
        budget: simulate.budget,
        counted: if simulate.exploring_only || simulate.preset.is_some() {
            Counted::Exploring
        } else {
            Counted::All
        },
        outside_slurm: simulate.outside_slurm,
        outside: match simulate.outside {
            arguments::Outside::Fails => Outside::Fails,
            arguments::Outside::Slow => Outside::Slow,
        },
        defaults_first: simulate.defaults_first,
        seeds,
        first_seed: simulate.first_seed,
        in_flight: simulate.in_flight,
        threads: simulate
            .threads
            .or_else(|| std::thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN),
        keep_studies: simulate.per_seed,
        weights: simulate.weights.iter().cloned().collect(),
    };
    let studies = tables.len() as u64 * methods.len() as u64 * u64::from(seeds);
    let bar = progress(studies);
    let comparison = compare(&tables, &methods, &setup, || bar.inc(1));
    bar.finish_and_clear();
    if let Some(directory) = &simulate.plot {
        write(directory, &plot::plots(&comparison))?;
    }
    match simulate.format {
        Format::Table => Ok(match simulate.preset {
            Some(_) => table_vi::render(&comparison),
            None => text::render(&comparison),
        }),
        Format::Csv => csv::render(&comparison).map_err(|error| SimulateError::Print(error.into())),
        Format::Json => serde_json::to_string_pretty(&comparison)
            .map(|json| json + "\n")
            .map_err(|error| SimulateError::Print(error.into())),
    }
}

fn read(arguments: &Arguments) -> Result<Vec<Table>, SimulateError> {
    let (paths, mut tables) = (&arguments.tables, Vec::<Table>::new());
    for (place, path) in paths.iter().enumerate() {
        let mut table = Table::read(path).map_err(Box::new)?;
        if let Some(share) = arguments.most_to_win {
            table = table.with_most_to_win(share);
        }
        if let Some(factor) = arguments.noise {
            table = table.with_noise(factor);
        }
        if let Some(left_out) = table.file.left_out() {
            console::say(&format!("{}: {left_out}", path.display()));
        }
        let same = tables.iter().position(|t| t.file.name == table.file.name);
        if let Some(other) = same {
            return Err(SimulateError::SameName {
                one: paths[other].clone(),
                other: paths[place].clone(),
                name: table.file.name,
            });
        }
        tables.push(table);
    }
    Ok(tables)
}

/// On stderr, and only on a terminal.
fn progress(studies: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} studies, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(studies), target).with_style(style)
}

fn write(directory: &Path, plots: &[plot::Plot]) -> Result<(), SimulateError> {
    let failed = |path: &Path, error| SimulateError::Plot {
        path: path.to_owned(),
        error,
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, svg) in plots {
        let path = directory.join(name);
        std::fs::write(&path, svg).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/burst-buffer.json");

    fn simulated(words: &[&str]) -> Result<String, SimulateError> {
        let all = ["io-autotune-simulate"].iter().chain(words);
        run(&Arguments::try_parse_from(all).unwrap())
    }

    #[test]
    fn every_format_and_the_plots_come_out() {
        let directory = tempfile::tempdir().unwrap();
        let plots = directory.path().join("new");
        let plots = plots.to_str().unwrap();
        let common = ["--table", TABLE, "--method", "robert2020", "--seeds", "2"];
        let formatted = |more: &[&str]| simulated(&[&common, more].concat()).unwrap();
        assert!(formatted(&["--plot", plots]).starts_with("burst-buffer: 540 of 540"));
        assert!(
            directory
                .path()
                .join("new/burst-buffer-figure5.svg")
                .is_file()
        );
        assert!(formatted(&["--format", "csv"]).starts_with("table,method,group,metric"));
        let json: serde_json::Value =
            serde_json::from_str(&formatted(&["--format", "json", "--in-flight", "3"])).unwrap();
        assert_eq!(json["in_flight"], 3);
        assert!(json["tables"][0]["methods"][0].get("studies").is_none());
        let json = formatted(&["--format", "json", "--per-seed", "--first-seed", "7"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["tables"][0]["methods"][0]["studies"][1]["seed"], 8);
    }

    #[test]
    fn table_v_is_one_command() {
        let preset = ["--table", TABLE, "--preset", "robert2020-table-v"];
        // Under this seed each method recommends what it ran: there are scores.
        let seed = ["--seeds", "1", "--first-seed", "1", "--method", "default"];
        let one_seed = [&preset[..], &seed].concat();
        let text = simulated(&one_seed).unwrap();
        assert!(text.contains("254 methods"), "{text}");
        let head: Vec<&str> = text
            .lines()
            .find(|line| line.contains("FRGA"))
            .unwrap()
            .split_whitespace()
            .collect();
        assert_eq!(head, ["CGA", "RGA", "FGA", "FRGA", "RS", "default"]);
        let scores = text.lines().find(|line| line.starts_with("Score "));
        let scores: Vec<f64> = scores
            .unwrap()
            .split_whitespace()
            .skip(1)
            .map(|score| score.parse().unwrap())
            .collect();
        assert_eq!(scores.len(), 6);
        assert!(scores.contains(&1.0), "one of all is the best: {text}");
    }

    #[test]
    fn the_scores_take_weights() {
        let scored = |weights: &[&str]| {
            let common = [
                "--table",
                TABLE,
                "--method",
                "robert2020",
                "--method",
                "random",
            ];
            let json =
                simulated(&[&common, weights, &["--seeds", "4", "--format", "json"]].concat());
            let json: serde_json::Value = serde_json::from_str(&json.unwrap()).unwrap();
            json["tables"][0]["methods"][0]["scores"].clone()
        };
        assert_eq!(scored(&["--weigh", "NbrSteps=1"]), scored(&[]));
        // What is left is whether it takes fewer steps: all or nothing, of two.
        let ignored = ["SuccessRate=0", "DistOptim=0"]
            .map(|word| ["--weigh", word])
            .concat();
        let optim = scored(&ignored)["optim"].as_f64().unwrap();
        assert!(optim == 0.0 || optim == 1.0, "{optim}");
        let refused = Arguments::try_parse_from([
            "io-autotune-simulate",
            "--table",
            TABLE,
            "--method",
            "random",
            "--weigh",
            "Steps=1",
        ]);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains("one of SuccessRate, NbrSteps"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let method = ["--method", "default", "--seeds", "1"];
        let refused = |more: &[&str]| {
            simulated(&[&method, more].concat())
                .unwrap_err()
                .to_string()
        };
        let error = refused(&["--table", TABLE, "--table", TABLE]);
        assert!(error.contains("both named \"burst-buffer\""), "{error}");
        let error = refused(&["--table", "/nowhere/a.json"]);
        assert!(error.contains("/nowhere/a.json"), "{error}");
        let error = refused(&["--table", TABLE, "--plot", "/dev/null/plots"]);
        assert!(error.contains("/dev/null/plots"), "{error}");
        let parsed = Arguments::try_parse_from([
            "io-autotune-simulate",
            "--table",
            TABLE,
            "--method",
            "magic",
        ]);
        let error = parsed.unwrap_err().to_string();
        assert!(error.contains("robert2020"), "{error}");
    }
}
