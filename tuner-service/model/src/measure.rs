//! The measures of a run's I/O, which nodes collect of every step without touching the application.
//! Reports hold positive numbers by name; a number that is zero is left out.

use std::collections::BTreeMap;

use crate::word_enum;

/// A measure that nodes collect. It is added up over a node's steps, and over a run's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The steps that were measured, each counted on each of its nodes. If these are fewer than the
    /// job had, what the other steps did is unknown.
    Steps,
    /// Bytes that programs asked `read` and similar calls for, from files, pipes and caches.
    AskedRead,
    /// Bytes that programs gave `write` and similar calls.
    AskedWritten,
    /// Calls that read.
    ReadCalls,
    /// Calls that write.
    WriteCalls,
    /// Bytes that were fetched from storage.
    StorageRead,
    /// Bytes that were sent to storage, or will be.
    StorageWritten,
    /// Bytes of these that were deleted before they were sent.
    Cancelled,
    /// Processor time in programs, in seconds.
    UserSeconds,
    /// Processor time in the kernel, in seconds.
    SystemSeconds,
    /// Page faults that waited for storage.
    MajorFaults,
    /// Seconds in which at least one of a step's processes on a node was stalled by I/O. Known
    /// where Slurm has put the step into a control group of version 2.
    StalledSeconds,
    /// Voluntary context switches: how often a process waited.
    Waits,
    /// Involuntary context switches: how often a process had to yield to another.
    GivenWay,
    /// The files that carried the parametrization to the job, each counted on each of its nodes.
    /// Absent if a part of it was carried in another way, or if it cannot be known whether a file
    /// was read.
    DeliveredFiles,
    /// The number of these files that something in the job read.
    DeliveredFilesRead,
    /// The nodes that the job had to itself and whose settings root may change for it.
    ChangeableNodes,
    /// The mounted Lustre file systems, each counted on each node.
    LustreMounts,
    /// Bytes that programs on the run's nodes read and wrote on Lustre while it ran.
    LustreMoved,
    /// The mounted file systems in user space, each counted on each node.
    FuseMounts,
}

word_enum!(Measure, "measure",
    Steps => "measured_steps",
    AskedRead => "asked_read_bytes",
    AskedWritten => "asked_written_bytes",
    ReadCalls => "read_calls",
    WriteCalls => "write_calls",
    StorageRead => "storage_read_bytes",
    StorageWritten => "storage_written_bytes",
    Cancelled => "cancelled_written_bytes",
    UserSeconds => "user_seconds",
    SystemSeconds => "system_seconds",
    MajorFaults => "major_faults",
    StalledSeconds => "io_stalled_seconds",
    Waits => "voluntary_switches",
    GivenWay => "involuntary_switches",
    DeliveredFiles => "delivered_files",
    DeliveredFilesRead => "delivered_files_read",
    ChangeableNodes => "changeable_nodes",
    LustreMounts => "lustre_mounts",
    LustreMoved => "lustre_moved_bytes",
    FuseMounts => "fuse_mounts",
);

impl Measure {
    /// The measure of this name; `None` if nodes collect no such measure.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == name)
    }

    /// The value of this measure, zero if it is absent.
    pub fn of(self, measures: &BTreeMap<String, f64>) -> f64 {
        measures.get(self.as_str()).copied().unwrap_or_default()
    }
}

/// How long the runs of other studies and users took while a run ran, over the means of their
/// parametrizations. Nodes cannot know it, so it is added with the verdict.
pub const OTHERS_RATIO: &str = "others_elapsed_ratio";

/// The largest number that a report may have: more than any node reads or writes.
pub const LARGEST_MEASURE: f64 = 9_223_372_036_854_775_808.0;

/// The smallest number that a job may report of itself, and that an objective may have: its
/// reciprocal is no larger than any measure.
pub const SMALLEST_REPORTED: f64 = 1.0 / LARGEST_MEASURE;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MOST_MEASURES;

    #[test]
    fn names_are_different_and_a_history_has_room_for_all() {
        for (place, &one) in Measure::ALL.iter().enumerate() {
            assert_eq!(Measure::named(one.as_str()), Some(one));
            assert!(!Measure::ALL[..place].contains(&one), "{one:?} is twice");
        }
        assert!(Measure::ALL.len() <= MOST_MEASURES);
        assert_eq!(Measure::named("bytes"), None);
    }
}
