//! Jobs whose time limit leaves no room to explore.

use super::*;
use crate::study::settings::MethodName;
use crate::testing::{Outcome, finish, grid, lacks_headroom, normal, published, started, suggest};
use io_autotune_search::math::Portable;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const SEED: u64 = 42;

/// The outcome of a run: the default takes 100 s, the other end of the space 60 s.
fn takes(space: &Space, suggestion: &Suggestion, world: &mut ChaCha8Rng) -> Outcome {
    let point = space.validate(&suggestion.parametrization).unwrap();
    let levels: u32 = point.0.iter().sum();
    let mean = 100.0 - 40.0 * f64::from(levels) / 15.0;
    Outcome::Elapsed(mean * (0.03 * normal(world)).exponential())
}

/// The suggestions for jobs one after the other, whose limits are a function of their numbers, and
/// the history.
fn live(
    settings: &Settings,
    runs: usize,
    limit: impl Fn(usize) -> Option<f64>,
) -> (Vec<Suggestion>, History) {
    let space = grid(&[6, 6, 3, 4]);
    let mut world = ChaCha8Rng::seed_from_u64(3);
    let mut history = History::default();
    let surrogates = SurrogateCache::default();
    let all = (0..runs)
        .map(|number| {
            let suggestion =
                Epoch::new(&space, settings, SEED).suggest_within(&history, &[], limit(number));
            // The cache of surrogates changes no answer, whatever was asked with it before, and
            // whatever is in flight.
            let with_cache = || Epoch::new(&space, settings, SEED).with_cache(&surrogates);
            let again = with_cache().suggest_within(&history, &[], limit(number));
            assert_eq!(again, suggestion);
            let flying = [started(&suggestion)];
            assert_eq!(
                with_cache().suggest(&history, &flying),
                suggest(&space, &history, &flying, settings, SEED)
            );
            let outcome = takes(&space, &suggestion, &mut world);
            assert_eq!(
                Epoch::new(&space, settings, SEED).phase(&history, &[]),
                suggestion.phase
            );
            finish(&mut history, &started(&suggestion), outcome);
            suggestion
        })
        .collect();
    (all, history)
}

fn methods() -> [Settings; 2] {
    [MethodName::SurrogateGenetic, MethodName::Robert2020].map(|method| Settings {
        method,
        ..Settings::default()
    })
}

#[test]
fn without_room_nothing_is_explored_and_nothing_is_settled() {
    for settings in methods() {
        let (all, history) = live(&settings, 300, |_| Some(150.0));
        let space = grid(&[6, 6, 3, 4]);
        assert!(all.iter().all(|s| s.parametrization == space.default()));
        let roles: Vec<Role> = all[..5].iter().map(|s| s.role).collect();
        assert_eq!(roles[..4], [Role::Baseline; 4]);
        assert_eq!(roles[4], Role::BestKnown);
        assert!(all[4..].iter().all(|s| s.phase == Phase::Design));
        let controls = all.iter().filter(|s| s.role == Role::Control).count();
        assert_eq!(controls, 0, "every run is of the default anyway");
        let text = all[4].reason.to_string();
        let lack = lacks_headroom(&space, &history, &settings, 150.0).unwrap();
        assert!((200.0..230.0).contains(&lack.needed.unwrap()), "{lack}");
        assert!(
            text.contains(
                "because the time limit of 150 s leaves no room to explore: that may take 2"
            ),
            "{text}"
        );
        // A job with room continues where the study was.
        let next = Epoch::new(&space, &settings, SEED).suggest_within(&history, &[], Some(400.0));
        assert_eq!((next.phase, next.role), (Phase::Design, Role::Design));
    }
}

#[test]
fn jobs_without_room_get_what_those_with_room_have_found() {
    for mut settings in methods() {
        settings.budget = 25;
        // Three of four jobs have no room.
        let room = |number: usize| number.is_multiple_of(4);
        let limit = |number| Some(if room(number) { 400.0 } else { 150.0 });
        let (all, _) = live(&settings, 450, limit);
        for (number, suggestion) in all.iter().enumerate() {
            assert!(room(number) || !suggestion.role.explores(), "run {number}");
        }
        let of = |role| all.iter().filter(|s| s.role == role).count();
        assert!(of(Role::Design) + of(Role::Search) >= 25);
        assert!(of(Role::Control) > 5 && of(Role::Settled) > 50);
        let tuned = all.iter().rfind(|s| s.role == Role::BestKnown).unwrap();
        assert_ne!(tuned.parametrization, all[0].parametrization);
    }
}

#[test]
fn with_room_and_without_a_known_limit_nothing_changes() {
    for settings in methods() {
        let (unknown, _) = live(&settings, 200, |_| None);
        let (room, _) = live(&settings, 200, |_| Some(1000.0));
        assert_eq!(unknown, room);
        assert_eq!(unknown.last().unwrap().phase, Phase::Settled);
    }
}

#[test]
fn before_a_run_of_the_default_has_counted_a_limit_leaves_no_room() {
    let space = grid(&[6, 6, 3, 4]);
    let settings = published();
    let mut pending = Vec::new();
    for _ in 0..10 {
        let limit = Some(1e6);
        let suggestion = Epoch::new(&space, &settings, SEED).suggest_within(
            &History::default(),
            &pending,
            limit,
        );
        assert!(!suggestion.role.explores(), "{}", suggestion.reason);
        pending.push(started(&suggestion));
    }
}
