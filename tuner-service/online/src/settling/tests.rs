use proptest::prelude::*;

use super::*;

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
const DEFAULT: [u64; 2] = [256, 8];

/// Bandwidth that falls by a share with each doubling away from an optimum.
fn hill(set: &[u64], optimum: [u64; 2]) -> f64 {
    let far = |value: u64, best: u64| (value as f64 / best as f64).log2().abs();
    1e9 * 0.8_f64.powf(far(set[0], optimum[0]) + far(set[1], optimum[1]))
}

fn period(bandwidth: f64) -> Observation {
    Observation {
        dirty: 0.0,
        cached: bandwidth,
        requests: 1.0,
        bandwidth,
    }
}

/// The values in force in each of these periods.
fn walk(policy: &mut Settling, set: &mut Vec<u64>, periods: &[[u64; 2]]) -> Vec<Vec<u64>> {
    let steps = periods.iter().map(|optimum| {
        let was = set.clone();
        if let Some(action) = policy.act(Some(&period(hill(set, *optimum))), set) {
            assert_ne!(action.values, was);
            *set = action.values;
        }
        was
    });
    steps.collect()
}

fn new() -> (Settling, Vec<u64>) {
    (
        Settling::new(LEVERS.to_vec(), DEFAULT.to_vec()),
        DEFAULT.to_vec(),
    )
}

#[test]
fn it_climbs_to_the_best_and_rests_there() {
    let (mut policy, mut set) = new();
    let set_in = walk(&mut policy, &mut set, &[[2048, 2]; 60]);
    assert_eq!(set, [2048, 2]);
    let since = set_in.iter().position(|one| *one == [2048, 2]).unwrap();
    assert!(since <= 20, "{set_in:?}");
    let rests = set_in[40..].iter().all(|one| *one == [2048, 2]);
    assert!(rests, "{set_in:?}");
}

#[test]
fn where_the_default_is_best_nothing_worse_is_set_twice() {
    let (mut policy, mut set) = new();
    let set_in = walk(&mut policy, &mut set, &[DEFAULT; 30]);
    let worse: Vec<&Vec<u64>> = set_in.iter().filter(|one| **one != DEFAULT).collect();
    // Each once: two steps up and one, and one down; nothing beyond a worse setting is tried.
    assert_eq!(worse.len(), 6, "{set_in:?}");
    let twice = set_in
        .windows(2)
        .any(|pair| pair[0] != DEFAULT && pair[1] != DEFAULT);
    assert!(!twice, "{set_in:?}");
}

#[test]
fn another_work_is_learnt_and_a_known_one_recalled() {
    let (mut policy, mut set) = new();
    let (one, other) = ([2048, 8], [64, 32]);
    walk(&mut policy, &mut set, &[one; 40]);
    assert_eq!(set, one);
    let set_in = walk(&mut policy, &mut set, &[other; 40]);
    assert_eq!(set, other);
    assert_eq!(set_in[2], DEFAULT, "two periods told: {set_in:?}");
    // The work was never seen at the other's best setting, but at the default.
    let back = walk(&mut policy, &mut set, &[one; 4]);
    assert_eq!(back[2..], [DEFAULT, one], "{back:?}");
    assert_eq!(walk(&mut policy, &mut set, &[one; 10]), vec![one; 10]);
}

#[test]
fn where_nothing_matters_each_neighbour_is_seen_once_and_then_ever_more_rarely() {
    let (mut policy, mut set) = new();
    let mut set_in = Vec::new();
    for _ in 0..120 {
        set_in.push(set.clone());
        if let Some(action) = policy.act(Some(&period(1e9)), &set) {
            set = action.values;
        }
    }
    let away = (0..set_in.len()).filter(|place| set_in[*place] != DEFAULT);
    let away: Vec<usize> = away.collect();
    // One and two steps of two levers, up and down.
    let first: BTreeSet<&Vec<u64>> = away[..8].iter().map(|place| &set_in[*place]).collect();
    assert_eq!((away[7], first.len()), (8, 8), "{set_in:?}");
    let rests = away[7..].windows(2).map(|pair| pair[1] - pair[0] - 1);
    let most = REST_MOST + 1;
    assert_eq!(
        rests.collect::<Vec<_>>(),
        [REST + 1, 2 * REST + 1, most, most, most]
    );
}

#[test]
fn a_work_that_only_looks_like_the_one_at_rest_is_noticed() {
    // The first lever has no effect; the second has one up to 8, and in the other work without end.
    let capped = |set: &[u64]| 1e8 * set[1].min(8) as f64;
    let open = |set: &[u64]| 1e8 * set[1] as f64;
    let (mut policy, mut set) = new();
    let mut run = |path: &dyn Fn(&[u64]) -> f64, periods: usize| {
        for _ in 0..periods {
            if let Some(action) = policy.act(Some(&period(path(&set))), &set) {
                set = action.values;
            }
        }
        set.clone()
    };
    assert_eq!(run(&capped, 60)[1], 8);
    assert_eq!(run(&open, 60)[1], 256);
}

#[test]
fn a_single_odd_period_changes_nothing() {
    let (mut policy, mut set) = new();
    walk(&mut policy, &mut set, &[[512, 8]; 30]);
    assert_eq!(policy.act(Some(&period(1e7)), &set), None);
    assert_eq!(
        walk(&mut policy, &mut set, &[[512, 8]; 10]),
        vec![[512, 8]; 10]
    );
}

proptest! {
    #[test]
    fn whatever_is_seen_levers_stay_within_their_bounds(
        shown in prop::collection::vec(prop::option::of(-1.0..1e3_f64), 0..80),
    ) {
        let (mut policy, mut set) = new();
        for bandwidth in shown {
            let period = bandwidth.map(period);
            if let Some(action) = policy.act(period.as_ref(), &set) {
                prop_assert_ne!(&action.values, &set);
                for (lever, value) in LEVERS.iter().zip(&action.values) {
                    prop_assert!((lever.least..=lever.most).contains(value));
                }
                set = action.values;
            }
        }
    }

    #[test]
    fn without_noise_what_is_worse_than_the_default_is_left_at_once(
        optimum in (0..13_u32, 0..9_u32),
    ) {
        let optimum = [1 << optimum.0, 1 << optimum.1];
        let (mut policy, mut set) = new();
        let set_in = walk(&mut policy, &mut set, &[optimum; 60]);
        let floor = hill(&DEFAULT, optimum) * (-HARM).exp();
        let bad = |set: &[u64]| hill(set, optimum) < floor;
        prop_assert!(!set_in.windows(2).any(|pair| bad(&pair[0]) && bad(&pair[1])));
        prop_assert_eq!(set, optimum);
    }
}
