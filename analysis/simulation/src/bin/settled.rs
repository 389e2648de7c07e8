//! How often a settled study changes its choice, and its runs' times: `make -C analysis settled`.

use std::io::Write;
use std::path::Path;

use io_autotune_engine::{Role, Settings};
use io_autotune_simulation::dataset::Table;
use io_autotune_simulation::replay::{Counted, Outside, Plan, replay};

const RUNS: u32 = 300;
const STUDIES: u64 = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{STUDIES} studies of a site, {RUNS} runs each: of the runs that were given the choice, the number, the changes from one\n\
         choice to another, the longest stretch of one choice, and what they take over the best\n\n\
         table                     runs  changes  longest  over the best"
    )?;
    for path in std::env::args().skip(1) {
        let table = Table::read(Path::new(&path))?;
        let name = Path::new(&path).file_stem().unwrap_or_default();
        let plan = Plan {
            settings: Settings::default(),
            budget: RUNS,
            counted: Counted::All,
            in_flight: 1,
            outside: Outside::Fails,
            defaults_first: false,
        };
        let mut sums = [0.0; 4];
        for seed in 0..STUDIES {
            let runs = replay(&table, &plan, seed).runs;
            let chosen: Vec<usize> = runs
                .iter()
                .filter(|run| run.role == Role::Settled)
                .filter_map(|run| run.place)
                .collect();
            let stretches: Vec<usize> = chosen.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
            let truth = |place: &usize| table.configurations()[*place].truth;
            let over =
                chosen.iter().map(truth).sum::<f64>() / chosen.len() as f64 / table.best().truth;
            let longest = stretches.iter().max().copied().unwrap_or_default();
            let figures = [
                chosen.len() as f64,
                stretches.len().saturating_sub(1) as f64,
                longest as f64,
                over,
            ];
            for (sum, figure) in sums.iter_mut().zip(figures) {
                *sum += figure / STUDIES as f64;
            }
        }
        let [runs, changes, longest, over] = sums;
        writeln!(
            out,
            "{:<24}  {runs:4.0}  {changes:7.1}  {longest:7.1}  {over:13.3}",
            name.to_string_lossy()
        )?;
        out.flush()?;
    }
    Ok(())
}
