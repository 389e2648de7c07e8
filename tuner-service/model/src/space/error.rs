//! Errors in a space or in a parametrization.

use super::Value;

/// Why a space, a parameter or a parametrization was refused. Names and values from outside are
/// quoted and cut, so that a message stays one printable line.
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
        /// The number that was given.
        count: usize,
        /// The number that is allowed.
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
        /// The number of its levels.
        levels: u128,
        /// The number that is allowed.
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
        /// The surplus field.
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
    /// A value that is not one of the parameter's.
    #[error("parameter {name} cannot be {}: it must be {choices}", quoted(.value))]
    InvalidValue {
        /// The parameter's name.
        name: String,
        /// The value that was asked for.
        value: Value,
        /// The valid choices, in words.
        choices: String,
    },
    /// A value for a parameter that does not exist beside the other values.
    #[error("parameter {name} does not exist here, only where {condition}: leave it out")]
    DoesNotExist {
        /// The parameter's name.
        name: String,
        /// When it exists, in words.
        condition: String,
    },
    /// Values that a constraint forbids together.
    #[error("{} does not go together here: the constraint {} must hold", quoted(.values), quoted(.constraint))]
    Forbidden {
        /// The values that the constraint names.
        values: String,
        /// The constraint, in words.
        constraint: String,
    },
    /// A condition on a parameter that is not listed before the conditional one.
    #[error("parameter {name} exists under a condition on {}, which is not listed before it: name one of those that are ({earlier})", quoted(.on))]
    ConditionParameter {
        /// The parameter's name.
        name: String,
        /// The name in the condition.
        on: String,
        /// The parameters that it may name, separated by commas.
        earlier: String,
    },
    /// A condition without values.
    #[error("parameter {name}: its condition on {on} lists no value: list at least one in `is`")]
    ConditionEmpty {
        /// The parameter's name.
        name: String,
        /// The name in the condition.
        on: String,
    },
    /// A condition on a value that the other parameter cannot have.
    #[error("parameter {name}: its condition can never hold: {problem}")]
    ConditionValue {
        /// The parameter's name.
        name: String,
        /// The problem with the value.
        problem: Box<SpaceError>,
    },
    /// A constraint that is neither of the two forms.
    #[error(
        "a constraint needs left, op and right, or forbid alone: write {{ left = \"a\", op = \"<=\", right = \"b\" }} or {{ forbid = {{ a = [1], b = [2] }} }}"
    )]
    ConstraintForm,
    /// A constraint that cannot be used.
    #[error("constraint {}: {problem}", quoted(.constraint))]
    BadConstraint {
        /// The constraint, in words.
        constraint: String,
        /// The problem.
        problem: Box<SpaceError>,
    },
    /// An order comparison of values that have no order.
    #[error("{name} and {} have no common order: compare numbers, sizes such as 64K or an ordered parameter, or use == or !=", quoted(.right))]
    NoOrder {
        /// The name on the left.
        name: String,
        /// The value or parameter on the right.
        right: Value,
    },
    /// The right side of a comparison is unknown.
    #[error("{} is neither a parameter ({known}) nor a value of {name}, which must be {choices}", quoted(.right))]
    NeitherParameterNorValue {
        /// The name on the left.
        name: String,
        /// The right side.
        right: Value,
        /// The names there are, separated by commas.
        known: String,
        /// The valid values of the left side, in words.
        choices: String,
    },
    /// A `forbid` without parameters, or with one without values.
    #[error(
        "forbid names no parameter, or one without values: list at least one value of at least one parameter"
    )]
    ForbidsNothing,
    /// The default breaks a constraint.
    #[error(
        "the default breaks a constraint: {problem}; change the constraint, or a default if the accelerator has another"
    )]
    DefaultForbidden {
        /// The constraint, with the values that break it.
        problem: Box<SpaceError>,
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

impl SpaceError {
    /// The parameter at fault, if the error names one.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::BadName { name }
            | Self::DuplicateParameter { name }
            | Self::BadRange { name, .. }
            | Self::BadStep { name, .. }
            | Self::TooManyLevels { name, .. }
            | Self::NoValues { name }
            | Self::RepeatedValue { name, .. }
            | Self::BadValue { name, .. }
            | Self::BadDefault { name, .. }
            | Self::MissingField { name, .. }
            | Self::SurplusField { name, .. }
            | Self::ConditionParameter { name, .. }
            | Self::ConditionEmpty { name, .. }
            | Self::ConditionValue { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The constraint at fault, in words, if the error names one.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::BadConstraint { constraint, .. } | Self::Forbidden { constraint, .. } => {
                Some(constraint)
            }
            Self::DefaultForbidden { problem } => problem.constraint(),
            _ => None,
        }
    }
}

/// Quotes text from outside: control characters escaped, at most 64 characters.
fn quoted(thing: &impl ToString) -> String {
    const SHOWN: usize = 64;
    let text = thing.to_string();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}
