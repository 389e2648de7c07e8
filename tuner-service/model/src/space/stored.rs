//! The stored form of a space, in files and in the database.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Constraint, Parameter, Space};

/// The form with constraints. A space without any is stored as the plain list, because epochs are
/// told apart by the stored text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constrained<P, C> {
    parameters: P,
    #[serde(default)]
    constraints: C,
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.constraints().is_empty() {
            return self.parameters().serialize(serializer);
        }
        Constrained {
            parameters: self.parameters(),
            constraints: self.constraints(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Form)
    }
}

/// Accepts both forms by the first character, so that errors concern the form that is meant.
struct Form;

impl<'de> Visitor<'de> for Form {
    type Value = Space;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of parameters, or an object of parameters and constraints")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Space, A::Error> {
        let parameters = Vec::<Parameter>::deserialize(SeqAccessDeserializer::new(list))?;
        Space::new(parameters).map_err(Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Space, A::Error> {
        let object = MapAccessDeserializer::new(object);
        let Constrained {
            parameters,
            constraints,
        } = Constrained::<Vec<Parameter>, Vec<Constraint>>::deserialize(object)?;
        Space::constrained(parameters, constraints).map_err(Error::custom)
    }
}
