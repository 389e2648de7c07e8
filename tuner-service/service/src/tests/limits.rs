//! Tests of requests that are too many, too long or out of range: they are refused with a clear
//! message, and nothing is lost.

mod bodies;
mod extremes;
mod fields;
mod floods;
mod lengths;
mod names;
mod quotas;

use super::log::Log;
use super::service::at_once;
use super::{ADMIN, ALICE, Answer, BOB, BURST_BUFFER, COLLECTOR, ROOT, TestJob, TestService};

/// Controls a terminal, and turns the direction of text.
const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}";

/// Checks that the answer to a refused request is short and printable.
#[track_caller]
fn is_short_and_printable(answer: &Answer) {
    let text = answer.text();
    assert!((10..10_000).contains(&text.len()), "{answer}");
    let is_printable = |c: char| !c.is_control() && c != '\u{202e}';
    assert!(text.chars().all(is_printable), "{answer}");
}
