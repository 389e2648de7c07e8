//! Shared by the tests of several modules.

use io_autotune_protocol::Job;

use crate::job::NodeJob;

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

/// What its prolog or epilog is told, on its first node.
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
