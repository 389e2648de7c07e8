//! JSON in which no key is given twice. Of a key that is, most readers take the last and say nothing.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON without a key that an object has twice, at any depth.
pub(crate) struct NoneTwice;

impl<'de> serde::Deserialize<'de> for NoneTwice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NoneTwice)
    }
}

impl<'de> Visitor<'de> for NoneTwice {
    type Value = NoneTwice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<NoneTwice>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = object.next_key::<String>()? {
            if keys.contains(&key) {
                let problem = format!("key `{key}` is given twice: remove one of them");
                return Err(A::Error::custom(problem));
            }
            keys.insert(key);
            object.next_value::<NoneTwice>()?;
        }
        Ok(self)
    }
}
