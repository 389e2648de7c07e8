//! Tuning outside Slurm: runs are asked for and reported, one line of JSON each. A [`Session`] is
//! pure: an answer depends only on the space, the options and the earlier lines.

mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use io_autotune_engine::{
    Epoch, History, MethodName, Moments, Parametrization, Pending, RegretSettings, SampleError,
    Settings, Tally, Tested, elapsed_of,
};
use serde_json::{Value as Json, json};

use crate::SpaceFile;
use line::{Line, Outcome};

/// A study of `budget` runs.
#[derive(Clone, Debug)]
pub struct Session {
    file: SpaceFile,
    budget: u32,
    settings: Settings,
    seed: u64,
    history: History,
    /// The runs that were asked for; an id is a place, from 1.
    runs: Vec<Run>,
}

#[derive(Clone, Debug)]
struct Run {
    pending: Pending,
    outcome: Option<Outcome>,
}

/// Why a line was refused; the session is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Not JSON, or not one of the three requests.
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
}

impl Session {
    /// A session of `budget` runs, those of the default included; see [`settings_for`].
    pub fn new(file: SpaceFile, budget: u32, seed: u64, method: MethodName) -> Self {
        Session {
            settings: settings_for(budget, method),
            file,
            budget,
            seed,
            history: History::default(),
            runs: Vec::new(),
        }
    }

    /// The answer to one line: a JSON object, with `error` alone if the line was refused.
    pub fn answer(&mut self, line: &str) -> Json {
        let answer = match Line::parse(line) {
            Ok(Line::Ask) => self.ask(),
            Ok(Line::Tell {
                id,
                outcome,
                measures,
            }) => self.tell(id, outcome, &measures),
            Ok(Line::Recommend) => Ok(self.recommendation()),
            Err(problem) => Err(SessionError::Line { problem }),
        };
        answer.unwrap_or_else(|error| json!({"error": error.to_string()}))
    }

    fn epoch(&self) -> Epoch<'_> {
        Epoch::new(&self.file.space, &self.settings, self.seed)
    }

    fn ask(&mut self) -> Result<Json, SessionError> {
        if self.runs.len() >= self.budget as usize {
            return Err(SessionError::Spent {
                budget: self.budget,
                open: self.open_in_words(),
            });
        }
        let pending: Vec<Pending> = self.open().map(|(_, run)| run.pending.clone()).collect();
        let suggestion = self.epoch().suggest(&self.history, &pending);
        let answer = json!({
            "id": self.runs.len() + 1,
            "parametrization": self.file.spell(&suggestion.parametrization),
            "reason": suggestion.reason,
        });
        self.runs.push(Run {
            pending: Pending {
                parametrization: suggestion.parametrization,
                phase: suggestion.phase,
                role: suggestion.role,
                count: 1,
            },
            outcome: None,
        });
        Ok(answer)
    }

    fn tell(
        &mut self,
        id: u64,
        outcome: Outcome,
        measures: &BTreeMap<String, f64>,
    ) -> Result<Json, SessionError> {
        let asked = self.runs.len();
        let unknown = SessionError::UnknownRun { id, asked };
        let place = id
            .checked_sub(1)
            .and_then(|place| usize::try_from(place).ok());
        let Some(run) = place.and_then(|place| self.runs.get_mut(place)) else {
            return Err(unknown);
        };
        if run.outcome.is_some() {
            return Err(SessionError::ToldTwice { id });
        }
        let ordinal = i64::try_from(id).unwrap_or(i64::MAX);
        let parametrization = &run.pending.parametrization;
        let tested = &mut self.history.tested;
        let known = tested
            .iter()
            .position(|known| known.parametrization == *parametrization);
        let mut entry = match known {
            Some(place) => tested[place].clone(),
            None => Tested::new(parametrization.clone(), ordinal),
        };
        let taken = match outcome {
            Outcome::Failed => {
                entry.record_failure(ordinal);
                Ok(())
            }
            Outcome::Elapsed(elapsed) => {
                entry.record_measures(measures);
                entry.record(ordinal, elapsed)
            }
            Outcome::Censored(elapsed) => entry.record_censored(ordinal, elapsed),
        };
        taken.map_err(|error| SessionError::Elapsed {
            id,
            problem: match error {
                SampleError::NotPositive(seconds) => format!("{seconds} s is not above zero"),
                _ => "the time is not a number that a mean can be made of".to_owned(),
            },
        })?;
        match known {
            Some(place) => tested[place] = entry,
            None => tested.push(entry),
        }
        run.outcome = Some(outcome);
        self.history.tally += Tally::of(run.pending.phase, run.pending.role);
        Ok(json!({"ok": true}))
    }

    /// The method's best so far; the default before a run has counted.
    fn recommendation(&self) -> Json {
        let space = &self.file.space;
        let best = self.epoch().recommend_now(&self.history);
        let best = best.unwrap_or_else(|| space.default());
        let times = self.times(&best);
        let mut moments = Moments::default();
        for time in &times {
            // A number that its sums cannot hold was refused when it was told.
            let _ = moments.push(*time);
        }
        let known = elapsed_of(&moments);
        json!({
            "parametrization": self.file.spell(&best),
            "mean": known.map(|known| known.mean),
            "n": times.len(),
            "interval": known.and_then(|known| known.interval),
        })
    }

    /// The seconds of the parametrization's counted runs.
    fn times(&self, parametrization: &Parametrization) -> Vec<f64> {
        let runs = self.runs.iter();
        runs.filter(|run| run.pending.parametrization == *parametrization)
            .filter_map(|run| match run.outcome {
                Some(Outcome::Elapsed(elapsed)) => Some(elapsed),
                _ => None,
            })
            .collect()
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
