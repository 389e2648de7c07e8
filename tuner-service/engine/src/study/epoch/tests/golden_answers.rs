//! Golden answers of the engine: if one changes, the engine's version must change too.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::ENGINE_VERSION;
use crate::study::settings::Settings;
use crate::testing::{Outcome, finish, grid, published, started, suggest};
use io_autotune_baselines::robert2020::{Crossover, Selection};
use io_autotune_search::history::History;

/// FNV-1a, 64 bits, after Fowler, Noll and Vo.
fn hash(text: &str, state: u64) -> u64 {
    text.bytes().fold(state, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// All answers of a life with failures, runs that do not count and several runs in flight, as one
/// number. The times are made by arithmetic alone, so that they are the same on every machine.
fn life(settings: &Settings) -> u64 {
    let space = grid(&[6, 6, 3, 4]);
    let mut world = ChaCha8Rng::seed_from_u64(5);
    let mut history = History::default();
    let mut pending = Vec::new();
    let mut state = 0xcbf2_9ce4_8422_2325;
    for _ in 0..160 {
        let suggestion = suggest(&space, &history, &pending, settings, 42);
        state = hash(&serde_json::to_string(&suggestion).unwrap(), state);
        pending.push(started(&suggestion));
        if pending.len() == 3 {
            let run = pending.swap_remove(world.random_range(0..3));
            let outcome = match world.random_range(0..12) {
                0 => Outcome::Failed,
                1 => Outcome::Ignored,
                _ => Outcome::Elapsed(f64::from(world.random_range(60_u32..140))),
            };
            finish(&mut history, &run, outcome);
        }
    }
    state
}

/// The answers of each version of the engine: for the main method, the published one, and the
/// published one with roulette selection. Lines are appended; a released line never changes.
const ANSWERS: &[(&str, [u64; 3])] = &[
    (
        "io-autotune-engine 2",
        [
            9_337_759_949_555_499_470,
            8_394_745_825_552_054_120,
            2_947_820_002_794_621_109,
        ],
    ),
    // Version 3 models failures; the published methods answer as before.
    (
        "io-autotune-engine 3",
        [
            16_302_030_816_564_573_993,
            8_394_745_825_552_054_120,
            2_947_820_002_794_621_109,
        ],
    ),
    // Version 4 draws control runs.
    (
        "io-autotune-engine 4",
        [
            3_235_073_353_938_873_962,
            2_833_594_855_468_215_397,
            12_455_281_288_860_651_656,
        ],
    ),
    // Version 5 draws more of them at first, and while a gain is promising.
    (
        "io-autotune-engine 5",
        [
            11_339_506_792_238_779_946,
            2_334_147_526_659_043_185,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 6 stops if the default's runs show that nothing reads the files given, or that there
    // is little I/O; this life has no measures.
    (
        "io-autotune-engine 6",
        [
            11_339_506_792_238_779_946,
            2_334_147_526_659_043_185,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 7 explores outwards, and counts more runs after the search. The published method
    // divides the tested points in two, and mutates in every direction.
    (
        "io-autotune-engine 7",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 8 pauses the search for a proof; in this life there is nothing to prove.
    (
        "io-autotune-engine 8",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 9 explains noise by how other runs fared at the same time; in this life that is not
    // known.
    (
        "io-autotune-engine 9",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 10 begins a proof with the best point that ran twice; in this life there is nothing
    // to prove.
    (
        "io-autotune-engine 10",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 11 counts an epoch's own runs for the regret that it forgives; this life's runs are
    // the only ones.
    (
        "io-autotune-engine 11",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 12 goes on without a default that does not complete; in this life it completes.
    (
        "io-autotune-engine 12",
        [
            15_856_739_611_198_514_250,
            7_919_027_263_404_829_542,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 13 runs a tested child of the published method again.
    (
        "io-autotune-engine 13",
        [
            15_856_739_611_198_514_250,
            7_651_531_938_571_711_447,
            5_718_343_240_957_380_498,
        ],
    ),
    // Version 14 has no control runs in the search, and most runs between trials get the best known.
    (
        "io-autotune-engine 14",
        [
            5_448_997_202_180_769_196,
            596_777_609_260_211_414,
            7_771_513_976_996_826_776,
        ],
    ),
    // Version 15 ends a search in which too little can be won; in this life noise hides it.
    (
        "io-autotune-engine 15",
        [
            5_448_997_202_180_769_196,
            596_777_609_260_211_414,
            7_771_513_976_996_826_776,
        ],
    ),
    // Version 16 lets a prior's point beyond reach run only if several users' studies vouch for it;
    // in this life there is no prior.
    (
        "io-autotune-engine 16",
        [
            5_448_997_202_180_769_196,
            596_777_609_260_211_414,
            7_771_513_976_996_826_776,
        ],
    ),
];

#[test]
fn a_change_of_an_answer_is_a_new_version_of_the_engine() {
    // Half of the parametrizations of this life take longer than the others by noise alone, so no
    // regret bound may be reached.
    let settings = Settings {
        control_every_resolved: 10,
        ..published()
    };
    let mut roulette = settings.clone();
    roulette.robert2020.selection = Selection::Probabilistic;
    roulette.robert2020.crossover = Crossover::NPoint { points: 2 };
    let answers = [&Settings::default(), &settings, &roulette].map(life);
    assert_eq!(ANSWERS.last(), Some(&(ENGINE_VERSION, answers)));
    let versions: BTreeSet<&str> = ANSWERS.iter().map(|(version, _)| *version).collect();
    assert_eq!(
        versions.len(),
        ANSWERS.len(),
        "a version answers in one way"
    );
}
