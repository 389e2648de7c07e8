//! The decision on a run: the first rule of [the list](crate::study::rules) that applies.

use io_autotune_model::history::{History, Pending};
use io_autotune_model::reason::{Reason, Suggestion};
use io_autotune_model::run::{Phase, Role};
use io_autotune_model::{Mixture, Others, Progress, Rule, Standing};

use crate::study::epoch::Epoch;
use crate::study::rules::{Condition, Kind, RULES, Row};
use crate::study::situation::Situation;
use crate::study::steering::Steering;

/// A decision, with the rule that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// The rule.
    pub rule: Rule,
    /// The suggestion for the run.
    pub suggestion: Suggestion,
    /// Seconds within which the run is expected to end if it explores; none if that is not known.
    pub expected_within: Option<f64>,
}

impl Epoch<'_> {
    /// The suggestion for the next run.
    ///
    /// `history` is the epoch's, and `pending` are its runs in flight. Equal inputs give equal
    /// answers: the design depends on the space, the settings and the seed; other random choices
    /// also on the run's ordinal, `history.tally.total` plus the runs in flight. Never fails or
    /// panics: entries that do not fit the space are ignored.
    pub fn suggest(&self, history: &History, pending: &[Pending]) -> Suggestion {
        let steering = Steering::default();
        self.situation(history, pending, &steering)
            .decide()
            .suggestion
    }

    /// The phase of [`suggest`](Epoch::suggest)'s answer. Usually the method need not be asked for
    /// it.
    pub fn phase(&self, history: &History, pending: &[Pending]) -> Phase {
        let steering = Steering::default();
        self.situation(history, pending, &steering).phase()
    }

    /// The situation of the next run of a job that is steered; [`suggest`](Epoch::suggest) decides
    /// one that is not.
    pub fn situation<'b>(
        &'b self,
        history: &'b History,
        pending: &'b [Pending],
        steering: &'b Steering,
    ) -> Situation<'b> {
        let view = self.modelled(history, pending);
        Situation::new(self, view, history, pending, steering)
    }

    /// The expected regret so far, in runs of the default; 0 before a run of the default has
    /// counted.
    pub fn expected_regret(&self, history: &History) -> f64 {
        let steering = Steering::default();
        self.situation(history, &[], &steering).regret().regret
    }

    /// Returns true if a study with this mixed work is only observed.
    pub(crate) fn observes(&self, mixture: &Mixture, history: &History) -> bool {
        let steering = Steering::default();
        self.situation(history, &[], &steering)
            .with_mixture(Some(*mixture), history)
            .may_hold(Rule::MixedWork)
    }
}

impl Situation<'_> {
    /// Decides the run by the first rule that applies.
    #[must_use]
    pub fn decide(&self) -> Decided {
        self.first_of(RULES.iter())
    }

    /// The phase of the run. Usually the method need not be asked for it.
    #[must_use]
    pub fn phase(&self) -> Phase {
        if self.facts.steering.bars_exploring() {
            return self.phase_by_tally();
        }
        *self.phase.get_or_init(|| {
            let mut steps = steps().filter(|(row, _)| self.applies(row) && self.proposes(row.rule));
            steps.next().map_or(Phase::Settled, |(_, phase)| phase)
        })
    }

    /// Where the study stands, for readers. To be asked of a study that has no run in flight and
    /// that nothing steers.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let progress = self.facts.progress.clone();
        if self.facts.has_settled() {
            return Standing {
                search: match self.nothing_to_win() {
                    Some(_) => Rule::NothingToWin,
                    None => Rule::Concluded,
                },
                explores: false,
                pause: None,
                progress,
                others: Others::None,
            };
        }
        let steps = steps().filter(|(row, _)| row.rule > Rule::Baseline);
        let next = self.first_of(steps.map(|(row, _)| row));
        Standing {
            search: next.rule,
            explores: next.suggestion.role.explores(),
            pause: self.is_held().then(|| self.pause()),
            others: Others::None,
            progress: Progress {
                design_left: self.design_left(),
                ..progress
            },
        }
    }

    /// Returns true if the condition of a rule is met, whatever the rules above it say.
    fn may_hold(&self, rule: Rule) -> bool {
        let mut rows = RULES.iter();
        rows.any(|row| row.rule == rule && self.held_for(row).is_some())
    }

    fn first_of<'b>(&self, mut rows: impl Iterator<Item = &'b Row>) -> Decided {
        let limit = self.facts.steering.limit_seconds();
        let expected_within = self.facts.progress.headroom.expected_within(limit);
        let found = rows.find_map(|row| {
            let phase = self.held_for(row)?;
            let suggestion = (row.gives)(self, phase)?;
            Some(Decided {
                rule: row.rule,
                suggestion: self.beside_a_lost_default(row.rule, suggestion),
                expected_within,
            })
        });
        found.unwrap_or_else(|| Decided {
            rule: Rule::Concluded,
            suggestion: self.settled(),
            expected_within,
        })
    }

    /// The phase of the run that a rule decides; none if the rule does not apply.
    fn held_for(&self, row: &Row) -> Option<Phase> {
        if !self.applies(row) {
            return None;
        }
        match row.kind {
            Kind::Step(phase) => Some(phase),
            Kind::Instead => Some(self.phase()),
            Kind::InsteadOfSearching => Some(self.phase()).filter(|phase| *phase != Phase::Settled),
            Kind::InsteadOfExploring => {
                // The search would explore, whichever of these rules forbids it.
                let below = RULES.iter().filter(|below| {
                    below.rule > row.rule && below.kind != Kind::InsteadOfExploring
                });
                let Suggestion { phase, role, .. } = self.first_of(below).suggestion;
                role.explores().then_some(phase)
            }
        }
    }

    fn applies(&self, row: &Row) -> bool {
        match row.applies {
            Condition::Facts(holds) => holds(&self.facts),
            Condition::Search(holds) => holds(self),
        }
    }

    /// Returns true if a step that asks a method has a proposal, as far as the phase depends on it.
    fn proposes(&self, rule: Rule) -> bool {
        match rule {
            Rule::SearchWithoutDefault => self.search_without_default().is_some(),
            Rule::Search => self.may_propose(),
            _ => true,
        }
    }

    /// Adds how the default's runs ended to the reason, if the search goes on without the default.
    fn beside_a_lost_default(&self, rule: Rule, mut chosen: Suggestion) -> Suggestion {
        let is_of_the_study = rule >= Rule::Settled && chosen.role != Role::Control;
        if let Some(default) = is_of_the_study.then(|| self.lost_default()).flatten() {
            chosen.reason = Reason::DefaultLost {
                reason: Box::new(chosen.reason),
                default,
            };
        }
        chosen
    }
}

/// The rules that are steps of a study, with their phases.
fn steps() -> impl Iterator<Item = (&'static Row, Phase)> {
    RULES.iter().filter_map(|row| match row.kind {
        Kind::Step(phase) => Some((row, phase)),
        Kind::Instead | Kind::InsteadOfSearching | Kind::InsteadOfExploring => None,
    })
}
