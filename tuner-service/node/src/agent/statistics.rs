//! Statistics of an I/O path by the kernel's counters, in files that are opened once and read every
//! period.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use io_autotune_online::Observation;
use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

/// The most bytes of a file: more than any of them has.
const TEXT_MOST: usize = 64 * 1024;
/// The bytes of a sector in statistics, whatever the device's own is
/// (Documentation/block/stat.rst).
const SECTOR: f64 = 512.0;
const KIB: f64 = 1024.0;

/// A file with statistics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    /// /sys/block/DEVICE/stat: requests and sectors.
    BlockStat,
    /// /proc/vmstat: pages that became dirty.
    Vmstat,
    /// /proc/meminfo: data waiting in the page cache.
    Meminfo,
    /// Lustre's osc.*.stats: data sent to a target and received from it.
    Osc,
    /// osc.*.cur_dirty_bytes.
    OscDirty,
    /// llite.*.stats: data that programs wrote and read.
    Llite,
    /// /sys/kernel/debug/bdi/DEVICE/stats: data written back.
    Bdi,
    /// Lines of a name and a number: `moved_bytes` and, if the file has them, `requests`,
    /// `cached_bytes`, `dirty_bytes`.
    Named,
}

/// Sums since the path was made, except that `dirty` is the present value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    moved: f64,
    requests: f64,
    cached: f64,
    dirty: f64,
}

pub(super) struct Sources {
    files: Vec<(File, Format)>,
    buffer: Vec<u8>,
    page: f64,
}

impl Sources {
    pub(super) fn open(sources: &[Source]) -> io::Result<Self> {
        let open = |source: &Source| match File::open(&source.path) {
            Ok(file) => Ok((file, source.format)),
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!("{}: {error}", source.path.display()),
            )),
        };
        let page = sysconf(SysconfVar::PAGE_SIZE)?.unwrap_or(4096);
        Ok(Self {
            files: sources.iter().map(open).collect::<io::Result<_>>()?,
            buffer: vec![0; TEXT_MOST],
            page: page as f64,
        })
    }

    /// Reads all statistics. `None` if any is missing.
    pub(super) fn read(&mut self) -> Option<Counters> {
        let mut counters = Counters::default();
        for (file, format) in &self.files {
            let text = whole(file, &mut self.buffer)?;
            add(*format, text, self.page, &mut counters)?;
        }
        Some(counters)
    }
}

/// Reads a whole text, because the kernel gives a long text in parts.
fn whole<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
    let mut length = 0;
    loop {
        let room = buffer.get_mut(length..).filter(|room| !room.is_empty())?;
        match file.read_at(room, length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    str::from_utf8(buffer.get(..length)?).ok()
}

impl Counters {
    /// The activity since `before`, which was read that many seconds ago. After a reset the
    /// counters are lower than before: then a number is negative, and no policy acts on it.
    pub(super) fn since(&self, before: &Self, seconds: f64) -> Observation {
        Observation {
            dirty: self.dirty,
            cached: (self.cached - before.cached) / seconds,
            requests: (self.requests - before.requests) / seconds,
            bandwidth: (self.moved - before.moved) / seconds,
        }
    }
}

/// The bytes that programs wrote and read, from the text of llite.*.stats; `None` if it has another
/// form.
pub(crate) fn given_and_taken(llite: &str) -> Option<f64> {
    let mut counters = Counters::default();
    add(Format::Llite, llite, 0.0, &mut counters)?;
    Some(counters.cached)
}

/// Adds the numbers of a text; `None` if it lacks one that it should have.
fn add(format: Format, text: &str, page: f64, counters: &mut Counters) -> Option<()> {
    match format {
        Format::BlockStat => {
            let mut fields = text.split_ascii_whitespace().map(str::parse::<f64>);
            let mut field = |skipped: usize| fields.nth(skipped)?.ok();
            let (reads, read) = (field(0)?, field(1)? * SECTOR);
            let (writes, written) = (field(1)?, field(1)? * SECTOR);
            counters.requests += reads + writes;
            counters.moved += read + written;
            counters.cached += read;
        }
        Format::Vmstat => counters.cached += named(text, "nr_dirtied")? * page,
        Format::Meminfo => {
            counters.dirty += (named(text, "Dirty:")? + named(text, "Writeback:")?) * KIB;
        }
        // A kind of request has no line before its first one, but the time is always there.
        Format::Osc => {
            named(text, "snapshot_time")?;
            counters.moved += summed(text, "read_bytes") + summed(text, "write_bytes");
            let calls = ["ost_read", "ost_write"];
            counters.requests += calls
                .iter()
                .filter_map(|name| named(text, name))
                .sum::<f64>();
        }
        Format::OscDirty => counters.dirty += text.trim().parse::<f64>().ok()?,
        Format::Llite => {
            named(text, "snapshot_time")?;
            counters.cached += summed(text, "read_bytes") + summed(text, "write_bytes");
        }
        Format::Bdi => {
            counters.moved += named(text, "BdiWritten:")? * KIB;
            counters.cached += named(text, "BdiDirtied:")? * KIB;
            let waits = named(text, "BdiWriteback:")? + named(text, "BdiReclaimable:")?;
            counters.dirty += waits * KIB;
        }
        Format::Named => {
            let moved = named(text, "moved_bytes")?;
            counters.moved += moved;
            counters.cached += named(text, "cached_bytes").unwrap_or(moved);
            counters.requests += named(text, "requests").unwrap_or(0.0);
            counters.dirty += named(text, "dirty_bytes").unwrap_or(0.0);
        }
    }
    Some(())
}

/// The number after a name at the beginning of a line.
fn named(text: &str, name: &str) -> Option<f64> {
    words(text, name)?.next()?.parse().ok()
}

/// The sum in Lustre's line `NAME COUNT samples [bytes] MIN MAX SUM`, which has the sum of squares
/// in addition from 2.14 on.
fn summed(text: &str, name: &str) -> f64 {
    let sum = words(text, name).and_then(|mut words| words.nth(5)?.parse().ok());
    sum.unwrap_or(0.0)
}

fn words<'a>(text: &'a str, name: &str) -> Option<std::str::SplitAsciiWhitespace<'a>> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == name).then_some(words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: Format, text: &str) -> Option<Counters> {
        let mut counters = Counters::default();
        add(format, text, 4096.0, &mut counters).map(|()| counters)
    }

    #[test]
    fn a_block_device_s_numbers_are_those_of_reads_and_writes() {
        let text = "    1012      120    81920     300      50      12     4096     200        0      400      500        0        0        0        0       10        5\n";
        let expected = Counters {
            moved: (81920.0 + 4096.0) * 512.0,
            requests: 1062.0,
            cached: 81920.0 * 512.0,
            dirty: 0.0,
        };
        assert_eq!(read(Format::BlockStat, text), Some(expected));
        // Linux 2.6.33 to 5.4 have fewer fields.
        let short = text.split_ascii_whitespace().take(11);
        let short = short.collect::<Vec<_>>().join(" ");
        assert_eq!(read(Format::BlockStat, &short), Some(expected));
        assert_eq!(read(Format::BlockStat, "1 2 3"), None);
    }

    #[test]
    fn the_page_cache_s_numbers_are_found_by_name() {
        let vmstat = "nr_dirty 12\nnr_dirtied 1000\nnr_written 900\n";
        assert_eq!(read(Format::Vmstat, vmstat).unwrap().cached, 4_096_000.0);
        let meminfo = "MemTotal: 100 kB\nDirty:             12 kB\nWriteback:          3 kB\n\
                       WritebackTmp: 9 kB\n";
        assert_eq!(read(Format::Meminfo, meminfo).unwrap().dirty, 15.0 * 1024.0);
        assert_eq!(read(Format::Meminfo, "Dirty: 12 kB\n"), None);
    }

    /// The lines as 2.12, 2.15 and 2.16 write them: the times at the top, and the squares at the
    /// end, are newer.
    const TIMES: [&str; 2] = [
        "snapshot_time             1599000000.123456789 secs.nsecs\n",
        "snapshot_time             1700000000.123456789 secs.nsecs\n\
         start_time                1699000000.000000000 secs.nsecs\n\
         elapsed_time              1000000.123456789 secs.nsecs\n",
    ];

    #[test]
    fn lustre_s_statistics_are_read_in_each_version_s_form() {
        for (times, squares) in TIMES.iter().zip(["", " 8796093022208"]) {
            let osc = format!(
                "{times}req_waittime              35 samples [usec] 51 90210 1036263 45313371234\n\
                 req_active                35 samples [reqs] 1 8 112 512\n\
                 read_bytes                4 samples [bytes] 4096 4194304 8392704{squares}\n\
                 write_bytes               2 samples [bytes] 1048576 1048576 2097152{squares}\n\
                 ost_read                  4 samples [usec] 210 900 2000 1000000\n\
                 ost_write                 2 samples [usec] 510 900 1410 1070100\n\
                 ost_connect               1 samples [usec] 310 310 310 96100\n"
            );
            let expected = Counters {
                moved: 8_392_704.0 + 2_097_152.0,
                requests: 6.0,
                ..Counters::default()
            };
            assert_eq!(read(Format::Osc, &osc), Some(expected));
            let llite = format!(
                "{times}read_bytes                257 samples [bytes] 1 1048576 145121869{squares}\n\
                 write_bytes               13 samples [bytes] 1 3366225 468230469{squares}\n\
                 open                      45 samples [usec] 1 2 3{squares}\n"
            );
            let cached = 145_121_869.0 + 468_230_469.0;
            assert_eq!(read(Format::Llite, &llite).unwrap().cached, cached);
            // Nothing has been read or written yet.
            assert_eq!(read(Format::Osc, times), Some(Counters::default()));
        }
        assert_eq!(read(Format::Osc, ""), None);
        assert_eq!(read(Format::OscDirty, "4096\n").unwrap().dirty, 4096.0);
        assert_eq!(read(Format::OscDirty, "\n"), None);
    }

    #[test]
    fn write_back_and_a_site_s_own_numbers() {
        let bdi = "BdiWriteback:               4 kB\nBdiReclaimable:            12 kB\n\
                   BdiDirtyThresh:        100 kB\nBdiDirtied:              2048 kB\n\
                   BdiWritten:              1024 kB\nBdiWriteBandwidth:      102400 kBps\n";
        let expected = Counters {
            moved: 1024.0 * 1024.0,
            requests: 0.0,
            cached: 2048.0 * 1024.0,
            dirty: 16.0 * 1024.0,
        };
        assert_eq!(read(Format::Bdi, bdi), Some(expected));
        let own = read(Format::Named, "moved_bytes 100\nrequests 3\n").unwrap();
        assert_eq!((own.moved, own.cached, own.requests), (100.0, 100.0, 3.0));
        assert_eq!(read(Format::Named, "requests 3\n"), None);
    }

    #[test]
    fn rates_are_differences_and_a_reset_is_negative() {
        let (before, after) = (
            Counters::default(),
            Counters {
                moved: 50.0,
                ..Counters::default()
            },
        );
        assert_eq!(after.since(&before, 10.0).bandwidth, 5.0);
        assert!(before.since(&after, 10.0).bandwidth < 0.0);
    }

    #[test]
    fn a_long_text_is_read_to_its_end_and_a_longer_one_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("vmstat");
        std::fs::write(&path, "x 1\n".repeat(5000) + "nr_dirtied 7\n").unwrap();
        let format = Format::Vmstat;
        let source = Source {
            path: path.clone(),
            format,
        };
        let mut sources = Sources::open(&[source]).unwrap();
        assert!(sources.read().is_some());
        std::fs::write(&path, "nr_dirtied 7\n".repeat(8000)).unwrap();
        assert_eq!(sources.read(), None);
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_statistics() {
        let samples = [
            TIMES[1],
            "1 2 3 4 5 6 7 8\n",
            "moved_bytes 1e400\n",
            "Dirty: 1\nWriteback: 2\n",
        ];
        io_autotune_fuzzing::Target::new("statistics", &samples).run(|input| {
            let text = String::from_utf8_lossy(input);
            for format in [
                Format::BlockStat,
                Format::Vmstat,
                Format::Meminfo,
                Format::Osc,
                Format::OscDirty,
                Format::Llite,
                Format::Bdi,
                Format::Named,
            ] {
                let _ = read(format, &text);
            }
        });
    }
}
