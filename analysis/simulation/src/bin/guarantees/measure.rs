//! The figures of docs/measurements/report-guarantees.md, each from studies of its own.

use io_autotune_model::{Effect, GainVerdict};
use io_autotune_simulation::parallel;
use rand::RngExt;

use crate::world::{RUNS, Study, World};
use crate::yuen;

/// Shares of A/A studies.
#[derive(Debug)]
pub(crate) struct Null {
    pub(crate) faster: f64,
    pub(crate) slower: f64,
    /// Claimed either.
    pub(crate) ever: f64,
    /// Claimed by Yuen's test at 5 % after every tenth run: repeated looks at a single-look test.
    pub(crate) yuen: f64,
    /// Claimed from the runs that the choice was made from.
    pub(crate) lucky: f64,
}

/// Studies with 13 parametrizations that all take the default's time.
pub(crate) fn null(world: &World, studies: u64, seed: u64) -> Null {
    let told = parallel::on_all(studies, |number| {
        let mut study = Study::new(world, 0.0, of(seed, number));
        let lucky = study.search(|_| 0.0);
        let (mut faster, mut slower, mut naive) = (false, false, false);
        study.settled(RUNS, |now, runs| {
            let verdict = now.gain.verdict;
            faster |= verdict == GainVerdict::Faster;
            slower |= verdict == GainVerdict::Slower;
            let looked = runs % 10 == 0 && now.control.len() >= 4;
            naive |= looked && yuen::claim(&now.control, &now.tuned, 0.05) != 0;
        });
        [faster, slower, faster || slower, naive, lucky]
    });
    let [faster, slower, ever, yuen, lucky] = shares(&told);
    Null {
        faster,
        slower,
        ever,
        yuen,
        lucky,
    }
}

/// Returns the share of studies for which each is true.
fn shares<const N: usize>(told: &[[bool; N]]) -> [f64; N] {
    std::array::from_fn(|place| {
        let so = told.iter().filter(|one| one[place]).count();
        so as f64 / told.len() as f64
    })
}

/// For studies with 13 parametrizations of -25 to 50 % gain: the share whose interval holds the
/// truth after the last run, and at every look.
pub(crate) fn coverage(world: &World, studies: u64, seed: u64) -> [f64; 2] {
    let hold = parallel::on_all(studies, |number| {
        let mut study = Study::new(world, 0.0, of(seed, number));
        study.search(|rng| log_ratio(rng.random_range(-0.25..0.5)));
        let (mut last, mut always) = (true, true);
        study.settled(RUNS, |now, _| {
            let effect = now.evidence.effect(1);
            last = effect.is_none_or(|effect| holds(&effect, now.log_ratio));
            always &= last;
        });
        [last, always]
    });
    shares(&hold)
}

fn holds(effect: &Effect, truth: f64) -> bool {
    effect.low.is_none_or(|low| low <= truth) && effect.high.is_none_or(|high| truth <= high)
}

/// For each number of runs, the smallest gain with a power of 80 %; none above 70 %.
pub(crate) fn detectable(
    world: &World,
    runs: &[usize],
    studies: u64,
    seed: u64,
) -> Vec<Option<f64>> {
    let fine = (1..30).map(|share| f64::from(share) / 100.0);
    let shares = fine.chain((0..9).map(|step| 0.3 + 0.05 * f64::from(step)));
    let mut found = vec![None; runs.len()];
    for share in shares {
        let waiting = || runs.iter().zip(&found).filter(|(_, found)| found.is_none());
        let Some(most) = waiting().map(|(most, _)| *most).max() else {
            break;
        };
        let until = first_claims(world, share, false, most, studies, seed);
        for (runs, found) in runs.iter().zip(&mut found) {
            let claimed = until.partition_point(|until| until <= runs);
            if found.is_none() && claimed as f64 >= 0.8 * studies as f64 {
                *found = Some(share);
            }
        }
    }
    found
}

/// The tuned and control runs from the choice to the claim: the median of studies, and what four of
/// five have reached; none beyond a life.
pub(crate) fn until_claim(
    world: &World,
    share: f64,
    is_even: bool,
    studies: u64,
    seed: u64,
) -> [Option<usize>; 2] {
    let until = first_claims(world, share, is_even, RUNS, studies, seed);
    let quantile = |share: f64| until[((until.len() - 1) as f64 * share) as usize];
    [0.5, 0.8].map(|share| Some(quantile(share)).filter(|runs| *runs != usize::MAX))
}

/// The runs from the choice to the first claim of each study, ascending; `usize::MAX` if it has none
/// in so many.
fn first_claims(
    world: &World,
    share: f64,
    is_even: bool,
    most: usize,
    studies: u64,
    seed: u64,
) -> Vec<usize> {
    let until = |number| {
        let mut study = Study::new(world, log_ratio(share), of(seed, number));
        if is_even {
            study = study.evenly();
        }
        let claims = |_: &usize| {
            study.settled(1, |_, _| {});
            study.gain.verdict == GainVerdict::Faster
        };
        (1..=most).find(claims).unwrap_or(usize::MAX)
    };
    let mut until = parallel::on_all(studies, until);
    until.sort_unstable();
    until
}

pub(crate) fn log_ratio(gain: f64) -> f64 {
    -(-gain).ln_1p()
}

pub(crate) fn of(seed: u64, number: u64) -> u64 {
    (seed << 32) + number
}
