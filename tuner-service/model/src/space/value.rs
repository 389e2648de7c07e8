//! One value of one parameter.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A value of a parameter, a plain number or string in JSON and TOML. Numbers compare and hash by
/// their numeric value (`Integer(2)` equals `Real(2.0)`), because a database may return `2` for
/// `2.0`. Texts sort last.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Value {
    /// A whole number, for example a number of bytes.
    Integer(i64),
    /// A finite real number.
    Real(f64),
    /// A word, for example `enable`.
    Text(String),
}

/// By hand, because serde's derived `untagged` tries one kind after the other and words an error for
/// each that it is not, which took a third of the time of a list of studies.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl Visitor<'_> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a text: write true and false in quotes")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        let real = || Value::Real(number as f64);
        Ok(i64::try_from(number).map_or_else(|_| real(), Value::Integer))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        if number.is_finite() {
            Ok(Value::Real(number))
        } else {
            Err(E::custom(format!("{number} is not a finite number")))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
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
    fn numbers_and_texts_are_read_as_what_they_are_and_nothing_else_is() {
        for (text, value) in [
            ("2", Value::Integer(2)),
            ("-9223372036854775808", Value::Integer(i64::MIN)),
            ("18446744073709551615", Value::Real(u64::MAX as f64)),
            ("2.0", Value::Real(2.0)),
            ("1e-3", Value::Real(0.001)),
            (r#""1""#, Value::Text("1".to_owned())),
        ] {
            let read: Value = serde_json::from_str(text).unwrap();
            let kinds = [&read, &value].map(std::mem::discriminant);
            assert!(read == value && kinds[0] == kinds[1], "{text}: {read:?}");
        }
        for text in ["true", "null", "[1]", r#"{"a": 1}"#] {
            let error = serde_json::from_str::<Value>(text).unwrap_err().to_string();
            assert!(error.contains("write true and false in quotes"), "{error}");
        }
        // TOML has numbers that are not finite.
        let float = serde::de::value::F64Deserializer::<serde::de::value::Error>::new;
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = Value::deserialize(float(number)).unwrap_err();
            assert!(error.to_string().contains("not a finite number"), "{error}");
        }
    }

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
