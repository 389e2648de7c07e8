use io_autotune_model::{GainVerdict, Outlook, Phase};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::{drawn, normal};

const LIAR: Member = 4;

fn run(ordinal: i64, is_control: bool, log: f64) -> JudgedRun<'static> {
    drawn(ordinal, Phase::Settled, 0.5, is_control, log)
}

/// Runs of five users in turn, whose default takes longer by `log_ratio`; `lie` is added to the
/// last user's control runs. Returns the shared evidence, and the evidence as if all runs were one
/// user's.
fn lived(runs: i64, log_ratio: f64, lie: f64, seed: u64) -> (SharedEvidence, Evidence) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut shared, mut pooled) = (SharedEvidence::new(1), Evidence::default());
    for ordinal in 1..=runs {
        let member = Member::try_from(ordinal % 5).unwrap();
        let is_control = rng.random::<bool>();
        let said = if member == LIAR { lie } else { 0.0 };
        let log = if is_control { log_ratio + said } else { 0.0 };
        let run = run(ordinal, is_control, log + 0.1 * normal(&mut rng));
        shared.record(member, &run);
        pooled.record(&run);
    }
    (shared, pooled)
}

proptest! {
    /// The theorem's step: at each tested effect the evidence is at most the product of the other
    /// users' martingales, whichever user is left out.
    ///
    /// Attack (sharing): One who shares makes up times, so that a gain is claimed for all.
    /// Outcome: The evidence is never more than that of the others.
    #[test]
    fn nobody_lifts_the_evidence_above_that_of_the_others(
        runs in prop::collection::vec((0..5_u32, any::<bool>(), -2.0..2.0), 1..120)
    ) {
        let mut all = SharedEvidence::new(1);
        for (ordinal, (member, is_control, log)) in (1..).zip(&runs) {
            all.record(*member, &run(ordinal, *is_control, *log));
        }
        for direction in [Direction::Faster, Direction::Slower] {
            let place = Labels::no_effect();
            let evidence = all.evidence_at(place, direction);
            for out in all.members.keys() {
                let others = all.members.iter().filter(|(member, _)| *member != out);
                let mut product = [0.0; TESTED];
                for (_, own) in others {
                    let logs = own.current.labels().log_factors(place, direction).unwrap_or_default();
                    for (sum, log) in product.iter_mut().zip(logs) {
                        *sum += (FLOOR + (1.0 - FLOOR) * log.exponential()).logarithm();
                    }
                }
                prop_assert!(evidence <= weighted(product) + 1e-9, "{evidence} without {out}");
            }
        }
    }
}

#[test]
fn a_liar_makes_no_claim_where_all_runs_together_would() {
    let mut deceived = 0;
    for seed in 0..20 {
        let (shared, pooled) = lived(300, 0.0, 0.7, seed);
        deceived += u32::from(pooled.gain(1).verdict == GainVerdict::Faster);
        let gain = shared.gain();
        assert_eq!(gain.verdict, GainVerdict::NotYet, "{seed}: {gain:?}");
        // The liar's own gain has the lie in it.
        let own = shared.of(LIAR).unwrap().gain(1);
        assert_eq!(own.verdict, GainVerdict::Faster);
    }
    assert!(deceived >= 5, "{deceived} of 20");
}

#[test]
fn a_liar_delays_a_claim_and_does_not_prevent_it() {
    let first = |lie: f64| {
        let runs = (20..500).step_by(5);
        let claims = |runs: &i64| lived(*runs, 0.2, lie, 1).0.gain().verdict == GainVerdict::Faster;
        runs.into_iter().find(claims).unwrap()
    };
    let (honest, against) = (first(0.0), first(-0.9));
    assert!(
        honest < against && against < 5 * honest,
        "{honest}, {against}"
    );
    let (shared, _) = lived(400, 0.2, -0.9, 1);
    let gain = shared.gain();
    assert!(
        gain.reason
            .ends_with("By 5 users; it holds without any one of them.")
    );
    // The estimate is that of the other users.
    assert!((gain.share.unwrap() - 0.18).abs() < 0.04, "{gain:?}");
    assert!(gain.low.unwrap() > 0.0 && gain.low < gain.share && gain.share < gain.high);
}

#[test]
fn fewer_users_or_control_runs_claim_nothing_together() {
    let mut few = SharedEvidence::new(1);
    for ordinal in 1..400 {
        let member = Member::try_from(ordinal % 3).unwrap();
        few.record(
            member,
            &run(
                ordinal,
                ordinal % 2 == 0,
                if ordinal % 2 == 0 { 0.7 } else { 0.0 },
            ),
        );
    }
    let gain = few.gain();
    assert_eq!(gain.verdict, GainVerdict::NotYet);
    assert!(
        gain.reason.starts_with("3 of at least 4 users"),
        "{}",
        gain.reason
    );
    assert!(few.of(0).unwrap().gain(1).verdict.is_resolved());
    assert_eq!(SharedEvidence::new(1).gain().verdict, GainVerdict::NotYet);
}

#[test]
fn control_runs_come_often_while_the_typical_user_gains_and_nothing_is_claimed() {
    for (log_ratio, runs, expected) in [
        (0.2, 40, Outlook::Promising),
        (-0.2, 40, Outlook::Open),
        (0.2, 400, Outlook::Resolved),
    ] {
        assert_eq!(
            lived(runs, log_ratio, 0.0, 1).0.gain().outlook_together(),
            expected,
            "{log_ratio}"
        );
    }
    let nothing = SharedEvidence::new(1).gain();
    assert_eq!(nothing.outlook_together(), Outlook::Promising);
}

/// The evidence of the same users if each began a new epoch after the evidence in `earlier`.
fn anew_after(shared: &SharedEvidence, earlier: &SharedEvidence) -> SharedEvidence {
    (0..5).fold(SharedEvidence::new(1), |all, member| {
        let epochs = [earlier, shared].map(|one| one.of(member).unwrap().clone());
        all.with(member, epochs.to_vec())
    })
}

#[test]
fn an_earlier_epoch_only_speaks_against_a_claim() {
    let (gains, _) = lived(150, 0.2, 0.0, 1);
    let (loses, _) = lived(150, -0.2, 0.0, 2);
    let once = gains.gain();
    assert_eq!(once.verdict, GainVerdict::Faster);
    let twice = anew_after(&gains, &gains).gain();
    assert!(twice.evidence <= once.evidence && twice.low <= once.low);
    assert_eq!(twice.share, once.share);
    let after = anew_after(&gains, &loses).gain();
    assert!(after.evidence < gains.gain().evidence, "{after:?}");
    let (none, _) = lived(0, 0.0, 0.0, 3);
    let nothing = (0..5).fold(none, |all, member| {
        all.with(
            member,
            vec![gains.of(member).unwrap().clone(), Evidence::default()],
        )
    });
    assert_eq!(nothing.gain().verdict, GainVerdict::NotYet);
}

#[test]
fn another_comparison_needs_more_evidence() {
    let (shared, _) = lived(150, 0.2, 0.0, 1);
    let second = SharedEvidence {
        number: 2,
        ..shared.clone()
    };
    let (first, second) = (shared.gain(), second.gain());
    assert!(second.evidence < first.evidence && second.level > first.level);
}
