//! The stopping criteria of [`Stop`]. If [`nothing_to_win`] holds, no parametrization can help. The
//! other criteria look at the runs of non-default parametrizations in the order of their starts.
//! Later runs may undo a criterion until the epoch has settled.

pub(crate) mod other_accelerator;
pub(crate) mod settings;

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;

use crate::guards::veto;
use crate::study::prior;
use crate::study::stopping::settings::{
    Distance, Distinct, Improvement, LittleIo, NothingLeft, Stop,
};
use io_autotune_model::Measure;
use io_autotune_model::reason::Stopped;
use io_autotune_model::space::Point;
use io_autotune_search::acquisition;
use io_autotune_search::history::by_point::{MIN_RUNS, View};
use io_autotune_search::math::Portable;
use io_autotune_search::surrogate::posterior::Modelled;

pub(crate) fn met(view: &Modelled<'_>, stop: &Stop, rng: &mut ChaCha8Rng) -> Option<Stopped> {
    let sequence = view.sequence();
    let latest = |runs: u32| {
        let start = sequence.len().checked_sub(runs as usize)?;
        Some(&sequence[start..])
    };
    let improvement = || improvement(view, latest(stop.improvement?.runs)?, stop.improvement?);
    let distinct = || distinct(latest(stop.distinct?.runs)?, stop.distinct?);
    let distance = || distance(view, latest(stop.distance?.runs)?, stop.distance?);
    let nothing_left = || {
        let NothingLeft { share } = stop.nothing_left?;
        let borne_out = prior::most_to_gain(view, rng);
        let gain = borne_out.or_else(|| acquisition::most_to_gain(view, rng))?;
        (gain < share).then_some(Stopped::NothingLeft { gain })
    };
    improvement()
        .or_else(distinct)
        .or_else(distance)
        .or_else(nothing_left)
}

/// The reason why no parametrization can make the runs faster, if there is one: the default is the
/// best choice then.
pub(crate) fn nothing_to_win(view: &View<'_>, stop: &Stop) -> Option<Stopped> {
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

/// Stops if the latest new parametrizations are hardly faster than the best before them.
fn improvement(
    view: &View<'_>,
    latest: &[(i64, &Point)],
    Improvement { runs, share }: Improvement,
) -> Option<Stopped> {
    let (since, _) = latest.first()?;
    let (mut before, mut now) = (f64::INFINITY, f64::INFINITY);
    for (_, known) in view.iter() {
        if let Some(mean) = known.mean().filter(|_| known.is_eligible()) {
            now = now.min(mean);
            if known.first_ordinal < *since {
                before = before.min(mean);
            }
        }
    }
    let fell = 1.0 - now / before;
    (before.is_finite() && fell < share).then_some(Stopped::Improvement { runs, fell })
}

fn distinct(latest: &[(i64, &Point)], Distinct { runs, least }: Distinct) -> Option<Stopped> {
    let points: BTreeSet<&Point> = latest.iter().map(|(_, point)| *point).collect();
    let distinct = u32::try_from(points.len()).unwrap_or(u32::MAX);
    (distinct < least).then_some(Stopped::Distinct { runs, distinct })
}

fn distance(
    view: &View<'_>,
    latest: &[(i64, &Point)],
    Distance { runs, least }: Distance,
) -> Option<Stopped> {
    let metric = view.space.metric();
    let steps = latest.len().checked_sub(1).filter(|steps| *steps > 0)?;
    let way: f64 = latest
        .windows(2)
        .map(|pair| metric.distance(pair[0].1, pair[1].1))
        .sum();
    let moved = way / steps as f64;
    (moved < least).then_some(Stopped::Distance { runs, moved })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::testing::{grid, history, tested};
    use io_autotune_model::space::Space;

    /// The criterion met after these runs, which follow two of the default of 100 s, in a space of
    /// 11 levels.
    fn after(runs: &[(u32, f64)], stop: Stop) -> Option<Stopped> {
        let space: Space = grid(&[11]);
        let mut known = vec![tested(&space, &[0], &[100.0, 100.0], 0)];
        for (ordinal, (level, time)) in (10..).zip(runs) {
            let new = tested(&space, &[*level], &[], ordinal);
            let place = known
                .iter()
                .position(|entry| entry.parametrization == new.parametrization);
            let place = place.unwrap_or_else(|| {
                known.push(new);
                known.len() - 1
            });
            known[place].record(ordinal, *time).unwrap();
        }
        let history = history(known, 0, 0);
        let view = Modelled::new(View::new(&space, &history, &[]), None);
        met(&view, &stop, &mut ChaCha8Rng::seed_from_u64(1))
    }

    #[test]
    fn nothing_stops_what_is_not_set() {
        assert_eq!(after(&[(1, 90.0); 40], Stop::default()), None);
    }

    #[test]
    fn the_lowest_mean_must_go_on_falling() {
        let stop = |runs| Stop {
            improvement: Some(Improvement { runs, share: 0.05 }),
            ..Stop::default()
        };
        let runs = [(1, 80.0), (2, 90.0), (3, 78.0)];
        // 78 is 2.5 % below 80, 22 % below the default's 100.
        let Some(Stopped::Improvement { runs: 2, fell }) = after(&runs, stop(2)) else {
            panic!("it fell by 2.5 %");
        };
        assert!((fell - 0.025).abs() < 1e-9);
        assert_eq!(after(&runs, stop(3)), None);
        assert_eq!(after(&runs, stop(4)), None, "too few runs to say");
    }

    #[test]
    fn the_search_must_go_on_moving() {
        let runs = [(1, 90.0), (9, 90.0), (3, 90.0), (3, 90.0), (4, 90.0)];
        let distinct = |runs, least| Stop {
            distinct: Some(Distinct { runs, least }),
            ..Stop::default()
        };
        let met = Some(Stopped::Distinct {
            runs: 3,
            distinct: 2,
        });
        assert_eq!(after(&runs, distinct(3, 3)), met);
        assert_eq!(after(&runs, distinct(3, 2)), None);
        assert_eq!(after(&runs, distinct(6, 6)), None);
        let distance = |runs, least| Stop {
            distance: Some(Distance { runs, least }),
            ..Stop::default()
        };
        // The last three moved by 0 and 0.1.
        let Some(Stopped::Distance { runs: 3, moved }) = after(&runs, distance(3, 0.06)) else {
            panic!("it moved by 0.05");
        };
        assert!((moved - 0.05).abs() < 1e-9);
        assert_eq!(after(&runs, distance(3, 0.04)), None);
        assert_eq!(after(&runs, distance(4, 0.06)), None);
    }

    #[test]
    fn a_valley_that_is_known_leaves_nothing_to_win() {
        let stop = Stop {
            nothing_left: Some(NothingLeft { share: 0.01 }),
            ..Stop::default()
        };
        let time = |level: u32| 50.0 + 2.0 * (f64::from(level) - 5.0).powi(2);
        let all: Vec<(u32, f64)> = (1..10)
            .flat_map(|level| [(level, time(level)); 4])
            .collect();
        let met = after(&all, stop.clone());
        assert!(
            matches!(met, Some(Stopped::NothingLeft { gain }) if gain < 0.01),
            "{met:?}"
        );
        // The times still fall up to the last point.
        assert_eq!(after(&[(1, 82.0), (2, 68.0), (3, 58.0)], stop), None);
    }

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
