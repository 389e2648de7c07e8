use io_autotune_search::math::Portable;
use proptest::prelude::*;

use super::*;

mod world;
use world::{What, World, found, settled};

fn after_change(what: What, factor: f64, noise: f64, seed: u64) -> Option<(usize, Drift)> {
    let world = World {
        noise,
        memory: 0.0,
        change: Some((what, factor, 200)),
    };
    found(world, 201, 400, seed)
}

/// The number of studies of 300 runs, of `studies`, that have an alarm.
fn alarms(noise: f64, memory: f64, studies: u64) -> usize {
    let world = World {
        noise,
        memory,
        change: None,
    };
    let wrong = (0..studies).filter(|seed| found(world, 1, 300, *seed).is_some());
    wrong.count()
}

#[test]
fn ranks_by_hand() {
    let (ranks, tied) = ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]);
    assert_eq!(ranks, [4.0, 1.0, 4.0, 2.0, 4.0]);
    assert!((tied - 24.0 / 120.0).abs() < 1e-12);
}

/// Six low numbers, then four high ones: the sum of the first ranks is 21, where 33 is expected,
/// with the variance 6 * 4 * 11 / 12 = 22.
#[test]
fn the_statistic_by_hand() {
    let series = [1.6, 1.4, 1.2, 1.5, 1.3, 1.1, 9.2, 9.1, 9.4, 9.3];
    let found = change(&series, 2.0).unwrap();
    assert_eq!(found.at, 6);
    assert!((found.statistic - 12.0 / 22.0_f64.sqrt()).abs() < 1e-12);
    assert!(change(&series, 2.6).is_none());
    assert!(change(&series[..5], 0.1).is_none());
    assert!(change(&[5.0; 40], 0.1).is_none());
}

/// The probability of at least one alarm in a series is `LOOKS * numbers * exp(-h^2 / 2)`.
#[test]
fn the_threshold_keeps_its_promise() {
    const SERIES: u64 = 300;
    let (numbers, h) = (100, 3.2);
    let world = World {
        noise: 0.2,
        memory: 0.0,
        change: None,
    };
    let wrong = (0..SERIES).filter(|seed| {
        let runs = world.runs(numbers, *seed);
        let logs: Vec<f64> = runs
            .iter()
            .map(|(control, elapsed)| elapsed / if *control { 100.0 } else { 70.0 })
            .collect();
        (6..=numbers).any(|count| change(&logs[..count], h).is_some())
    });
    let (found, promised) = (
        wrong.count() as f64 / SERIES as f64,
        LOOKS * numbers as f64 * (-0.5 * h * h).exponential(),
    );
    assert!((threshold(LOOKS * (-0.5 * h * h).exponential()) - h).abs() < 1e-12);
    assert!(
        found > 0.3 * promised && found < promised + 0.05,
        "{found} where {promised} is promised"
    );
}

#[test]
fn noise_is_no_drift() {
    for noise in [0.05, 0.3] {
        assert!(alarms(noise, 0.0, 60) <= 1, "{noise}");
    }
}

#[test]
fn what_changes_everything_alike_is_told_from_a_lost_advantage() {
    for seed in 0..20 {
        let (count, level) = after_change(What::Alike, 1.5, 0.1, seed).unwrap();
        assert_eq!(level.changed, Changed::Level, "{level}");
        assert!(count <= 200 + 15, "{count}");
        assert!((level.since - 200).abs() <= 4, "{level:?}");
        let ratio = level.tuned_after / level.tuned_before;
        assert!((1.2..1.9).contains(&ratio), "{level}");
        assert!(!level.has_lost());
    }
    // Everything becoming 20 % slower is no drift; the tuned runs alone becoming 20 % slower is
    // one.
    let alike = (0..20).filter(|seed| after_change(What::Alike, 1.2, 0.05, *seed).is_some());
    assert!(alike.count() <= 4);
    let tuned: Vec<Drift> = (0..20)
        .filter_map(|seed| Some(after_change(What::Tuned, 1.2, 0.05, seed)?.1))
        .collect();
    assert!(tuned.len() >= 19);
    let advantages = tuned.iter().filter(|d| d.changed == Changed::Advantage);
    assert!(advantages.count() >= 18);
}

#[test]
fn a_default_that_overtakes_the_tuned_runs_is_seen_by_its_control_runs() {
    let found: Vec<Drift> = (0..20)
        .filter_map(|seed| Some(after_change(What::Default, 0.5, 0.1, seed)?.1))
        .collect();
    assert!(found.len() >= 18, "{}", found.len());
    for drift in found {
        assert_eq!(drift.changed, Changed::Advantage);
        assert!(drift.has_lost(), "{drift}");
        let (before, after) = (drift.share_before.unwrap(), drift.share_after.unwrap());
        assert!((0.6..0.8).contains(&before) && after > 1.1, "{drift}");
    }
}

#[test]
fn a_machine_with_hours_does_not_look_like_one_that_changed() {
    assert!(alarms(0.1, 0.5, 40) <= 2);
}

#[test]
fn nothing_is_believed_before_its_time_or_where_it_is_off() {
    let world = World {
        noise: 0.05,
        memory: 0.0,
        change: Some((What::Alike, 3.0, 20)),
    };
    let runs = settled(&world.runs(80, 1));
    let settings = DriftSettings::default();
    assert!(drift(&runs[..49], &settings).is_none());
    assert!(drift(&runs[..50], &settings).is_some());
    let off = DriftSettings {
        enabled: false,
        ..settings
    };
    assert!(drift(&runs, &off).is_none());
}

#[test]
fn the_sentence_says_from_what_to_what() {
    let told = Drift {
        changed: Changed::Level,
        since: 211,
        tuned_before: 70.25,
        tuned_after: 105.0,
        tuned_runs_before: 190,
        tuned_runs_after: 9,
        share_before: Some(0.7),
        share_after: None,
        controls_before: 15,
        controls_after: 0,
        statistic: 4.9,
        threshold: 4.2,
    };
    assert_eq!(
        told.to_string(),
        "tuned runs took 70.25 s and take 105 s since (medians of 190 and 9 runs); \
         no control run tells of the default yet"
    );
    let lost = Drift {
        changed: Changed::Advantage,
        share_after: Some(1.02),
        controls_after: 5,
        ..told
    };
    assert!(lost.has_lost() && !told.has_lost());
    assert!(lost.to_string().starts_with(
        "tuned runs took 0.70 of the default's time before and 1.02 since (medians of 15 and 5 control runs); "
    ));
    let json = serde_json::to_string(&lost).unwrap();
    assert_eq!(serde_json::from_str::<Drift>(&json).unwrap(), lost);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any runs there is an answer, the same each time, and its figures are those of the runs.
    #[test]
    fn anything(
        times in proptest::collection::vec((any::<bool>(), prop_oneof![
            Just(f64::NAN), Just(0.0), Just(-1.0), Just(f64::INFINITY), Just(f64::MAX), Just(f64::MIN_POSITIVE),
            0.1_f64..10.0, Just(1.0)
        ]), 0..200),
        rest in 0_u32..40,
        false_alarms in prop_oneof![Just(f64::NAN), Just(0.0), Just(1e9), 0.001_f64..100.0],
    ) {
        let settings = DriftSettings { rest, false_alarms, ..DriftSettings::default() };
        let runs = settled(&times);
        let found = drift(&runs, &settings);
        prop_assert_eq!(format!("{found:?}"), format!("{:?}", drift(&runs, &settings)));
        if let Some(found) = found {
            prop_assert!(runs.iter().any(|run| run.ordinal == found.since));
            let tuned = runs.iter().filter(|run| !run.control && run.elapsed.is_finite() && run.elapsed > 0.0);
            prop_assert_eq!(found.tuned_runs_before + found.tuned_runs_after, tuned.count() as u64);
        }
    }
}
