//! The measures of a run, in words.

use std::collections::BTreeMap;

use io_autotune_model::{MARKED, MPI_IO_READ, MPI_IO_SECONDS, MPI_IO_WRITTEN, Measure, REPORTED};

/// The measures, one a line; none for a run that was not measured.
pub(super) fn measures(measures: &BTreeMap<String, f64>, elapsed: Option<f64>) -> Vec<String> {
    let counted = counted(measures, elapsed);
    counted.into_iter().chain(own(measures)).collect()
}

/// The measures that the application has marked or reported itself.
fn own(measures: &BTreeMap<String, f64>) -> Vec<String> {
    let marked = measures.get(MARKED);
    let marked = marked.map(|seconds| format!("marked as I/O by the job: {seconds:.3} s"));
    let of = |name: &str| amount(measures.get(name).copied().unwrap_or_default());
    let in_mpi_io = measures.get(MPI_IO_SECONDS).map(|seconds| {
        format!(
            "in MPI-IO: {seconds:.3} s of the longest process; all read {}, wrote {}",
            of(MPI_IO_READ),
            of(MPI_IO_WRITTEN)
        )
    });
    let reported: Vec<String> = measures
        .iter()
        .filter_map(|(name, value)| Some(format!("{}={value}", name.strip_prefix(REPORTED)?)))
        .collect();
    let reported =
        (!reported.is_empty()).then(|| format!("reported by the job: {}", reported.join(" ")));
    let told = marked.into_iter().chain(in_mpi_io);
    told.chain(reported).collect()
}

fn counted(measures: &BTreeMap<String, f64>, elapsed: Option<f64>) -> Vec<String> {
    let of = |measure: Measure| measure.of(measures);
    if of(Measure::Steps) == 0.0 {
        return Vec::new();
    }
    let (user, system) = (of(Measure::UserSeconds), of(Measure::SystemSeconds));
    let busy = match elapsed {
        Some(elapsed) if elapsed > 0.0 => {
            format!(": {:.2} busy on average", (user + system) / elapsed)
        }
        _ => String::new(),
    };
    let took = amount(of(Measure::StorageWritten));
    let took = match of(Measure::Cancelled) {
        0.0 => format!("took {took}"),
        bytes => format!(
            "was to take {took}, of which {} was deleted before",
            amount(bytes)
        ),
    };
    let stalled = of(Measure::StalledSeconds);
    let stalled = (stalled > 0.0).then(|| format!("something stood still for I/O: {stalled:.3} s"));
    let unread = of(Measure::DeliveredFiles) > 0.0 && of(Measure::DeliveredFilesRead) == 0.0;
    let unread = unread.then(|| "nothing in the job read the accelerator's settings".to_owned());
    let lines = [
        format!(
            "programs read {}, wrote {}",
            requests(of(Measure::AskedRead), of(Measure::ReadCalls)),
            requests(of(Measure::AskedWritten), of(Measure::WriteCalls)),
        ),
        format!("storage gave {}, {took}", amount(of(Measure::StorageRead)),),
        format!("processors: {user:.3} s in programs, {system:.3} s in the kernel{busy}"),
    ];
    lines.into_iter().chain(stalled).chain(unread).collect()
}

fn requests(bytes: f64, calls: f64) -> String {
    if bytes == 0.0 || calls == 0.0 {
        return amount(bytes);
    }
    let s = if calls == 1.0 { "" } else { "s" };
    format!(
        "{} in {calls:.0} call{s} ({} each)",
        amount(bytes),
        amount(bytes / calls)
    )
}

/// Bytes in units of thousands, as dd(1) and disks have them.
pub(super) fn amount(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    // An amount that would be shown as a thousand of a unit is shown in the next unit.
    const MOST: f64 = 999.95;
    if bytes == 0.0 {
        return "nothing".to_owned();
    }
    if bytes < 999.5 {
        return format!("{bytes:.0} B");
    }
    let mut shown = bytes / 1e3;
    for unit in UNITS {
        if shown < MOST || unit == UNITS[UNITS.len() - 1] {
            return format!("{shown:.1} {unit}");
        }
        shown /= 1e3;
    }
    unreachable!("the last unit has room for all")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(values: &[(Measure, f64)]) -> BTreeMap<String, f64> {
        let values = values.iter();
        values
            .map(|(measure, value)| (measure.as_str().to_owned(), *value))
            .collect()
    }

    #[test]
    fn bytes_are_said_in_the_unit_that_fits() {
        for (bytes, said) in [
            (0.0, "nothing"),
            (1.0, "1 B"),
            (999.4, "999 B"),
            (999.6, "1.0 kB"),
            (83_900_653.0, "83.9 MB"),
            (999_949.0, "999.9 kB"),
            (999_951.0, "1.0 MB"),
            (9.3e18, "9.3 EB"),
            (1e25, "10000000.0 EB"),
        ] {
            assert_eq!(amount(bytes), said, "{bytes}");
        }
    }

    #[test]
    fn what_a_run_read_wrote_and_computed_is_said_in_three_lines() {
        let run = told(&[
            (Measure::Steps, 1.0),
            (Measure::AskedRead, 7000.0),
            (Measure::ReadCalls, 1.0),
            (Measure::AskedWritten, 83_900_653.0),
            (Measure::WriteCalls, 80.0),
            (Measure::StorageWritten, 83_959_808.0),
            (Measure::Cancelled, 4096.0),
            (Measure::UserSeconds, 0.188),
            (Measure::SystemSeconds, 0.062),
        ]);
        assert_eq!(
            measures(&run, Some(0.5)),
            [
                "programs read 7.0 kB in 1 call (7.0 kB each), wrote 83.9 MB in 80 calls (1.0 MB each)",
                "storage gave nothing, was to take 84.0 MB, of which 4.1 kB was deleted before",
                "processors: 0.188 s in programs, 0.062 s in the kernel: 0.50 busy on average",
            ]
        );
        let mut stalled = run.clone();
        stalled.insert(Measure::StalledSeconds.as_str().to_owned(), 0.091);
        assert_eq!(
            measures(&stalled, Some(0.5))[3],
            "something stood still for I/O: 0.091 s"
        );
        let unended = measures(&run, None);
        assert_eq!(
            unended[2],
            "processors: 0.188 s in programs, 0.062 s in the kernel"
        );
    }

    #[test]
    fn what_the_job_says_of_itself_is_said() {
        let run = BTreeMap::from([
            (MARKED.to_owned(), 1.25),
            ("objective.rate".to_owned(), 812.5),
            ("merit".to_owned(), 3.0),
            (MPI_IO_SECONDS.to_owned(), 0.5),
            (MPI_IO_WRITTEN.to_owned(), 2e6),
        ]);
        assert_eq!(
            measures(&run, None),
            [
                "marked as I/O by the job: 1.250 s",
                "in MPI-IO: 0.500 s of the longest process; all read nothing, wrote 2.0 MB",
                "reported by the job: rate=812.5"
            ]
        );
    }

    #[test]
    fn settings_that_nothing_read_are_told() {
        let run = |read| {
            told(&[
                (Measure::Steps, 1.0),
                (Measure::DeliveredFiles, 2.0),
                (Measure::DeliveredFilesRead, read),
            ])
        };
        let unread = "nothing in the job read the accelerator's settings";
        assert_eq!(measures(&run(0.0), None)[3], unread);
        assert_eq!(measures(&run(1.0), None).len(), 3);
    }

    #[test]
    fn a_run_that_was_not_measured_says_nothing() {
        let of_its_own = BTreeMap::from([("merit".to_owned(), 3.0)]);
        assert!(measures(&of_its_own, Some(1.0)).is_empty());
        let idle = told(&[(Measure::Steps, 1.0)]);
        assert_eq!(
            measures(&idle, Some(1.0))[0],
            "programs read nothing, wrote nothing"
        );
    }
}
