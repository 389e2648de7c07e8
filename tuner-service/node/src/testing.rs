//! Helpers for the tests of several modules.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use io_autotune_protocol::Job;

use crate::job::NodeJob;
use crate::places::Places;

/// A node's directories below this one, which are not made.
pub(crate) fn places(parent: &Path) -> Places {
    Places {
        run_dir: parent.join("run"),
        spool_dir: parent.join("spool"),
    }
}

/// A job of one node, `n1`.
pub(crate) fn job() -> Job {
    Job {
        cluster: "c".into(),
        job_id: 7,
        restart_count: 0,
        sluid: None,
        uid: 1000,
        gid: 1000,
        user: None,
        node: "n1".into(),
        nodes: 1,
        partition: "main".into(),
        cpus_per_node: "8".into(),
    }
}

/// The job as its prolog or epilog sees it, on its first node.
pub(crate) fn node_job() -> NodeJob {
    NodeJob {
        job: job(),
        request: Default::default(),
        is_first_node: true,
        is_later_component: false,
        limit_seconds: None,
        started_at: None,
        epilog: None,
    }
}

/// A lease that another process holds on a file: until it is dropped, the file cannot be opened
/// without waiting.
pub(crate) struct Lease {
    holder: Child,
}

impl Lease {
    pub(crate) fn of(file: &Path) -> Self {
        let mut holder = Command::new("python3")
            .args(["-c", HOLDS_A_LEASE])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0];
        holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
        Self { holder }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        self.holder.wait().unwrap();
    }
}

/// A Python program that takes the lease, prints a line when it has it, and holds it until its
/// input ends.
const HOLDS_A_LEASE: &str = "import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.write(1, b'!')
sys.stdin.read()";
