use std::borrow::Cow;
use std::fmt;

use io_autotune_model::{Parametrization, Value};
use serde::Deserialize;

/// A text with parameters' names in braces: `{cb_nodes}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Parameter(String),
}

/// The reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace without its other half.
    #[error("{0:?} has a brace without its other half: write {{NAME}} where a value belongs")]
    Brace(String),
    /// A control character, which a job's environment or a kernel setting cannot hold.
    #[error("{0:?} has a control character: use printable text")]
    Unprintable(String),
    /// The text names no parameter.
    #[error("{0:?} names no parameter: write {{NAME}} where the value of parameter NAME belongs")]
    Constant(String),
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, TemplateError> {
        let template = Self::parse(&text)?;
        if template.parameters().next().is_none() {
            return Err(TemplateError::Constant(text));
        }
        Ok(template)
    }
}

impl Template {
    /// Reads a text that need not name a parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateError> {
        let brace = || TemplateError::Brace(text.to_owned());
        if text.chars().any(char::is_control) {
            return Err(TemplateError::Unprintable(text.to_owned()));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        let plain = |part: &str| !part.contains(['{', '}']);
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(brace());
            };
            if !plain(before) || !plain(name) || name.is_empty() {
                return Err(brace());
            }
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Parameter(name.to_owned()));
            rest = after;
        }
        if !plain(rest) {
            return Err(brace());
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// The parameters it names.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text under a parametrization; `None` if a parameter that it names is inactive.
    #[must_use]
    pub fn render(&self, parametrization: &Parametrization) -> Option<String> {
        self.filled(|name| Some(parametrization.0.get(name).map(Value::to_string)?.into()))
    }

    /// The text with values in the place of names; `None` if a value is missing.
    pub(crate) fn filled<'a>(
        &self,
        value: impl Fn(&str) -> Option<Cow<'a, str>>,
    ) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Parameter(name) => text.push_str(&value(name)?),
            }
        }
        Some(text)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(part) => f.write_str(part),
            Piece::Parameter(name) => write!(f, "{{{name}}}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn template(text: &str) -> Result<Template, TemplateError> {
        text.to_owned().try_into()
    }

    #[test]
    fn values_stand_in_the_place_of_names() {
        let parametrization = Parametrization(BTreeMap::from([
            ("size".to_owned(), Value::Integer(4)),
            ("mode".to_owned(), Value::from("fast")),
        ]));
        let rendered = |text: &str| template(text).unwrap().render(&parametrization);
        assert_eq!(rendered("{size}").as_deref(), Some("4"));
        assert_eq!(
            rendered("-s {size}M,{mode}!").as_deref(),
            Some("-s 4M,fast!")
        );
        assert_eq!(rendered("{other}"), None);
        let both = template("-s {size}M,{mode}!").unwrap();
        assert_eq!(both.parameters().collect::<Vec<_>>(), ["size", "mode"]);
        assert_eq!(both.to_string(), "-s {size}M,{mode}!");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{", "}", "{a", "a}", "{a}}", "{{a}}", "{}", "{a}{"] {
            assert!(
                matches!(template(text), Err(TemplateError::Brace(_))),
                "{text}"
            );
        }
        assert!(matches!(template("plain"), Err(TemplateError::Constant(_))));
        assert!(matches!(
            template("{a}\n"),
            Err(TemplateError::Unprintable(_))
        ));
    }
}
