//! Migration: the part of an epoch's history that is valid in a changed space.
//!
//! A run fits the new space if the new space would have given it the same values. A new parameter
//! was at its default: a run has the default without the tuner. A removed parameter will be at its
//! default, so only runs that had the default fit. A value that is no longer offered fits nothing.

use std::collections::BTreeMap;

use crate::history::{History, Tally, Tested};
use crate::space::{Parameter, Parametrization, Space};

/// The same parametrization in the space `to`; none if `to` does not have it.
pub fn carried_parametrization(
    parametrization: &Parametrization,
    from: &Space,
    to: &Space,
) -> Option<Parametrization> {
    from.validate(parametrization).ok()?;
    let mut values = BTreeMap::new();
    for (name, value) in &parametrization.0 {
        if named(to, name).is_some() {
            values.insert(name.clone(), value.clone());
        } else if named(from, name)?.default != *value {
            return None;
        }
    }
    to.complete(&values).ok()
}

/// The history of an epoch in the space `to` that follows one in `from`.
///
/// A settled study stays settled if its choice stands: see [`stays_settled`]. A study that searches
/// continues where it is if `to` offers nothing new; otherwise it gets a full budget again, with
/// all runs that are known. The regret so far still counts.
pub fn carried(history: &History, from: &Space, to: &Space) -> History {
    let tested = history
        .tested
        .iter()
        .filter_map(|tested| {
            let parametrization = carried_parametrization(&tested.parametrization, from, to)?;
            Some(Tested {
                parametrization,
                ..tested.clone()
            })
        })
        .collect();
    let goes_on = match history.tally.settled {
        0 => offers_nothing_new(from, to),
        _ => stays_settled(from, to),
    };
    let tally = if goes_on {
        history.tally
    } else {
        Tally {
            explored: 0,
            settled: 0,
            settled_controls: 0,
            proof: 0,
            ..history.tally
        }
    };
    History { tested, tally }
}

/// Returns true if a study that has settled in the space `from` stays settled in `to`: one of the
/// two offers all that the other does, with the same defaults. The choice stands if it is still
/// offered, and so does the gain claimed for it. New values are explored when somebody resets the
/// study.
#[must_use]
pub fn stays_settled(from: &Space, to: &Space) -> bool {
    offers_nothing_new(from, to) || offers_nothing_new(to, from)
}

fn offers_nothing_new(from: &Space, to: &Space) -> bool {
    let known = |parameter: &Parameter| {
        named(from, &parameter.name).is_some_and(|old| {
            old.default == parameter.default
                && old.when == parameter.when
                && (0..parameter.levels()).all(|level| {
                    parameter
                        .value_at(level)
                        .is_some_and(|v| old.level_of(&v).is_some())
                })
        })
    };
    to.parameters().iter().all(known)
        && from
            .constraints()
            .iter()
            .all(|rule| to.constraints().contains(rule))
}

fn named<'a>(space: &'a Space, name: &str) -> Option<&'a Parameter> {
    space.parameters().iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::space::Value;

    fn space(sizes: &[i64], default: i64, more: &[Json]) -> Space {
        let mut parameters =
            vec![json!({ "name": "size", "kind": "ordered", "values": sizes, "default": default })];
        parameters.extend_from_slice(more);
        serde_json::from_value(json!(parameters)).unwrap()
    }

    fn sieve() -> Json {
        json!({ "name": "sieve", "kind": "categories", "values": ["off", "on"], "default": "off" })
    }

    fn point(values: &[(&str, Value)]) -> Parametrization {
        let own = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone());
        Parametrization(values.iter().map(own).collect())
    }

    fn history(space: &Space, points: &[Parametrization]) -> History {
        let tested = points.iter().zip(1..).map(|(point, ordinal)| {
            assert!(space.validate(point).is_ok(), "{point}");
            let mut tested = Tested::new(point.clone(), ordinal);
            tested.record(ordinal, ordinal as f64).unwrap();
            tested
        });
        let tally = Tally {
            explored: 5,
            baseline: 4,
            controls: 3,
            settled: 2,
            settled_controls: 1,
            proof: 0,
            total: 15,
        };
        History {
            tested: tested.collect(),
            tally,
        }
    }

    #[test]
    fn a_new_parameter_was_at_its_default() {
        let (from, to) = (space(&[1, 2], 1, &[]), space(&[1, 2, 4], 1, &[sieve()]));
        let old = history(
            &from,
            &[point(&[("size", 1.into())]), point(&[("size", 2.into())])],
        );
        let new = carried(&old, &from, &to);
        let expected = point(&[("size", 2.into()), ("sieve", "off".into())]);
        assert_eq!(new.tested.len(), 2);
        assert_eq!(new.tested[1].parametrization, expected);
        assert_eq!(new.tested[1].elapsed, old.tested[1].elapsed);
        assert_eq!(new.tally, old.tally, "it has settled, and stays so");
    }

    #[test]
    fn a_study_that_searches_explores_what_is_new() {
        let from = space(&[1, 2], 1, &[]);
        let mut old = history(&from, &[point(&[("size", 1.into())])]);
        old.tally.settled = 0;
        for to in [space(&[1, 2, 4], 1, &[]), space(&[1, 2], 1, &[sieve()])] {
            let new = carried(&old, &from, &to);
            assert_eq!((new.tally.explored, new.tally.total), (0, 15));
        }
    }

    #[test]
    fn a_settled_study_stays_so_whatever_is_added() {
        let from = space(&[1, 2], 1, &[]);
        for (to, stays) in [
            (space(&[1, 2, 4], 1, &[]), true),
            (space(&[1, 2], 1, &[sieve()]), true),
            (space(&[1], 1, &[]), true),
            (space(&[1, 4], 1, &[]), false),
            (space(&[1, 2, 4], 2, &[]), false),
        ] {
            assert_eq!(stays_settled(&from, &to), stays, "{to:?}");
            let old = history(&from, &[point(&[("size", 1.into())])]);
            assert_eq!(carried(&old, &from, &to).tally.settled > 0, stays);
        }
    }

    #[test]
    fn a_removed_value_or_parameter_takes_its_runs_along() {
        let from = space(&[1, 2, 4], 1, &[sieve()]);
        let both =
            |size: i64, sieve: &str| point(&[("size", size.into()), ("sieve", sieve.into())]);
        let old = history(&from, &[both(1, "off"), both(4, "off"), both(2, "on")]);
        let fewer = carried(&old, &from, &space(&[1, 2], 1, &[sieve()]));
        let left: Vec<_> = fewer
            .tested
            .iter()
            .map(|t| t.parametrization.clone())
            .collect();
        assert_eq!(left, [both(1, "off"), both(2, "on")]);
        assert_eq!(fewer.tally, old.tally, "there is nothing new to find");

        let without = carried(&old, &from, &space(&[1, 2, 4], 1, &[]));
        let left: Vec<_> = without
            .tested
            .iter()
            .map(|t| t.parametrization.clone())
            .collect();
        assert_eq!(
            left,
            [point(&[("size", 1.into())]), point(&[("size", 4.into())])]
        );
    }

    #[test]
    fn another_default_is_measured_anew() {
        let (from, to) = (space(&[1, 2], 1, &[]), space(&[1, 2], 2, &[]));
        let new = carried(&history(&from, &[point(&[("size", 1.into())])]), &from, &to);
        assert_eq!((new.tested.len(), new.tally.settled), (1, 0));
    }

    #[test]
    fn what_never_fitted_is_left_behind() {
        let (from, to) = (space(&[1, 2], 1, &[]), space(&[1, 2, 4], 1, &[]));
        let mut old = history(&from, &[point(&[("size", 1.into())])]);
        old.tested[0].parametrization = point(&[("size", 4.into())]);
        assert!(carried(&old, &from, &to).tested.is_empty());
    }
}
