//! Has the engine assess studies, and stores the results.

use std::sync::Arc;

use io_autotune_engine::evidence::{Counts, Evidence, JudgedRun};
use io_autotune_engine::{
    ENGINE_VERSION, Epoch, History, Settings, SharedEvidence, Source, Space, Standing, StudyFacts,
    SurrogateCache, elapsed_of,
};
use io_autotune_model::{
    Assessment, CleanedEstimates, Effect, Elapsed, Estimate, Gain, Others, Outlook, Overview,
    Recommended, SharedGain,
};
use io_autotune_store::{
    Assessing, EVIDENCE_PAGE, EvidenceRow, KeptEvidence, Store, StoreError, StudyState,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::decide::{heard_by, of_history, restricted_to_own, sources_of, standing_of};
use crate::failed_work::{Apart, Work};
use crate::surrogates::SurrogateCaches;

/// Assesses studies whose verdicts are newer than their evidence. A study whose assessment fails is
/// set apart.
pub(crate) async fn overdue(
    store: &Store,
    reckoning: Reckoning<'_>,
    apart: &Apart,
    limit: i64,
) -> Result<(), StoreError> {
    let by = reckoning.digest();
    let resting = apart.resting_studies();
    for study_id in store.unassessed(limit, &resting, &by).await? {
        let assessed = async { renew(store.assess(study_id).await?, reckoning).await };
        apart.note(Work::Study(study_id), assessed.await)?;
    }
    Ok(())
}

/// Assesses all such studies, after rebuilding their caches from their judgements.
pub(crate) async fn all(store: &Store, settings: &Settings) -> Result<(), StoreError> {
    let surrogates = SurrogateCaches::default();
    let reckoning = Reckoning {
        settings,
        surrogates: &surrogates,
    };
    let by = reckoning.digest();
    for study_id in store.unassessed(i64::MAX, &[], &by).await? {
        let mut assessing = store.assess(study_id).await?;
        for kept in assessing.evidence().await? {
            assessing.fold_caches(kept.epoch_id).await?;
        }
        renew(assessing, reckoning).await?;
    }
    Ok(())
}

/// The settings and the surrogates by which studies are assessed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reckoning<'a> {
    /// How studies run.
    pub(crate) settings: &'a Settings,
    /// Fitted surrogates. They save time and change nothing.
    pub(crate) surrogates: &'a SurrogateCaches,
}

impl Reckoning<'_> {
    /// A digest of the release, the engine's version and the settings: an assessment of another one is
    /// renewed.
    pub(crate) fn digest(&self) -> String {
        let what = json!([env!("CARGO_PKG_VERSION"), ENGINE_VERSION, self.settings]).to_string();
        let digest = Sha256::digest(what.as_bytes());
        digest[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Renews a study's assessment and commits the transaction.
pub(crate) async fn renew(
    mut assessing: Assessing,
    reckoning: Reckoning<'_>,
) -> Result<(), StoreError> {
    let state = assessing.state().await?;
    let earlier = assessing.assessment().await?;
    let shared_earlier = earlier.as_ref().and_then(|one| one.shared.clone());
    let mut effects = earlier
        .as_ref()
        .map_or_else(Vec::new, |one| one.effects.clone());
    let (mut gain, cost_before) = match earlier {
        Some(one) if one.epoch == state.epoch => (one.gain, one.exploring_cost),
        _ => (Evidence::default().gain(state.epoch), 0.0),
    };
    let mut before = None;
    for kept in assessing.evidence().await? {
        let last = effects
            .iter()
            .filter(|effect| effect.epoch == kept.epoch)
            .max_by_key(|effect| effect.last);
        let claim = last.zip(Some(&gain).filter(|_| kept.epoch == state.epoch));
        let mut evidence = begun(&kept, before.as_ref(), claim);
        enter(&mut assessing, &kept, &mut evidence).await?;
        assessing
            .write_evidence(kept.epoch_id, &json!(evidence))
            .await?;
        let numbered = evidence.comparisons_before();
        effects.retain(|effect| effect.epoch != kept.epoch || effect.number <= numbered);
        effects.extend(evidence.effects(kept.epoch));
        // Late facts about an earlier epoch do not change the current gain.
        if kept.epoch == state.epoch {
            gain = evidence.gain(state.epoch);
        }
        before = Some(evidence);
    }
    effects.sort_by_key(|effect| (effect.epoch, effect.number));
    if let Some(source) = Source::of(&state.space, &state.history) {
        assessing
            .write_learnt(
                state.epoch_id,
                state.judged,
                source.measures(),
                &json!(source),
            )
            .await?;
    }
    let shared = shared(&mut assessing, &state, shared_earlier).await?;
    let outlook = Outlook::of(Some(&gain), shared.as_ref().map(|shared| &shared.gain));
    let renewed = assessment(&state, gain, effects, reckoning);
    let assessment = Assessment {
        overview: Some(overview_of(&state, outlook, reckoning)),
        shared,
        exploring_cost: renewed.exploring_cost.max(cost_before),
        ..renewed
    };
    assessing
        .write_assessment(&assessment, &reckoning.digest())
        .await?;
    assessing.commit().await
}

async fn enter(
    assessing: &mut Assessing,
    kept: &KeptEvidence,
    evidence: &mut Evidence,
) -> Result<(), StoreError> {
    loop {
        let runs = assessing
            .runs_after(kept.epoch_id, evidence.through)
            .await?;
        for run in &runs {
            evidence.record(&judged(run, &kept.default));
        }
        if runs.len() < EVIDENCE_PAGE {
            return Ok(());
        }
    }
}

/// A study's assessment: the stored one if it is about the current epoch.
pub(crate) async fn of(
    store: &Store,
    reckoning: Reckoning<'_>,
    state: &StudyState,
) -> Result<Assessment, StoreError> {
    let kept = store.assessment(state.study_id).await?;
    Ok(match kept {
        Some(kept) if kept.epoch == state.epoch => kept,
        kept => {
            let effects = kept.map(|one| one.effects).unwrap_or_default();
            let gain = Evidence::default().gain(state.epoch);
            assessment(state, gain, effects, reckoning)
        }
    })
}

/// The overview of a study in this state.
pub(crate) fn overview_of(
    state: &StudyState,
    outlook: Outlook,
    reckoning: Reckoning<'_>,
) -> Overview {
    let Reckoning {
        settings,
        surrogates,
    } = reckoning;
    let heard = heard_by(state);
    let (_, sources) = sources_of(state, settings, Some(surrogates));
    let fitted = surrogates.of(state.epoch_id);
    let restricted = of_history(state, heard.history);
    let history = restricted.history();
    let prior = fitted.prior(restricted.space(), &sources);
    let epoch = Epoch::restricted(&restricted, settings, state.seed)
        .with_outlook(outlook)
        .with_cache(&fitted)
        .with_prior(prior.as_ref());
    let own = restricted_to_own(state);
    let recommended = epoch.recommend(history);
    Overview {
        standing: Standing {
            others: match (heard.hearing, sources.is_empty()) {
                (Some(_), _) => Others::Runs,
                (None, false) => Others::Learnt,
                (None, true) => Others::None,
            },
            ..standing_of(&epoch, history, own.history())
        },
        tested: history.tested.len() as u64,
        default: of_default(&state.space, history),
        recommended: recommended.map(|best| Recommended {
            parametrization: best.parametrization,
            n: best.n,
            mean: best.mean,
            standard_error: best.standard_error,
        }),
        regret: epoch.expected_regret(history),
        regret_budget: settings.regret.bound(history.tally.total),
    }
}

/// The counted runs of the default in a history.
pub(crate) fn of_default(space: &Space, history: &History) -> Option<Elapsed> {
    let default = space.default();
    let mut tested = history.tested.iter();
    let found = tested.find(|one| one.parametrization == default);
    found.and_then(|one| elapsed_of(&one.elapsed))
}

/// The evidence to continue. If a run in it has a new verdict, all runs enter anew: a mean cannot
/// be downdated without rounding.
fn begun(
    kept: &KeptEvidence,
    before: Option<&Evidence>,
    claim: Option<(&Effect, &Gain)>,
) -> Evidence {
    let read = |value: &Option<Value>, claim| {
        let value = value.as_ref()?;
        Evidence::deserialize(value)
            .or_else(|_| Ranks::deserialize(value).map(|ranks| ranks.evidence(claim)))
            .ok()
    };
    match read(&kept.own, claim) {
        Some(own)
            if kept.judged.is_some_and(|run_id| run_id <= own.through) || own.lacks_sides() =>
        {
            own.anew()
        }
        Some(own) => own,
        None => {
            let before = before.cloned().or_else(|| read(&kept.earlier, None));
            let before = before.unwrap_or_default();
            match &kept.continues {
                Some(change) => before.continued(change.epoch, |key| change.carried(key)),
                None => before.next_epoch(),
            }
        }
    }
}

/// The evidence as 0.2.0 kept it.
#[derive(Deserialize)]
struct Ranks {
    through: i64,
    before: u64,
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    number: Option<u64>,
}

impl Ranks {
    fn evidence(&self, claim: Option<(&Effect, &Gain)>) -> Evidence {
        let numbered = self.choices.iter().filter(|one| one.number.is_some());
        let comparisons = self.before + numbered.count() as u64;
        Evidence::after_ranks(self.through, comparisons, claim)
    }
}

fn judged<'a>(run: &'a EvidenceRow, default: &'a str) -> JudgedRun<'a> {
    JudgedRun {
        ordinal: run.run_id,
        started: run.started,
        slowness: run.slowness,
        phase: run.phase,
        role: run.role,
        control_chance: run.control_chance,
        given: &run.given,
        default,
        counts: run.counts.as_ref().map(|counts| Counts {
            key: &counts.key,
            elapsed: counts.value,
            beside: counts.beside,
            cut_short: counts.cut_short,
        }),
        nodes: run.nodes,
    }
}

fn assessment(
    state: &StudyState,
    gain: Gain,
    effects: Vec<Effect>,
    reckoning: Reckoning<'_>,
) -> Assessment {
    let restricted = restricted_to_own(state);
    // Every question below is about the study's own runs, which are fitted once.
    let is_alone = state.siblings.is_empty() && state.sources.is_empty();
    let surrogates = match is_alone {
        true => reckoning.surrogates.of(state.epoch_id),
        false => Arc::<SurrogateCache>::default(),
    };
    let epoch = Epoch::restricted(&restricted, reckoning.settings, state.seed)
        .with_outlook(gain.outlook())
        .with_cache(&surrogates);
    let drift = state.opened.drift.as_ref();
    let facts = StudyFacts {
        study_id: state.study_id,
        accepts_mixed: state.accepts_mixed,
        pinned: state.pin.is_some(),
        observed: &state.effects,
        drift: drift.map(|_| state.opened.why.as_str()),
        objective: &state.objective,
    };
    let told = |estimate: Estimate| estimate.told(&state.objective);
    let cleaned = epoch.cleaned_estimates(restricted.history());
    Assessment {
        epoch: state.epoch,
        overview: None,
        gain,
        exploring_cost: epoch.expected_regret(restricted.history()),
        effects,
        findings: epoch.findings(restricted.history(), facts),
        objective: state.objective.clone(),
        elapsed: epoch.elapsed_beside(restricted.history()),
        shared: None,
        cleaned: cleaned.map(|cleaned| CleanedEstimates {
            default: told(cleaned.default),
            recommended: cleaned.recommended.map(told),
            ..cleaned
        }),
    }
}

/// The gain that a study's runs show together with those of the studies that share with it.
/// `earlier` is the last claim of it.
async fn shared(
    assessing: &mut Assessing,
    state: &StudyState,
    earlier: Option<SharedGain>,
) -> Result<Option<SharedGain>, StoreError> {
    let Some(by) = state.share.clone().filter(|_| !state.siblings.is_empty()) else {
        return Ok(None);
    };
    let studies = state.siblings.iter().map(|one| one.study_id);
    let mut studies: Vec<i64> = studies.chain([state.study_id]).collect();
    studies.sort_unstable();
    let number = match earlier.filter(|earlier| earlier.by == by) {
        Some(earlier) => {
            let has_left = earlier.studies.iter().any(|one| !studies.contains(one));
            earlier.number + u64::from(has_left)
        }
        None => 1,
    };
    let kept = assessing.evidence_of(&studies, &state.objective).await?;
    let all = (0..).zip(kept.values());
    let all = all.fold(SharedEvidence::new(number), |all, (member, epochs)| {
        // The draws of an epoch from before 0.3 are not known: it is left out.
        let read = |one: &Option<Value>| Evidence::deserialize(one.as_ref()?).ok();
        let epochs = epochs.iter().map(|one| read(one).unwrap_or_default());
        all.with(member, epochs.collect())
    });
    Ok(Some(SharedGain {
        by,
        gain: all.gain(),
        number,
        studies,
    }))
}

#[cfg(test)]
mod tests {
    use io_autotune_engine::evidence::Counts;
    use io_autotune_engine::{Phase, Role};
    use io_autotune_model::GainVerdict;

    use super::*;

    /// Evidence of a study that settles: `runs` of them, with control runs that were drawn one in two.
    fn settled(runs: i64) -> Evidence {
        let mut evidence = Evidence::default();
        for ordinal in 1..=runs {
            let is_control = ordinal % 2 == 0;
            evidence.record(&JudgedRun {
                ordinal,
                started: ordinal * 3_600_000_000,
                slowness: 0.0,
                phase: Phase::Settled,
                role: if is_control {
                    Role::Control
                } else {
                    Role::Settled
                },
                control_chance: Some(0.5),
                given: if is_control { "{}" } else { r#"{"a":2}"# },
                default: "{}",
                counts: Some(Counts {
                    key: if is_control { "{}" } else { r#"{"a":2}"# },
                    elapsed: if is_control { 100.0 } else { 70.0 } + ordinal as f64 % 5.0,
                    beside: None,
                    cut_short: false,
                }),
                nodes: 1,
            });
        }
        evidence
    }

    fn kept(own: Option<Value>, earlier: Option<Value>) -> KeptEvidence {
        KeptEvidence {
            epoch_id: 1,
            epoch: 1,
            default: "{}".to_owned(),
            own,
            earlier,
            continues: None,
            judged: None,
        }
    }

    /// As 0.2.0 kept it, without the sums.
    fn by_ranks() -> Value {
        json!({
            "through": 400, "before": 1, "places": 390, "stretch": null,
            "choices": [
                {"key": "{\"a\":1}", "is_default": false, "number": 2},
                {"key": "{}", "is_default": true, "number": null},
                {"key": "{\"a\":2}", "is_default": false, "number": 3},
            ],
        })
    }

    #[test]
    fn what_0_2_0_claimed_stays_and_its_comparisons_are_numbered_on() {
        let known = settled(60);
        let (effect, gain) = (known.effect(1).unwrap(), known.gain(1));
        assert_eq!(gain.verdict, GainVerdict::Faster);

        let claim = Some((&effect, &gain));
        let begun = begun(&kept(Some(by_ranks()), None), None, claim);
        assert_eq!((begun.through, begun.comparisons_before()), (400, 3));
        assert_eq!(begun.gain(1).verdict, GainVerdict::Faster);
        assert!(begun.gain(1).reason.contains("0.2"));
    }

    #[test]
    fn an_epoch_after_one_of_0_2_0_is_numbered_on_too() {
        let next = begun(&kept(None, Some(by_ranks())), None, None);
        assert_eq!((next.through, next.comparisons_before()), (0, 3));
        assert_eq!(next.gain(2).verdict, GainVerdict::NotYet);
    }

    #[test]
    fn evidence_goes_on_from_what_is_kept() {
        let known = settled(20);
        let own = Some(json!(known));
        assert_eq!(begun(&kept(own.clone(), None), None, None), known);
        let revised = KeptEvidence {
            judged: Some(7),
            ..kept(own, None)
        };
        assert_eq!(begun(&revised, None, None), known.anew());
    }
}
