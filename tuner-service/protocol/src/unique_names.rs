//! Objects in which each name must be given only once.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Reads values by name. Returns an error if a name is given twice, because the last one would win
/// silently.
pub(crate) fn each_once<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let values: Option<Once> = Option::deserialize(deserializer)?;
    Ok(values.map(|Once(values)| values))
}

struct Once(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Names)
    }
}

struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values as text")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
        let mut values = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if let Some(before) = values.get(&name) {
                return Err(A::Error::custom(format!(
                    "{name:?} is given twice, as {before:?} and as {value:?}"
                )));
            }
            values.insert(name, value);
        }
        Ok(Once(values))
    }
}

#[cfg(test)]
mod tests {
    use crate::{OrderRequest, PinRequest};

    #[test]
    fn a_parameter_that_is_given_twice_is_refused() {
        let twice = r#"{"cb_nodes": "2", "a": "1", "cb_nodes": "4"}"#;
        let pin = serde_json::from_str::<PinRequest>(&format!(r#"{{"values": {twice}}}"#));
        let order = format!(r#"{{"kind": "pin", "values": {twice}}}"#);
        let order = serde_json::from_str::<OrderRequest>(&order);
        for told in [pin.unwrap_err(), order.unwrap_err()] {
            let told = told.to_string();
            assert!(
                told.contains(r#""cb_nodes" is given twice, as "2" and as "4""#),
                "{told}"
            );
        }
        for none in ["{}", r#"{"values": null}"#] {
            let pin: PinRequest = serde_json::from_str(none).unwrap();
            assert!(pin.values.is_none() && pin.why.is_empty(), "{none}");
        }
    }
}
