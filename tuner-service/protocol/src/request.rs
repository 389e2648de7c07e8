//! A user's request by `--io-autotune`, in the canonical form that travels with the job.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What to do with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Measure it and apply the next parametrization.
    #[default]
    Tune,
    /// Measure and record, apply nothing.
    Observe,
}

/// Why a job is not treated as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The job's name does not identify an application, so different work would mix.
    MeaninglessName,
}

/// A user's request, from the plugin's canonical text
/// `app=NAME,accelerator=NAME,mode=tune|observe[,note=meaningless_name]`.
///
/// The user can forge the text in the job's environment: the prolog parses it strictly again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The application's name; absent if the job has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The accelerator's name, or several joined by `+` in any order; absent: the site's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<String>,
    /// What to do with the job.
    #[serde(default)]
    pub mode: Mode,
    /// Why the mode is not the requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// Why a request's text was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An item is not `key=value` with a known key.
    #[error(
        "{0:?} is not one of app=NAME, accelerator=NAME, mode=tune|observe, note=meaningless_name"
    )]
    Item(String),
    /// A key is given twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// A name is too long, or has a character that is not allowed.
    #[error(
        "{key}={value:?} is not a name: at most 128 of letters, digits and . _ + @ -, starting with a letter or digit"
    )]
    Name {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
    },
}

impl Request {
    /// Checks the names of a request that did not come by [`FromStr`]. Errs with the wrong field.
    pub fn validate(&self) -> Result<(), RequestError> {
        for (key, value) in [("app", &self.app), ("accelerator", &self.accelerator)] {
            if let Some(value) = value {
                check_name(key, value)?;
            }
        }
        Ok(())
    }
}

fn check_name(key: &'static str, value: &str) -> Result<(), RequestError> {
    let valid = value.len() <= 128
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '@' | '-'));
    if valid {
        Ok(())
    } else {
        Err(RequestError::Name {
            key,
            value: value.to_owned(),
        })
    }
}

impl FromStr for Request {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        fn set<T>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), RequestError> {
            match slot.replace(value) {
                None => Ok(()),
                Some(_) => Err(RequestError::Twice(key)),
            }
        }
        let (mut app, mut accelerator, mut mode, mut note) = (None, None, None, None);
        for item in text.split(',').filter(|item| !item.is_empty()) {
            match item.split_once('=') {
                Some(("app", value)) => {
                    check_name("app", value)?;
                    set(&mut app, "app", value.to_owned())?;
                }
                Some(("accelerator", value)) => {
                    check_name("accelerator", value)?;
                    set(&mut accelerator, "accelerator", value.to_owned())?;
                }
                Some(("mode", "tune")) => set(&mut mode, "mode", Mode::Tune)?,
                Some(("mode", "observe")) => set(&mut mode, "mode", Mode::Observe)?,
                Some(("note", "meaningless_name")) => {
                    set(&mut note, "note", Note::MeaninglessName)?;
                }
                _ => return Err(RequestError::Item(item.to_owned())),
            }
        }
        Ok(Self {
            app,
            accelerator,
            mode: mode.unwrap_or_default(),
            note,
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(app) = &self.app {
            write!(f, "app={app},")?;
        }
        if let Some(accelerator) = &self.accelerator {
            write!(f, "accelerator={accelerator},")?;
        }
        f.write_str(match self.mode {
            Mode::Tune => "mode=tune",
            Mode::Observe => "mode=observe",
        })?;
        match self.note {
            Some(Note::MeaninglessName) => f.write_str(",note=meaningless_name"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_text_is_read() {
        let request: Request = "app=ocean,accelerator=romio,mode=observe".parse().unwrap();
        assert_eq!(request.app.as_deref(), Some("ocean"));
        assert_eq!(request.accelerator.as_deref(), Some("romio"));
        assert_eq!(request.mode, Mode::Observe);
        let several: Request = "accelerator=romio+page-cache".parse().unwrap();
        assert_eq!(several.accelerator.as_deref(), Some("romio+page-cache"));
    }

    #[test]
    fn each_mistake_is_named() {
        for (text, expected) in [
            ("mode=off", "mode=off"),
            ("app=a,app=b", "app is given twice"),
            ("app=../../etc", "not a name"),
            ("app=", "not a name"),
            ("romio", "is not one of"),
            ("app=a\nb", "not a name"),
        ] {
            let message = text.parse::<Request>().unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn fuzz_request() {
        let samples = [
            "app=ocean,accelerator=romio,mode=observe,note=meaningless_name",
            "mode=tune",
        ];
        io_autotune_fuzzing::Target::new("request", &samples).run(|input| {
            let Ok(text) = str::from_utf8(input) else {
                return;
            };
            match text.parse::<Request>() {
                Ok(request) => assert_eq!(request.to_string().parse::<Request>().unwrap(), request),
                Err(error) => {
                    let message = error.to_string();
                    let named = ["app", "accelerator", "mode", "note"];
                    assert!(named.iter().any(|key| message.contains(key)), "{message}");
                    assert!(!message.contains(char::is_control), "{message:?}");
                }
            }
        });
    }
}
