//! The evidence of an epoch's gain: its tuned runs against its control runs, and the resulting
//! effect.
//!
//! The claim is about the *policy*: runs with the parametrization that was recommended at their
//! start, against control runs. So a new recommendation costs no evidence. Only drawn runs (settled
//! and control) are compared; other chosen runs (restarts, bursts, pinned) count in node-hours.
//!
//! The parametrization recommended while the search [paused for a proof](crate::ProofSettings) has
//! a comparison of its own: the search may have found a better one since, and an interval is of one
//! or the other.
//!
//! Runs enter in the order of their starts, because the order of ends would sort concurrent runs by
//! elapsed. The state has a constant size.

pub(super) mod gain;
mod hours;
pub(super) mod labels;
#[cfg(test)]
mod tests;

use io_autotune_model::{Compared, Effect, Gain, Moments, Phase, Role};
use io_autotune_search::math::Portable;
use serde::{Deserialize, Serialize};

use self::hours::{Hours, Saved, Timed};
use self::labels::{Before, Labels, Noise};
use crate::settled::mean_interval::elapsed_of;

/// A run with a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedRun<'a> {
    /// The run's place in the order of starts.
    pub ordinal: i64,
    /// The start, in microseconds since 1970.
    pub started: i64,
    /// How other runs fared in the half hour before: the typical log of their elapsed over the
    /// expected elapsed of each; 0 if that is not known.
    pub slowness: f64,
    /// The study's phase at its start.
    pub phase: Phase,
    /// The run's role in that phase.
    pub role: Role,
    /// The probability with which it was drawn to be a control run; none if nothing was drawn.
    pub control_chance: Option<f64>,
    /// The key of the parametrization that the run was given, also if another was applied in the
    /// end.
    pub given: &'a str,
    /// The key of the epoch's default.
    pub default: &'a str,
    /// The result for which the run counts; none if it does not count.
    pub counts: Option<Counts<'a>>,
    /// The number of nodes.
    pub nodes: u32,
}

/// The result of a counted run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts<'a> {
    /// The key of the parametrization that was really applied.
    pub key: &'a str,
    /// The value of the study's objective, smaller being better: seconds of elapsed, or another
    /// objective's value.
    pub elapsed: f64,
    /// Elapsed seconds if the objective is another; node-hours are computed from them.
    pub beside: Option<f64>,
    /// True if the time limit ended the run, so that `elapsed` is a lower bound.
    pub cut_short: bool,
}

/// The evidence of an epoch's runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The ordinal of the last recorded run.
    pub through: i64,
    /// The ordinal of the last run before these: an earlier version of the engine compared that run
    /// and those before it.
    since: i64,
    /// The number of comparisons before this one: of earlier epochs, and of an earlier version.
    before: u64,
    /// The claim that was made before these runs.
    former: Option<Former>,
    places: u64,
    /// True if the objective is another than elapsed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_beside: bool,
    chosen: Option<Chosen>,
    /// The comparison of the proof, before the search had ended; none while the proof lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Box<Proof>>,
    /// True if the latest drawn run was made before the search had ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_proof: bool,
    labels: Labels,
    /// Elapsed of the compared runs. None before there is one, and in evidence kept before version
    /// 0.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sides: Option<Sides>,
    hours: Hours,
}

/// Moments of the compared runs' elapsed, without runs that their time limit ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sides {
    control: Moments,
    tuned: Moments,
}

impl Sides {
    fn compared(&self, before_choice: bool) -> Option<Compared> {
        Some(Compared {
            control: elapsed_of(&self.control)?,
            tuned: elapsed_of(&self.tuned)?,
            before_choice,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Proof {
    key: String,
    labels: Labels,
    #[serde(default)]
    sides: Sides,
    saved: Saved,
}

/// The parametrization chosen last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Chosen {
    key: String,
    is_default: bool,
}

/// A claim that rests on other runs than these: those of the epoch before or, as until version
/// 0.2.0, on the ranks of control runs among the tuned runs near them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Former {
    key: String,
    gain: Gain,
}

impl Evidence {
    /// The evidence of the next epoch: empty, with the comparisons numbered on.
    #[must_use]
    pub fn next_epoch(&self) -> Self {
        Evidence {
            before: self.comparisons()
                + u64::from(self.labels.controls() + self.labels.tuned() > 0),
            ..Evidence::default()
        }
    }

    /// The evidence of the next epoch if the study stays settled although its space has changed.
    /// The claim stays while nothing else is chosen and the runs since then claim nothing.
    /// `carried` gives the key that a parametrization has in the next epoch's space, if that space
    /// offers it.
    #[must_use]
    pub fn continued(&self, epoch: i32, carried: impl FnOnce(&str) -> Option<String>) -> Self {
        let gain = Some(self.gain(epoch)).filter(|gain| gain.verdict.is_resolved());
        let key = self.chosen.as_ref().and_then(|chosen| carried(&chosen.key));
        Evidence {
            former: key.zip(gain).map(|(key, gain)| Former {
                key,
                gain: gain::kept(&gain),
            }),
            ..self.next_epoch()
        }
    }

    /// The evidence of the same epoch, emptied.
    #[must_use]
    pub fn anew(&self) -> Self {
        Evidence {
            through: self.since,
            since: self.since,
            before: self.before,
            former: self.former.clone(),
            ..Evidence::default()
        }
    }

    /// The evidence of an epoch whose runs until `through` an earlier version compared, by the
    /// ranks of control runs. `last` is its last effect, if any, with the gain: the claim stays
    /// while nothing else is chosen and the runs since then claim nothing.
    pub fn after_ranks(through: i64, comparisons: u64, last: Option<(&Effect, &Gain)>) -> Self {
        Evidence {
            through,
            since: through,
            before: comparisons,
            former: last
                .filter(|(_, gain)| gain.verdict.is_resolved())
                .map(|(effect, gain)| Former {
                    key: effect.parametrization.clone(),
                    gain: gain::former(gain),
                }),
            ..Evidence::default()
        }
    }

    /// Returns true if the evidence was stored by a version that did not keep the compared runs'
    /// elapsed: the runs have to enter anew.
    pub fn lacks_sides(&self) -> bool {
        self.sides.is_none() && self.labels.controls() + self.labels.tuned() > 0
    }

    /// The number of comparisons of the study before this epoch's.
    pub fn comparisons_before(&self) -> u64 {
        self.before
    }

    /// Records a run. Runs must come in the order of their ordinals.
    pub fn record(&mut self, run: &JudgedRun<'_>) {
        self.through = run.ordinal;
        let counts = run
            .counts
            .filter(|one| one.elapsed.is_finite() && one.elapsed > 0.0);
        let Some(counts) = counts else {
            return;
        };
        self.places += 1;
        self.is_beside |= counts.beside.is_some();
        let timed = Timed {
            place: self.places,
            started: run.started,
            seconds: counts.beside.unwrap_or(counts.elapsed),
            nodes: f64::from(run.nodes),
        };
        let log = (!counts.cut_short).then(|| counts.elapsed.logarithm());
        let before = Before {
            started: run.started,
            nodes: run.nodes,
            slowness: run.slowness,
        };
        let is_settled = run.role == Role::Settled;
        let chance = run.control_chance.filter(|one| 0.0 < *one && *one < 1.0);
        let is_drawn = run.phase == Phase::Settled || chance.is_some();
        let is_control = run.role == Role::Control && is_drawn;
        if is_settled || is_control {
            self.continue_or_begin(run.phase);
        }
        // A pinned parametrization is not a choice, nor is the best that was known before the
        // choice.
        if is_settled {
            self.chosen = Some(Chosen {
                key: run.given.to_owned(),
                is_default: run.given == run.default,
            });
        }
        let is_chosen = matches!(run.role, Role::Settled | Role::BestKnown | Role::Pinned);
        if is_chosen && counts.key != run.default {
            self.hours.choose(timed, is_settled);
        }
        if is_control {
            self.hours.control(timed);
        }
        // The parametrization that was applied in the end makes no difference: only the draw makes
        // labels comparable.
        match chance {
            Some(chance) if is_settled || is_control => {
                let sides = self.sides.get_or_insert_default();
                match log {
                    Some(log) => {
                        self.labels.enter(is_control, Some(log), chance, before);
                        let side = match is_control {
                            true => &mut sides.control,
                            false => &mut sides.tuned,
                        };
                        // The value is positive and finite, as checked above; a sum that is not
                        // would leave it out.
                        let _ = side.push(counts.elapsed);
                    }
                    None => {
                        let bound = counts.elapsed.logarithm();
                        self.labels.enter_cut(is_control, bound, chance, before);
                    }
                }
            }
            _ => match run.role {
                Role::Settled => self.labels.observe(false, log, before),
                Role::Baseline | Role::Control => self.labels.observe(true, log, before),
                _ => {}
            },
        }
    }

    /// Begins another comparison with the settled phase.
    fn continue_or_begin(&mut self, phase: Phase) {
        let was_proof = std::mem::replace(&mut self.is_proof, phase != Phase::Settled);
        if self.is_proof && !was_proof && self.labels.controls() + self.labels.tuned() == 0 {
            self.labels = self.labels.begin(true);
        }
        if !was_proof || self.is_proof {
            return;
        }
        let saved = self.hours.saved().filter(|_| self.is_compared());
        if let (Some(chosen), Some(saved)) = (&self.chosen, saved) {
            let labels = std::mem::take(&mut self.labels);
            self.labels = labels.begin(false);
            self.hours = Hours::default();
            self.proof = Some(Box::new(Proof {
                key: chosen.key.clone(),
                labels,
                sides: self.sides.take().unwrap_or_default(),
                saved,
            }));
        }
    }

    /// The gain of the recommended parametrization. `epoch` is the epoch's number in the study.
    pub fn gain(&self, epoch: i32) -> Gain {
        let Some(chosen) = &self.chosen else {
            let nothing = format!("Epoch {epoch} has not chosen a parametrization yet.");
            return self
                .former_claim(None)
                .unwrap_or_else(|| gain::unknown(&nothing, 0));
        };
        // Evidence kept by earlier versions may count a pin as a choice, or the best known before
        // there was one.
        if chosen.is_default && self.labels.tuned() > 0 {
            return gain::of_default(self.hours.runs());
        }
        let compared = self.noise().and_then(|noise| {
            let effect = self.effect_in(epoch, &noise)?;
            let sides = self.sides.as_ref();
            let sides = sides.and_then(|sides| sides.compared(self.is_proof));
            Some(gain::of(&effect, sides, self.is_beside, noise.explained()))
        });
        let own = compared.unwrap_or_else(|| {
            let reason = "No control run was made near the runs of the chosen parametrization yet.";
            gain::unknown(reason, self.hours.runs())
        });
        let earlier = || {
            self.proven(epoch)
                .or_else(|| self.former_claim(Some(&chosen.key)))
        };
        if own.verdict.is_resolved() {
            own
        } else {
            earlier().unwrap_or(own)
        }
    }

    /// The effects of the epoch's comparisons, the latest last. `epoch` is its number in the study.
    pub fn effects(&self, epoch: i32) -> impl Iterator<Item = Effect> {
        self.proof_effect(epoch)
            .into_iter()
            .chain(self.effect(epoch))
    }

    /// The effect of the epoch's current comparison, if there is one.
    pub fn effect(&self, epoch: i32) -> Option<Effect> {
        self.effect_in(epoch, &self.noise()?)
    }

    /// The noise of the compared runs; none before there is a control run and a tuned run.
    fn noise(&self) -> Option<Noise> {
        self.is_compared().then(|| self.labels.noise())?
    }

    fn effect_in(&self, epoch: i32, noise: &Noise) -> Option<Effect> {
        let key = &self.chosen.as_ref()?.key;
        let saved = self.hours.saved()?;
        let number = self.comparisons() + 1;
        Some(gain::effect(
            epoch,
            key,
            number,
            &self.labels,
            noise,
            &saved,
        ))
    }

    fn proof_effect(&self, epoch: i32) -> Option<Effect> {
        let proof = self.proof.as_ref()?;
        let Proof {
            key, labels, saved, ..
        } = proof.as_ref();
        let (number, noise) = (self.before + 1, labels.noise()?);
        Some(gain::effect(epoch, key, number, labels, &noise, saved))
    }

    /// The gain that was claimed before the search had ended, if it was.
    fn proven(&self, epoch: i32) -> Option<Gain> {
        let effect = self.proof_effect(epoch)?;
        let said = "Claimed before the search had ended, of what was recommended then.";
        let proof = self.proof.as_ref();
        let sides = proof.and_then(|proof| proof.sides.compared(true));
        let gain = gain::of(&effect, sides, self.is_beside, Some(said.to_owned()));
        gain.verdict.is_resolved().then_some(gain)
    }

    /// Returns true if the comparison is of the parametrization recommended before the search has
    /// ended.
    pub fn is_proof(&self) -> bool {
        self.is_proof
    }

    /// The number of comparisons before the current one.
    fn comparisons(&self) -> u64 {
        self.before + u64::from(self.proof.is_some())
    }

    /// Returns true if there are a control run and a tuned run.
    pub(super) fn is_compared(&self) -> bool {
        self.labels.controls() > 0 && self.labels.tuned() > 0
    }

    /// The labels and elapsed times of the drawn runs of the current comparison.
    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The same for the comparison before it, if there was one in the epoch.
    pub(super) fn labels_before(&self) -> Option<&Labels> {
        self.proof.as_ref().map(|proof| &proof.labels)
    }

    fn former_claim(&self, key: Option<&str>) -> Option<Gain> {
        let former = self.former.as_ref()?;
        let stays = key.is_none_or(|key| key == former.key);
        stays.then(|| former.gain.clone())
    }
}
