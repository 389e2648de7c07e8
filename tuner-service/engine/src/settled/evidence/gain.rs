//! The verdict on a study's gain.

use io_autotune_model::{Effect, Gain, GainVerdict};
use io_autotune_search::math::Portable;

use super::comparison::ERROR;

/// An interval within this share, either way, means no effect.
const WORTH: f64 = 0.03;
const MOST_LOG: f64 = 700.0;

pub(super) fn unknown(reason: &str, tuned_runs: u64) -> Gain {
    Gain {
        verdict: GainVerdict::NotYet,
        reason: reason.to_owned(),
        share: None,
        low: None,
        high: None,
        level: 1.0 - ERROR,
        tuned_runs,
        control_runs: 0,
        detectable: None,
        runs_needed: None,
        evidence: 1.0,
    }
}

pub(super) fn of_default(tuned_runs: u64) -> Gain {
    let reason = "The default itself is what was chosen: there is nothing to gain.";
    Gain {
        verdict: GainVerdict::NoEffect,
        share: Some(0.0),
        low: Some(0.0),
        high: Some(0.0),
        ..unknown(reason, tuned_runs)
    }
}

pub(super) fn of(effect: &Effect) -> Gain {
    let share = |log: f64| 1.0 - (-log).exponential();
    let bounds = effect.low.zip(effect.high);
    let estimate = effect.log_ratio.map(share);
    let (low, high) = (
        bounds.map(|(low, _)| share(low)),
        bounds.map(|(_, high)| share(high)),
    );
    let (verdict, reason) = verdict(estimate, low, high, effect.saved);
    let number = effect.number as f64;
    Gain {
        verdict,
        share: estimate,
        low,
        high,
        level: 1.0 - ERROR / (number * (number + 1.0)),
        control_runs: effect.blocks,
        detectable: effect.detectable,
        runs_needed: (verdict == GainVerdict::NotYet)
            .then(|| runs_needed(effect))
            .flatten(),
        evidence: effect.log_evidence.min(MOST_LOG).exponential(),
        ..unknown(reason, effect.tuned_runs)
    }
}

fn verdict(
    share: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    saved: f64,
) -> (GainVerdict, &'static str) {
    let (Some(share), Some(low), Some(high)) = (share, low, high) else {
        let reason = "Too few control runs near the tuned ones to bound the gain.";
        return (GainVerdict::NotYet, reason);
    };
    if low <= 0.0 && high >= 0.0 {
        return if low >= -WORTH && high <= WORTH {
            let reason = "Whatever the difference is, it is less than 3 %.";
            (GainVerdict::NoEffect, reason)
        } else {
            (GainVerdict::NotYet, "The interval includes no effect.")
        };
    }
    match (share > 0.0, saved * share < 0.0) {
        (true, true) => (
            GainVerdict::Unclear,
            "Typical runs and node-hours disagree: a typical run is faster, yet slow runs cost more than that.",
        ),
        (false, true) => (
            GainVerdict::Unclear,
            "Typical runs and node-hours disagree: a typical run is slower, yet slow runs are fewer.",
        ),
        (true, false) => (
            GainVerdict::Faster,
            "The whole interval is above no effect.",
        ),
        (false, false) => (
            GainVerdict::Slower,
            "The whole interval is below no effect.",
        ),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 20,000 blocks"
)]
fn runs_needed(effect: &Effect) -> Option<u64> {
    let each = 1.0 + effect.tuned_runs as f64 / effect.blocks as f64;
    let more = effect.blocks_needed? - effect.blocks as f64;
    Some((more * each).round().max(0.0) as u64)
}
