//! The JSON file of a data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use io_autotune_engine::{Condition, Constraint, Domain, Parameter, Parametrization, Point};
use io_autotune_engine::{Space, Value};
use serde::Deserialize;
use serde_json::Value as Json;

use super::DatasetError;

/// The space of a data set's JSON file, with the file's spelling of values.
///
/// `kind` is `categorical` (a set), `ordinal` (an ordered list) or `int` (evenly spaced ascending
/// integers become a range, others an ordered list). A value is a number, a word, `true` or
/// `false`; the engine has the latter two as words. Without a `default` it is the middle (lower of
/// two) level of each ordered parameter and the first of each set. Beyond the published format
/// there are `when` and `constraints`, as in the catalogue ([`Condition`], [`Constraint`]).
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceFile {
    /// The data set's name: the file's `name`, otherwise its stem.
    pub name: String,
    /// The space.
    pub space: Space,
    /// Whether the file has a default.
    pub has_default: bool,
    /// Its `measures`: columns of the CSV file that are measures of each run.
    pub measures: Vec<String>,
    /// Its `first`: other defaults, with which a study can begin (cao2018, section 4.2).
    pub first: Vec<Parametrization>,
    /// The file's spelling of each level of each parameter.
    spelling: Vec<Vec<Json>>,
}

#[derive(Deserialize)]
struct RawFile {
    name: Option<String>,
    parameters: Vec<RawParameter>,
    default: Option<BTreeMap<String, Json>>,
    #[serde(default)]
    constraints: Vec<Json>,
    #[serde(default)]
    measures: Vec<String>,
    #[serde(default)]
    first: Vec<BTreeMap<String, Json>>,
}

#[derive(Deserialize)]
struct RawParameter {
    name: String,
    kind: Kind,
    values: Vec<Json>,
    when: Option<Json>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Categorical,
    Ordinal,
    Int,
}

impl SpaceFile {
    /// Reads a file. Errs, with file and place, when it cannot be read or describes no space.
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let text = std::fs::read_to_string(path).map_err(|error| DatasetError::Read {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file; `path` gives the name and is for messages. Errs, with file and
    /// place, when it describes no space.
    pub fn parse(text: &str, path: &Path) -> Result<Self, DatasetError> {
        let path: PathBuf = path.to_owned();
        let raw: RawFile = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(error) => return Err(DatasetError::Json { path, error }),
        };
        let mut parameters = Vec::with_capacity(raw.parameters.len());
        for parameter in &raw.parameters {
            let read = parameter.read(raw.default.as_ref());
            parameters.push(read.map_err(|problem| DatasetError::Parameter {
                path: path.clone(),
                parameter: parameter.name.clone(),
                problem,
            })?);
        }
        let known = |name: &String| raw.parameters.iter().any(|known| known.name == *name);
        if let Some(name) = raw.default.iter().flatten().find(|(name, _)| !known(name)) {
            return Err(DatasetError::Parameter {
                path,
                parameter: name.0.clone(),
                problem:
                    "the default gives it a value, but it is not among the parameters: add it \
                          there or remove it here"
                        .to_owned(),
            });
        }
        let stem = || {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
        };
        let name = raw.name.or_else(stem).unwrap_or_default();
        let constraints = raw.constraints.iter().enumerate();
        let constraints = constraints
            .map(|(index, constraint)| {
                Constraint::deserialize(words(constraint)).map_err(|error| {
                    DatasetError::Constraint {
                        path: path.clone(),
                        number: index + 1,
                        problem: error.to_string(),
                    }
                })
            })
            .collect::<Result<_, _>>()?;
        match Space::constrained(parameters, constraints) {
            Ok(space) => Ok(SpaceFile {
                name,
                first: first(&space, &raw.first, &path)?,
                measures: raw.measures,
                space,
                has_default: raw.default.is_some(),
                spelling: raw.parameters.into_iter().map(|p| p.values).collect(),
            }),
            Err(error) => Err(DatasetError::Space { path, error }),
        }
    }

    /// A parametrization in the file's spelling, without unknown names and values.
    pub fn spell(&self, parametrization: &Parametrization) -> serde_json::Map<String, Json> {
        let parameters = self.space.parameters().iter().zip(&self.spelling);
        parameters
            .filter_map(|(parameter, spelling)| {
                let value = parametrization.0.get(&parameter.name)?;
                let level = parameter.level_of(value)?;
                Some((parameter.name.clone(), spelling.get(level)?.clone()))
            })
            .collect()
    }

    pub(super) fn with_default(
        &self,
        default: &Point,
    ) -> Result<Self, io_autotune_engine::SpaceError> {
        let values = self.space.parametrization(default).0;
        let mut parameters = self.space.parameters().to_vec();
        for parameter in &mut parameters {
            if let Some(value) = values.get(&parameter.name) {
                parameter.default = value.clone();
            }
        }
        Ok(SpaceFile {
            space: Space::constrained(parameters, self.space.constraints().to_vec())?,
            ..self.clone()
        })
    }
}

/// The parametrizations of the file's `first`, which have to fit the space.
fn first(
    space: &Space,
    raw: &[BTreeMap<String, Json>],
    path: &Path,
) -> Result<Vec<Parametrization>, DatasetError> {
    let refused = |number: usize, problem: String| DatasetError::First {
        path: path.to_owned(),
        number: number + 1,
        problem,
    };
    let parametrization = |(number, named): (usize, &BTreeMap<String, Json>)| {
        let values = named
            .iter()
            .map(|(name, json)| Ok((name.clone(), value(json)?)));
        let values = values.collect::<Result<_, String>>();
        let read = Parametrization(values.map_err(|problem| refused(number, problem))?);
        match space.validate(&read) {
            Ok(_) => Ok(read),
            Err(error) => Err(refused(number, error.to_string())),
        }
    };
    raw.iter().enumerate().map(parametrization).collect()
}

impl RawParameter {
    fn read(&self, default: Option<&BTreeMap<String, Json>>) -> Result<Parameter, String> {
        let values: Vec<Value> = self.values.iter().map(value).collect::<Result<_, _>>()?;
        let default =
            match default {
                Some(default) => value(default.get(&self.name).ok_or(
                    "the default gives it no value: add one, or write \"default\": null",
                )?)?,
                None => {
                    let level = match self.kind {
                        Kind::Categorical => 0,
                        Kind::Ordinal | Kind::Int => values.len().saturating_sub(1) / 2,
                    };
                    values
                        .get(level)
                        .cloned()
                        .ok_or("it has no values: list at least one")?
                }
            };
        let domain = match self.kind {
            Kind::Categorical => Domain::Categories { values },
            Kind::Ordinal => Domain::Ordered { values },
            Kind::Int => integers(values)?,
        };
        let when = self.when.as_ref().map(|when| {
            Condition::deserialize(words(when)).map_err(|error| {
                format!("when: {error}: write {{\"parameter\": NAME, \"is\": [VALUE, ..]}}")
            })
        });
        Ok(Parameter {
            name: self.name.clone(),
            domain,
            default,
            when: when.transpose()?,
            unit: None,
            description: None,
        })
    }
}

/// A range if the numbers are evenly spaced and ascend; an ordered list otherwise.
fn integers(values: Vec<Value>) -> Result<Domain, String> {
    let numbers: Vec<i64> = values
        .iter()
        .map(|value| match value {
            Value::Integer(number) => Ok(*number),
            other => Err(format!(
                "{:?} is not a whole number: correct it, or make the kind \"ordinal\"",
                other.to_string()
            )),
        })
        .collect::<Result<_, _>>()?;
    let (Some(min), Some(max)) = (numbers.first(), numbers.last()) else {
        return Ok(Domain::Ordered { values });
    };
    let step = match numbers.get(1) {
        Some(second) => second.checked_sub(*min).unwrap_or_default(),
        None => 1,
    };
    let even = numbers
        .windows(2)
        .all(|pair| pair[1].checked_sub(pair[0]) == Some(step));
    Ok(if even && step >= 1 {
        Domain::Integer {
            min: *min,
            max: *max,
            step,
        }
    } else {
        Domain::Ordered { values }
    })
}

fn value(json: &Json) -> Result<Value, String> {
    match json {
        Json::Bool(truth) => Ok(Value::Text(truth.to_string())),
        Json::Number(_) | Json::String(_) => {
            Value::deserialize(json).map_err(|error| format!("{json} cannot be used: {error}"))
        }
        other => Err(format!(
            "{other} cannot be a value: write a number, a word, true or false"
        )),
    }
}

/// The same with all `true` and `false` as words.
fn words(json: &Json) -> Json {
    match json {
        Json::Bool(truth) => Json::String(truth.to_string()),
        Json::Array(items) => items.iter().map(words).collect(),
        Json::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, json)| (name.clone(), words(json)))
                .collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SpaceFile, DatasetError> {
        SpaceFile::parse(text, Path::new("dir/table.json"))
    }

    const ALL: &str = r#"{"tier": "A", "parameters": [
        {"name": "set", "kind": "categorical", "values": ["x", true, 0]},
        {"name": "list", "kind": "ordinal", "values": [1, 2.50, 64, "64K"]},
        {"name": "range", "kind": "int", "values": [2, 4, 6]},
        {"name": "uneven", "kind": "int", "values": [1, 2, 4]},
        {"name": "one", "kind": "int", "values": [7]}], "default": null}"#;

    #[test]
    fn kinds_become_domains_and_values_come_back_as_they_were() {
        let file = parse(ALL).unwrap();
        assert_eq!(file.name, "table");
        assert!(!file.has_default);
        let domain = |index: usize| &file.space.parameters()[index].domain;
        assert!(matches!(domain(0), Domain::Categories { values } if values.len() == 3));
        assert!(matches!(domain(1), Domain::Ordered { values } if values.len() == 4));
        assert_eq!(
            *domain(2),
            Domain::Integer {
                min: 2,
                max: 6,
                step: 2
            }
        );
        assert!(matches!(domain(3), Domain::Ordered { .. }));
        assert_eq!(
            *domain(4),
            Domain::Integer {
                min: 7,
                max: 7,
                step: 1
            }
        );
        assert_eq!(file.space.default_point(), Point(vec![0, 1, 1, 1, 0]));
        let spelled = file.spell(&file.space.parametrization(&Point(vec![1, 1, 2, 0, 0])));
        assert_eq!(
            Json::Object(spelled),
            serde_json::json!({"set": true, "list": 2.5, "range": 6, "uneven": 1, "one": 7})
        );
    }

    #[test]
    fn a_default_is_taken_as_it_is() {
        let file = parse(&ALL.replace(
            "null",
            r#"{"set": true, "list": "64K", "range": 6.0, "uneven": 4, "one": 7}"#,
        ))
        .unwrap();
        assert!(file.has_default);
        assert_eq!(file.space.default_point(), Point(vec![1, 3, 2, 2, 0]));
        let moved = file.with_default(&Point(vec![0, 0, 0, 0, 0])).unwrap();
        assert_eq!(moved.space.default_point(), Point(vec![0; 5]));
    }

    #[test]
    fn conditions_and_constraints_are_read() {
        let text = |when: &str, second: &str| {
            format!(
                r#"{{"parameters": [
                {{"name": "cache", "kind": "categorical", "values": [false, true]}},
                {{"name": "size", "kind": "ordinal", "values": ["64K", "1M"], "when": {when}}},
                {{"name": "nodes", "kind": "int", "values": [1, 2, 3]}}],
                "constraints": [{{"forbid": {{"cache": [true], "nodes": [3]}}}}, {second}]}}"#
            )
        };
        let when = r#"{"parameter": "cache", "is": [true]}"#;
        let second = r#"{"left": "nodes", "op": "!=", "right": 1}"#;
        let file = parse(&text(when, second)).unwrap();
        // Without the cache: two or three nodes; with it: two nodes and either size.
        assert_eq!(file.space.points(100).unwrap().len(), 4);
        let spelled = |point: Vec<u32>| file.spell(&file.space.parametrization(&Point(point)));
        assert_eq!(
            Json::Object(spelled(vec![0, 0, 2])),
            serde_json::json!({"cache": false, "nodes": 3})
        );
        let moved = file.with_default(&Point(vec![1, 1, 1])).unwrap();
        assert_eq!(moved.space.points(100).unwrap().len(), 4);
        for (when, second, words) in [
            (
                r#"{"parameter": "cache"}"#,
                second,
                "parameter \"size\": when: missing field `is`",
            ),
            (
                when,
                r#"{"left": "nodes", "right": 1}"#,
                "constraint number 2: a constraint needs",
            ),
            (
                when,
                r#"{"left": "nodes", "op": "<", "right": "x"}"#,
                "neither a parameter",
            ),
            (
                when,
                r#"{"left": "cache", "op": "==", "right": true}"#,
                "the default breaks",
            ),
        ] {
            let message = parse(&text(when, second)).unwrap_err().to_string();
            assert!(message.starts_with("dir/table.json"), "{message}");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let one = |parameter: &str, default: &str| {
            let text = format!(r#"{{"parameters": [{parameter}], "default": {default}}}"#);
            parse(&text).unwrap_err().to_string()
        };
        let a = r#"{"name": "a", "kind": "int", "values": [1, 2]}"#;
        for (parameter, default, words) in [
            (a, "{}", "parameter \"a\": the default gives it no value"),
            (
                a,
                r#"{"a": 1, "b": 1}"#,
                "parameter \"b\": the default gives",
            ),
            (a, r#"{"a": 3}"#, "an integer from 1 to 2"),
            ("7", "null", "line 1, column 17"),
            (
                r#"{"name": "a", "kind": "set", "values": [1]}"#,
                "null",
                "categorical",
            ),
            (
                r#"{"name": "a", "kind": "int", "values": [1.5]}"#,
                "null",
                "whole number",
            ),
            (
                r#"{"name": "a", "kind": "int", "values": []}"#,
                "null",
                "no values",
            ),
            (
                r#"{"name": "a", "kind": "ordinal", "values": [[1]]}"#,
                "null",
                "[1] cannot be",
            ),
            (
                r#"{"name": "a b", "kind": "ordinal", "values": [1]}"#,
                "null",
                "letters, digits",
            ),
            (
                r#"{"name": "a", "kind": "ordinal", "values": [1, 1]}"#,
                "null",
                "listed twice",
            ),
        ] {
            let message = one(parameter, default);
            assert!(message.starts_with("dir/table.json"), "{message}");
            assert!(message.contains(words), "{parameter} {default}: {message}");
        }
        let error = SpaceFile::read(Path::new("/nowhere/table.json")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/table.json"), "{error}");
    }
}
