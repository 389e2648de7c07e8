//! What every method must do, whatever its idea. A new method is covered by being named.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Method, Proposal, named};
use crate::history::{History, Moments, Pending, Phase, Role, Tested};
use crate::reason::Reason;
use crate::settings::{MethodName, Settings};
use crate::space::{Point, Space};
use crate::testing::{Outcome, categories, finish, grid, integers, normal, with_context};

#[test]
fn every_method_conforms() {
    for name in MethodName::ALL {
        conforms(named(*name));
    }
}

/// Runs a method through spaces and histories of every kind.
pub(crate) fn conforms(method: &dyn Method) {
    let mixed = Space::new(vec![
        integers("buffer", 1, 64, 3),
        categories("mode", 4),
        integers("one", 5, 5, 1),
    ])
    .unwrap();
    for space in [
        grid(&[1]),
        grid(&[2]),
        grid(&[40]),
        grid(&[2, 2]),
        grid(&[6, 6, 3, 4]),
        grid(&[1000; 20]),
        mixed,
    ] {
        for seed in 0..4 {
            random_life(method, &space, seed);
        }
        nothing_known(method, &space);
        nonsense(method, &space);
    }
}

/// A life of random starts and ends, with at most eight runs in flight; some fail, some are
/// cut short, some do not count. Every proposal on the way is checked.
fn random_life(method: &dyn Method, space: &Space, seed: u64) {
    let settings = Settings::default();
    let mut world = ChaCha8Rng::seed_from_u64(seed ^ 0xfeed);
    let mut history = History::default();
    let mut pending: Vec<Pending> = Vec::new();
    let mut exhausted = false;
    for _ in 0..120 {
        if pending.len() < 8 && world.random_bool(0.6) {
            let Some(started) = start(method, space, &history, &pending, &settings, seed) else {
                exhausted |= pending.is_empty();
                if pending.is_empty() && history.tested.iter().any(|t| t.elapsed.count > 0) {
                    break;
                }
                // A method that waits is owed a result; here it is a run of the default.
                pending.push(Pending {
                    parametrization: space.default(),
                    phase: Phase::Search,
                    role: Role::BestKnown,
                    count: 1,
                });
                continue;
            };
            pending.push(started);
        } else if !pending.is_empty() {
            let run = pending.swap_remove(world.random_range(0..pending.len()));
            let outcome = match world.random_range(0..10) {
                0 => Outcome::Failed,
                1 => Outcome::Ignored,
                2 => Outcome::Censored(12.0 * (0.4 * normal(&mut world)).exp()),
                _ => Outcome::Elapsed(10.0 * (0.4 * normal(&mut world)).exp()),
            };
            finish(&mut history, &run, outcome);
        }
    }
    // A large space is never exhausted.
    assert!(!(exhausted && space.size() > 1000), "gave up early");
}

/// Asks for one run, checks the answer, and returns the run; none if there is nothing to run.
fn start(
    method: &dyn Method,
    space: &Space,
    history: &History,
    pending: &[Pending],
    settings: &Settings,
    seed: u64,
) -> Option<Pending> {
    with_context(space, history, pending, settings, seed, |context| {
        let run = |point: &Point, phase, role| Pending {
            parametrization: space.parametrization(point),
            phase,
            role,
            count: 1,
        };
        if let Some((_, point)) = context.next_design_point() {
            return Some(run(point, Phase::Design, Role::Design));
        }
        let stream = history.tally.total + pending.len() as u64 + 1;
        let rng = || {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(stream);
            rng
        };
        let proposal = method.propose(context, &mut rng());
        assert_eq!(proposal, method.propose(context, &mut rng()), "determinism");

        let mut turned = history.clone();
        turned.tested.reverse();
        let again = with_context(space, &turned, pending, settings, seed, |context| {
            method.propose(context, &mut rng())
        });
        assert_eq!(proposal, again, "the order of the history matters");

        let Proposal::Run { point, reason } = proposal else {
            return None;
        };
        let parametrization = space.parametrization(&point);
        assert_eq!(
            space.validate(&parametrization),
            Ok(point.clone()),
            "bounds"
        );
        if let Some(known) = context.view.get(&point) {
            assert!(!known.given_up(), "a point that fails is proposed again");
            match reason {
                Reason::Resample { number, .. } => {
                    assert_eq!(number, known.count() + known.in_flight + 1);
                    let second = known.count() + known.in_flight < 2;
                    assert!(
                        known.in_flight == 0 || second,
                        "resampled too often at once"
                    );
                }
                _ => assert_eq!(known.in_flight, 0, "two runs in flight explore one point"),
            }
        }
        Some(run(&point, Phase::Search, Role::Search))
    })
}

/// Without any result a method can only wait, or say that there is nothing to do.
fn nothing_known(method: &dyn Method, space: &Space) {
    let settings = Settings::default();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let history = History::default();
    with_context(space, &history, &[], &settings, 1, |context| {
        let proposal = method.propose(context, &mut rng);
        assert!(!matches!(proposal, Proposal::Run { .. }), "{proposal:?}");
    });
}

/// Moments that no times have, and times at the ends of the range, do not upset a method.
fn nonsense(method: &dyn Method, space: &Space) {
    let settings = Settings::default();
    let odd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1.0,
        0.0,
        f64::MIN_POSITIVE,
        f64::MAX,
    ];
    let mut world = ChaCha8Rng::seed_from_u64(2);
    for seed in 0..10 {
        let mut draw = || odd[world.random_range(0..odd.len())];
        let mut entry = |point: Point| {
            let mut tested = Tested::new(space.parametrization(&point), i64::MIN);
            tested.elapsed = Moments {
                count: u64::MAX,
                mean: draw(),
                m2: draw(),
            };
            tested.log_elapsed = tested.elapsed;
            tested
        };
        let mut tested = vec![entry(space.default_point())];
        tested.extend(
            crate::design::latin_hypercube(space, 15, seed)
                .into_iter()
                .map(&mut entry),
        );
        let history = History {
            tested,
            ..History::default()
        };
        with_context(space, &history, &[], &settings, seed, |context| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            if let Proposal::Run { point, .. } = method.propose(context, &mut rng) {
                let parametrization = space.parametrization(&point);
                assert_eq!(space.validate(&parametrization), Ok(point));
            }
        });
    }
}
