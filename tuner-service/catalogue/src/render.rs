//! From a parametrization to what the job is given.

use io_autotune_engine::{Parametrization, SpaceError, Value};
use io_autotune_protocol::{DeliveredFile, Delivery};

use crate::Accelerator;

impl Accelerator {
    /// How `parametrization` reaches a job. A parameter that does not exist under it has no line; a
    /// file without lines is left out, and so is its variable.
    ///
    /// # Errors
    ///
    /// When the parametrization is not a point of this accelerator's space.
    pub fn render(&self, parametrization: &Parametrization) -> Result<Delivery, SpaceError> {
        self.space.validate(parametrization)?;
        let mut delivery = self.render_nothing();
        for file in &self.files {
            let content: String = file
                .parameters
                .iter()
                .filter_map(|name| parametrization.0.get(name).map(|value| (name, value)))
                .filter(|(name, value)| !(file.omit_default && self.is_default(name, value)))
                .map(|(name, value)| {
                    let line = file.line.replace("{name}", name);
                    line.replace("{value}", &value.to_string()) + "\n"
                })
                .collect();
            if !content.is_empty() {
                delivery.files.push(DeliveredFile {
                    name: file.name.clone(),
                    variable: file.variable.clone(),
                    content,
                });
            }
        }
        Ok(delivery)
    }

    fn is_default(&self, name: &str, value: &Value) -> bool {
        let mut parameters = self.space.parameters().iter();
        parameters.any(|parameter| parameter.name == name && parameter.default == *value)
    }

    /// A delivery of nothing, which still watches for the user's own settings.
    #[must_use]
    pub fn render_nothing(&self) -> Delivery {
        Delivery {
            files: Vec::new(),
            watch: self
                .files
                .iter()
                .map(|file| file.variable.clone())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accelerator() -> Accelerator {
        Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            [[parameters]]
            name = "sieve"
            kind = "categories"
            values = ["automatic", "enable"]
            default = "automatic"
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            omit_default = true
            parameters = ["sieve", "size"]
            "#,
        )
        .unwrap()
    }

    #[test]
    fn the_default_renders_nothing() {
        let accelerator = accelerator();
        let delivery = accelerator.render(&accelerator.space.default()).unwrap();
        assert_eq!(delivery, accelerator.render_nothing());
        assert_eq!(delivery.watch, ["HINTS"]);
    }

    #[test]
    fn only_what_differs_from_the_default_is_written() {
        let accelerator = accelerator();
        let mut parametrization = accelerator.space.default();
        parametrization.0.insert("size".into(), Value::Integer(4));
        let delivery = accelerator.render(&parametrization).unwrap();
        assert_eq!(delivery.files[0].content, "size 4\n");
    }

    #[test]
    fn a_foreign_parametrization_is_refused() {
        let mut parametrization = accelerator().space.default();
        parametrization.0.insert("size".into(), Value::Integer(3));
        assert!(accelerator().render(&parametrization).is_err());
    }

    #[test]
    fn a_parameter_that_does_not_exist_has_no_line() {
        let accelerator = Accelerator::parse(
            r#"
            name = "x"
            title = "x"
            constraints = [{ forbid = { cache = ["on"], size = [4] } }]
            [[parameters]]
            name = "cache"
            kind = "categories"
            values = ["off", "on"]
            default = "off"
            [[parameters]]
            name = "size"
            kind = "ordered"
            values = [1, 2, 4]
            default = 2
            when = { parameter = "cache", is = ["on"] }
            [[delivery.files]]
            name = "hints"
            variable = "HINTS"
            line = "{name} {value}"
            parameters = ["cache", "size"]
            "#,
        )
        .unwrap();
        let rendered = |values: &[(&str, Value)]| {
            let values = values.iter().cloned();
            let values = values.map(|(name, value)| (name.to_owned(), value));
            let parametrization = accelerator.space.complete(&values.collect())?;
            let delivery = accelerator.render(&parametrization)?;
            Ok::<_, SpaceError>(delivery.files[0].content.clone())
        };
        let on = ("cache", Value::from("on"));
        assert_eq!(rendered(&[]).unwrap(), "cache off\n");
        assert_eq!(
            rendered(std::slice::from_ref(&on)).unwrap(),
            "cache on\nsize 2\n"
        );
        let size = ("size", Value::Integer(1));
        assert_eq!(
            rendered(&[on.clone(), size.clone()]).unwrap(),
            "cache on\nsize 1\n"
        );
        let error = rendered(&[size]).unwrap_err().to_string();
        assert!(error.contains("only where cache is on"), "{error}");
        let error = rendered(&[on, ("size", Value::Integer(4))]).unwrap_err();
        assert!(error.to_string().contains("must hold"), "{error}");
    }
}
