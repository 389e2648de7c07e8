//! The rules that decide what a run gets, from top to bottom: the first one that applies decides.
//!
//! A start, the phase of a study, the words of `status` about the next run, and the table in
//! docs/engine.md all read this list. A rule is either a *step* of the study, which gives the run
//! its phase, or stands *instead* of the steps below it: then the run keeps the phase of the step
//! that would have decided.

use io_autotune_model::Rule;
use io_autotune_model::reason::Suggestion;
use io_autotune_model::run::Phase;
use io_autotune_model::text::with_table;

use crate::study::facts::Facts;
use crate::study::situation::Situation;

/// A rule: the condition under which it applies, and the suggestion that it gives.
pub(crate) struct Row {
    /// The name, which is stored with the run.
    pub(crate) rule: Rule,
    pub(crate) kind: Kind,
    /// The condition in words, for docs/engine.md.
    pub(crate) when: &'static str,
    /// The run's parametrization, in words.
    pub(crate) gets: &'static str,
    /// The keys of service.toml on which the rule depends.
    pub(crate) keys: &'static str,
    pub(crate) applies: Condition,
    /// The suggestion for a run in this phase. None if the rule has nothing to give after all; then
    /// the next rule is asked.
    pub(crate) gives: fn(&Situation<'_>, Phase) -> Option<Suggestion>,
}

/// The condition of a rule.
pub(crate) enum Condition {
    /// A condition on plain numbers, which a reader evaluates as well.
    Facts(fn(&Facts<'_>) -> bool),
    /// A condition on the state of the search, for which a surrogate may be fitted. A reader has
    /// the answer of the last verdict.
    Search(fn(&Situation<'_>) -> bool),
}

/// How a rule determines the phase of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A step of the study: the run has this phase.
    Step(Phase),
    /// The rule stands instead of all steps below.
    Instead,
    /// The rule stands instead of the steps below, unless the study has settled or settles now.
    InsteadOfSearching,
    /// The rule stands instead of a step below that explores.
    InsteadOfExploring,
}

use Condition::{Facts as OnFacts, Search as OnSearch};
use Kind::{Instead, InsteadOfExploring, InsteadOfSearching, Step};

/// The rules, in their order.
pub(crate) const RULES: &[Row] = &[
    Row {
        rule: Rule::Observed,
        kind: Instead,
        when: "the job asks to be observed (`mode=observe`), or its name says nothing of the program",
        gets: "the default; nothing is delivered, not even the baseline's \
               [empty files](accelerators.md#what-a-job-uses)",
        keys: "",
        applies: OnFacts(|facts| facts.steering.observed),
        gives: |one, phase| Some(one.observed(phase)),
    },
    Row {
        rule: Rule::Off,
        kind: Instead,
        when: "an order turned tuning off (`io-autotune off`)",
        gets: "the default, as for `observed`",
        keys: "",
        applies: OnFacts(|facts| facts.steering.off),
        gives: |one, phase| Some(one.off(phase)),
    },
    Row {
        rule: Rule::Pinned,
        kind: Instead,
        when: "the study is pinned (`io-autotune pin`), and the pinned values fit its space",
        gets: "the pinned values",
        keys: "",
        applies: OnFacts(|facts| facts.steering.pin.is_some()),
        gives: |one, phase| one.pinned(phase),
    },
    Row {
        rule: Rule::MixedWork,
        kind: InsteadOfSearching,
        when: "[different work](#mixed-work) takes turns under the study's name, and nobody \
               accepted it",
        gets: "the default, as for `observed`",
        keys: "",
        applies: OnFacts(|facts| facts.is_mixed()),
        gives: |one, phase| one.observed_as_mixed(phase),
    },
    Row {
        rule: Rule::Restarted,
        kind: Instead,
        when: "Slurm restarted the job",
        gets: "the best known",
        keys: "",
        applies: OnFacts(|facts| facts.steering.restart_count > 0),
        gives: |one, _| Some(one.restarted()),
    },
    Row {
        rule: Rule::Busy,
        kind: Instead,
        when: "so many jobs of the study start at the same time that this start cannot wait for \
               its turn",
        gets: "the best known",
        keys: "",
        applies: OnFacts(|facts| facts.steering.busy),
        gives: |one, _| Some(one.busy()),
    },
    Row {
        rule: Rule::Frozen,
        kind: Instead,
        when: "an order froze the study (`io-autotune freeze`)",
        gets: "the best known",
        keys: "",
        applies: OnFacts(|facts| facts.steering.frozen),
        gives: |one, _| Some(one.frozen()),
    },
    Row {
        rule: Rule::Settled,
        kind: Step(Phase::Settled),
        when: "the study has settled",
        gets: "the [recommendation](#recommendation) or, by a draw, a [control run](#control-runs)",
        keys: "`control_every` 10",
        applies: OnFacts(|facts| facts.has_settled()),
        gives: |one, _| Some(one.settled()),
    },
    Row {
        rule: Rule::Baseline,
        kind: Step(Phase::Baseline),
        when: "fewer than `baseline_runs` runs of the default have counted or are in flight, and the \
               default [completes](#a-default-that-does-not-complete)",
        gets: "the default",
        keys: "`baseline_runs` 4",
        applies: OnFacts(|facts| facts.baseline_is_due()),
        gives: |one, _| Some(one.baseline()),
    },
    Row {
        rule: Rule::LongerLimit,
        kind: Instead,
        when: "no run of the default has completed or failed, but some were cut short by their time \
               limits; these and those in flight are fewer than six; and this job's limit is more \
               than a quarter longer than the longest of them took",
        gets: "the default",
        keys: "",
        applies: OnFacts(|facts| facts.may_complete_the_default()),
        gives: |one, _| Some(one.baseline()),
    },
    Row {
        rule: Rule::Proof,
        kind: Step(Phase::Search),
        when: "a [proof](#proofs-in-the-search) begins or lasts",
        gets: "the best known or, by a draw, a control run",
        keys: "`[study.proof]`",
        applies: OnSearch(|one| one.proves()),
        gives: |one, phase| Some(one.drawn(phase)),
    },
    Row {
        rule: Rule::BestBetween,
        kind: InsteadOfSearching,
        when: "in jobs of Slurm with the method `surrogate-genetic`: something was faster on average \
               than the default, and the number of the epoch's runs (those in flight included) is \
               at least ten and no multiple of three",
        gets: "the best known; or, during the search, a second run of the parametrization that the \
               method ranks first, if only one has counted and the next three rules allow exploring",
        keys: "",
        applies: OnFacts(|facts| facts.is_between()),
        gives: |one, phase| Some(one.best_between(phase)),
    },
    Row {
        rule: Rule::ExploringFull,
        kind: InsteadOfSearching,
        when: "as many exploring runs are in flight as may be at the same time",
        gets: "the best known",
        keys: "`exploring` 8",
        applies: OnFacts(|facts| facts.exploring_is_full()),
        gives: |one, phase| Some(one.waits_for_a_place(phase)),
    },
    Row {
        rule: Rule::NoHeadroom,
        kind: InsteadOfExploring,
        when: "the job's time limit leaves no [headroom](#time-limit-headroom)",
        gets: "the best known",
        keys: "`[study.regret]`: `design_most` 2.0",
        applies: OnFacts(|facts| facts.lacks_headroom()),
        gives: |one, phase| one.instead_of_exploring(phase),
    },
    Row {
        rule: Rule::ExploringBudget,
        kind: InsteadOfExploring,
        when: "a [budget for exploring](#budgets-for-exploring) has no room for the run today",
        gets: "the best known",
        keys: "`[exploring]`: `node_hours`",
        applies: OnFacts(|facts| facts.is_over_budget()),
        gives: |one, phase| one.spares_the_budget(phase),
    },
    Row {
        rule: Rule::SiteDefault,
        kind: InsteadOfExploring,
        when: "an admin made a parametrization the [site's default](priors.md#the-sites-default) \
               (`io-autotune accelerators site-default`), and nothing has been explored",
        gets: "that parametrization",
        keys: "",
        applies: OnFacts(|facts| facts.tries_the_site_default()),
        gives: |one, phase| one.site_default(phase),
    },
    Row {
        rule: Rule::DesignWithoutDefault,
        kind: Step(Phase::Design),
        when: "the [default does not complete](#a-default-that-does-not-complete), nothing else has \
               completed, and a point of the design has not run",
        gets: "that point",
        keys: "`budget` 50",
        applies: OnSearch(|one| one.has_design_without_default()),
        gives: |one, _| one.design_without_default(),
    },
    Row {
        rule: Rule::SearchWithoutDefault,
        kind: Step(Phase::Search),
        when: "the default does not complete, nothing else has completed, and the design has run; in \
               jobs of Slurm only while fewer than 15 exploring runs (half of `budget`, if that is \
               less) have started",
        gets: "a parametrization that has not run, drawn at random",
        keys: "",
        applies: OnSearch(|one| one.searches_without_default()),
        gives: |one, _| one.search_without_default(),
    },
    Row {
        rule: Rule::DefaultAgain,
        kind: Step(Phase::Baseline),
        when: "the default does not complete, nothing else has completed, and `design_without_default` and \
               `search_without_default` have tried as much as they may",
        gets: "the default, until something completes",
        keys: "",
        applies: OnSearch(|one| one.tries_the_default_again()),
        gives: |one, _| Some(one.baseline()),
    },
    Row {
        rule: Rule::ConfirmForProof,
        kind: Step(Phase::Search),
        when: "a [proof](#proofs-in-the-search) would begin, but its parametrization has run only once",
        gets: "that parametrization, a second time",
        keys: "`[study.proof]`",
        applies: OnSearch(|one| one.confirms_for_a_proof()),
        gives: |one, _| one.confirm_for_a_proof(),
    },
    Row {
        rule: Rule::Promised,
        kind: Step(Phase::Design),
        when: "nothing has been explored, and [other studies](priors.md) found a parametrization fast",
        gets: "that parametrization",
        keys: "`prior`",
        applies: OnSearch(|one| one.promised().is_some()),
        gives: |one, _| one.promise(),
    },
    Row {
        rule: Rule::Design,
        kind: Step(Phase::Design),
        when: "a point of the design has not run, and the [regret budget](#regret) allows it",
        gets: "that point; of several, [recipes](accelerators.md#recipes) first, then the nearest to \
               the default",
        keys: "`budget` 50",
        applies: OnSearch(|one| one.may_run_a_design_point()),
        gives: |one, _| one.design_point(),
    },
    Row {
        rule: Rule::Search,
        kind: Step(Phase::Search),
        when: "the design has run, the search neither [stops early](#stopping-early) nor has spent \
               its search budget, and the [regret budget](#regret) allows the method's proposal",
        gets: "the method's proposal",
        keys: "`budget` 50, `method`",
        applies: OnSearch(|one| one.searches()),
        gives: |one, _| one.proposal(),
    },
    Row {
        rule: Rule::RegretBudget,
        kind: Step(Phase::Search),
        when: "the search is not over, but the expected regret has reached the \
               [regret budget](#regret)",
        gets: "the best known",
        keys: "`[study.regret]`",
        applies: OnSearch(|one| one.is_held()),
        gives: |one, _| Some(one.pauses()),
    },
    Row {
        rule: Rule::AwaitingResults,
        kind: Step(Phase::Search),
        when: "the search is over, and exploring runs are in flight",
        gets: "the best known",
        keys: "",
        applies: OnFacts(|facts| facts.in_flight.exploring > 0),
        gives: |one, _| Some(one.awaits_results()),
    },
    Row {
        rule: Rule::NothingToWin,
        kind: Step(Phase::Settled),
        when: "[nothing can be won](#stopping-early)",
        gets: "the default; the study settles",
        keys: "`[study.stop]`: `little_io`, `unread_runs`",
        applies: OnSearch(|one| one.nothing_to_win().is_some()),
        gives: |one, _| Some(one.settled()),
    },
    Row {
        rule: Rule::Confirm,
        kind: Step(Phase::Search),
        when: "only one run of the parametrization that the method ranks first has counted, and fewer \
               runs than twice the search budget have explored",
        gets: "that parametrization, a second time",
        keys: "`budget` 50",
        applies: OnSearch(|one| one.unconfirmed().is_some()),
        gives: |one, _| one.confirm(),
    },
    Row {
        rule: Rule::Concluded,
        kind: Step(Phase::Settled),
        when: "the search is over",
        gets: "what `settled` gives; this run settles the study",
        keys: "",
        applies: OnFacts(|_| true),
        gives: |one, _| Some(one.settled()),
    },
];

/// The rules as a table of Markdown, for docs/engine.md.
fn rules_table() -> String {
    let mut table = "| rule | applies when | the run gets | phase | keys, defaults |\n".to_owned();
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for (number, row) in (1..).zip(RULES) {
        let (phase, only) = match row.kind {
            Kind::Step(phase) => (phase.as_str(), ""),
            Kind::Instead => ("", ""),
            Kind::InsteadOfSearching => {
                ("", ", unless the study has settled or this run settles it")
            }
            Kind::InsteadOfExploring => ("", ", and the run would explore"),
        };
        let Row {
            rule,
            when,
            gets,
            keys,
            ..
        } = row;
        table.push_str(&format!(
            "| {number}. `{rule}` | {when}{only} | {gets} | {phase} | {keys} |\n"
        ));
    }
    table
}

/// The text of docs/engine.md with this list as the table between its marks; none if the page has
/// no marks.
#[must_use]
pub fn with_rules_table(page: &str) -> Option<String> {
    with_table(page, &rules_table())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_stand_in_the_order_of_the_rules_and_each_has_one() {
        let listed: Vec<Rule> = RULES.iter().map(|row| row.rule).collect();
        assert_eq!(listed, Rule::ALL);
    }

    #[test]
    fn the_table_in_the_docs_is_this_list() {
        let page = include_str!("../../../../docs/engine.md");
        let renewed = with_rules_table(page).expect("docs/engine.md marks the table");
        assert_eq!(page, renewed, "docs/engine.md is stale: run `make rules`");
    }
}
