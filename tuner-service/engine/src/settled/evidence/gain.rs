//! The effect that an epoch's runs show, and the verdict on it.

use io_autotune_model::{Compared, Effect, Gain, GainVerdict};
use io_autotune_search::math::Portable;
use statrs::distribution::{ContinuousCDF, Normal};

use super::hours::Saved;
use super::labels::{Direction, Labels, Noise};

/// The probability of a false effect over a study's life.
const ERROR: f64 = 0.05;
/// The share of the error rate for gains. Losses have the rest, because the search seldom settles
/// on a slower parametrization.
const FASTER: f64 = 0.8;
/// The power at the smallest detectable gain.
const POWER: f64 = 0.8;
const MOST_RUNS: f64 = 100_000.0;

/// An interval within this share, either way, shows that there is no effect.
const WORTH: f64 = 0.03;
const MOST_LOG: f64 = 700.0;

pub(in crate::settled) fn unknown(reason: &str, tuned_runs: u64) -> Gain {
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
        compared: None,
    }
}

pub(super) fn of_default(tuned_runs: u64) -> Gain {
    let reason = "The default itself is what was chosen: there is nothing to gain.";
    Gain {
        verdict: GainVerdict::NoEffect,
        share: Some(0.0),
        ..unknown(reason, tuned_runs)
    }
}

/// The gain that an earlier version claimed.
pub(super) fn former(gain: &Gain) -> Gain {
    Gain {
        reason:
            "Claimed by version 0.2, from the ranks of control runs among the tuned runs near them."
                .to_owned(),
        ..gain.clone()
    }
}

/// The gain that the epoch before claimed.
pub(super) fn kept(gain: &Gain) -> Gain {
    Gain {
        reason:
            "Claimed before the accelerator's parameters changed; what was chosen is still offered."
                .to_owned(),
        ..gain.clone()
    }
}

/// The effect by the comparison with this number in the study's life.
pub(super) fn effect(
    epoch: i32,
    key: &str,
    number: u64,
    labels: &Labels,
    noise: &Noise,
    saved: &Saved,
) -> Effect {
    let power = Normal::standard().inverse_cdf(POWER);
    let log_ratio = labels.estimate();
    let direction = match log_ratio {
        Some(ratio) if ratio < 0.0 => Direction::Slower,
        Some(_) => Direction::Faster,
        None => [Direction::Faster, Direction::Slower]
            .into_iter()
            .max_by(|a, b| labels.log_evidence(*a).total_cmp(&labels.log_evidence(*b)))
            .unwrap_or(Direction::Faster),
    };
    let bound = log_bound(number, direction);
    let evidence = against_bound(labels.log_evidence(direction), bound);
    let (controls, tuned) = (labels.controls(), labels.tuned());
    let runs_needed = log_ratio.and_then(|ratio| labels.runs_needed(noise, ratio, bound, power));
    Effect {
        epoch,
        parametrization: key.to_owned(),
        number,
        blocks: controls,
        tuned_runs: tuned,
        log_ratio,
        low: labels.low(log_bound(number, Direction::Faster)),
        high: labels.high(log_bound(number, Direction::Slower)),
        standard_error: labels.standard_error(),
        log_evidence: evidence,
        detectable: labels
            .detectable(noise, log_bound(number, Direction::Faster), power)
            .map(|log| 1.0 - (-log).exponential()),
        blocks_needed: runs_needed
            .filter(|runs| *runs <= MOST_RUNS)
            .map(|runs| runs * controls as f64 / (controls + tuned) as f64),
        default_hours: saved.default_hours,
        saved: saved.saved,
        controls: saved.controls,
        net_variance: saved.net_variance,
        a_month: saved.a_month,
        last: saved.last,
    }
}

/// The log of an e-value, corrected for its share of the error rate.
fn against_bound(log_evidence: f64, log_bound: f64) -> f64 {
    log_evidence - log_bound - ERROR.logarithm()
}

/// The confidence level of comparison `number`.
fn level(number: u64) -> f64 {
    let number = number as f64;
    1.0 - ERROR / (number * (number + 1.0))
}

/// The gain of several users together by comparison `number`: its interval with the estimate, as
/// logs of the default's elapsed over the tuned runs', and its log evidence.
pub(in crate::settled) fn of_many(
    number: u64,
    logs: [Option<f64>; 3],
    (direction, evidence): (Direction, f64),
) -> Gain {
    let [low, estimate, high] = logs.map(|log| log.map(|log| 1.0 - (-log).exponential()));
    // Node-hours are left out: they would mostly be those of the user who has most.
    let (verdict, reason) = verdict(low.zip(high).map(|(low, high)| low + high), low, high, 0.0);
    let evidence = against_bound(evidence, log_bound(number, direction));
    Gain {
        verdict,
        share: estimate,
        low,
        high,
        level: level(number),
        evidence: evidence.min(MOST_LOG).exponential(),
        ..unknown(reason, 0)
    }
}

/// The bound on one direction's log evidence. The shares `1 / (n (n + 1))` of all comparisons sum to
/// 1.
pub(in crate::settled) fn log_bound(number: u64, direction: Direction) -> f64 {
    let share = match direction {
        Direction::Faster => FASTER,
        Direction::Slower => 1.0 - FASTER,
    };
    let number = number as f64;
    (number * (number + 1.0) / (ERROR * share)).logarithm()
}

/// The gain that an effect shows. `explained` says in one sentence how much of the noise is
/// explained. `is_beside` is true if the objective is not elapsed, in which case node-hours are of
/// elapsed and the effect is not.
pub(super) fn of(
    effect: &Effect,
    compared: Option<Compared>,
    is_beside: bool,
    explained: Option<String>,
) -> Gain {
    let share = |log: f64| 1.0 - (-log).exponential();
    let bounds = effect.low.zip(effect.high);
    let estimate = effect.log_ratio.map(share);
    let (low, high) = (
        bounds.map(|(low, _)| share(low)),
        bounds.map(|(_, high)| share(high)),
    );
    let saved = if is_beside { 0.0 } else { effect.saved };
    let (verdict, reason) = verdict(estimate, low, high, saved);
    let reason = [Some(reason.to_owned()), explained];
    let reason: Vec<String> = reason.into_iter().flatten().collect();
    Gain {
        verdict,
        share: estimate,
        low,
        high,
        level: level(effect.number),
        control_runs: effect.blocks,
        detectable: effect.detectable,
        runs_needed: (verdict == GainVerdict::NotYet)
            .then(|| runs_needed(effect))
            .flatten(),
        evidence: effect.log_evidence.min(MOST_LOG).exponential(),
        compared,
        ..unknown(&reason.join(" "), effect.tuned_runs)
    }
}

fn verdict(
    share: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    saved: f64,
) -> (GainVerdict, &'static str) {
    let (Some(share), Some(low), Some(high)) = (share, low, high) else {
        let reason = "Too few control runs to bound the gain.";
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
    reason = "at most 100,000 runs"
)]
fn runs_needed(effect: &Effect) -> Option<u64> {
    let each = 1.0 + effect.tuned_runs as f64 / effect.blocks as f64;
    let more = effect.blocks_needed? - effect.blocks as f64;
    Some((more * each).round().max(0.0) as u64)
}
