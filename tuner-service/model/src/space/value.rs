//! One value of one parameter.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize};

/// A value of a parameter, a plain number or string in JSON and TOML. Numbers compare and hash by
/// their numeric value (`Integer(2)` equals `Real(2.0)`), because a database may return `2` for
/// `2.0`. Texts sort last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    expecting = "a value is a number or a text: write true and false in quotes"
)]
pub enum Value {
    /// A whole number, for example a number of bytes.
    Integer(i64),
    /// A finite real number.
    Real(#[serde(deserialize_with = "finite")] f64),
    /// A word, for example `enable`.
    Text(String),
}

fn finite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(serde::de::Error::custom(format!(
            "{number} is not a finite number"
        )))
    }
}

enum Canonical<'a> {
    Integer(i64),
    Real(f64),
    Text(&'a str),
}

impl Value {
    fn canonical(&self) -> Canonical<'_> {
        // 2^63, the first whole number beyond i64; exact in f64.
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Value::Integer(number) => Canonical::Integer(*number),
            Value::Real(number) if number.fract() == 0.0 && (-BEYOND..BEYOND).contains(number) => {
                Canonical::Integer(*number as i64)
            }
            Value::Real(number) => Canonical::Real(*number),
            Value::Text(text) => Canonical::Text(text),
        }
    }

    /// The value as JSON text; equal values have equal texts.
    pub(crate) fn key(&self) -> String {
        let json = match self.canonical() {
            Canonical::Integer(number) => serde_json::Value::from(number),
            Canonical::Real(number) => serde_json::Value::from(number),
            Canonical::Text(text) => serde_json::Value::from(text),
        };
        json.to_string()
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        use Canonical::{Integer, Real, Text};
        // A `Real` here has a fraction or lies outside i64: it never equals an integer. Rounding
        // the integer to f64 keeps the order; only i64::MAX ties, with 2^63, which `then` resolves.
        let against = |integer: i64, real: f64| (integer as f64).total_cmp(&real);
        match (self.canonical(), other.canonical()) {
            (Integer(a), Integer(b)) => a.cmp(&b),
            (Real(a), Real(b)) => a.total_cmp(&b),
            (Integer(a), Real(b)) => against(a, b).then(Ordering::Less),
            (Real(a), Integer(b)) => against(b, a).then(Ordering::Less).reverse(),
            (Text(a), Text(b)) => a.cmp(b),
            (Text(_), _) => Ordering::Greater,
            (_, Text(_)) => Ordering::Less,
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.canonical() {
            Canonical::Integer(number) => number.hash(state),
            Canonical::Real(number) => number.to_bits().hash(state),
            Canonical::Text(text) => text.hash(state),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(f, "{number}"),
            Value::Real(number) => write!(f, "{number}"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_worth() {
        assert_eq!(Value::Integer(2), Value::Real(2.0));
        assert_eq!(Value::Real(2.0).key(), "2");
        assert_eq!(Value::Real(-0.0), Value::Integer(0));
        assert!(Value::Integer(i64::MAX) < Value::Real(9_223_372_036_854_775_808.0));
        assert!(Value::Real(1e300) > Value::Integer(i64::MAX));
        assert!(Value::Real(-1e300) < Value::Integer(i64::MIN));
        assert!(Value::Integer(2) < Value::Real(2.5) && Value::Real(2.5) < Value::Integer(3));
        assert!(Value::Integer(i64::MAX) < Value::from("0"));
        assert_ne!(Value::from("2"), Value::Integer(2));
    }

    #[test]
    fn json_form_is_plain() {
        let values: Vec<Value> = serde_json::from_str(r#"[16777216, 0.5, "enable"]"#).unwrap();
        assert_eq!(values[0], Value::Integer(16_777_216));
        assert!(matches!(values[1], Value::Real(x) if x == 0.5));
        assert_eq!(values[2], Value::from("enable"));
        assert_eq!(
            serde_json::to_string(&values).unwrap(),
            r#"[16777216,0.5,"enable"]"#
        );
        assert!(serde_json::from_str::<Value>("null").is_err());
        assert!(serde_json::from_str::<Value>("[1]").is_err());
    }
}
