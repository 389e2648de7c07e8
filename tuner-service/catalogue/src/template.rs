use std::borrow::Cow;
use std::fmt;

use io_autotune_model::{Parametrization, Value};
use serde::Deserialize;

/// A text with parameters' names in braces: `{cb_nodes}`. Two braces stand for one that is meant as
/// it is: `{{"threads": {threads}}}` is `{"threads": 4}`.
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
    #[error(
        "{0:?} has a brace without its other half: write {{NAME}} where a value belongs, and two braces for one that stays"
    )]
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
        let (mut pieces, mut plain) = (Vec::new(), String::new());
        let mut rest = text.chars().peekable();
        while let Some(sign) = rest.next() {
            if !matches!(sign, '{' | '}') || rest.next_if_eq(&sign).is_some() {
                plain.push(sign);
                continue;
            }
            let mut name = String::new();
            let is_closed = loop {
                match rest.next() {
                    Some('}') => break true,
                    Some('{') | None => break false,
                    Some(sign) => name.push(sign),
                }
            };
            if sign == '}' || !is_closed || name.is_empty() {
                return Err(brace());
            }
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
            pieces.push(Piece::Parameter(name));
        }
        pieces.push(Piece::Text(plain));
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
            Piece::Text(part) => f.write_str(&part.replace('{', "{{").replace('}', "}}")),
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
        let json = r#"{{"size": {size}, "of": {{{size}}}}}"#;
        assert_eq!(rendered(json).as_deref(), Some(r#"{"size": 4, "of": {4}}"#));
        assert_eq!(template(json).unwrap().to_string(), json);
        let both = template("-s {size}M,{mode}!").unwrap();
        assert_eq!(both.parameters().collect::<Vec<_>>(), ["size", "mode"]);
        assert_eq!(both.to_string(), "-s {size}M,{mode}!");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for text in ["{", "}", "{a", "a}", "{a}}", "{{a}", "{}", "{a}{", "{a{b}}"] {
            assert!(
                matches!(template(text), Err(TemplateError::Brace(_))),
                "{text}"
            );
        }
        for text in ["plain", "{{a}}"] {
            assert!(matches!(template(text), Err(TemplateError::Constant(_))));
        }
        assert!(matches!(
            template("{a}\n"),
            Err(TemplateError::Unprintable(_))
        ));
    }
}
