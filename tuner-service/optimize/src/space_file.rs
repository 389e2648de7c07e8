//! The file that describes a space: that of `optimize`, and of a table of measurements.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use io_autotune_catalogue::{AcceleratorError, OwnSpace};
use io_autotune_configuration::{explained, misspelt, nearest, read_text};
use io_autotune_engine::{Condition, Constraint, Domain, Parameter, Parametrization};
use io_autotune_engine::{Space, Value};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::error::SpaceFileError;
use crate::unique_keys::NoneTwice;

/// The space of a file, with the file's spelling of values.
///
/// In TOML the file is as an accelerator's ([`OwnSpace`]). In JSON, which published tables have,
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
    /// True if the file has a default.
    pub has_default: bool,
    /// Keys of a file in TOML that say what Slurm's jobs need and are given: they mean nothing here.
    of_jobs: Vec<&'static str>,
    /// The file's `measures`: columns of the CSV file that are measures of each run.
    pub measures: Vec<String>,
    /// The file's `first`: other defaults, with which a study can begin (cao2018, section 4.2).
    pub first: Vec<Parametrization>,
    /// The spelling of each level of each parameter in JSON, which also has `true` and `false`. In
    /// TOML values are spelled as they are, and the lists are empty.
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

/// The keys of a parameter.
const OF_A_PARAMETER: [&str; 4] = ["name", "kind", "values", "when"];

/// The keys of a file that mean something. Published files have many others, which describe the
/// data.
const OF_A_FILE: [&str; 6] = [
    "name",
    "parameters",
    "default",
    "constraints",
    "measures",
    "first",
];

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Categorical,
    Ordinal,
    Int,
}

impl SpaceFile {
    /// Reads a file. Errs, with file and place, when it cannot be read or describes no space.
    pub fn read(path: &Path) -> Result<Self, SpaceFileError> {
        let text = read_text(path).map_err(|error| SpaceFileError::unread(path, error))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file; `path` gives the name and is for messages. What begins with a
    /// brace is JSON, and all else TOML, unless the path ends with `.json`. Errs, with file and
    /// place, when it describes no space.
    pub fn parse(text: &str, path: &Path) -> Result<Self, SpaceFileError> {
        let is_json = path.extension().is_some_and(|end| end == "json");
        match is_json || text.trim_start().starts_with('{') {
            true => Self::parse_json(text, path),
            false => Self::parse_toml(text, path),
        }
    }

    fn parse_toml(text: &str, path: &Path) -> Result<Self, SpaceFileError> {
        let own =
            OwnSpace::parse(text).map_err(|AcceleratorError(faults)| SpaceFileError::Toml {
                path: path.to_owned(),
                faults,
            })?;
        Ok(SpaceFile {
            name: own.name.unwrap_or_else(|| stem(path)),
            has_default: true,
            of_jobs: own.of_jobs,
            measures: own.measures,
            first: own.first,
            spelling: vec![Vec::new(); own.space.parameters().len()],
            space: own.space,
        })
    }

    fn parse_json(text: &str, path: &Path) -> Result<Self, SpaceFileError> {
        let path: PathBuf = path.to_owned();
        let refused = |error| SpaceFileError::Json {
            path: path.clone(),
            error,
        };
        serde_json::from_str::<NoneTwice>(text).map_err(refused)?;
        // The keys first: what is misspelt is missing too.
        let unknown = unknown_keys(text, &path);
        if !unknown.is_empty() {
            return Err(one_or_several(unknown));
        }
        let raw: RawFile = serde_json::from_str(text).map_err(refused)?;
        let mut parameters = Vec::with_capacity(raw.parameters.len());
        let mut wrong = Vec::new();
        for parameter in &raw.parameters {
            match parameter.read(raw.default.as_ref()) {
                Ok(read) => parameters.push(read),
                Err(problem) => wrong.push(SpaceFileError::Parameter {
                    path: path.clone(),
                    parameter: parameter.name.clone(),
                    problem,
                }),
            }
        }
        let known = |name: &String| raw.parameters.iter().any(|known| known.name == *name);
        let of_default = raw.default.iter().flatten();
        wrong.extend(
            of_default
                .filter(|(name, _)| !known(name))
                .map(|(name, _)| SpaceFileError::Parameter {
                    path: path.clone(),
                    parameter: name.clone(),
                    problem:
                        "the default gives it a value, but it is not among the parameters: add it \
                          there or remove it here"
                            .to_owned(),
                }),
        );
        if !wrong.is_empty() {
            return Err(one_or_several(wrong));
        }
        let name = raw.name.unwrap_or_else(|| stem(&path));
        let read = raw
            .constraints
            .iter()
            .enumerate()
            .map(|(index, constraint)| {
                Constraint::deserialize(words(constraint)).map_err(|error| {
                    SpaceFileError::Constraint {
                        path: path.clone(),
                        number: index + 1,
                        problem: explained(&error.to_string()),
                    }
                })
            });
        let (constraints, wrong): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        let wrong: Vec<SpaceFileError> = wrong.into_iter().filter_map(Result::err).collect();
        if !wrong.is_empty() {
            return Err(one_or_several(wrong));
        }
        let constraints = constraints.into_iter().flatten().collect();
        match Space::constrained(parameters, constraints) {
            Ok(space) => Ok(SpaceFile {
                name,
                first: first(&space, &raw.first, &path)?,
                measures: raw.measures,
                of_jobs: Vec::new(),
                space,
                has_default: raw.default.is_some(),
                spelling: raw.parameters.into_iter().map(|p| p.values).collect(),
            }),
            Err(error) => Err(SpaceFileError::Space { path, error }),
        }
    }

    /// The keys of the file about Slurm's jobs, which are left out outside Slurm, in words; none if there
    /// are none.
    pub fn left_out(&self) -> Option<String> {
        let keys = match self.of_jobs.as_slice() {
            [] => return None,
            keys => keys.join(", "),
        };
        Some(format!(
            "{keys}: left out, as it is for jobs of Slurm, and nothing is delivered here"
        ))
    }

    /// A parametrization in the file's spelling, without unknown names and values.
    pub fn spell(&self, parametrization: &Parametrization) -> serde_json::Map<String, Json> {
        let parameters = self.space.parameters().iter().zip(&self.spelling);
        parameters
            .filter_map(|(parameter, spelling)| {
                let value = parametrization.0.get(&parameter.name)?;
                let level = parameter.level_of(value)?;
                let spelled = spelling.get(level).cloned();
                let spelled = spelled.or_else(|| serde_json::to_value(value).ok())?;
                Some((parameter.name.clone(), spelled))
            })
            .collect()
    }
}

/// The name of a file without its end.
fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn one_or_several(mut errors: Vec<SpaceFileError>) -> SpaceFileError {
    match (errors.len(), errors.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            errors.extend(last);
            SpaceFileError::Several(errors)
        }
    }
}

/// Keys that a parameter does not have, and keys of the file that look like one that means
/// something. None where the text is no JSON of this form.
fn unknown_keys(text: &str, path: &Path) -> Vec<SpaceFileError> {
    let Ok(Json::Object(file)) = serde_json::from_str::<Json>(text) else {
        return Vec::new();
    };
    let mut lines = KeyLines::of(text);
    let error = |line, place: String, key: &str, problem: String| SpaceFileError::Key {
        path: path.to_owned(),
        line,
        place,
        key: key.to_owned(),
        problem,
    };
    let mut errors = Vec::new();
    for key in file.keys() {
        if let Some(meant) = misspelt(key, &OF_A_FILE) {
            let problem = format!("did you mean `{meant}`?");
            errors.push(error(lines.next(key), String::new(), key, problem));
        }
    }
    let parameters = file.get("parameters").and_then(Json::as_array);
    for parameter in parameters.into_iter().flatten().filter_map(Json::as_object) {
        let place = match parameter.get("name").and_then(Json::as_str) {
            Some(name) => format!("parameter {name:?}: "),
            None => "a parameter: ".to_owned(),
        };
        for key in parameter
            .keys()
            .filter(|key| !OF_A_PARAMETER.contains(&key.as_str()))
        {
            let problem = match nearest(key, OF_A_PARAMETER) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("a parameter has {}", OF_A_PARAMETER.join(", ")),
            };
            errors.push(error(lines.next(key), place.clone(), key, problem));
        }
    }
    errors.sort_by_key(|error| match error {
        SpaceFileError::Key { line, .. } => *line,
        _ => 0,
    });
    errors
}

/// The lines of a text's keys, each named in the order in which it comes.
struct KeyLines<'a> {
    text: &'a str,
    from: BTreeMap<String, usize>,
}

impl<'a> KeyLines<'a> {
    fn of(text: &'a str) -> Self {
        KeyLines {
            text,
            from: BTreeMap::new(),
        }
    }

    /// The line of the next place with this key, from 1; 1 if it is written in another way.
    fn next(&mut self, key: &str) -> usize {
        let quoted = Json::from(key).to_string();
        let from = self.from.entry(key.to_owned()).or_default();
        let is_key = |place: &usize| {
            let after = self.text[place + quoted.len()..].trim_start();
            after.starts_with(':')
        };
        let places = self.text[*from..].match_indices(&quoted);
        let place = places.map(|(place, _)| *from + place).find(is_key);
        match place {
            Some(place) => {
                *from = place + quoted.len();
                self.text[..place].matches('\n').count() + 1
            }
            None => 1,
        }
    }
}

/// The parametrizations of the file's `first`, which have to fit the space.
fn first(
    space: &Space,
    raw: &[BTreeMap<String, Json>],
    path: &Path,
) -> Result<Vec<Parametrization>, SpaceFileError> {
    let refused = |number: usize, problem: String| SpaceFileError::First {
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
                let problem = explained(&error.to_string());
                format!("when: {problem}: write {{\"parameter\": NAME, \"is\": [VALUE, ..]}}")
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
    use io_autotune_engine::Point;

    use super::*;

    fn parse(text: &str) -> Result<SpaceFile, SpaceFileError> {
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
    fn a_file_is_utf_8_with_or_without_a_byte_order_mark() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [("a.json", ALL), ("a.toml", OWN)] {
            let path = directory.path().join(name);
            let windows = text.replace('\n', "\r\n");
            std::fs::write(&path, format!("\u{feff}{windows}")).unwrap();
            let expected = SpaceFile::parse(text, Path::new(name)).unwrap();
            assert_eq!(SpaceFile::read(&path).unwrap().space, expected.space);
            let latin1 = [windows.as_bytes(), b"\r\n# \xfc"].concat();
            let line = text.matches('\n').count() + 2;
            let utf16 = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            for (bytes, words) in [
                (latin1, format!("{name}: line {line} is not in UTF-8")),
                (utf16, format!("{name}: it is in UTF-16")),
            ] {
                std::fs::write(&path, bytes).unwrap();
                let message = SpaceFile::read(&path).unwrap_err().to_string();
                assert!(message.contains(&words), "{message}");
                assert!(!message.contains("permissions"), "{message}");
            }
        }
    }

    const OWN: &str = r#"
        [[parameters]]
        name = "nodes"
        kind = "integer"
        min = 2
        max = 4294967296
        step = 2
        default = 4
        [[parameters]]
        name = "cache"
        kind = "categories"
        values = ["off", "on"]
        default = "off"
        [[parameters]]
        name = "ratio"
        kind = "ordered"
        values = [0.25, 0.5, 1.0]
        default = 0.5
        when = { parameter = "cache", is = ["on"] }
        [[first]]
        nodes = 8
        cache = "off"
    "#;

    #[test]
    fn a_space_is_written_as_an_accelerators_is() {
        for path in ["dir/mine.toml", "/dev/stdin"] {
            let file = SpaceFile::parse(OWN, Path::new(path)).unwrap();
            assert_eq!(file.space.size(), 2_147_483_648 * 6);
            assert_eq!(file.first[0].0["nodes"], Value::Integer(8));
            let spelled = file.spell(&file.space.parametrization(&Point(vec![3, 1, 2])));
            let expected = serde_json::json!({"nodes": 8, "cache": "on", "ratio": 1.0});
            assert_eq!(Json::Object(spelled), expected);
        }
        assert_eq!(
            SpaceFile::parse(OWN, Path::new("dir/mine.toml"))
                .unwrap()
                .name,
            "mine"
        );
        // JSON, whatever the file is called.
        assert!(SpaceFile::parse(ALL, Path::new("/dev/stdin")).is_ok());
        let text = OWN
            .replace("step", "stpe")
            .replace("values = [\"off\"", "valeus = [\"off\"");
        let told = SpaceFile::parse(&text, Path::new("mine.toml"))
            .unwrap_err()
            .to_string();
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(
            lines[0].starts_with("mine.toml:7:9: unknown field `stpe`"),
            "{told}"
        );
        assert!(lines[1].ends_with("did you mean `values`?"), "{told}");
        let shipped = include_str!("../../../deploy/accelerators.d/romio.toml");
        let file = SpaceFile::parse(shipped, Path::new("romio.toml")).unwrap();
        let left_out = file.left_out().unwrap();
        assert!(
            left_out.starts_with("delivery, read_back: left out"),
            "{left_out}"
        );
        let own = SpaceFile::parse(OWN, Path::new("mine.toml")).unwrap();
        assert_eq!(own.left_out(), None);
    }

    #[test]
    fn a_key_is_given_once() {
        let a = r#"{"name": "a", "kind": "int", "values": [1, 2]}"#;
        for text in [
            format!("{{\"parameters\": [{a}],\n\"default\": {{\"a\": 1, \"a\": 2}}}}"),
            format!("{{\"parameters\": [{a}],\n\"parameters\": [{a}]}}"),
            format!("{{\"parameters\": [{a}],\n\"first\": [{{\"a\": 1, \"a\": 2}}]}}"),
        ] {
            let message = parse(&text).unwrap_err().to_string();
            assert!(message.contains("line 2, "), "{message}");
            assert!(message.contains("is given twice"), "{message}");
        }
    }

    #[test]
    fn misspelt_keys_are_refused_at_their_lines_and_what_describes_the_data_is_not() {
        let text = ALL
            .replace(
                "\"tier\"",
                "\"default_measures\": {}, \"domain\": 1, \"note\": \"vlaues\", \"tier\"",
            )
            .replace(
                "\"default\": null",
                "\n\"defualt\": null, \"constraint\": [],\n\"Measures\": []",
            )
            .replace(
                "\"values\": [7]}",
                "\"values\": [7], \"wehn\": 1,\n\"vlaues\": 1, \"unit\": \"s\"}",
            );
        let told = parse(&text).unwrap_err().to_string();
        let lines: Vec<&str> = told.lines().collect();
        let expected = [
            (
                6,
                "parameter \"one\": unknown key `wehn`: did you mean `when`?",
            ),
            (
                7,
                "parameter \"one\": unknown key `unit`: a parameter has name, kind, values, when",
            ),
            (
                7,
                "parameter \"one\": unknown key `vlaues`: did you mean `values`?",
            ),
            (8, "unknown key `constraint`: did you mean `constraints`?"),
            (8, "unknown key `defualt`: did you mean `default`?"),
            (9, "unknown key `Measures`: did you mean `measures`?"),
        ];
        for (line, words) in expected {
            let told = format!("dir/table.json, line {line}: {words}");
            assert!(
                lines.iter().any(|one| one.starts_with(&told)),
                "{told} in {lines:#?}"
            );
        }
        assert_eq!(lines.len(), expected.len(), "{lines:#?}");
        // Also where that is why something is missing.
        let message = parse(&ALL.replace("\"parameters\"", "\"paramters\"")).unwrap_err();
        assert!(
            message.to_string().contains("did you mean `parameters`?"),
            "{message}"
        );
    }

    #[test]
    fn everything_that_is_wrong_with_parameters_is_told_at_once() {
        let text = r#"{"parameters": [{"name": "a", "kind": "int", "values": [1.5]},
            {"name": "b", "kind": "ordinal", "values": [[1]]}], "default": {"a": 1, "b": 1, "c": 1}}"#;
        let told = parse(text).unwrap_err().to_string();
        assert_eq!(told.lines().count(), 3, "{told}");
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
