//! The settings of studies.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use io_autotune_model::word_enum;

use io_autotune_baselines::alabed2021::Alabed2021Multitask;
use io_autotune_baselines::cao2018::{
    Cao2018Annealing, Cao2018Bayesian, Cao2018Dqn, Cao2018Genetic,
};
use io_autotune_baselines::robert2019::{Robert2019Annealing, Robert2019Surrogate};
use io_autotune_baselines::robert2020::Robert2020;
use io_autotune_search::Method;
use io_autotune_search::checks::{MAX_DESIGN_POINTS, SettingsError, positive, whole};
use io_autotune_search::random::Random;
use io_autotune_search::regret::settings::RegretSettings;

use crate::search::surrogate_genetic::SurrogateGenetic;
use crate::settled::drift::settings::DriftSettings;
use crate::study::proof::settings::ProofSettings;
use crate::study::stopping::settings::Stop;

/// How an epoch is run. A missing field has its default; an unknown one is refused.
///
/// A site chooses few of these, in `[study]` of service.toml. Runs store all of them, so that a decision
/// can be made again after a default has changed, and research varies them.
///
/// Every method has a field of its own, although one decides: serde's `flatten` of a table of methods
/// would accept unknown fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The method that proposes parametrizations in the search.
    pub method: MethodName,
    /// The number of runs of the default at the start.
    pub baseline_runs: u32,
    /// The number of points of the Latin hypercube: 15 in the paper (robert2020, section VIII-D).
    pub design_points: u32,
    /// The number of design and search runs together: 50 in the paper.
    pub budget: u32,
    /// The maximum number of exploring runs at the same time.
    pub exploring: u32,
    /// True if there are control runs: always at a site, not in searches outside Slurm.
    pub controls: bool,
    /// The number of control runs at the start of the settled phase that come at a faster rate,
    /// which brings a proof nearer.
    pub controls_at_first: u32,
    /// During these one run in this many is a control run; `control_every` if that is less.
    pub control_every_at_first: u32,
    /// The number of control runs up to which they come faster while a gain is
    /// [promising](Outlook::Promising).
    pub controls_promising: u32,
    /// During these one run in this many is a control run; `control_every` if that is less.
    pub control_every_promising: u32,
    /// Otherwise one run in this many is a control run until the gain is resolved; at least 2.
    pub control_every: u32,
    /// One run in this many is a control run once the gain is resolved; `control_every` if that is
    /// more.
    pub control_every_resolved: u32,
    /// The settings of the method `surrogate-genetic`.
    #[serde(rename = "surrogate-genetic", alias = "default")]
    pub surrogate_genetic: SurrogateGenetic,
    /// The largest coefficient of variation of the default's runs before they pass for mixed work.
    pub max_baseline_cv: f64,
    /// The regret budget.
    #[serde(alias = "loss")]
    pub regret: RegretSettings,
    /// The changes that end a settled epoch, and the runs of the next one.
    pub drift: DriftSettings,
    /// The stopping criteria in addition to the budget.
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
    /// From whose runs a study begins.
    pub prior: PriorFrom,
    /// The conditions under which the search pauses for a proof.
    pub proof: ProofSettings,
    /// The number of lost runs of the default (failed or cut short), per completed run plus one, at
    /// which the baseline is given up. The search then goes on without it.
    pub baseline_lost_runs: u32,
}

/// The source of a prior, which a study has before its first run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriorFrom {
    /// The site's other studies of the accelerator.
    #[default]
    Site,
    /// No source: a study begins without a prior.
    Off,
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
            controls_at_first: 20,
            control_every_at_first: 2,
            controls_promising: 150,
            control_every_promising: 3,
            control_every: 10,
            control_every_resolved: 20,
            surrogate_genetic: SurrogateGenetic::default(),
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
            prior: PriorFrom::default(),
            proof: ProofSettings::default(),
            baseline_lost_runs: 3,
        }
    }
}

/// The name of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MethodName {
    /// The main method: a genetic algorithm whose candidate children are ranked by a surrogate.
    #[serde(rename = "surrogate-genetic", alias = "default")]
    SurrogateGenetic,
    /// Robert, Zertal and Vaumourin 2020: a genetic algorithm with the noise reductions of table V.
    #[serde(rename = "robert2020")]
    Robert2020,
    /// Robert, Zertal and Goret 2019: a surrogate model with an acquisition function.
    #[serde(rename = "robert2019-surrogate")]
    Robert2019Surrogate,
    /// Robert, Zertal and Goret 2019: simulated annealing.
    #[serde(rename = "robert2019-annealing")]
    Robert2019Annealing,
    /// Cao, Tarasov, Tiwari and Zadok 2018: simulated annealing.
    #[serde(rename = "cao2018-annealing")]
    Cao2018Annealing,
    /// Cao, Tarasov, Tiwari and Zadok 2018: a genetic algorithm in generations.
    #[serde(rename = "cao2018-genetic")]
    Cao2018Genetic,
    /// Cao, Tarasov, Tiwari and Zadok 2018: Bayesian optimisation.
    #[serde(rename = "cao2018-bayesian")]
    Cao2018Bayesian,
    /// Cao, Tarasov, Tiwari and Zadok 2018: a deep Q-network.
    #[serde(rename = "cao2018-dqn")]
    Cao2018Dqn,
    /// Alabed and Yoneki 2021: a multi-task Gaussian process of elapsed and measures.
    #[serde(rename = "alabed2021-multitask")]
    Alabed2021Multitask,
    /// Points drawn at random, none twice: the comparison for all methods. It has no settings.
    #[serde(rename = "random")]
    Random,
}

word_enum!(MethodName, "method",
    SurrogateGenetic => "surrogate-genetic" | "default",
    Robert2020 => "robert2020",
    Robert2019Surrogate => "robert2019-surrogate",
    Robert2019Annealing => "robert2019-annealing",
    Cao2018Annealing => "cao2018-annealing",
    Cao2018Genetic => "cao2018-genetic",
    Cao2018Bayesian => "cao2018-bayesian",
    Cao2018Dqn => "cao2018-dqn",
    Alabed2021Multitask => "alabed2021-multitask",
    Random => "random");

impl Settings {
    /// The method that searches.
    pub(crate) fn method(&self) -> &dyn Method {
        match self.method {
            MethodName::SurrogateGenetic => &self.surrogate_genetic,
            MethodName::Robert2020 => &self.robert2020,
            MethodName::Robert2019Surrogate => &self.robert2019_surrogate,
            MethodName::Robert2019Annealing => &self.robert2019_annealing,
            MethodName::Cao2018Annealing => &self.cao2018_annealing,
            MethodName::Cao2018Genetic => &self.cao2018_genetic,
            MethodName::Cao2018Bayesian => &self.cao2018_bayesian,
            MethodName::Cao2018Dqn => &self.cao2018_dqn,
            MethodName::Alabed2021Multitask => &self.alabed2021_multitask,
            MethodName::Random => &Random,
        }
    }

    /// The settings of an epoch that inherits ranks: a smaller budget.
    #[must_use]
    pub fn inheriting(&self) -> Self {
        Settings {
            budget: self.budget.min(self.drift.budget),
            ..self.clone()
        }
    }

    /// The settings in the form in which they are stored with a run that they decided.
    pub fn of_the_method(&self) -> SettingsOfTheMethod<'_> {
        SettingsOfTheMethod(self)
    }

    /// Returns an error for the first setting that cannot be used, with the allowed values.
    pub fn validate(&self) -> Result<(), SettingsError> {
        whole("baseline_runs", self.baseline_runs, 2, 1000)?;
        // At most half of the cut runs that a study keeps per parametrization, because twice as
        // many runs are tried with a longer limit.
        whole("baseline_lost_runs", self.baseline_lost_runs, 1, 16)?;
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
        for (setting, value, least) in [
            ("controls_at_first", self.controls_at_first, 0),
            ("control_every_at_first", self.control_every_at_first, 2),
            ("controls_promising", self.controls_promising, 0),
            ("control_every_promising", self.control_every_promising, 2),
            ("control_every", self.control_every, 2),
            ("control_every_resolved", self.control_every_resolved, 2),
        ] {
            whole(setting, value, least, 1_000_000)?;
        }
        self.surrogate_genetic.validate()?;
        positive(
            "max_baseline_cv",
            self.max_baseline_cv,
            100.0,
            ", as a share of the mean",
        )?;
        self.regret.validate()?;
        self.drift.validate()?;
        self.stop.validate()?;
        self.proof.validate()?;
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

/// Settings without the tables of the methods that they do not use, which decide nothing. They are
/// read as [`Settings`], in which such a table has its defaults; earlier versions stored all tables
/// with each run, and read these as well.
#[derive(Clone, Copy, Debug)]
pub struct SettingsOfTheMethod<'a>(&'a Settings);

impl Serialize for SettingsOfTheMethod<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut settings = serde_json::to_value(self.0).map_err(S::Error::custom)?;
        if let Some(tables) = settings.as_object_mut() {
            let others = MethodName::ALL.iter().filter(|one| **one != self.0.method);
            for other in others {
                tables.remove(other.as_str());
            }
        }
        settings.serialize(serializer)
    }
}

/// The settings that did not exist before version 13 of the engine, the last one not before 15, by
/// table: what the engine did then. Their defaults are others.
const YOUNGER: [(&str, &str, &str); 4] = [
    ("robert2020", "revisits", r#""never""#),
    ("cao2018-genetic", "selection", r#""ranks""#),
    ("cao2018-genetic", "crossover_rate", "1.0"),
    ("stop", "least_gain", "0.0"),
];

/// The settings that version 14 of the engine had no longer, and those of `stop`, which 15 has not.
const GONE: [&str; 6] = [
    "new_point_every",
    "later_runs",
    "improvement",
    "distinct",
    "distance",
    "nothing_left",
];

/// Reads the settings that a run stored. A run stores every setting of its method, so one that is
/// missing is younger than the run: it means what the method did without it, and not its default. One
/// that no method has any more is left out: only a replay by an earlier engine would need it.
pub fn stored_settings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Settings, D::Error> {
    let mut stored = serde_json::Value::deserialize(deserializer)?;
    for name in ["surrogate-genetic", "default", "stop"] {
        let table = stored.get_mut(name).and_then(|table| table.as_object_mut());
        if let Some(table) = table {
            table.retain(|setting, _| !GONE.contains(&setting.as_str()));
        }
    }
    for (name, setting, meant) in YOUNGER {
        let table = stored.get_mut(name).and_then(|table| table.as_object_mut());
        if let Some(table) = table.filter(|table| !table.contains_key(setting)) {
            let meant = serde_json::from_str(meant).map_err(D::Error::custom)?;
            table.insert(setting.to_owned(), meant);
        }
    }
    Settings::deserialize(stored).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use io_autotune_baselines::alabed2021::Clusters;
    use io_autotune_baselines::cao2018::Cao2018Selection;
    use io_autotune_baselines::robert2019::{Restart, Robert2019Cooling};
    use io_autotune_baselines::robert2020::{
        ChildRevisits, Crossover, Noise, Regression, Resampling, Selection,
    };

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

    /// A replay reads stored settings. Version 0.1.0 called the main method `default`.
    #[test]
    fn stored_settings_keep_their_names_and_order() {
        let stored = include_str!("settings/default.json");
        let read: Settings = serde_json::from_str(stored).unwrap();
        let mut expected = Settings::default();
        // A stored setting stays as it is; this default was 5 once.
        expected.robert2020.selection = Selection::Tournament { pool_size: 5 };
        expected.regret.default_runs = 3.0;
        assert_eq!(read, expected);
        let written = serde_json::to_string_pretty(&read).unwrap();
        let renamed = stored
            .replacen(
                r#""method": "default""#,
                r#""method": "surrogate-genetic""#,
                1,
            )
            .replacen(r#""default": {"#, r#""surrogate-genetic": {"#, 1)
            .replacen(r#""loss": {"#, r#""regret": {"#, 1)
            .replacen(
                r#""control_every": 10"#,
                "\"controls_at_first\": 20,\n  \"control_every_at_first\": 2,\n  \"controls_promising\": 150,\n  \"control_every_promising\": 3,\n  \"control_every\": 10",
                1,
            )
            // A new setting of a table comes after its other settings.
            .replacen(
                "\"design_points\": 3\n  }",
                "\"design_points\": 3,\n    \"models_failures\": true,\n    \"explores_outwards\": true\n  }",
                1,
            )
            .replacen(
                r#""stop": {}"#,
                "\"stop\": {\n    \"little_io\": {\n      \"share\": 0.03,\n      \"call_ms\": 1.0,\n      \"mb_per_second\": 10.0\n    },\n    \"unread_runs\": 3,\n    \"least_gain\": 0.05\n  }",
                1,
            )
            .replacen(
                r#""drops_design_points": false"#,
                "\"drops_design_points\": false,\n    \"weight\": \"inverse\",\n    \"mutation\": \"every\",\n    \"neighbours_of\": \"space\",\n    \"revisits\": \"any\"",
                1,
            )
            .replacen(
                r#""acquisition": "expected_improvement""#,
                "\"acquisition\": \"expected_improvement\",\n    \"scale\": \"log\",\n    \"revisits\": \"never\"",
                1,
            )
            .replacen(
                "\"kind\": \"none\"\n    }",
                "\"kind\": \"none\"\n    },\n    \"revisits\": \"run\"",
                1,
            )
            .replacen(
                "\"kind\": \"linear\"\n    }",
                "\"kind\": \"linear\"\n    },\n    \"revisits\": \"run\"",
                1,
            )
            .replacen(
                r#""mutation_rate": 0.02"#,
                "\"mutation_rate\": 0.02,\n    \"revisits\": \"run\",\n    \"selection\": \"proportional\",\n    \"crossover_rate\": 0.9",
                1,
            )
            .replacen(
                "\"clusters\": {\n      \"kind\": \"all\"\n    }",
                "\"clusters\": {\n      \"kind\": \"all\"\n    },\n    \"objective\": \"all\"",
                1,
            )
            .replacen(
                r#""discount": 0.9"#,
                "\"discount\": 0.9,\n    \"revisits\": \"run\"",
                1,
            );
        // A new method comes last.
        let fields = renamed.trim_end().strip_suffix("\n}").unwrap();
        assert!(written.starts_with(fields), "{written}");
        assert_eq!("default".parse(), Ok(MethodName::SurrogateGenetic));
    }

    /// A younger setting means in a stored table what the method did before there was one.
    #[test]
    fn what_an_earlier_engine_stored_means_what_it_did() {
        let read = |json: &str| {
            let mut deserializer = serde_json::Deserializer::from_str(json);
            stored_settings(&mut deserializer).unwrap()
        };
        let earlier = read(
            r#"{"method": "robert2020", "robert2020": {"mutation_rate": 0.25},
                "cao2018-genetic": {"population": 4}}"#,
        );
        assert_eq!(earlier.robert2020.revisits, ChildRevisits::Never);
        assert_eq!(earlier.robert2020.mutation_rate, 0.25);
        let genetic = &earlier.cao2018_genetic;
        assert_eq!(
            (genetic.selection, genetic.crossover_rate),
            (Cao2018Selection::Ranks, 1.0)
        );
        // What a run of today stores is read as it is.
        for name in MethodName::ALL {
            let today = Settings {
                method: *name,
                ..Settings::default()
            };
            let stored = serde_json::to_string(&today.of_the_method()).unwrap();
            assert_eq!(read(&stored), today);
        }
        let mut deserializer = serde_json::Deserializer::from_str(r#"{"bugdet": 3}"#);
        assert!(stored_settings(&mut deserializer).is_err());
    }

    /// A replay of a run that an earlier version started.
    #[test]
    fn what_0_3_0_stored_with_a_run_is_read() {
        let stored = r#"{"method": "robert2020", "baseline_runs": 4, "budget": 40,
            "surrogate-genetic": {"design_points": 6, "new_point_every": 0, "later_runs": 3000},
            "regret": {"default_runs": 3.0, "share": 0.1, "design_most": 2.0},
            "robert2020": {"selection": {"kind": "probabilistic"}, "mutation_rate": 0.25},
            "stop": {"improvement": {"runs": 5, "share": 0.1}, "nothing_left": {"share": 0.01},
                "unread_runs": 7},
            "cao2018-dqn": {"discount": 0.5}, "prior": "off", "baseline_lost_runs": 2}"#;
        let read = stored_settings(&mut serde_json::Deserializer::from_str(stored)).unwrap();
        assert_eq!(read.method, MethodName::Robert2020);
        assert_eq!(
            (read.budget, read.prior, read.baseline_lost_runs),
            (40, PriorFrom::Off, 2)
        );
        assert_eq!(read.robert2020.selection, Selection::Probabilistic);
        assert_eq!(read.robert2020.mutation_rate, 0.25);
        assert_eq!(read.cao2018_dqn.discount, 0.5);
        assert_eq!(read.surrogate_genetic.design_points, 6);
        assert_eq!((read.stop.unread_runs, read.stop.least_gain), (7, 0.0));
    }

    #[test]
    fn with_a_run_is_stored_what_its_method_uses() {
        let mut settings = Settings {
            budget: 40,
            ..Settings::default()
        };
        settings.surrogate_genetic.design_points = 6;
        settings.robert2020.mutation_rate = 0.25;
        settings.cao2018_dqn.discount = 0.5;
        let all = serde_json::to_value(&settings).unwrap();
        for name in MethodName::ALL {
            settings.method = *name;
            let stored = serde_json::to_value(settings.of_the_method()).unwrap();
            let tables = MethodName::ALL
                .iter()
                .filter(|table| stored.get(table.as_str()).is_some());
            let own = (*name != MethodName::Random).then_some(name);
            assert_eq!(tables.collect::<Vec<_>>(), Vec::from_iter(own));
            assert_eq!(stored.get(name.as_str()), all.get(name.as_str()));
            let read: Settings = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!((read.method, read.budget), (*name, 40));
            assert_eq!(serde_json::to_value(read.of_the_method()).unwrap(), stored);
        }
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
        let edits: &[(&str, Edit)] = &[
            ("baseline_runs", |s| s.baseline_runs = 1),
            ("baseline_lost_runs", |s| s.baseline_lost_runs = 0),
            ("design_points", |s| s.design_points = 0),
            ("controls", |s| s.controls = false),
            ("budget", |s| s.budget = s.design_points - 1),
            ("exploring", |s| s.exploring = 0),
            ("controls_at_first", |s| s.controls_at_first = 1_000_001),
            ("control_every_at_first", |s| s.control_every_at_first = 1),
            ("controls_promising", |s| s.controls_promising = 1_000_001),
            ("control_every_promising", |s| s.control_every_promising = 1),
            ("control_every", |s| s.control_every = 1),
            ("control_every_resolved", |s| s.control_every_resolved = 1),
            ("max_baseline_cv", |s| s.max_baseline_cv = f64::NAN),
            ("pool_size", |s| {
                s.robert2020.selection = Selection::Tournament { pool_size: 100_001 }
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
            ("crossover_rate", |s| {
                s.cao2018_genetic.crossover_rate = -0.1
            }),
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
            ("regret.default_runs", |s| s.regret.default_runs = 0.0),
            ("regret.share", |s| s.regret.share = 1.5),
            ("regret.design_most", |s| s.regret.design_most = f64::NAN),
            ("drift.advantage", |s| s.drift.advantage = 0.0),
            ("drift.level", |s| s.drift.level = f64::NAN),
            ("drift.false_alarms", |s| s.drift.false_alarms = -1.0),
            ("drift.rest", |s| s.drift.rest = 1),
            ("drift.inherited", |s| s.drift.inherited = 0),
            ("drift.design_points", |s| s.drift.design_points = 1),
            ("drift.budget", |s| s.drift.budget = 1),
            ("stop.least_gain", |s| s.stop.least_gain = f64::NAN),
            ("stop.little_io.mb_per_second", |s| {
                s.stop.little_io.mb_per_second = 0.0;
            }),
            ("stop.little_io.share", |s| s.stop.little_io.share = -0.1),
            ("stop.unread_runs", |s| s.stop.unread_runs = 100_001),
            ("proof.after", |s| s.proof.after = 100_001),
            ("proof.within", |s| s.proof.within = 3),
        ];
        for (name, edit) in edits {
            let mut settings = Settings::default();
            edit(&mut settings);
            let error = settings.validate().unwrap_err();
            assert!(error.setting.ends_with(name), "{error}");
        }
    }
}
