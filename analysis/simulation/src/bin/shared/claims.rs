//! Claims of a study that five users share, from the choice on.

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{Member, Phase, Role, Settings, SharedEvidence, control_chance};
use io_autotune_model::{GainVerdict, Outlook};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::surroundings::{GAP, RUNS, Surroundings, World, normal};

pub(crate) const USERS: Member = 5;

/// The behaviour of one of five users, who learns each time what the run got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lie {
    /// Nothing: all are honest.
    None,
    /// Their control runs take so many times as long.
    For(f64),
    /// Their tuned runs take so many times as long.
    Against(f64),
    /// All take a log-normal multiple, with this standard deviation of its log.
    Noise(f64),
}

impl Lie {
    /// Returns what the lie adds to the log of elapsed.
    pub(crate) fn added(self, is_default: bool, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Lie::For(times) if is_default => times.ln(),
            Lie::Against(times) if !is_default => times.ln(),
            Lie::Noise(noise) => noise * normal(rng),
            _ => 0.0,
        }
    }
}

pub(crate) struct Group {
    pub(crate) world: World,
    /// Log of the default's elapsed over the tuned runs'.
    pub(crate) log_ratio: f64,
    pub(crate) lie: Lie,
    /// The standard deviation of users' levels, as logs.
    pub(crate) inputs: f64,
}

/// Runs of all users together until what is claimed, if anything is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Claims {
    /// A gain, as if all runs were one user's.
    pub(crate) pooled: Option<usize>,
    /// A loss, likewise.
    pub(crate) pooled_loss: Option<usize>,
    /// A gain that holds without any one of them.
    pub(crate) shared: Option<usize>,
    pub(crate) shared_loss: Option<usize>,
}

/// One study. The first user lies, if one does. With a gain it ends once both have claimed one.
pub(crate) fn claims(group: &Group, seed: u64) -> Claims {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut surroundings = Surroundings::new(&group.world, &mut rng);
    let levels: Vec<f64> = (0..USERS)
        .map(|_| group.inputs * normal(&mut rng))
        .collect();
    let (mut shared, mut pooled) = (SharedEvidence::new(1), Evidence::default());
    let settings = Settings::default();
    let (mut controls, mut claims) = (0, Claims::default());
    for number in 1..=RUNS {
        let member = rng.random_range(0..USERS);
        let own = shared.of(member).map(|own| own.gain(1).outlook());
        let outlook = own.filter(|own| *own == Outlook::Resolved);
        let outlook = outlook.unwrap_or_else(|| shared.gain().outlook_together());
        let chance = control_chance(&settings, controls, outlook, false);
        let is_control = rng.random::<f64>() < chance;
        controls += u64::from(is_control);
        let mut log = surroundings.next(&mut rng) + group.world.noise(is_control, &mut rng);
        log += levels[member as usize] - if is_control { 0.0 } else { group.log_ratio };
        if member == 0 {
            log += group.lie.added(is_control, &mut rng);
        }
        let key = if is_control { "default" } else { "chosen" };
        let run = JudgedRun {
            ordinal: number as i64,
            started: (number as f64 * GAP * 3.6e9) as i64,
            slowness: 0.0,
            phase: Phase::Settled,
            role: if is_control {
                Role::Control
            } else {
                Role::Settled
            },
            control_chance: Some(chance),
            given: key,
            default: "default",
            counts: Some(Counts {
                key,
                elapsed: 100.0 * log.exp(),
                beside: None,
                cut_short: false,
            }),
            nodes: 1,
        };
        shared.record(member, &run);
        pooled.record(&run);
        let (of_all, of_shared) = (pooled.gain(1).verdict, shared.gain().verdict);
        for (first, verdict, claimed) in [
            (&mut claims.pooled, of_all, GainVerdict::Faster),
            (&mut claims.pooled_loss, of_all, GainVerdict::Slower),
            (&mut claims.shared, of_shared, GainVerdict::Faster),
            (&mut claims.shared_loss, of_shared, GainVerdict::Slower),
        ] {
            if verdict == claimed {
                first.get_or_insert(number);
            }
        }
        if group.log_ratio > 0.0 && claims.pooled.is_some() && claims.shared.is_some() {
            break;
        }
    }
    claims
}
