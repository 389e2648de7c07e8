//! `[study]`: what a site decides about its studies. All else is as the engine has it.
//!
//! The engine has more settings than these. Runs store them, so that a decision can be made again,
//! and research varies them. A site needs none of them: each is fine-tuned by measurements
//! (docs/measurements), or follows from one that is here.

use io_autotune_engine::{
    Alabed2021Multitask, Cao2018Annealing, Cao2018Bayesian, Cao2018Dqn, Cao2018Genetic, MethodName,
    PriorFrom, ProofSettings, RegretSettings, Robert2019Annealing, Robert2019Surrogate, Robert2020,
    Settings, SettingsError,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StudyConfig {
    method: MethodName,
    /// The number of runs of the default at the start.
    baseline_runs: u32,
    /// The number of design and search runs together.
    budget: u32,
    /// The most exploring runs of a study at the same time.
    exploring: u32,
    /// One run of a settled study in this many is a control run until its gain is resolved.
    control_every: u32,
    pub(crate) prior: PriorFrom,
    proof: ProofSettings,
    #[serde(alias = "loss")]
    regret: RegretSettings,
    drift: DriftConfig,
    stop: StopConfig,
    // The methods of papers run as published, in each variant that their paper has or leaves open.
    robert2020: Robert2020,
    #[serde(rename = "robert2019-surrogate")]
    robert2019_surrogate: Robert2019Surrogate,
    #[serde(rename = "robert2019-annealing")]
    robert2019_annealing: Robert2019Annealing,
    #[serde(rename = "cao2018-annealing")]
    cao2018_annealing: Cao2018Annealing,
    #[serde(rename = "cao2018-genetic")]
    cao2018_genetic: Cao2018Genetic,
    #[serde(rename = "cao2018-bayesian")]
    cao2018_bayesian: Cao2018Bayesian,
    #[serde(rename = "cao2018-dqn")]
    cao2018_dqn: Cao2018Dqn,
    #[serde(rename = "alabed2021-multitask")]
    alabed2021_multitask: Alabed2021Multitask,
    /// For tests: settings of the engine that no site has, so that a story takes a dozen runs.
    #[cfg(test)]
    engine: toml::Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DriftConfig {
    /// True if a settled study searches again when its runs have changed.
    enabled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StopConfig {
    /// The share of the default's elapsed below which I/O is not worth tuning; 0: it always is.
    little_io: f64,
    /// The number of runs after which a search ends if nothing reads what they are given; 0: none.
    unread_runs: u32,
}

impl Default for StudyConfig {
    fn default() -> Self {
        let engine = Settings::default();
        Self {
            method: engine.method,
            baseline_runs: engine.baseline_runs,
            budget: engine.budget,
            exploring: engine.exploring,
            control_every: engine.control_every,
            prior: engine.prior,
            proof: engine.proof,
            regret: engine.regret,
            drift: DriftConfig::default(),
            stop: StopConfig::default(),
            robert2020: engine.robert2020,
            robert2019_surrogate: engine.robert2019_surrogate,
            robert2019_annealing: engine.robert2019_annealing,
            cao2018_annealing: engine.cao2018_annealing,
            cao2018_genetic: engine.cao2018_genetic,
            cao2018_bayesian: engine.cao2018_bayesian,
            cao2018_dqn: engine.cao2018_dqn,
            alabed2021_multitask: engine.alabed2021_multitask,
            #[cfg(test)]
            engine: toml::Table::new(),
        }
    }
}

impl Default for DriftConfig {
    fn default() -> Self {
        let enabled = Settings::default().drift.enabled;
        Self { enabled }
    }
}

impl Default for StopConfig {
    fn default() -> Self {
        let stop = Settings::default().stop;
        Self {
            little_io: stop.little_io.share,
            unread_runs: stop.unread_runs,
        }
    }
}

/// The engine takes no rarer control runs.
const MOST_EVERY: u32 = 1_000_000;

impl StudyConfig {
    /// The settings of the engine.
    pub(crate) fn settings(&self) -> Settings {
        let default = Settings::default();
        let mut settings = Settings {
            method: self.method,
            baseline_runs: self.baseline_runs,
            // Half of a small budget is left to search with.
            design_points: (self.budget / 2).clamp(2, default.design_points),
            budget: self.budget,
            exploring: self.exploring,
            control_every: self.control_every,
            // A gain that is resolved needs half as many control runs.
            control_every_resolved: self.control_every.saturating_mul(2).min(MOST_EVERY),
            prior: self.prior,
            proof: self.proof,
            regret: self.regret,
            robert2020: self.robert2020.clone(),
            robert2019_surrogate: self.robert2019_surrogate.clone(),
            robert2019_annealing: self.robert2019_annealing.clone(),
            cao2018_annealing: self.cao2018_annealing.clone(),
            cao2018_genetic: self.cao2018_genetic.clone(),
            cao2018_bayesian: self.cao2018_bayesian.clone(),
            cao2018_dqn: self.cao2018_dqn.clone(),
            alabed2021_multitask: self.alabed2021_multitask.clone(),
            ..default
        };
        settings.drift.enabled = self.drift.enabled;
        settings.stop.little_io.share = self.stop.little_io;
        settings.stop.unread_runs = self.stop.unread_runs;
        #[cfg(test)]
        let settings = tests::overlaid(&settings, &self.engine);
        settings
    }

    /// Returns an error for the first setting that cannot be used, by its key here.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        self.settings().validate().map_err(|error| SettingsError {
            setting: match error.setting {
                "stop.little_io.share" => "stop.little_io",
                setting => setting,
            },
            ..error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings with others in their place.
    pub(super) fn overlaid(settings: &Settings, others: &toml::Table) -> Settings {
        fn put(table: &mut toml::Table, others: &toml::Table) {
            for (key, value) in others {
                match (table.get_mut(key), value) {
                    (Some(toml::Value::Table(below)), toml::Value::Table(others)) => {
                        put(below, others)
                    }
                    _ => drop(table.insert(key.clone(), value.clone())),
                }
            }
        }
        let mut table = toml::Table::try_from(settings).unwrap();
        put(&mut table, others);
        table.try_into().unwrap()
    }

    #[test]
    fn without_a_word_in_the_file_the_engine_has_its_own_settings() {
        assert_eq!(StudyConfig::default().settings(), Settings::default());
    }

    /// The page about papers' methods has each of their settings, with its default.
    #[test]
    fn the_settings_of_papers_methods_are_those_of_their_page() {
        let page = include_str!("../../../../docs/papers/methods.md");
        let (_, section) = page.split_once("\n## Settings\n").unwrap();
        let mut told = toml::Table::new();
        let mut method = String::new();
        for row in section
            .lines()
            .filter(|line| line.starts_with("| `") || line.starts_with("| | `"))
        {
            let cells: Vec<&str> = row.split(" | ").collect();
            let name = cells[0].trim_matches(['|', ' ', '`']);
            if !name.is_empty() {
                name.clone_into(&mut method);
            }
            let keys = cells[1]
                .trim_matches(['|', ' '])
                .replace("`, `", "\n")
                .replace('`', "");
            let keys: toml::Table = keys
                .parse()
                .unwrap_or_else(|error| panic!("{row}: {error}"));
            let table = told
                .entry(&method)
                .or_insert_with(|| toml::Table::new().into());
            table.as_table_mut().unwrap().extend(keys);
        }
        let mut there = toml::Table::try_from(StudyConfig::default()).unwrap();
        there.retain(|key, _| MethodName::ALL.iter().any(|one| one.as_str() == key));
        assert_eq!(told, there);
    }

    #[test]
    fn what_follows_from_another_setting_follows_it() {
        let of = |text: &str| toml::from_str::<StudyConfig>(text).unwrap().settings();
        let small = of("budget = 8\ncontrol_every = 2\n");
        assert_eq!((small.design_points, small.control_every_resolved), (4, 4));
        assert_eq!(of("budget = 200\n").design_points, 15);
        assert_eq!(of("budget = 3\n").design_points, 2);
    }

    #[test]
    fn what_cannot_be_is_named_by_its_key_in_the_file() {
        for (text, key) in [
            ("budget = 1", "budget"),
            ("control_every = 1", "control_every"),
            ("control_every = 2000000", "control_every"),
            ("stop.little_io = 2.0", "stop.little_io"),
            ("stop.unread_runs = 200000", "stop.unread_runs"),
            ("proof.within = 3", "proof.within"),
            (
                "cao2018-genetic.population = 1",
                "cao2018-genetic.population",
            ),
        ] {
            let config: StudyConfig = toml::from_str(text).unwrap();
            assert_eq!(config.validate().unwrap_err().setting, key, "{text}");
        }
    }
}
