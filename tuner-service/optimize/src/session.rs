//! Tuning outside Slurm: runs are asked for and reported, one line of JSON each. A [`Session`] is
//! pure: an answer depends only on the space, the options and the earlier lines. What happens in it
//! is handed out as [`Record`]s, from which it can be made anew.

mod comparison;
mod goal;
mod line;
mod needed_runs;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use io_autotune_engine::{
    Epoch, History, MethodName, Moments, Parametrization, Pending, Phase, Reason, RegretSettings,
    Role, SampleError, Settings, Space, Suggestion, Tally, Tested, Value, elapsed_of,
};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

pub use self::comparison::{Failures, Gained, Unit, Verdict};
pub use self::goal::Goal;
pub use self::needed_runs::{ENOUGH, Hint, LEAST, Needs, usual_comparison};
pub use self::record::{Asked, Outcome, Record, Told};
use crate::SpaceFile;
use goal::Scale;
use line::Line;

/// How long a session is, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// All runs, those of the default and of the comparison included.
    pub runs: u32,
    /// So many of them, the last, compare what was chosen with the default.
    pub compare: u32,
    /// The number that is made small or large.
    pub goal: Goal,
    /// How parametrizations are chosen.
    pub method: MethodName,
    /// Equal seeds and lines have equal answers.
    pub seed: u64,
}

/// A study.
#[derive(Clone, Debug)]
pub struct Session {
    file: SpaceFile,
    plan: Plan,
    /// How many runs were asked to compare.
    asked_to_compare: u32,
    settings: Settings,
    history: History,
    /// As what the numbers are in the history.
    scale: Scale,
    /// True if runs have ended since the history was made.
    is_stale: bool,
    /// The runs that were asked for; an id is a place, from 1.
    runs: Vec<Run>,
    /// The places of those that have ended, in the order of their ends.
    ended: Vec<usize>,
    /// The places of runs that were open when the session was made anew: they are asked for again.
    again: VecDeque<usize>,
    records: Vec<Record>,
}

#[derive(Clone, Debug)]
struct Run {
    asked: Asked,
    outcome: Option<Outcome>,
    measures: BTreeMap<String, f64>,
}

impl Run {
    fn value(&self) -> Option<f64> {
        match self.outcome {
            Some(Outcome::Value(value)) => Some(value),
            _ => None,
        }
    }

    fn pending(&self) -> Pending {
        Pending {
            parametrization: self.asked.parametrization.clone(),
            phase: self.asked.phase,
            role: self.asked.role,
            count: 1,
        }
    }

    fn is_of_the_search(&self) -> bool {
        self.asked.phase != Phase::Settled
    }
}

/// The values of some runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Known {
    /// How many.
    pub n: usize,
    /// Their mean.
    pub mean: Option<f64>,
    /// The mean's 95 % interval; none of fewer than two runs, and of values that are not all positive.
    pub interval: Option<(f64, f64)>,
}

impl Known {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let mut moments = Moments::default();
        for value in &values {
            // A number that its sums cannot hold was refused when it was told.
            let _ = moments.push(*value);
        }
        let interval = elapsed_of(&moments).and_then(|known| known.interval);
        Known {
            n: values.len(),
            mean: (!values.is_empty()).then_some(moments.mean),
            interval: interval.filter(|_| values.iter().all(|value| *value > 0.0)),
        }
    }
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// This run; in the file's spelling.
    Run {
        /// The run's id.
        id: u64,
        /// The parametrization that the run is given.
        parametrization: Map<String, Json>,
        /// Why, as JSON; none where it is asked for again.
        reason: Option<Json>,
    },
    /// Nothing before open runs have ended.
    Wait,
    /// Nothing more, although there are runs left.
    Done(&'static str),
}

/// Why a line was refused; the session is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Not JSON, or not one of the requests.
    #[error("the line cannot be read: {problem}; {}", line::FORMS)]
    Line {
        /// The problem.
        problem: String,
    },
    /// All runs of the budget were asked for.
    #[error(
        "all {budget} runs of the budget were asked for{open}: tell of those that are open, then ask for the recommendation"
    )]
    Spent {
        /// The budget.
        budget: u32,
        /// The ids of the open runs, in words.
        open: String,
    },
    /// An unknown run id.
    #[error(
        "there is no run {id}: {asked} were asked for; tell the id that came with the parametrization"
    )]
    UnknownRun {
        /// The id.
        id: u64,
        /// How many runs were asked for.
        asked: usize,
    },
    /// The run was reported before.
    #[error("run {id} was told of before, and that counts: tell of each run once")]
    ToldTwice {
        /// The run's id.
        id: u64,
    },
    /// An elapsed that no run can have.
    #[error("run {id}: {problem}: tell a positive number of seconds, or \"failed\":true")]
    Elapsed {
        /// The run's id.
        id: u64,
        /// The problem.
        problem: String,
    },
    /// A parametrization that the space does not have.
    #[error("the parametrization cannot be added: {problem}")]
    Parametrization {
        /// The problem, and the choices.
        problem: String,
    },
    /// A record that does not go on from those before.
    #[error("run {id} cannot follow {runs} runs: its records are incomplete")]
    Record {
        /// The run's id.
        id: u64,
        /// How many runs there are.
        runs: usize,
    },
}

impl Session {
    /// A session of `budget` runs, those of the default included; see [`settings_for`].
    pub fn new(file: SpaceFile, budget: u32, seed: u64, method: MethodName) -> Self {
        Self::planned(
            file,
            Plan {
                runs: budget,
                compare: 0,
                goal: Goal::Seconds,
                method,
                seed,
            },
        )
    }

    /// A session by this plan. The search has at least one run.
    pub fn planned(file: SpaceFile, plan: Plan) -> Self {
        let compare = plan.compare.min(plan.runs.saturating_sub(1));
        Session {
            settings: settings_for(plan.runs - compare, plan.method),
            scale: Scale::of(plan.goal, &[], None),
            is_stale: false,
            plan: Plan { compare, ..plan },
            asked_to_compare: plan.compare,
            file,
            history: History::default(),
            runs: Vec::new(),
            ended: Vec::new(),
            again: VecDeque::new(),
            records: Vec::new(),
        }
    }

    /// The session's space.
    pub fn space(&self) -> &Space {
        &self.file.space
    }

    /// The session's plan.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// True if all planned runs have ended.
    pub fn is_complete(&self) -> bool {
        self.ended.len() >= self.plan.runs as usize
    }

    /// Notes on what the rest of the plan cannot do, or does otherwise than it was asked to; none if no
    /// run is left.
    pub fn hints(&self) -> Vec<Hint> {
        let runs = self.plan.runs;
        if self.is_complete() {
            return Vec::new();
        }
        let searched = self.has_compared().then(|| {
            let search = self.runs.iter().filter(|run| run.is_of_the_search());
            u32::try_from(search.count()).unwrap_or(u32::MAX)
        });
        let compared = searched.map_or(self.plan.compare, |search| runs.saturating_sub(search));
        needed_runs::hints(runs, self.asked_to_compare, compared, searched)
    }

    /// Takes the events since this was asked last, in their order.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Goes on from what happened in an earlier session, in its order. What was open then is asked
    /// for again. Errs where records are missing or do not fit the space.
    pub fn restore(&mut self, records: Vec<Record>) -> Result<(), SessionError> {
        for record in records {
            match record {
                Record::Asked(asked) => {
                    let runs = self.runs.len();
                    if asked.id != runs as u64 + 1 {
                        return Err(SessionError::Record { id: asked.id, runs });
                    }
                    self.admits(&asked.parametrization)?;
                    self.push(asked);
                }
                Record::Told(told) => self.tell_of(told)?,
            }
        }
        self.again = self.open().map(|(place, _)| place).collect();
        self.records.clear();
        self.refresh();
        Ok(())
    }

    /// The answer to one line: a JSON object, with `error` alone if the line was refused.
    pub fn answer(&mut self, line: &str) -> Json {
        let ok = json!({"ok": true});
        let line = Line::parse(line);
        if !matches!(line, Ok(Line::Tell { .. } | Line::Add { .. })) {
            self.refresh();
        }
        let answer = match line {
            Ok(Line::Ask) => self.ask().map(|next| match next {
                Next::Run {
                    id,
                    parametrization,
                    reason,
                } => json!({
                    "id": id,
                    "parametrization": parametrization,
                    "reason": reason.unwrap_or_else(|| json!({"kind": "again"})),
                }),
                Next::Wait => json!({
                    "wait": format!("the search is over: tell of the open runs{} first", self.open_in_words())
                }),
                Next::Done(why) => json!({"done": why}),
            }),
            Ok(Line::Tell {
                id,
                outcome,
                measures,
            }) => self
                .tell_of(Told {
                    id,
                    outcome,
                    measures,
                })
                .map(|()| ok),
            Ok(Line::Add {
                parametrization,
                outcome,
            }) => self
                .add(&parametrization, outcome)
                .map(|id| json!({"id": id})),
            Ok(Line::Recommend) => Ok(self.recommendation()),
            Ok(Line::Runs) => Ok(self.listed()),
            Ok(Line::Plan) => Ok(json!({
                "runs": self.plan.runs,
                "compare": self.plan.compare,
                "hints": self.hints().iter().map(told).collect::<Vec<_>>(),
            })),
            Ok(Line::Importance) => Ok(self.importance()),
            Err(problem) => Err(SessionError::Line { problem }),
        };
        answer.unwrap_or_else(|error| json!({"error": error.to_string()}))
    }

    fn epoch(&self) -> Epoch<'_> {
        Epoch::new(&self.file.space, &self.settings, self.plan.seed)
    }

    /// Returns the next run. Errs when all runs were asked for.
    pub fn ask(&mut self) -> Result<Next, SessionError> {
        self.refresh();
        if let Some(place) = self.again.pop_front() {
            let asked = &self.runs[place].asked;
            return Ok(Next::Run {
                id: asked.id,
                parametrization: self.file.spell(&asked.parametrization),
                reason: None,
            });
        }
        if self.runs.len() >= self.plan.runs as usize {
            return Err(SessionError::Spent {
                budget: self.plan.runs,
                open: self.open_in_words(),
            });
        }
        let compares = self.compares();
        if compares {
            if self.open().any(|(_, run)| run.is_of_the_search()) {
                return Ok(Next::Wait);
            }
            let default = self.file.space.default();
            let ran = |run: &Run| run.value().is_some() && run.asked.parametrization == default;
            if !self.runs.iter().any(ran) {
                return Ok(Next::Done(
                    "the default did not complete: there is nothing to compare with",
                ));
            }
            self.settings = comparing(&self.settings, &self.history.tally);
            if self.best() == default {
                return Ok(Next::Done(
                    "the default is the best that was found: there is nothing to compare it with",
                ));
            }
        }
        let pending: Vec<Pending> = self.open().map(|(_, run)| run.pending()).collect();
        let suggestion = match compares {
            true => self.drawn(&pending),
            false => self.epoch().suggest(&self.history, &pending),
        };
        let id = self.runs.len() as u64 + 1;
        let next = Next::Run {
            id,
            parametrization: self.file.spell(&suggestion.parametrization),
            reason: Some(json!(suggestion.reason)),
        };
        self.push(Asked {
            id,
            parametrization: suggestion.parametrization,
            phase: suggestion.phase,
            role: suggestion.role,
            control_chance: suggestion.control_chance,
        });
        Ok(next)
    }

    /// True if the search has had its runs, and its choice is compared.
    fn compares(&self) -> bool {
        let search = (self.plan.runs - self.plan.compare) as usize;
        // Once it has begun it goes on, also where a study is given more runs later.
        self.has_compared() || (self.plan.compare > 0 && self.runs.len() >= search)
    }

    fn has_compared(&self) -> bool {
        self.runs.iter().any(|run| !run.is_of_the_search())
    }

    /// The parametrization that the comparison compares with the default, from its first run on: all its
    /// runs are of the same, so that its gain is the gain of what is recommended.
    fn compared(&self) -> Option<&Parametrization> {
        let mut runs = self.runs.iter();
        let is_of_it = |run: &&Run| !run.is_of_the_search() && run.asked.role == Role::Settled;
        runs.find(is_of_it).map(|run| &run.asked.parametrization)
    }

    /// A run of the comparison. To the engine the study has settled, so that it draws from the first of
    /// them on: it would else make up first for the control runs that a search has on a site, and run
    /// the best a second time, and neither is compared.
    fn drawn(&self, pending: &[Pending]) -> Suggestion {
        let mut history = self.history.clone();
        history.tally.settled = history.tally.settled.max(1);
        let mut suggestion = self.epoch().suggest(&history, pending);
        if suggestion.role == Role::Settled {
            self.choose(&mut suggestion);
        }
        suggestion
    }

    /// Makes a run of the comparison one of [`best`](Session::best).
    fn choose(&self, suggestion: &mut Suggestion) {
        let best = self.best();
        if suggestion.parametrization == best {
            return;
        }
        // What the engine would have compared had these.
        if let Reason::Settled {
            mean,
            n,
            is_default,
            ..
        } = &mut suggestion.reason
        {
            *mean = None;
            *n = self.known(&best).n as u64;
            *is_default = best == self.file.space.default();
        }
        suggestion.parametrization = best;
    }

    fn push(&mut self, asked: Asked) {
        self.records.push(Record::Asked(asked.clone()));
        self.runs.push(Run {
            asked,
            outcome: None,
            measures: BTreeMap::new(),
        });
    }

    /// Tells how a run has ended. Errs on an unknown run, one that was told of, and a number that no
    /// run has.
    pub fn tell(&mut self, id: u64, outcome: Outcome) -> Result<(), SessionError> {
        self.tell_of(Told {
            id,
            outcome,
            measures: BTreeMap::new(),
        })?;
        self.refresh();
        Ok(())
    }

    fn tell_of(&mut self, told: Told) -> Result<(), SessionError> {
        let (id, asked) = (told.id, self.runs.len());
        let place = id
            .checked_sub(1)
            .and_then(|place| usize::try_from(place).ok())
            .filter(|place| *place < asked)
            .ok_or(SessionError::UnknownRun { id, asked })?;
        if self.runs[place].outcome.is_some() {
            return Err(SessionError::ToldTwice { id });
        }
        let run = Run {
            outcome: Some(told.outcome),
            measures: told.measures.clone(),
            ..self.runs[place].clone()
        };
        let before = std::mem::replace(&mut self.runs[place], run);
        self.ended.push(place);
        if let Err(error) = self.learn(place) {
            self.runs[place] = before;
            self.ended.pop();
            return Err(SessionError::Elapsed {
                id,
                problem: match error {
                    SampleError::NotPositive(seconds) => format!("{seconds} s is not above zero"),
                    _ => "the time is not a number that a mean can be made of".to_owned(),
                },
            });
        }
        self.again.retain(|open| *open != place);
        self.records.push(Record::Told(told));
        Ok(())
    }

    /// The run at this place has ended. Errs, without a change of the history, on a number that does
    /// not enter it.
    fn learn(&mut self, place: usize) -> Result<(), SampleError> {
        match self.plan.goal {
            Goal::Seconds => enter(&mut self.history, &self.runs[place], self.scale),
            Goal::Minimize | Goal::Maximize => {
                self.is_stale = true;
                Ok(())
            }
        }
    }

    /// Brings the history to the scale of the values so far.
    fn refresh(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let (values, of_default) = self.searched();
        self.scale = Scale::of(self.plan.goal, &values, of_default);
        self.history = History::default();
        for place in &self.ended {
            // On this scale each number enters: it is positive, and not too large.
            let entered = enter(&mut self.history, &self.runs[*place], self.scale);
            debug_assert!(entered.is_ok(), "{entered:?}");
        }
    }

    /// The values of the search, and the mean of the default's among them. The comparison is by one
    /// scale: what its runs show may not move it.
    fn searched(&self) -> (Vec<f64>, Option<f64>) {
        let search = || self.runs.iter().filter(|run| run.is_of_the_search());
        let default = self.file.space.default();
        let of_default = search().filter(|run| run.asked.parametrization == default);
        let of_default = Known::of(of_default.filter_map(Run::value)).mean;
        (search().filter_map(Run::value).collect(), of_default)
    }

    fn add(
        &mut self,
        values: &Map<String, Json>,
        outcome: Option<Outcome>,
    ) -> Result<u64, SessionError> {
        if self.runs.len() >= self.plan.runs as usize {
            return Err(SessionError::Spent {
                budget: self.plan.runs,
                open: self.open_in_words(),
            });
        }
        let value = |json: &Json| match json {
            // The engine has them as words.
            Json::Bool(is) => Ok(Value::Text(is.to_string())),
            other => serde_json::from_value(other.clone()),
        };
        let named = values
            .iter()
            .map(|(name, json)| value(json).map(|value| (name.clone(), value)));
        let named: Result<BTreeMap<String, Value>, _> = named.collect();
        let parametrization =
            Parametrization(named.map_err(|error| SessionError::Parametrization {
                problem: error.to_string(),
            })?);
        self.admits(&parametrization)?;
        let is_default = parametrization == self.file.space.default();
        let (phase, role) = match is_default {
            true => (Phase::Baseline, Role::Baseline),
            false => (Phase::Search, Role::Search),
        };
        let id = self.runs.len() as u64 + 1;
        self.push(Asked {
            id,
            parametrization,
            phase,
            role,
            control_chance: None,
        });
        if let Some(outcome) = outcome
            && let Err(error) = self.tell_of(Told {
                id,
                outcome,
                measures: BTreeMap::new(),
            })
        {
            self.runs.pop();
            self.records.pop();
            return Err(error);
        }
        Ok(id)
    }

    fn admits(&self, parametrization: &Parametrization) -> Result<(), SessionError> {
        let point = self.file.space.validate(parametrization);
        let problem = |error: io_autotune_engine::SpaceError| SessionError::Parametrization {
            problem: error.to_string(),
        };
        point.map(|_| ()).map_err(problem)
    }

    /// The parametrization that the comparison compares, once it does; until then the method's best so
    /// far, which is the default before a run has counted.
    fn best(&self) -> Parametrization {
        if let Some(compared) = self.compared() {
            return compared.clone();
        }
        let best = self.epoch().recommend_now(&self.history);
        best.unwrap_or_else(|| self.file.space.default())
    }

    /// The best so far in the file's spelling, with its values.
    pub fn recommended(&self) -> (Map<String, Json>, Known) {
        let best = self.best();
        (self.file.spell(&best), self.known(&best))
    }

    /// The default in the file's spelling, with its values.
    pub fn default(&self) -> (Map<String, Json>, Known) {
        let default = self.file.space.default();
        (self.file.spell(&default), self.known(&default))
    }

    fn known(&self, parametrization: &Parametrization) -> Known {
        let of = |run: &&Run| run.asked.parametrization == *parametrization;
        Known::of(self.runs.iter().filter(of).filter_map(Run::value))
    }

    /// The gain that the comparison shows; none of a plan without one, unless some of its runs are there.
    pub fn gained(&self) -> Option<Gained> {
        let default = self.file.space.default().key();
        (self.plan.compare > 0 || self.has_compared()).then(|| {
            let (values, of_default) = self.searched();
            let scale = self.scale.to_compare(&values, of_default);
            comparison::gained(&self.runs, &default, scale)
        })
    }

    /// The runs that have ended, in the order of their ends, each with its id.
    pub fn outcomes(&self) -> impl Iterator<Item = (u64, Outcome)> {
        let ended = self.ended.iter().map(|place| &self.runs[*place]);
        ended.filter_map(|run| Some((run.asked.id, run.outcome?)))
    }

    fn recommendation(&self) -> Json {
        let (parametrization, known) = self.recommended();
        let mut answer = json!({
            "parametrization": parametrization,
            "mean": known.mean,
            "n": known.n,
            "interval": known.interval,
        });
        if let Some(gained) = self.gained() {
            answer["gain"] = json!(gained);
            answer["default"] = json!(self.default().0);
        }
        answer
    }

    fn listed(&self) -> Json {
        let run = |run: &Run| {
            let (state, value) = match run.outcome {
                None => ("open", None),
                Some(Outcome::Failed) => ("failed", None),
                Some(Outcome::Value(value)) => ("complete", Some(value)),
                Some(Outcome::Cut(value)) => ("cut", Some(value)),
            };
            json!({
                "id": run.asked.id,
                "parametrization": self.file.spell(&run.asked.parametrization),
                "role": run.asked.role,
                "state": state,
                "value": value,
            })
        };
        let runs: Vec<Json> = self.runs.iter().map(run).collect();
        json!({"runs": runs})
    }

    /// The share of the values' spread that each parameter explains.
    fn importance(&self) -> Json {
        match self.epoch().importance(&self.history) {
            Ok(importance) => {
                let parameters = self.file.space.parameters();
                let shares = importance.shares.iter().filter_map(|share| {
                    let name = parameters.get(share.place)?.name.clone();
                    Some((name, json!({"alone": share.alone, "in_all": share.in_all})))
                });
                json!({"skill": importance.skill, "importance": shares.collect::<Map<_, _>>()})
            }
            Err(silence) => json!({"importance": {}, "because": silence.to_string()}),
        }
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Run)> {
        let runs = self.runs.iter().enumerate();
        runs.filter(|(_, run)| run.outcome.is_none())
    }

    fn open_in_words(&self) -> String {
        const SHOWN: usize = 20;
        let open: Vec<String> = self
            .open()
            .map(|(place, _)| (place + 1).to_string())
            .collect();
        match open.len() {
            0 => String::new(),
            all if all > SHOWN => format!(" (open: {}, ...)", open[..SHOWN].join(", ")),
            _ => format!(" (open: {})", open.join(", ")),
        }
    }
}

/// A hint with its words.
fn told(hint: &Hint) -> Json {
    let mut told = json!(hint);
    told["says"] = json!(hint.to_string());
    told
}

/// Adds a run that has ended to a history. Errs, without a change, on a number that does not enter.
fn enter(history: &mut History, run: &Run, scale: Scale) -> Result<(), SampleError> {
    let Some(outcome) = run.outcome else {
        return Ok(());
    };
    let ordinal = i64::try_from(run.asked.id).unwrap_or(i64::MAX);
    let parametrization = &run.asked.parametrization;
    let tested = &mut history.tested;
    let known = tested
        .iter()
        .position(|known| known.parametrization == *parametrization);
    let mut entry = match known {
        Some(place) => tested[place].clone(),
        None => Tested::new(parametrization.clone(), ordinal),
    };
    match outcome {
        Outcome::Failed => entry.record_failure(ordinal),
        Outcome::Value(value) => {
            entry.record_measures(&run.measures);
            entry.record(ordinal, scale.enter(value))?;
        }
        Outcome::Cut(value) => entry.record_censored(ordinal, scale.enter(value))?,
    }
    match known {
        Some(place) => tested[place] = entry,
        None => tested.push(entry),
    }
    history.tally += Tally::of(run.asked.phase, run.asked.role);
    Ok(())
}

/// The settings of the comparison: the search is over, and every other run, by a draw, is of the
/// default.
fn comparing(settings: &Settings, tally: &Tally) -> Settings {
    const EVERY: u32 = 2;
    Settings {
        controls: true,
        control_every: EVERY,
        control_every_at_first: EVERY,
        control_every_promising: EVERY,
        control_every_resolved: EVERY,
        budget: u32::try_from(tally.explored).unwrap_or(u32::MAX),
        ..settings.clone()
    }
}

/// The settings of `optimize` for a study of `budget` runs: the usual ones made [`outside_slurm`].
pub fn settings_for(budget: u32, method: MethodName) -> Settings {
    let usual = Settings {
        method,
        ..Settings::default()
    };
    outside_slurm(usual, budget)
}

/// Settings for a study of `budget` runs outside Slurm, whose only aim is to find the best.
///
/// The default runs once, first, whatever comes of it: there are no users to protect or to tell of
/// gains. All other runs explore, also all open ones at once, without a regret budget. The design has at most its share
/// of the paper's 50 runs (robert2020, section VIII-D).
pub fn outside_slurm(settings: Settings, budget: u32) -> Settings {
    let usual = Settings::default();
    let share = |points: u32| {
        let scaled = u64::from(budget) * u64::from(usual.design_points) / u64::from(usual.budget);
        points.min(u32::try_from(scaled).unwrap_or(points)).max(2)
    };
    let mut settings = Settings {
        baseline_runs: 1,
        baseline_lost_runs: 1,
        controls: false,
        design_points: share(settings.design_points),
        budget: budget.saturating_sub(1).max(1),
        exploring: budget.max(1),
        regret: RegretSettings::UNBOUNDED,
        ..settings
    };
    settings.surrogate_genetic.design_points = share(settings.surrogate_genetic.design_points);
    let multitask = &mut settings.alabed2021_multitask;
    multitask.design_points = share(multitask.design_points);
    settings
}
