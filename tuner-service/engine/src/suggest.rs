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

use std::cell::OnceCell;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::controls::{self, InFlight};
use crate::design::latin_hypercube;
use crate::history::{History, Pending, Phase, Role};
use crate::loss::{self, ExpectedLoss};
use crate::methods::{self, Method, MethodContext, Proposal};
use crate::reason::{BestKnownBecause, Reason, Stopped, Suggestion};
use crate::recommend::{MIN_RUNS, best_known_in, first_of, has_settled, recommend_in};
use crate::settings::Settings;
use crate::space::{Point, Space};
use crate::stop;
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
/// 4. While the expected loss (`loss.rs`) has reached its bound, design and search go on only with what is
///    expected to be quicker than the default; any other run gets the best known parametrization. The bound grows with the runs. A pause that
///    would not end in time ends the search.
/// 5. *Design*: each point of the Latin hypercube once, the nearest to the default first. A point
///    that failed twice is given up.
/// 6. *Search*: what the method proposes, while the budget lasts.
/// 7. When the budget is spent, nothing is left to try or a criterion of `settings.stop` is met, exploring runs in flight are waited for;
///    then a lowest mean that rests on one run is confirmed by a second.
/// 8. *Settled*: the recommended parametrization, and one run in `control_every` of the default, once the gain
///    is resolved one in `control_every_resolved`.
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
    Epoch::new(space, settings, seed).suggest(history, pending)
}

/// What stays the same in an epoch, for callers that ask for many suggestions: its design is made
/// once, when it is first needed.
#[derive(Clone, Debug)]
pub struct Epoch<'a> {
    space: &'a Space,
    settings: &'a Settings,
    seed: u64,
    design: OnceCell<Vec<Point>>,
}

impl<'a> Epoch<'a> {
    /// An epoch of these settings; the arguments are those of [`suggest()`].
    pub fn new(space: &'a Space, settings: &'a Settings, seed: u64) -> Self {
        Epoch {
            space,
            settings,
            seed,
            design: OnceCell::new(),
        }
    }

    /// What [`suggest()`] answers.
    pub fn suggest(&self, history: &History, pending: &[Pending]) -> Suggestion {
        Chooser {
            epoch: self,
            view: View::new(self.space, history, pending),
            history,
            pending,
        }
        .choose()
    }

    fn design(&self) -> &[Point] {
        self.design.get_or_init(|| {
            let points =
                methods::named(self.settings.method).design_points(self.space, self.settings);
            latin_hypercube(self.space, points, self.seed)
        })
    }
}

/// What comes next apart from control runs and the limit on exploring runs.
enum Next {
    Run(Phase, Role, Point, Reason),
    Wait(BestKnownBecause),
    Settle,
}

struct Chooser<'a> {
    epoch: &'a Epoch<'a>,
    view: View<'a>,
    history: &'a History,
    pending: &'a [Pending],
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
        let exploring = self.epoch.settings.exploring;
        if self.view.exploring() >= u64::from(exploring) {
            let because = BestKnownBecause::ExploringFull { exploring };
            return best_known_in(
                &self.view,
                self.method(),
                self.epoch.settings,
                phase,
                because,
            );
        }
        match next {
            Next::Run(phase, role, point, reason) => self.run(phase, role, &point, reason),
            Next::Wait(because) => best_known_in(
                &self.view,
                self.method(),
                self.epoch.settings,
                phase,
                because,
            ),
            Next::Settle => self.settled(),
        }
    }

    fn method(&self) -> &'static dyn Method {
        methods::named(self.epoch.settings.method)
    }

    fn ranking(&self) -> Vec<Point> {
        self.method().ranking(&self.view, self.epoch.settings)
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
        let of = u64::from(self.epoch.settings.baseline_runs);
        (runs < of).then(|| {
            let reason = Reason::Baseline {
                number: runs + 1,
                of,
            };
            self.run(Phase::Baseline, Role::Baseline, &self.view.default, reason)
        })
    }

    fn control_is_due(&self) -> bool {
        self.epoch.settings.controls && self.view.default_known().runs() < self.runs().isqrt()
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
        if self.explored() >= u64::from(self.epoch.settings.budget) {
            return self.conclude();
        }
        let loss = self.loss();
        if loss.is_spent() {
            return self.conclude();
        }
        let held = loss.is_reached();
        let design = self.epoch.design();
        let context = MethodContext {
            view: &self.view,
            design,
            settings: self.epoch.settings,
            explored: self.explored(),
            held,
        };
        let paused = Next::Wait(BestKnownBecause::LossBound {
            loss: loss.loss,
            bound: loss.bound,
        });
        match self.explore(&context) {
            Some(Next::Run(_, _, point, _)) if held && loss::may_lose_at(&self.view, &point) => {
                paused
            }
            Some(next) => next,
            // What is left may only be held back.
            None if held => paused,
            None => self.conclude(),
        }
    }

    /// The next point of the design, or what the method proposes; none if the search is over.
    fn explore(&self, context: &MethodContext<'_>) -> Option<Next> {
        let method = self.method();
        if let Some((index, point)) = context.next_design_point(method) {
            let reason = Reason::DesignPoint {
                number: index as u64 + 1,
                of: context.design.len() as u64,
            };
            let (phase, role) = (Phase::Design, Role::Design);
            return Some(Next::Run(phase, role, point.clone(), reason));
        }
        if stop::met(&self.view, &self.epoch.settings.stop, &mut self.rng()).is_some() {
            return None;
        }
        match method.propose(context, &mut self.rng()) {
            Proposal::Run { point, reason } => {
                Some(Next::Run(Phase::Search, Role::Search, point, reason))
            }
            Proposal::Wait(because) => Some(Next::Wait(because)),
            Proposal::Exhausted => None,
        }
    }

    fn rng(&self) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.epoch.seed);
        // Stream 0 is the design's.
        rng.set_stream(self.runs().wrapping_add(1));
        rng
    }

    /// What ends the search before its budget is spent, if anything does.
    fn stopped(&self) -> Option<Stopped> {
        let within = self.explored() < u64::from(self.epoch.settings.budget);
        if !within {
            return None;
        }
        let loss = self.loss();
        let spent = loss.is_spent().then_some(Stopped::LossBound {
            loss: loss.loss,
            bound: loss.bound,
        });
        spent.or_else(|| stop::met(&self.view, &self.epoch.settings.stop, &mut self.rng()))
    }

    fn loss(&self) -> ExpectedLoss {
        ExpectedLoss::of(&self.view, self.epoch.settings, self.runs())
    }

    /// The end of the search: results are waited for, and a lucky run is not believed.
    fn conclude(&self) -> Next {
        if self.view.exploring() > 0 {
            return Next::Wait(BestKnownBecause::AwaitingResults);
        }
        // Runs that end without counting could ask for a confirmation for ever.
        let bound = 2 * u64::from(self.epoch.settings.budget);
        if let Some((point, known)) = first_of(&self.view, &self.ranking(), 1)
            && let Some(mean) = known.mean()
            && known.count() < MIN_RUNS
            && self.history.tally.explored < bound
        {
            let default_mean = self.view.default_known().mean();
            let reason = Reason::Confirm { mean, default_mean };
            return Next::Run(Phase::Search, Role::Search, point, reason);
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
        let default = self.view.default_known();
        let best = recommend_in(&self.view, self.method(), self.epoch.settings);
        let recommended = best
            .as_ref()
            .and_then(|best| self.view.space.validate(&best.parametrization).ok());
        let in_flight = InFlight {
            controls: self.in_flight(Role::Control),
            settled: self.in_flight(Role::Settled),
        };
        let control_is_due = self.epoch.settings.controls
            && controls::is_due(
                self.view.space,
                self.history,
                in_flight,
                recommended.as_ref().unwrap_or(&self.view.default),
                self.epoch.settings,
            );
        if control_is_due {
            return self.control(Phase::Settled);
        }
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
                stopped: self.stopped(),
            },
        }
    }
}

fn count<'a>(pending: impl Iterator<Item = &'a Pending>) -> u64 {
    pending.fold(0, |runs, run| runs.saturating_add(run.count))
}
