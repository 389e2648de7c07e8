//! The arguments of `campaign`.

use std::time::Duration;

use clap::Args;
use io_autotune_protocol::is_name;

#[derive(Debug, Args)]
pub(crate) struct Campaign {
    /// How many jobs are submitted in all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// The node-hours that they may take together [asked for on a terminal].
    #[arg(long, value_name = "HOURS", value_parser = hours)]
    pub(crate) node_hours: Option<f64>,
    /// So many of them in Slurm at once. More than one only if runs share no output.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) at_once: u32,
    /// Submit without a question.
    #[arg(long, requires = "node_hours")]
    pub(crate) yes: bool,
    /// The campaign's name: the same name goes on with it [default: the script's name].
    #[arg(long, value_parser = name)]
    pub(crate) name: Option<String>,
    /// Seconds between two looks at the jobs.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub(crate) every: Duration,
    /// What sbatch is given: its options, the script, and the script's arguments.
    #[arg(last = true, required = true, value_name = "SBATCH-OPTIONS SCRIPT")]
    pub(crate) words: Vec<String>,
}

/// Node-hours that a campaign may take.
pub(crate) fn hours(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    let number = number.filter(|hours| *hours > 0.0 && *hours <= 1e9);
    number.ok_or_else(|| format!("{text:?} is no number of node-hours: write 2 or 0.5"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|seconds| (0.05..=3600.0).contains(seconds));
    let wrong = || format!("{text:?} is not 0.05 to 3600 seconds");
    number.map(Duration::from_secs_f64).ok_or_else(wrong)
}

/// A campaign's name, which is a part of its file's.
pub(crate) fn name(text: &str) -> Result<String, String> {
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 128 letters, digits and . _ + @ -".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_hours_and_seconds_are_within_bounds() {
        assert_eq!((hours("2"), hours(" 0.5\n")), (Ok(2.0), Ok(0.5)));
        for wrong in ["", "0", "-1", "NaN", "inf", "1e10", "2 hours"] {
            assert!(hours(wrong).unwrap_err().contains("write 2"), "{wrong}");
        }
        assert_eq!(seconds("0.2"), Ok(Duration::from_millis(200)));
        for wrong in ["", "0", "-1", "NaN", "inf", "3601"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
