//! How likely a settled epoch runs the default, so that the gain stays measured against the present.
//! Which runs do is drawn: at fixed distances they would always meet the same step of a workflow.

use io_autotune_model::Outlook;

use crate::study::settings::Settings;

/// The probability of a control run after `controls` control runs of a settled epoch.
pub fn control_chance(settings: &Settings, controls: u64, outlook: Outlook) -> f64 {
    let often = settings.control_every;
    let every = match outlook {
        Outlook::Resolved => often.max(settings.control_every_resolved),
        _ if controls < u64::from(settings.controls_at_first) => {
            often.min(settings.control_every_at_first)
        }
        Outlook::Promising if controls < u64::from(settings.controls_promising) => {
            often.min(settings.control_every_promising)
        }
        _ => often,
    };
    1.0 / f64::from(every.max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_runs_are_many_at_first_and_while_a_gain_is_near_and_few_once_it_is_claimed() {
        let settings = Settings::default();
        for (controls, outlook, chance) in [
            (0, Outlook::Open, 1.0 / 2.0),
            (19, Outlook::Promising, 1.0 / 2.0),
            (5, Outlook::Resolved, 1.0 / 20.0),
            (20, Outlook::Open, 1.0 / 10.0),
            (20, Outlook::Promising, 1.0 / 3.0),
            (149, Outlook::Promising, 1.0 / 3.0),
            (150, Outlook::Promising, 1.0 / 10.0),
            (1000, Outlook::Resolved, 1.0 / 20.0),
        ] {
            let found = control_chance(&settings, controls, outlook);
            assert!(
                (found - chance).abs() < 1e-15,
                "{controls} {outlook:?}: {found}"
            );
        }
    }

    #[test]
    fn who_wants_more_control_runs_always_has_them() {
        let settings = Settings {
            control_every: 2,
            ..Settings::default()
        };
        for controls in [0, 20, 200] {
            let found = control_chance(&settings, controls, Outlook::Open);
            assert!((found - 0.5).abs() < 1e-15);
        }
    }
}
