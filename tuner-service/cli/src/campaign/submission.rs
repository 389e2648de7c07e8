//! A submission of the user's own job: the words for sbatch, and what can be read from them and from
//! the script. Slurm is asked on the user's host, as by the user.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use io_autotune_model::is_end;

use super::kept::JobName;
use crate::service::CliError;
use crate::targets::quoted;

/// The bytes of a script that are read: sbatch's own options stand at its beginning.
const READ_OF_SCRIPT: u64 = 64 * 1024;
/// The bytes of sbatch's words that are told.
const READ_OF_WORDS: u64 = 16 * 1024;
const OPTION: &str = "--io-autotune";
/// The plugin reads this where neither the command line nor the script has the option.
const VARIABLE: &str = "IO_AUTOTUNE";

/// What sbatch is given, as far as it is understood here. sbatch alone knows which of its options
/// take a value, so the script is the first word that is a script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Submission {
    words: Vec<String>,
    cluster: Option<String>,
    /// The items that the job is to be tuned with, if it says so itself.
    spec: Option<String>,
    /// The script's file name.
    pub(crate) script: Option<String>,
    /// True if an option names the job.
    is_named: bool,
}

impl Submission {
    /// Reads the words. Returns an error if they ask for more than one run.
    pub(crate) fn of(words: &[String], cluster: Option<&str>) -> Result<Self, CliError> {
        let variable = std::env::var(VARIABLE).ok();
        Self::read(words, cluster, variable, beginning)
    }

    fn read(
        words: &[String],
        cluster: Option<&str>,
        variable: Option<String>,
        beginning: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CliError> {
        let mut scripts = words.iter().enumerate();
        let script = scripts.find_map(|(place, word)| {
            let text = beginning(word).filter(|text| text.starts_with("#!"));
            text.map(|text| (place, word, text))
        });
        let options = &words[..script.as_ref().map_or(words.len(), |(place, ..)| *place)];
        let lines = script.iter().flat_map(|(.., text)| text.lines());
        let lines = lines.take_while(|line| line.starts_with('#') || line.trim().is_empty());
        let in_script: Vec<String> = lines
            .filter_map(|line| line.strip_prefix("#SBATCH"))
            .flat_map(|line| line.split_whitespace().map(str::to_owned))
            .collect();
        let all = || options.iter().chain(&in_script).map(String::as_str);
        if all().any(|word| is(word, 'a', "--array")) {
            return Err(CliError::Usage(
                "an array is many runs at once: leave --array out, and say how many may run at once by --at-once".to_owned(),
            ));
        }
        let items = |word: &String| {
            Some(
                word.strip_prefix(OPTION)?
                    .trim_start_matches('=')
                    .to_owned(),
            )
        };
        let spec = options.iter().rev().chain(&in_script).find_map(items);
        let spec = spec.or(variable);
        let mut said = spec.iter().flat_map(|spec| spec.split(','));
        if said.any(|item| matches!(item, "mode=observe" | "mode=off" | "off")) {
            return Err(CliError::Usage(
                "the job asks not to be tuned (mode=observe, or mode=off): nothing would be learnt of what to change".to_owned(),
            ));
        }
        Ok(Self {
            words: words.to_vec(),
            cluster: cluster.map(str::to_owned),
            spec,
            script: script
                .and_then(|(_, word, _)| Some(Path::new(word).file_name()?.to_str()?.to_owned())),
            is_named: all()
                .any(|word| is(word, 'J', "--job-name") || word.starts_with("--comment")),
        })
    }

    /// The application that the job names itself; else the job's name, of which rules make one, where
    /// it can be known before the job is submitted.
    pub(crate) fn named(&self) -> Named<'_> {
        let items = self.spec.iter().flat_map(|spec| spec.split(','));
        let app = items
            .filter_map(|item| item.strip_prefix("app="))
            .next_back();
        match (app, &self.script) {
            (Some(app), _) => Named::Application(app),
            (None, Some(script)) if !self.is_named => Named::Job(script),
            (None, _) => Named::Unknown,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--parsable".to_owned()];
        arguments.extend(self.cluster.as_ref().map(|one| format!("--clusters={one}")));
        if self.spec.is_none() {
            arguments.push(OPTION.to_owned());
        }
        arguments.extend(self.words.iter().cloned());
        arguments
    }

    /// The command, for people.
    pub(crate) fn line(&self) -> String {
        let words = self.arguments().into_iter().skip(1);
        let words = words.map(|word| quoted(&word));
        format!("sbatch {}", words.collect::<Vec<_>>().join(" "))
    }

    /// Starts sbatch, which writes the job's number to this file. A ctrl-C at the terminal is not
    /// sbatch's, and the end of this process changes nothing for it.
    pub(crate) fn start(&self, output: File) -> Result<Running, CliError> {
        let words = tempfile::tempfile()?;
        let child = Command::new("sbatch")
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(words.try_clone()?)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                CliError::Campaign(format!(
                    "sbatch cannot be run: {error}; campaigns are begun where jobs are submitted, with sbatch in PATH"
                ))
            })?;
        Ok(Running { child, words })
    }
}

/// The name by which a job is known before it is submitted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Application(&'a str),
    Job(&'a str),
    Unknown,
}

/// An sbatch that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    words: File,
}

impl Running {
    /// The end of sbatch, with what it said; `None` while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<(ExitStatus, String)>, CliError> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let mut words = Vec::new();
        self.words.seek(SeekFrom::Start(0))?;
        (&mut self.words)
            .take(READ_OF_WORDS)
            .read_to_end(&mut words)?;
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        Ok(Some((status, words)))
    }
}

/// True if a word is this option of sbatch, alone or with its value.
fn is(word: &str, short: char, long: &str) -> bool {
    let rest = word.strip_prefix(long);
    let is_long = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
    is_long
        || word
            .strip_prefix('-')
            .is_some_and(|word| word.starts_with(short))
}

/// The beginning of a file, if it is one.
fn beginning(path: &str) -> Option<String> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(READ_OF_SCRIPT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Asks Slurm which of these jobs are over: `None` of one that it does not know any more, or its word.
/// Jobs that are not over are left out.
pub(crate) fn over(jobs: &[JobName]) -> Result<Vec<(u32, Option<String>)>, String> {
    let Some(first) = jobs.first() else {
        return Ok(Vec::new());
    };
    let ids: Vec<String> = jobs.iter().map(|job| job.job_id.to_string()).collect();
    let mut squeue = Command::new("squeue");
    squeue.args(["--noheader", "--states=all", "--format=%A|%T"]);
    squeue.arg(format!("--jobs={}", ids.join(",")));
    squeue.args(first.cluster.iter().map(|one| format!("--clusters={one}")));
    let done = squeue
        .output()
        .map_err(|error| format!("squeue cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() && !said.contains("Invalid job id") {
        return Err(format!("squeue says: {}", said.trim()));
    }
    Ok(over_in(&String::from_utf8_lossy(&done.stdout), jobs))
}

fn over_in(listed: &str, jobs: &[JobName]) -> Vec<(u32, Option<String>)> {
    let state_of = |job_id: u32| {
        let mut lines = listed.lines().filter_map(|line| line.split_once('|'));
        let (_, state) = lines.find(|(id, _)| id.trim().parse() == Ok(job_id))?;
        Some(state.trim().to_owned())
    };
    let states = jobs.iter().map(|job| (job.job_id, state_of(job.job_id)));
    let is_over = |state: &Option<String>| state.as_deref().is_none_or(is_end);
    states.filter(|(_, state)| is_over(state)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "#!/bin/bash\n#SBATCH -N 2\n\nsrun x\n#SBATCH --array=1-3\n";

    fn read(line: &str, script: &str, variable: Option<&str>) -> Result<Submission, CliError> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let file = |word: &str| (word == "./ocean.sh").then(|| script.to_owned());
        Submission::read(&words, None, variable.map(str::to_owned), file)
    }

    #[test]
    fn sbatch_gets_the_users_words_and_the_option_where_nothing_else_asks() {
        let line = "-N 2 --output x ./ocean.sh --array in.nc";
        let asked = |script, variable| read(line, script, variable).unwrap().line();
        assert_eq!(asked(SCRIPT, None), format!("sbatch --io-autotune {line}"));
        assert_eq!(asked(SCRIPT, Some("app=x")), format!("sbatch {line}"));
        let asks = SCRIPT.replace("-N 2", "--io-autotune=app=x");
        assert_eq!(asked(&asks, None), format!("sbatch {line}"));
        let own = "--io-autotune=romio ./ocean.sh";
        assert_eq!(
            read(own, SCRIPT, None).unwrap().line(),
            format!("sbatch {own}")
        );
        let beta = Submission {
            cluster: Some("beta".to_owned()),
            ..read("./ocean.sh", SCRIPT, None).unwrap()
        };
        assert_eq!(
            beta.line(),
            "sbatch --clusters=beta --io-autotune ./ocean.sh"
        );
        assert_eq!(beta.arguments()[0], "--parsable");
    }

    #[test]
    fn a_jobs_name_is_known_where_nothing_else_can_name_it() {
        let named =
            |line: &str, variable| format!("{:?}", read(line, SCRIPT, variable).unwrap().named());
        assert_eq!(named("./ocean.sh", None), r#"Job("ocean.sh")"#);
        assert_eq!(named("-Jx ./ocean.sh", None), "Unknown");
        assert_eq!(named("--comment=x ./ocean.sh", None), "Unknown");
        assert_eq!(named("./ocean.sh -J x", None), r#"Job("ocean.sh")"#);
        assert_eq!(named("--wrap=x", None), "Unknown");
        assert_eq!(
            named("--io-autotune=romio,app=ice ./ocean.sh", Some("app=no")),
            r#"Application("ice")"#
        );
        assert_eq!(named("--wrap=x", Some("app=ice")), r#"Application("ice")"#);
    }

    #[test]
    fn an_array_is_refused_wherever_it_is_asked_for() {
        let in_script = SCRIPT.replace("-N 2", "-a 1-3");
        for (line, script) in [
            ("--array=1-3 ./ocean.sh", SCRIPT),
            ("--array 1-3 ./ocean.sh", SCRIPT),
            ("-a1-3 ./ocean.sh", SCRIPT),
            ("./ocean.sh", in_script.as_str()),
        ] {
            let error = read(line, script, None).unwrap_err();
            assert!(error.to_string().contains("--at-once"), "{line}");
        }
        assert!(read("--account=x ./ocean.sh", SCRIPT, None).is_ok());
        let untuned = read("--io-autotune=mode=observe ./ocean.sh", SCRIPT, None).unwrap_err();
        assert!(untuned.to_string().contains("asks not to be tuned"));
    }

    #[test]
    fn a_job_is_over_when_slurm_says_so_or_knows_it_no_more() {
        let job = |job_id| JobName {
            job_id,
            cluster: None,
        };
        let listed = "CLUSTER: alpha\n1|RUNNING\n2|COMPLETED\n3|COMPLETING\n5|PENDING\n";
        let over = over_in(listed, &[1, 2, 3, 4, 5].map(job));
        assert_eq!(over, [(2, Some("COMPLETED".to_owned())), (4, None)]);
    }

    /// Attack (parsers): What stands in the place of a campaign's script is no file, or never ends.
    #[test]
    fn little_is_read_of_what_is_given_as_a_script() {
        assert_eq!(beginning("/dev/zero"), None);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.sh");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let read = beginning(path.to_str().unwrap()).unwrap();
        assert_eq!(read.len() as u64, READ_OF_SCRIPT);
    }
}
