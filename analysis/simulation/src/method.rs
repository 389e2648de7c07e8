//! A method with its settings, as one word of a command line.

use std::str::FromStr;

use io_autotune_engine::{MethodName, Settings, SettingsError, UnknownWord};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// A method and its settings: `NAME` or `NAME:key=value,...`.
///
/// Keys are names of [`Settings`], nested ones joined by dots. The method's own section may be left
/// out, and wins over a general setting of the same name:
/// `robert2020:mutation_rate=0.1,selection=probabilistic,crossover=n_point,crossover.points=2`. A
/// setting with several kinds takes the kind first, then its fields.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodSpec {
    /// The text.
    pub label: String,
    /// The settings; `budget` only if the text has it.
    pub settings: Settings,
    /// True if the text sets the budget of exploring runs.
    pub sets_budget: bool,
}

/// A method or a setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// An unknown method.
    #[error(transparent)]
    Name(#[from] UnknownWord),
    /// A part without a name or a value.
    #[error("{method}: {part:?} is not a setting: write key=value, several separated by commas")]
    Part {
        /// The method.
        method: String,
        /// The part.
        part: String,
    },
    /// An unknown key or a wrong value.
    #[error("{method}: {part}: {error}; the method's settings are {known}")]
    Setting {
        /// The method.
        method: String,
        /// The setting, or several.
        part: String,
        /// The problem.
        error: String,
        /// The valid keys.
        known: String,
    },
    /// A value out of range.
    #[error("{method}: {error}")]
    Range {
        /// The method.
        method: String,
        /// The setting and its range.
        error: SettingsError,
    },
}

impl FromStr for MethodSpec {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        let (name, parts) = text.split_once(':').unwrap_or((text, ""));
        let method: MethodName = name.parse()?;
        let mut settings = tree(&Settings {
            method,
            ..Settings::default()
        });
        let mut sets_budget = false;
        let refused = |part: &str, error: String| MethodError::Setting {
            method: name.to_owned(),
            part: part.to_owned(),
            error,
            known: known(method.as_str()),
        };
        for part in parts.split(',').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part
                .split_once('=')
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
            else {
                return Err(MethodError::Part {
                    method: name.to_owned(),
                    part: part.to_owned(),
                });
            };
            set(&mut settings, method.as_str(), key, value)
                .map_err(|error| refused(part, error))?;
            sets_budget |= key == "budget";
        }
        // Only now: a kind may come before the fields that it requires.
        let settings =
            Settings::deserialize(settings).map_err(|error| refused(parts, error.to_string()))?;
        settings.validate().map_err(|error| MethodError::Range {
            method: name.to_owned(),
            error,
        })?;
        Ok(MethodSpec {
            label: text.to_owned(),
            settings,
            sets_budget,
        })
    }
}

fn tree(settings: &Settings) -> Json {
    serde_json::to_value(settings).unwrap_or_default()
}

fn set(settings: &mut Json, method: &str, key: &str, value: &str) -> Result<(), String> {
    let value = serde_json::from_str(value).unwrap_or_else(|_| Json::from(value));
    let first = key.split('.').next().unwrap_or(key);
    let general = settings.get(first).is_some();
    let own = settings
        .get(method)
        .is_some_and(|own| own.is_object() && (own.get(first).is_some() || !general));
    let node = if own { &mut settings[method] } else { settings };
    put(node, key, value)
}

fn put(node: &mut Json, key: &str, value: Json) -> Result<(), String> {
    let Some(object) = node.as_object_mut() else {
        return Err("it has no settings of its own".to_owned());
    };
    if let Some((first, rest)) = key.split_once('.') {
        let inner = object
            .entry(first)
            .or_insert_with(|| Json::Object(Map::new()));
        return put(inner, rest, value);
    }
    // A new kind has other fields: the old ones go.
    let of_kinds = object.get(key).is_some_and(|old| old.get("kind").is_some());
    if of_kinds && !value.is_object() {
        object.insert(key.to_owned(), serde_json::json!({ "kind": value }));
    } else {
        object.insert(key.to_owned(), value);
    }
    Ok(())
}

/// The keys of a method, its own first.
fn known(method: &str) -> String {
    let tree = tree(&Settings::default());
    let mut keys = Vec::new();
    if let Some(own) = tree.get(method).and_then(Json::as_object) {
        keys.extend(own.keys().cloned());
    }
    let general = tree.as_object().into_iter().flatten();
    keys.extend(
        general
            .filter(|(key, value)| !value.is_object() && *key != "method")
            .map(|(key, _)| key.clone()),
    );
    keys.dedup();
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use io_autotune_engine::{Acquisition, Cao2018Cooling, Crossover, Selection};

    use super::*;

    fn read(text: &str) -> MethodSpec {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_alone_is_the_method_as_it_is() {
        let spec = read("default");
        assert_eq!(spec.settings.method, MethodName::SurrogateGenetic);
        assert_eq!(spec.settings.robert2020, Settings::default().robert2020);
        assert!(!spec.sets_budget);
    }

    #[test]
    fn keys_are_the_settings_names() {
        let spec = read(
            "robert2020:mutation_rate=0.1,selection=probabilistic,crossover=n_point,crossover.points=2,exploring=3,budget=20",
        );
        let robert2020 = &spec.settings.robert2020;
        assert_eq!(robert2020.mutation_rate, 0.1);
        assert_eq!(robert2020.selection, Selection::Probabilistic);
        assert_eq!(robert2020.crossover, Crossover::NPoint { points: 2 });
        assert_eq!((spec.settings.exploring, spec.settings.budget), (3, 20));
        assert!(spec.sets_budget);
        let spec = read("robert2020:selection.pool_size=3");
        assert_eq!(
            spec.settings.robert2020.selection,
            Selection::Tournament { pool_size: 3 }
        );
        // The method's own setting, not the general one of the same name.
        let spec = read("default:design_points=6");
        assert_eq!(
            (
                spec.settings.surrogate_genetic.design_points,
                spec.settings.design_points
            ),
            (6, 15)
        );
        assert_eq!(read("robert2020:design_points=6").settings.design_points, 6);
        // Sections have the names of the methods.
        let spec = read("robert2019-surrogate:acquisition=posterior_minimum,design_points=9");
        assert_eq!(
            spec.settings.robert2019_surrogate.acquisition,
            Acquisition::PosteriorMinimum
        );
        assert_eq!(spec.settings.robert2019_surrogate.design_points, 9);
        let spec = read("cao2018-annealing:cooling=geometric,cooling.factor=0.9");
        assert_eq!(
            spec.settings.cao2018_annealing.cooling,
            Cao2018Cooling::Geometric { factor: 0.9 }
        );
        assert_eq!(
            read("default:robert2020.mutation_rate=0.5")
                .settings
                .robert2020
                .mutation_rate,
            0.5
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("magic", "it must be one of"),
            ("robert2020:mutation", "write key=value"),
            ("robert2020:=3", "write key=value"),
            ("robert2020:mutations=3", "mutation_rate"),
            ("robert2020:selection=best", "probabilistic"),
            ("robert2020:mutation_rate=high", "mutation_rate=high"),
            ("robert2020:mutation_rate=2", "from 0 to 1"),
            ("default:exploring.x=2", "no settings of its own"),
        ] {
            let message = text.parse::<MethodSpec>().unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
