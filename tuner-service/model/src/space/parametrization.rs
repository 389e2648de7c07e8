//! One value for every parameter.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// One value for every parameter of an accelerator, by name. A plain map:
/// [`Space::validate`](super::Space::validate) checks it against a space. Equal exactly if the
/// [`key`](Parametrization::key)s are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct Parametrization(pub BTreeMap<String, Value>);

impl Parametrization {
    /// The canonical text, a unique key: JSON, names sorted, whole numbers without a fraction.
    pub fn key(&self) -> String {
        let members: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| {
                format!("{}:{}", serde_json::Value::from(name.as_str()), value.key())
            })
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

impl fmt::Display for Parametrization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{name}={value}")?;
        }
        Ok(())
    }
}

/// A point of a space: the index of each parameter's level, in the space's order. Level 0 is the
/// smallest integer or the first value listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub Vec<u32>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_sorted_json_and_display_is_words() {
        let parametrization = Parametrization(BTreeMap::from([
            ("b".to_owned(), Value::from("en\"able")),
            ("a".to_owned(), Value::Real(1.0)),
        ]));
        assert_eq!(parametrization.key(), r#"{"a":1,"b":"en\"able"}"#);
        assert_eq!(parametrization.to_string(), "a=1 b=en\"able");
        let back: Parametrization = serde_json::from_str(&parametrization.key()).unwrap();
        assert_eq!(back, parametrization);
    }
}
