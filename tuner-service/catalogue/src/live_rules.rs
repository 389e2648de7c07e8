use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use io_autotune_configuration::read_text;

use crate::applications::{Rules, RulesError, SHIPPED};
use crate::followed::{Refused, Stamp};

/// The rules of a file as of the last [`LiveRules::refresh`], or the shipped ones. A file that is
/// wrong or gone leaves the last valid rules in use.
#[derive(Debug)]
pub struct LiveRules {
    path: Option<PathBuf>,
    state: RwLock<State>,
}

#[derive(Clone, Debug)]
struct State {
    rules: Arc<Rules>,
    stamp: Stamp,
    problem: Option<String>,
}

/// The reason why there are no rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    /// The file could not be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file was refused.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The faults in it.
        source: RulesError,
    },
    /// The built-in rules were refused.
    #[error("the built-in rules: {0}")]
    Shipped(RulesError),
}

impl Rules {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, RulesFileError> {
        let text = read_text(path).map_err(|source| RulesFileError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text).map_err(|source| RulesFileError::File {
            path: path.to_owned(),
            source,
        })
    }
}

impl LiveRules {
    /// The rules of a file, or the shipped ones. Returns an error if they are wrong: other rules
    /// would give applications other names, which no later correction takes back.
    pub fn open(path: Option<&Path>) -> Result<Self, RulesFileError> {
        let (stamp, rules) = match path {
            // The stamp is taken first, so that a change in between is seen by the next refresh.
            Some(path) => (Stamp::of(path).unwrap_or_default(), Rules::load(path)?),
            None => {
                let rules = Rules::parse(SHIPPED).map_err(RulesFileError::Shipped)?;
                (Stamp::default(), rules)
            }
        };
        Ok(Self {
            path: path.map(Path::to_owned),
            state: RwLock::new(State {
                rules: Arc::new(rules),
                stamp,
                problem: None,
            }),
        })
    }

    /// The file, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The present rules. Later changes do not affect the returned ones.
    #[must_use]
    pub fn current(&self) -> Arc<Rules> {
        self.state().rules
    }

    /// The file, if it is wrong.
    #[must_use]
    pub fn refused(&self) -> Option<Refused> {
        Some(Refused {
            path: self.path.clone()?,
            problem: self.state().problem?,
        })
    }

    fn state(&self) -> State {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }

    /// Reads the file if it has changed. Returns the number of its rules, or what is newly wrong.
    /// For one caller at a time.
    pub fn refresh(&self) -> Option<Result<usize, Refused>> {
        let path = self.path.as_deref()?;
        let before = self.state();
        let stamp = Stamp::of(path).unwrap_or_default();
        // Without a stamp the file is tried at every refresh.
        if stamp == before.stamp && stamp != Stamp::default() {
            return None;
        }
        let (after, change) = match Rules::load(path) {
            Ok(rules) => {
                let count = rules.count();
                let state = State {
                    rules: Arc::new(rules),
                    stamp,
                    problem: None,
                };
                (state, Some(Ok(count)))
            }
            Err(error) => {
                let problem = match error {
                    RulesFileError::Io { source, .. } => source.to_string(),
                    RulesFileError::File { source, .. } | RulesFileError::Shipped(source) => {
                        source.to_string()
                    }
                };
                let refused = Refused {
                    path: path.to_owned(),
                    problem: problem.clone(),
                };
                let told = before.problem.as_ref() == Some(&problem);
                let state = State {
                    stamp,
                    problem: Some(problem),
                    ..before
                };
                (state, (!told).then_some(Err(refused)))
            }
        };
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = after;
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(application: &str) -> String {
        format!("[[rules]]\nname = \"r\"\njob_name = '^x'\napplication = \"{application}\"\n")
    }

    /// Replaces the file as an admin's tools do: written beside it and renamed.
    fn write(path: &Path, text: &str) {
        let temporary = path.with_extension("new");
        std::fs::write(&temporary, text).unwrap();
        std::fs::rename(temporary, path).unwrap();
    }

    fn application(live: &LiveRules) -> Option<String> {
        let application = live.current().named(Some("x"), None).application;
        application.map(|one| one.name().to_owned())
    }

    #[test]
    fn the_file_is_followed_and_a_bad_one_leaves_what_it_last_said_rightly() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("applications.toml");
        assert!(LiveRules::open(Some(&path)).is_err());
        write(&path, &rule("one"));
        let live = LiveRules::open(Some(&path)).unwrap();
        assert_eq!(application(&live).as_deref(), Some("one"));
        assert_eq!(live.refresh(), None, "nothing has changed");

        write(&path, &rule("another"));
        assert_eq!(live.refresh(), Some(Ok(1)));
        assert_eq!(application(&live).as_deref(), Some("another"));

        write(&path, &rule("{none}"));
        let refused = live.refresh().unwrap().unwrap_err();
        assert!(refused.to_string().contains("rule \"r\""), "{refused}");
        assert!(refused.to_string().contains("applications.toml"));
        assert_eq!(live.refresh(), None, "it is told once");
        assert_eq!(live.refused(), Some(refused));
        assert_eq!(application(&live).as_deref(), Some("another"));
        assert!(LiveRules::open(Some(&path)).is_err());

        std::fs::remove_file(&path).unwrap();
        assert!(matches!(live.refresh(), Some(Err(_))));
        assert_eq!(live.refresh(), None);
        assert_eq!(application(&live).as_deref(), Some("another"));
        write(&path, "");
        assert_eq!(live.refresh(), Some(Ok(0)));
        assert_eq!(
            (live.refused(), application(&live).as_deref()),
            (None, Some("x"))
        );
    }

    #[test]
    fn without_a_file_the_shipped_rules_are_used() {
        let live = LiveRules::open(None).unwrap();
        assert_eq!(
            (live.path(), live.refresh(), live.refused()),
            (None, None, None)
        );
        assert_eq!(live.current().text(), SHIPPED);
    }
}
