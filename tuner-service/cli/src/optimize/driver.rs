//! Runs a command again and again: what the session asks for, some at once, within a limit.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use io_autotune_optimize::session::{Next, Outcome, Session};
use nix::sys::signal::Signal;
use serde_json::{Map, Value as Json};

use super::error::OptimizeError;
use super::process::{Ended, Running, failure, last_words};
use super::progress::Progress;
use super::signals::Signals;
use super::storage::Storage;
use super::template::{Template, line_of};
use crate::arguments::optimize::{Limit, Optimize};
use crate::say;

/// How long what was asked to end has before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// What is quick takes many times as long where a machine is busy: a limit in times of the default is no
/// shorter than this.
const SHORTEST: Duration = Duration::from_secs(1);
/// How often it is looked whether the process was asked to end.
const LOOK: Duration = Duration::from_millis(100);

/// What runs a session's command.
pub(super) struct Driver<'a> {
    session: &'a mut Session,
    storage: &'a mut Storage,
    template: &'a Template,
    asked: &'a Optimize,
    signals: Signals,
    progress: Progress,
    running: BTreeMap<u32, Open>,
    sender: Sender<Ended>,
    receiver: Receiver<Ended>,
    /// How long the default takes, as far as it ran now.
    default: Option<Duration>,
}

/// A run that has not ended.
struct Open {
    id: u64,
    values: Map<String, Json>,
    process: Running,
    limit: Option<Duration>,
    /// When it was asked to end.
    asked: Option<Instant>,
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
            say(&format!(
                "{name} goes on in {}: {ended} of {} runs have ended",
                storage.place(),
                asked.runs
            ));
        } else if let Some(unused) = template.unused(session.space()) {
            say(&format!(
                "no argument has {unused}: the command reads it as TUNED_... from its environment, if at all"
            ));
        }
        Ok(Driver {
            progress: Progress::new(name, session.plan(), asked),
            session,
            storage,
            template,
            asked,
            signals: Signals::taken()?,
            running: BTreeMap::new(),
            sender,
            receiver,
            default: None,
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
        let is_over = self.session.outcomes().count() >= self.asked.runs as usize;
        for _ in 0..if is_over { 0 } else { self.asked.warm_up } {
            self.warm_up()?;
        }
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
            let next = self.session.ask();
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
        let limit = match self.asked.limit {
            Limit::None => None,
            Limit::Seconds(seconds) => Some(Duration::from_secs_f64(seconds)),
            Limit::Times(times) => self
                .default
                .map(|default| default.mul_f64(times).max(SHORTEST)),
        };
        let open = Open {
            id,
            values,
            process,
            limit,
            asked: None,
        };
        self.running.insert(slot, open);
        Ok(())
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
        if let Some(how) = failure(&ended.status) {
            return Err(OptimizeError::Command(format!(
                "the default failed ({how}): {}: {}; mend it, or go on without it by --warm-up 0",
                self.template.line(&open.values),
                last_words(&ended.output.text())
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
                        "{} of {} runs are kept in {}",
                        self.session.outcomes().count(),
                        self.asked.runs,
                        self.storage.place()
                    ),
                });
            }
            self.end_overdue();
            match self.receiver.recv_timeout(self.patience()) {
                Ok(ended) => {
                    if let Some(open) = self.running.remove(&ended.slot) {
                        return Ok((open, ended));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn patience(&self) -> Duration {
        let left = |open: &Open| Some(open.limit?.saturating_sub(open.process.started.elapsed()));
        let soonest = self.running.values().filter(|open| open.asked.is_none());
        let soonest = soonest.filter_map(left).min().unwrap_or(LOOK);
        soonest.min(LOOK)
    }

    fn end_overdue(&mut self) {
        for open in self.running.values_mut() {
            match (open.limit, open.asked) {
                (_, Some(asked)) if asked.elapsed() >= GRACE => {
                    open.process.signal(Signal::SIGKILL)
                }
                (Some(limit), None) if open.process.started.elapsed() >= limit => {
                    open.process.signal(Signal::SIGTERM);
                    open.asked = Some(Instant::now());
                }
                _ => {}
            }
        }
    }

    fn record(&mut self, (open, mut ended): (Open, Ended)) -> Result<(), OptimizeError> {
        let (outcome, why) = self.outcome(&open, &mut ended);
        let told = self.session.tell(open.id, outcome);
        told.map_err(|error| OptimizeError::Command(error.to_string()))?;
        self.storage.keep(self.session.take_records())?;
        let is_default = open.values == self.session.default().0;
        if is_default && matches!(outcome, Outcome::Value(_)) {
            self.default.get_or_insert(ended.took);
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
        if let (Some(limit), Some(_)) = (open.limit, open.asked) {
            let words = format!("cut short after {:.3} s", limit.as_secs_f64());
            return match self.asked.measure {
                // Its number is not known, nor bounded.
                Some(_) => (Outcome::Failed, Some(words)),
                None => (Outcome::Cut(limit.as_secs_f64()), Some(words)),
            };
        }
        if let Some(how) = failure(&ended.status) {
            let words = last_words(&ended.output.text());
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
        let text = ended.output.text();
        let found = regex.captures(&text).and_then(|groups| groups.get(1));
        let number = found.and_then(|number| number.as_str().trim().parse::<f64>().ok());
        match number.filter(|number| number.is_finite()) {
            Some(number) => (Outcome::Value(number), None),
            None => {
                let what = match found {
                    Some(found) => format!("{:?} is no number", found.as_str()),
                    None => format!("--measure finds nothing in: {}", last_words(&text)),
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
            if let Ok(ended) = self.receiver.recv_timeout(LOOK) {
                self.running.remove(&ended.slot);
            }
        }
    }
}
