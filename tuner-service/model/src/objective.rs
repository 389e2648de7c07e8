//! The objective of a study: the number that it makes small or large.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::measure::{LARGEST_MEASURE, SMALLEST_REPORTED};

/// The measure of the seconds that a job has marked: the longest of its nodes.
pub const MARKED: &str = "marked_seconds";
/// The measure of the seconds spent in MPI-IO's functions: of the process that spent longest in
/// them, on the node where that is longest.
pub const MPI_IO_SECONDS: &str = "mpi_io_seconds";
/// The measure of the bytes that all processes asked MPI-IO to read.
pub const MPI_IO_READ: &str = "mpi_io_read_bytes";
/// The measure of the bytes that all processes asked MPI-IO to write.
pub const MPI_IO_WRITTEN: &str = "mpi_io_written_bytes";

/// The processes of a node whose MPI-IO is not known. If any node has one, nothing is told of the
/// run's MPI-IO: a part would look like a run that did less.
pub const MPI_IO_LOST: &str = "mpi_io_lost_processes";
/// The prefix of measures that an application reports itself.
pub const REPORTED: &str = "objective.";
/// The measure that holds elapsed in a history whose objective is another.
pub const ELAPSED_BESIDE: &str = "elapsed_seconds";

/// The objective of a study: the number that it makes small or large. As text, which is stored, it
/// is `elapsed`, or the name of a measure, followed by ` maximised` if more is better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Objective {
    /// The run's elapsed seconds.
    #[default]
    Elapsed,
    /// A measure of the run.
    Measure {
        /// The measure's name.
        name: String,
        /// True if more is better.
        maximised: bool,
    },
}

/// The reason why a text is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// An unknown text or word.
    #[error(
        "{0:?} is no objective: it must be elapsed, marked, mpi-io, or the NAME of an `io-autotune objective NAME=VALUE` in the job, a letter and at most 31 more letters, digits, _ or -"
    )]
    Unknown(String),
    /// A measure of seconds that should be maximised.
    #[error(
        "{0} is seconds, which are made few: only a measure of the application's own can be maximised"
    )]
    Seconds(String),
}

impl Objective {
    /// The objective that a user names: `elapsed`, `marked`, `mpi-io`, or a measure that the
    /// application reports.
    pub fn named(word: &str, maximised: bool) -> Result<Self, ObjectiveError> {
        let name = match word {
            "elapsed" | "marked" | "mpi-io" if maximised => {
                return Err(ObjectiveError::Seconds(word.to_owned()));
            }
            "elapsed" => return Ok(Self::Elapsed),
            "marked" => MARKED.to_owned(),
            "mpi-io" => MPI_IO_SECONDS.to_owned(),
            name if is_reported_name(name) => format!("{REPORTED}{name}"),
            other => return Err(ObjectiveError::Unknown(other.to_owned())),
        };
        Ok(Self::Measure { name, maximised })
    }

    /// Returns true if the objective is elapsed.
    pub fn is_elapsed(&self) -> bool {
        *self == Self::Elapsed
    }

    /// The name of the measure, which a run may lack; none for elapsed, which every run has.
    pub fn measure(&self) -> Option<&str> {
        match self {
            Self::Elapsed => None,
            Self::Measure { name, .. } => Some(name),
        }
    }

    /// The value that enters a history in the place of elapsed; smaller is better, so a maximised
    /// measure enters as its reciprocal. None if the run does not have the measure, or if the value
    /// is so small or large that a moment of the history could overflow.
    pub fn value(&self, elapsed: f64, measures: &BTreeMap<String, f64>) -> Option<f64> {
        let Self::Measure { name, maximised } = self else {
            return Some(elapsed);
        };
        let told = *measures.get(name)?;
        let value = if *maximised { told.recip() } else { told };
        (SMALLEST_REPORTED..=LARGEST_MEASURE)
            .contains(&value)
            .then_some(value)
    }

    /// The measures that enter a history. Elapsed is among them if the objective is another.
    pub fn beside(&self, elapsed: f64, measures: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
        let mut measures = measures.clone();
        // A node must not be able to set the measure that is added here.
        measures.remove(ELAPSED_BESIDE);
        if !self.is_elapsed() {
            measures.insert(ELAPSED_BESIDE.to_owned(), elapsed);
        }
        measures
    }

    /// The objective's own number for a value in a history: the reciprocal if it is maximised.
    pub fn told(&self, value: f64) -> f64 {
        match self {
            Self::Measure {
                maximised: true, ..
            } => value.recip(),
            _ => value,
        }
    }

    /// Converts a gain, the share by which a history's value is lower, into the share by which the
    /// objective is lower. The result is negative if more is better.
    pub fn less(&self, gain: f64) -> f64 {
        match self.is_maximised() {
            true => -gain / (1.0 - gain),
            false => gain,
        }
    }

    /// The objective's name in sentences: `elapsed`, `marked I/O seconds`, `seconds in MPI-IO`,
    /// `rate`.
    pub fn words(&self) -> &str {
        match self {
            Self::Elapsed => "elapsed",
            Self::Measure { name, .. } if name == MARKED => "marked I/O seconds",
            Self::Measure { name, .. } if name == MPI_IO_SECONDS => "seconds in MPI-IO",
            Self::Measure { name, .. } => name.strip_prefix(REPORTED).unwrap_or(name),
        }
    }

    /// How a job makes its runs have the objective, in words; none for elapsed, which every run
    /// has.
    pub fn in_job(&self) -> Option<String> {
        let name = self.measure()?;
        Some(match name {
            MARKED => {
                "`io-autotune mark begin` and `io-autotune mark end` around its I/O".to_owned()
            }
            MPI_IO_SECONDS => {
                "the profiling library of its MPI (LD_PRELOAD), and MPI_Finalize at its end"
                    .to_owned()
            }
            _ => format!("`io-autotune objective {}=VALUE`", self.words()),
        })
    }

    /// Returns true if more is better.
    pub fn is_maximised(&self) -> bool {
        matches!(
            self,
            Self::Measure {
                maximised: true,
                ..
            }
        )
    }

    /// The unit to write after a number: ` s` for seconds. It is empty for an application's own
    /// measure, because nobody states its unit.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Elapsed => " s",
            Self::Measure { name, .. } if is_of_the_longest_node(name) => " s",
            Self::Measure { .. } => "",
        }
    }
}

/// Returns true for a measure of seconds that nodes spend at the same time. The longest node's
/// number counts for the run, not the sum.
pub fn is_of_the_longest_node(name: &str) -> bool {
    [MARKED, MPI_IO_SECONDS].contains(&name)
}

/// Returns true if an application may report a measure by this name: a letter, then letters,
/// digits, `_` or `-`, at most 32 characters in all.
pub fn is_reported_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("elapsed"),
            Self::Measure { name, maximised } => {
                f.write_str(name)?;
                f.write_str(if *maximised { " maximised" } else { "" })
            }
        }
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (name, maximised) = match text.strip_suffix(" maximised") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let word = match name {
            MARKED => Some("marked"),
            MPI_IO_SECONDS => Some("mpi-io"),
            "elapsed" => Some("elapsed"),
            name => name
                .strip_prefix(REPORTED)
                .filter(|word| !["elapsed", "marked", "mpi-io"].contains(word)),
        };
        let word = word.ok_or_else(|| ObjectiveError::Unknown(text.to_owned()))?;
        Self::named(word, maximised)
    }
}

impl TryFrom<String> for Objective {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::history::Moments;

    fn rate() -> Objective {
        Objective::named("rate", true).unwrap()
    }

    #[test]
    fn words_make_objectives_and_texts_keep_them() {
        for (word, maximised, text, words) in [
            ("elapsed", false, "elapsed", "elapsed"),
            ("marked", false, "marked_seconds", "marked I/O seconds"),
            ("mpi-io", false, "mpi_io_seconds", "seconds in MPI-IO"),
            ("rate", true, "objective.rate maximised", "rate"),
            ("cost", false, "objective.cost", "cost"),
        ] {
            let objective = Objective::named(word, maximised).unwrap();
            assert_eq!(objective.to_string(), text);
            assert_eq!(objective.words(), words);
            assert_eq!(text.parse(), Ok(objective));
        }
        for (word, maximised) in [
            ("elapsed", true),
            ("marked", true),
            ("mpi-io", true),
            ("", false),
            ("1st", false),
            ("a b", false),
            ("objective.rate", false),
        ] {
            assert!(Objective::named(word, maximised).is_err(), "{word:?}");
        }
        for text in [
            "",
            "objective.",
            "objective.elapsed",
            "objective.mpi-io",
            "mpi_io_read_bytes",
            "user_seconds",
            "elapsed maximised",
        ] {
            assert!(text.parse::<Objective>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_run_without_its_objective_has_no_value() {
        let told = BTreeMap::from([("objective.rate".to_owned(), 4.0)]);
        assert_eq!(rate().value(9.0, &told), Some(0.25));
        assert_eq!(rate().told(0.25), 4.0);
        assert_eq!(rate().value(9.0, &BTreeMap::new()), None);
        assert_eq!(Objective::Elapsed.value(9.0, &told), Some(9.0));
    }

    #[test]
    fn elapsed_is_beside_another_objective_alone_whatever_a_node_says() {
        let forged = BTreeMap::from([(ELAPSED_BESIDE.to_owned(), 1.0)]);
        assert_eq!(Objective::Elapsed.beside(9.0, &forged), BTreeMap::new());
        assert_eq!(rate().beside(9.0, &forged)[ELAPSED_BESIDE], 9.0);
    }

    proptest! {
        #[test]
        fn what_enters_a_history_fits_into_its_moments_and_ranks_as_asked(
            exponents in prop::array::uniform2(-330.0..310.0), maximised: bool,
        ) {
            let [a, b] = exponents.map(|exponent: f64| 10.0_f64.powf(exponent));
            let objective = Objective::named("x", maximised).unwrap();
            let value = |told| objective.value(1.0, &BTreeMap::from([("objective.x".to_owned(), told)]));
            let mut moments = Moments::default();
            for value in [a, b, a].map(value).into_iter().flatten() {
                prop_assert!(value > 0.0);
                moments.push(value).unwrap();
            }
            if let (Some(of_a), Some(of_b)) = (value(a), value(b)) && a < b {
                let (better, worse) = if maximised { (of_b, of_a) } else { (of_a, of_b) };
                prop_assert!(better <= worse);
            }
        }

        #[test]
        fn any_text_is_an_objective_that_is_written_the_same_or_none(text in "\\PC{0,40}") {
            if let Ok(objective) = text.parse::<Objective>() {
                prop_assert_eq!(objective.to_string(), text);
            }
        }
    }
}
