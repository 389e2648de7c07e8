//! How likely a settled epoch runs the default, so that the gain stays measured against the present.
//! Which runs do is drawn: at fixed distances they would always meet the same step of a workflow.

use crate::study::settings::Settings;

/// The share by which one control run too many or too few changes the probability. So little that
/// the bounds are seldom met: there the probability would depend on the number of runs modulo
/// `control_every`, and so on the step of a workflow.
const BIAS: f64 = 0.1;

/// The probability of a control run after `controls` in `runs` runs of a settled epoch.
///
/// It is `1 / control_every_at_first` for the first `controls_at_first` control runs, then `1 /
/// control_every`; and `1 / control_every_resolved` as soon as a gain is resolved. A biased coin (B.
/// Efron, Biometrika 58 (1971), 403-417) keeps to that: each control run less than this share of
/// the runs, or more than `1 / control_every`, moves it by a tenth, at most by half of itself.
pub fn control_chance(settings: &Settings, controls: u64, runs: u64, is_resolved: bool) -> f64 {
    let one_in = |runs: u32| 1.0 / f64::from(runs.max(2));
    let often = one_in(settings.control_every);
    let at_first = often.max(one_in(settings.control_every_at_first));
    let first = u64::from(settings.controls_at_first);
    if controls < first && !is_resolved {
        return coin(at_first, at_first, controls as f64, runs as f64);
    }
    let rate = if is_resolved {
        often.min(one_in(settings.control_every_resolved))
    } else {
        often
    };
    // What came more often at first is not saved later.
    let first = first.min(controls) as f64;
    let runs = runs as f64 - first / at_first;
    coin(rate, often, controls as f64 - first, runs.max(0.0))
}

fn coin(rate: f64, most: f64, controls: f64, runs: f64) -> f64 {
    let too_few = (rate * runs - controls).max(0.0);
    let too_many = (controls - most * runs).max(0.0);
    rate * (1.0 + BIAS * (too_few - too_many)).clamp(0.5, 1.5)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A settled phase as letters, with the probabilities; `is_resolved` by number of the run.
    fn settled(
        runs: usize,
        settings: &Settings,
        is_resolved: impl Fn(usize) -> bool,
    ) -> (String, Vec<f64>) {
        let mut draws = ChaCha8Rng::seed_from_u64(4);
        let (mut letters, mut chances, mut controls) = (String::new(), Vec::new(), 0);
        for number in 0..runs {
            let chance = control_chance(settings, controls, number as u64, is_resolved(number));
            let is_control = draws.random::<f64>() < chance;
            controls += u64::from(is_control);
            letters.push(if is_control { 'c' } else { 's' });
            chances.push(chance);
        }
        (letters, chances)
    }

    /// Without a beginning of its own.
    fn even() -> Settings {
        Settings {
            controls_at_first: 0,
            ..Settings::default()
        }
    }

    fn controls(letters: &str) -> usize {
        letters.matches('c').count()
    }

    #[test]
    fn one_in_ten_until_the_gain_is_resolved_then_one_in_twenty() {
        let (letters, chances) = settled(2000, &even(), |_| false);
        assert!((190..=210).contains(&controls(&letters)), "{letters}");
        assert!(chances.iter().all(|one| (0.049..0.151).contains(one)));

        let (letters, chances) = settled(2000, &even(), |number| number >= 100);
        assert!((95..=135).contains(&controls(&letters)), "{letters}");
        assert!(
            chances[100..]
                .iter()
                .all(|one| (0.024..0.076).contains(one))
        );
    }

    #[test]
    fn the_first_control_runs_come_faster_and_are_not_saved_later() {
        let settings = Settings::default();
        let (letters, chances) = settled(2000, &settings, |_| false);
        let first = controls(&letters[..96]);
        assert!((18..=30).contains(&first), "{letters}");
        assert!(chances[..80].iter().all(|one| (0.12..0.38).contains(one)));
        assert!(chances[160..].iter().all(|one| *one < 0.151));
        let later = controls(&letters[96..]);
        assert!((170..=210).contains(&later), "{later}");

        // Once the gain is resolved nothing is in a hurry.
        let (letters, chances) = settled(400, &settings, |number| number >= 40);
        assert!(chances[40..].iter().all(|one| *one < 0.076), "{letters}");
        assert!((10..=30).contains(&controls(&letters[40..])), "{letters}");
    }

    #[test]
    fn a_step_of_a_workflow_is_no_more_often_a_control_run_than_another() {
        for every in [2, 10] {
            let settings = Settings {
                control_every: every,
                ..even()
            };
            let (letters, _) = settled(100_000, &settings, |_| false);
            let of_step = |step: usize| {
                let runs = letters.bytes().skip(step).step_by(10);
                runs.filter(|letter| *letter == b'c').count() as f64
            };
            let expected = 10_000.0 / f64::from(every);
            for step in 0..10 {
                let seen = of_step(step);
                assert!(
                    (seen / expected - 1.0).abs() < 0.1,
                    "{every}, {step}: {seen}"
                );
            }
        }
    }

    #[test]
    fn a_gain_that_is_lost_again_brings_no_burst_of_control_runs() {
        let resolved = |number| (100..1500).contains(&number);
        let (letters, chances) = settled(2000, &Settings::default(), resolved);
        assert!(chances[1500..].iter().all(|one| *one < 0.151), "{letters}");
        assert!(controls(&letters[1500..]) >= 40, "{letters}");
    }
}
