//! What may be said of a study's gain.

use serde::{Deserialize, Serialize};

use super::comparison::{ERROR, Effect};

/// A gain or a loss of less than this share is called no effect, once the interval says so.
const WORTH: f64 = 0.03;
/// Larger evidence is written as its exponential.
const MOST_LOG: f64 = 700.0;

/// What the interval and the node-hours leave to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GainVerdict {
    /// The chosen parametrization is faster than the default.
    Faster,
    /// It is slower.
    Slower,
    /// The difference, if any, is less than 3 %.
    NoEffect,
    /// Typical runs and node-hours disagree.
    Unclear,
    /// Nothing can be claimed yet.
    NotYet,
}

/// The gain of the chosen parametrization against the control runs near its runs, as a share of the
/// default's elapsed: 0.2 is a run that takes a fifth less. Interval and claim hold for all looks at
/// the study together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// What may be claimed.
    pub verdict: GainVerdict,
    /// The verdict's ground, in one sentence.
    pub reason: String,
    /// The estimate.
    pub share: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The level of the interval over all looks of the study's life.
    pub level: f64,
    /// Tuned runs that were compared.
    pub tuned_runs: u64,
    /// Control runs that they were compared with.
    pub control_runs: u64,
    /// The smallest gain that so many runs would have shown, with probability 0.8.
    pub detectable: Option<f64>,
    /// About so many more runs show a gain of the size of the estimate.
    pub runs_needed: Option<u64>,
    /// An e-value against no effect: 20 is what a 5 % error rate asks of one study.
    pub evidence: f64,
}

impl Gain {
    /// A gain of which nothing is known, and why.
    pub(super) fn unknown(reason: String, tuned_runs: u64) -> Self {
        Gain {
            verdict: GainVerdict::NotYet,
            reason,
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

    /// The gain of a study that has chosen the default.
    pub(super) fn of_default(tuned_runs: u64) -> Self {
        let reason = "The default itself is what was chosen: there is nothing to gain.";
        Gain {
            verdict: GainVerdict::NoEffect,
            share: Some(0.0),
            low: Some(0.0),
            high: Some(0.0),
            ..Gain::unknown(reason.to_owned(), tuned_runs)
        }
    }

    pub(super) fn of(effect: &Effect) -> Self {
        let share = |log: f64| 1.0 - (-log).exp();
        let bounds = effect.low.zip(effect.high);
        let number = effect.number as f64;
        let gain = Gain {
            share: effect.log_ratio.map(share),
            low: bounds.map(|(low, _)| share(low)),
            high: bounds.map(|(_, high)| share(high)),
            level: 1.0 - ERROR / (number * (number + 1.0)),
            control_runs: effect.blocks,
            detectable: effect.detectable,
            evidence: effect.log_evidence.min(MOST_LOG).exp(),
            ..Gain::unknown(String::new(), effect.tuned_runs)
        };
        gain.judged(effect)
    }

    fn judged(mut self, effect: &Effect) -> Self {
        let (verdict, reason) = match (self.share, self.low, self.high) {
            (Some(share), Some(low), Some(high)) => {
                if low <= 0.0 && high >= 0.0 {
                    if low >= -WORTH && high <= WORTH {
                        let reason = "Whatever the difference is, it is less than 3 %.";
                        (GainVerdict::NoEffect, reason)
                    } else {
                        (GainVerdict::NotYet, "The interval includes no effect.")
                    }
                } else if effect.saved * share < 0.0 {
                    (GainVerdict::Unclear, disagreement(share))
                } else if share > 0.0 {
                    let reason = "The whole interval is above no effect.";
                    (GainVerdict::Faster, reason)
                } else {
                    let reason = "The whole interval is below no effect.";
                    (GainVerdict::Slower, reason)
                }
            }
            _ => {
                let reason = "Too few control runs near the tuned ones to bound the gain.";
                (GainVerdict::NotYet, reason)
            }
        };
        self.verdict = verdict;
        reason.clone_into(&mut self.reason);
        if verdict == GainVerdict::NotYet {
            self.runs_needed = runs_needed(effect);
        }
        self
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

fn disagreement(share: f64) -> &'static str {
    if share > 0.0 {
        "Typical runs and node-hours disagree: a typical run is faster, yet slow runs cost more than that."
    } else {
        "Typical runs and node-hours disagree: a typical run is slower, yet slow runs are fewer."
    }
}
