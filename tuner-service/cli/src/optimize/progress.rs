//! How far a command's study is, on standard error: one line on a terminal, else one for each run.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use io_autotune_optimize::session::{Goal, Outcome, Plan, Session};
use serde_json::{Map, Value as Json};

use super::template::text_of;
use crate::arguments::optimize::Optimize;
use crate::render::units::seconds;
use crate::say;

/// The lines about runs while they go on.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    says_each: bool,
    name: String,
    plan: Plan,
    begun: Instant,
    /// The runs that had ended then.
    before: usize,
}

impl Progress {
    pub(super) fn new(name: &str, plan: Plan, asked: &Optimize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (is_terminal && !asked.quiet).then(|| {
            let target = ProgressDrawTarget::stderr();
            let style = ProgressStyle::with_template("{bar:20} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::with_draw_target(Some(plan.runs.into()), target).with_style(style)
        });
        Progress {
            bar,
            says_each: !is_terminal && !asked.quiet,
            name: name.to_owned(),
            plan,
            begun: Instant::now(),
            before: 0,
        }
    }

    /// The first run that counts begins.
    pub(super) fn begin(&mut self, session: &Session) {
        self.begun = Instant::now();
        self.before = session.outcomes().count();
        self.draw(session);
    }

    /// A run has ended.
    pub(super) fn ended(
        &self,
        session: &Session,
        outcome: Outcome,
        why: Option<&str>,
        values: &Map<String, Json>,
        took: Duration,
    ) {
        self.draw(session);
        // On a terminal the line that is drawn has the values, and no failure.
        let is_lost = !matches!(outcome, Outcome::Value(_));
        let bar = self.bar.as_ref().filter(|_| is_lost);
        if self.says_each || bar.is_some() {
            let words: Vec<String> = values
                .iter()
                .map(|(name, value)| format!("{name}={}", text_of(value)))
                .collect();
            let how = match (outcome, why) {
                (Outcome::Value(value), _) => self.number(value),
                (_, Some(why)) => why.to_owned(),
                _ => format!("{:.3} s", took.as_secs_f64()),
            };
            let count = session.outcomes().count();
            let all = count.max(self.plan.runs as usize);
            let line = format!("{count} of {all}: {how}: {}", words.join(" "));
            match bar {
                Some(bar) => bar.suspend(|| say(&line)),
                None => say(&line),
            }
        }
    }

    fn draw(&self, session: &Session) {
        let Some(bar) = &self.bar else {
            return;
        };
        let ended = session.outcomes().count();
        bar.set_position(ended as u64);
        bar.set_message(self.words(session, ended));
    }

    fn words(&self, session: &Session, ended: usize) -> String {
        let values = session.outcomes().filter_map(|(_, outcome)| match outcome {
            Outcome::Value(value) => Some(value),
            _ => None,
        });
        let better = |a: f64, b: f64| match self.plan.goal {
            Goal::Maximize => a.max(b),
            Goal::Seconds | Goal::Minimize => a.min(b),
        };
        let best = values
            .reduce(better)
            .map(|best| format!(", best {}", self.number(best)));
        let default = session.default().1.mean;
        let default = default.map(|mean| format!(" (the default {})", self.number(mean)));
        format!(
            "{}: {}{}{}{}",
            self.name,
            of_runs(ended, self.plan.runs),
            best.unwrap_or_default(),
            default.unwrap_or_default(),
            self.left(ended)
        )
    }

    /// When it is expected to end, by the runs since it began.
    fn left(&self, ended: usize) -> String {
        let done = ended.saturating_sub(self.before);
        let left = (self.plan.runs as usize).saturating_sub(ended);
        if done == 0 || left == 0 {
            return String::new();
        }
        let each = self.begun.elapsed().as_secs_f64() / done as f64;
        format!(", about {} left", time(each * left as f64))
    }

    fn number(&self, value: f64) -> String {
        match self.plan.goal {
            Goal::Seconds => format!("{} s", seconds(value, None)),
            Goal::Minimize | Goal::Maximize => seconds(value, None),
        }
    }

    /// Nothing more is drawn.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// So many runs of those that were asked for, of which an earlier call may have asked for more.
pub(super) fn of_runs(ended: usize, asked: u32) -> String {
    match ended > asked as usize {
        true => format!("{ended} runs, more than --runs {asked},"),
        false => format!("{ended} of {asked} runs"),
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        under if under < 90.0 => format!("{under:.0} s"),
        under if under < 5400.0 => format!("{:.0} min", under / 60.0),
        more => format!("{:.1} h", more / 3600.0),
    }
}
