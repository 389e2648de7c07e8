//! The stopping criteria of [`Stop`]: the reasons why there is nothing to win. Later runs may undo
//! one until the epoch has settled.

mod little_to_win;
pub(crate) mod other_accelerator;
pub(crate) mod settings;

use crate::guards::veto;
use crate::study::settings::Settings;
use crate::study::stopping::settings::{LittleIo, Stop};
use io_autotune_model::Measure;
use io_autotune_model::reason::Stopped;
use io_autotune_search::history::by_point::{MIN_RUNS, View};
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::posterior::Modelled;

/// The reason why the default is the best choice, if there is one. `own` is the view of the epoch's
/// own runs, without a prior.
pub(crate) fn nothing_to_win(own: &Modelled<'_>, settings: &Settings) -> Option<Stopped> {
    cannot_matter(own, &settings.stop).or_else(|| little_to_win::stopped(own, settings))
}

/// The reason why no parametrization can make the runs faster, whatever it is, if there is one.
pub(crate) fn cannot_matter(view: &View<'_>, stop: &Stop) -> Option<Stopped> {
    little_io(view, stop).or_else(|| unread(view, stop.unread_runs))
}

/// Stops if nothing reads the files that carry parametrizations: each counted run of a non-default
/// parametrization was given files alone, as were some runs of the default (empty ones), and in no
/// run was one read.
fn unread(view: &View<'_>, least: u32) -> Option<Stopped> {
    let (mut runs, mut given) = (0, 0);
    for (point, known) in view.iter() {
        let of = |measure: Measure| {
            known
                .measures
                .get(measure.as_str())
                .map_or(0, |one| one.count)
        };
        if of(Measure::DeliveredFilesRead) > 0 {
            return None;
        }
        let files = of(Measure::DeliveredFiles);
        given += files;
        runs += match *point == view.default {
            true => files,
            false => known.count(),
        };
    }
    let is_enough = least > 0 && runs >= u64::from(least);
    (is_enough && runs == given).then_some(Stopped::Unread { runs })
}

/// Stops if I/O can only be a small part of the default's runs. The numbers of a typical run are
/// taken, each at its worst: bytes that storage moved although programs did not ask for them (mmap)
/// count too, and every wait counts as a call, because opening and listing files are not counted as
/// calls.
fn little_io(view: &View<'_>, stop: &Stop) -> Option<Stopped> {
    let LittleIo {
        share,
        call_ms,
        mb_per_second,
    } = stop.little_io;
    let default = view.default_known();
    let moments = |measure: Measure| default.measures.get(measure.as_str());
    let measured = moments(Measure::Steps).map_or(0, |steps| steps.count);
    // A user who names another objective than elapsed already accepts that I/O is a part of the
    // run.
    if default.count() < MIN_RUNS || measured < default.count() || veto::is_beside(view) {
        return None;
    }
    let elapsed = default.mean()?;
    // Runs in which the measure was zero are not in the mean, which is larger without them.
    let of = |measure| moments(measure).map_or(0.0, |known| known.mean.exponential());
    let read = of(Measure::AskedRead).max(of(Measure::StorageRead));
    let written = of(Measure::AskedWritten).max(of(Measure::StorageWritten));
    let waits = of(Measure::Waits) + of(Measure::MajorFaults);
    let calls = of(Measure::ReadCalls) + of(Measure::WriteCalls) + waits;
    let bytes = read + written;
    let most = (calls * call_ms / 1e3 + bytes / (mb_per_second * 1e6)) / elapsed;
    (most < share).then_some(Stopped::LittleIo {
        bytes,
        calls,
        elapsed,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{grid, history, tested};
    use io_autotune_model::space::Space;

    /// The share of I/O found after two runs of the default, of which `measured` have these
    /// measures.
    fn after_measured(measured: usize, elapsed: f64, measures: &[(Measure, f64)]) -> Option<f64> {
        let space: Space = grid(&[11]);
        let mut default = tested(&space, &[0], &[elapsed, elapsed], 0);
        let named = measures
            .iter()
            .map(|(one, value)| (one.as_str().to_owned(), *value));
        let named = named.collect();
        for _ in 0..measured {
            default.record_measures(&named);
        }
        let history = history(vec![default], 0, 0);
        let view = View::new(&space, &history, &[]);
        let stop = Stop {
            little_io: LittleIo::default(),
            ..Stop::default()
        };
        let mut never = stop.clone();
        never.little_io.share = 0.0;
        assert_eq!(little_io(&view, &never), None);
        match little_io(&view, &stop)? {
            Stopped::LittleIo { most, .. } => Some(most),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_that_hardly_reads_and_writes_has_nothing_to_win() {
        let computing = [
            (Measure::Steps, 1.0),
            (Measure::AskedWritten, 2e6),
            (Measure::WriteCalls, 100.0),
            (Measure::ReadCalls, 200.0),
            (Measure::Waits, 100.0),
        ];
        // 0.4 s for 400 calls and 0.2 s for 2 MB, of 40 s.
        let most = after_measured(2, 40.0, &computing).unwrap();
        assert!((most - 0.015).abs() < 1e-9, "{most}");
        assert_eq!(
            after_measured(2, 19.0, &computing),
            None,
            "of 19 s it is more"
        );
        assert_eq!(
            after_measured(1, 40.0, &computing),
            None,
            "one was not measured"
        );
        assert_eq!(
            after_measured(2, 40.0, &computing[1..]),
            None,
            "nor was any"
        );

        // Each kind of I/O alone is enough for a doubt.
        for (measure, value) in [
            (Measure::AskedRead, 2e7),
            (Measure::StorageRead, 2e7),
            (Measure::StorageWritten, 2e7),
            (Measure::WriteCalls, 2e3),
            (Measure::ReadCalls, 2e3),
            (Measure::Waits, 2e3),
            (Measure::MajorFaults, 2e3),
        ] {
            let mut doing = computing.to_vec();
            doing.retain(|(one, _)| *one != measure);
            doing.push((measure, value));
            assert_eq!(after_measured(2, 40.0, &doing), None, "{measure:?}");
        }
    }
}
