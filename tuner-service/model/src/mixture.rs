//! Mixed work: runs too different for one application.

use std::fmt;

use crate::reason::Reason;
use crate::text::different;

/// Runs too different for one application on a quiet machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture {
    /// The coefficient of variation of the default's runs: standard deviation over mean.
    pub cv: f64,
    /// The number of judged runs of the default.
    pub runs: u64,
    /// The number of runs of another parametrization that were judged with them.
    pub tuned: u64,
    /// The geometric means of the fast and the slow group, in seconds of the default, ascending;
    /// none if the runs do not form two groups.
    pub modes: Option<(f64, f64)>,
    /// True if fast and slow runs alternate, which shows different work. Otherwise the machine may
    /// have been busy during the slow runs.
    pub in_turn: bool,
}

impl From<Mixture> for Reason {
    fn from(mixture: Mixture) -> Self {
        Reason::Mixed {
            cv: mixture.cv,
            runs: mixture.runs,
            tuned: mixture.tuned,
            modes: mixture.modes,
        }
    }
}

impl Mixture {
    /// The finding. A study that is `observed` applies nothing until it is settled what its work is;
    /// any other is tuned on.
    pub fn told(&self, observed: bool) -> String {
        if !observed {
            return self.to_string();
        }
        format!(
            "{}, which looks like different work under one name; nothing is applied until that is \
             settled",
            fmt::from_fn(|f| different(f, self.cv, self.runs, self.tuned, self.modes))
        )
    }
}

/// The text of the finding, while the study is still tuned.
impl fmt::Display for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        different(f, self.cv, self.runs, self.tuned, self.modes)?;
        f.write_str(if self.in_turn {
            " in turn, which looks like two works under one name; tuning goes on meanwhile"
        } else {
            ", but it cannot be told whether the work differs or the machine was busy for a while; \
             tuning goes on"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_differs_and_whether_tuning_goes_on() {
        let mixture = Mixture {
            cv: 0.4,
            runs: 8,
            tuned: 0,
            modes: Some((10.0, 20.0)),
            in_turn: true,
        };
        for in_turn in [true, false] {
            let text = Mixture { in_turn, ..mixture }.to_string();
            let start = "the last 8 runs of the default gather around two times, 10 s and 20 s";
            assert!(text.starts_with(start), "{text}");
            assert_eq!(text.contains("two works under one name"), in_turn);
            assert!(text.contains("tuning goes on"), "{text}");
            let observed = Mixture { in_turn, ..mixture }.told(true);
            assert!(observed.starts_with(start), "{observed}");
            assert!(observed.ends_with("nothing is applied until that is settled"));
        }
    }
}
