//! Slurm's notation of states, times and durations.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The end of a requeued launch, in sacct and here. The job itself goes on as PENDING.
pub(crate) const END_OF_A_LAUNCH_PUT_BACK: &str = "REQUEUED";

/// squeue's time limit of a job without one.
pub(super) const UNLIMITED: &str = "UNLIMITED";

/// Returns true if a job in this state certainly goes on. A later Slurm may have other states.
pub(crate) fn goes_on(state: &str) -> bool {
    matches!(
        state,
        "COMPLETING"
            | "CONFIGURING"
            // From 25.11 on: its epilogs are waited for, or it is being requeued at once (`sbatch
            // --requeue=expedite`).
            | "EXPEDITING"
            | "PENDING"
            | "RESIZING"
            | "RUNNING"
            | "STAGE_OUT"
            | "SUSPENDED"
    )
}

/// UTC, such as `2026-11-21T12:04:44`; `None` for `N/A`, `Unknown` and `None`.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let civil: DateTime = text.parse().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Seconds of `0:01`, `12:00:05`, `2-00:00:00` or `00:00:01.250`; `None` for `UNLIMITED`,
/// `NOT_SET`, `Partition_Limit`, `INVALID` and the like.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    let (days, clock) = match whole.split_once('-') {
        Some((days, clock)) => (number(days)?, clock),
        None => (0, whole),
    };
    let mut fields = clock.split(':').map(number);
    let (first, second, third) = (fields.next()??, fields.next()??, fields.next());
    if fields.next().is_some() {
        return None;
    }
    let (hours, minutes, seconds) = match third {
        Some(third) => (first, second, third?),
        None => (0, first, second),
    };
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(60)?
        .checked_add(minutes)?
        .checked_mul(60)?
        .checked_add(seconds)
}

/// `u64`'s own parser takes a plus sign too.
fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use io_autotune_model::is_end;

    use super::*;

    #[test]
    fn durations_are_read_in_every_form() {
        for (text, expected) in [
            ("0:01", Some(1)),
            ("1:00", Some(60)),
            ("59:59", Some(3599)),
            ("10:00:00", Some(36_000)),
            ("2-03:04:05", Some(183_845)),
            ("00:00:01.250", Some(1)),
            ("UNLIMITED", None),
            ("NOT_SET", None),
            ("INVALID", None),
            ("Partition_Limit", None),
            ("N/A", None),
            ("", None),
            ("7", None),
            ("+1:00", None),
            ("1:2:3:4", None),
            ("99999999999999999999:00", None),
            ("9999999999999999999-00:00:00", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_utc_and_what_is_no_time_is_none() {
        let at = time("2026-11-21T12:04:44").unwrap();
        assert_eq!(at.to_string(), "2026-11-21T12:04:44Z");
        for text in ["N/A", "Unknown", "None", "", "2026-13-41T00:00:00"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn a_job_that_goes_on_has_not_ended() {
        for state in [
            "PENDING",
            "RUNNING",
            "SUSPENDED",
            "COMPLETING",
            "CONFIGURING",
            "EXPEDITING",
            "STAGE_OUT",
        ] {
            assert!(!is_end(state) && goes_on(state), "{state}");
        }
        for state in ["COMPLETED", "NODE_FAIL"] {
            assert!(is_end(state) && !goes_on(state), "{state}");
        }
    }
}
