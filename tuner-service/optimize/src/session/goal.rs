//! The goal of a session: the number that it makes small or large, and as what that enters a history.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number that a session makes small or large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Seconds, few: the engine's own objective, of which it judges ratios.
    #[default]
    Seconds,
    /// Any number, small.
    Minimize,
    /// Any number, large.
    Maximize,
}

impl Goal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Seconds, Self::Minimize, Self::Maximize];

    /// The word of a command line and of a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Minimize => "minimize",
            Self::Maximize => "maximize",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|goal| goal.as_str() == word)
            .ok_or_else(|| format!("{word:?} is no goal: it must be seconds, minimize or maximize"))
    }
}

/// How the numbers of a goal enter a history.
///
/// The engine judges logarithms of seconds, with an idea of how far they usually scatter. Other
/// numbers are therefore brought to that scale: centred, divided by their spread, and raised. Where
/// all are positive and the largest is several times the smallest, ratios are judged, else
/// differences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    AsTold,
    Fitted {
        is_maximized: bool,
        is_ratio: bool,
        centre: f64,
        spread: f64,
    },
}

/// The largest over the smallest value from which ratios are judged.
const RATIOS_FROM: f64 = 8.0;
/// The default's seconds over the best's up to which a comparison is of seconds as they are: the upper
/// end of its interval is to be bounded too.
const MOST_AS_TOLD: f64 = 32.0;
/// A standard deviation of the values, on the engine's scale of logarithms.
const UNIT: f64 = 0.5;
/// Values that are worse than the middle by so many standard deviations are equally bad, and none is
/// better by more than that.
const MOST: f64 = 8.0;
/// The default is at most so many standard deviations worse than the best.
const NEAR: f64 = 4.0;

impl Scale {
    /// The scale for these values, among them that of the default, if it has one.
    pub(super) fn of(goal: Goal, values: &[f64], default: Option<f64>) -> Self {
        if goal == Goal::Seconds {
            return Self::AsTold;
        }
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let is_ratio = low > 0.0 && high / low >= RATIOS_FROM;
        let told = |value: f64| if is_ratio { libm::log(value) } else { value };
        let mut sorted: Vec<f64> = values.iter().copied().map(told).collect();
        sorted.sort_by(f64::total_cmp);
        let centre = default.map_or_else(|| quantile(&sorted, 0.5), told);
        // Half of the values tell the spread, so that a few that are far off do not flatten the rest.
        let middle = (quantile(&sorted, 0.75) - quantile(&sorted, 0.25)) / 1.349;
        let ends = sorted.first().zip(sorted.last());
        let whole = ends.map(|(low, high)| (high - low) / NEAR);
        // What was gained is told exactly: neither the default nor the best is cut off.
        let gained = default.zip(ends).map(|(default, (low, high))| {
            let best = if goal == Goal::Maximize { high } else { low };
            (told(default) - best).abs() / NEAR
        });
        let is_width = |one: &f64| *one > 0.0 && one.is_finite();
        let widths = [Some(middle), gained].into_iter().flatten();
        let spread = widths.filter(is_width).reduce(f64::max);
        let spread = spread.or(whole.filter(is_width));
        Self::Fitted {
            is_maximized: goal == Goal::Maximize,
            is_ratio,
            centre,
            spread: spread.unwrap_or(1.0),
        }
    }

    /// The scale of the comparison, after a search with these values. The engine bounds ratios up to 54:
    /// seconds of which the default takes many times the best are brought to its scale too.
    pub(super) fn to_compare(self, values: &[f64], default: Option<f64>) -> Self {
        let best = values.iter().copied().reduce(f64::min);
        let ratio = default.zip(best).map(|(default, best)| default / best);
        match self {
            Self::AsTold if ratio.is_some_and(|ratio| ratio > MOST_AS_TOLD) => {
                Self::of(Goal::Minimize, values, default)
            }
            _ => self,
        }
    }

    /// The number that enters a history: positive, and the smaller the better.
    pub(super) fn enter(self, value: f64) -> f64 {
        match self {
            Self::AsTold => value,
            Self::Fitted {
                is_maximized,
                is_ratio,
                centre,
                spread,
            } => {
                // A value of the comparison may be none that a logarithm is had of: then it is far off.
                let told = match is_ratio {
                    true => libm::log(value.max(f64::MIN_POSITIVE)),
                    false => value,
                };
                let sign = if is_maximized { -1.0 } else { 1.0 };
                libm::exp(UNIT * (sign * (told - centre) / spread).clamp(-MOST, MOST))
            }
        }
    }

    /// How much better something is that has the logarithm `log` less in a history: a share of the
    /// other where ratios are judged, else a difference.
    pub(super) fn better(self, log: f64) -> Better {
        match self {
            Self::AsTold => Better::Share(1.0 - libm::exp(-log)),
            Self::Fitted {
                is_maximized,
                is_ratio,
                spread,
                ..
            } => {
                let told = log * spread / UNIT;
                match (is_ratio, is_maximized) {
                    (false, _) => Better::Difference(told),
                    (true, false) => Better::Share(1.0 - libm::exp(-told)),
                    (true, true) => Better::Share(libm::exp(told) - 1.0),
                }
            }
        }
    }
}

/// How much better something is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Better {
    /// As a share of the other.
    Share(f64),
    /// In the value's own unit.
    Difference(f64),
}

/// A quantile of sorted values; 0 of none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among the values"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let below = place.floor() as usize;
    let (Some(low), Some(high)) = (
        sorted.get(below),
        sorted.get((below + 1).min(sorted.len().saturating_sub(1))),
    ) else {
        return 0.0;
    };
    low + (high - low) * (place - place.floor())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn seconds_enter_as_they_are_told() {
        let scale = Scale::of(Goal::Seconds, &[1.0, 3.0], None);
        assert_eq!(scale.enter(2.5), 2.5);
        assert_eq!(scale.better(std::f64::consts::LN_2), Better::Share(0.5));
    }

    #[test]
    fn a_difference_comes_back_as_it_was() {
        let values = [-3.0, -1.0, 0.0, 2.0, 5.0];
        for (goal, sign) in [(Goal::Minimize, 1.0), (Goal::Maximize, -1.0)] {
            let scale = Scale::of(goal, &values, None);
            let log = libm::log(scale.enter(2.0)) - libm::log(scale.enter(-1.0));
            let Better::Difference(better) = scale.better(log) else {
                panic!("{scale:?}");
            };
            assert!((better - sign * 3.0).abs() < 1e-9, "{goal}: {better}");
        }
    }

    #[test]
    fn a_ratio_comes_back_as_it_was() {
        let values = [1.0, 2.0, 10.0, 100.0];
        for (goal, from, to, share) in [
            (Goal::Minimize, 10.0, 2.0, 0.8),
            (Goal::Maximize, 2.0, 10.0, 4.0),
        ] {
            let scale = Scale::of(goal, &values, None);
            let log = libm::log(scale.enter(from)) - libm::log(scale.enter(to));
            let Better::Share(better) = scale.better(log) else {
                panic!("{scale:?}");
            };
            assert!((better - share).abs() < 1e-9, "{goal}: {better}");
        }
    }

    #[test]
    fn one_value_or_equal_ones_have_a_scale_too() {
        for values in [&[][..], &[0.0], &[7.0, 7.0, 7.0]] {
            for goal in Goal::ALL {
                let entered = Scale::of(goal, values, None).enter(7.0);
                assert!(entered > 0.0 && entered.is_finite());
            }
        }
    }

    /// Most values are nearly equal, and the default is far off.
    #[test]
    fn the_default_is_not_cut_off_however_little_the_other_values_scatter() {
        let near = [84.0, 99.0, 100.0, 99.0, 100.0, 100.0, 99.0, -1e9];
        let alike = [84.0, 100.0, -50.0, -50.0, -50.0, -50.0, -50.0, -50.0];
        for values in [near, alike] {
            let scale = Scale::of(Goal::Maximize, &values, Some(84.0));
            let log = libm::log(scale.enter(84.0)) - libm::log(scale.enter(100.0));
            let Better::Difference(better) = scale.better(log) else {
                panic!("{scale:?}");
            };
            assert!((better - 16.0).abs() < 1e-9, "{better}");
        }
    }

    #[test]
    fn words_are_goals() {
        for goal in Goal::ALL {
            assert_eq!(goal.to_string().parse(), Ok(goal));
        }
        assert!("best".parse::<Goal>().is_err());
    }

    proptest! {
        #[test]
        fn any_numbers_enter_positive_and_ranked_as_asked(
            values in prop::collection::vec(prop::num::f64::NORMAL, 1..30), maximized: bool,
        ) {
            let goal = if maximized { Goal::Maximize } else { Goal::Minimize };
            let scale = Scale::of(goal, &values, None);
            for pair in values.windows(2) {
                let [a, b] = [pair[0], pair[1]].map(|value| scale.enter(value));
                prop_assert!(a > 0.0 && a.is_finite());
                if pair[0] < pair[1] {
                    let (better, worse) = if maximized { (b, a) } else { (a, b) };
                    prop_assert!(better <= worse);
                }
            }
        }
    }
}
