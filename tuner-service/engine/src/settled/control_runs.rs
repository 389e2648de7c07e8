//! The probability with which a run of a settled epoch has the default, so that the gain is still
//! measured under present conditions. The choice is drawn at random: at fixed distances control
//! runs would always meet the same step of a workflow.

use io_autotune_model::Outlook;

use crate::study::settings::Settings;

/// The probability of a control run after `controls` control runs of a settled epoch. `is_proven`
/// means that the resolved claim is of the proof before the search had ended, for the
/// parametrization recommended then.
pub fn control_chance(
    settings: &Settings,
    controls: u64,
    outlook: Outlook,
    is_proven: bool,
) -> f64 {
    let often = settings.control_every;
    let every = match outlook {
        // Each control run costs the gain. After a proof a few of them show what the search has
        // found since.
        Outlook::Resolved if is_proven && controls < u64::from(settings.controls_at_first / 4) => {
            often
        }
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
        for (controls, outlook, is_proven, chance) in [
            (0, Outlook::Open, false, 1.0 / 2.0),
            (0, Outlook::Open, true, 1.0 / 2.0),
            (19, Outlook::Promising, false, 1.0 / 2.0),
            (5, Outlook::Resolved, false, 1.0 / 20.0),
            (4, Outlook::Resolved, true, 1.0 / 10.0),
            (5, Outlook::Resolved, true, 1.0 / 20.0),
            (20, Outlook::Open, false, 1.0 / 10.0),
            (20, Outlook::Promising, false, 1.0 / 3.0),
            (149, Outlook::Promising, false, 1.0 / 3.0),
            (150, Outlook::Promising, false, 1.0 / 10.0),
            (1000, Outlook::Resolved, false, 1.0 / 20.0),
        ] {
            let found = control_chance(&settings, controls, outlook, is_proven);
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
            let found = control_chance(&settings, controls, Outlook::Open, false);
            assert!((found - 0.5).abs() < 1e-15);
        }
    }
}
