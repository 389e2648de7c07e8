//! Becomes a site's program inside its control group, so that everything it starts is in that group
//! from the first instruction on. The helper runs itself for this, because a process has to enter a
//! group by itself, before it changes to the user.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::cgroup;

#[derive(Args)]
pub(crate) struct Within {
    /// The group's directory.
    #[arg(long)]
    group: PathBuf,
    /// The user and group to run as, instead of root.
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    argv: Vec<OsString>,
}

impl Within {
    /// Becomes the program. Returns only on an error.
    pub(crate) fn run(&self) -> io::Error {
        if let Err(error) = cgroup::enter(&self.group) {
            return error;
        }
        let Some((program, arguments)) = self.argv.split_first() else {
            return io::ErrorKind::InvalidInput.into();
        };
        let mut command = Command::new(program);
        as_user(command.args(arguments), self.uid.zip(self.gid)).exec()
    }
}

/// The command that runs a program within a group.
pub(crate) fn command(group: &Path, owner: Option<(u32, u32)>, argv: &[String]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("within").arg("--group").arg(group);
    if let Some((uid, gid)) = owner {
        command.arg("--uid").arg(uid.to_string());
        command.arg("--gid").arg(gid.to_string());
    }
    command.arg("--").args(argv);
    command
}

/// Sets the user of a command. Setting a uid makes the standard library drop root's supplementary
/// groups.
pub(crate) fn as_user(command: &mut Command, owner: Option<(u32, u32)>) -> &mut Command {
    match owner {
        Some((uid, gid)) => command.gid(gid).uid(uid),
        None => command,
    }
}
