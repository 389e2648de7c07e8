//! Applications that were measured: tables of one space, with what runs of their default do.

use std::collections::BTreeMap;
use std::path::Path;

use io_autotune_engine::{Parametrization, Space};
use io_autotune_simulation::dataset::{Configuration, Table};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use crate::Failure;
use crate::life::Application;

pub(crate) struct Pattern {
    table: Table,
    told: Told,
}

/// The other contents of its file.
#[derive(Deserialize)]
struct Told {
    /// The measures of runs of the default, by name.
    default_measures: BTreeMap<String, f64>,
    held_out: bool,
}

impl Pattern {
    /// Reads the patterns of a folder, by name.
    pub(crate) fn read(folder: &Path) -> Result<Vec<Self>, Failure> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "json"));
        paths.sort();
        let patterns = paths.iter().map(|path| {
            let told = serde_json::from_str(&std::fs::read_to_string(path)?)?;
            let table = Table::read(path)?;
            Ok(Pattern { table, told })
        });
        patterns.collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.table.file.name
    }

    pub(crate) fn space(&self) -> &Space {
        &self.table.file.space
    }

    pub(crate) fn is_held_out(&self) -> bool {
        self.told.held_out
    }

    /// The standard deviation of single runs' logs, within parametrizations.
    pub(crate) fn noise(&self) -> f64 {
        let (mut squares, mut degrees) = (0.0, 0.0);
        for one in self.table.configurations() {
            let logs: Vec<f64> = one.samples.iter().map(|run| run.elapsed.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            degrees += logs.len() as f64 - 1.0;
        }
        (squares / degrees).sqrt()
    }

    fn of(&self, given: &Parametrization) -> &Configuration {
        let point = self.space().validate(given).ok();
        let place = point.and_then(|point| self.table.place(&point));
        place.map_or_else(
            || self.table.default(),
            |place| &self.table.configurations()[place],
        )
    }
}

impl Application for Pattern {
    fn measures(&self) -> &BTreeMap<String, f64> {
        &self.told.default_measures
    }

    fn best(&self) -> f64 {
        (self.table.best().truth / self.table.default().truth).ln()
    }

    fn log_ratio(&self, _space: &Space, given: &Parametrization) -> f64 {
        (self.of(given).truth / self.table.default().truth).ln()
    }

    fn run(&self, _space: &Space, given: &Parametrization, rng: &mut ChaCha8Rng) -> f64 {
        let runs = &self.of(given).samples;
        runs[rng.random_range(0..runs.len())].elapsed
    }
}
