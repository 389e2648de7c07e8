//! The result of a command's study: its gain with an interval, and the command line to use.

use io_autotune_optimize::session::{
    Failures, Gained, Goal, Known, Outcome, Session, Unit, Verdict,
};
use io_autotune_protocol::shown_lines;
use serde_json::{Map, Value as Json, json};

use super::progress::of_runs;
use super::storage::Storage;
use super::template::Template;
use crate::render::units::{percent, seconds};

/// The result of a study.
pub(super) struct Told<'a> {
    pub(super) session: &'a Session,
    pub(super) template: &'a Template,
    pub(super) name: &'a str,
    pub(super) storage: &'a Storage,
    /// Why it ended before its runs.
    pub(super) because: Option<&'static str>,
}

impl Told<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let (default, of_default) = self.session.default();
        let (best, of_best) = self.session.recommended();
        let gained = self.session.gained();
        let sides = gained
            .as_ref()
            .filter(|gained| gained.chosen.n > 0 && gained.default.n > 0);
        let (left, right, which) = match sides {
            Some(gained) => (&gained.default, &gained.chosen, "drawn after the search"),
            None => (&of_default, &of_best, "all"),
        };
        let unit = match self.goal() {
            Goal::Seconds => "seconds",
            Goal::Minimize | Goal::Maximize => "value",
        };
        let failed = sides.map(|gained| gained.failed).unwrap_or_default();
        let mut rows = vec![["", "runs", unit, "95 % interval", "which runs"].map(str::to_owned)];
        rows.push(row("default", left, failed.default, which));
        if best != default {
            rows.push(row("chosen", right, failed.chosen, which));
        }
        let used = if self.uses_best(gained.as_ref()) {
            &best
        } else {
            &default
        };
        let text = format!(
            "{}\n\n{}\ndefault  {}\nchosen   {}\n\ngain     {}\nuse      {}\n",
            self.head(),
            table(&rows),
            self.template.line(&default),
            self.template.line(&best),
            self.gain(gained.as_ref(), best == default),
            self.template.line(used),
        );
        shown_lines(text.trim_end()) + "\n"
    }

    /// For programs.
    pub(super) fn json(&self) -> Json {
        let (default, of_default) = self.session.default();
        let (best, of_best) = self.session.recommended();
        let gained = self.session.gained();
        let used = if self.uses_best(gained.as_ref()) {
            &best
        } else {
            &default
        };
        let side = |values: &Map<String, Json>, known: &Known| {
            json!({
                "parametrization": values, "command": self.template.fill(values, 1),
                "n": known.n, "mean": known.mean, "interval": known.interval,
            })
        };
        json!({
            "study": self.name,
            "storage": self.storage.place(),
            "runs": self.session.outcomes().count(),
            "default": side(&default, &of_default),
            "chosen": side(&best, &of_best),
            "gain": gained,
            "because": self.because,
            "use": self.template.fill(used, 1),
        })
    }

    fn goal(&self) -> Goal {
        self.session.plan().goal
    }

    /// True if the choice is to be used: it is shown to be better, or nobody wanted that shown, or the
    /// default does not complete.
    fn uses_best(&self, gained: Option<&Gained>) -> bool {
        let completes = self.session.default().1.n > 0;
        !completes || gained.is_none_or(|gained| gained.verdict == Verdict::Better)
    }

    fn head(&self) -> String {
        let count =
            |is: fn(&Outcome) -> bool| self.session.outcomes().filter(|(_, one)| is(one)).count();
        let lost = [
            (count(|one| matches!(one, Outcome::Failed)), "failed"),
            (count(|one| matches!(one, Outcome::Cut(_))), "cut short"),
        ];
        let lost: Vec<String> = lost
            .into_iter()
            .filter(|(runs, _)| *runs > 0)
            .map(|(runs, how)| format!(", {runs} {how}"))
            .collect();
        format!(
            "study {} in {}: {}{}",
            self.name,
            self.storage.place(),
            of_runs(self.session.outcomes().count(), self.session.plan().runs)
                .trim_end_matches(','),
            lost.concat()
        )
    }

    fn gain(&self, gained: Option<&Gained>, is_default: bool) -> String {
        if self.session.default().1.n == 0 {
            return "not known, as the default did not complete; what was chosen does".to_owned();
        }
        let unsaid = gained.filter(|gained| !gained.fails_more);
        let failures = unsaid.map_or_else(String::new, failures);
        self.shown(gained, is_default) + &failures
    }

    fn shown(&self, gained: Option<&Gained>, is_default: bool) -> String {
        let Some(gained) = gained else {
            return "not measured (--compare 0): the best of many runs looks better than it is"
                .to_owned();
        };
        let words = Words {
            goal: self.goal(),
            unit: gained.unit,
        };
        let runs = format!(
            "{} chosen and {} default runs",
            gained.chosen.n, gained.default.n
        );
        let ends = gained.low.zip(gained.high).map(|ends| words.interval(ends));
        let level = format!("{} % sure", (1e4 * gained.level + 1e-6).floor() / 100.0);
        match (gained.verdict, gained.estimate, &ends) {
            (Verdict::Better | Verdict::Worse, Some(estimate), Some(ends)) => {
                let whose = match gained.verdict {
                    Verdict::Better => "",
                    _ => "none; what was chosen has ",
                };
                let what = words.amount(estimate);
                format!("{whose}{what} than the default ({ends}, {level})")
            }
            _ if is_default => "none: nothing better than the default was found".to_owned(),
            (Verdict::NoEffect, _, Some(ends)) => {
                format!("none that is worth telling apart: {ends} ({level}; {runs})")
            }
            _ => {
                let ends = ends
                    .map(|ends| format!(", {ends} ({level})"))
                    .unwrap_or_default();
                let more = match gained.runs_needed {
                    _ if self.because.is_some() => String::new(),
                    Some(more) => {
                        let all = more + self.session.outcomes().count() as u64;
                        format!(
                            "; about {more} more runs would show one of the size seen: --runs {all}"
                        )
                    }
                    None => "; how many more runs would show one is not known yet".to_owned(),
                };
                let why = reason(gained);
                format!("none is shown by {runs}{ends}: {why}{more}")
            }
        }
    }
}

/// Why the verdict is what it is, within a sentence.
fn reason(gained: &Gained) -> String {
    let mut letters = gained.reason.trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The compared runs that failed, of which the means say nothing.
fn failures(gained: &Gained) -> String {
    let Failures { default, chosen } = gained.failed;
    match default + chosen {
        0 => String::new(),
        _ => format!("; {chosen} chosen and {default} default runs of the comparison failed"),
    }
}

/// How much better, in words.
#[derive(Clone, Copy)]
struct Words {
    goal: Goal,
    unit: Unit,
}

impl Words {
    fn what(self) -> &'static str {
        match self.goal {
            Goal::Seconds => " time",
            Goal::Minimize | Goal::Maximize => "",
        }
    }

    fn number(self, better: f64) -> String {
        match self.unit {
            Unit::Share => format!("{} %", percent(better.abs())),
            Unit::Difference => seconds(better.abs(), None),
        }
    }

    fn direction(self, better: f64) -> &'static str {
        match (better >= 0.0) == (self.goal == Goal::Maximize) {
            true => "more",
            false => "less",
        }
    }

    fn amount(self, better: f64) -> String {
        format!(
            "{} {}{}",
            self.number(better),
            self.direction(better),
            self.what()
        )
    }

    fn interval(self, (low, high): (f64, f64)) -> String {
        let (near, far) = if high > 0.0 { (low, high) } else { (high, low) };
        match (low >= 0.0) == (high >= 0.0) {
            true => format!(
                "{} to {} {}",
                self.number(near),
                self.number(far),
                self.direction(far)
            ),
            false => format!(
                "from {} {} to {} {}",
                self.number(low),
                self.direction(low),
                self.number(high),
                self.direction(high)
            ),
        }
    }
}

fn row(name: &str, known: &Known, failed: usize, which: &str) -> [String; 5] {
    let number = |value: f64| seconds(value, None);
    [
        name.to_owned(),
        match failed {
            0 => known.n.to_string(),
            _ => format!("{} + {failed} failed", known.n),
        },
        known.mean.map(number).unwrap_or_default(),
        known
            .interval
            .map(|(low, high)| format!("{} .. {}", number(low), number(high)))
            .unwrap_or_default(),
        which.to_owned(),
    ]
}

fn table(rows: &[[String; 5]]) -> String {
    let width = |place: usize| rows.iter().map(|row| row[place].len()).max().unwrap_or(0);
    let line = |row: &[String; 5]| {
        let text = format!(
            "{:<7}  {:>one$}  {:>two$}  {:<three$}  {}",
            row[0],
            row[1],
            row[2],
            row[3],
            row[4],
            one = width(1),
            two = width(2),
            three = width(3)
        );
        text.trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_much_better_is_said_in_the_goals_words() {
        for (goal, unit, better, said) in [
            (Goal::Seconds, Unit::Share, 0.557, "55.7 % less time"),
            (Goal::Seconds, Unit::Share, -0.05, "5.0 % more time"),
            (Goal::Minimize, Unit::Difference, 3.21, "3.21 less"),
            (Goal::Maximize, Unit::Share, 0.5, "50.0 % more"),
            (Goal::Maximize, Unit::Difference, -2.0, "2.00 less"),
        ] {
            assert_eq!(Words { goal, unit }.amount(better), said);
        }
    }

    #[test]
    fn an_interval_goes_from_its_nearer_end_to_its_farther() {
        for (goal, ends, said) in [
            (Goal::Seconds, (0.495, 0.621), "49.5 % to 62.1 % less"),
            (
                Goal::Seconds,
                (-0.1, 0.2),
                "from 10.0 % more to 20.0 % less",
            ),
            (Goal::Seconds, (-0.3, -0.1), "10.0 % to 30.0 % more"),
            (
                Goal::Maximize,
                (-0.1, 0.2),
                "from 10.0 % less to 20.0 % more",
            ),
        ] {
            let words = Words {
                goal,
                unit: Unit::Share,
            };
            assert_eq!(words.interval(ends), said);
        }
    }
}
