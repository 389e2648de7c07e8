//! What is too much, too long or no number: it is refused in clear words, and nothing is lost.

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

/// Acts on a terminal, and turns the direction of text.
const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}";

/// What answers may have of a refusal.
#[track_caller]
fn is_short_and_printable(answer: &Answer) {
    let text = answer.text();
    assert!((10..10_000).contains(&text.len()), "{answer}");
    let is_printable = |c: char| !c.is_control() && c != '\u{202e}';
    assert!(text.chars().all(is_printable), "{answer}");
}
