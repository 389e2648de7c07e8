//! From a parametrization to what the job is given.

use io_autotune_engine::{Parametrization, SpaceError};

use crate::Accelerator;

/// What a job is given so that a parametrization takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendering {
    /// Files to write; a file without lines is left out, and so is its variable.
    pub files: Vec<RenderedFile>,
    /// Variables of this accelerator that a user may have set, whether or not we set them.
    pub watch: Vec<String>,
}

/// One file of a [`Rendering`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// The file's name inside the job's directory.
    pub name: String,
    /// The variable that names it.
    pub variable: String,
    /// Its text.
    pub content: String,
}

impl Accelerator {
    /// Renders `parametrization`, or only what to watch for where nothing is to be applied.
    ///
    /// # Errors
    ///
    /// When the parametrization is not a point of this accelerator's space.
    pub fn render(&self, parametrization: &Parametrization) -> Result<Rendering, SpaceError> {
        self.space.validate(parametrization)?;
        let default = self.space.default();
        let mut rendering = self.render_nothing();
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
                rendering.files.push(RenderedFile {
                    name: file.name.clone(),
                    variable: file.variable.clone(),
                    content,
                });
            }
        }
        Ok(rendering)
    }

    /// A rendering that applies nothing and still watches for the user's own settings.
    #[must_use]
    pub fn render_nothing(&self) -> Rendering {
        Rendering {
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
        let rendering = accelerator.render(&accelerator.space.default()).unwrap();
        assert_eq!(rendering, accelerator.render_nothing());
        assert_eq!(rendering.watch, ["HINTS"]);
    }

    #[test]
    fn only_what_differs_from_the_default_is_written() {
        let accelerator = accelerator();
        let mut parametrization = accelerator.space.default();
        parametrization.0.insert("size".into(), Value::Integer(4));
        let rendering = accelerator.render(&parametrization).unwrap();
        assert_eq!(rendering.files[0].content, "size 4\n");
    }

    #[test]
    fn a_foreign_parametrization_is_refused() {
        let mut parametrization = accelerator().space.default();
        parametrization.0.insert("size".into(), Value::Integer(3));
        assert!(accelerator().render(&parametrization).is_err());
    }
}
