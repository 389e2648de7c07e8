//! A space as an accelerator's file describes it, and a space of one's own for tuning outside
//! Slurm.

use std::collections::BTreeMap;
use std::ops::Range;

use io_autotune_configuration::parse_recoverable;
use io_autotune_model::{Constraint, Parameter, Parametrization, Space, SpaceError, Value};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::fault::{AcceleratorError, Faults};

/// The parameters and constraints of a file.
pub(crate) struct Described<'a> {
    pub(crate) parameters: &'a [Spanned<Parameter>],
    pub(crate) constraints: &'a [Spanned<Constraint>],
    /// The place to report for errors that belong to no single one of them.
    pub(crate) otherwise: Range<usize>,
}

impl Described<'_> {
    /// Returns true if all parameters and constraints of a file's text can be read. If not, a
    /// parameter that seems to be missing may only be wrong.
    pub(crate) fn is_whole(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Only {
            #[serde(rename = "parameters")]
            _parameters: Vec<Parameter>,
            #[serde(default, rename = "constraints")]
            _constraints: Vec<Constraint>,
        }
        toml::from_str::<Only>(text).is_ok()
    }

    /// The space, or all its errors, each with its place.
    pub(crate) fn space(&self) -> Result<Space, Vec<(Range<usize>, SpaceError)>> {
        let parameters: Vec<Parameter> = self.parameters.iter().map(inner).collect();
        let constraints = self.constraints.iter().map(inner).collect();
        Space::constrained(parameters.clone(), constraints).map_err(|error| {
            let mut found = self.faults_of_parameters();
            if found.is_empty() {
                found = self.faults_of_constraints(&parameters);
            }
            if found.is_empty() {
                found.push((self.place_of(&error), error));
            }
            found
        })
    }

    /// The error of each parameter together with the correct ones before it.
    fn faults_of_parameters(&self) -> Vec<(Range<usize>, SpaceError)> {
        let (mut right, mut found) = (Vec::new(), Vec::new());
        for parameter in self.parameters {
            right.push(inner(parameter));
            if let Err(error) = Space::new(right.clone()) {
                found.push((parameter.span(), error));
                right.pop();
            }
        }
        found
    }

    fn faults_of_constraints(&self, parameters: &[Parameter]) -> Vec<(Range<usize>, SpaceError)> {
        let alone = self.constraints.iter().map(|constraint| {
            let error = Space::constrained(parameters.to_vec(), vec![inner(constraint)]).err();
            Some((constraint.span(), error?))
        });
        alone.flatten().collect()
    }

    fn place_of(&self, error: &SpaceError) -> Range<usize> {
        let parameter = self
            .parameters
            .iter()
            .rfind(|p| error.parameter() == Some(p.get_ref().name.as_str()));
        let constraint = self
            .constraints
            .iter()
            .find(|c| error.constraint() == Some(c.get_ref().to_string().as_str()));
        parameter
            .map(Spanned::span)
            .or_else(|| constraint.map(Spanned::span))
            .unwrap_or_else(|| self.otherwise.clone())
    }
}

fn inner<T: Clone>(spanned: &Spanned<T>) -> T {
    spanned.get_ref().clone()
}

/// A space that is tuned outside Slurm, in a file like an accelerator's.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnSpace {
    /// The name, if the file has one.
    pub name: Option<String>,
    /// The space.
    pub space: Space,
    /// Names of the measures of each run in a table of measurements.
    pub measures: Vec<String>,
    /// Other defaults, with which a study can begin; each is admitted by the space.
    pub first: Vec<Parametrization>,
    /// The file's keys that only concern jobs of Slurm, and have no meaning here.
    pub of_jobs: Vec<&'static str>,
}

/// The form of an accelerator's file, of which only the parameters are required.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Option<String>,
    #[serde(rename = "title")]
    _title: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "takes_effect")]
    _takes_effect: Option<String>,
    #[serde(rename = "tried_on")]
    _tried_on: Option<String>,
    #[serde(default)]
    constraints: Vec<Spanned<Constraint>>,
    parameters: Vec<Spanned<Parameter>>,
    #[serde(default)]
    measures: Vec<String>,
    #[serde(default)]
    first: Vec<Spanned<BTreeMap<String, Value>>>,
    recipes: Option<IgnoredAny>,
    risks: Option<IgnoredAny>,
    needs: Option<IgnoredAny>,
    used_if: Option<IgnoredAny>,
    delivery: Option<IgnoredAny>,
    read_back: Option<IgnoredAny>,
}

impl OwnSpace {
    /// Reads a file's text. Returns an error with every wrong line and what to write instead.
    pub fn parse(text: &str) -> Result<Self, AcceleratorError> {
        let mut faults = Faults::of(text);
        let read = parse_recoverable::<Document>(text);
        for one in &read.found {
            faults.at(&one.place, one.problem.as_str());
        }
        let document = read.value.filter(|_| Described::is_whole(text));
        let space = match document.map(Document::read) {
            Some(Ok(space)) => Some(space),
            Some(Err(found)) => {
                for (place, error) in found {
                    faults.at(&place, error.to_string());
                }
                None
            }
            None => None,
        };
        faults.finish()?;
        let Some(space) = space else {
            unreachable!("a fault was noted")
        };
        Ok(space)
    }
}

impl Document {
    fn read(self) -> Result<OwnSpace, Vec<(Range<usize>, SpaceError)>> {
        let described = Described {
            parameters: &self.parameters,
            constraints: &self.constraints,
            otherwise: 0..0,
        };
        let space = described.space()?;
        let mut first = Vec::with_capacity(self.first.len());
        let mut found = Vec::new();
        for one in self.first {
            let place = one.span();
            let parametrization = Parametrization(one.into_inner());
            match space.validate(&parametrization) {
                Ok(_) => first.push(parametrization),
                Err(error) => found.push((place, error)),
            }
        }
        if !found.is_empty() {
            return Err(found);
        }
        let of_jobs = [
            ("recipes", self.recipes),
            ("risks", self.risks),
            ("needs", self.needs),
            ("used_if", self.used_if),
            ("delivery", self.delivery),
            ("read_back", self.read_back),
        ];
        let of_jobs = of_jobs.into_iter();
        Ok(OwnSpace {
            name: self.name,
            space,
            measures: self.measures,
            first,
            of_jobs: of_jobs
                .filter_map(|(key, is_there)| is_there.map(|_| key))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Accelerator;

    const OWN: &str = r#"
name = "solver"
constraints = [{ left = "aggregators", op = "<=", right = "nodes" }]
[[parameters]]
name = "nodes"
kind = "integer"
min = 2
max = 64
step = 2
default = 4
[[parameters]]
name = "aggregators"
kind = "integer"
min = 1
max = 64
default = 1
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
"#;

    #[test]
    fn an_accelerators_file_is_a_space_of_ones_own_and_what_jobs_need_is_said_to_be_left_out() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/accelerators.d");
        let mut count = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let (own, theirs) = (
                OwnSpace::parse(&text).unwrap(),
                Accelerator::parse(&text).unwrap(),
            );
            let all = theirs.at_risk.as_deref().unwrap_or(&theirs);
            assert_eq!(own.space, all.space);
            assert_eq!(own.name.as_deref(), Some(theirs.name.as_str()));
            assert!(own.of_jobs.contains(&"delivery"), "{}", theirs.name);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }

    #[test]
    fn nothing_is_needed_but_parameters() {
        let own = OwnSpace::parse(OWN).unwrap();
        assert_eq!(own.space.size(), 32 * 64 * 2 * 3);
        assert_eq!(own.space.constraints().len(), 1);
        assert!(own.of_jobs.is_empty() && own.measures.is_empty() && own.first.is_empty());
        let first = "[[first]]\nnodes = 64\naggregators = 2\ncache = \"off\"\n";
        let own = OwnSpace::parse(&format!("measures = [\"bytes\"]\n{OWN}{first}")).unwrap();
        assert_eq!(own.measures, ["bytes"]);
        assert_eq!(own.first[0].0["nodes"], Value::Integer(64));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_its_line() {
        let text = OWN
            .replace("step = 2", "stpe = 2")
            .replace("op = \"<=\"", "op = \"=<\"")
            .replace("values = [\"off\", \"on\"]", "valeus = [\"off\", \"on\"]")
            .replace("[0.25, 0.5, 1.0]", "[true, false]");
        let AcceleratorError(faults) = OwnSpace::parse(&text).unwrap_err();
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 9, 20, 25], "{faults:#?}");
        assert!(faults[1].problem.ends_with("did you mean `step`?"));
        assert!(faults[2].problem.ends_with("did you mean `values`?"));
        assert!(faults[3].problem.contains("true and false in quotes"));
        let other = OWN
            .replace("name = \"solver\"", "nmae = \"solver\"")
            .replace("right = \"nodes\"", "right = \"nods\"");
        let rest = OWN
            .replace("max = 64\nstep", "max = 1\nstep")
            .replace("default = 0.5", "default = 3");
        let first = "[[first]]\nnodes = 65\n";
        for (text, told) in [
            (other, vec![(2, "did you mean `name`?"), (3, "nods")]),
            (
                rest,
                vec![(7, "min 2 is above max 1"), (26, "default \"3\"")],
            ),
            (format!("{OWN}{first}"), vec![(28, "nodes")]),
            (
                "name = 'x'\n".to_owned(),
                vec![(1, "missing field `parameters`")],
            ),
            (
                "parameters = []\n".to_owned(),
                vec![(1, "at least one parameter")],
            ),
        ] {
            let AcceleratorError(faults) = OwnSpace::parse(&text).unwrap_err();
            assert_eq!(faults.len(), told.len(), "{faults:#?}");
            for (fault, (line, words)) in faults.iter().zip(told) {
                assert_eq!(fault.line, line, "{fault}");
                assert!(fault.problem.contains(words), "{fault}");
            }
        }
    }
}
