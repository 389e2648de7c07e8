//! From a parametrization to what the job is given.

use io_autotune_engine::{Parametrization, SpaceError};
use io_autotune_protocol::{DeliveredFile, Delivery};

use crate::Accelerator;

impl Accelerator {
    /// How `parametrization` reaches a job; a file without lines is left out, and so is its variable.
    ///
    /// # Errors
    ///
    /// When the parametrization is not a point of this accelerator's space.
    pub fn render(&self, parametrization: &Parametrization) -> Result<Delivery, SpaceError> {
        self.space.validate(parametrization)?;
        let default = self.space.default();
        let mut delivery = self.render_nothing();
        for file in &self.files {
            let content: String = file
                .parameters
                .iter()
                .filter_map(|name| parametrization.0.get(name).map(|value| (name, value)))
                .filter(|(name, value)| !(file.omit_default && default.0.get(*name) == Some(value)))
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
    use io_autotune_engine::Value;

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
}
