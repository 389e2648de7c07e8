//! What the next run gets: the phases, and what is interleaved in them.

#[cfg(test)]
mod anything;
#[cfg(test)]
mod censoring;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod settling;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::design::latin_hypercube;
use crate::history::{History, Pending, Phase, Role};
use crate::methods::{self, MethodContext, Proposal};
use crate::reason::{BestKnownBecause, Reason, Suggestion};
use crate::recommend::{MIN_RUNS, best_known_in, has_settled, recommend_in};
use crate::settings::Settings;
use crate::space::{Point, Space};
use crate::view::View;

/// What the next run gets, and why.
///
/// `history` is what is known of the epoch, `pending` its runs in flight, `seed` one number for the
/// whole epoch. The design depends on the space, the settings and the seed alone; every other random
/// choice also on the run's ordinal, `history.tally.total` plus the runs in flight. Same inputs, same answer.
///
/// The rules, in order:
///
/// 1. *Baseline*: until `baseline_runs` runs of the default counted or are in flight.
/// 2. *Control*: of the epoch's first n runs at least the whole part of the root of n are runs of
///    the default, so that the search stays comparable with the present.
/// 3. At most `exploring` runs explore at once; any other gets the best known parametrization.
/// 4. *Design*: each point of the Latin hypercube once, the nearest to the default first. A point
///    that failed twice is given up.
/// 5. *Search*: what the method proposes, while the budget lasts.
/// 6. When the budget is spent or nothing is left to try, exploring runs in flight are waited for;
///    then a lowest mean that rests on one run is confirmed by a second.
/// 7. *Settled*: the recommended parametrization, and one run in `control_every` of the default.
///    An epoch that has settled stays settled.
///
/// It never fails and never panics, whatever the history or the settings hold: entries that do not
/// fit the space are ignored.
pub fn suggest(
    space: &Space,
    history: &History,
    pending: &[Pending],
    settings: &Settings,
    seed: u64,
) -> Suggestion {
    Chooser {
        view: View::new(space, history, pending),
        history,
        pending,
        settings,
        seed,
    }
    .choose()
}

/// What comes next apart from control runs and the limit on exploring runs.
enum Next {
    Run(Phase, Role, Point, Reason),
    Wait(BestKnownBecause),
    Settle,
}

struct Chooser<'a> {
    view: View<'a>,
    history: &'a History,
    pending: &'a [Pending],
    settings: &'a Settings,
    seed: u64,
}

impl Chooser<'_> {
    fn choose(&self) -> Suggestion {
        if self.has_settled() {
            return self.settled();
        }
        if let Some(baseline) = self.baseline() {
            return baseline;
        }
        let next = self.next();
        let phase = match &next {
            Next::Run(phase, ..) => *phase,
            Next::Wait(_) => Phase::Search,
            Next::Settle => return self.settled(),
        };
        if self.control_is_due() {
            return self.control(phase);
        }
        let exploring = self.settings.exploring;
        if self.view.exploring() >= u64::from(exploring) {
            let because = BestKnownBecause::ExploringFull { exploring };
            return best_known_in(&self.view, phase, because);
        }
        match next {
            Next::Run(phase, role, point, reason) => self.run(phase, role, &point, reason),
            Next::Wait(because) => best_known_in(&self.view, phase, because),
            Next::Settle => self.settled(),
        }
    }

    fn run(&self, phase: Phase, role: Role, point: &Point, reason: Reason) -> Suggestion {
        Suggestion {
            phase,
            role,
            parametrization: self.view.space.parametrization(point),
            reason,
        }
    }

    /// The epoch's runs so far, those in flight included.
    fn runs(&self) -> u64 {
        let in_flight = count(self.pending.iter());
        self.history.tally.total.saturating_add(in_flight)
    }

    fn baseline(&self) -> Option<Suggestion> {
        let default = self.view.default_known();
        let in_flight = count(self.pending.iter().filter(|run| run.role == Role::Baseline));
        // Failed runs tell nothing of the default's time. An application that always fails stays
        // here, with the default, which harms nobody.
        let runs = default.count().saturating_add(in_flight);
        let of = u64::from(self.settings.baseline_runs);
        (runs < of).then(|| {
            let reason = Reason::Baseline {
                number: runs + 1,
                of,
            };
            self.run(Phase::Baseline, Role::Baseline, &self.view.default, reason)
        })
    }

    fn control_is_due(&self) -> bool {
        self.view.default_known().runs() < self.runs().isqrt()
    }

    fn control(&self, phase: Phase) -> Suggestion {
        let reason = Reason::Control {
            number: self.view.default_known().runs().saturating_add(1),
            runs: self.runs(),
        };
        self.run(phase, Role::Control, &self.view.default, reason)
    }

    fn explored(&self) -> u64 {
        let ended = self.history.tally.explored;
        ended.saturating_add(self.view.exploring())
    }

    fn next(&self) -> Next {
        if self.explored() >= u64::from(self.settings.budget) {
            return self.conclude();
        }
        let space = self.view.space;
        let design = latin_hypercube(space, self.settings.design_points, self.seed);
        let context = MethodContext {
            view: &self.view,
            design: &design,
            settings: self.settings,
        };
        if let Some((index, point)) = context.next_design_point() {
            let reason = Reason::DesignPoint {
                number: index as u64 + 1,
                of: design.len() as u64,
            };
            return Next::Run(Phase::Design, Role::Design, point.clone(), reason);
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Stream 0 is the design's.
        rng.set_stream(self.runs().wrapping_add(1));
        match methods::named(self.settings.method).propose(&context, &mut rng) {
            Proposal::Run { point, reason } => {
                Next::Run(Phase::Search, Role::Search, point, reason)
            }
            Proposal::Wait(because) => Next::Wait(because),
            Proposal::Exhausted => self.conclude(),
        }
    }

    /// The end of the search: results are waited for, and a lucky run is not believed.
    fn conclude(&self) -> Next {
        if self.view.exploring() > 0 {
            return Next::Wait(BestKnownBecause::AwaitingResults);
        }
        // Runs that end without counting could ask for a confirmation for ever.
        let bound = 2 * u64::from(self.settings.budget);
        if let Some((point, known, mean)) = self.view.lowest(1)
            && known.count() < MIN_RUNS
            && self.history.tally.explored < bound
        {
            let default_mean = self.view.default_known().mean();
            let reason = Reason::Confirm { mean, default_mean };
            return Next::Run(Phase::Search, Role::Search, point.clone(), reason);
        }
        Next::Settle
    }

    fn in_flight(&self, role: Role) -> u64 {
        count(
            self.pending
                .iter()
                .filter(|run| run.phase == Phase::Settled && run.role == role),
        )
    }

    fn has_settled(&self) -> bool {
        has_settled(&self.history.tally)
            || self.in_flight(Role::Settled) > 0
            || self.in_flight(Role::Control) > 0
    }

    fn settled(&self) -> Suggestion {
        let tally = &self.history.tally;
        let controls = tally
            .settled_controls
            .saturating_add(self.in_flight(Role::Control));
        let all = tally
            .settled
            .saturating_add(self.in_flight(Role::Settled))
            .saturating_add(controls);
        let every = u128::from(self.settings.control_every.max(2));
        if u128::from(controls) * every <= u128::from(all) {
            return self.control(Phase::Settled);
        }
        let default = self.view.default_known();
        let best = recommend_in(&self.view);
        let (parametrization, mean, n) = match best {
            Some(best) => (best.parametrization, Some(best.mean), best.n),
            None => (self.view.space.default(), None, default.count()),
        };
        let is_default = parametrization == self.view.space.default();
        Suggestion {
            phase: Phase::Settled,
            role: Role::Settled,
            parametrization,
            reason: Reason::Settled {
                mean,
                n,
                default_mean: default.mean(),
                is_default,
            },
        }
    }
}

fn count<'a>(pending: impl Iterator<Item = &'a Pending>) -> u64 {
    pending.fold(0, |runs, run| runs.saturating_add(run.count))
}
