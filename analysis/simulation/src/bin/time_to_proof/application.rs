//! The application: a made space, and what each of its points takes.

use std::collections::BTreeMap;

use io_autotune_engine::{Parametrization, Space, Value};
use serde_json::json;

/// Seconds of the default.
const DEFAULT_SECONDS: f64 = 100.0;
/// The effects of a parameter's values, by their place; the default's adds nothing. Together the best
/// ones add -1, three quarters of it by two parameters; the worst ones 0.9.
const STRIPES: [f64; 6] = [0.4, 0.2, 0.0, -0.3, -0.5, -0.3];
const WRITERS: [f64; 8] = [0.0, -0.1, -0.2, -0.25, -0.25, -0.2, -0.1, 0.1];
const BUFFERING: [f64; 3] = [0.0, -0.15, 0.35];
const COLLECTIVE: [f64; 3] = [0.0, 0.1, -0.1];
const READ_AHEAD: [f64; 6] = [0.05, 0.0, 0.0, 0.0, 0.0, 0.05];
const WORDS: [&str; 3] = ["automatic", "enable", "disable"];

/// The application that is tuned.
pub(crate) trait Application: Sync {
    fn space(&self) -> &Space;
    /// Log of the default's elapsed over the parametrization's.
    fn log_gain(&self, parametrization: &Parametrization) -> f64;
    /// Returns what its runs do, by the measures' names.
    fn measures(&self) -> Option<&BTreeMap<String, f64>> {
        None
    }

    /// Seconds without noise.
    fn seconds(&self, parametrization: &Parametrization) -> f64 {
        DEFAULT_SECONDS * (-self.log_gain(parametrization)).exp()
    }
}

/// An application of 2592 points, of which 8 take least.
pub(crate) struct Made {
    space: Space,
    /// Log of the default's elapsed over the best point's.
    most: f64,
}

impl Made {
    /// One whose best point takes this share less than the default. Of its parameters, the most
    /// important first, so many are tuned.
    pub(crate) fn new(gain: f64, parameters: usize) -> Result<Self, serde_json::Error> {
        let mut all = json!([
            { "name": "stripes", "kind": "ordered", "values": [1, 2, 4, 8, 16, 32], "default": 4 },
            { "name": "writers", "kind": "integer", "min": 1, "max": 8, "default": 1 },
            { "name": "buffering", "kind": "categories", "values": WORDS, "default": "automatic" },
            { "name": "collective", "kind": "categories", "values": WORDS, "default": "automatic" },
            { "name": "read_ahead", "kind": "ordered", "values": [64, 128, 256, 512, 1024, 2048],
              "default": 128 },
        ]);
        if let Some(all) = all.as_array_mut() {
            all.truncate(parameters);
        }
        Ok(Made {
            space: serde_json::from_value(all)?,
            most: -(-gain).ln_1p(),
        })
    }
}

impl Application for Made {
    fn space(&self) -> &Space {
        &self.space
    }

    fn log_gain(&self, parametrization: &Parametrization) -> f64 {
        let number = |name: &str| match parametrization.0.get(name) {
            Some(Value::Integer(number)) => *number,
            // What is not tuned has its default.
            _ => match name {
                "stripes" => 4,
                "writers" => 1,
                _ => 128,
            },
        };
        let doubled = |name: &str, first: i64| (number(name) / first).max(1).ilog2() as usize;
        let word = |name: &str| {
            let value = parametrization.0.get(name).map(ToString::to_string);
            let is = |word: &str| value.as_deref() == Some(word);
            WORDS.iter().position(|word| is(word)).unwrap_or(0)
        };
        // Writers need a buffer.
        let writers = match word("buffering") {
            2 => 0.0,
            _ => WRITERS[usize::try_from(number("writers") - 1).unwrap_or(0)],
        };
        let added = STRIPES[doubled("stripes", 1)]
            + writers
            + BUFFERING[word("buffering")]
            + COLLECTIVE[word("collective")]
            + READ_AHEAD[doubled("read_ahead", 64)];
        -self.most * added
    }
}
