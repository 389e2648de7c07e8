//! Jobs as `sacct --parsable2` prints them: one a line, the names of the columns first.

use std::io::{self, BufRead, Read};

use io_autotune_protocol::clock_seconds;
use serde::Serialize;

/// The command that prints the columns that are read. The job's name is the last one, because it may
/// have a `|`.
pub(crate) const COMMAND: &str = "sacct --allusers --allocations --parsable2 --noconvert --starttime=now-30days \
     --format=Cluster,JobID,User,Partition,State,NNodes,NCPUS,ElapsedRaw,Comment,JobName";

/// The most bytes of a line: longer ones are set apart.
const MOST: u64 = 64 * 1024;
/// The most seconds of a job: a hundred years. The most of its nodes and processors.
const LONGEST: u64 = 100 * 366 * 86_400;
const LARGEST: u64 = 100_000_000;
/// The most bytes of the names of a job's user, partition and cluster, which are kept for each study.
const LONGEST_NAME: usize = 256;

/// A job that ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Job<'a> {
    pub(crate) cluster: &'a str,
    pub(crate) user: &'a str,
    pub(crate) partition: &'a str,
    pub(crate) name: &'a str,
    pub(crate) comment: Option<&'a str>,
    /// At least one.
    pub(crate) nodes: u64,
    /// At least as many as nodes.
    pub(crate) cpus: u64,
    /// At least one.
    pub(crate) seconds: u64,
    pub(crate) completed: bool,
}

impl Job<'_> {
    /// The time of the job's nodes, in node-seconds.
    #[expect(clippy::cast_precision_loss, reason = "both are bounded")]
    pub(crate) fn node_seconds(&self) -> f64 {
        self.nodes as f64 * self.seconds as f64
    }
}

/// The lines that are no jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Unread {
    pub(crate) lines: u64,
    /// The first of them, from 1, and why.
    pub(crate) first: Option<(u64, &'static str)>,
}

impl Unread {
    fn note(&mut self, line: u64, why: &'static str) {
        self.lines += 1;
        self.first.get_or_insert((line, why));
    }
}

/// The places of the columns in a line.
struct Columns {
    count: usize,
    cluster: Option<usize>,
    job_id: Option<usize>,
    user: usize,
    partition: Option<usize>,
    name: usize,
    comment: Option<usize>,
    state: Option<usize>,
    nodes: usize,
    cpus: Option<usize>,
    elapsed: usize,
}

impl Columns {
    /// Reads the first line. The error says what is missing, and how it is printed.
    fn of(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.split('|').map(str::trim).collect();
        let any = |wanted: &[&str]| {
            let found = wanted
                .iter()
                .find_map(|one| names.iter().position(|name| name.eq_ignore_ascii_case(one)));
            found.ok_or_else(|| wanted[0].to_owned())
        };
        let needed = [
            any(&["JobName"]),
            any(&["User", "UID"]),
            any(&["NNodes", "AllocNodes"]),
            any(&["ElapsedRaw", "Elapsed"]),
        ];
        let missing: Vec<&str> = needed
            .iter()
            .filter_map(|one| one.as_ref().err().map(String::as_str))
            .collect();
        let [Ok(name), Ok(user), Ok(nodes), Ok(elapsed)] = needed else {
            return Err(format!(
                "its first line does not name the column {}; print the file by\n{COMMAND}",
                missing.join(", ")
            ));
        };
        let one = |wanted: &str| any(&[wanted]).ok();
        Ok(Self {
            count: names.len(),
            cluster: one("Cluster"),
            job_id: one("JobID"),
            user,
            partition: one("Partition"),
            name,
            comment: one("Comment"),
            state: one("State"),
            nodes,
            cpus: any(&["NCPUS", "AllocCPUS"]).ok(),
            elapsed,
        })
    }

    /// The job of a line; `None` if it never ran, or is a step of another one.
    fn job<'a>(&self, line: &'a str) -> Result<Option<Job<'a>>, &'static str> {
        // sacct escapes nothing, so that only the last column may have a separator in it.
        let fields: Vec<&str> = line.splitn(self.count, '|').collect();
        if fields.len() < self.count {
            return Err("it has fewer columns than the first line");
        }
        let text = |place: Option<usize>| place.map_or("", |place| fields[place]);
        if text(self.job_id).contains('.') {
            return Ok(None);
        }
        let seconds = elapsed(fields[self.elapsed]).ok_or("its elapsed time is none")?;
        let nodes = number(fields[self.nodes]).ok_or("its number of nodes is none")?;
        let cpus = match self.cpus {
            Some(place) => number(fields[place]).ok_or("its number of CPUs is none")?,
            None => nodes,
        };
        if seconds == 0 || nodes == 0 {
            return Ok(None);
        }
        if seconds > LONGEST || nodes > LARGEST || cpus > LARGEST {
            return Err("no job is so large");
        }
        let names = [text(self.cluster), fields[self.user], text(self.partition)];
        if names.iter().any(|name| name.len() > LONGEST_NAME) {
            return Err("the name of its user, partition or cluster is too long");
        }
        let state = self.state.map(|place| fields[place]);
        Ok(Some(Job {
            cluster: text(self.cluster),
            user: fields[self.user],
            partition: text(self.partition),
            name: fields[self.name],
            comment: Some(text(self.comment)).filter(|comment| !comment.is_empty()),
            nodes,
            cpus: cpus.max(nodes),
            seconds,
            completed: state.is_none_or(|state| state == "COMPLETED"),
        }))
    }
}

/// Calls `take` with each job that ran. Returns the lines that could not be read.
pub(crate) fn jobs(mut input: impl BufRead, mut take: impl FnMut(&Job<'_>)) -> io::Result<Unread> {
    let mut unread = Unread::default();
    let mut line = Vec::new();
    let header = match next(&mut input, &mut line)? {
        Some(true) => String::from_utf8_lossy(&line).into_owned(),
        Some(false) | None => String::new(),
    };
    let columns = Columns::of(header.trim_start_matches('\u{feff}'))
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let mut at = 1;
    while let Some(is_whole) = next(&mut input, &mut line)? {
        at += 1;
        if !is_whole {
            unread.note(at, "it is longer than 64 KiB");
            continue;
        }
        // A name of another encoding is a name all the same.
        let text = String::from_utf8_lossy(&line);
        if text.is_empty() {
            continue;
        }
        match columns.job(&text) {
            Ok(Some(job)) => take(&job),
            Ok(None) => {}
            Err(why) => unread.note(at, why),
        }
    }
    Ok(unread)
}

/// Reads the next line without its end. Returns false if it is too long, of which the rest is
/// skipped; `None` at the end.
fn next(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    if input.by_ref().take(MOST).read_until(b'\n', line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        line.pop();
        if line.ends_with(b"\r") {
            line.pop();
        }
        return Ok(Some(true));
    }
    if (line.len() as u64) < MOST {
        return Ok(Some(true));
    }
    input.skip_until(b'\n')?;
    Ok(Some(false))
}

/// A number as sacct prints it: 4096, or without `--noconvert` 4K or 1.5K.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let units = [('K', 1024.0), ('M', 1024.0 * 1024.0)];
    let (digits, unit) = units
        .iter()
        .find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, unit)))?;
    let value = digits.parse::<f64>().ok()? * unit;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is checked"
    )]
    (0.0..1e12).contains(&value).then_some(value.round() as u64)
}

/// Seconds, or `[DD-]HH:MM:SS`.
fn elapsed(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    clock_seconds(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Slurm 22.05 prints it by `--allocations --parsable2`, and a step that was asked for too.
    const PRINTED: &str = "\
JobID|JobName|User|Partition|State|NNodes|NCPUS|Elapsed
12|ocean|alice|batch|COMPLETED|2|16|00:01:40
12.batch|batch|||COMPLETED|1|8|00:01:40
13_7|ocean|alice|batch|CANCELLED by 1000|2|16|1-00:00:01
14|ocean|alice|batch|PENDING|2|16|00:00:00
15|big|bob|long|COMPLETED|2K|1.5K|00:00:10
";

    fn read(text: &str) -> (Vec<(String, u64, u64, bool)>, Unread) {
        let mut found = Vec::new();
        let unread = jobs(text.as_bytes(), |job| {
            found.push((job.name.to_owned(), job.nodes, job.seconds, job.completed));
        });
        (found, unread.unwrap())
    }

    #[test]
    fn jobs_that_ran_are_read_and_steps_are_none() {
        let (found, unread) = read(PRINTED);
        let job =
            |name: &str, nodes, seconds, completed| (name.to_owned(), nodes, seconds, completed);
        assert_eq!(
            found,
            [
                job("ocean", 2, 100, true),
                job("ocean", 2, 86_401, false),
                job("big", 2048, 10, true)
            ]
        );
        assert_eq!(unread, Unread::default());
    }

    #[test]
    fn the_last_column_may_have_separators_in_it() {
        let (found, unread) = read("User|NNodes|ElapsedRaw|JobName\na|1|5|x|y z|\n");
        assert_eq!(found[0].0, "x|y z|");
        assert_eq!(unread.lines, 0);
    }

    #[test]
    fn lines_that_are_no_jobs_are_counted_and_the_first_is_named() {
        let long = "x".repeat(100_000);
        let text = format!(
            "User|NNodes|ElapsedRaw|JobName\na|1|5|x\na|1\na|1|soon|x\na|1|5|{long}\na|-1|5|x\na|1|99999999999|x\na|1|6|last"
        );
        let (found, unread) = read(&text);
        assert_eq!(found.iter().map(|job| job.2).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(unread.lines, 5);
        assert_eq!(
            unread.first,
            Some((3, "it has fewer columns than the first line"))
        );
    }

    /// Attack (parsers): Each line has other long names, all of which would be kept.
    #[test]
    fn names_that_nothing_has_are_not_kept() {
        let long = "x".repeat(LONGEST_NAME + 1);
        for names in [
            format!("{long}|b|c"),
            format!("a|{long}|c"),
            format!("a|b|{long}"),
        ] {
            let text = format!("User|Partition|Cluster|NNodes|ElapsedRaw|JobName\n{names}|1|5|x\n");
            let (found, unread) = read(&text);
            assert_eq!((found.len(), unread.lines), (0, 1), "{unread:?}");
        }
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_the_command_that_prints_one() {
        for text in ["", "a,b,c\n1,2,3\n", "JobName|User\n"] {
            let error = jobs(text.as_bytes(), |_| {}).unwrap_err().to_string();
            assert!(error.contains("NNodes, ElapsedRaw"), "{error}");
            assert!(error.contains(COMMAND), "{error}");
        }
    }

    #[test]
    fn times_are_seconds_or_a_clock() {
        for (text, seconds) in [
            ("0", Some(0)),
            ("00:00:01", Some(1)),
            ("2-01:00:00", Some(176_400)),
            ("", None),
            ("1:00", None),
            ("-1", None),
            ("18446744073709551615-00:00:00", None),
        ] {
            assert_eq!(elapsed(text), seconds, "{text}");
        }
        for (text, value) in [
            ("4096", Some(4096)),
            ("1.5K", Some(1536)),
            ("K", None),
            ("nanK", None),
            ("-1K", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
    }

    /// Attack (parsers): A file of accounting that somebody prepared, for `prospect`.
    #[test]
    fn fuzz_prospect() {
        io_autotune_fuzzing::Target::new("prospect", &[PRINTED]).run(|input| {
            let mut seconds = 0.0;
            let read = jobs(input, |job| {
                assert!(job.nodes > 0 && job.cpus >= job.nodes && job.seconds > 0);
                seconds += job.node_seconds();
            });
            assert!(read.is_err() || f64::is_finite(seconds));
        });
    }
}
