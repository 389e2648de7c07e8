//! Measures tuning inside a job on simulated paths: prints most of docs/measurements/online.md,
//! `make -C analysis online-report`. `--runs` and `--seed` alone decide the figures.

mod path;

use std::io::Write;

use io_autotune_online::{Contention, Directions, IoPathTune, Policy, Settling};
use path::{DEFAULT, LATENCIES, LEVERS, Path, WORKLOADS, Workload, best_static};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "online [--runs N] [--seed N]";
/// Periods of a standalone run, and of each work of a dynamic one: 600 s and 300 s.
const STANDALONE: usize = 60;
const DYNAMIC: usize = 30;
/// The works of a dynamic run.
const WORKS: usize = 6;
/// The workloads of the paper's table 2.
const TOGETHER: [usize; 5] = [3, 1, 8, 5, 7];
/// A period under this share of the default's bandwidth is a bad one.
const BAD: f64 = 0.95;

type New = fn() -> Box<dyn Policy>;

const POLICIES: [(&str, New); 4] = [
    ("IOPathTune, one direction", || {
        published(Directions::Shared, Contention::Dirty)
    }),
    ("IOPathTune, a direction each", || {
        published(Directions::OfEach, Contention::Dirty)
    }),
    ("IOPathTune, requests decide too", || {
        published(Directions::Shared, Contention::DirtyOrRequests)
    }),
    ("ours", || {
        Box::new(Settling::new(LEVERS.to_vec(), DEFAULT.to_vec()))
    }),
];

fn published(directions: Directions, contention: Contention) -> Box<dyn Policy> {
    Box::new(IoPathTune::new(LEVERS.to_vec(), directions, contention))
}

/// The reading of IOPathTune that others are compared with: its place after the best static.
const PUBLISHED: usize = 2;

/// The work of each client in each period.
type Schedule = Vec<Vec<Workload>>;

/// Bandwidths of all clients together, by period; and how often a lever was moved.
struct Ran {
    bandwidths: Vec<f64>,
    moves: usize,
}

/// A policy's figures over runs, each against the default in the same weather.
#[derive(Default)]
struct Figures {
    /// Logarithms of the ratio of mean bandwidths.
    gains: Vec<f64>,
    bad: usize,
    periods: usize,
    /// Bad periods in a row, the most of all runs.
    stretch: usize,
    moves: usize,
}

fn main() -> Result<(), Failure> {
    let (mut runs, mut seed) = (100_u64, 1_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(USAGE);
        match name.as_str() {
            "--runs" => runs = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    let out = &mut std::io::stdout().lock();
    writeln!(out, "{}", INTRODUCTION.trim())?;
    writeln!(out, "\n{runs} runs of each, seed {seed}.")?;
    let mut measure = Measure {
        runs,
        seed,
        rows: Vec::new(),
    };
    heading(out, "One client, one work", "600 s of each work.")?;
    for work in WORKLOADS {
        let schedule = |_: &mut ChaCha8Rng| vec![vec![work]; STANDALONE];
        measure.rows(out, work.name, &schedule)?;
    }
    let about = "600 s; each run has a work of its own. No rule of ours was tried on these.";
    heading(out, "One client, works drawn at random", about)?;
    let drawn = |rng: &mut ChaCha8Rng| vec![vec![Workload::drawn(rng)]; STANDALONE];
    measure.rows(out, "drawn", &drawn)?;
    let about =
        "Six works in a random order, 300 s each. Best static: the best of one setting for all.";
    heading(out, "One client, changing works", about)?;
    let mixed = |rng: &mut ChaCha8Rng| {
        let mut works = WORKLOADS;
        works.shuffle(rng);
        let six = &works[..WORKS];
        six.iter()
            .flat_map(|work| vec![vec![*work]; DYNAMIC])
            .collect()
    };
    measure.rows(out, "six works", &mixed)?;
    let about = "The works of the paper's table 2, a client each, on the same servers: all bandwidth\n\
                 together. Best static: each client's as if alone.";
    heading(out, "Five clients", about)?;
    let together = TOGETHER.map(|one| WORKLOADS[one]).to_vec();
    let schedule = |_: &mut ChaCha8Rng| vec![together.clone(); STANDALONE];
    measure.rows(out, "all five", &schedule)?;
    measure.over_rows(out)
}

fn heading(out: &mut impl Write, title: &str, about: &str) -> Result<(), Failure> {
    writeln!(out, "\n## {title}\n\n{about}\n")?;
    writeln!(
        out,
        "| work | path | policy | of the default's | of IOPathTune's | bad periods | most in a row | moves a run |"
    )?;
    Ok(writeln!(
        out,
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |"
    )?)
}

fn names() -> [&'static str; POLICIES.len() + 1] {
    let mut names = ["best static"; POLICIES.len() + 1];
    for (name, (policy, _)) in names.iter_mut().skip(1).zip(POLICIES) {
        *name = policy;
    }
    names
}

/// The mean over rows of each run.
fn by_run(rows: &[Vec<f64>]) -> Vec<f64> {
    let runs = rows.first().map_or(0, Vec::len);
    let mean =
        |run: usize| rows.iter().filter_map(|row| row.get(run)).sum::<f64>() / rows.len() as f64;
    (0..runs).map(mean).collect()
}

/// How often to run what.
struct Measure {
    runs: u64,
    seed: u64,
    /// The figures of each row, by policy.
    rows: Vec<Vec<Figures>>,
}

impl Measure {
    fn rows(
        &mut self,
        out: &mut impl Write,
        name: &str,
        schedule: &dyn Fn(&mut ChaCha8Rng) -> Schedule,
    ) -> Result<(), Failure> {
        for (place, latency) in LATENCIES {
            let all = self.figures(latency, schedule);
            let published = all[PUBLISHED].1.gains.clone();
            for (policy, figures) in &all {
                let cells = figures.cells(&published);
                writeln!(out, "| {name} | {place} | {policy} | {cells} |")?;
            }
            let figures = all.into_iter().map(|(_, figures)| figures);
            self.rows.push(figures.collect());
        }
        Ok(())
    }

    /// Writes what all rows together say of each policy.
    fn over_rows(&self, out: &mut impl Write) -> Result<(), Failure> {
        writeln!(out, "\n## All rows\n\n{OVER_ROWS}\n")?;
        writeln!(
            out,
            "| policy | of the default's | of IOPathTune's | surely ahead of it | surely behind |"
        )?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: |")?;
        for (place, policy) in names().into_iter().enumerate() {
            let gains = |row: &Vec<Figures>, of: usize| row.get(of).map(|one| one.gains.clone());
            let own: Vec<Vec<f64>> = self
                .rows
                .iter()
                .filter_map(|row| gains(row, place))
                .collect();
            let against = self.rows.iter().filter_map(|row| {
                let (own, other) = (gains(row, place)?, gains(row, PUBLISHED)?);
                let both = own.into_iter().zip(other);
                Some(both.map(|(own, other)| own - other).collect())
            });
            let against: Vec<Vec<f64>> = against.collect();
            let count = |is: fn(f64, f64) -> bool| {
                let intervals = against.iter().map(|logs| interval(logs));
                intervals.filter(|(_, low, high)| is(*low, *high)).count()
            };
            writeln!(
                out,
                "| {policy} | {} | {} | {} | {} |",
                ratio(&by_run(&own)),
                ratio(&by_run(&against)),
                count(|low, _| low > 0.0),
                count(|_, high| high < 0.0),
            )?;
        }
        Ok(())
    }

    fn figures(
        &self,
        latency: f64,
        schedule: &dyn Fn(&mut ChaCha8Rng) -> Schedule,
    ) -> Vec<(&'static str, Figures)> {
        let all = names().map(|name| (name, Figures::default()));
        let mut all: Vec<(&str, Figures)> = all.into_iter().collect();
        for number in 0..self.runs {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(number);
            let schedule = schedule(&mut rng);
            let clients = |policy: Option<New>| {
                let each = schedule[0].iter();
                each.map(|_| Client::new(&DEFAULT, policy.map(|new| new())))
                    .collect()
            };
            let default = run(latency, &schedule, &rng, clients(None));
            let works = |client: usize| schedule.iter().map(move |works| works[client]);
            let fixed = (0..schedule[0].len())
                .map(|client| Client::new(&best_static(latency, works(client)), None))
                .collect();
            let tuned = POLICIES.map(|(_, policy)| clients(Some(policy)));
            for ((_, figures), clients) in all.iter_mut().zip([fixed].into_iter().chain(tuned)) {
                figures.add(&run(latency, &schedule, &rng, clients), &default);
            }
        }
        all
    }
}

/// A client with its levers, and who moves them.
struct Client {
    set: Vec<u64>,
    policy: Option<Box<dyn Policy>>,
}

impl Client {
    fn new(set: &[u64], policy: Option<Box<dyn Policy>>) -> Self {
        Client {
            set: set.to_vec(),
            policy,
        }
    }
}

/// The same generator brings the same noise and load, whatever is set.
fn run(latency: f64, schedule: &Schedule, rng: &ChaCha8Rng, mut clients: Vec<Client>) -> Ran {
    let mut path = Path::new(latency, rng.clone(), clients.len());
    let mut moves = 0;
    let mut period = |works: &Vec<Workload>| {
        let sets = clients.iter().map(|client| client.set.clone());
        let seen = path.period(&works.iter().copied().zip(sets).collect::<Vec<_>>());
        for (client, seen) in clients.iter_mut().zip(&seen) {
            let policy = client.policy.as_mut();
            let action = policy.and_then(|policy| policy.act(Some(seen), &client.set));
            if let Some(action) = action {
                client.set = action.values;
                moves += 1;
            }
        }
        seen.iter().map(|seen| seen.bandwidth).sum()
    };
    let bandwidths = schedule.iter().map(&mut period).collect();
    Ran { bandwidths, moves }
}

impl Figures {
    fn add(&mut self, ran: &Ran, default: &Ran) {
        let mean = |ran: &Ran| ran.bandwidths.iter().sum::<f64>();
        self.gains.push((mean(ran) / mean(default)).ln());
        let mut in_a_row = 0;
        for (own, default) in ran.bandwidths.iter().zip(&default.bandwidths) {
            let is_bad = *own < BAD * default;
            in_a_row = if is_bad { in_a_row + 1 } else { 0 };
            self.stretch = self.stretch.max(in_a_row);
            self.bad += usize::from(is_bad);
        }
        self.periods += ran.bandwidths.len();
        self.moves += ran.moves;
    }

    fn cells(&self, published: &[f64]) -> String {
        let runs = self.gains.len() as f64;
        let against = self.gains.iter().zip(published);
        let against: Vec<f64> = against.map(|(own, other)| own - other).collect();
        format!(
            "{} | {} | {:.1} % | {} | {:.0}",
            ratio(&self.gains),
            ratio(&against),
            100.0 * self.bad as f64 / self.periods as f64,
            self.stretch,
            self.moves as f64 / runs,
        )
    }
}

/// The geometric mean of ratios, from their logarithms, with its interval.
fn ratio(logs: &[f64]) -> String {
    let (mean, low, high) = interval(logs);
    let [mean, low, high] = [mean, low, high].map(f64::exp);
    format!("{mean:.2} ({low:.2}..{high:.2})")
}

/// A mean, and where it lies with 95 %.
fn interval(numbers: &[f64]) -> (f64, f64, f64) {
    let runs = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / runs;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    let error = 1.96 * (squares / (runs - 1.0) / runs).sqrt();
    (mean, mean - error, mean + error)
}

const OVER_ROWS: &str = "The geometric mean over all rows above, of each run; in brackets 95 % over runs. And in how many\n\
    rows the interval of *of IOPathTune's* lies above 1, and in how many below.";

const INTRODUCTION: &str = r#"
# Tuning inside a job, measured

Written by `make -C analysis online-report`; do not edit. [What comes last](#real-kernels) is of
real kernels. All else are the policies (`tuner-service/online`) on **simulated** I/O paths
(`analysis/simulation/src/bin/online/path.rs`), whose numbers are made so that knees are where
such paths have them. They say how the policies compare, not what a file system would gain.

- A client moves `max_pages_per_rpc` (1..4096) and `max_rpcs_in_flight` (1..256) every 10 s, and
  begins with Lustre's 256 and 8. Works have the names of the paper's tables.
- *IOPathTune* is Rashid et al.'s. Its words allow two readings: after a move that did not help, the
  next one, of whichever lever, goes the other way; or the next one of that lever. *Requests decide
  too*: one direction, and contention is also that as many requests as before transfer less.
- *Ours* compares a setting with the best known, leaves a bad one after one period, rests, and
  recalls what it learnt of a work that comes back.
- *Best static* is the best single setting without noise, set from the start.
- Noise is 4 % a period; servers' other load adds 5 % that lasts for about 100 s. Each run has the
  same noise and load under each policy.
- *Of the default's*: a run's mean bandwidth against the default's in the same run; over runs the
  geometric mean, in brackets 95 %. *Of IOPathTune's*: with a direction each. *Bad*:
  a period below 95 % of the default's.
- The rules of ours were chosen by the works of the first, third and fourth table, near and far, with
  other seeds. None was tried on drawn works, or on the path between.
"#;
