//! One line of the exchange with a session.

use std::collections::BTreeMap;

use io_autotune_configuration::explained;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::record::Outcome;

/// The valid lines, for messages.
pub(super) const FORMS: &str = r#"write {"ask":true}, {"tell":{"id":1,"elapsed":12.3}} (or "failed":true, or "censored":true with elapsed; "value" is another word for elapsed; "measures" optional), {"recommend":true}, {"add":{"parametrization":{..},"elapsed":12.3}}, {"runs":true}, {"importance":true} or {"plan":true}"#;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Ask,
    Tell {
        id: u64,
        outcome: Outcome,
        measures: BTreeMap<String, f64>,
    },
    /// A run that was not asked for; without an outcome it is open.
    Add {
        parametrization: Map<String, Json>,
        outcome: Option<Outcome>,
    },
    Recommend,
    Runs,
    Importance,
    Plan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    #[serde(default)]
    ask: bool,
    tell: Option<RawTell>,
    add: Option<RawAdd>,
    #[serde(default)]
    recommend: bool,
    #[serde(default)]
    runs: bool,
    #[serde(default)]
    importance: bool,
    #[serde(default)]
    plan: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTell {
    id: u64,
    #[serde(alias = "value")]
    elapsed: Option<f64>,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    censored: bool,
    measures: Option<Map<String, Json>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAdd {
    parametrization: Map<String, Json>,
    #[serde(alias = "value")]
    elapsed: Option<f64>,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    censored: bool,
}

impl Line {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let raw: RawLine =
            serde_json::from_str(text).map_err(|error| explained(&error.to_string()))?;
        let mut lines = Vec::new();
        lines.extend(raw.ask.then_some(Line::Ask));
        lines.extend(raw.recommend.then_some(Line::Recommend));
        lines.extend(raw.runs.then_some(Line::Runs));
        lines.extend(raw.importance.then_some(Line::Importance));
        lines.extend(raw.plan.then_some(Line::Plan));
        if let Some(tell) = raw.tell {
            lines.push(Line::Tell {
                id: tell.id,
                outcome: outcome(tell.elapsed, tell.failed, tell.censored)?,
                measures: measures(tell.measures.as_ref())?,
            });
        }
        if let Some(add) = raw.add {
            let is_open = add.elapsed.is_none() && !add.failed && !add.censored;
            let ended = || outcome(add.elapsed, add.failed, add.censored);
            lines.push(Line::Add {
                outcome: (!is_open).then(ended).transpose()?,
                parametrization: add.parametrization,
            });
        }
        match (lines.pop(), lines.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(
                "it holds none of ask, tell, recommend, add, runs, importance and plan, or more than one"
                    .to_owned(),
            ),
        }
    }
}

fn measures(named: Option<&Map<String, Json>>) -> Result<BTreeMap<String, f64>, String> {
    let named = named.into_iter().flatten();
    let read = named.map(|(name, value)| match value.as_f64() {
        Some(number) if number > 0.0 && number.is_finite() => Ok((name.clone(), number)),
        Some(number) => Err(format!("measure {name:?} is {number}: it must be positive")),
        None => Err(format!("measure {name:?} is not a number")),
    });
    read.collect()
}

fn outcome(elapsed: Option<f64>, failed: bool, censored: bool) -> Result<Outcome, String> {
    match (elapsed, failed, censored) {
        (_, true, false) => Ok(Outcome::Failed),
        (Some(elapsed), false, false) => Ok(Outcome::Value(elapsed)),
        (Some(elapsed), false, true) => Ok(Outcome::Cut(elapsed)),
        (None, false, true) => Err(
            "a censored run needs the seconds after which it was cut short as elapsed".to_owned(),
        ),
        (None, false, false) => Err("there is neither elapsed nor failed".to_owned()),
        (_, true, true) => Err("a run is failed or censored, not both".to_owned()),
    }
}
