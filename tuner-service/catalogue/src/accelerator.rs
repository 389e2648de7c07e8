//! One accelerator as its catalogue file describes it.

use std::collections::BTreeSet;

use io_autotune_engine::{Constraint, Parameter, Space, SpaceError};
use io_autotune_protocol::is_deliverable_variable;
use serde::Deserialize;

/// An accelerator: something with I/O parameters that a job can be given.
#[derive(Clone, Debug)]
pub struct Accelerator {
    /// The name users type: `--io-autotune=NAME`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What it is, in a paragraph.
    pub description: String,
    /// When a parameter takes effect, in the accelerator's own terms (`MPI_File_open`).
    pub takes_effect: String,
    /// Its parameters.
    pub space: Space,
    /// The files through which a parametrization is delivered.
    pub files: Vec<FileDelivery>,
}

/// A file in the job's own directory that carries parameters to the application.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDelivery {
    /// The file's name inside the job's directory: one plain component.
    pub name: String,
    /// The environment variable that names the file to the application.
    pub variable: String,
    /// One line per parameter; `{name}` and `{value}` are replaced.
    pub line: String,
    /// Leave a parameter that has its default out, so that the accelerator decides as it would
    /// without us.
    #[serde(default)]
    pub omit_default: bool,
    /// The parameters the file carries, in the order of its lines.
    pub parameters: Vec<String>,
}

/// Why a catalogue file was refused.
#[derive(Debug, thiserror::Error)]
pub enum AcceleratorError {
    /// Not TOML, or not of the catalogue's form; the message has line and column.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// The parameters, their conditions and the constraints do not make a space.
    #[error("{0}")]
    Space(#[from] SpaceError),
    /// The name cannot be an accelerator's.
    #[error("name = {0:?}: use letters, digits, '.', '_' and '-', starting with a letter or digit")]
    Name(String),
    /// A delivery entry is wrong.
    #[error("delivery.files[{index}]: {problem}")]
    File {
        /// Position in the file, from 0.
        index: usize,
        /// What is wrong and what to write instead.
        problem: String,
    },
    /// A parameter that no delivery carries could never take effect.
    #[error(
        "parameter {0:?} is not delivered by anything: name it in the `parameters` of a [[delivery.files]] entry"
    )]
    Undelivered(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    takes_effect: String,
    #[serde(default)]
    constraints: Vec<Constraint>,
    parameters: Vec<Parameter>,
    delivery: DeliverySection,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeliverySection {
    #[serde(default)]
    files: Vec<FileDelivery>,
}

impl Accelerator {
    /// Reads one catalogue file's text.
    ///
    /// # Errors
    ///
    /// Says which entry is wrong and what to write instead; nothing half-valid is returned.
    pub fn parse(text: &str) -> Result<Self, AcceleratorError> {
        let document: Document = toml::from_str(text)?;
        if !is_plain_name(&document.name) {
            return Err(AcceleratorError::Name(document.name));
        }
        let accelerator = Self {
            name: document.name,
            title: document.title,
            description: document.description,
            takes_effect: document.takes_effect,
            space: Space::constrained(document.parameters, document.constraints)?,
            files: document.delivery.files,
        };
        accelerator.check_delivery()?;
        Ok(accelerator)
    }

    fn check_delivery(&self) -> Result<(), AcceleratorError> {
        let known: BTreeSet<&str> = self
            .space
            .parameters()
            .iter()
            .map(|parameter| parameter.name.as_str())
            .collect();
        let mut delivered = BTreeSet::new();
        let mut variables = BTreeSet::new();
        let mut names = BTreeSet::new();
        for (index, file) in self.files.iter().enumerate() {
            let refuse = |problem: String| Err(AcceleratorError::File { index, problem });
            if !is_plain_name(&file.name) {
                return refuse(format!("name = {:?} is not a plain file name", file.name));
            }
            if !names.insert(file.name.as_str()) {
                return refuse(format!("name = {:?} is used twice", file.name));
            }
            if !is_deliverable_variable(&file.variable) {
                return refuse(format!(
                    "variable = {:?} cannot be given to a job: use letters, digits and '_', and none that a loader, a shell or Slurm acts on",
                    file.variable
                ));
            }
            if !variables.insert(file.variable.as_str()) {
                return refuse(format!("variable = {:?} is used twice", file.variable));
            }
            if !file.line.contains("{value}") || file.line.contains('\n') {
                return refuse(format!(
                    "line = {:?} must be one line that contains {{value}}",
                    file.line
                ));
            }
            for parameter in &file.parameters {
                if !known.contains(parameter.as_str()) {
                    return refuse(format!(
                        "parameter {parameter:?} is not among this accelerator's: {}",
                        known.iter().copied().collect::<Vec<_>>().join(", ")
                    ));
                }
                delivered.insert(parameter.as_str());
            }
        }
        match known.difference(&delivered).next() {
            Some(parameter) => Err(AcceleratorError::Undelivered((*parameter).to_owned())),
            None => Ok(()),
        }
    }
}

fn is_plain_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
        name = "small"
        title = "A small accelerator"
        [[parameters]]
        name = "threads"
        kind = "integer"
        min = 1
        max = 8
        default = 2
        [[delivery.files]]
        name = "hints"
        variable = "HINTS"
        line = "{name} {value}"
        parameters = ["threads"]
    "#;

    #[test]
    fn a_small_file_is_read() {
        let accelerator = Accelerator::parse(SMALL).unwrap();
        assert_eq!(accelerator.name, "small");
        assert_eq!(accelerator.space.size(), 8);
    }

    #[test]
    fn each_mistake_is_named() {
        for (from, to, expected) in [
            ("name = \"small\"", "name = \"../x\"", "use letters, digits"),
            ("title =", "titel =", "unknown field `titel`"),
            (
                "variable = \"HINTS\"",
                "variable = \"LD_PRELOAD\"",
                "cannot be given to a job",
            ),
            (
                "variable = \"HINTS\"",
                "variable = \"PATH\"",
                "cannot be given to a job",
            ),
            (
                "name = \"hints\"",
                "name = \"a/b\"",
                "not a plain file name",
            ),
            ("{value}\"", "x\"", "contains {value}"),
            (
                "parameters = [\"threads\"]",
                "parameters = [\"thread\"]",
                "is not among",
            ),
            (
                "parameters = [\"threads\"]",
                "parameters = []",
                "not delivered by anything",
            ),
            ("default = 2", "default = 9", "default"),
            (
                "default = 2",
                "default = 2\nwhen = { parameter = \"mode\", is = [1] }",
                "parameter threads exists under a condition on \"mode\"",
            ),
            (
                "title =",
                "constraints = [ { left = \"threads\", op = \"<\", right = 2 } ]\ntitle =",
                "\"threads < 2\" must hold",
            ),
            (
                "title =",
                "constraints = [ { left = \"threads\", op = \"<\" } ]\ntitle =",
                "a constraint needs left, op and right",
            ),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let message = Accelerator::parse(&SMALL.replacen(from, to, 1))
                .unwrap_err()
                .to_string();
            assert!(message.contains(expected), "{to}: {message}");
        }
    }
}
