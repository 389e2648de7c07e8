//! What a study says of how much can be won, and whether that is so.

use super::{Group, Metric};

/// The share of studies that say it.
pub const SAYS: &str = "Says";
/// When they say it.
pub const SAYS_AFTER: &str = "SaysAfter";
/// The share of studies that say it wrongly.
pub const SAYS_WRONGLY: &str = "SaysWrongly";

pub(super) const SAID: Group = Group {
    name: "said",
    title: "Nothing to win: a study ends its search because at most so much can be won",
    metrics: &[
        Metric {
            name: SAYS,
            unit: "%",
            meaning: "how often it does",
            of: |course| Some(percent(course.trajectory.said.is_some())),
        },
        Metric {
            name: SAYS_AFTER,
            unit: "runs",
            meaning: "after how many runs, where it does",
            of: |course| Some(course.trajectory.said?.after as f64),
        },
        Metric {
            name: SAYS_WRONGLY,
            unit: "%",
            meaning: "how often more can be won than it says",
            of: |course| {
                let best = 1.0 - course.best() / course.default();
                let said = course.trajectory.said;
                Some(percent(said.is_some_and(|said| best > said.most)))
            },
        },
    ],
};

fn percent(is_so: bool) -> f64 {
    if is_so { 100.0 } else { 0.0 }
}
