//! Studies of simulated sites, as input of `python -m guarantees`.

use std::io::Write;

use io_autotune_model::{Effect, Gain};
use io_autotune_simulation::parallel;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::measure::{log_ratio, of};
use crate::world::{RUNS, Study, What, World, normal};

type Failure = Box<dyn std::error::Error>;

/// The share of the studies whose claims are counted that are without effect.
const WITHOUT: f64 = 0.7;
/// Studies of a site whose totals are added, and when: runs of the oldest study.
const ADDED: u64 = 20;
const NIGHTS: [usize; 12] = [20, 30, 40, 55, 75, 100, 135, 180, 240, 320, 430, 560];

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    /// The claims of a site's studies.
    Claims { studies: &'a [Claim] },
    /// The comparisons of a site's studies in one night.
    Night {
        world: &'a str,
        site: u64,
        effects: &'a [Weighed],
    },
}

#[derive(Serialize)]
struct Claim {
    truth: f64,
    gain: Gain,
}

#[derive(Serialize)]
struct Weighed {
    truth: f64,
    /// The node-hours of the tuned runs, had they run with the default and without noise.
    hours: f64,
    effect: Effect,
}

/// Prints the claims of so many sites, of so many studies each: a line of JSON for each site.
pub(crate) fn print_claims(
    out: &mut impl Write,
    sites: u64,
    studies: u64,
    seed: u64,
) -> Result<(), Failure> {
    let world = World::new("noise 17 %", 0.17, What::Nothing);
    for studies in parallel::on_all(sites, |site| claims(&world, studies, of(seed + 4, site))) {
        line(out, &Line::Claims { studies: &studies })?;
    }
    Ok(())
}

/// Prints the totals of so many sites of each world: a line of JSON for each night.
pub(crate) fn print_nights(
    out: &mut impl Write,
    worlds: &[(u64, World)],
    sites: u64,
    seed: u64,
) -> Result<(), Failure> {
    // Without changes less can go wrong, and a site is many studies.
    let changes = |world: &World| world.what != What::Nothing || world.noise != world.default_noise;
    for (number, world) in worlds.iter().filter(|(_, world)| changes(world)) {
        let all = parallel::on_all(sites, |site| {
            nights(world, site % 2 == 0, of(seed + 5, (number << 16) + site))
        });
        for (site, nights) in (0..).zip(all) {
            for effects in nights {
                let world = world.name;
                line(
                    out,
                    &Line::Night {
                        world,
                        site,
                        effects: &effects,
                    },
                )?;
            }
        }
    }
    Ok(())
}

fn line(out: &mut impl Write, line: &Line<'_>) -> Result<(), Failure> {
    serde_json::to_writer(&mut *out, line)?;
    Ok(writeln!(out)?)
}

/// Studies of all ages. Effects are between 5 and 50 %, half of them losses.
fn claims(world: &World, studies: u64, seed: u64) -> Vec<Claim> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..studies)
        .map(|_| {
            let size: f64 = rng.random_range(0.05..0.5);
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            let has_effect = rng.random::<f64>() >= WITHOUT;
            let truth = if has_effect {
                log_ratio(sign * size)
            } else {
                0.0
            };
            let mut study = Study::new(world, truth, rng.random());
            study.settled(rng.random_range(10..=RUNS), |_, _| {});
            Claim {
                truth,
                gain: study.gain,
            }
        })
        .collect()
}

/// A site's comparisons by night, of studies of unequal weight and age.
fn nights(world: &World, is_null: bool, seed: u64) -> Vec<Vec<Weighed>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut nights: Vec<Vec<Weighed>> = NIGHTS.iter().map(|_| Vec::new()).collect();
    for number in 0..ADDED {
        let drawn = [0.0, 0.0, 0.02, 0.05, 0.2][rng.random_range(0..5)] - 0.01;
        let truth = if is_null { 0.0 } else { drawn };
        let young = rng.random_range(0..RUNS - 20);
        let born = if number == 0 { 0 } else { young };
        let seconds = 3600.0 * normal(&mut rng).exp();
        let mut study = Study::new(world, truth, rng.random()).of(seconds);
        study.settled(RUNS - born, |now, runs| {
            let night = NIGHTS.iter().position(|night| *night == born + runs);
            if let Some(night) = night {
                let hours = now.default_seconds / 3600.0;
                let weighed = |effect| Weighed {
                    truth,
                    hours,
                    effect,
                };
                nights[night].extend(now.evidence.effect(1).map(weighed));
            }
        });
    }
    nights
}
