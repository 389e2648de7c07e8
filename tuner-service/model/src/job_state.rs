//! The states of Slurm's jobs.

/// Returns true for a final state: from JOB_COMPLETE on in slurm.h's `job_states`, named by
/// `job_state_string`.
#[must_use]
pub fn is_end(state: &str) -> bool {
    matches!(
        state,
        "BOOT_FAIL"
            | "CANCELLED"
            | "COMPLETED"
            | "DEADLINE"
            | "FAILED"
            | "NODE_FAIL"
            | "OUT_OF_MEMORY"
            | "PREEMPTED"
            | "TIMEOUT"
    )
}
