pub(crate) mod campaign;
pub(crate) mod optimize;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use io_autotune_model::NotCountedBecause;
use io_autotune_protocol::{OrderScope, ReportFileName, RunState};
use jiff::Timestamp;
use jiff::civil::Date;

use crate::format::Wanted;
use crate::people::uid_of;
use crate::targets::{self, Job, Named, Target, Thing};
use crate::times;

const STUDIES: &str = "An application, or a study: ocean, app:ocean, study:12. 12 alone is study 12, or the \
     application called 12 if there is no such study";

const ONE_STUDY: &str = "A study: study:12, or an application that has one study (ocean, app:ocean). 12 alone is \
     study 12, or the application called 12 if there is no such study";

const JOB: &str = "A job, never a study: 4711, job:4711, or as squeue and sacct write it: 4711_3 (a task of an array), \
     4711+0, 4711.batch";

/// The options of all commands that mean nothing to one that asks no service.
fn of_the_service() -> [clap::Arg; 2] {
    let config = clap::Arg::new("config").long("config");
    let config = config.value_parser(clap::value_parser!(PathBuf));
    let cluster = clap::Arg::new("cluster").short('M').long("cluster");
    [config, cluster.alias("clusters")].map(|one| one.hide(true))
}

/// What io-autotune has learnt about your applications, and how to steer it.
#[derive(Debug, Parser)]
#[command(name = "io-autotune", version)]
pub(crate) struct Arguments {
    /// How the service is reached.
    #[arg(
        long,
        global = true,
        env = "IO_AUTOTUNE_CONFIG",
        hide_env_values = true,
        default_value = "/etc/io-autotune/client.toml"
    )]
    pub(crate) config: PathBuf,
    /// Only this cluster's studies and runs, where the service has several.
    #[arg(
        short = 'M',
        long,
        visible_alias = "clusters",
        global = true,
        value_name = "NAME"
    )]
    pub(crate) cluster: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

/// For lists whose columns are chosen, as sacct has it.
#[derive(Debug, Args)]
pub(crate) struct ColumnsOutput {
    /// Names and values with | between them, nothing cut.
    #[arg(short = 'P', long, conflicts_with_all = ["json", "csv"])]
    pub(crate) parsable2: bool,
    /// No header.
    #[arg(short, long)]
    pub(crate) noheader: bool,
    /// List the columns, and do nothing else.
    #[arg(short = 'e', long)]
    pub(crate) helpformat: bool,
    #[command(flatten)]
    pub(crate) list: ListOutput,
}

/// For lists.
#[derive(Debug, Args)]
pub(crate) struct ListOutput {
    /// Print JSON, for programs.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print comma-separated values with a header: every column, nothing cut.
    #[arg(long)]
    pub(crate) csv: bool,
}

/// Which studies are asked for, or those of which the runs are.
#[derive(Debug, Args)]
pub(crate) struct StudiesAsked {
    #[arg(value_name = "STUDY", help = STUDIES)]
    pub(crate) target: Option<Target>,
    /// Only this study's: 12.
    #[arg(long, value_parser = targets::study)]
    pub(crate) study: Option<i64>,
    /// Only this accelerator's.
    #[arg(long)]
    pub(crate) accelerator: Option<String>,
    /// Only this user's, by name or uid.
    #[arg(short, long, value_parser = uid_of)]
    pub(crate) user: Option<u32>,
    /// Only those of studies whose latest run was charged to this account.
    #[arg(short = 'A', long)]
    pub(crate) account: Option<String>,
}

/// A selection of studies, or of the studies that runs belong to. `None`: any.
#[derive(Clone, Debug, Default)]
pub(crate) struct StudiesOf {
    pub(crate) application: Option<String>,
    pub(crate) study: Option<i64>,
    pub(crate) accelerator: Option<String>,
    pub(crate) user: Option<u32>,
    pub(crate) account: Option<String>,
}

impl StudiesOf {
    /// The studies that a word names.
    pub(crate) fn named(named: &Named) -> Self {
        let (study, application) = match named {
            Named::Study(study) => (Some(*study), None),
            Named::Application(name) => (None, Some(name.clone())),
        };
        Self {
            study,
            application,
            ..Self::default()
        }
    }
}

/// The studies of a change of many, those that begin later too. Together they narrow it.
#[derive(Debug, Args)]
pub(crate) struct ScopeOf {
    /// All studies of this user, by name or uid.
    #[arg(long, value_parser = uid_of)]
    pub(crate) user: Option<u32>,
    /// All studies of this application.
    #[arg(long, value_parser = targets::application)]
    pub(crate) application: Option<String>,
    /// All studies of this accelerator.
    #[arg(long)]
    pub(crate) accelerator: Option<String>,
    /// All studies that you may change.
    #[arg(long, conflicts_with_all = ["user", "application", "accelerator"])]
    pub(crate) all: bool,
}

impl ScopeOf {
    /// The scope; `None`: none is given.
    pub(crate) fn of(&self) -> Option<OrderScope> {
        let is_empty =
            self.user.is_none() && self.application.is_none() && self.accelerator.is_none();
        if is_empty && !self.all {
            return None;
        }
        Some(OrderScope {
            study: None,
            uid: self.user,
            application: self.application.clone(),
            accelerator: self.accelerator.clone(),
            cluster: None,
        })
    }
}

/// The reason of a change, for the audit. Who may leave it out is the service's to say.
#[derive(Debug, Args)]
pub(crate) struct Reason {
    /// Why, for the audit. Needed where a change is about more than your own studies.
    #[arg(long)]
    why: Option<String>,
}

/// Why and how studies are changed.
#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    reason: Reason,
    /// Change nothing; list what would change.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change many studies, or order what no study is of yet, without a question.
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Reason {
    /// The reason in the form that is sent: empty if none is given.
    pub(crate) fn sent(&self) -> String {
        self.why.clone().unwrap_or_default()
    }

    /// Returns true if a reason is given. A change whose author had to give one needs one to be
    /// taken back, too.
    pub(crate) fn is_given(&self) -> bool {
        self.why.is_some()
    }
}

impl Change {
    /// The reason in the form that is sent. A dry run needs none.
    pub(crate) fn why(&self) -> String {
        match self.dry_run && !self.reason.is_given() {
            true => "a dry run".to_owned(),
            false => self.reason.sent(),
        }
    }

    pub(crate) fn has_reason(&self) -> bool {
        self.reason.is_given()
    }
}

/// An order, or its end.
#[derive(Debug, Args)]
pub(crate) struct Order {
    #[arg(value_name = "STUDY", help = STUDIES)]
    pub(crate) target: Option<Target>,
    #[command(flatten)]
    pub(crate) how: Ordering,
}

/// The scope and the end of an order.
#[derive(Debug, Args)]
pub(crate) struct Ordering {
    /// End what was ordered: tune as before.
    #[arg(long, conflicts_with = "until")]
    pub(crate) end: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeOf,
    /// Until then: 2026-12-24, 18:00, tomorrow, now+7days.
    #[arg(long, value_name = "TIME", value_parser = times::ahead)]
    pub(crate) until: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// How my applications do: gain, what comes next, what it has cost
    Status {
        #[command(flatten)]
        wanted: StudiesAsked,
        /// Stay, and draw it anew when something has changed. Ctrl-C ends it.
        #[arg(long, conflicts_with_all = ["json", "csv"])]
        watch: bool,
        #[command(flatten)]
        output: ListOutput,
    },
    /// What a job ran with, if it helped and counts; what comes next
    Explain {
        #[arg(value_name = "JOB", help = JOB)]
        job: Job,
        /// Add the search's own reasons, what was measured, and what the nodes reported.
        #[arg(long, conflicts_with = "replay")]
        details: bool,
        /// Have the suggestion computed again from its stored inputs, and compare.
        #[arg(long)]
        replay: bool,
        #[command(flatten)]
        output: Output,
    },
    /// What tuning has gained the site; --mine: a page of my studies
    Report(Box<Report>),
    /// Fix the values of an application's jobs (--end: tune again)
    ///
    /// Every later run of the study, or of all studies of a scope, gets the same values.
    Pin {
        /// A study or an application (ocean, app:ocean, study:12) unless a scope says it; then best (if
        /// left out), default, or name=value: parameters left out keep the default. The best of a scope
        /// is each study's best known, as by freeze. 12 alone is study 12, or the application called 12
        /// if there is no such study.
        #[arg(value_name = "STUDY|best|default|NAME=VALUE")]
        words: Vec<String>,
        #[command(flatten)]
        how: Ordering,
    },
    /// Let an application run untuned, but measured (--end: tune again)
    Off(Order),
    /// Start an application's tuning afresh; its history is kept
    ///
    /// Its pin is removed. `undo` goes on with the history, and the gain is proved anew.
    Reset {
        #[arg(value_name = "STUDY", help = ONE_STUDY)]
        target: Target,
        #[command(flatten)]
        change: Change,
    },
    /// Take a change back, by its line of the audit
    ///
    /// A pin, a reset, a warm start, another objective, an acceptance, a freeze or an off, or what
    /// ended one, is undone while nothing later has changed it.
    Undo {
        /// The line's number in `io-autotune audit`.
        line: i64,
        #[command(flatten)]
        reason: Reason,
        #[command(flatten)]
        output: Output,
    },
    /// Runs, one a line, as sacct lists jobs: times, values, verdicts
    History(Box<History>),
    /// A study: its space, its best, how it converged, what it tested
    Show {
        #[arg(value_name = "STUDY", help = ONE_STUDY)]
        target: Target,
        #[command(flatten)]
        output: ListOutput,
    },
    /// Two jobs side by side, or two studies
    Compare {
        /// A job (4711, 4711_3, job:4711), or a study (ocean, app:ocean, study:12). What could be both
        /// is refused.
        a: Thing,
        /// Another.
        b: Thing,
        /// Numbers are studies'.
        #[arg(long)]
        studies: bool,
        #[command(flatten)]
        output: ListOutput,
    },
    /// Try out nothing new: run the best known (--end: explore again)
    Freeze(Order),
    /// Tune for another number than time, such as a rate jobs report
    ///
    /// A change holds from now on, in a new epoch.
    Objective {
        /// A study (study:12, or an application that has one study), and elapsed, marked or a NAME; in a
        /// job NAME=VALUE, a positive number (2^-63 to 2^63).
        #[arg(value_name = "STUDY OBJECTIVE|NAME=VALUE", required = true)]
        words: Vec<String>,
        /// More is better.
        #[arg(long)]
        maximise: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Tune on, although a study's runs look like different work
    ///
    /// Such a study is only observed, until somebody says that its runs are one application's.
    Accept {
        #[arg(value_name = "STUDY", help = ONE_STUDY)]
        target: Target,
        #[command(flatten)]
        change: Change,
    },
    /// Who changed what, when and why; `audit orders`: what is in force
    Audit(Box<Audit>),
    /// Write histories to a file, read them in, or begin with others'
    #[command(subcommand)]
    Transfer(Transfer),
    /// What can be tuned here, and whether a catalogue file is right
    #[command(subcommand)]
    Accelerators(Accelerators),
    /// Submit a job again and again, until its tuning has an answer
    ///
    /// One job after the other gets its study's next settings, within the node-hours that you give
    /// them. It ends when a gain is claimed, or nothing is left to win. Ctrl-C ends the watching; the
    /// same command goes on.
    Campaign(Box<campaign::Campaign>),
    /// In a job script: an I/O phase begins or ends
    ///
    /// It is written to a local file; nothing waits.
    Mark {
        /// begin or end.
        #[arg(value_name = "begin|end")]
        what: String,
    },
    /// Tune a command outside Slurm, or anything by lines of JSON
    #[command(args = of_the_service())]
    Optimize(Box<optimize::Optimize>),
    /// Is everything installed and well, as seen from this host?
    ///
    /// Admins are told of the service's inside too.
    Doctor {
        /// Where this node keeps reports that the service could not take.
        #[arg(long, default_value = "/var/spool/io-autotune")]
        spool_dir: PathBuf,
        /// Where the job-completion script writes, on slurmctld's host.
        #[arg(long, default_value = "/var/spool/io-autotune-jobcomp")]
        jobcomp_dir: PathBuf,
        /// Where the collector keeps how far it has got.
        #[arg(long, default_value = "/var/lib/io-autotune-collector")]
        collector_dir: PathBuf,
        /// Submit a job of one second that is only observed, and follow it to its verdict.
        #[arg(long)]
        job: bool,
        /// Seconds that the job may take until its verdict.
        #[arg(long, default_value_t = 120, requires = "job", value_parser = clap::value_parser!(u64).range(1..=86_400))]
        within: u64,
        #[command(flatten)]
        output: Output,
    },
    /// Which application is a job's name, by these rules or by others?
    #[command(subcommand)]
    Rules(Rules),
    /// How much of a site's time could be tuned, by what sacct prints
    ///
    /// It needs no service, and nothing of io-autotune's but this command.
    #[command(args = of_the_service())]
    Prospect {
        /// What sacct --parsable2 printed, with the names of its columns; -: standard input.
        file: PathBuf,
        /// Rules that make applications of jobs' names, instead of those that are shipped.
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
        /// List so many studies, the largest first.
        #[arg(long, default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        output: ListOutput,
    },
    /// Remove old runs; write manual pages and shell completions
    #[command(subcommand)]
    Admin(Admin),
}

/// Which changes are listed, or what is in force.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Audit {
    /// Only this study's: 12.
    #[arg(long, value_parser = targets::study)]
    pub(crate) study: Option<i64>,
    /// Only what this user did, by name or uid.
    #[arg(long, value_parser = uid_of)]
    pub(crate) by: Option<u32>,
    /// The newest so many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// The columns, with widths if wanted: Line,Action,Why%-40. --helpformat lists them.
    #[arg(short = 'o', long, value_delimiter = ',', value_parser = Wanted::of_line)]
    pub(crate) format: Option<Vec<Wanted>>,
    #[command(flatten)]
    pub(crate) output: ColumnsOutput,
    #[command(subcommand)]
    pub(crate) of: Option<AuditOf>,
}

/// The parts of the audit besides its lines.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditOf {
    /// What is ordered for more than one study, by whom, why, and until when
    Orders {
        #[command(flatten)]
        output: ListOutput,
    },
}

/// Ways of taking what was learnt from one place to another.
#[derive(Debug, Subcommand)]
pub(crate) enum Transfer {
    /// Write what is known of studies as text, for import into another service
    Export {
        #[arg(value_name = "STUDY", help = STUDIES, required_unless_present = "all")]
        target: Option<Target>,
        /// All studies that you may see.
        #[arg(long, conflicts_with = "target")]
        all: bool,
        /// Where it is written; standard output, if left out.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Take in studies that were exported, all of a file or nothing. For admins
    Import {
        /// The file.
        file: PathBuf,
        /// Leave out the studies that exist.
        #[arg(long)]
        skip_existing: bool,
        #[command(flatten)]
        change: Change,
    },
    /// Let a study begin, in a new epoch, with what another of its accelerator has learnt
    WarmStart {
        #[arg(value_name = "STUDY", help = ONE_STUDY)]
        target: Target,
        /// The study that has learnt, named alike.
        #[arg(long, value_name = "OTHER")]
        from: Target,
        #[command(flatten)]
        change: Change,
    },
}

/// Tasks of an admin now and then, and of who installs the command.
#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Remove old runs that no study needs; what studies know stays
    Retention {
        /// Runs of which nothing was heard for so many days; [retention] days of service.toml, if left out.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(30..=36_500))]
        older_than: Option<u32>,
        #[command(flatten)]
        change: Change,
    },
    /// Print a shell's completion of this command
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory.
        directory: PathBuf,
    },
}

/// Which runs, and how they are listed.
#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) of: StudiesAsked,
    /// Only runs in this state.
    #[arg(short, long, value_enum)]
    pub(crate) state: Option<State>,
    /// Only runs that do not count, for this reason.
    #[arg(
        long,
        value_name = "WHY",
        conflicts_with = "state",
        value_parser = PossibleValuesParser::new(NotCountedBecause::ALL.iter().map(|why| why.as_str()))
            .try_map(|why| why.parse::<NotCountedBecause>())
    )]
    pub(crate) not_counted: Option<NotCountedBecause>,
    /// Only those that started then or later, as sacct takes it: 2026-11-24T08:30, yesterday, now-2days.
    #[arg(short = 'S', long, value_name = "TIME", value_parser = times::past)]
    pub(crate) starttime: Option<Timestamp>,
    /// Only those that started before then.
    #[arg(short = 'E', long, value_name = "TIME", value_parser = times::past)]
    pub(crate) endtime: Option<Timestamp>,
    /// The newest so many, 10,000 at the most.
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: u32,
    /// The columns, with widths if wanted: JobID,Elapsed%10,Change%-40. --helpformat lists them.
    #[arg(short = 'o', long, value_delimiter = ',', value_parser = Wanted::of_run)]
    pub(crate) format: Option<Vec<Wanted>>,
    #[command(flatten)]
    pub(crate) output: ColumnsOutput,
}

/// A run's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Started, or waiting for its verdict.
    InFlight,
    /// It counts.
    Counted,
    /// Its time limit ended it.
    Censored,
    /// It does not count.
    NotCounted,
}

impl From<State> for RunState {
    fn from(state: State) -> Self {
        match state {
            State::InFlight => Self::InFlight,
            State::Counted => Self::Counted,
            State::Censored => Self::Censored,
            State::NotCounted => Self::NotCounted,
        }
    }
}

/// Which report, and what of it.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("fetched").args(["latest", "mine"])))]
pub(crate) struct Report {
    /// Its first day, by this host's clock: 2026-11-24, now-7days; yesterday, if left out.
    #[arg(long, value_name = "DAY", value_parser = times::day, conflicts_with = "fetched")]
    pub(crate) first: Option<Date>,
    /// Its last day.
    #[arg(long, value_name = "DAY", value_parser = times::day, conflicts_with = "fetched")]
    pub(crate) last: Option<Date>,
    /// How it is made.
    #[arg(
        long,
        default_value = "/etc/io-autotune/report.toml",
        conflicts_with = "fetched"
    )]
    pub(crate) report_config: PathBuf,
    /// What was made last, from the service.
    #[arg(long)]
    pub(crate) latest: bool,
    /// The page (HTML) of your own studies that the latest report has; in a browser, if there is one.
    #[arg(long)]
    pub(crate) mine: bool,
    /// Which file of it: index.html, report.json, studies.csv, groups.csv or mail.txt.
    #[arg(
        long,
        default_value = "mail.txt",
        requires = "latest",
        conflicts_with = "mine"
    )]
    pub(crate) file: ReportFileName,
    /// Where it is written. If left out: standard output, or a browser for --mine on a terminal.
    #[arg(long, value_name = "FILE", requires = "fetched")]
    pub(crate) output: Option<PathBuf>,
}

/// Commands about accelerators.
#[derive(Debug, Subcommand)]
pub(crate) enum Accelerators {
    /// The accelerators of this site.
    List {
        #[command(flatten)]
        output: Output,
    },
    /// One accelerator, or several that are tuned together: parameters, how they reach a job, when they take effect.
    Show {
        /// Its name, or the names of several with + between them.
        name: String,
        #[command(flatten)]
        output: Output,
    },
    /// What the studies of an accelerator have in common, and what an admin made the site's default.
    ///
    /// With --apply it becomes what studies that have explored nothing try first, in one step. Runs of
    /// the default, for comparison, keep the accelerator's own.
    SiteDefault {
        /// The accelerator's name, or the names of several with + between them.
        name: String,
        /// Make it the site's default: what the studies have in common, or these values.
        #[arg(long, num_args = 0.., value_name = "NAME=VALUE", conflicts_with = "end")]
        apply: Option<Vec<String>>,
        /// End it: studies begin as before.
        #[arg(long, conflicts_with = "until")]
        end: bool,
        /// Until then: 2026-12-24, 18:00, tomorrow, now+7days.
        #[arg(long, value_name = "TIME", value_parser = times::ahead, requires = "apply")]
        until: Option<Timestamp>,
        #[command(flatten)]
        change: Change,
    },
    /// Read a catalogue file, and say everything that is wrong in it, with its line. Needs no service.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Commands about the rules for applications.
#[derive(Debug, Subcommand)]
pub(crate) enum Rules {
    /// What job names become, and by which rule.
    Check {
        /// Names of jobs.
        #[arg(required = true, value_name = "NAME")]
        job_names: Vec<String>,
        /// The jobs' comment, as by sbatch --comment.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        /// These rules instead of the site's. Needs no service.
        #[arg(long)]
        file: Option<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
    /// What a file of rules would make of the runs of the last 30 days: yours, an admin's everyone's.
    Try {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_reason_may_be_left_out_of_every_change_and_what_is_tried_has_one() {
        for line in [
            "pin ocean",
            "pin ocean --end",
            "off ocean",
            "off ocean --end",
            "freeze ocean",
            "freeze ocean --end",
            "reset ocean",
            "accept ocean",
            "objective ocean marked",
            "transfer warm-start climate --from ocean",
            "transfer import studies.jsonl",
            "admin retention",
            "undo 17",
        ] {
            let words = ["io-autotune"].into_iter().chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
        let reset = |words: &str| match Arguments::try_parse_from(words.split(' ')).unwrap().command
        {
            Command::Reset { change, .. } => change.why(),
            other => panic!("{other:?}"),
        };
        assert_eq!(reset("io-autotune reset ocean"), "");
        assert_eq!(reset("io-autotune reset ocean --dry-run"), "a dry run");
        assert_eq!(reset("io-autotune reset ocean --dry-run --why x"), "x");
    }

    /// The tasks were written down before the help that is to lead to them.
    #[test]
    fn each_of_fifteen_tasks_has_a_command() {
        let tasks = include_str!("../../../tests/command/fifteen_tasks.tsv");
        let mut read = 0;
        for task in tasks.lines().skip(1) {
            read += 1;
            for line in task.split('\t').skip(1).filter(|line| !line.is_empty()) {
                let words = ["io-autotune"].into_iter().chain(line.split(' '));
                assert!(Arguments::try_parse_from(words).is_ok(), "{task}");
            }
        }
        assert_eq!(read, 15);
    }
}
