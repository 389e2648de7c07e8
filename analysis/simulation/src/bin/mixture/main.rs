//! How often busy machines pass for mixed work, and mixed work is found: `make -C analysis
//! mixture-report`.

#[path = "../../../../../tuner-service/engine/src/guards/mixture/tests/world.rs"]
mod world;

use std::io::Write;

use io_autotune_engine::{History, Parametrization, RecentRun, Settings, Space, Tested, mixture};
use world::{What, World};

const STUDIES: u64 = 1000;
const NOISES: [f64; 3] = [0.05, 0.10, 0.17];
const RUNS: [usize; 3] = [8, 16, 32];
const MINUTE: f64 = 1.0 / 60.0;
const SECOND: f64 = MINUTE / 60.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "# Different work, or a busy machine: measured\n\n\
         Renewed by `make -C analysis mixture-report`.\n\
         The rule is in [engine](../engine.md#mixed-work).\n\n\
         - Each cell is the share of {STUDIES} studies, in percent: *looks like two works / is called different work*.\n  \
         The first number is the rule without the order in time. Only the second one stops tuning.\n\
         - The binomial standard error is 0.3 points at 1 %, and 1.6 points at 50 %.\n\
         - Noise is log-normal. One run in 16 takes 1.3 to 1.6 times as long besides.\n\
         - A machine that is busy *now and then* is busy for 30 % of the time.\n\
         - Starts *at random* are a Poisson process. *One after another* are within 10 % of the same gap."
    )?;
    for (default_share, title) in [
        (1.0, "The default alone"),
        (
            0.3,
            "After 4 runs of the default, 70 % of the runs are tuned and 18 % quicker",
        ),
    ] {
        writeln!(out, "\n## {title}")?;
        for (heading, worlds) in [
            ("No different work: false alarms", BUSY),
            ("Different work: power", WORKS),
        ] {
            writeln!(out, "\n### {heading}\n")?;
            write!(out, "| world | starts |")?;
            for noise in NOISES {
                for runs in RUNS {
                    write!(out, " {runs} runs, noise {noise:.2} |")?;
                }
            }
            writeln!(out, "\n|{}", " --- |".repeat(2 + NOISES.len() * RUNS.len()))?;
            for (name, what, starts, gap, is_even) in worlds {
                write!(out, "| {name} | {starts} |")?;
                for noise in NOISES {
                    let world = World {
                        what: *what,
                        gap: *gap,
                        is_even: *is_even,
                        noise,
                        default_share,
                    };
                    for runs in RUNS {
                        let (found, in_turn) = world.found(runs, STUDIES)?;
                        let percent = |count| 100.0 * count as f64 / STUDIES as f64;
                        write!(out, " {:.0} / {:.1} |", percent(found), percent(in_turn))?;
                    }
                }
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

/// Name, what, name of the starts, hours between them, and whether they are even.
type Row = (&'static str, What, &'static str, f64, bool);

const BUSY: &[Row] = &[
    ("nothing", What::Nothing, "2 h apart at random", 2.0, false),
    (
        "10 h of twice the time, now and then",
        What::Episodes(10.0, 2.0),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "4 h of twice the time",
        What::Episodes(4.0, 2.0),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "4 h of twice the time",
        What::Episodes(4.0, 2.0),
        "2 h one after another",
        2.0,
        true,
    ),
    (
        "4 h of twice the time",
        What::Episodes(4.0, 2.0),
        "6 h apart at random",
        6.0,
        false,
    ),
    (
        "4 h of twice the time",
        What::Episodes(4.0, 2.0),
        "a day apart at random",
        24.0,
        false,
    ),
    (
        "2 h of twice the time",
        What::Episodes(2.0, 2.0),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "1 h of twice the time",
        What::Episodes(1.0, 2.0),
        "20 min apart at random",
        20.0 * MINUTE,
        false,
    ),
    (
        "20 min of twice the time",
        What::Episodes(20.0 * MINUTE, 2.0),
        "20 min apart at random",
        20.0 * MINUTE,
        false,
    ),
    (
        "3 min of thrice the time, once",
        What::Once(3.0 * MINUTE, 3.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "3 min of thrice the time, once",
        What::Once(3.0 * MINUTE, 3.0),
        "30 s one after another",
        30.0 * SECOND,
        true,
    ),
    (
        "3 min of thrice the time, now and then",
        What::Episodes(3.0 * MINUTE, 3.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "1 min of thrice the time",
        What::Episodes(MINUTE, 3.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "12 s of thrice the time",
        What::Episodes(12.0 * SECOND, 3.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "noise with memory 0.9, as large again",
        What::Memory(0.9),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "a week of 15 % more and less",
        What::Weekly,
        "2 h apart at random",
        2.0,
        false,
    ),
];

const WORKS: &[Row] = &[
    (
        "1:2, each in turn",
        What::Alternating(2.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "1:2, each in turn",
        What::Alternating(2.0),
        "20 min one after another",
        20.0 * MINUTE,
        true,
    ),
    (
        "1:2, each in turn",
        What::Alternating(2.0),
        "2 h one after another",
        2.0,
        true,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "20 min one after another",
        20.0 * MINUTE,
        true,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "20 min apart at random",
        20.0 * MINUTE,
        false,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "2 h one after another",
        2.0,
        true,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "1:2, at random",
        What::Random(2.0),
        "a day apart at random",
        24.0,
        false,
    ),
    (
        "1:3, each in turn",
        What::Alternating(3.0),
        "20 min one after another",
        20.0 * MINUTE,
        true,
    ),
    (
        "1:3, at random",
        What::Random(3.0),
        "5 s one after another",
        5.0 * SECOND,
        true,
    ),
    (
        "1:3, at random",
        What::Random(3.0),
        "20 min one after another",
        20.0 * MINUTE,
        true,
    ),
    (
        "1:3, at random",
        What::Random(3.0),
        "2 h apart at random",
        2.0,
        false,
    ),
    (
        "1:3, at random",
        What::Random(3.0),
        "a day apart at random",
        24.0,
        false,
    ),
];
