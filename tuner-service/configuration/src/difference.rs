//! The differences between two configurations, by name.

use std::collections::BTreeSet;

use serde::Serialize;
use toml::{Table, Value};

use crate::ShownError;

/// The keys whose values differ between the two, such as `study.budget`.
///
/// # Errors
///
/// If one contains a value that TOML cannot express.
pub fn differences<T: Serialize>(one: &T, other: &T) -> Result<Vec<String>, ShownError> {
    let mut keys = Vec::new();
    compare(
        "",
        &Table::try_from(one)?,
        &Table::try_from(other)?,
        &mut keys,
    );
    Ok(keys)
}

fn compare(place: &str, one: &Table, other: &Table, keys: &mut Vec<String>) {
    let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for key in all {
        let place = if place.is_empty() {
            key.clone()
        } else {
            format!("{place}.{key}")
        };
        match (one.get(key), other.get(key)) {
            (Some(Value::Table(one)), Some(Value::Table(other))) => {
                compare(&place, one, other, keys);
            }
            (one, other) if one != other => keys.push(place),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let table = |text| toml::from_str::<Table>(text).unwrap();
        let one = table("a = 1\nb = 2\n[c]\nd = [1]\ne = 5\n[f]\n");
        let other = table("b = 2\n[c]\nd = [1, 2]\ne = 5\ng = 6\n[f]\n");
        assert_eq!(differences(&one, &other).unwrap(), ["a", "c.d", "c.g"]);
        assert!(differences(&one, &one).unwrap().is_empty());
    }
}
