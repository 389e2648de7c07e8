//! The next run of a study, for readers: the same rules, applied to the standing that the last
//! verdict stored. No surrogate is fitted.

use io_autotune_model::history::Pending;
use io_autotune_model::run::Phase;
use io_autotune_model::space::Space;
use io_autotune_model::text::seconds;
use io_autotune_model::{Gain, GainVerdict, Headroom, Next, Others, Rule, Standing, Unknown};

use crate::study::facts::{Facts, InFlight, TRIAL_EVERY};
use crate::study::rules::{Condition, Kind, RULES, Row};
use crate::study::steering::Steering;

/// The rule that decides the next run, in words: what the run gets, why, and until when. `pending`
/// are the runs in flight, and `gain` is the gain of the study's choice.
#[must_use]
pub fn next(
    standing: &Standing,
    space: &Space,
    pending: &[Pending],
    steering: &Steering,
    gain: Option<&Gain>,
) -> Next {
    let reader = Reader::new(standing, space, pending, steering);
    let rule = reader.rule();
    let told = reader.told(rule, gain);
    Next {
        rule,
        says: told.says,
        short: told.short,
        runs: told.runs,
        unless: reader.unknown(rule),
    }
}

/// The phase of a study with these runs in flight.
#[must_use]
pub fn phase(standing: &Standing, space: &Space, pending: &[Pending]) -> Phase {
    let steering = Steering::default();
    Reader::new(standing, space, pending, &steering).step().1
}

struct Reader<'a> {
    standing: &'a Standing,
    facts: Facts<'a>,
}

/// The words about the next run: a sentence, a short form, and the number of further runs for which
/// it holds.
struct Told {
    says: String,
    short: String,
    runs: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(
        standing: &'a Standing,
        space: &Space,
        pending: &[Pending],
        steering: &'a Steering,
    ) -> Self {
        let facts = Facts {
            progress: standing.progress.clone(),
            in_flight: InFlight::of(space, pending),
            steering,
        };
        Reader { standing, facts }
    }

    fn rule(&self) -> Rule {
        let found = RULES.iter().find(|row| self.holds(row));
        found.map_or(Rule::Concluded, |row| row.rule)
    }

    /// The first step that applies, and its phase.
    fn step(&self) -> (Rule, Phase) {
        let mut steps = RULES.iter().filter_map(|row| match row.kind {
            Kind::Step(phase) => self.applies(row).then_some((row.rule, phase)),
            Kind::Instead | Kind::InsteadOfSearching | Kind::InsteadOfExploring => None,
        });
        steps.next().unwrap_or((Rule::Concluded, Phase::Settled))
    }

    fn holds(&self, row: &Row) -> bool {
        self.applies(row)
            && match row.kind {
                Kind::InsteadOfSearching => self.step().1 != Phase::Settled,
                Kind::InsteadOfExploring => {
                    let (step, _) = self.step();
                    step.explores() && (step != self.standing.search || self.standing.explores)
                }
                Kind::Instead | Kind::Step(_) => true,
            }
    }

    fn applies(&self, row: &Row) -> bool {
        let spends = row.rule.explores() || row.rule == Rule::RegretBudget;
        let is_over = self.facts.explored() >= u64::from(self.facts.progress.budget);
        match row.applies {
            Condition::Facts(holds) => holds(&self.facts),
            Condition::Search(_) if spends && row.rule != Rule::Confirm && is_over => false,
            Condition::Search(_) => row.rule == self.standing.search,
        }
    }

    /// The unknowns because of which another rule may decide, or which this rule leaves open.
    fn unknown(&self, rule: Rule) -> Vec<Unknown> {
        let is_drawn = matches!(rule, Rule::Settled | Rule::Concluded | Rule::Proof)
            && self.facts.progress.controls;
        let unknown = [
            (is_drawn, Unknown::Draw),
            (rule == Rule::NoHeadroom, Unknown::Limit),
            (self.depends_on_runs_in_flight(rule), Unknown::InFlight),
            (self.depends_on_others(rule), Unknown::Others),
        ];
        let unknown = unknown.into_iter().filter(|(is_so, _)| *is_so);
        unknown.map(|(_, one)| one).collect()
    }

    /// Returns true if what other studies have shown since the study's last verdict may change the rule.
    fn depends_on_others(&self, rule: Rule) -> bool {
        match self.standing.others {
            Others::None => false,
            // What they have learnt changes what the search expects.
            Others::Learnt => {
                let mut rows = RULES.iter().filter(|row| row.rule == rule);
                let is_of_the_search = rows.any(|row| matches!(row.applies, Condition::Search(_)));
                is_of_the_search || matches!(rule, Rule::AwaitingResults | Rule::Concluded)
            }
            // Their runs are counted, too.
            Others::Runs => !matches!(
                rule,
                Rule::Observed | Rule::Off | Rule::Pinned | Rule::Restarted | Rule::Settled
            ),
        }
    }

    /// Returns true if runs in flight may change the rule: they change the surrogate's expectation
    /// and cost regret. Only a verdict computes what the search makes of them.
    fn depends_on_runs_in_flight(&self, rule: Rule) -> bool {
        let (step, _) = self.step();
        let stands_instead = matches!(
            rule,
            Rule::NoHeadroom | Rule::ExploringBudget | Rule::SiteDefault
        );
        if rule != step && !stands_instead {
            return false;
        }
        let in_flight = self.facts.in_flight;
        let of_others = in_flight.all > in_flight.default || in_flight.exploring > 0;
        match step {
            Rule::Design
            | Rule::Promised
            | Rule::ConfirmForProof
            | Rule::DesignWithoutDefault
            | Rule::SearchWithoutDefault
            | Rule::DefaultAgain => of_others,
            Rule::Search if self.standing.pause.is_some() => in_flight.all > 0,
            Rule::Search => of_others && self.facts.progress.design_left > 0,
            Rule::RegretBudget => of_others || self.runs_to_go() == Some(0),
            _ => false,
        }
    }

    fn told(&self, rule: Rule, gain: Option<&Gain>) -> Told {
        let progress = &self.facts.progress;
        // Counts runs that ended. That a run in flight is a control run must not be shown.
        let trials = u64::from(progress.budget).saturating_sub(progress.explored);
        let left = self.facts.runs_with(trials);
        let to_a_choice = format!("{} to a choice", runs(left));
        let to_go = match trials < left {
            true if trials == 1 => format!("{}, of which one explores", more_runs(left)),
            true => format!("{}, of which {trials} explore", more_runs(left)),
            false => more_runs(left),
        };
        let explores = |what: &str| Told {
            says: format!(
                "{what}: {} of {} exploring runs have ended, and it chooses after about {}",
                progress.explored.min(u64::from(progress.budget)),
                progress.budget,
                to_go
            ),
            short: to_a_choice.clone(),
            runs: Some(left),
        };
        match rule {
            Rule::Observed => told(
                "nothing is applied, because the job's name says nothing of the program: submit with \
                 --io-autotune=app=NAME",
                "observed: no name",
            ),
            Rule::Off => told(
                "nothing is applied, because tuning is turned off",
                "nothing: off",
            ),
            Rule::Pinned => told("the pinned values", "pinned"),
            Rule::MixedWork => told(
                "nothing is applied, because different work takes turns under this name, until each has \
                 a name of its own or it is accepted",
                "observed: different work",
            ),
            Rule::Restarted => told(
                "the best known values, because the job restarted",
                "best known",
            ),
            Rule::Busy => told(
                "the best known values, because the study is busy",
                "best known",
            ),
            Rule::Frozen => told(
                "the best known values, because the study is frozen",
                "best known: frozen",
            ),
            Rule::Settled | Rule::Concluded => self.settled(gain),
            Rule::Baseline => {
                let of = u64::from(progress.baseline_runs);
                let number = (self.facts.baseline_runs() + 1).min(of);
                Told {
                    says: format!(
                        "the default, which is measured first: run {number} of {of}; then {}",
                        match self.standing.search {
                            Rule::NothingToWin => "it stays, because there is nothing to win",
                            _ => "it explores",
                        }
                    ),
                    short: format!("measures the default: {number} of {of}"),
                    runs: Some(of - self.facts.baseline_runs().min(of)),
                }
            }
            Rule::LongerLimit => told(
                "the default, because the job's time limit is longer than those that cut it short",
                "the default again",
            ),
            Rule::Proof => {
                let most = progress.proof_most.saturating_sub(progress.proof);
                Told {
                    says: format!(
                        "the best known values or, as drawn, the default, until these show a gain or a \
                         loss: after {} more of the best known at the latest; then {to_a_choice}",
                        runs(most)
                    ),
                    short: format!("a proof, then {to_a_choice}"),
                    runs: Some(most),
                }
            }
            Rule::BestBetween => {
                let trial = TRIAL_EVERY - self.facts.runs() % TRIAL_EVERY;
                Told {
                    says: format!(
                        "the best known values, as two runs of three: it explores again after {}, and it \
                         chooses after about {}",
                        runs(trial),
                        to_go
                    ),
                    short: to_a_choice,
                    runs: Some(trial),
                }
            }
            Rule::ExploringFull => {
                let exploring = runs(self.facts.in_flight.exploring);
                told(
                    &format!(
                        "the best known values, because {exploring} explore already: until one of them \
                         ends"
                    ),
                    "best known: runs explore",
                )
            }
            Rule::NoHeadroom => told(&self.no_headroom(), "best known: short time limit"),
            Rule::ExploringBudget => self.over_budget(),
            Rule::SiteDefault => explores("what an admin made this site's default"),
            Rule::DesignWithoutDefault | Rule::SearchWithoutDefault => {
                let told = explores("something new, because the default does not complete");
                Told {
                    short: format!("{}: the default fails", told.short),
                    ..told
                }
            }
            Rule::DefaultAgain => told(
                "the default, because nothing has completed yet: until a run completes",
                "waits for a run that completes",
            ),
            Rule::ConfirmForProof | Rule::Confirm => Told {
                runs: Some(1),
                ..told(
                    "the best so far a second time, because one run may be luck",
                    "confirms the best",
                )
            },
            Rule::Promised => explores("what other studies of this accelerator found fast"),
            Rule::Design => explores("new values of a design that is spread over the space"),
            Rule::Search => explores("what the search proposes"),
            Rule::RegretBudget => self.pause(left),
            Rule::AwaitingResults => {
                let last = match self.facts.in_flight.exploring {
                    1 => "the last run that explores has ended".to_owned(),
                    several => format!("the last {several} runs that explore have ended"),
                };
                told(
                    &format!("the best known values, until {last}"),
                    "awaits the last results",
                )
            }
            Rule::NothingToWin => told(
                "the default, because there is nothing to win",
                "nothing to win",
            ),
        }
    }

    fn settled(&self, gain: Option<&Gain>) -> Told {
        if self.standing.search == Rule::NothingToWin {
            return self.told(Rule::NothingToWin, gain);
        }
        let chosen = match self.facts.progress.controls {
            true => "the chosen values or, as drawn, the default, as a control run",
            false => "the chosen values",
        };
        let is_open = |gain: &&Gain| {
            let verdict = gain.verdict;
            matches!(verdict, GainVerdict::NotYet | GainVerdict::Unclear)
        };
        match gain.filter(is_open).map(|gain| gain.runs_needed) {
            Some(Some(more)) if more > 0 => Told {
                says: format!("{chosen}: about {} more to a proof", runs(more)),
                short: format!("{} to a proof", runs(more)),
                runs: Some(more),
            },
            // By the estimate this many were enough, but the run that proves it is a matter of
            // chance.
            Some(_) => told(
                &format!("{chosen}, until these show a gain or a loss"),
                "more control runs, for a proof",
            ),
            None => told(
                &format!("{chosen}, from now on, while it is watched for a drift"),
                "watches for drift",
            ),
        }
    }

    fn pause(&self, left: u64) -> Told {
        let Some(pause) = self.standing.pause else {
            return told("the best known values, because exploring pauses", "pauses");
        };
        let to_go = self.runs_to_go();
        let again = match to_go {
            None => "it does not explore again".to_owned(),
            Some(0) => "it explores again when those in flight have ended".to_owned(),
            Some(more) => format!("it explores again after about {}", more_runs(more)),
        };
        let worst = match pause.worst {
            worst if worst >= 1.5 => format!(
                " (one trial took {} times as long as the default{})",
                factor(worst),
                match pause.forgiven > 0.0 {
                    true => ", and the first such excess is forgiven",
                    false => "",
                }
            ),
            _ => String::new(),
        };
        Told {
            says: format!(
                "the best known values, because exploring is expected to have cost {:.1} runs of the \
                 default, of the {:.1} that it may by now{worst}: {again}, and then has {} left",
                pause.regret,
                pause.bound,
                runs(left)
            ),
            short: match to_go {
                Some(more) => format!("explores after {}", runs(more)),
                None => "pauses".to_owned(),
            },
            runs: to_go,
        }
    }

    /// The number of runs, in addition to those in flight, after which a pause ends; none if it
    /// does not end.
    fn runs_to_go(&self) -> Option<u64> {
        let runs = self.standing.pause?.runs;
        (runs < u64::MAX).then(|| runs.saturating_sub(self.facts.in_flight.all))
    }

    fn over_budget(&self) -> Told {
        let Some(over) = self.facts.steering.over_budget else {
            return told(
                "the best known values, because exploring has its budget",
                "best known",
            );
        };
        match over.is_too_large() {
            true => told(
                &format!("the best known values, because {over}"),
                "best known: over budget",
            ),
            false => told(
                &format!(
                    "the best known values, because {over}: it explores again tomorrow, or earlier if runs in flight take less than expected"
                ),
                "explores tomorrow: budget",
            ),
        }
    }

    fn no_headroom(&self) -> String {
        let limit = self.facts.steering.limit_seconds().unwrap_or_default();
        let limit = seconds(limit);
        match self.facts.progress.headroom {
            Headroom::Seconds(needed) => format!(
                "the best known values, because a time limit of {limit}, as the latest job had, leaves \
                 no room to explore: that may take {}",
                seconds(needed)
            ),
            Headroom::Any | Headroom::Unknown => format!(
                "the best known values, because it is not known whether a time limit of {limit}, as the \
                 latest job had, leaves room to explore: until a run of the default has counted"
            ),
        }
    }
}

fn told(says: &str, short: &str) -> Told {
    Told {
        says: says.to_owned(),
        short: short.to_owned(),
        runs: None,
    }
}

fn more_runs(more: u64) -> String {
    match more {
        1 => "1 more run".to_owned(),
        more => format!("{more} more runs"),
    }
}

fn runs(runs: u64) -> String {
    match runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    }
}

/// A ratio with at most two significant digits.
fn factor(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 9.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests;
