//! The journal of an agent: a file of at most 120 entries, however long the job runs. When there
//! would be more, each entry stands for twice as many periods.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use io_autotune_protocol::{OnlineEntry, OnlineRecord};

use crate::files::read_own;

use super::Order;

/// The file's name in the job's directory.
pub(crate) const FILE: &str = "online.journal";

pub(super) struct Journal {
    file: File,
    record: OnlineRecord,
    /// The number of periods that an entry stands for.
    span: u64,
}

impl Journal {
    pub(super) fn new(file: File, order: &Order, began: &[u64]) -> Self {
        let levers = order.levers.iter().map(|lever| lever.name.clone());
        let journal = Self {
            file,
            record: OnlineRecord {
                policy: order.policy,
                period_ms: order.period_ms,
                levers: levers.collect(),
                began: began.to_vec(),
                entries: Vec::new(),
            },
            span: 1,
        };
        journal.write();
        journal
    }

    pub(super) fn add(&mut self, entry: OnlineEntry) {
        let entries = &mut self.record.entries;
        match entries.last_mut() {
            Some(last) if last.periods < self.span => merge(last, entry),
            _ => entries.push(entry),
        }
        if entries.len() > OnlineRecord::ENTRIES {
            self.span *= 2;
            *entries = halved(std::mem::take(entries));
        }
        self.write();
    }

    /// Writes the file. An error is ignored, because a job continues without its journal.
    fn write(&self) {
        let mut text = Vec::new();
        let OnlineRecord {
            policy,
            period_ms,
            levers,
            began,
            entries,
        } = &self.record;
        let head = OnlineRecord {
            policy: *policy,
            period_ms: *period_ms,
            levers: levers.clone(),
            began: began.clone(),
            entries: Vec::new(),
        };
        if serde_json::to_writer(&mut text, &head).is_err() {
            return;
        }
        for entry in entries {
            text.push(b'\n');
            let _ = serde_json::to_writer(&mut text, entry);
        }
        text.push(b'\n');
        if self.file.write_all_at(&text, 0).is_ok() {
            let _ = self.file.set_len(text.len() as u64);
        }
    }
}

fn halved(entries: Vec<OnlineEntry>) -> Vec<OnlineEntry> {
    let mut halved: Vec<OnlineEntry> = Vec::with_capacity(entries.len() / 2 + 1);
    for (place, entry) in entries.into_iter().enumerate() {
        match halved.last_mut() {
            Some(last) if place % 2 == 1 => merge(last, entry),
            _ => halved.push(entry),
        }
    }
    halved
}

/// Merges a later entry into an earlier one.
fn merge(last: &mut OnlineEntry, later: OnlineEntry) {
    let periods = last.periods + later.periods;
    let mean = |one: u64, other: u64| {
        let sum = u128::from(one) * u128::from(last.periods)
            + u128::from(other) * u128::from(later.periods);
        u64::try_from(sum / u128::from(periods.max(1))).unwrap_or(u64::MAX)
    };
    *last = OnlineEntry {
        at_ms: later.at_ms,
        periods,
        bandwidth: mean(last.bandwidth, later.bandwidth),
        requests: mean(last.requests, later.requests),
        cached: mean(last.cached, later.cached),
        dirty: mean(last.dirty, later.dirty),
        values: later.values,
        moves: last.moves + later.moves,
        reason: later.reason.or(last.reason),
    };
}

/// The record in the journal that an agent has left, as far as it is complete: the agent may have
/// been killed while writing.
pub(crate) fn read(path: &Path) -> Option<OnlineRecord> {
    parse(&read_own(path).ok()?)
}

fn parse(text: &str) -> Option<OnlineRecord> {
    let mut lines = text.lines();
    let mut record: OnlineRecord = serde_json::from_str(lines.next()?).ok()?;
    let levers = record.levers.len();
    if record.began.len() != levers || levers > OnlineRecord::LEVERS || !record.entries.is_empty() {
        return None;
    }
    for line in lines.take(OnlineRecord::ENTRIES) {
        let Ok(entry) = serde_json::from_str::<OnlineEntry>(line) else {
            break;
        };
        let last = record.entries.last();
        let is_later = last.is_none_or(|last| last.at_ms < entry.at_ms);
        if !is_later || entry.values.len() != levers {
            break;
        }
        record.entries.push(entry);
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use io_autotune_protocol::{OnlinePolicy, OnlineReason};

    use super::*;

    fn entry(period: u64) -> OnlineEntry {
        OnlineEntry {
            at_ms: 10_000 * period,
            periods: 1,
            bandwidth: period,
            requests: 1,
            cached: 2,
            dirty: 3,
            values: vec![period],
            moves: 1,
            reason: (period % 4 == 1).then_some(OnlineReason::Try),
        }
    }

    fn journal(path: &Path, periods: u64) -> OnlineRecord {
        let order = Order {
            policy: OnlinePolicy::Settling,
            period_ms: 10_000,
            levers: vec![super::super::LeverFiles {
                name: "lever".into(),
                least: 1,
                most: 9,
                began: 5,
                files: Vec::new(),
                kept: Vec::new(),
            }],
            sources: Vec::new(),
            journal: path.to_owned(),
            group: None,
        };
        let file = File::create(path).unwrap();
        let mut journal = Journal::new(file, &order, &[5]);
        for period in 1..=periods {
            journal.add(entry(period));
        }
        read(path).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let root = tempfile::tempdir().unwrap();
        let record = journal(&root.path().join(FILE), 3);
        assert_eq!(record.levers, ["lever"]);
        assert_eq!(record.entries, [entry(1), entry(2), entry(3)]);
        assert!(journal(&root.path().join("none"), 0).entries.is_empty());
    }

    #[test]
    fn a_long_job_has_no_more_entries_and_all_of_its_time() {
        let root = tempfile::tempdir().unwrap();
        for periods in [120, 121, 500, 8640] {
            let path = root.path().join(FILE);
            let record = journal(&path, periods);
            let entries = &record.entries;
            assert!((60..=120).contains(&entries.len()), "{}", entries.len());
            assert_eq!(entries.iter().map(|one| one.periods).sum::<u64>(), periods);
            assert_eq!(entries.iter().map(|one| one.moves).sum::<u64>(), periods);
            let last = entries.last().unwrap();
            assert_eq!(
                (last.at_ms, &last.values),
                (10_000 * periods, &vec![periods])
            );
            assert!(fs::metadata(&path).unwrap().len() < 32 * 1024);
        }
    }

    #[test]
    fn half_a_journal_is_read_as_far_as_it_goes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        journal(&path, 30);
        let text = fs::read_to_string(&path).unwrap();
        let whole = parse(&text).unwrap();
        assert_eq!(
            parse(&text[..text.len() - 20]).unwrap().entries,
            whole.entries[..29]
        );
        // The end of a longer text, which had not been truncated yet.
        let torn = format!("{text}{}", text.lines().nth(2).unwrap());
        assert_eq!(parse(&torn), Some(whole));
        assert_eq!(parse(""), None);
    }

    /// Attack (parsers): A file of a job or of the spool.
    #[test]
    fn fuzz_journal() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        journal(&path, 3);
        let sample = fs::read(&path).unwrap();
        io_autotune_fuzzing::Target::new("journal", &[sample]).run(|input| {
            if let Some(record) = parse(&String::from_utf8_lossy(input)) {
                assert!(record.entries.len() <= OnlineRecord::ENTRIES);
                let levers = record.levers.len();
                assert!(record.entries.iter().all(|one| one.values.len() == levers));
            }
        });
    }
}
