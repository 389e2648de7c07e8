//! The findings of a study: what its users should know, and what to do about it.

use std::collections::BTreeSet;

use io_autotune_model::{
    ElapsedBeside, Finding, FindingKind, History, IneffectiveParameter, LostDefault, Mixture,
    Objective, ParameterEffect, ParameterEffects,
};

use crate::guards::mixture::mixture;
use crate::study::epoch::Epoch;
use crate::study::stopping;

/// Facts about a study that its history does not have.
#[derive(Clone, Copy, Debug)]
pub struct StudyFacts<'a> {
    /// The study's number, as commands name it.
    pub study_id: i64,
    /// True if an admin or the owner declared its runs to be one application's.
    pub accepts_mixed: bool,
    /// True if every run gets a pinned parametrization.
    pub pinned: bool,
    /// The values in force in its runs.
    pub observed: &'a ParameterEffects,
    /// The sentence on the change that opened the epoch, if any.
    pub drift: Option<&'a str>,
    /// The study's objective.
    pub objective: &'a Objective,
}

impl Epoch<'_> {
    /// The findings of the epoch, in the order of [`FindingKind`].
    pub fn findings(&self, history: &History, facts: StudyFacts<'_>) -> Vec<Finding> {
        let mixed = (!facts.accepts_mixed)
            .then(|| mixture(self.space(), history, self.settings()))
            .flatten()
            .map(|mixture| {
                let is_observed = !facts.pinned && self.observes(&mixture, history);
                mixed(&mixture, is_observed, facts.study_id)
            });
        let quarantined = self.quarantined(history).into_iter().map(|one| Finding {
            parametrization: Some(one.parametrization.clone()),
            ..quarantine(one.why.to_string(), facts.study_id)
        });
        let drift = facts.drift.map(|why| drift(why, facts.study_id));
        let ineffective = facts
            .observed
            .ineffective()
            .map(|(one, effect)| ineffective(&one, effect));
        let nothing = stopping::nothing_to_win(&self.view(history), self.settings())
            .map(|stopped| nothing_to_win(&stopped.to_string()));
        let worse = self.elapsed_beside(history).filter(|one| one.vetoed);
        let worse = worse.map(|one| elapsed_worse(&one, facts.objective));
        let unreported = self.is_unreported(history, facts.objective);
        let unreported = unreported.then(|| unreported_objective(history, facts));
        let lost = self.lost_default(history).filter(|_| !facts.pinned);
        let lost = lost.map(|default| lost_default(&default, facts.study_id));
        mixed
            .into_iter()
            .chain(quarantined)
            .chain(drift)
            .chain(ineffective)
            .chain(nothing)
            .chain(worse)
            .chain(unreported)
            .chain(lost)
            .collect()
    }

    /// Returns true if the baseline would be over had its runs reported the objective.
    fn is_unreported(&self, history: &History, objective: &Objective) -> bool {
        let counted = history.tested.iter().any(|one| one.elapsed.count > 0);
        let baseline = u64::from(self.settings().baseline_runs);
        !objective.is_elapsed() && !counted && history.tally.total >= baseline.max(1)
    }
}

fn elapsed_worse(one: &ElapsedBeside, objective: &Objective) -> Finding {
    let what = format!(
        "{} is best by {}, and not recommended: {one}.",
        one.parametrization,
        objective.words()
    );
    let action =
        "Nothing has to be done: what is recommended is the best that does not make elapsed worse.";
    finding(FindingKind::ElapsedWorse, what, action.to_owned())
}

fn unreported_objective(history: &History, facts: StudyFacts<'_>) -> Finding {
    let objective = facts.objective.words();
    let what = format!(
        "The study's objective is {objective}, and none of its {} runs since then has told it: none counts.",
        history.tally.total
    );
    let in_job = facts.objective.in_job().unwrap_or_default();
    let action = format!(
        "Give the job {in_job}, or `io-autotune objective study:{} elapsed --why \"...\"`.",
        facts.study_id
    );
    finding(FindingKind::Unreported, what, action)
}

fn lost_default(default: &LostDefault, study_id: i64) -> Finding {
    let (first, rest) = (default.to_string(), "the search goes on without it");
    let without = match default.completed {
        0 => ", and no gain over it is stated",
        _ => "",
    };
    let what = format!("{}; {rest}{without}.", capitalised(&first));
    let action = format!(
        "`io-autotune history --study {study_id}` shows the runs. Once the default completes, with a longer --time \
         for instance, it is measured."
    );
    finding(FindingKind::DefaultLost, what, action)
}

fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

fn finding(kind: FindingKind, what: String, action: String) -> Finding {
    Finding {
        kind,
        what,
        action,
        parametrization: None,
    }
}

fn mixed(mixture: &Mixture, is_observed: bool, study_id: i64) -> Finding {
    let what = capitalised(&mixture.told(is_observed));
    let action = format!(
        "Give each kind of work a name of its own (sbatch --io-autotune=app=NAME). If it is one \
         application's all the same: `io-autotune accept study:{study_id}`."
    );
    finding(FindingKind::Mixed, format!("{what}."), action)
}

fn quarantine(why: String, study_id: i64) -> Finding {
    let action = format!(
        "`io-autotune history --study {study_id}` shows the runs. The search goes on without it."
    );
    finding(FindingKind::Quarantine, why, action)
}

fn drift(why: &str, study_id: i64) -> Finding {
    let action = format!(
        "Nothing has to be done: the search goes on from what was best before. If the work has changed, \
         `io-autotune reset study:{study_id} --why \"other work\"` forgets it."
    );
    finding(FindingKind::Drift, format!("{why}."), action)
}

fn ineffective(one: &IneffectiveParameter, effect: &ParameterEffect) -> Finding {
    let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(", ");
    let what = format!(
        "{} has no effect here: {} of the latest runs were given {}, and {} was in force; such runs do not count. It is \
         held at its default, and no longer tuned.",
        one.parameter,
        effect.against,
        list(&effect.given),
        list(&effect.instead)
    );
    let action = format!(
        "Does the program set it itself? Then it has to leave {} to io-autotune, or the parameter out of the \
         accelerator.",
        effect.name
    );
    finding(FindingKind::Ineffective, what, action)
}

fn nothing_to_win(why: &str) -> Finding {
    let what = format!("{}.", capitalised(why));
    let action = "Nothing has to be done: jobs run with the defaults, as they would without io-autotune. If \
        another accelerator can help: sbatch --io-autotune=accelerator=NAME.";
    finding(FindingKind::NothingToWin, what, action.to_owned())
}

#[cfg(test)]
mod tests {
    use io_autotune_model::ObservedValue;

    use super::*;
    use crate::study::settings::Settings;
    use crate::testing::{grid, history, tested};

    fn told(given: &str) -> ObservedValue {
        ObservedValue {
            parameter: "sieve".to_owned(),
            name: "romio_sieve".to_owned(),
            given: Some(given.to_owned()),
            in_force: "disable".to_owned(),
            as_given: false,
        }
    }

    #[test]
    fn a_parameter_that_is_never_as_given_has_no_effect() {
        let (space, settings) = (grid(&[6, 6]), Settings::default());
        let epoch = Epoch::new(&space, &settings, 1);
        let mut observed = ParameterEffects::default();
        let found = |observed: &ParameterEffects| {
            let facts = StudyFacts {
                study_id: 7,
                accepts_mixed: false,
                pinned: false,
                observed,
                drift: None,
                objective: &Objective::Elapsed,
            };
            epoch.findings(&History::default(), facts)
        };
        observed.record(&[told("enable")]);
        assert!(found(&observed).is_empty(), "one run is an accident");
        observed.record(&[told("automatic")]);
        let [only] = &found(&observed)[..] else {
            panic!("one finding")
        };
        assert_eq!(only.kind, FindingKind::Ineffective);
        assert!(
            only.what
                .starts_with("sieve has no effect here: 2 of the latest runs"),
            "{only:?}"
        );
        assert!(
            only.what
                .contains("given automatic, enable, and disable was in force"),
            "{only:?}"
        );
        assert!(only.action.contains("leave romio_sieve to"), "{only:?}");
    }

    #[test]
    fn a_default_that_does_not_complete_is_found_with_its_lower_bound() {
        let (space, settings) = (grid(&[6, 6]), Settings::default());
        let epoch = Epoch::new(&space, &settings, 1);
        let found = |history: &History, pinned| {
            let facts = StudyFacts {
                study_id: 7,
                accepts_mixed: false,
                pinned,
                observed: &ParameterEffects::default(),
                drift: None,
                objective: &Objective::Elapsed,
            };
            epoch.findings(history, facts).pop()
        };
        let mut default = tested(&space, &[0, 0], &[], 0);
        default.record_failure(0);
        default.record_censored(1, 60.0).unwrap();
        let of = |default: &io_autotune_model::Tested| history(vec![default.clone()], 0, 3);
        assert_eq!(found(&of(&default), false), None, "two are no reason yet");
        default.record_censored(2, 50.0).unwrap();
        let only = found(&of(&default), false).unwrap();
        assert_eq!(only.kind, FindingKind::DefaultLost);
        assert_eq!(
            only.what,
            "The default has not completed yet: of its 3 runs 1 failed and 2 reached the time limit, so it takes at \
             least 60 s; the search goes on without it, and no gain over it is stated."
        );
        assert!(only.action.contains("history --study 7"), "{only:?}");
        assert_eq!(found(&of(&default), true), None, "a pin decides");
    }

    #[test]
    fn mixed_work_is_found_until_it_is_accepted() {
        let (space, settings) = (grid(&[6, 6]), Settings::default());
        let epoch = Epoch::new(&space, &settings, 1);
        let times = [10.0, 20.0, 10.2, 19.8, 10.1, 20.1, 9.9, 20.0];
        let history = history(vec![tested(&space, &[0, 0], &times, 0)], 8, 0);
        let found = |accepts_mixed| {
            let facts = StudyFacts {
                study_id: 7,
                accepts_mixed,
                pinned: false,
                observed: &ParameterEffects::default(),
                drift: Some("drift: tuned runs took 10 s and take 20 s since"),
                objective: &Objective::Elapsed,
            };
            let findings = epoch.findings(&history, facts);
            findings.into_iter().map(|one| one.kind).collect::<Vec<_>>()
        };
        assert_eq!(found(false), [FindingKind::Mixed, FindingKind::Drift]);
        assert_eq!(found(true), [FindingKind::Drift]);
    }

    #[test]
    fn an_objective_that_no_run_has_told_by_the_end_of_a_baseline_is_found() {
        let (space, settings) = (grid(&[6, 6]), Settings::default());
        let epoch = Epoch::new(&space, &settings, 1);
        let objective = Objective::named("rate", true).unwrap();
        let found = |history: &History, objective: &Objective| {
            let facts = StudyFacts {
                study_id: 7,
                accepts_mixed: false,
                pinned: false,
                observed: &ParameterEffects::default(),
                drift: None,
                objective,
            };
            epoch.findings(history, facts).pop()
        };
        let mut history = History::default();
        history.tally.total = 3;
        assert_eq!(found(&history, &objective), None, "it is early");
        history.tally.total = 4;
        let only = found(&history, &objective).unwrap();
        assert_eq!(only.kind, FindingKind::Unreported);
        assert!(only.what.contains("none of its 4 runs"), "{only:?}");
        assert!(only.action.contains("objective rate=VALUE"), "{only:?}");
        assert_eq!(found(&history, &Objective::Elapsed), None);
        history.tested.push(tested(&space, &[0, 0], &[1.0], 0));
        assert_eq!(found(&history, &objective), None, "one has");
    }
}
