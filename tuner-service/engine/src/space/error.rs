//! What can be wrong with a space or with a parametrization.

use super::Value;

/// Why a space, a parameter or a parametrization was refused.
///
/// Names and values that came from outside are quoted and cut short, so that a message stays one
/// printable line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// A space without parameters.
    #[error("a space needs at least one parameter; none was given")]
    NoParameters,
    /// More parameters than [`MAX_PARAMETERS`](super::MAX_PARAMETERS).
    #[error(
        "a space may have at most {max} parameters; {count} were given: leave out those that matter least"
    )]
    TooManyParameters {
        /// How many were given.
        count: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A name outside `[A-Za-z0-9_.-]+`, or longer than 128 characters.
    #[error("parameter name {} is not valid: use 1 to 128 letters, digits, '_', '.' or '-'", quoted(.name))]
    BadName {
        /// The name that was given.
        name: String,
    },
    /// Two parameters of one name.
    #[error("parameter {name} is given twice: rename or remove one of them")]
    DuplicateParameter {
        /// The name that appears twice.
        name: String,
    },
    /// `min` above `max`.
    #[error("parameter {name}: min {min} is above max {max}: swap them")]
    BadRange {
        /// The parameter's name.
        name: String,
        /// The lower bound given.
        min: i64,
        /// The upper bound given.
        max: i64,
    },
    /// A step below one.
    #[error("parameter {name}: step {step} is not a positive number: use 1 or more")]
    BadStep {
        /// The parameter's name.
        name: String,
        /// The step given.
        step: i64,
    },
    /// More levels than a [`Point`](super::Point) can index.
    #[error("parameter {name} has {levels} values, more than {max}: use a larger step")]
    TooManyLevels {
        /// The parameter's name.
        name: String,
        /// How many levels it has.
        levels: u128,
        /// How many are allowed.
        max: u32,
    },
    /// An ordered or categories parameter without values.
    #[error("parameter {name} has no values: list at least one")]
    NoValues {
        /// The parameter's name.
        name: String,
    },
    /// A value listed twice.
    #[error("parameter {name}: value {} is listed twice: remove one of them", quoted(.value))]
    RepeatedValue {
        /// The parameter's name.
        name: String,
        /// The value.
        value: Value,
    },
    /// A value that is not a finite number or printable text of 1 to 256 bytes.
    #[error("parameter {name}: value {} is not allowed: use finite numbers, or 1 to 256 bytes of text without control characters", quoted(.value))]
    BadValue {
        /// The parameter's name.
        name: String,
        /// The value.
        value: Value,
    },
    /// A default that is not one of the values.
    #[error("parameter {name}: default {} is not one of its values: it must be {choices}", quoted(.default))]
    BadDefault {
        /// The parameter's name.
        name: String,
        /// The default given.
        default: Value,
        /// The valid choices, in words.
        choices: String,
    },
    /// A field that a parameter of this kind needs is missing.
    #[error("parameter {}: a parameter of kind {kind} needs {field}: add it", quoted(.name))]
    MissingField {
        /// The parameter's name.
        name: String,
        /// `integer`, `ordered` or `categories`.
        kind: &'static str,
        /// The field that is missing.
        field: &'static str,
    },
    /// A field that a parameter of this kind cannot have.
    #[error("parameter {}: a parameter of kind {kind} has no {field}: remove it", quoted(.name))]
    SurplusField {
        /// The parameter's name.
        name: String,
        /// `integer`, `ordered` or `categories`.
        kind: &'static str,
        /// The field that is too much.
        field: &'static str,
    },
    /// A parameter that the space does not have.
    #[error("there is no parameter {}: the parameters are {known}", quoted(.name))]
    UnknownParameter {
        /// The name that was asked for.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// A value that the parameter cannot have.
    #[error("parameter {name} cannot be {}: it must be {choices}", quoted(.value))]
    InvalidValue {
        /// The parameter's name.
        name: String,
        /// The value that was asked for.
        value: Value,
        /// The valid choices, in words.
        choices: String,
    },
    /// A parametrization without a value for this parameter.
    #[error("parameter {name} has no value: it must be {choices}")]
    MissingValue {
        /// The parameter's name.
        name: String,
        /// The valid choices, in words.
        choices: String,
    },
}

/// Quotes what came from outside: control characters escaped, at most 64 characters.
fn quoted(thing: &impl ToString) -> String {
    const SHOWN: usize = 64;
    let text = thing.to_string();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}
