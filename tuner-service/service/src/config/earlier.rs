//! Keys that service.toml had in earlier releases.

use io_autotune_configuration::{Earlier, Now};

/// Where a value that is shown stands in a file of an earlier release.
pub(super) const RENAMED: &[(&str, &str)] = &[
    ("study.loss", "study.regret"),
    ("access.admin_uids", "access.admins"),
    ("access.admin_groups", "access.admins"),
    ("access.operator_uids", "access.operators"),
    ("access.operator_groups", "access.operators"),
    ("access.report_uids", "access.report_readers"),
    ("access.report_groups", "access.report_readers"),
    (
        "reconcile.outcome_patience_seconds",
        "reconcile.patience_seconds",
    ),
    ("slurm.squeue", "slurm.programs"),
    ("slurm.sacct", "slurm.programs"),
    ("slurm.scontrol", "slurm.programs"),
    ("slurm.sacctmgr", "slurm.programs"),
];

const fn always(key: &'static str, value: &'static str) -> Earlier {
    let now = Now::Always(value);
    Earlier { key, now }
}

const fn nothing(key: &'static str, why: &'static str) -> Earlier {
    let now = Now::Nothing(why);
    Earlier { key, now }
}

const fn elements(key: &'static str, of: &'static str, sign: &'static str) -> Earlier {
    let now = Now::Elements(of, sign);
    Earlier { key, now }
}

const fn program(key: &'static str, name: &'static str) -> Earlier {
    let now = Now::Directory("programs", name);
    Earlier { key, now }
}

const ENDS: &str =
    "a search ends when its budget is spent, or when nothing can be won; remove the line";
const OWN: &str = "surrogate-genetic is as it was measured; remove the table";

/// What each is read as.
pub(super) const EARLIER: &[Earlier] = &[
    elements("access.admin_uids", "admins", ""),
    elements("access.admin_groups", "admins", "@"),
    elements("access.operator_uids", "operators", ""),
    elements("access.operator_groups", "operators", "@"),
    elements("access.report_uids", "report_readers", ""),
    elements("access.report_groups", "report_readers", "@"),
    nothing(
        "users.burst",
        "it is 5 times requests_per_second; remove the line",
    ),
    nothing(
        "users.bytes_burst",
        "it is 16 times bytes_per_second; remove the line",
    ),
    program("slurm.squeue", "squeue"),
    program("slurm.sacct", "sacct"),
    program("slurm.scontrol", "scontrol"),
    program("slurm.sacctmgr", "sacctmgr"),
    Earlier {
        key: "reconcile.outcome_patience_seconds",
        now: Now::Key("patience_seconds"),
    },
    nothing(
        "reconcile.report_patience_seconds",
        "it is half of patience_seconds; remove the line",
    ),
    nothing(
        "reconcile.release_patience_seconds",
        "it is a tenth of patience_seconds; remove the line",
    ),
    nothing(
        "study.design_points",
        "it is 15, or half of the budget if that is less; remove the line",
    ),
    always("study.baseline_lost_runs", "3"),
    always("study.max_baseline_cv", "0.5"),
    always("study.controls", "true"),
    always("study.controls_at_first", "20"),
    always("study.control_every_at_first", "2"),
    always("study.controls_promising", "150"),
    always("study.control_every_promising", "3"),
    nothing(
        "study.control_every_resolved",
        "it is twice control_every; remove the line",
    ),
    nothing("study.surrogate-genetic", OWN),
    nothing("study.default", OWN),
    always("study.drift.advantage", "0.1"),
    always("study.drift.level", "0.3"),
    always("study.drift.false_alarms", "0.1"),
    always("study.drift.rest", "50"),
    always("study.drift.inherited", "5"),
    always("study.drift.design_points", "3"),
    always("study.drift.budget", "30"),
    nothing("study.stop.improvement", ENDS),
    nothing("study.stop.distinct", ENDS),
    nothing("study.stop.distance", ENDS),
    nothing("study.stop.nothing_left", ENDS),
    Earlier {
        key: "study.stop.little_io",
        now: Now::Member("share"),
    },
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use io_autotune_configuration::Origin;
    use io_autotune_engine::Settings;
    use serde_json::Value;

    use super::*;
    use crate::config::Config;

    /// What 0.3.0 installed as /etc/io-autotune/service.toml.
    const SAMPLE_OF_0_3_0: &str = include_str!("0.3.0.toml");

    fn load(text: &str) -> (Config, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        std::fs::write(&path, text).unwrap();
        Config::checked(&path).unwrap()
    }

    #[test]
    fn what_always_holds_is_what_the_engine_does() {
        let settings = serde_json::to_value(Settings::default()).unwrap();
        for one in EARLIER {
            let (Now::Always(always), Some(key)) = (one.now, one.key.strip_prefix("study.")) else {
                continue;
            };
            let place = format!("/{}", key.replace('.', "/"));
            let expected: Value = serde_json::from_str(always).unwrap();
            assert_eq!(settings.pointer(&place), Some(&expected), "{key}");
        }
    }

    #[test]
    fn the_sample_of_0_3_0_is_read_and_each_key_that_went_says_what_to_write() {
        // Its budget for regret is the site's to choose: its default has changed since, and the key is
        // there.
        let text = SAMPLE_OF_0_3_0.replace("default_runs = 3.0", "default_runs = 2.0");
        let (config, said) = load(&text);
        assert_eq!(config.study.settings(), Settings::default());
        assert_eq!(
            config.reconciled().config,
            crate::reconcile::ReconcileConfig::default()
        );
        assert!(said.iter().any(|one| one.contains(
            "study.max_baseline_cv is no setting any more, and is always as it is here"
        )));
        let now = include_str!("../../../../deploy/etc/service.toml");
        assert_eq!(load(now).1, Vec::<String>::new());
    }

    #[test]
    fn what_a_site_had_changed_holds_or_is_said_not_to() {
        let text = SAMPLE_OF_0_3_0
            .replace("admin_uids = []", "admin_uids = [1000]")
            .replace("admin_groups = []", "admin_groups = [\"wheel\"]")
            .replace("# squeue = \"/usr/bin", "squeue = \"/opt/slurm/bin")
            .replace(
                "outcome_patience_seconds = 600",
                "outcome_patience_seconds = 900",
            )
            .replace("max_baseline_cv = 0.5", "max_baseline_cv = 0.3")
            .replace("{ share = 0.03,", "{ share = 0.05,");
        let (config, said) = load(&text);
        let shown = toml::to_string(&config).unwrap();
        for line in [
            "admins = [1000, \"@wheel\"]",
            "programs = \"/opt/slurm/bin\"",
            "patience_seconds = 900",
            "little_io = 0.05",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        let told = "study.max_baseline_cv is no setting any more: it is always 0.5, and not 0.3";
        assert!(said.iter().any(|one| one.contains(told)), "{said:?}");
        // The place of each value is where the file has it.
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        std::fs::write(&path, &text).unwrap();
        let shown = Config::shown(&path, &Origin::Default).unwrap();
        let line = |key: &str| text.lines().position(|line| line.starts_with(key)).unwrap() + 1;
        for (shows, key) in [
            ("admins = [1000, \"@wheel\"]", "admin_uids"),
            ("patience_seconds = 900", "outcome_patience_seconds"),
        ] {
            let expected = format!("{shows} # {}:{}\n", Path::display(&path), line(key));
            assert!(shown.contains(&expected), "{expected}: {shown}");
        }
    }

    #[test]
    fn programs_in_two_directories_are_refused_with_what_to_do() {
        let text = SAMPLE_OF_0_3_0
            .replace("# squeue = \"/usr/bin", "squeue = \"/opt/slurm/bin")
            .replace("# sacct = ", "sacct = ");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("service.toml");
        std::fs::write(&path, &text).unwrap();
        let refused = Config::load(&path).unwrap_err().to_string();
        assert!(refused.contains("slurm.sacct"), "{refused}");
        assert!(refused.contains("programs = DIRECTORY"), "{refused}");
    }
}
