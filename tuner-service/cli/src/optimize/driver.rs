//! Runs a command again and again: what the session asks for, some at once, within a limit.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use io_autotune_optimize::session::{Next, Outcome, Session, SessionError};
use nix::sys::signal::Signal;
use serde_json::{Map, Value as Json};

use super::error::OptimizeError;
use super::guard::Guard;
use super::process::{Ended, Over, Running, failure, last_words};
use super::progress::{Progress, of_runs};
use super::storage::Storage;
use super::template::{Template, line_of};
use crate::arguments::optimize::{Limit, Optimize};
use crate::say;
use crate::signals::Signals;

/// The time between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);
/// The shortest limit in times of the default: a quick command takes many times as long where a machine
/// is busy.
const SHORTEST: Duration = Duration::from_secs(1);
/// The time between two looks at whether the process was asked to end.
const LOOK: Duration = Duration::from_millis(100);

/// The driver of a session: it runs the command.
pub(super) struct Driver<'a> {
    session: &'a mut Session,
    storage: &'a mut Storage,
    template: &'a Template,
    asked: &'a Optimize,
    signals: Signals,
    progress: Progress,
    running: BTreeMap<u32, Open>,
    guard: Guard,
    sender: Sender<Over>,
    receiver: Receiver<Over>,
    /// The answer that was asked for before the warm-up.
    next: Option<Result<Next, SessionError>>,
    /// How long the default takes, as far as that is known.
    default: Option<Duration>,
    /// How long the quickest run took that completed.
    quickest: Option<Duration>,
    /// True if it was said that the limit is by the quickest run.
    is_said: bool,
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// A run that has not ended.
struct Open {
    id: u64,
    values: Map<String, Json>,
    process: Running,
    /// When it was asked to end, and at which limit.
    asked: Option<(Instant, Duration)>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        storage: &'a mut Storage,
        template: &'a Template,
        asked: &'a Optimize,
        name: &str,
    ) -> Result<Self, OptimizeError> {
        let (sender, receiver) = channel();
        let ended = session.outcomes().count();
        if ended > 0 {
            let more = match session.is_complete() {
                true => ": nothing is left to run, and a larger --runs adds to it",
                false => "",
            };
            say(&format!(
                "{name} goes on in {}: {} have ended{more}",
                storage.place(),
                of_runs(ended, asked.runs)
            ));
        } else if let Some(unused) = template.unused(session.space()) {
            say(&format!(
                "no argument has {unused}: the command reads it as TUNED_... from its environment, if at all"
            ));
        }
        for hint in session.hints() {
            say(&hint.to_string());
        }
        // Elsewhere the numbers of earlier runs are no times.
        let is_timed = asked.measure.is_none();
        let times = session.outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Value(value) if is_timed => Some(value),
            _ => None,
        });
        let quickest = times.reduce(f64::min).and_then(duration);
        let default = session.default().1.mean.filter(|_| is_timed);
        Ok(Driver {
            progress: Progress::new(name, session.plan(), asked),
            session,
            storage,
            template,
            asked,
            signals: Signals::taken()?,
            running: BTreeMap::new(),
            guard: Guard::begun(),
            sender,
            receiver,
            next: None,
            default: default.and_then(duration),
            quickest,
            is_said: false,
        })
    }

    /// Runs until there is nothing more to run; why it ended before its runs, if so. Errs when it was
    /// asked to end, when the program cannot be started, and when nothing can be kept.
    pub(super) fn run(mut self) -> Result<Option<&'static str>, OptimizeError> {
        let ended = self.all();
        self.end();
        self.progress.finish();
        ended
    }

    fn all(&mut self) -> Result<Option<&'static str>, OptimizeError> {
        let next = self.session.ask();
        if matches!(next, Ok(Next::Run { .. })) {
            for _ in 0..self.asked.warm_up {
                self.warm_up()?;
            }
        }
        self.next = Some(next);
        self.progress.begin(self.session);
        loop {
            let ended = self.fill()?;
            if self.running.is_empty() {
                return Ok(ended);
            }
            let one = self.next_end()?;
            self.record(one)?;
        }
    }

    /// Starts runs until as many run as may; why there are no more, if that is early.
    fn fill(&mut self) -> Result<Option<&'static str>, OptimizeError> {
        while let Some(slot) = (1..=self.asked.jobs).find(|slot| !self.running.contains_key(slot)) {
            let next = self.next.take().unwrap_or_else(|| self.session.ask());
            self.storage.keep(self.session.take_records())?;
            match next {
                Ok(Next::Run {
                    id,
                    parametrization,
                    ..
                }) => self.start(slot, id, parametrization)?,
                Ok(Next::Done(why)) => return Ok(Some(why)),
                // Refused only once all runs were asked for.
                Ok(Next::Wait) | Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    fn start(
        &mut self,
        slot: u32,
        id: u64,
        values: Map<String, Json>,
    ) -> Result<(), OptimizeError> {
        let invocation = self
            .template
            .invocation(&values, slot, self.session.space());
        let keeps_output = self.asked.measure.is_some();
        let process = Running::start(&invocation, id, slot, keeps_output, self.sender.clone());
        let process = process.map_err(|error| {
            OptimizeError::Command(format!(
                "{} cannot be started: {error}; is the program there, and in PATH?",
                line_of(&invocation.words)
            ))
        })?;
        let open = Open {
            id,
            values,
            process,
            asked: None,
        };
        self.running.insert(slot, open);
        self.tell_guard();
        Ok(())
    }

    fn tell_guard(&mut self) {
        let groups = self.running.values().map(|open| open.process.group);
        self.guard.set(groups);
    }

    /// The open run that is over, and how it ended.
    fn taken(&mut self, over: Over) -> Option<(Open, Ended)> {
        let open = self.running.remove(&over.slot);
        // Before its number is another's.
        self.tell_guard();
        Some((open?, over.waited()))
    }

    /// When runs are ended, by what is known now.
    fn limit(&mut self) -> Option<Duration> {
        let times = match self.asked.limit {
            Limit::None => return None,
            Limit::Seconds(seconds) => return Some(Duration::from_secs_f64(seconds)),
            Limit::Times(times) => times,
        };
        let default = self.session.default().0;
        let base = match self.default {
            Some(default) => default,
            // It may be the slowest by far.
            None if self.running.values().any(|open| open.values == default) => return None,
            None => {
                let quickest = self.quickest?;
                if !std::mem::replace(&mut self.is_said, true) {
                    say(&format!(
                        "how long the default takes is not known: the limit is {times} times as long as the quickest run that completed, which took {:.3} s",
                        quickest.as_secs_f64()
                    ));
                }
                quickest
            }
        };
        Some(base.mul_f64(times).max(SHORTEST))
    }

    /// A run of the default that does not count. Errs when it fails: so would all others.
    fn warm_up(&mut self) -> Result<(), OptimizeError> {
        self.start(1, 0, self.session.default().0)?;
        let (open, mut ended) = self.next_end()?;
        if open.asked.is_some() {
            return Err(OptimizeError::Command(format!(
                "the default did not end within the limit: {}; give it more by --limit, or go on without it by --warm-up 0",
                self.template.line(&open.values)
            )));
        }
        if let (Outcome::Failed, Some(how)) = self.outcome(&open, &mut ended) {
            return Err(OptimizeError::Command(format!(
                "the default {how}: {}; mend it, or go on without it by --warm-up 0",
                self.template.line(&open.values),
            )));
        }
        self.default = Some(ended.took);
        Ok(())
    }

    /// The next run that ends; until then runs at their limit are ended.
    fn next_end(&mut self) -> Result<(Open, Ended), OptimizeError> {
        loop {
            if self.signals.came() {
                return Err(OptimizeError::Interrupted {
                    kept: format!(
                        "{} are kept in {}",
                        of_runs(self.session.outcomes().count(), self.asked.runs),
                        self.storage.place()
                    ),
                });
            }
            self.end_overdue();
            let patience = self.patience();
            match self.receiver.recv_timeout(patience) {
                Ok(over) => {
                    if let Some(ended) = self.taken(over) {
                        return Ok(ended);
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn patience(&mut self) -> Duration {
        let Some(limit) = self.limit() else {
            return LOOK;
        };
        let left = |open: &Open| limit.saturating_sub(open.process.started.elapsed());
        let soonest = self.running.values().filter(|open| open.asked.is_none());
        soonest.map(left).min().unwrap_or(LOOK).min(LOOK)
    }

    fn end_overdue(&mut self) {
        let limit = self.limit();
        for open in self.running.values_mut() {
            match (limit, open.asked) {
                (_, Some((asked, _))) if asked.elapsed() >= GRACE => {
                    open.process.signal(Signal::SIGKILL)
                }
                (Some(limit), None) if open.process.started.elapsed() >= limit => {
                    open.process.signal(Signal::SIGTERM);
                    open.asked = Some((Instant::now(), limit));
                }
                _ => {}
            }
        }
    }

    fn record(&mut self, (open, mut ended): (Open, Ended)) -> Result<(), OptimizeError> {
        let (mut outcome, mut why) = self.outcome(&open, &mut ended);
        let mut told = self.session.tell(open.id, outcome);
        if let Err(SessionError::Elapsed { problem, .. }) = told {
            (outcome, why) = (Outcome::Failed, Some(format!("failed, {problem}")));
            told = self.session.tell(open.id, outcome);
        }
        told.map_err(|error| OptimizeError::Command(error.to_string()))?;
        self.storage.keep(self.session.take_records())?;
        if matches!(outcome, Outcome::Value(_)) {
            if open.values == self.session.default().0 {
                self.default.get_or_insert(ended.took);
            }
            let quickest = self.quickest.unwrap_or(ended.took);
            self.quickest = Some(quickest.min(ended.took));
        }
        self.progress.ended(
            self.session,
            outcome,
            why.as_deref(),
            &open.values,
            ended.took,
        );
        Ok(())
    }

    fn outcome(&self, open: &Open, ended: &mut Ended) -> (Outcome, Option<String>) {
        if let Some((_, limit)) = open.asked {
            let words = format!("cut short after {:.3} s", limit.as_secs_f64());
            return match self.asked.measure {
                // Its number is not known, nor bounded.
                Some(_) => (Outcome::Failed, Some(words)),
                None => (Outcome::Cut(limit.as_secs_f64()), Some(words)),
            };
        }
        if let Some(how) = failure(&ended.status) {
            let words = last_words(&ended.output.streams());
            let words = if words.is_empty() {
                how
            } else {
                format!("{how}: {words}")
            };
            return (Outcome::Failed, Some(format!("failed, {words}")));
        }
        let Some(regex) = &self.asked.measure else {
            return (Outcome::Value(ended.took.as_secs_f64().max(1e-9)), None);
        };
        let streams = ended.output.streams();
        let found = streams.iter().find_map(|text| regex.captures(text)?.get(1));
        let number = found.and_then(|number| number.as_str().trim().parse::<f64>().ok());
        match number.filter(|number| number.is_finite()) {
            Some(number) => (Outcome::Value(number), None),
            None => {
                let what = match found {
                    Some(found) => format!("{:?} is no number", found.as_str()),
                    None => format!("--measure finds nothing in: {}", last_words(&streams)),
                };
                (Outcome::Failed, Some(format!("failed, {what}")))
            }
        }
    }

    /// Ends what still runs, and waits for that.
    fn end(&mut self) {
        let asked = Instant::now();
        for open in self.running.values() {
            open.process.signal(Signal::SIGTERM);
        }
        while !self.running.is_empty() {
            if asked.elapsed() >= GRACE {
                for open in self.running.values() {
                    open.process.signal(Signal::SIGKILL);
                }
            }
            if let Ok(over) = self.receiver.recv_timeout(LOOK) {
                self.taken(over);
            }
        }
    }
}
