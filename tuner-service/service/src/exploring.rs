//! The site's budgets for exploring, `[exploring]` of service.toml.

use std::collections::BTreeMap;

use io_autotune_engine::{BudgetOf, OverBudget};
use io_autotune_protocol::BudgetSummary;
use io_autotune_store::{Budgets, Spent, Store, StoreError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::reader::Reader;

const HOUR: f64 = 3600.0;

/// What a run is expected to take at most of which neither the time limit nor the default's elapsed is
/// known, in seconds: a whole day, so that few such runs explore at once.
const UNKNOWN: f64 = 24.0 * HOUR;

/// What the exploring runs of all studies may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ExploringConfig {
    node_hours: NodeHours,
}

/// Node-hours of a day; `None`: as many as there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NodeHours {
    site: Option<f64>,
    partition: Option<f64>,
    account: Option<f64>,
    user: Option<f64>,
}

impl NodeHours {
    fn of(&self, of: BudgetOf) -> Option<f64> {
        match of {
            BudgetOf::User => self.user,
            BudgetOf::Account => self.account,
            BudgetOf::Partition => self.partition,
            BudgetOf::Site => self.site,
        }
    }
}

impl ExploringConfig {
    pub(crate) fn validate(self) -> Result<(), String> {
        for of in BudgetOf::ALL {
            let hours = self.node_hours.of(*of);
            if let Some(hours) = hours.filter(|hours| !(0.0..=MOST_HOURS).contains(hours)) {
                return Err(format!(
                    "node_hours: {of} = {hours}: 0 to {MOST_HOURS:.0} are expected; leave it out for no bound"
                ));
            }
        }
        Ok(())
    }

    /// The budgets at this time; `None`: there are none.
    pub(crate) fn budgets(self, now: Timestamp) -> Option<Budgets> {
        let seconds = |of| self.node_hours.of(of).map(|hours| hours * HOUR);
        let budgets = Budgets {
            user: seconds(BudgetOf::User),
            account: seconds(BudgetOf::Account),
            partition: seconds(BudgetOf::Partition),
            site: seconds(BudgetOf::Site),
            utc_offset: 0,
        };
        budgets.bound_anything().then(|| Budgets {
            utc_offset: utc_offset(&TimeZone::system(), now),
            ..budgets
        })
    }
}

/// More than any site has in a day.
const MOST_HOURS: f64 = 1e9;

/// Seconds by which the clock of a time zone is ahead of UTC at this time.
pub(crate) fn utc_offset(zone: &TimeZone, now: Timestamp) -> i32 {
    zone.to_offset(now).seconds()
}

/// Node-seconds that an exploring run is expected to take at most, with the seconds within which it is
/// expected to end, if these are known.
pub(crate) fn cost(nodes: u32, expected_within: Option<f64>) -> f64 {
    f64::from(nodes.max(1)) * expected_within.unwrap_or(UNKNOWN)
}

/// The first budget that has no room for a run of this cost in node-seconds.
pub(crate) fn over(budgets: &Budgets, spent: &[Spent], cost: f64) -> Option<OverBudget> {
    let over = |one: &Spent| {
        let (budget, has_room) = budgets.room(one, cost)?;
        (!has_room).then(|| OverBudget {
            of: one.of,
            budget: budget / HOUR,
            run: cost / HOUR,
            // Stored with the decision, which the study's owner may read.
            spent: (one.of == BudgetOf::User).then_some(one.node_seconds / HOUR),
        })
    };
    spent.iter().find_map(over)
}

/// What is spent today of the budgets for exploring, by study.
pub(crate) struct Today {
    budgets: Budgets,
    spent: BTreeMap<i64, Vec<Spent>>,
}

impl Today {
    /// For these studies; `None`: exploring has no budget.
    pub(crate) async fn of(
        store: &Store,
        budgets: Option<Budgets>,
        studies: &[i64],
    ) -> Result<Option<Self>, StoreError> {
        let Some(budgets) = budgets else {
            return Ok(None);
        };
        let spent = store.exploring_spent(studies, budgets.utc_offset).await?;
        Ok(Some(Self { budgets, spent }))
    }

    fn spent(&self, study_id: i64) -> &[Spent] {
        self.spent.get(&study_id).map_or(&[], Vec::as_slice)
    }

    /// The first budget that has no room for a run of the study of this cost in node-seconds.
    pub(crate) fn over(&self, study_id: i64, cost: f64) -> Option<OverBudget> {
        over(&self.budgets, self.spent(study_id), cost)
    }

    /// The study's budgets as a reader sees them. Only who reads every user's runs learns what others
    /// spend.
    pub(crate) fn told(&self, study_id: i64, cost: f64, reader: Reader) -> Vec<BudgetSummary> {
        told(&self.budgets, self.spent(study_id), cost, reader)
    }
}

fn told(budgets: &Budgets, spent: &[Spent], cost: f64, reader: Reader) -> Vec<BudgetSummary> {
    let reads_all = matches!(reader, Reader::Admin | Reader::Operator);
    let told = |one: &Spent| {
        let (budget, has_room) = budgets.room(one, cost)?;
        let shows = reads_all || one.of == BudgetOf::User;
        Some(BudgetSummary {
            of: one.of,
            name: matches!(one.of, BudgetOf::Account | BudgetOf::Partition)
                .then(|| one.name.clone()),
            node_hours: budget / HOUR,
            spent: shows.then_some(one.node_seconds / HOUR),
            has_room,
        })
    };
    spent.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(of: BudgetOf, hours: f64) -> Spent {
        Spent {
            of,
            cluster: String::new(),
            name: "x".to_owned(),
            node_seconds: hours * HOUR,
        }
    }

    fn config(text: &str) -> ExploringConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_budget_is_a_number_of_node_hours_or_there_is_none() {
        assert_eq!(config("").budgets(Timestamp::UNIX_EPOCH), None);
        let two = config("node_hours = { site = 500, user = 0.5 }");
        two.validate().unwrap();
        let budgets = two.budgets(Timestamp::UNIX_EPOCH).unwrap();
        let of = BudgetOf::ALL.iter().map(|of| budgets.of(*of));
        let expected = [Some(1800.0), None, None, Some(500.0 * HOUR)];
        assert_eq!(of.collect::<Vec<_>>(), expected);
        for wrong in ["-1", "nan", "inf", "1e10"] {
            let wrong = config(&format!("node_hours = {{ account = {wrong} }}"));
            let problem = wrong.validate().unwrap_err();
            assert!(problem.starts_with("node_hours: account = "), "{problem}");
        }
        toml::from_str::<ExploringConfig>("node_hours = { group = 5 }").unwrap_err();
    }

    #[test]
    fn a_run_has_room_if_all_budgets_have_and_the_last_node_second_may_be_spent() {
        let budgets = config("node_hours = { site = 10, user = 2 }")
            .budgets(Timestamp::UNIX_EPOCH)
            .unwrap();
        let over = |user, site, cost: f64| {
            let spent = [
                spent(BudgetOf::User, user),
                spent(BudgetOf::Account, 1e6),
                spent(BudgetOf::Site, site),
            ];
            over(&budgets, &spent, cost * HOUR)
        };
        assert_eq!(over(1.5, 9.5, 0.5), None);
        let user = over(1.5, 9.5, 0.75).unwrap();
        assert_eq!((user.of, user.spent), (BudgetOf::User, Some(1.5)));
        let site = over(0.0, 9.5, 0.75).unwrap();
        assert_eq!(site.spent, None, "it is what others spend");
        assert_eq!(
            (site.of, site.budget, site.run),
            (BudgetOf::Site, 10.0, 0.75)
        );
    }

    #[test]
    fn only_who_reads_everyones_runs_learns_what_others_spend() {
        let budgets = config("node_hours = { site = 10, user = 2 }")
            .budgets(Timestamp::UNIX_EPOCH)
            .unwrap();
        let all = [spent(BudgetOf::User, 1.0), spent(BudgetOf::Site, 9.5)];
        let shown = |reader| {
            told(&budgets, &all, HOUR, reader)
                .into_iter()
                .map(|one| (one.of, one.spent, one.has_room))
                .collect::<Vec<_>>()
        };
        let user = (BudgetOf::User, Some(1.0), true);
        for reader in [Reader::User(1001), Reader::Coordinator(1002)] {
            assert_eq!(shown(reader), [user, (BudgetOf::Site, None, false)]);
        }
        for reader in [Reader::Operator, Reader::Admin] {
            assert_eq!(shown(reader), [user, (BudgetOf::Site, Some(9.5), false)]);
        }
    }

    #[test]
    fn what_is_not_known_of_a_run_is_taken_to_be_long() {
        assert_eq!(cost(4, Some(100.0)), 400.0);
        assert_eq!(cost(0, Some(100.0)), 100.0, "a node at least");
        assert_eq!(cost(2, None), 48.0 * HOUR);
    }

    #[test]
    fn a_day_begins_at_midnight_of_the_zone_in_summer_and_in_winter() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let at = |text: &str| utc_offset(&zone, text.parse().unwrap());
        assert_eq!(at("2026-01-15T00:00:00Z"), 3600);
        assert_eq!(at("2026-07-15T00:00:00Z"), 7200);
    }
}
