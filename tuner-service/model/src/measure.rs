//! What a run's I/O came to: the measures that nodes collect of every step, without touching the
//! application. Reports hold positive numbers by name; a number that is zero is left out.

use std::collections::BTreeMap;

/// A measure that nodes collect. It adds up: over a node's steps, and over a run's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The steps that were measured, each on each of its nodes: with fewer than there were, nobody
    /// knows what the rest did.
    Steps,
    /// Bytes that programs asked read and its like for: of files, pipes and caches.
    AskedRead,
    /// Bytes that programs gave write and its like.
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
    /// Seconds in which at least one of a step's processes on a node stood still for I/O, where
    /// Slurm has made the step a control group of version 2.
    StalledSeconds,
    /// How often a process waited.
    Waits,
    /// How often a process had to give way to another.
    GivenWay,
    /// The files that carried the parametrization to the job, each on each of its nodes; none where
    /// something else carried a part of it, or where nobody can know what was read.
    DeliveredFiles,
    /// Those of them that somebody read.
    DeliveredFilesRead,
    /// The nodes that the job had to itself, and whose settings root may change for it.
    ChangeableNodes,
    /// The Lustre file systems that were mounted, each on each node.
    LustreMounts,
    /// Bytes that programs on its nodes read and wrote on Lustre while it ran.
    LustreMoved,
    /// The file systems in user space that were mounted, each on each node.
    FuseMounts,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Steps,
        Self::AskedRead,
        Self::AskedWritten,
        Self::ReadCalls,
        Self::WriteCalls,
        Self::StorageRead,
        Self::StorageWritten,
        Self::Cancelled,
        Self::UserSeconds,
        Self::SystemSeconds,
        Self::MajorFaults,
        Self::StalledSeconds,
        Self::Waits,
        Self::GivenWay,
        Self::DeliveredFiles,
        Self::DeliveredFilesRead,
        Self::ChangeableNodes,
        Self::LustreMounts,
        Self::LustreMoved,
        Self::FuseMounts,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steps => "measured_steps",
            Self::AskedRead => "asked_read_bytes",
            Self::AskedWritten => "asked_written_bytes",
            Self::ReadCalls => "read_calls",
            Self::WriteCalls => "write_calls",
            Self::StorageRead => "storage_read_bytes",
            Self::StorageWritten => "storage_written_bytes",
            Self::Cancelled => "cancelled_written_bytes",
            Self::UserSeconds => "user_seconds",
            Self::SystemSeconds => "system_seconds",
            Self::MajorFaults => "major_faults",
            Self::StalledSeconds => "io_stalled_seconds",
            Self::Waits => "voluntary_switches",
            Self::GivenWay => "involuntary_switches",
            Self::DeliveredFiles => "delivered_files",
            Self::DeliveredFilesRead => "delivered_files_read",
            Self::ChangeableNodes => "changeable_nodes",
            Self::LustreMounts => "lustre_mounts",
            Self::LustreMoved => "lustre_moved_bytes",
            Self::FuseMounts => "fuse_mounts",
        }
    }

    /// The measure of this name; `None`: nodes collect none.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its number; zero where there is none.
    pub fn of(self, measures: &BTreeMap<String, f64>) -> f64 {
        measures.get(self.name()).copied().unwrap_or_default()
    }
}

/// How long the runs of other studies and users took while a run ran, over the means of their
/// parametrizations. No node knows it: it is added with the verdict.
pub const OTHERS_RATIO: &str = "others_elapsed_ratio";

/// The largest number that a report may have: more than any node reads or writes.
pub const LARGEST_MEASURE: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MOST_MEASURES;

    #[test]
    fn names_are_different_and_a_history_has_room_for_all() {
        for (place, one) in Measure::ALL.into_iter().enumerate() {
            assert_eq!(Measure::named(one.name()), Some(one));
            assert!(!Measure::ALL[..place].contains(&one), "{one:?} is twice");
        }
        assert!(Measure::ALL.len() <= MOST_MEASURES);
        assert_eq!(Measure::named("bytes"), None);
    }
}
