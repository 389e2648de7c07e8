//! The record of tuning inside a job, drawn in characters.

use std::collections::BTreeMap;

use io_autotune_protocol::{OnlineReason, OnlineRecord};

use super::measures::amount;

const WIDTH: usize = 60;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The lines of a record: the period and the number of moves, the data that the path moved, and the
/// values of each lever.
pub(super) fn online(record: &OnlineRecord, node: &str) -> Vec<String> {
    let period = record.period_ms as f64 / 1000.0;
    let policy = record.policy;
    if record.entries.is_empty() {
        return vec![format!(
            "by {policy} on {node}: the job was over before {period} s had passed; nothing moved"
        )];
    }
    let mut lines = vec![format!(
        "by {policy} on {node}, each {period} s: {}",
        moves(record)
    )];
    let bandwidths = record.entries.iter().map(|entry| entry.bandwidth as f64);
    let bandwidths: Vec<f64> = bandwidths.collect();
    let (least, most) = bounds(&bandwidths);
    let name_width = record.levers.iter().map(|name| name.chars().count());
    let width = name_width.chain(["bandwidth".len()]).max().unwrap_or(0);
    lines.push(format!(
        "{:<width$}  {}  {}/s .. {}/s",
        "bandwidth",
        drawn(&bandwidths, 0.0, most),
        amount(least),
        amount(most)
    ));
    for (place, name) in record.levers.iter().enumerate() {
        // A lever is doubled and halved, so the scale is logarithmic.
        let began = record.began.get(place).copied().unwrap_or(1);
        let values = record
            .entries
            .iter()
            .filter_map(|entry| entry.values.get(place));
        let logs: Vec<f64> = values
            .map(|value| (*value as f64).max(1.0).log2())
            .collect();
        let (least, most) = bounds(&logs);
        let last = record
            .entries
            .last()
            .and_then(|entry| entry.values.get(place));
        let ended = last.copied().unwrap_or(began);
        let way = if least < most {
            format!(
                "{:.0} .. {:.0}, from {began} to {ended}",
                least.exp2(),
                most.exp2()
            )
        } else {
            format!("{ended}, never moved")
        };
        lines.push(format!(
            "{name:<width$}  {}  {way}",
            drawn(&logs, least, most)
        ));
    }
    lines
}

fn moves(record: &OnlineRecord) -> String {
    let moves: u64 = record.entries.iter().map(|entry| entry.moves).sum();
    let s = if moves == 1 { "" } else { "s" };
    let mut why: BTreeMap<OnlineReason, usize> = BTreeMap::new();
    for reason in record.entries.iter().filter_map(|entry| entry.reason) {
        *why.entry(reason).or_default() += 1;
    }
    if why.is_empty() {
        return format!("{moves} move{s}");
    }
    let words = why
        .iter()
        .map(|(reason, times)| format!("{} {times}x", reason.words()));
    let words: Vec<String> = words.collect();
    format!("{moves} move{s} ({})", words.join(", "))
}

fn bounds(numbers: &[f64]) -> (f64, f64) {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(0.0, f64::max);
    (least.min(most), most)
}

/// One character for each entry, or for several in a row, whose mean it shows.
fn drawn(numbers: &[f64], least: f64, most: f64) -> String {
    let columns = numbers.chunks(numbers.len().div_ceil(WIDTH).max(1));
    let levels = columns.map(|column| {
        let mean = column.iter().sum::<f64>() / column.len() as f64;
        let share = if most > least {
            (mean - least) / (most - least)
        } else {
            0.0
        };
        let level = (share * LEVELS.len() as f64) as usize;
        LEVELS[level.min(LEVELS.len() - 1)]
    });
    levels.collect()
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::{OnlineEntry, OnlinePolicy};

    use super::*;

    fn record(periods: u64) -> OnlineRecord {
        let entry = |period: u64| OnlineEntry {
            at_ms: period * 10_000,
            periods: 1,
            bandwidth: period * 1_000_000,
            requests: 1,
            cached: 0,
            dirty: 0,
            values: vec![64 << period.min(2), 8],
            moves: u64::from(period < 3),
            reason: (period < 3).then_some(OnlineReason::Faster),
        };
        OnlineRecord {
            policy: OnlinePolicy::Iopathtune,
            period_ms: 10_000,
            levers: vec!["max_sectors_kb".into(), "nr_requests".into()],
            began: vec![64, 8],
            entries: (1..=periods).map(entry).collect(),
        }
    }

    #[test]
    fn a_job_is_drawn_with_its_bandwidth_and_levers() {
        assert_eq!(
            online(&record(8), "n1"),
            [
                "by iopathtune on n1, each 10 s: 2 moves (the last move helped 2x)",
                "bandwidth       ▂▃▄▅▆▇██  1.0 MB/s .. 8.0 MB/s",
                "max_sectors_kb  ▁███████  128 .. 256, from 64 to 256",
                "nr_requests     ▁▁▁▁▁▁▁▁  8, never moved",
            ]
        );
    }

    #[test]
    fn a_short_job_and_a_long_one() {
        let short = online(&record(0), "n1");
        assert_eq!(short.len(), 1);
        assert!(short[0].contains("before 10 s had passed"), "{short:?}");
        for line in &online(&record(120), "n1")[1..] {
            assert!(line.chars().filter(|one| LEVELS.contains(one)).count() == WIDTH);
        }
    }
}
