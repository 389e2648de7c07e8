use proptest::prelude::*;

use super::*;

const PATH: [Lever; 2] = [
    Lever {
        least: 1,
        most: 4096,
    },
    Lever {
        least: 1,
        most: 256,
    },
];

fn seen(dirty: f64, cached: f64, bandwidth: f64) -> Observation {
    Observation {
        dirty,
        cached,
        requests: bandwidth,
        bandwidth,
    }
}

fn flows(bandwidth: f64) -> Option<Observation> {
    Some(seen(1.0, bandwidth, bandwidth))
}

/// The values set after each period, and the reasons, for a path with these observations.
fn trace(directions: Directions, start: [u64; 2], shown: &[Option<Observation>]) -> Vec<String> {
    let mut policy = IoPathTune::new(PATH.to_vec(), directions, Contention::Dirty);
    let mut set = start.to_vec();
    let acts = shown
        .iter()
        .map(|shown| match policy.act(shown.as_ref(), &set) {
            Some(action) => {
                set.clone_from(&action.values);
                format!("{} {} {:?}", set[0], set[1], action.reason)
            }
            None => "-".to_owned(),
        });
    acts.collect()
}

#[test]
fn iopathtune_levers_alternate_and_what_improves_is_repeated() {
    let shown = [10.0, 20.0, 30.0, 40.0].map(flows);
    let told = trace(Directions::Shared, [256, 8], &shown);
    assert_eq!(
        told,
        [
            "512 8 First",
            "512 16 Faster",
            "1024 16 Faster",
            "1024 32 Faster"
        ]
    );
}

#[test]
fn iopathtune_otherwise_the_opposite_of_the_last_action() {
    // The number of requests should not have risen.
    let shown = [10.0, 20.0, 15.0, 25.0, 30.0].map(flows);
    assert_eq!(
        trace(Directions::Shared, [256, 8], &shown),
        [
            "512 8 First",
            "512 16 Faster",
            "256 16 NotFaster",
            "256 8 Faster",
            "128 8 Faster"
        ]
    );
    assert_eq!(
        trace(Directions::OfEach, [256, 8], &shown),
        [
            "512 8 First",
            "512 16 Faster",
            "1024 16 NotFaster",
            "1024 8 Faster",
            "2048 8 Faster"
        ]
    );
    let same = [10.0, 10.0].map(flows);
    assert_eq!(
        trace(Directions::Shared, [256, 8], &same)[1],
        "512 4 NotFaster",
        "a tie"
    );
}

#[test]
fn iopathtune_contention_blames_and_reverts_the_last_action() {
    let shown = [
        Some(seen(1.0, 10.0, 10.0)),
        Some(seen(5.0, 10.0, 8.0)),
        Some(seen(9.0, 10.0, 7.0)),
        Some(seen(1.0, 10.0, 9.0)),
    ];
    assert_eq!(
        trace(Directions::Shared, [256, 8], &shown),
        [
            "512 8 First",
            "256 8 Contention",
            // A move that was taken back is not taken back again.
            "256 4 First",
            "128 4 Faster"
        ]
    );
}

/// "How quickly the client can generate RPCs" decides: as many RPCs that transfer less are
/// contention, fewer of them are not. Nothing waits in the page cache here.
#[test]
fn iopathtune_the_request_rate_decides_whether_contention_develops() {
    let of = |requests, bandwidth| Observation {
        dirty: 0.0,
        cached: bandwidth,
        requests,
        bandwidth,
    };
    let acts = |contention, shown: [Observation; 2]| {
        let mut policy = IoPathTune::new(PATH.to_vec(), Directions::Shared, contention);
        policy.act(Some(&shown[0]), &[256, 8]);
        policy.act(Some(&shown[1]), &[512, 8]).unwrap()
    };
    let (as_quickly, less) = (
        [of(5.0, 20.0), of(5.0, 10.0)],
        [of(5.0, 20.0), of(4.0, 10.0)],
    );
    let action = acts(Contention::DirtyOrRequests, as_quickly);
    assert_eq!(
        (action.values, action.reason),
        (vec![256, 8], Reason::Contention),
        "the last action is blamed and reverted"
    );
    let opposite = (vec![512, 4], Reason::NotFaster);
    for (contention, shown) in [
        (Contention::DirtyOrRequests, less),
        (Contention::Dirty, as_quickly),
        // Requests that nobody counts decide nothing.
        (Contention::DirtyOrRequests, [of(0.0, 20.0), of(0.0, 10.0)]),
    ] {
        let action = acts(contention, shown);
        assert_eq!((action.values, action.reason), opposite);
    }
    // Dirty data that grow are contention still, whatever the requests do.
    let piled = [
        of(5.0, 20.0),
        Observation {
            dirty: 9.0,
            cached: 20.0,
            ..of(4.0, 10.0)
        },
    ];
    let action = acts(Contention::DirtyOrRequests, piled);
    assert_eq!(action.reason, Reason::Contention);
    let faster = [of(5.0, 20.0), of(9.0, 30.0)];
    let action = acts(Contention::DirtyOrRequests, faster);
    assert_eq!(action.reason, Reason::Faster);
}

#[test]
fn without_traffic_or_a_statistic_nothing_moves_and_nobody_loses_a_turn() {
    let shown = [
        Some(seen(0.0, 0.0, 0.0)),
        flows(10.0),
        None,
        Some(seen(f64::NAN, 1.0, 1.0)),
        flows(20.0),
    ];
    assert_eq!(
        trace(Directions::Shared, [256, 8], &shown),
        ["-", "512 8 First", "-", "-", "512 16 Faster"]
    );
}

#[test]
fn at_its_bound_a_lever_turns_round_and_one_without_room_is_passed_over() {
    let shown = [10.0, 20.0].map(flows);
    assert_eq!(
        trace(Directions::Shared, [4096, 256], &shown),
        ["2048 256 First", "2048 128 Faster"]
    );
    let mut policy = IoPathTune::new(
        vec![Lever { least: 8, most: 8 }, PATH[1]],
        Directions::OfEach,
        Contention::Dirty,
    );
    let action = policy.act(flows(1.0).as_ref(), &[8, 16]);
    assert_eq!(action.map(|action| action.values), Some(vec![8, 32]));
    let mut stuck = IoPathTune::new(
        vec![Lever { least: 8, most: 8 }],
        Directions::Shared,
        Contention::Dirty,
    );
    assert_eq!(stuck.act(flows(1.0).as_ref(), &[8]), None);
}

proptest! {
    #[test]
    fn iopathtune_one_parameter_a_turn_is_doubled_or_halved(
        shared in any::<bool>(),
        shown in prop::collection::vec((0.0..4.0_f64, 0.0..4.0_f64, 0.0..4.0_f64), 0..40),
        start in (0..13_u32, 0..9_u32),
    ) {
        let directions = if shared { Directions::Shared } else { Directions::OfEach };
        let mut policy = IoPathTune::new(PATH.to_vec(), directions, Contention::Dirty);
        let mut set = vec![1 << start.0, 1 << start.1];
        let mut taken_back = None;
        for (dirty, cached, bandwidth) in shown {
            let period = seen(dirty, cached, bandwidth);
            let Some(action) = policy.act(Some(&period), &set) else {
                prop_assert!(period.is_idle());
                continue;
            };
            let moved: Vec<usize> = (0..2).filter(|one| action.values[*one] != set[*one]).collect();
            prop_assert_eq!(moved.len(), 1);
            let (from, to) = (set[moved[0]], action.values[moved[0]]);
            prop_assert!(to == 2 * from || 2 * to == from, "{} to {}", from, to);
            prop_assert!((PATH[moved[0]].least..=PATH[moved[0]].most).contains(&to));
            if action.reason == Reason::Contention {
                prop_assert_eq!(Some(action.values.clone()), taken_back);
            }
            taken_back = Some(set);
            set = action.values;
        }
    }
}
