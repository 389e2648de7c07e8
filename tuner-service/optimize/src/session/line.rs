//! One line of the exchange with a session.

use std::collections::BTreeMap;

use io_autotune_configuration::explained;
use serde::Deserialize;
use serde_json::Value as Json;

/// The valid lines, for messages.
pub(super) const FORMS: &str = r#"write {"ask":true}, {"tell":{"id":1,"elapsed":12.3}} (or "failed":true, or "censored":true with elapsed; "measures" optional), or {"recommend":true}"#;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Ask,
    Tell {
        id: u64,
        outcome: Outcome,
        measures: BTreeMap<String, f64>,
    },
    Recommend,
}

/// The result of a run; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    Elapsed(f64),
    Failed,
    /// Its time limit ended it after so long.
    Censored(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    #[serde(default)]
    ask: bool,
    tell: Option<RawTell>,
    #[serde(default)]
    recommend: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTell {
    id: u64,
    elapsed: Option<f64>,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    censored: bool,
    measures: Option<serde_json::Map<String, Json>>,
}

impl Line {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let raw: RawLine =
            serde_json::from_str(text).map_err(|error| explained(&error.to_string()))?;
        match (raw.ask, raw.tell, raw.recommend) {
            (true, None, false) => Ok(Line::Ask),
            (false, None, true) => Ok(Line::Recommend),
            (false, Some(tell), false) => Ok(Line::Tell {
                id: tell.id,
                outcome: tell.outcome()?,
                measures: tell.measures()?,
            }),
            _ => Err("it holds none of ask, tell and recommend, or more than one".to_owned()),
        }
    }
}

impl RawTell {
    fn measures(&self) -> Result<BTreeMap<String, f64>, String> {
        let named = self.measures.iter().flatten();
        let read = named.map(|(name, value)| match value.as_f64() {
            Some(number) if number > 0.0 && number.is_finite() => Ok((name.clone(), number)),
            Some(number) => Err(format!("measure {name:?} is {number}: it must be positive")),
            None => Err(format!("measure {name:?} is not a number")),
        });
        read.collect()
    }

    fn outcome(&self) -> Result<Outcome, String> {
        match (self.elapsed, self.failed, self.censored) {
            (_, true, false) => Ok(Outcome::Failed),
            (Some(elapsed), false, false) => Ok(Outcome::Elapsed(elapsed)),
            (Some(elapsed), false, true) => Ok(Outcome::Censored(elapsed)),
            (None, false, true) => Err(
                "a censored run needs the seconds after which it was cut short as elapsed"
                    .to_owned(),
            ),
            (None, false, false) => Err("there is neither elapsed nor failed".to_owned()),
            (_, true, true) => Err("a run is failed or censored, not both".to_owned()),
        }
    }
}
