//! A cluster's Slurm as a test plays it: the service runs programs that print the test's texts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;

/// The programs that the service runs.
const PROGRAMS: [&str; 4] = ["squeue", "sacct", "scontrol", "sacctmgr"];

/// Prints the file beside slurm.conf that is named after the program and its last argument, or after
/// the program alone; fails as Slurm's commands do where neither is there.
const SAYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/says");

/// One cluster's Slurm. It is silent, that is, its commands fail, until it has something to say.
#[derive(Debug)]
pub(crate) struct PlayedSlurm {
    directory: PathBuf,
    queue: Mutex<BTreeMap<u32, Queued>>,
}

impl PlayedSlurm {
    /// A Slurm whose texts are below a directory, which must be there.
    pub(crate) fn new(directory: PathBuf) -> Self {
        std::fs::write(directory.join("slurm.conf"), "").unwrap();
        for program in PROGRAMS {
            std::os::unix::fs::symlink(SAYS, directory.join(program)).unwrap();
        }
        let slurm = Self {
            directory,
            queue: Mutex::default(),
        };
        slurm.say("squeue", "");
        slurm.say("scontrol-config", "PrologFlags = Alloc,Contain\n");
        slurm
    }

    /// Lines of service.toml's `[slurm]` that name the programs.
    pub(crate) fn configuration(&self) -> String {
        let mut lines = String::new();
        let programs = self.directory.display().to_string();
        writeln!(lines, "programs = {programs:?}").unwrap();
        let conf = self.directory.join("slurm.conf");
        writeln!(lines, "conf = {:?}", conf.display().to_string()).unwrap();
        lines
    }

    /// Sets the text that a program prints from now on. `what` is its name (`squeue`), or its name
    /// and its last argument (`scontrol-config`, `scontrol-nodes`).
    pub(crate) fn say(&self, what: &str, text: &str) {
        // By another name first: a program may be reading it.
        let draft = self.directory.join(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(&draft, self.text_of(what)).unwrap();
    }

    /// A program fails from now on, as when slurmctld does not answer.
    pub(crate) fn silence(&self, what: &str) {
        std::fs::remove_file(self.text_of(what)).unwrap();
    }

    fn text_of(&self, what: &str) -> PathBuf {
        self.directory.join(format!("{what}.txt"))
    }

    /// Lets squeue list a job as this.
    pub(crate) fn queue(&self, job: Queued) {
        let mut queue = self.lock();
        queue.insert(job.job_id, job);
        self.list(&queue);
    }

    /// Lets squeue list a job no longer, as after MinJobAge.
    pub(crate) fn forget(&self, job_id: u32) {
        let mut queue = self.lock();
        queue.remove(&job_id);
        self.list(&queue);
    }

    fn list(&self, queue: &BTreeMap<u32, Queued>) {
        let text: String = queue.values().map(Queued::line).collect();
        self.say("squeue", &text);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Queued>> {
        self.queue.lock().unwrap()
    }
}

/// A job as squeue lists it, in the columns that the service asks for.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) job_id: u32,
    pub(crate) state: String,
    pub(crate) restart_count: u32,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    /// Seconds without suspension; absent: as long as from start to end.
    pub(crate) used: Option<i64>,
    /// As squeue writes it.
    pub(crate) limit: String,
    pub(crate) uid: u32,
    pub(crate) node_list: String,
    pub(crate) account: String,
}

impl Queued {
    fn line(&self) -> String {
        let time = |at: Option<Timestamp>| {
            at.map_or("N/A".to_owned(), |at| {
                at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
            })
        };
        let span = self.ended_at.zip(self.started_at);
        let span = span.map_or(0, |(end, start)| end.as_second() - start.as_second());
        let used = self.used.unwrap_or(span);
        let used = format!("{}:{:02}", used / 60, used % 60);
        format!(
            "{:>20}{:>32}{:>12}{:>24}{:>24}{used:>24}{:>24}{:>12}{:>100}{:>66}\n",
            self.job_id,
            self.state,
            self.restart_count,
            time(self.started_at),
            time(self.ended_at),
            self.limit,
            self.uid,
            self.node_list,
            self.account,
        )
    }
}
