//! The arguments of `optimize`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use io_autotune_engine::MethodName;
use io_autotune_optimize::session::Goal;
use regex::Regex;

/// The most runs of a study.
pub(crate) const LONGEST_STUDY: u32 = 100_000;
/// Where a command's runs are kept, unless something else is said.
const STORAGE: &str = "io-autotune.studies";

#[derive(Debug, Args)]
pub(crate) struct Optimize {
    /// The file with the parameters: in TOML as an accelerator's, or in JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) space: PathBuf,
    /// How many runs there are in all, those of the default among them.
    #[arg(long, visible_alias = "budget", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// So many of them, the last, compare the choice with the default [default: 16 or 2 in 5 of a command's, at most half; else 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) compare: Option<u32>,
    /// The same seed and the same lines give the same answers.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How parametrizations are chosen.
    #[arg(long, value_name = "NAME", default_value_t = MethodName::SurrogateGenetic)]
    pub(crate) method: MethodName,
    /// What is made small or large: seconds, or any number.
    #[arg(long, value_name = "seconds|minimize|maximize")]
    goal: Option<Goal>,
    /// The study's name in its file: the same name goes on with it [default: the program's name].
    #[arg(long, value_parser = named)]
    name: Option<String>,
    /// The file that keeps the runs [default: io-autotune.studies of a command's, else none].
    #[arg(long, value_name = "FILE")]
    storage: Option<PathBuf>,
    /// So many runs at once; {slot} in the command is 1 to N.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "command", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: u32,
    /// So many runs of the default before the others, which do not count.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "command", value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) warm_up: u32,
    /// A run is ended after so many seconds, or 10x as long as the default; none for no limit.
    #[arg(
        long,
        value_name = "SECONDS|FACTORx|none",
        default_value = "10x",
        requires = "command"
    )]
    pub(crate) limit: Limit,
    /// Take the number that this regular expression's group finds in the output, instead of time.
    #[arg(long, value_name = "REGEX", requires = "command", value_parser = measure)]
    pub(crate) measure: Option<Regex>,
    /// Print the result as JSON.
    #[arg(long, requires = "command")]
    pub(crate) json: bool,
    /// Say nothing of each run.
    #[arg(long, short, requires = "command")]
    pub(crate) quiet: bool,
    /// The command, not by a shell: {NAME} is a parameter's value, {{ and }} are braces.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl Optimize {
    /// What is made small or large.
    pub(crate) fn goal(&self) -> Result<Goal, String> {
        match (self.goal, &self.measure, self.command.is_empty()) {
            (None, None, _) => Ok(Goal::Seconds),
            (None, Some(_), _) => Ok(Goal::Minimize),
            (Some(Goal::Minimize | Goal::Maximize), None, false) => Err(
                "a command's time is made small: say which number of its output is meant, by --measure 'REGEX'".to_owned(),
            ),
            (Some(goal), _, _) => Ok(goal),
        }
    }

    /// The study's name.
    pub(crate) fn study(&self) -> String {
        let program = || {
            let program = Path::new(self.command.first()?).file_name()?;
            Some(program.to_string_lossy().into_owned())
        };
        let name = self.name.clone().or_else(program);
        name.unwrap_or_else(|| "study".to_owned())
    }

    /// The file that keeps the runs.
    pub(crate) fn storage(&self) -> Option<PathBuf> {
        let of_a_command = (!self.command.is_empty()).then(|| PathBuf::from(STORAGE));
        self.storage.clone().or(of_a_command)
    }
}

/// When a run is ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    None,
    Seconds(f64),
    /// So many times as long as the default.
    Times(f64),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no limit: write a number of seconds, or how many times as long as the default as in 3x, or none"
            )
        };
        let number = |text: &str| {
            let number: f64 = text.parse().map_err(|_| wrong())?;
            (number > 0.0 && number <= 1e9)
                .then_some(number)
                .ok_or_else(wrong)
        };
        match text.strip_suffix('x') {
            _ if text == "none" => Ok(Self::None),
            Some(times) => number(times).and_then(|times| match times >= 1.0 {
                true => Ok(Self::Times(times)),
                false => Err(wrong()),
            }),
            None => number(text).map(Self::Seconds),
        }
    }
}

fn measure(text: &str) -> Result<Regex, String> {
    let regex = Regex::new(text).map_err(|error| error.to_string())?;
    match regex.captures_len() {
        2 => Ok(regex),
        groups => Err(format!(
            "it needs one group in parentheses, which finds the number, as in 'rate: ([0-9.]+)'; it has {}",
            groups - 1
        )),
    }
}

fn named(text: &str) -> Result<String, String> {
    let is_short = (1..=200).contains(&text.len());
    match is_short && !text.chars().any(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 200 bytes, on one line".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_seconds_or_times_the_default() {
        assert_eq!("30".parse(), Ok(Limit::Seconds(30.0)));
        assert_eq!("2.5x".parse(), Ok(Limit::Times(2.5)));
        assert_eq!("none".parse(), Ok(Limit::None));
        for wrong in ["", "x", "0", "-1", "0.5x", "1h", "NaN", "inf", "1e10"] {
            let error = wrong.parse::<Limit>().unwrap_err();
            assert!(error.contains("write a number"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_measure_has_one_group() {
        assert!(measure(r"rate: ([0-9.]+)").is_ok());
        for (wrong, words) in [
            ("rate", "it has 0"),
            ("(a)(b)", "it has 2"),
            ("(", "unclosed"),
        ] {
            let error = measure(wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
