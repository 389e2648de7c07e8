//! The time of one suggestion by method, space and history: `cargo run --release -p
//! io-autotune-engine --example suggestion`.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use io_autotune_engine::{
    Domain, Epoch, History, MethodName, Parameter, Pending, Phase, Point, Role, Settings, Space,
    Tally, Tested, Value,
};

/// Calls per measurement, each with its own seed.
const CALLS: u64 = 15;
const IN_FLIGHT: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "method                  parameters  known  median ms  slowest ms"
    )?;
    for method in MethodName::ALL {
        for parameters in [4, 9, 20] {
            for known in [50, 500] {
                let space = space(parameters)?;
                let mut times = Vec::new();
                for seed in 0..CALLS {
                    times.push(measure(&space, *method, known, seed)?);
                }
                times.sort_by(f64::total_cmp);
                let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
                writeln!(
                    out,
                    "{:<22}  {parameters:10}  {known:5}  {median:9.1}  {slowest:10.1}",
                    method.as_str()
                )?;
            }
        }
    }
    Ok(())
}

/// `count` parameters of eight levels, every third a category.
fn space(count: usize) -> Result<Space, Box<dyn std::error::Error>> {
    let parameter = |place: usize| {
        let domain = if place % 3 == 2 {
            let values = (0..8).map(|n| Value::from(format!("c{n}")));
            Domain::Categories {
                values: values.collect(),
            }
        } else {
            Domain::Integer {
                min: 0,
                max: 7,
                step: 1,
            }
        };
        Parameter {
            name: format!("p{place}"),
            default: if place % 3 == 2 {
                Value::from("c0")
            } else {
                Value::Integer(0)
            },
            domain,
            when: None,
            unit: None,
            description: None,
        }
    };
    Ok(Space::new((0..count).map(parameter).collect())?)
}

/// Milliseconds for a suggestion in the search, with `known` distinct parametrizations.
fn measure(
    space: &Space,
    method: MethodName,
    known: usize,
    seed: u64,
) -> Result<f64, Box<dyn std::error::Error>> {
    let settings = Settings {
        method,
        budget: 2000,
        design_points: 2,
        ..Settings::default()
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut history = History::default();
    let mut last: Vec<u32> = Vec::new();
    while history.tested.len() < known {
        // Half are single changes of the one before, like walks.
        let count = space.parameters().len();
        if last.is_empty() || rng.random_bool(0.5) {
            last = (0..count).map(|_| rng.random_range(0..8)).collect();
        } else {
            last[rng.random_range(0..count)] = rng.random_range(0..8);
        }
        let levels = last.clone();
        let off: u32 = levels.iter().map(|level| level.abs_diff(5)).sum();
        let noise = rng.random_range(1.0..1.2);
        let parametrization = if history.tested.is_empty() {
            space.default()
        } else {
            space.parametrization(&Point(levels))
        };
        if history
            .tested
            .iter()
            .any(|t| t.parametrization == parametrization)
        {
            continue;
        }
        let ordinal = i64::try_from(history.tested.len())?;
        let mut tested = Tested::new(parametrization, ordinal);
        let runs = if history.tested.is_empty() {
            40
        } else {
            rng.random_range(1..4)
        };
        for run in 0..runs {
            tested.record(
                ordinal,
                (50.0 + f64::from(off)) * noise * (1.0 + 0.01 * f64::from(run)),
            )?;
            // Three measures that correlate with elapsed: the most that a method learns from.
            let measures = (0..3).map(|n| {
                let of = f64::from(off + n + 1) * rng.random_range(1.0..1.02);
                (format!("m{n}"), of)
            });
            tested.record_measures(&measures.collect::<BTreeMap<String, f64>>());
        }
        history.tested.push(tested);
    }
    history.tally = Tally {
        explored: known as u64,
        total: known as u64 + 40,
        ..Tally::default()
    };
    let flying = history.tested.iter().rev().take(IN_FLIGHT);
    let pending: Vec<Pending> = flying
        .map(|tested| Pending {
            parametrization: tested.parametrization.clone(),
            phase: Phase::Search,
            role: Role::Search,
            count: 1,
        })
        .collect();
    let mut suggestion;
    let elapsed = loop {
        let clock = Instant::now();
        suggestion = Epoch::new(space, &settings, seed).suggest(&history, &pending);
        let elapsed = clock.elapsed().as_secs_f64() * 1e3;
        if suggestion.role != Role::Design {
            break elapsed;
        }
        // The design comes first.
        let mut tested = Tested::new(suggestion.parametrization, 0);
        tested.record(0, rng.random_range(50.0..100.0))?;
        history.tested.push(tested);
    };
    if suggestion.role != Role::Search {
        return Err(format!("{method}: a {} run, not one of the search", suggestion.role).into());
    }
    Ok(elapsed)
}
