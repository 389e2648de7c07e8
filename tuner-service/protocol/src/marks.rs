//! The marks file of a job, which a variable of its environment names. The job writes into it where
//! its I/O phases begin and end, and measures of its own, one line each, appended by one write.
//!
//! Root reads the file, and the text is a user's: from any text only a few numbers are taken, or
//! the reason why none are.

use std::collections::BTreeMap;
use std::fmt;

use io_autotune_model::{
    LARGEST_MEASURE, MARKED, MPI_IO_LOST, MPI_IO_READ, MPI_IO_SECONDS, MPI_IO_WRITTEN, REPORTED,
    SMALLEST_REPORTED, is_reported_name,
};

/// The variable that names the file.
pub const MARKS_VARIABLE: &str = "IO_MARKS_FILE";
/// The size above which the file is not read; `io-autotune mark` stops writing before that.
pub const MARKS_BYTES: u64 = 65536;
/// The most measures that an application may report.
const MOST_REPORTED: usize = 8;

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// The start of a phase, in nanoseconds of CLOCK_MONOTONIC.
    Begin(u64),
    /// The end of a phase, likewise.
    End(u64),
    /// A measure that the application reports.
    Reported {
        /// The measure's [name](is_reported_name).
        name: String,
        /// The value, positive and finite.
        value: f64,
    },
    /// The time and bytes of a process in MPI-IO, by the profiling library (`spank-plugin/mpi-in-force/`).
    MpiIo(MpiIo),
    /// A process whose line did not fit into the file.
    MpiIoLost,
}

/// The MPI-IO of one process. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MpiIo {
    /// When it first opened a file.
    began: u64,
    /// When it called MPI_Finalize.
    ended: u64,
    /// The time in MPI-IO's functions. With several threads it can be longer than the time that
    /// passed.
    took: u64,
    /// Bytes that the process asked to read.
    read: u64,
    /// Bytes that the process asked to write.
    written: u64,
}

/// The error for a text that is not a measure `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no NAME=VALUE: a name is a letter and at most 31 more letters, digits, _ or -, a value a number from 2^-63 to 2^63"
)]
pub struct ReportedError(String);

impl Mark {
    /// The line for a measure that the application reports as `NAME=VALUE`.
    pub fn reported(text: &str) -> Result<Self, ReportedError> {
        let bad = || ReportedError(text.chars().take(80).collect());
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        reported(name, value).ok_or_else(bad)
    }

    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let number = |words: &mut std::str::Split<'_, char>| words.next()?.parse().ok();
        let mark = match (words.next()?, words.next()?) {
            ("mpi-io", "lost") => Self::MpiIoLost,
            ("mpi-io", began) => Self::MpiIo(MpiIo {
                began: began.parse().ok()?,
                ended: number(&mut words)?,
                took: number(&mut words)?,
                read: number(&mut words)?,
                written: number(&mut words)?,
            }),
            ("begin", at) => Self::Begin(at.parse().ok()?),
            ("end", at) => Self::End(at.parse().ok()?),
            ("objective", name) => reported(name, words.next()?)?,
            _ => return None,
        };
        words.next().is_none().then_some(mark)
    }
}

fn reported(name: &str, value: &str) -> Option<Mark> {
    let value = value.parse::<f64>().ok()?;
    let is_good = is_reported_name(name) && (SMALLEST_REPORTED..=LARGEST_MEASURE).contains(&value);
    is_good.then(|| Mark::Reported {
        name: name.to_owned(),
        value,
    })
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(at) => write!(f, "begin {at}"),
            Self::End(at) => write!(f, "end {at}"),
            Self::Reported { name, value } => write!(f, "objective {name} {value}"),
            Self::MpiIo(MpiIo {
                began,
                ended,
                took,
                read,
                written,
            }) => write!(f, "mpi-io {began} {ended} {took} {read} {written}"),
            Self::MpiIoLost => f.write_str("mpi-io lost"),
        }
    }
}

/// The measures that a node's marks file gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marked {
    /// Measures by name.
    pub measures: BTreeMap<String, f64>,
    /// Lines that were left out, with the reasons.
    pub dropped: Vec<String>,
}

/// Reads a node's file at `now`, nanoseconds of CLOCK_MONOTONIC. The seconds are those in which at
/// least one phase was open, because several processes may mark at the same time. If a measure is
/// reported twice, the later value counts.
#[must_use]
pub fn marked(text: &[u8], now: u64) -> Marked {
    let mut marked = Marked::default();
    if text.len() as u64 > MARKS_BYTES {
        let why = format!("it is longer than {MARKS_BYTES} bytes: nothing of it is read");
        marked.dropped.push(why);
        return marked;
    }
    let mut events: Vec<(u64, bool)> = Vec::new();
    let mut processes: Vec<MpiIo> = Vec::new();
    let (mut strange, mut more, mut lost) = (0, 0, 0);
    for line in String::from_utf8_lossy(text).lines() {
        match Mark::read(line) {
            Some(Mark::Begin(at)) if at <= now => events.push((at, false)),
            Some(Mark::End(at)) if at <= now => events.push((at, true)),
            Some(Mark::Reported { name, value }) => {
                let name = format!("{REPORTED}{name}");
                if marked.measures.len() < MOST_REPORTED || marked.measures.contains_key(&name) {
                    marked.measures.insert(name, value);
                } else {
                    more += 1;
                }
            }
            Some(Mark::MpiIo(one)) if one.began < one.ended && one.ended <= now => {
                processes.push(one);
            }
            Some(Mark::MpiIoLost) => lost += 1,
            _ => strange += 1,
        }
    }
    if strange > 0 {
        let why = format!("{strange} lines are not understood");
        marked.dropped.push(why);
    }
    if more > 0 {
        let why = format!("{more} lines are of more than {MOST_REPORTED} measures");
        marked.dropped.push(why);
    }
    match union(events) {
        Ok(0) => {}
        Ok(nanoseconds) => {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
            let seconds = nanoseconds as f64 / 1e9;
            marked.measures.insert(MARKED.to_owned(), seconds);
        }
        Err(why) => marked.dropped.push(why.to_owned()),
    }
    match lost {
        0 => marked.measures.extend(mpi_io(processes)),
        // A part of the processes would look like a run that did less. The service has to know,
        // because other nodes may tell of theirs.
        _ => {
            let processes = f64::from(lost);
            marked.measures.insert(MPI_IO_LOST.to_owned(), processes);
            marked.dropped.push(format!(
                "{lost} processes had no room for their MPI-IO: nothing is told of it"
            ));
        }
    }
    marked
}

/// The measures of MPI-IO. Processes that run at the same time are ranks of one program, of which
/// the longest in MPI-IO counts; the seconds of the next program are added. Bytes are summed over
/// all processes.
fn mpi_io(mut processes: Vec<MpiIo>) -> impl Iterator<Item = (String, f64)> {
    processes.sort_unstable();
    let (mut sum, mut longest, mut until) = (0_u64, 0, 0);
    let (mut read, mut written) = (0_u64, 0_u64);
    for one in processes {
        if one.began > until {
            sum += longest;
            longest = 0;
        }
        longest = longest.max(one.took.min(one.ended - one.began));
        until = until.max(one.ended);
        read = read.saturating_add(one.read);
        written = written.saturating_add(one.written);
    }
    #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days and 8 PiB")]
    [
        (MPI_IO_SECONDS, (sum + longest) as f64 / 1e9),
        (MPI_IO_READ, read as f64),
        (MPI_IO_WRITTEN, written as f64),
    ]
    .map(|(name, value)| (name, value.min(LARGEST_MEASURE)))
    .into_iter()
    .filter(|(_, value)| *value > 0.0)
    .map(|(name, value)| (name.to_owned(), value))
}

/// The nanoseconds in which at least one phase was open. A phase whose end is missing may have
/// taken any time, and it is not known which end belongs to which phase: then nothing is known.
fn union(mut events: Vec<(u64, bool)>) -> Result<u64, &'static str> {
    // At equal times, starts come before ends.
    events.sort_unstable();
    let (mut open, mut since, mut sum) = (0_u64, 0, 0);
    for (at, is_end) in events {
        match (is_end, open) {
            (true, 0) => return Err("a phase ends that has not begun: no seconds are marked"),
            (true, 1) => {
                sum += at - since;
                open = 0;
            }
            (true, _) => open -= 1,
            (false, 0) => {
                since = at;
                open = 1;
            }
            (false, _) => open += 1,
        }
    }
    match open {
        0 => Ok(sum),
        _ => Err("a phase begins and does not end: no seconds are marked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seconds(text: &str) -> Option<f64> {
        marked(text.as_bytes(), 100 * SECOND)
            .measures
            .get(MARKED)
            .copied()
    }

    fn lines(events: &[(bool, u64)]) -> String {
        let lines = events.iter().map(|(begins, at)| match begins {
            true => format!("{}\n", Mark::Begin(at * SECOND)),
            false => format!("{}\n", Mark::End(at * SECOND)),
        });
        lines.collect()
    }

    #[test]
    fn phases_one_after_the_other_add_up_and_those_at_once_count_once() {
        let (b, e) = (true, false);
        let of = |events: &[(bool, u64)]| seconds(&lines(events));
        assert_eq!(of(&[(b, 1), (e, 3), (b, 10), (e, 11)]), Some(3.0));
        assert_eq!(of(&[(b, 1), (b, 2), (e, 3), (e, 5)]), Some(4.0));
        assert_eq!(of(&[(b, 1), (e, 3), (b, 3), (e, 5)]), Some(4.0));
        // The lines are in another order than the events.
        assert_eq!(of(&[(b, 2), (e, 3), (b, 1), (e, 5)]), Some(4.0));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn of_ranks_the_longest_in_mpi_io_counts_and_programs_add_up() {
        let of = |text: &str| marked(text.as_bytes(), 100 * SECOND);
        let told = of("mpi-io 1000000000 5000000000 2000000000 10 0\n\
                       mpi-io 1100000000 5100000000 3000000000 10 4\n\
                       mpi-io 6000000000 7000000000 500000000 0 1\n");
        let measures = [
            (MPI_IO_READ, 20.0),
            (MPI_IO_SECONDS, 3.5),
            (MPI_IO_WRITTEN, 5.0),
        ];
        assert_eq!(
            told.measures,
            measures
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        assert!(told.dropped.is_empty());
        let threads = of("mpi-io 1000000000 2000000000 9000000000 0 0\n");
        assert_eq!(
            threads.measures[MPI_IO_SECONDS], 1.0,
            "no longer than it ran"
        );
    }

    #[test]
    fn mpi_io_that_is_not_all_told_or_not_possible_is_not_told() {
        for (text, why) in [
            (
                "mpi-io 1 5 2 10 0\nmpi-io lost\n",
                "1 processes had no room",
            ),
            ("mpi-io 5 1 2 10 0\n", "not understood"),
            ("mpi-io 1 999 2 10 0\n", "not understood"),
            ("mpi-io 1 5 2 10\n", "not understood"),
            ("mpi-io 1 5 2 10 0 0\n", "not understood"),
            ("mpi-io 1 5 -2 10 0\n", "not understood"),
        ] {
            let Marked { measures, dropped } = marked(text.as_bytes(), 100);
            let told = measures.keys().any(|name| name != MPI_IO_LOST);
            assert!(!told, "{text}: {measures:?}");
            assert_eq!(measures.contains_key(MPI_IO_LOST), text.contains("lost"));
            assert!(dropped[0].contains(why), "{text}: {dropped:?}");
        }
    }

    #[test]
    fn what_does_not_pair_is_dropped_with_a_reason_and_measures_stay() {
        for (text, why) in [
            ("begin 5\n", "does not end"),
            ("end 5\n", "has not begun"),
            ("begin 5\nbegin 6\nend 7\n", "does not end"),
            ("begin 5\nend 999999999999999999\n", "not understood"),
        ] {
            let text = format!("{text}objective rate 7.5\n");
            let Marked { measures, dropped } = marked(text.as_bytes(), 100);
            assert_eq!(
                measures,
                BTreeMap::from([("objective.rate".to_owned(), 7.5)])
            );
            assert!(
                dropped.iter().any(|one| one.contains(why)),
                "{text}: {dropped:?}"
            );
        }
    }

    #[test]
    fn of_a_measure_the_last_value_holds_and_of_too_many_the_first_are_kept() {
        let text = "objective rate 1\nobjective rate 2\nobjective rate -1\nobjective ../x 1\n";
        let read = marked(text.as_bytes(), 1);
        assert_eq!(
            read.measures,
            BTreeMap::from([("objective.rate".to_owned(), 2.0)])
        );
        assert_eq!(read.dropped, ["2 lines are not understood"]);
        let many: String = (0..20).map(|n| format!("objective n{n} 1\n")).collect();
        let read = marked(many.as_bytes(), 1);
        assert_eq!(read.measures.len(), MOST_REPORTED);
        assert_eq!(read.dropped.len(), 1);
        let long = vec![b'\n'; 65537];
        let read = marked(&long, 1);
        assert!(
            read.measures.is_empty() && read.dropped[0].contains("longer"),
            "{read:?}"
        );
    }

    #[test]
    fn a_measure_is_a_name_and_a_positive_number() {
        assert_eq!(
            Mark::reported("rate=1e3").unwrap().to_string(),
            "objective rate 1000"
        );
        for bad in [
            "rate",
            "rate=",
            "=1",
            "rate=0",
            "rate=-1",
            "rate=inf",
            "rate=nan",
            "a b=1",
            "a=1 2",
            "rate=1e300",
            "rate=1e-300",
        ] {
            assert!(Mark::reported(bad).is_err(), "{bad}");
        }
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_marks() {
        let samples = [
            "begin 5\nend 7000000000\nobjective rate 7.5\n",
            "mpi-io 5 7000000000 6 10 20\nmpi-io 8 9 1 18446744073709551615 1\nmpi-io lost\n",
        ];
        io_autotune_fuzzing::Target::new("marks", &samples).run(|input| {
            let now = 1 << 40;
            let Marked { measures, dropped } = marked(input, now);
            assert!(measures.len() <= MOST_REPORTED + 4 && dropped.len() <= 5);
            for (name, value) in measures {
                assert!(value.is_finite() && value > 0.0 && value <= LARGEST_MEASURE);
                let own = name.strip_prefix(REPORTED).is_some_and(is_reported_name);
                let seconds = [MARKED, MPI_IO_SECONDS].contains(&&*name) && value <= 1100.0;
                let bytes = [MPI_IO_READ, MPI_IO_WRITTEN].contains(&&*name);
                let lost = name == MPI_IO_LOST;
                assert!(own || seconds || bytes || lost, "{name} {value}");
            }
        });
    }
}
