//! Tests of the proof before the search has ended.

use super::*;
use crate::testing::{Outcome, finish, grid, started};
use crate::{Outlook, ProofSettings, Rule, Steering, Tested};

/// Continues a study in which the highest value of the first parameter halves the time, as long as
/// `is` holds for the next suggestion and the number of runs; at most 200 runs.
fn live(
    history: &mut History,
    settings: &Settings,
    outlook: Outlook,
    is: impl Fn(&Suggestion, usize) -> bool,
) -> Vec<Suggestion> {
    let space = grid(&[5, 4, 4]);
    let mut given: Vec<Suggestion> = Vec::new();
    while given.len() < 200 {
        let draw = if given.len().is_multiple_of(2) {
            0.9
        } else {
            0.1
        };
        let epoch = Epoch::new(&space, settings, 7).with_draw(draw);
        let next = epoch.with_outlook(outlook).suggest(history, &[]);
        if !is(&next, given.len()) {
            break;
        }
        let Ok(Point(levels)) = space.validate(&next.parametrization) else {
            panic!("{next:?} does not fit");
        };
        // Runs of the same parametrization differ by 2 %.
        let noise = 1.0 + 0.02 * f64::from(u32::try_from(given.len() % 3).unwrap());
        let seconds = 100.0 * noise / (1.0 + f64::from(levels[0]) / 4.0);
        finish(history, &started(&next), Outcome::Elapsed(seconds));
        given.push(next);
    }
    given
}

fn is_proof(next: &Suggestion) -> bool {
    next.phase == Phase::Search && next.control_chance.is_some()
}

/// A study whose next run is the first of a proof, and the suggestions so far.
fn about_to_prove(settings: &Settings) -> (History, Vec<Suggestion>) {
    let mut history = History::default();
    let given = live(&mut history, settings, Outlook::Open, |next, _| {
        !is_proof(next)
    });
    assert!(given.len() < 200, "no proof began");
    (history, given)
}

#[test]
fn the_search_pauses_for_a_proof_and_goes_on_once_it_claims_something() {
    let settings = Settings::default();
    let (mut history, before) = about_to_prove(&settings);
    let explored = before.iter().filter(|one| one.role.explores()).count();
    assert!(explored >= 12, "{explored} is too early");
    assert!(explored < 50, "the search had ended");
    let proof = live(&mut history, &settings, Outlook::Promising, |next, n| {
        is_proof(next) && n < 20
    });
    assert_eq!(proof.len(), 20, "a promising proof goes on");
    let space = grid(&[5, 4, 4]);
    let is_proving = |outlook| {
        let epoch = Epoch::new(&space, &settings, 7).with_outlook(outlook);
        let steering = Steering::default();
        epoch.situation(&history, &[], &steering).standing().search == Rule::Proof
    };
    assert!(is_proving(Outlook::Promising) && !is_proving(Outlook::Resolved));
    for one in &proof {
        assert_eq!(one.control_chance, Some(0.5));
        let known = one.role == Role::Settled && matches!(one.reason, Reason::Proof { .. });
        assert!(known || one.role == Role::Control, "{one:?}");
    }
    let rest = live(&mut history, &settings, Outlook::Resolved, |next, _| {
        assert!(!is_proof(next), "nothing is left to prove");
        next.phase != Phase::Settled
    });
    let explored = explored + rest.iter().filter(|one| one.role.explores()).count();
    assert!(
        (50..=51).contains(&explored),
        "{explored} of a budget of 50"
    );
}

#[test]
fn what_a_proof_is_of_ran_twice_before() {
    let (history, _) = about_to_prove(&Settings::default());
    let space = grid(&[5, 4, 4]);
    let settings = Settings::default();
    let epoch = Epoch::new(&space, &settings, 7).with_draw(0.9);
    let first = epoch.suggest(&history, &[]);
    let same = |one: &&Tested| one.parametrization == first.parametrization;
    let tested = history.tested.iter().find(same).unwrap();
    assert!(tested.elapsed.count >= 2, "{tested:?}");
    assert!(epoch.phase(&history, &[]) == Phase::Search);
}

#[test]
fn a_proof_does_not_wait_for_what_looks_better_and_ran_once() {
    let settings = Settings::default();
    let space = grid(&[5, 4, 4]);
    let (mut history, _) = about_to_prove(&settings);
    let epoch = Epoch::new(&space, &settings, 7).with_draw(0.9);
    let proved = epoch.suggest(&history, &[]);
    assert!(is_proof(&proved), "{proved:?}");
    let new = Point(vec![4, 3, 3]);
    let lucky = Pending {
        parametrization: space.parametrization(&new),
        phase: Phase::Search,
        role: Role::Search,
        count: 1,
    };
    finish(&mut history, &lucky, Outcome::Elapsed(44.0));
    let leader = epoch.leader(&history).unwrap();
    assert_ne!(leader, proved.parametrization, "another looks better");
    let next = epoch.suggest(&history, &[]);
    assert!(is_proof(&next), "{next:?}");
    assert_eq!(next.parametrization, proved.parametrization);
}

#[test]
fn a_proof_that_nothing_comes_of_ends() {
    let settings = Settings::default();
    for (outlook, most) in [(Outlook::Open, 10), (Outlook::Promising, 40)] {
        let (mut history, _) = about_to_prove(&settings);
        let proof = live(&mut history, &settings, outlook, |next, _| is_proof(next));
        let tuned = proof.iter().filter(|one| one.role == Role::Settled);
        assert_eq!(tuned.count(), most, "{outlook:?}");
        // There is no second proof.
        let rest = live(&mut history, &settings, outlook, |next, _| {
            next.phase != Phase::Settled
        });
        assert!(!rest.iter().any(is_proof));
    }
}

#[test]
fn who_wants_no_proof_in_the_search_has_none() {
    for proof in [
        ProofSettings {
            after: 0,
            ..ProofSettings::default()
        },
        ProofSettings {
            after: 50,
            ..ProofSettings::default()
        },
    ] {
        let settings = Settings {
            proof,
            ..Settings::default()
        };
        let mut history = History::default();
        let given = live(&mut history, &settings, Outlook::Open, |next, _| {
            next.phase != Phase::Settled
        });
        assert!(!given.iter().any(is_proof), "{proof:?}");
    }
}
