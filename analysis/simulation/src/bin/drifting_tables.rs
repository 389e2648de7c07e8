//! The worth of inherited ranks after a drift: `make -C analysis drifting-tables`.
//!
//! A study settles. Then all takes 1.5 times as long, and the levels of no, one or every parameter
//! are reversed. The next runs are in the same epoch (`goes on`), in one that inherits ranks, with
//! a given budget of exploring runs, or in one that starts from nothing.

use std::io::Write;
use std::path::Path;

use io_autotune_engine::{
    Changed, Drift, Epoch, History, Parametrization, Phase, Point, Settings, Tally, Tested,
};
use io_autotune_simulation::dataset::Table;
use io_autotune_simulation::preset::without_proofs;

/// Runs before and after the drift, and studies of each kind.
const BEFORE: u32 = 120;
const AFTER: u32 = 100;
const STUDIES: u64 = 20;
const FACTOR: f64 = 1.5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{STUDIES} studies; what users' runs take on average over the best, in their first {AFTER} runs after the drift;\n\
         what is recommended then, over the best; and the run from which the epoch has settled\n\n\
         table         turned  how          average run  recommended  settled at"
    )?;
    for path in std::env::args().skip(1) {
        let table = Table::read(Path::new(&path))?;
        let name = Path::new(&path).file_stem().unwrap_or_default();
        let parameters = table.file.space.parameters().len();
        let settings = without_proofs();
        let parents: Vec<History> = (0..STUDIES)
            .map(|seed| {
                let epoch = Epoch::new(&table.file.space, &settings, seed);
                let world = World::new(&table, 0, 0, 1.0);
                live(
                    &world,
                    &epoch,
                    History::default(),
                    0..BEFORE,
                    seed,
                    |_, _| (),
                )
            })
            .collect();
        for turned in [0, 1, parameters] {
            for how in [
                "goes on",
                "inherits 20",
                "inherits 30",
                "inherits 50",
                "nothing 20",
                "nothing 50",
            ] {
                let all: Vec<[f64; 3]> = (0..STUDIES)
                    .zip(&parents)
                    .map(|(seed, parent)| after(&table, parent, turned, how, seed))
                    .collect();
                let mean =
                    |figure: usize| all.iter().map(|f| f[figure]).sum::<f64>() / all.len() as f64;
                writeln!(
                    out,
                    "{:<12}  {turned:6}  {how:<11}  {:11.3}  {:11.3}  {:10.1}",
                    name.to_string_lossy(),
                    mean(0),
                    mean(1),
                    mean(2)
                )?;
                out.flush()?;
            }
        }
    }
    Ok(())
}

/// A table with this range of parameters reversed.
struct World<'a> {
    table: &'a Table,
    turned: std::ops::Range<usize>,
    factor: f64,
    levels: Vec<u32>,
}

impl<'a> World<'a> {
    fn new(table: &'a Table, turned: usize, first: usize, factor: f64) -> Self {
        let parameters = table.file.space.parameters().len();
        let most = |parameter: usize| {
            let levels = table.configurations().iter();
            levels.map(|c| c.point.0[parameter]).max().unwrap_or(0)
        };
        let first = first.min(parameters - turned);
        World {
            table,
            turned: first..first + turned,
            factor,
            levels: (0..parameters).map(most).collect(),
        }
    }

    /// The place of a parametrization's times: its mirror image's, if that was measured.
    fn place(&self, parametrization: &Parametrization) -> Option<usize> {
        let point = self.table.file.space.validate(parametrization).ok()?;
        let mut mirror = point.clone();
        for parameter in self.turned.clone() {
            mirror.0[parameter] = self.levels[parameter] - mirror.0[parameter];
        }
        self.table
            .place(&mirror)
            .or_else(|| self.table.place(&point))
    }

    fn truth(&self, parametrization: &Parametrization) -> f64 {
        let place = self.place(parametrization);
        let fallback = || self.table.default().truth;
        self.factor * place.map_or_else(fallback, |place| self.table.configurations()[place].truth)
    }

    fn best(&self) -> f64 {
        let space = &self.table.file.space;
        let truth = |point: &Point| self.truth(&space.parametrization(point));
        let all = self.table.configurations().iter();
        all.map(|c| truth(&c.point)).fold(f64::INFINITY, f64::min)
    }
}

/// Continues an epoch. `look` gets each run's parametrization and phase.
fn live(
    world: &World<'_>,
    epoch: &Epoch<'_>,
    mut history: History,
    runs: std::ops::Range<u32>,
    seed: u64,
    mut look: impl FnMut(&Parametrization, Phase),
) -> History {
    for run in runs {
        let next = epoch.suggest(&history, &[]);
        look(&next.parametrization, next.phase);
        history.tally += Tally::of(next.phase, next.role);
        let same = |tested: &Tested| tested.parametrization == next.parametrization;
        let place = history.tested.iter().position(same).unwrap_or_else(|| {
            let new = Tested::new(next.parametrization.clone(), i64::from(run));
            history.tested.push(new);
            history.tested.len() - 1
        });
        let tested = &mut history.tested[place];
        let elapsed = world
            .place(&next.parametrization)
            .and_then(|place| world.table.draw(place, u64::from(run), seed));
        let elapsed = elapsed.unwrap_or(world.table.default().truth) * world.factor;
        if tested.record(i64::from(run), elapsed).is_err() {
            tested.record_failure(i64::from(run));
        }
    }
    history
}

/// The average run and the recommendation over the best, and the number of runs until settled.
fn after(table: &Table, parent: &History, turned: usize, how: &str, seed: u64) -> [f64; 3] {
    let mut settings = without_proofs();
    let space = &table.file.space;
    let old = World::new(table, 0, 0, 1.0);
    let chosen = Epoch::new(space, &settings, seed).recommend(parent);
    let chosen = chosen.map_or_else(|| space.default(), |best| best.parametrization);

    // Each study reverses another parameter.
    let first = usize::try_from(seed).unwrap_or(0) % space.parameters().len();
    let new = World::new(table, turned, first, FACTOR);
    let best = new.best();
    let share = |world: &World<'_>| world.truth(&chosen) / world.truth(&space.default());
    let drift = Drift {
        changed: Changed::Level,
        since: 0,
        tuned_before: old.truth(&chosen),
        tuned_after: new.truth(&chosen),
        tuned_runs_before: 100,
        tuned_runs_after: 10,
        share_before: Some(share(&old)),
        share_after: None,
        controls_before: 10,
        controls_after: 0,
        statistic: 5.0,
        threshold: 4.0,
    };
    let inherited = Epoch::new(space, &settings, seed).ranks(parent, &drift);
    let budget = how.rsplit(' ').next().and_then(|word| word.parse().ok());
    let budget = budget.unwrap_or(settings.budget);
    settings.drift.budget = budget;
    let searched = Settings {
        budget,
        ..settings.clone()
    };
    let (next, nothing) = (seed + 1000, History::default());
    let (epoch, known) = match how {
        "goes on" => (Epoch::new(space, &settings, seed), parent.clone()),
        _ if how.starts_with("inherits") => (
            Epoch::new(space, &settings, next).inheriting(&inherited),
            nothing,
        ),
        _ => (Epoch::new(space, &searched, next), nothing),
    };
    let (mut sum, mut runs, mut settled) = (0.0, 0.0, 0.0);
    let history = live(
        &new,
        &epoch,
        known,
        BEFORE..BEFORE + AFTER,
        next,
        |given, phase| {
            sum += new.truth(given) / best;
            runs += 1.0;
            settled += f64::from(u8::from(phase != Phase::Settled));
        },
    );
    let recommended = epoch.recommend(&history);
    let recommended = recommended.map_or_else(|| space.default(), |best| best.parametrization);
    [sum / runs, new.truth(&recommended) / best, settled]
}
