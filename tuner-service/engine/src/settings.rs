//! What a site can set about how studies are tuned.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::history::words;

/// The largest design: it is computed anew for each suggestion.
pub const MAX_DESIGN_POINTS: u32 = 256;

/// How an epoch is run. A field that is left out has its default; an unknown one is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The method that proposes parametrizations in the search.
    pub method: MethodName,
    /// How many runs of the default come first.
    pub baseline_runs: u32,
    /// How many points the Latin hypercube has. The paper's 15 (robert2020, section VIII-D).
    pub design_points: u32,
    /// How many design and search runs there are together. The paper's 50.
    pub budget: u32,
    /// How many runs may explore at once.
    pub exploring: u32,
    /// Once settled, one run in so many is a control run; at least 2.
    pub control_every: u32,
    /// The largest coefficient of variation, standard deviation over mean, that the default's runs may
    /// have before they are taken for different work under one name.
    pub max_baseline_cv: f64,
    /// The settings of the method `robert2020`.
    pub robert2020: Robert2020,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: MethodName::Robert2020,
            baseline_runs: 4,
            design_points: 15,
            budget: 50,
            exploring: 8,
            control_every: 10,
            max_baseline_cv: 0.5,
            robert2020: Robert2020::default(),
        }
    }
}

/// The name of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MethodName {
    /// The published method: a genetic algorithm with standard-error dynamic resampling.
    Robert2020,
}

words!(MethodName, "method", Robert2020 => "robert2020");

/// The settings of the method `robert2020`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Robert2020 {
    /// How the parents of a child are chosen (section V-B).
    pub selection: Selection,
    /// How they are mixed (section V-C).
    pub crossover: Crossover,
    /// The probability that a child mutates, from 0 to 1 (sections V-D and VIII-D).
    pub mutation_rate: f64,
    /// The p of `th_se = p * mean of the design` (section VI-A-c).
    pub resampling_share: f64,
}

impl Default for Robert2020 {
    fn default() -> Self {
        Robert2020 {
            selection: Selection::default(),
            crossover: Crossover::default(),
            mutation_rate: 0.2,
            resampling_share: 0.10,
        }
    }
}

/// How parents are chosen (robert2020, section V-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Selection {
    /// Two pools are drawn at random; the best of each, by mean, is a parent.
    Tournament {
        /// How many parametrizations a pool holds. The paper gives no number.
        pool_size: u32,
    },
    /// Parents are drawn with a probability that falls as their mean rises.
    Probabilistic,
}

impl Default for Selection {
    fn default() -> Self {
        Selection::Tournament { pool_size: 5 }
    }
}

/// How two parents become one child (robert2020, section V-C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Crossover {
    /// One cut: the first part of one parent, the rest of the other.
    #[default]
    SinglePoint,
    /// Several cuts: the parts come from the parents in turn.
    NPoint {
        /// The number of cuts. A space of d parameters has d - 1 places to cut; more are not made.
        points: u32,
    },
}

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{setting} is {value}: it must be {allowed}")]
pub struct SettingsError {
    /// The setting, with its path.
    pub setting: &'static str,
    /// The value that was given.
    pub value: String,
    /// The values that can be used, in words.
    pub allowed: String,
}

impl Settings {
    /// Checks that every setting can be used.
    ///
    /// # Errors
    /// The first setting that cannot be used, with the values that can.
    pub fn validate(&self) -> Result<(), SettingsError> {
        whole("baseline_runs", self.baseline_runs, 2, 1000)?;
        whole("design_points", self.design_points, 2, MAX_DESIGN_POINTS)?;
        whole("budget", self.budget, self.design_points, 100_000)?;
        whole("exploring", self.exploring, 1, 100_000)?;
        whole("control_every", self.control_every, 2, 1_000_000)?;
        let cv = self.max_baseline_cv;
        if !(cv > 0.0 && cv <= 100.0) {
            return Err(SettingsError {
                setting: "max_baseline_cv",
                value: cv.to_string(),
                allowed: "above 0 and at most 100, as a share of the mean".to_owned(),
            });
        }
        self.robert2020.validate()
    }
}

impl Robert2020 {
    fn validate(&self) -> Result<(), SettingsError> {
        if let Selection::Tournament { pool_size } = self.selection {
            whole("robert2020.selection.pool_size", pool_size, 1, 100_000)?;
        }
        if let Crossover::NPoint { points } = self.crossover {
            whole("robert2020.crossover.points", points, 1, 100)?;
        }
        let rate = self.mutation_rate;
        if !(0.0..=1.0).contains(&rate) {
            return Err(SettingsError {
                setting: "robert2020.mutation_rate",
                value: rate.to_string(),
                allowed: "from 0 to 1".to_owned(),
            });
        }
        let share = self.resampling_share;
        if !(share > 0.0 && share <= 10.0) {
            return Err(SettingsError {
                setting: "robert2020.resampling_share",
                value: share.to_string(),
                allowed: "above 0 and at most 10, as a share of the design's mean".to_owned(),
            });
        }
        Ok(())
    }
}

fn whole(setting: &'static str, value: u32, min: u32, max: u32) -> Result<(), SettingsError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingsError {
        setting,
        value: value.to_string(),
        allowed: format!("from {min} to {max}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_round_trip() {
        let settings: Settings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, Settings::default());
        settings.validate().unwrap();
        let json = serde_json::to_string(&settings).unwrap();
        assert!(json.contains(r#""method":"robert2020""#), "{json}");
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
    }

    #[test]
    fn unknown_fields_are_refused() {
        for json in [
            r#"{"bugdet": 3}"#,
            r#"{"robert2020": {"p": 1}}"#,
            r#"{"robert2020": {"selection": {"kind": "tournament", "pool_size": 3, "x": 1}}}"#,
            r#"{"robert2020": {"selection": {"kind": "roulette"}}}"#,
            r#"{"method": "magic"}"#,
        ] {
            assert!(serde_json::from_str::<Settings>(json).is_err(), "{json}");
        }
        let json = r#"{"robert2020": {"crossover": {"kind": "n_point", "points": 2},
                       "selection": {"kind": "probabilistic"}}}"#;
        let settings: Settings = serde_json::from_str(json).unwrap();
        assert_eq!(
            settings.robert2020.crossover,
            Crossover::NPoint { points: 2 }
        );
        assert_eq!(settings.robert2020.selection, Selection::Probabilistic);
    }

    #[test]
    fn each_setting_is_checked() {
        type Edit = fn(&mut Settings);
        let edits: [(&str, Edit); 10] = [
            ("baseline_runs", |s| s.baseline_runs = 1),
            ("design_points", |s| s.design_points = 0),
            ("budget", |s| s.budget = s.design_points - 1),
            ("exploring", |s| s.exploring = 0),
            ("control_every", |s| s.control_every = 1),
            ("max_baseline_cv", |s| s.max_baseline_cv = f64::NAN),
            ("pool_size", |s| {
                s.robert2020.selection = Selection::Tournament { pool_size: 0 }
            }),
            ("points", |s| {
                s.robert2020.crossover = Crossover::NPoint { points: 0 }
            }),
            ("mutation_rate", |s| s.robert2020.mutation_rate = f64::NAN),
            ("resampling_share", |s| s.robert2020.resampling_share = 0.0),
        ];
        for (name, edit) in edits {
            let mut settings = Settings::default();
            edit(&mut settings);
            let error = settings.validate().unwrap_err();
            assert!(error.setting.ends_with(name), "{error}");
        }
    }
}
