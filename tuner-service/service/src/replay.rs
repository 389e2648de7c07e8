//! Replays a decision from its stored inputs.

use std::sync::{Arc, OnceLock};

use io_autotune_engine::{
    Decided, ENGINE_VERSION, History, Outlook, Parametrization, Pending, Recipe, Settings,
    SharedSource, Source, Steering, SurrogateCache,
};
use io_autotune_protocol::{Replay, Suggested};
use io_autotune_store::{EpochInputs, RunRow, Store, StoreError};
use serde::Deserialize;

use crate::decide::{BegunFrom, Inputs, Other, choose, in_words};
use crate::joined_history::{Heard, heard};

#[derive(Debug, Deserialize)]
pub(crate) struct Kept {
    engine_version: String,
    seed: String,
    draw: Option<f64>,
    #[serde(default)]
    outlook: Outlook,
    #[serde(deserialize_with = "io_autotune_engine::stored_settings")]
    settings: Settings,
    pub(crate) judged: i64,
    /// The epochs of the studies that shared with it.
    #[serde(default)]
    pub(crate) others: Vec<Other>,
    /// The epochs of the sources of its prior.
    #[serde(default)]
    pub(crate) sources: Vec<BegunFrom>,
    /// The accelerator's recipes that fitted.
    #[serde(default)]
    recipes: Vec<Recipe>,
    pending: Vec<Pending>,
    #[serde(rename = "overrides")]
    steering: Steering,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum NothingToReplay {
    #[error("the run had no start: there was nothing to decide")]
    NoStart,
    #[error("it was decided by an earlier version, which did not keep all that it was made from")]
    Earlier,
    #[error("what it was made from was removed by retention on {0}: nothing to replay")]
    Removed(String),
    #[error(
        "it was made from the runs of other studies too, which the service that it was exported from has: nothing to replay"
    )]
    Elsewhere,
    #[error("what it was made from cannot be read: {0}")]
    Unreadable(String),
}

impl Kept {
    pub(crate) fn read(suggestion: &serde_json::Value) -> Result<Self, NothingToReplay> {
        if suggestion.get("no_start").is_some() {
            return Err(NothingToReplay::NoStart);
        }
        if let Some(at) = suggestion.get("removed_at") {
            let at = at.as_str().unwrap_or_default();
            return Err(NothingToReplay::Removed(at.chars().take(10).collect()));
        }
        if suggestion.get("others_elsewhere").is_some()
            || suggestion.get("sources_elsewhere").is_some()
        {
            return Err(NothingToReplay::Elsewhere);
        }
        if suggestion.get("judged").is_none() || suggestion.get("overrides").is_none() {
            return Err(NothingToReplay::Earlier);
        }
        Self::deserialize(suggestion)
            .map_err(|error| NothingToReplay::Unreadable(error.to_string()))
    }

    pub(crate) fn choose(
        &self,
        epoch: &EpochInputs,
        history: &History,
        others: &[&History],
        sources: &[Arc<SharedSource>],
    ) -> Decided {
        choose(&Inputs {
            space: &epoch.space,
            history,
            others,
            sources,
            recipes: &self.recipes,
            pending: &self.pending,
            settings: &self.settings,
            seed: epoch.seed,
            draw: self.draw,
            outlook: self.outlook,
            inherited: &epoch.inherited,
            is_warm_started: epoch.is_warm_started,
            steering: &self.steering,
            recommended: &OnceLock::new(),
            surrogates: &SurrogateCache::default(),
        })
    }

    fn note(&self, epoch: &EpochInputs) -> Option<String> {
        if self.engine_version != ENGINE_VERSION {
            return Some(format!(
                "it was decided by {} and recomputed by {ENGINE_VERSION}: another version may answer otherwise",
                self.engine_version
            ));
        }
        (self.seed != epoch.seed.to_string()).then(|| {
            format!(
                "it was made from the seed {} and its epoch's is {}",
                self.seed, epoch.seed
            )
        })
    }
}

/// The evidence at a run's start.
#[derive(Debug)]
pub(crate) struct Known {
    /// The epoch's history.
    pub(crate) history: History,
    /// The histories of the studies that shared with it.
    pub(crate) others: Vec<History>,
    /// The sources of its prior.
    pub(crate) sources: Vec<Arc<SharedSource>>,
}

impl Known {
    /// Reads the judgements of that time and adds them up.
    pub(crate) async fn read(
        store: &Store,
        kept: &Kept,
        epoch: &EpochInputs,
    ) -> Result<Self, StoreError> {
        let history = store.history_at(epoch.epoch_id, kept.judged).await?;
        let mut others = Vec::with_capacity(kept.others.len());
        for other in &kept.others {
            others.push(store.history_at(other.epoch_id, other.judged).await?);
        }
        let mut sources = Vec::with_capacity(kept.sources.len());
        for source in &kept.sources {
            let BegunFrom { epoch: of, user } = *source;
            let learnt = store.history_at(of.epoch_id, of.judged).await?;
            let source = Source::of(&epoch.space, &learnt);
            sources.extend(source.map(|source| match user {
                Some(user) => Arc::new(SharedSource::of_user(source, user)),
                None => Arc::new(source.into()),
            }));
        }
        Ok(Self {
            history,
            others,
            sources,
        })
    }

    /// The own and the shared history, as the decision had them.
    pub(crate) fn heard(&self, default: &Parametrization) -> Heard<'_> {
        heard(&self.history, &self.others, default)
    }
}

/// Compares a run's parametrization with the result of its stored inputs, or gives the reason why
/// there is nothing to compare.
pub(crate) fn replay(
    run: &RunRow,
    kept: Result<(Kept, EpochInputs, Known), NothingToReplay>,
) -> Replay {
    let given = Suggested {
        phase: run.phase,
        role: run.role,
        parametrization: run.parametrization.clone(),
        reason: run.reason.clone(),
    };
    let (recomputed, note) = match kept {
        Ok((kept, epoch, known)) => {
            let others: Vec<&History> = known.others.iter().collect();
            let decided = kept.choose(&epoch, &known.history, &others, &known.sources);
            let suggestion = decided.suggestion;
            let recomputed = Suggested {
                phase: suggestion.phase,
                role: suggestion.role,
                parametrization: suggestion.parametrization,
                reason: in_words(&suggestion.reason, &epoch.objective),
            };
            (Some(recomputed), kept.note(&epoch))
        }
        Err(nothing) => (None, Some(nothing.to_string())),
    };
    Replay {
        run_id: run.run_id,
        restart_count: run.job.restart_count,
        same: recomputed.as_ref() == Some(&given),
        given: Some(given),
        recomputed,
        note,
    }
}

/// The answer in the place of a replay for a run whose reason may not be shown yet.
pub(crate) fn untold(run: &RunRow) -> Replay {
    Replay {
        run_id: run.run_id,
        restart_count: run.job.restart_count,
        given: None,
        recomputed: None,
        same: false,
        note: Some("what it was given is told once it has ended, and with it the runs that were in flight at its start".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(suggestion: serde_json::Value) -> NothingToReplay {
        Kept::read(&suggestion).unwrap_err()
    }

    #[test]
    fn what_was_not_decided_or_not_kept_cannot_be_replayed() {
        let no_start = json!({ "no_start": "the start had no answer" });
        assert_eq!(refused(no_start), NothingToReplay::NoStart);
        let earlier = json!({ "seed": "7", "settings": {}, "pending": [], "tally": {} });
        assert_eq!(refused(earlier), NothingToReplay::Earlier);
        let trimmed = json!({ "control_chance": 0.5, "removed_at": "2026-11-25T03:04:05.6+00:00" });
        let text = refused(trimmed).to_string();
        assert!(
            text.contains("removed by retention on 2026-11-25: nothing to replay"),
            "{text}"
        );
        let exported = json!({ "judged": 3, "overrides": {}, "others_elsewhere": 4 });
        assert_eq!(refused(exported), NothingToReplay::Elsewhere);
        let broken = json!({ "judged": "x", "overrides": {} });
        assert!(matches!(refused(broken), NothingToReplay::Unreadable(_)));
    }

    /// A replay decides as the run's own engine did: a setting that is younger than the run means
    /// what was done without it.
    #[test]
    fn a_setting_that_did_not_exist_yet_means_what_was_done_then() {
        let steering = serde_json::to_value(Steering::default()).unwrap();
        let stored = json!({
            "engine_version": "io-autotune-engine 12", "seed": "7", "judged": 0, "pending": [],
            "settings": { "method": "robert2020", "robert2020": { "mutation_rate": 0.3 } },
            "overrides": steering,
        });
        let settings = Kept::read(&stored).unwrap().settings;
        let of = |settings: &Settings| serde_json::to_value(&settings.robert2020).unwrap();
        assert_eq!(of(&settings)["revisits"], "never");
        assert_ne!(of(&Settings::default())["revisits"], "never");
    }
}
