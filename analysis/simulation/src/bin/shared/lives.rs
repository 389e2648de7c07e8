//! Recommendations of a study that five users share, from their first submission on.

use std::collections::BTreeMap;

use io_autotune_engine::{
    Epoch, History, Member, Members, RecentRun, SurrogateCache, Tally, Tested,
};
use io_autotune_simulation::preset::without_proofs;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::application::{Application as _, Made};
use crate::claims::{Lie, USERS};
use crate::surroundings::{World, normal};

/// How users' histories become what is recommended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As if all runs were one user's.
    Pooled,
    /// As [`Members`] has it.
    Shared,
    /// Everyone has their own study.
    Alone,
}

/// The behaviour of the first user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    /// By what the run got.
    Lie(Lie),
    /// Ends runs of what is slower than the default after half of their time.
    Shorten,
}

pub(crate) struct Life<'a> {
    pub(crate) application: &'a Made,
    pub(crate) world: World,
    pub(crate) way: Way,
    pub(crate) deed: Deed,
    /// The standard deviation of users' levels, as logs.
    pub(crate) inputs: f64,
    /// Runs of all users together.
    pub(crate) runs: u32,
}

/// Returns what the honest users' last recommendations gain, on average, as a share of the default's elapsed;
/// and the least of these.
pub(crate) fn live(life: &Life<'_>, seed: u64) -> [f64; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let levels: Vec<f64> = (0..USERS).map(|_| life.inputs * normal(&mut rng)).collect();
    let settings = without_proofs();
    let default = life.application.space().default();
    let mut histories: BTreeMap<Member, History> = BTreeMap::new();
    let caches: Vec<SurrogateCache> = (0..USERS).map(|_| SurrogateCache::default()).collect();
    let whose = |member: Member| match life.way {
        Way::Pooled => 0,
        Way::Shared | Way::Alone => member,
    };
    let known = |histories: &BTreeMap<Member, History>, member| match life.way {
        Way::Shared => {
            let all = histories.iter().map(|(member, own)| (*member, own));
            Members::new(all.collect(), &default).history(member)
        }
        Way::Pooled | Way::Alone => histories.get(&whose(member)).cloned().unwrap_or_default(),
    };
    let epoch = |member: Member| {
        let study = seed + (u64::from(whose(member)) << 32);
        let cache = &caches[whose(member) as usize];
        Epoch::new(life.application.space(), &settings, study).with_cache(cache)
    };
    for number in 0..life.runs {
        let member = rng.random_range(0..USERS);
        let history = known(&histories, member);
        let next = epoch(member).with_draw(rng.random()).suggest(&history, &[]);
        let given = &next.parametrization;
        let is_default = *given == default;
        let mut log = levels[member as usize] + life.world.noise(is_default, &mut rng);
        if member == 0 {
            log += match life.deed {
                Deed::Lie(lie) => lie.added(is_default, &mut rng),
                Deed::Shorten if life.application.log_gain(given) < 0.0 => -2.0_f64.ln(),
                Deed::Shorten => 0.0,
            };
        }
        let elapsed = life.application.seconds(given) * log.exp();
        let own = histories.entry(whose(member)).or_default();
        let ordinal = i64::from(number) + 1;
        let place = own
            .tested
            .iter()
            .position(|one| one.parametrization == *given);
        let place = place.unwrap_or_else(|| {
            own.tested.push(Tested::new(given.clone(), ordinal));
            own.tested.len() - 1
        });
        // Log-normal times are finite and positive.
        if own.tested[place]
            .record_run(RecentRun::new(ordinal, elapsed))
            .is_ok()
        {
            own.tally += Tally::of(next.phase, next.role);
        }
    }
    let gains = (1..USERS).map(|member| {
        let best = epoch(member).recommend(&known(&histories, member));
        let best = best.map_or_else(|| default.clone(), |best| best.parametrization);
        1.0 - life.application.seconds(&best) / life.application.seconds(&default)
    });
    let gains: Vec<f64> = gains.collect();
    let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
    [gains.iter().sum::<f64>() / gains.len() as f64, least]
}
