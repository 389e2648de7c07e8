//! The settings of studies.

use serde::{Deserialize, Serialize};

use io_autotune_model::words;

pub(crate) use crate::checks::MAX_DESIGN_POINTS;
pub(crate) use crate::checks::{SettingsError, positive, whole};
pub(crate) use crate::guards::regret::settings::RegretSettings;
pub(crate) use crate::search::alabed2021::settings::{Alabed2021Multitask, Clusters, MOST_TASKS};
pub(crate) use crate::search::cao2018::settings::{
    Cao2018Annealing, Cao2018Bayesian, Cao2018Cooling, Cao2018Dqn, Cao2018Genetic,
};
pub(crate) use crate::search::robert2019::settings::{
    Restart, Robert2019Annealing, Robert2019Cooling, Robert2019Surrogate,
};
pub(crate) use crate::search::robert2020::settings::{
    Crossover, Noise, Regression, Resampling, Robert2020, Selection,
};
pub(crate) use crate::settled::drift::settings::DriftSettings;
pub(crate) use crate::study::stopping::settings::{
    Distance, Distinct, Improvement, NothingLeft, Stop,
};
pub(crate) use io_autotune_model::reason::Acquisition;

/// How an epoch is run. A missing field has its default; an unknown one is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The method that proposes parametrizations in the search.
    pub method: MethodName,
    /// Runs of the default at the start.
    pub baseline_runs: u32,
    /// Points of the Latin hypercube. The paper's 15 (robert2020, section VIII-D).
    pub design_points: u32,
    /// Design and search runs together. The paper's 50.
    pub budget: u32,
    /// The maximum number of exploring runs at once.
    pub exploring: u32,
    /// Whether there are control runs: always on a site, not in searches outside Slurm.
    pub controls: bool,
    /// Settled: one run in this many is a control run until the gain is resolved; at least 2.
    pub control_every: u32,
    /// The same once the gain is resolved; `control_every` if that is more.
    pub control_every_resolved: u32,
    /// The settings of the method `surrogate-genetic`.
    #[serde(rename = "surrogate-genetic", alias = "default")]
    pub surrogate_genetic: SurrogateGeneticSettings,
    /// The largest coefficient of variation of the default's runs before they pass for mixed work.
    pub max_baseline_cv: f64,
    /// The regret budget.
    #[serde(rename = "loss")]
    pub regret: RegretSettings,
    /// Which changes end a settled epoch, and how the next one runs.
    pub drift: DriftSettings,
    /// Stopping criteria beside the budget; none by default.
    pub stop: Stop,
    /// The settings of the method `robert2020`.
    pub robert2020: Robert2020,
    /// The settings of the method `robert2019-surrogate`.
    #[serde(rename = "robert2019-surrogate")]
    pub robert2019_surrogate: Robert2019Surrogate,
    /// The settings of the method `robert2019-annealing`.
    #[serde(rename = "robert2019-annealing")]
    pub robert2019_annealing: Robert2019Annealing,
    /// The settings of the method `cao2018-annealing`.
    #[serde(rename = "cao2018-annealing")]
    pub cao2018_annealing: Cao2018Annealing,
    /// The settings of the method `cao2018-genetic`.
    #[serde(rename = "cao2018-genetic")]
    pub cao2018_genetic: Cao2018Genetic,
    /// The settings of the method `cao2018-bayesian`.
    #[serde(rename = "cao2018-bayesian")]
    pub cao2018_bayesian: Cao2018Bayesian,
    /// The settings of the method `cao2018-dqn`.
    #[serde(rename = "cao2018-dqn")]
    pub cao2018_dqn: Cao2018Dqn,
    /// The settings of the method `alabed2021-multitask`.
    #[serde(rename = "alabed2021-multitask")]
    pub alabed2021_multitask: Alabed2021Multitask,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            method: MethodName::SurrogateGenetic,
            baseline_runs: 4,
            design_points: 15,
            budget: 50,
            exploring: 8,
            controls: true,
            control_every: 10,
            control_every_resolved: 20,
            surrogate_genetic: SurrogateGeneticSettings::default(),
            max_baseline_cv: 0.5,
            regret: RegretSettings::default(),
            drift: DriftSettings::default(),
            stop: Stop::default(),
            robert2020: Robert2020::default(),
            robert2019_surrogate: Robert2019Surrogate::default(),
            robert2019_annealing: Robert2019Annealing::default(),
            cao2018_annealing: Cao2018Annealing::default(),
            cao2018_genetic: Cao2018Genetic::default(),
            cao2018_bayesian: Cao2018Bayesian::default(),
            cao2018_dqn: Cao2018Dqn::default(),
            alabed2021_multitask: Alabed2021Multitask::default(),
        }
    }
}

/// The name of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodName {
    /// Ours: a genetic algorithm whose candidate children a surrogate ranks.
    #[serde(rename = "surrogate-genetic", alias = "default")]
    SurrogateGenetic,
    /// Robert, Zertal and Vaumourin 2020: a genetic algorithm with the noise reductions of table V.
    Robert2020,
    /// Robert, Zertal and Goret 2019: a surrogate model with an acquisition function.
    Robert2019Surrogate,
    /// Robert, Zertal and Goret 2019: simulated annealing.
    Robert2019Annealing,
    /// Cao, Tarasov, Tiwari and Zadok 2018: simulated annealing.
    Cao2018Annealing,
    /// Cao, Tarasov, Tiwari and Zadok 2018: a genetic algorithm in generations.
    Cao2018Genetic,
    /// Cao, Tarasov, Tiwari and Zadok 2018: Bayesian optimisation.
    Cao2018Bayesian,
    /// Cao, Tarasov, Tiwari and Zadok 2018: a deep Q-network.
    Cao2018Dqn,
    /// Alabed and Yoneki 2021: a multi-task Gaussian process of elapsed and measures.
    #[serde(rename = "alabed2021-multitask")]
    Alabed2021Multitask,
    /// Points drawn at random, none twice: the comparison for all methods. It has no settings.
    Random,
}

words!(MethodName, "method",
    SurrogateGenetic => "surrogate-genetic" | "default", Robert2020 => "robert2020",
    Robert2019Surrogate => "robert2019-surrogate", Robert2019Annealing => "robert2019-annealing",
    Cao2018Annealing => "cao2018-annealing", Cao2018Genetic => "cao2018-genetic",
    Cao2018Bayesian => "cao2018-bayesian", Cao2018Dqn => "cao2018-dqn",
    Alabed2021Multitask => "alabed2021-multitask", Random => "random");

/// The settings of the method `surrogate-genetic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SurrogateGeneticSettings {
    /// The minimum size of its Latin hypercube: its surrogate learns from every run. Each category
    /// runs once, up to `design_points` of [`Settings`].
    pub design_points: u32,
}

impl Default for SurrogateGeneticSettings {
    fn default() -> Self {
        SurrogateGeneticSettings { design_points: 3 }
    }
}

impl Settings {
    /// The settings of an epoch that inherits ranks: a smaller budget.
    #[must_use]
    pub fn inheriting(&self) -> Self {
        Settings {
            budget: self.budget.min(self.drift.budget),
            ..self.clone()
        }
    }

    /// Errs on the first setting that cannot be used, with the allowed values.
    pub fn validate(&self) -> Result<(), SettingsError> {
        whole("baseline_runs", self.baseline_runs, 2, 1000)?;
        whole("design_points", self.design_points, 2, MAX_DESIGN_POINTS)?;
        whole("budget", self.budget, self.design_points, 100_000)?;
        whole("exploring", self.exploring, 1, 100_000)?;
        if !self.controls {
            return Err(SettingsError {
                setting: "controls",
                value: "false".to_owned(),
                allowed: "true, because a study's gain is measured by its control runs".to_owned(),
            });
        }
        whole("control_every", self.control_every, 2, 1_000_000)?;
        whole(
            "control_every_resolved",
            self.control_every_resolved,
            2,
            1_000_000,
        )?;
        whole(
            "surrogate-genetic.design_points",
            self.surrogate_genetic.design_points,
            2,
            MAX_DESIGN_POINTS,
        )?;
        positive(
            "max_baseline_cv",
            self.max_baseline_cv,
            100.0,
            ", as a share of the mean",
        )?;
        self.regret.validate()?;
        self.drift.validate()?;
        self.stop.validate()?;
        self.robert2020.validate()?;
        self.robert2019_surrogate.validate()?;
        self.robert2019_annealing.validate()?;
        self.cao2018_annealing.validate()?;
        self.cao2018_genetic.validate()?;
        self.cao2018_bayesian.validate()?;
        self.cao2018_dqn.validate()?;
        self.alabed2021_multitask.validate()
    }
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
        assert!(json.contains(r#""method":"surrogate-genetic""#), "{json}");
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
    }

    /// A replay reads stored settings. 0.1.0 called the main method `default`.
    #[test]
    fn stored_settings_keep_their_names_and_order() {
        let stored = include_str!("settings/default.json");
        let read: Settings = serde_json::from_str(stored).unwrap();
        assert_eq!(read, Settings::default());
        let written = serde_json::to_string_pretty(&Settings::default()).unwrap();
        let renamed = stored
            .replacen(
                r#""method": "default""#,
                r#""method": "surrogate-genetic""#,
                1,
            )
            .replacen(r#""default": {"#, r#""surrogate-genetic": {"#, 1);
        assert_eq!(written, renamed.trim_end());
        assert_eq!("default".parse(), Ok(MethodName::SurrogateGenetic));
    }

    #[test]
    fn unknown_fields_are_refused() {
        for json in [
            r#"{"bugdet": 3}"#,
            r#"{"robert2020": {"p": 1}}"#,
            r#"{"robert2020": {"selection": {"kind": "tournament", "pool_size": 3, "x": 1}}}"#,
            r#"{"robert2020": {"selection": {"kind": "roulette"}}}"#,
            r#"{"method": "magic"}"#,
            r#"{"robert2020": {"noise": {"kind": "regression", "regression": "cubic", "neighbour_share": 0.1}}}"#,
            r#"{"stop": {"improvement": {"runs": 3}}}"#,
            r#"{"robert2019_surrogate": {}}"#,
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
    fn methods_are_named_as_their_tables() {
        let json = serde_json::to_value(Settings::default()).unwrap();
        for name in MethodName::ALL {
            assert_eq!(serde_json::to_value(name).unwrap(), name.as_str());
            let has_table = *name != MethodName::Random;
            assert_eq!(json.get(name.as_str()).is_some(), has_table, "{name}");
        }
        let error = serde_json::from_str::<Settings>(r#"{"method": "robert2019_surrogate"}"#);
        let error = error.unwrap_err().to_string();
        for name in MethodName::ALL {
            assert!(error.contains(&format!("`{name}`")), "{error}");
        }
    }

    #[test]
    fn settings_from_before_there_were_noises_mean_what_they_meant() {
        let json = r#"{"robert2020": {"resampling_share": 0.2}}"#;
        let settings: Settings = serde_json::from_str(json).unwrap();
        let sedr = Noise::Resampling {
            resampling: Resampling::Sedr,
        };
        assert_eq!(settings.robert2020.noise, sedr);
        assert_eq!(settings.robert2020.resampling_share, 0.2);
    }

    #[test]
    fn each_setting_is_checked() {
        type Edit = fn(&mut Settings);
        let edits: [(&str, Edit); 38] = [
            ("baseline_runs", |s| s.baseline_runs = 1),
            ("design_points", |s| s.design_points = 0),
            ("controls", |s| s.controls = false),
            ("budget", |s| s.budget = s.design_points - 1),
            ("exploring", |s| s.exploring = 0),
            ("control_every", |s| s.control_every = 1),
            ("control_every_resolved", |s| s.control_every_resolved = 1),
            ("max_baseline_cv", |s| s.max_baseline_cv = f64::NAN),
            ("pool_size", |s| {
                s.robert2020.selection = Selection::Tournament { pool_size: 0 }
            }),
            ("points", |s| {
                s.robert2020.crossover = Crossover::NPoint { points: 0 }
            }),
            ("mutation_rate", |s| s.robert2020.mutation_rate = f64::NAN),
            ("resampling_share", |s| s.robert2020.resampling_share = 0.0),
            ("neighbour_share", |s| {
                s.robert2020.noise = Noise::Regression {
                    regression: Regression::Weighted,
                    neighbour_share: 1.1,
                }
            }),
            ("robert2019-surrogate.design_points", |s| {
                s.robert2019_surrogate.design_points = 1
            }),
            ("initial_temperature", |s| {
                s.robert2019_annealing.initial_temperature = f64::INFINITY
            }),
            ("cooling.factor", |s| {
                s.robert2019_annealing.cooling = Robert2019Cooling::Exponential { factor: 1.5 }
            }),
            ("restart.share", |s| {
                s.robert2019_annealing.restart = Restart::Threshold { share: 0.0 }
            }),
            ("cao2018-annealing.initial_share", |s| {
                s.cao2018_annealing.initial_share = -1.0
            }),
            ("population", |s| s.cao2018_genetic.population = 1),
            ("cao2018-bayesian.design_points", |s| {
                s.cao2018_bayesian.design_points = 0
            }),
            ("cao2018-dqn.exploration", |s| {
                s.cao2018_dqn.exploration = 1.1
            }),
            ("alabed2021-multitask.design_points", |s| {
                s.alabed2021_multitask.design_points = 1
            }),
            ("alabed2021-multitask.measures", |s| {
                s.alabed2021_multitask.measures = vec!["m".to_owned(); 4]
            }),
            ("clusters.parameters", |s| {
                s.alabed2021_multitask.clusters = Clusters::ByHand {
                    parameters: [("bytes".to_owned(), Vec::new())].into(),
                }
            }),
            ("cao2018-dqn.discount", |s| {
                s.cao2018_dqn.discount = f64::NAN
            }),
            ("loss.default_runs", |s| s.regret.default_runs = 0.0),
            ("loss.share", |s| s.regret.share = 1.5),
            ("loss.design_most", |s| s.regret.design_most = f64::NAN),
            ("drift.advantage", |s| s.drift.advantage = 0.0),
            ("drift.level", |s| s.drift.level = f64::NAN),
            ("drift.false_alarms", |s| s.drift.false_alarms = -1.0),
            ("drift.rest", |s| s.drift.rest = 1),
            ("drift.inherited", |s| s.drift.inherited = 0),
            ("drift.design_points", |s| s.drift.design_points = 1),
            ("drift.budget", |s| s.drift.budget = 1),
            ("stop.improvement.share", |s| {
                s.stop.improvement = Some(Improvement {
                    runs: 5,
                    share: 0.0,
                })
            }),
            ("stop.distinct.least", |s| {
                s.stop.distinct = Some(Distinct { runs: 5, least: 6 })
            }),
            ("stop.nothing_left.share", |s| {
                s.stop.nothing_left = Some(NothingLeft { share: f64::NAN })
            }),
        ];
        for (name, edit) in edits {
            let mut settings = Settings::default();
            edit(&mut settings);
            let error = settings.validate().unwrap_err();
            assert!(error.setting.ends_with(name), "{error}");
        }
    }
}
