//! Budgets for exploring: what the trials of all studies together may cost on a day.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::word_enum;

/// Whose budget for exploring it is. A start is charged in this order, what most starts have in
/// common last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum BudgetOf {
    /// The owner of the study.
    User,
    /// The account that the study is charged to.
    Account,
    /// The partition of the job.
    Partition,
    /// The whole site.
    Site,
}

word_enum!(BudgetOf, "budget for exploring",
    User => "user", Account => "account", Partition => "partition", Site => "site");

/// A budget for exploring that has no room for a run. Amounts are node-hours of one day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverBudget {
    /// Whose budget it is.
    pub of: BudgetOf,
    /// The budget.
    pub budget: f64,
    /// What the run is expected to take at most, if it explores.
    pub run: f64,
    /// What the day's exploring runs have taken so far, and what those in flight are expected to
    /// take. Only of a user's own budget: a study's owner may not learn what others spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<f64>,
}

impl OverBudget {
    /// Returns true if the run has no room in the budget on any day.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.run > self.budget
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverBudget {
            of,
            budget,
            run,
            spent,
        } = self;
        let [budget, run] = [*budget, *run].map(amount);
        match spent {
            _ if self.is_too_large() => write!(
                f,
                "a run that explores may take {run} node-hours, and the {of} has {budget} a day for exploring"
            ),
            Some(spent) => write!(
                f,
                "the {of} has spent {} of {budget} node-hours for exploring today, and this run may take {run}",
                amount(*spent)
            ),
            None => write!(
                f,
                "what is left today of the {of}'s {budget} node-hours for exploring is not enough for this run, \
                 which may take {run}"
            ),
        }
    }
}

/// Node-hours with three significant digits at most, but with all digits before the point, without
/// trailing zeros.
#[must_use]
pub fn amount(hours: f64) -> String {
    let decimals = match hours {
        hours if hours >= 99.95 => 0,
        hours if hours >= 9.995 => 1,
        hours if hours >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{hours:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_spend_is_not_said() {
        let over = |of, run, spent| OverBudget {
            of,
            budget: 20.0,
            run,
            spent,
        };
        for (over, said) in [
            (
                over(BudgetOf::User, 1.5, Some(19.04)),
                "the user has spent 19 of 20 node-hours for exploring today, and this run may take 1.5",
            ),
            (
                over(BudgetOf::Site, 1.5, None),
                "what is left today of the site's 20 node-hours for exploring is not enough for this run, which may take 1.5",
            ),
            (
                over(BudgetOf::User, 40.0, Some(0.0)),
                "a run that explores may take 40 node-hours, and the user has 20 a day for exploring",
            ),
        ] {
            assert_eq!(over.to_string(), said);
            let stored = serde_json::to_string(&over).unwrap();
            assert_eq!(serde_json::from_str::<OverBudget>(&stored).unwrap(), over);
        }
    }

    #[test]
    fn amounts_are_short() {
        for (hours, text) in [
            (0.0, "0"),
            (0.0004, "0"),
            (0.25, "0.25"),
            (2.0 / 3.0, "0.667"),
            (19.96, "20"),
            (123.4, "123"),
            (1234.5, "1234"),
        ] {
            assert_eq!(amount(hours), text);
        }
    }
}
