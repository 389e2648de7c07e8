//! The guard that ends the runs if this process is killed, when nothing of its own can: a shell that is
//! told which groups of processes run. The end of its input is the end of this process, however that came; it
//! kills the groups that are left then. A number that it is told of stays the group's while this
//! process lives, as nobody else waits for the processes, so that it kills nobody else's.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::unistd::Pid;

/// A line is all groups that run.
const SCRIPT: &str = r#"
while read -r line; do groups=$line; done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

/// Ends what runs if this process is killed.
#[derive(Debug)]
pub(super) struct Guard(Option<Child>);

impl Guard {
    /// Without a shell there is none.
    pub(super) fn begun() -> Self {
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", SCRIPT])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends this group, such as Ctrl-C, does not end the guard before its time.
            .process_group(0);
        Guard(shell.spawn().ok())
    }

    /// These groups run, and no others do.
    pub(super) fn set(&mut self, groups: impl Iterator<Item = Pid>) {
        let Some(stdin) = self.0.as_mut().and_then(|shell| shell.stdin.as_mut()) else {
            return;
        };
        let groups: Vec<String> = groups.map(|group| group.to_string()).collect();
        // In one piece, which a pipe takes whole or not at all. Without a guard the runs go on.
        let _ = stdin.write_all((groups.join(" ") + "\n").as_bytes());
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut shell) = self.0.take() {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
    }
}
