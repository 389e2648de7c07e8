//! Keeps a policy from moving levers to which the path does not respond: such a move brings
//! nothing, and may cost the job something.
//!
//! The absence of an effect must be shown, not assumed: a lever is given up once the bandwidths
//! with its values differ by less than a worthwhile effect, with their errors. With much noise that
//! takes long, or for ever.

use std::collections::BTreeMap;

use crate::{Action, Lever, Observation, Policy, Reason};

/// The smallest effect that matters, as a logarithm of bandwidth.
const MATTERS: f64 = 0.05;
/// The number of standard errors for a sure result.
const SURE: f64 = 2.0;
/// The number of periods after which the effect of a value is known. The following is the number of
/// values that must be known for a lever.
const PERIODS: f64 = 4.0;
const VALUES: usize = 3;

/// Another policy, with the observations of each lever.
pub struct Responsive {
    inner: Box<dyn Policy>,
    levers: Vec<Seen>,
}

struct Seen {
    began: u64,
    /// The observations by value; `None` once the lever is given up.
    values: Option<BTreeMap<u64, Brought>>,
}

/// The logarithms of bandwidth with one value.
#[derive(Clone, Copy, Default)]
struct Brought {
    periods: f64,
    mean: f64,
    squares: f64,
}

impl Responsive {
    /// Wraps a policy. `began` are the levers' values at the start, to which levers without effect
    /// go back.
    #[must_use]
    pub fn new(inner: Box<dyn Policy>, began: &[u64]) -> Self {
        let levers = began.iter().map(|began| Seen {
            began: *began,
            values: Some(BTreeMap::new()),
        });
        Responsive {
            inner,
            levers: levers.collect(),
        }
    }

    fn learn(&mut self, log: f64, set: &[u64]) {
        for (lever, value) in self.levers.iter_mut().zip(set) {
            if let Some(values) = &mut lever.values {
                values.entry(*value).or_default().add(log);
            }
        }
    }
}

impl Policy for Responsive {
    fn act(&mut self, seen: Option<&Observation>, set: &[u64]) -> Option<Action> {
        if let Some(seen) = seen.filter(|seen| seen.is_sound() && seen.bandwidth > 0.0) {
            self.learn(seen.bandwidth.ln(), set);
        }
        let dull = self
            .levers
            .iter()
            .position(|lever| lever.values.as_ref().is_some_and(changes_nothing));
        let Some(place) = dull else {
            return self.inner.act(seen, set);
        };
        let lever = self.levers.get_mut(place)?;
        lever.values = None;
        let began = lever.began;
        self.inner.narrow(place, Lever::at(began));
        let mut values = set.to_vec();
        *values.get_mut(place)? = began;
        let reason = Reason::Unresponsive;
        (values != set).then_some(Action { values, reason })
    }

    fn narrow(&mut self, lever: usize, bounds: Lever) {
        self.inner.narrow(lever, bounds);
    }
}

/// Returns true if the known values surely give the same bandwidth.
fn changes_nothing(values: &BTreeMap<u64, Brought>) -> bool {
    let known: Vec<&Brought> = values
        .values()
        .filter(|one| one.periods >= PERIODS)
        .collect();
    if known.len() < VALUES {
        return false;
    }
    let squares: f64 = known.iter().map(|one| one.squares).sum();
    let degrees: f64 = known.iter().map(|one| one.periods - 1.0).sum();
    let variance = squares / degrees;
    let differ = |one: &Brought, other: &Brought| {
        let error = SURE * (variance * (1.0 / one.periods + 1.0 / other.periods)).sqrt();
        (one.mean - other.mean).abs() + error >= MATTERS
    };
    !known
        .iter()
        .any(|one| known.iter().any(|other| differ(one, other)))
}

impl Brought {
    fn add(&mut self, log: f64) {
        self.periods += 1.0;
        let off = log - self.mean;
        self.mean += off / self.periods;
        self.squares += off * (log - self.mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contention, Directions, IoPathTune, Settling};

    const LEVERS: [Lever; 2] = [
        Lever {
            least: 1,
            most: 4096,
        },
        Lever {
            least: 1,
            most: 256,
        },
    ];
    const BEGAN: [u64; 2] = [256, 8];

    /// Noise of this size, which repeats after 7 periods.
    fn noise(period: usize, size: f64) -> f64 {
        const WAVE: [f64; 7] = [0.3, -1.0, 0.8, 0.0, -0.6, 1.0, -0.5];
        1.0 + size * WAVE[period % 7]
    }

    /// The values set after this many periods of a path, and the periods in which a lever was given
    /// up.
    fn run(
        policy: Box<dyn Policy>,
        periods: usize,
        path: impl Fn(usize, &[u64]) -> f64,
    ) -> (Vec<u64>, Vec<usize>) {
        let mut policy = Responsive::new(policy, &BEGAN);
        let (mut set, mut given_up) = (BEGAN.to_vec(), Vec::new());
        for period in 0..periods {
            let bandwidth = path(period, &set);
            let seen = Observation {
                dirty: 0.0,
                cached: bandwidth,
                requests: 1.0,
                bandwidth,
            };
            if let Some(action) = policy.act(Some(&seen), &set) {
                if action.reason == Reason::Unresponsive {
                    given_up.push(period);
                }
                set = action.values;
            }
        }
        (set, given_up)
    }

    fn published() -> Box<dyn Policy> {
        Box::new(IoPathTune::new(
            LEVERS.to_vec(),
            Directions::OfEach,
            Contention::Dirty,
        ))
    }

    #[test]
    fn what_changes_nothing_goes_back_to_where_it_began_and_stays() {
        let (set, given_up) = run(published(), 200, |period, _| 1e6 * noise(period, 0.01));
        assert_eq!(set, BEGAN);
        assert!(!given_up.is_empty() && given_up.len() <= 2, "{given_up:?}");
        assert!(given_up[0] < 60, "{given_up:?}");
    }

    #[test]
    fn the_lever_that_matters_goes_on_moving() {
        // Twice the pages give a third more bandwidth.
        let path =
            |period: usize, set: &[u64]| 1e6 * (set[0] as f64).powf(0.4) * noise(period, 0.01);
        let (set, _) = run(published(), 200, path);
        assert!(set[0] >= 1024, "{set:?}");
        let ours = Box::new(Settling::new(LEVERS.to_vec(), BEGAN.to_vec()));
        let (set, _) = run(ours, 200, path);
        assert_eq!(set[0], 4096);
    }

    #[test]
    fn in_noise_nothing_is_given_up() {
        let (_, given_up) = run(published(), 60, |period, _| 1e6 * noise(period, 0.5));
        assert!(given_up.is_empty(), "{given_up:?}");
    }

    #[test]
    fn a_refused_value_is_not_asked_for_again() {
        for mut policy in [
            published(),
            Box::new(Settling::new(LEVERS.to_vec(), BEGAN.to_vec())) as Box<dyn Policy>,
        ] {
            let (mut set, mut refused) = (BEGAN.to_vec(), 0);
            for period in 0..80 {
                let bandwidth = 1e6 * (set[0] as f64) * noise(period, 0.01);
                let seen = Observation {
                    dirty: 0.0,
                    cached: bandwidth,
                    requests: 1.0,
                    bandwidth,
                };
                let Some(action) = policy.act(Some(&seen), &set) else {
                    continue;
                };
                // The device accepts at most 512.
                if action.values[0] > 512 {
                    refused += 1;
                    let most = 512;
                    policy.narrow(0, Lever { most, ..LEVERS[0] });
                } else {
                    set = action.values;
                }
            }
            assert!((1..=2).contains(&refused), "{refused}");
            assert!(set[0] >= 256, "{set:?}");
        }
    }
}
