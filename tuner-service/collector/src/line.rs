//! Parses a line of the spool, as `deploy/jobcomp/io-autotune-jobcomp` writes it: `3 JOBID JOBSTATE
//! EXITCODE START END LIMIT NODECNT ACCOUNT NODES`; `2` without the nodes, `1` without the account
//! too.
//!
//! The values are those of Slurm's plugin jobcomp/script (seen with 22.05): times in seconds since
//! 1970, the limit as `[days-]hh:mm:ss`. Every line is untrusted.

use io_autotune_protocol::{Outcome, clock_seconds, digits, is_account, is_hostlist};
use jiff::Timestamp;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("it is not text")]
    NotText,
    #[error("it has {found} words and not {expected}")]
    Words { found: usize, expected: usize },
    #[error("its format {0:?} is not known; is this collector older than the script?")]
    Format(String),
    #[error("{what} cannot be {text:?}")]
    Word { what: &'static str, text: String },
    #[error("the job ends before it begins")]
    Backwards,
}

/// The text that the script writes for a variable that Slurm has not set.
const UNSET: &str = "-";

/// Parses a line without its newline; `None`: it is valid, but no job ended.
pub(crate) fn parse(line: &[u8]) -> Result<Option<Outcome>, LineError> {
    let text = str::from_utf8(line).map_err(|_| LineError::NotText)?;
    let words: Vec<&str> = text.split(' ').collect();
    let format = words.first().copied().unwrap_or_default();
    let expected = match format {
        "1" => 8,
        "2" => 9,
        "3" => 10,
        _ => return Err(LineError::Format(excerpt(format))),
    };
    if words.len() != expected {
        return Err(LineError::Words {
            found: words.len(),
            expected,
        });
    }
    let (job_id, state, exit_code) = (words[1], words[2], words[3]);
    let (start, end, limit, nodes) = (words[4], words[5], words[6], words[7]);
    let account = words.get(8).filter(|word| **word != UNSET);
    let job_id = digits(job_id)
        .and_then(|id| u32::try_from(id).ok())
        .filter(|id| *id != 0)
        .ok_or_else(|| unbelievable("JOBID", job_id))?;
    let state = self::state(state)?;
    let exit_code = self::exit_code(exit_code)?;
    let (start, ended_at) = (time("START", start)?, time("END", end)?);
    // Slurm sets START of a job that never began to its end.
    let never_began = match nodes {
        UNSET => false,
        _ => digits(nodes).ok_or_else(|| unbelievable("NODECNT", nodes))? == 0,
    };
    let started_at = start.filter(|_| !never_began);
    if started_at
        .zip(ended_at)
        .is_some_and(|(start, end)| end < start)
    {
        return Err(LineError::Backwards);
    }
    let limit_seconds = self::limit(limit)?;
    Ok(state.map(|state| Outcome {
        job_id,
        state,
        exit_code,
        restart_count: None,
        started_at,
        ended_at,
        suspended_seconds: None,
        limit_seconds,
        account: account
            .filter(|account| is_account(account))
            .map(|account| (*account).to_owned()),
        uid: None,
        node_list: words
            .get(9)
            .filter(|nodes| **nodes != UNSET && !never_began && is_hostlist(nodes))
            .map(|nodes| (*nodes).to_owned()),
    }))
}

/// Parses the state; `None`: the job only changed its size, which Slurm reports too.
fn state(word: &str) -> Result<Option<String>, LineError> {
    let plain = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    match word {
        "RESIZING" => Ok(None),
        // At a job's end it can only mean that it was requeued.
        "PENDING" => Ok(Some("REQUEUED".into())),
        _ if !word.is_empty() && word.len() <= 32 && plain(word) => Ok(Some(word.into())),
        _ => Err(unbelievable("JOBSTATE", word)),
    }
}

fn exit_code(word: &str) -> Result<Option<String>, LineError> {
    let short = |text: &str| digits(text).is_some_and(|code| code <= 0xffff);
    match word.split_once(':') {
        _ if word == UNSET => Ok(None),
        Some((code, signal)) if short(code) && short(signal) => Ok(Some(word.into())),
        _ => Err(unbelievable("EXITCODE", word)),
    }
}

/// Parses a time. Slurm writes 0 for none.
fn time(what: &'static str, word: &str) -> Result<Option<Timestamp>, LineError> {
    if word == UNSET || word == "0" {
        return Ok(None);
    }
    digits(word)
        .and_then(|seconds| i64::try_from(seconds).ok())
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .map(Some)
        .ok_or_else(|| unbelievable(what, word))
}

/// Parses a limit in seconds; `None` for a word (`UNLIMITED`, `Partition_Limit`) and for 0, which
/// means no limit.
fn limit(word: &str) -> Result<Option<u64>, LineError> {
    let letters = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
    };
    if word == UNSET || (!word.is_empty() && letters(word)) {
        return Ok(None);
    }
    match clock_seconds(word) {
        Some(0) => Ok(None),
        Some(seconds) => Ok(Some(seconds)),
        None => Err(unbelievable("LIMIT", word)),
    }
}

fn unbelievable(what: &'static str, text: &str) -> LineError {
    LineError::Word {
        what,
        text: excerpt(text),
    }
}

/// The beginning of a text for a message, because anybody may have written the text.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    fn read(line: &str) -> Outcome {
        parse(line.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn what_slurm_22_05_was_seen_to_give_is_read() {
        let timeout = read("1 2 TIMEOUT 0:0 1795264394 1795264460 00:01:00 1");
        assert_eq!(
            timeout,
            Outcome {
                job_id: 2,
                state: "TIMEOUT".into(),
                exit_code: Some("0:0".into()),
                started_at: at(1_795_264_394),
                ended_at: at(1_795_264_460),
                limit_seconds: Some(60),
                ..Outcome::default()
            }
        );
        for (line, state, exit_code) in [
            (
                "1 13 OUT_OF_MEMORY 0:125 1795264395 1795264395 365-00:00:00 1",
                "OUT_OF_MEMORY",
                "0:125",
            ),
            (
                "1 5 FAILED 0:11 1795264394 1795264394 UNLIMITED 1",
                "FAILED",
                "0:11",
            ),
            (
                "1 24 PREEMPTED 0:0 1795264571 1795264573 UNLIMITED 1",
                "PREEMPTED",
                "0:0",
            ),
            (
                "1 26 NODE_FAIL 0:0 1795264571 1795264608 UNLIMITED 1",
                "NODE_FAIL",
                "0:0",
            ),
        ] {
            let outcome = read(line);
            assert_eq!(outcome.state, state);
            assert_eq!(outcome.exit_code.as_deref(), Some(exit_code));
        }
    }

    #[test]
    fn a_job_that_waits_again_was_requeued() {
        assert_eq!(
            read("1 8 PENDING 0:0 1795264394 1795264397 UNLIMITED 1").state,
            "REQUEUED"
        );
    }

    #[test]
    fn a_job_that_never_began_has_no_start() {
        let outcome = read("1 6 CANCELLED 0:0 1795264394 1795264394 UNLIMITED 0");
        assert_eq!(
            (outcome.started_at, outcome.ended_at),
            (None, at(1_795_264_394))
        );
        let outcome = read("1 6 CANCELLED 0:0 0 1795264394 UNLIMITED -");
        assert_eq!(outcome.started_at, None);
    }

    #[test]
    fn limits_are_durations_or_none() {
        let limit = |word: &str| read(&format!("1 7 COMPLETED 0:0 10 20 {word} 1")).limit_seconds;
        assert_eq!(limit("00:05:00"), Some(300));
        assert_eq!(
            limit("2-03:04:05"),
            Some(2 * 86_400 + 3 * 3600 + 4 * 60 + 5)
        );
        for word in ["UNLIMITED", "Partition_Limit", "-", "00:00:00"] {
            assert_eq!(limit(word), None, "{word}");
        }
    }

    #[test]
    fn an_account_is_told_where_it_is_one() {
        let account = |word: &str| read(&format!("2 7 COMPLETED 0:0 10 20 - 1 {word}")).account;
        assert_eq!(account("physics").as_deref(), Some("physics"));
        for word in ["-", "(null)", "gr\u{f6}\u{df}e", ""] {
            assert_eq!(account(word), None, "{word}");
        }
    }

    #[test]
    fn its_nodes_are_told_where_it_had_some() {
        let nodes = |rest: &str| read(&format!("3 7 COMPLETED 0:0 10 20 - {rest}")).node_list;
        assert_eq!(nodes("2 - n[1-2]").as_deref(), Some("n[1-2]"));
        for rest in ["1 physics -", "0 - n1", "1 - (null)"] {
            assert_eq!(nodes(rest), None, "{rest}");
        }
    }

    #[test]
    fn a_change_of_size_is_no_end() {
        assert_eq!(parse(b"1 7 RESIZING 0:0 10 20 UNLIMITED 1"), Ok(None));
    }

    #[test]
    fn what_cannot_be_believed_says_why() {
        for (line, why) in [
            ("", "its format \"\""),
            ("4 7 COMPLETED 0:0 10 20 - 1", "its format \"4\""),
            ("3 7 COMPLETED 0:0 10 20 - 1 -", "9 words and not 10"),
            ("2 7 COMPLETED 0:0 10 20 - 1", "8 words and not 9"),
            ("1 7 COMPLETED 0:0 10 20 -", "7 words and not 8"),
            ("1 7 COMPLETED 0:0 10 20 - 1 1", "9 words and not 8"),
            ("1 0 COMPLETED 0:0 10 20 - 1", "JOBID"),
            ("1 4294967296 COMPLETED 0:0 10 20 - 1", "JOBID"),
            ("1 +7 COMPLETED 0:0 10 20 - 1", "JOBID"),
            ("1 7 completed 0:0 10 20 - 1", "JOBSTATE"),
            ("1 7  0:0 10 20 - 1", "JOBSTATE"),
            ("1 7 COMPLETED 0 10 20 - 1", "EXITCODE"),
            ("1 7 COMPLETED 0:0:0 10 20 - 1", "EXITCODE"),
            ("1 7 COMPLETED 0:0 -10 20 - 1", "START"),
            ("1 7 COMPLETED 0:0 10 999999999999 - 1", "END"),
            ("1 7 COMPLETED 0:0 30 20 - 1", "before it begins"),
            ("1 7 COMPLETED 0:0 10 20 24:00:00 1", "LIMIT"),
            ("1 7 COMPLETED 0:0 10 20 5 1", "LIMIT"),
            ("1 7 COMPLETED 0:0 10 20 - many", "NODECNT"),
        ] {
            let message = parse(line.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(why), "{line}: {message}");
        }
        assert_eq!(parse(b"1 7 \xff\xfe"), Err(LineError::NotText));
    }

    proptest! {
        /// Attack (parsers): The output of sacct or of the job-completion script.
        #[test]
        fn nothing_panics_and_a_message_stays_short(line in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Err(error) = parse(&line) {
                prop_assert!(error.to_string().len() < 600);
            }
        }

        #[test]
        fn nearly_right_lines_do_not_panic(line in "1 [0-9-]{1,14} [A-Z_]{0,40} [0-9:]{0,8} [0-9-]{0,20} [0-9]{0,20} [0-9:A-Z-]{0,20} [0-9]{0,12}") {
            let _ = parse(line.as_bytes());
        }

        #[test]
        fn what_is_written_comes_back(
            job_id in 1u32.., state in "[A-Z_]{1,32}", code in 0u16..256, signal in 0u16..128,
            start in 1i64..4_000_000_000, lasts in 0i64..1_000_000, limit in 1u64..40_000_000, nodes in 1u32..9999,
        ) {
            let days = limit / 86_400;
            let (h, m, s) = (limit / 3600 % 24, limit / 60 % 60, limit % 60);
            let end = start + lasts;
            let line = format!("1 {job_id} {state} {code}:{signal} {start} {end} {days}-{h:02}:{m:02}:{s:02} {nodes}");
            prop_assume!(state != "RESIZING" && state != "PENDING");
            prop_assert_eq!(read(&line), Outcome {
                job_id,
                state,
                exit_code: Some(format!("{code}:{signal}")),
                started_at: at(start),
                ended_at: at(end),
                limit_seconds: Some(limit),
                ..Outcome::default()
            });
        }
    }
}
