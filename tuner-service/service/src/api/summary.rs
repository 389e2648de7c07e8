//! Converts the store's rows to API answers.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use io_autotune_engine::{
    Chosen, Epoch, History, Importance, LEAST_MEMBERS, MethodName, Parametrization, Phase, Rule,
    Silence, Space, Standing, Steering, elapsed_of,
};
use io_autotune_model::text::seconds;
use io_autotune_model::{
    Assessment, Elapsed, Finding, FindingKind, Headroom, OTHERS_RATIO, Objective, Overview,
};
use io_autotune_protocol::{
    BegunFrom, Cleaned, GainSummary, ImportanceShare, ImportanceSummary, OpenedSummary,
    OrderSummary, QuarantineSummary, RegretSummary, RunDetail, RunState, RunSummary,
    SharingSummary, StudyDetail, StudySummary, TestedSummary,
};
use io_autotune_store::{RunRow, StoreError, StudyFilter, StudyRow, StudyState};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::deciding::{Asker, Deciding};
use crate::api::{ApiError, Service};
use crate::assess;
use crate::decide::{heard_by, of_history};
use crate::default_accelerator;
use crate::exploring::{self, Today};
use crate::joined_history::Hearing;
use crate::limits::known_limit;
use crate::reader::Reader;

/// The most studies of a page whose overviews are computed, because none is stored. A page ends before
/// the next one: it takes some milliseconds each.
const COMPUTED: usize = 25;

/// A page of studies. Each has the results that its last verdict stored, with its runs in flight
/// and its orders as they are now. A first page of one study is made as [`study`] makes it. A page may
/// be shorter than its limit; the last one is empty.
pub(crate) async fn studies(
    service: &Service,
    asker: Asker,
    filter: &StudyFilter,
) -> Result<Vec<StudySummary>, ApiError> {
    let mut rows = service.store.studies(filter).await?;
    if rows.len() == 1
        && filter.after.is_none()
        && let Some(row) = rows.pop()
    {
        return Ok(vec![study(service, asker, row).await?]);
    }
    let by = service.reckoning().digest();
    let numbers: Vec<i64> = rows.iter().map(|row| row.study_id).collect();
    let today = spent_today(service, &numbers).await?;
    let mut deciding = Deciding::default();
    let mut summaries = Vec::with_capacity(rows.len());
    let mut computed = 0;
    for row in rows {
        let may_compute = computed < COMPUTED;
        let known = match kept(&row, &by, may_compute) {
            Some(known) => known,
            None if !may_compute => break,
            None => {
                computed += 1;
                let state = service.store.study_state(row.study_id).await?;
                assessed(service, &state).await?
            }
        };
        let decided_by = deciding.of(service, asker, &row).await?;
        let today = today.as_ref();
        summaries.push(shown(service, asker, row, known, decided_by, today));
    }
    Ok(summaries)
}

/// A study as a page of several has it, where what is stored is of this release and these settings.
pub(crate) async fn in_brief(
    service: &Service,
    asker: Asker,
    row: StudyRow,
) -> Result<StudySummary, ApiError> {
    let by = service.reckoning().digest();
    let known = match kept(&row, &by, true) {
        Some(known) => known,
        None => {
            let state = service.store.study_state(row.study_id).await?;
            assessed(service, &state).await?
        }
    };
    let decided_by = Deciding::default().of(service, asker, &row).await?;
    let today = spent_today(service, &[row.study_id]).await?;
    Ok(shown(
        service,
        asker,
        row,
        known,
        decided_by,
        today.as_ref(),
    ))
}

/// What is spent today of the budgets for exploring to which these studies' runs are charged; `None`:
/// there are none.
async fn spent_today(service: &Service, studies: &[i64]) -> Result<Option<Today>, StoreError> {
    Today::of(&service.store, service.budgets(), studies).await
}

/// A study, with the studies with which it shares and the accelerator of jobs that name none, for
/// which its runs and those of others are read. What others decide is as it is now.
pub(crate) async fn study(
    service: &Service,
    asker: Asker,
    row: StudyRow,
) -> Result<StudySummary, ApiError> {
    let state = service.store.study_state(row.study_id).await?;
    study_of(service, asker, row, &state, heard_by(&state).hearing).await
}

async fn study_of(
    service: &Service,
    asker: Asker,
    row: StudyRow,
    state: &StudyState,
    hearing: Option<Hearing>,
) -> Result<StudySummary, ApiError> {
    let by = service.reckoning().digest();
    let is_alone = state.siblings.is_empty() && state.sources.is_empty();
    let known = match kept(&row, &by, true).filter(|_| is_alone) {
        Some(known) => known,
        None => assessed(service, state).await?,
    };
    let decided_by = Deciding::default().of(service, asker, &row).await?;
    let sharing = sharing(service, &row.application, state, hearing);
    let chosen = chosen(service, &row, state).map(|chosen| match chosen.instead {
        Some(_) => format!("Jobs that name no accelerator get {chosen}."),
        None => format!("{chosen}."),
    });
    let today = spent_today(service, &[row.study_id]).await?;
    let mut summary = shown(service, asker, row, known, decided_by, today.as_ref());
    summary.sharing = sharing;
    summary.warnings.extend(chosen);
    Ok(summary)
}

/// A study's assessment with its overview, as the epoch's last verdict or a sweep stored them.
/// `current`: only if it was assessed `by` the release, engine and settings of now.
fn kept(row: &StudyRow, by: &str, current: bool) -> Option<(Assessment, Overview)> {
    if current && row.assessed_by.as_deref() != Some(by) {
        return None;
    }
    let assessment = row.assessment.clone()?;
    let overview = assessment.overview.clone()?;
    Some((assessment, overview))
}

/// A study's assessment with its overview as it is in this state.
async fn assessed(
    service: &Service,
    state: &StudyState,
) -> Result<(Assessment, Overview), ApiError> {
    let assessment = assess::of(&service.store, service.reckoning(), state).await?;
    let overview = assess::overview_of(state, state.outlook, service.reckoning());
    Ok((assessment, overview))
}

fn shown(
    service: &Service,
    asker: Asker,
    row: StudyRow,
    (assessment, overview): (Assessment, Overview),
    decided_by: Option<OrderSummary>,
    today: Option<&Today>,
) -> StudySummary {
    let standing = &overview.standing;
    let phase = io_autotune_engine::phase(standing, &row.space, &row.pending);
    let objective = &row.objective;
    // Runs of an application that a user has named so count all the same.
    let nameless = row.counted == 0
        && row.not_counted > 0
        && service
            .rules
            .current()
            .named(
                Some(row.full_name.as_deref().unwrap_or(&row.application)),
                None,
            )
            .meaningless;
    let limit = known_limit(None, None, row.limit_seconds);
    let mut steering = Steering {
        pin: row.pinned().cloned(),
        accepts_mixed: row.accepts_mixed,
        off: row.ordered.off,
        frozen: row.ordered.frozen,
        observed: nameless,
        limit,
        site_default: row.site_default(),
        ..Steering::default()
    };
    let headroom = standing.progress.headroom;
    let expected = headroom.expected_within(steering.limit_seconds());
    let cost = exploring::cost(nodes(&row), expected);
    steering.over_budget = today.and_then(|today| today.over(row.study_id, cost));
    let budgets = today.map(|today| today.told(row.study_id, cost, asker.reader));
    let gain = Some(&assessment.gain);
    let mut next = io_autotune_engine::next(standing, &row.space, &row.pending, &steering, gain);
    next.says
        .push_str(&by_order(next.rule, decided_by.as_ref()));
    let has = |kind| assessment.findings.iter().any(|one| one.kind == kind);
    if has(FindingKind::Unreported) {
        next.says
            .push_str("; no run has told the study's objective, so none counts");
    }
    let compared = assessment.gain.compared;
    let recommended = overview.recommended.as_ref();
    StudySummary {
        next: Some(next),
        nameless,
        study_id: row.study_id,
        cluster: service.shown_cluster(&row.cluster),
        uid: row.owner_uid,
        epoch: row.epoch,
        phase,
        counted: row.counted,
        not_counted: row.not_counted,
        in_flight: row.in_flight,
        explored: (standing.progress.explored, standing.progress.budget),
        default: overview.default.map(|one| one.told(objective)),
        control: compared.map(|one| one.control.told(objective)),
        tuned: compared.map(|one| one.tuned.told(objective)),
        gain: GainSummary::of(&assessment.gain),
        differs: recommended
            .map(|best| row.space.differences(&best.parametrization))
            .unwrap_or_default(),
        recommended: recommended.map(|best| best.parametrization.clone()),
        why: why(
            &overview,
            objective,
            service.settings.method,
            has(FindingKind::NothingToWin),
        ),
        ordered: row.ordered.word(row.pinned().is_some()).map(str::to_owned),
        decided_by,
        line: None,
        regret: Some(regret(&row, &assessment, &overview)),
        budgets: budgets.unwrap_or_default(),
        lately: row.lately,
        quarantined: quarantined(&row.space, &assessment),
        warnings: warnings(&row, &assessment, standing, phase),
        sharing: None,
        assessment: Some(Assessment {
            overview: Some(overview),
            ..assessment
        }),
        application: row.application,
        full_name: row.full_name,
        user: row.owner_name,
        accelerator: row.accelerator,
        account: row.account,
        context: row.context,
        objective: row.objective,
        opened: OpenedSummary {
            at: row.opened.at,
            why: row.opened.why,
            takes: row.opened.takes,
            drift: row.opened.drift,
        },
        pin: row.pin,
    }
}

/// Why a parametrization is recommended, or none is, in one sentence.
fn why(
    overview: &Overview,
    objective: &Objective,
    method: MethodName,
    nothing_to_win: bool,
) -> String {
    let Some(best) = &overview.recommended else {
        return match nothing_to_win {
            true => "there is nothing to win".to_owned(),
            false => "no parametrization has been run twice yet".to_owned(),
        };
    };
    let shown = |value: f64| {
        let (told, unit) = (objective.told(value), objective.unit());
        match unit {
            "" => told.to_string(),
            unit => format!("{told:.3}{unit}"),
        }
    };
    let default = overview.default.map_or_else(String::new, |default| {
        format!(
            "; the default {} over {} runs",
            shown(default.mean),
            default.n
        )
    });
    let first = match (method, objective) {
        (MethodName::SurrogateGenetic, Objective::Elapsed) => {
            "expected to be the quickest".to_owned()
        }
        (MethodName::SurrogateGenetic, other) => {
            format!("expected to be the best by {}", other.words())
        }
        (_, other) if other.is_maximised() => format!("highest mean {}", other.words()),
        _ => "lowest mean".to_owned(),
    };
    let error = match objective.is_maximised() {
        true => String::new(),
        false => format!(" (standard error {})", shown(best.standard_error)),
    };
    format!(
        "{first} of {} parametrizations tested: {} over {} runs{error}{default}",
        overview.tested,
        shown(best.mean),
        best.n,
    )
}

/// The order by which a rule decides, as text.
fn by_order(rule: Rule, order: Option<&OrderSummary>) -> String {
    let ordered = matches!(rule, Rule::Off | Rule::Pinned | Rule::Frozen);
    let Some(order) = order.filter(|_| ordered) else {
        return String::new();
    };
    match order.until {
        Some(until) => format!(" until {}", until.strftime("%Y-%m-%d %H:%M UTC")),
        None => ", until somebody ends that".to_owned(),
    }
}

/// The studies with which a study shares, with names only if the site shows them.
fn sharing(
    service: &Service,
    application: &str,
    state: &StudyState,
    hearing: Option<Hearing>,
) -> Option<SharingSummary> {
    let by = state.share.clone()?;
    let (together, why) = match hearing {
        Some(Hearing::Together { .. }) => (true, String::new()),
        Some(Hearing::Differs) => {
            let why = "tuning serves these runs otherwise than the others': each has its own";
            (false, why.to_owned())
        }
        Some(Hearing::Unmeasured) => {
            let why = "first the default is measured here, twice at least";
            (false, why.to_owned())
        }
        Some(Hearing::Few { users }) => (false, too_few(users)),
        None => (
            false,
            too_few(usize::from(!state.history.tested.is_empty())),
        ),
    };
    let runs = state.siblings.iter().flat_map(|one| &one.history.tested);
    let members = state.siblings.iter().map(|one| match &one.user {
        Some(user) => user.clone(),
        None => one.uid.to_string(),
    });
    Some(SharingSummary {
        others: state.siblings.len(),
        runs: runs.map(|tested| tested.elapsed.count).sum(),
        together,
        why,
        members: if service.sharing.shows_members(application, &by) {
            members.collect()
        } else {
            Vec::new()
        },
        by,
    })
}

fn too_few(users: usize) -> String {
    format!(
        "{users} of the {LEAST_MEMBERS} users have run it who are needed, so that no one of them can deceive the others"
    )
}

/// The accelerator of jobs like a study's that name none, if the study's own is the default one and
/// cannot matter.
pub(crate) fn chosen(service: &Service, row: &StudyRow, state: &StudyState) -> Option<Chosen> {
    if row.accelerator != service.default_accelerator {
        return None;
    }
    let choice = service.choice(state, nodes(row))?;
    Some(default_accelerator::outlook(&choice, &service.settings))
}

/// The number of nodes of a study's jobs.
fn nodes(row: &StudyRow) -> u32 {
    let nodes = row.context.get("nodes");
    nodes.and_then(|nodes| nodes.parse().ok()).unwrap_or(1)
}

/// The regret in runs, and in node-seconds with as many nodes as the context has, at the default's
/// mean.
fn regret(row: &StudyRow, assessment: &Assessment, overview: &Overview) -> RegretSummary {
    let expected = overview.regret;
    let runs = expected.max(assessment.exploring_cost);
    let default = overview.default.filter(|_| row.objective.is_elapsed());
    RegretSummary {
        runs,
        expected,
        budget: overview.regret_budget,
        node_seconds: default.map(|default| runs * default.mean * f64::from(nodes(row))),
    }
}

/// A study with its space and the parametrizations that it has tested.
pub(crate) async fn study_detail(
    service: &Service,
    asker: Asker,
    row: StudyRow,
) -> Result<StudyDetail, ApiError> {
    let state = service.store.study_state(row.study_id).await?;
    let heard = heard_by(&state);
    let study = study_of(service, asker, row, &state, heard.hearing).await?;
    let quarantined = &study.quarantined;
    let mut tested: Vec<TestedSummary> = heard
        .history
        .tested
        .iter()
        .map(|tested| TestedSummary {
            differs: state.space.differences(&tested.parametrization),
            elapsed: elapsed_of(&tested.elapsed),
            censored: tested.censored.len() as u64,
            failed: tested.failed,
            quarantined: quarantined
                .iter()
                .find(|one| one.parametrization == tested.parametrization)
                .map(|one| one.why.clone()),
            parametrization: tested.parametrization.clone(),
        })
        .collect();
    tested.sort_by(by_rank);
    for one in &mut tested {
        one.elapsed = one.elapsed.map(|known| known.told(&state.objective));
    }
    let surrogates = service.surrogates.of(state.epoch_id);
    let restricted = of_history(&state, Cow::Borrowed(&heard.history));
    let epoch =
        Epoch::restricted(&restricted, &service.settings, state.seed).with_cache(&surrogates);
    let importance = importance(epoch.importance(restricted.history()), restricted.space());
    Ok(StudyDetail {
        study,
        size: u64::try_from(state.space.size()).unwrap_or(u64::MAX),
        importance: Some(importance),
        space: state.space.as_ref().clone(),
        tested,
    })
}

/// The order of recommendation. A parametrization with one run comes after those with more, as a
/// single time is mostly chance: it is recommended after two runs.
fn by_rank(a: &TestedSummary, b: &TestedSummary) -> Ordering {
    let rank = |one: &TestedSummary| match one.elapsed {
        None => (2, f64::INFINITY),
        Some(elapsed) => (u8::from(elapsed.n < 2), elapsed.mean),
    };
    let ((first, a), (second, b)) = (rank(a), rank(b));
    first.cmp(&second).then(a.total_cmp(&b))
}

fn importance(found: Result<Importance, Silence>, space: &Space) -> ImportanceSummary {
    let (silent, skill, shares) = match found {
        Ok(found) => (None, Some(found.skill), found.shares),
        Err(silence) => {
            let skill = match silence {
                Silence::Unexplained(_, skill) => Some(skill),
                Silence::Few(_) | Silence::Alike => None,
            };
            (Some(silence.to_string()), skill, Vec::new())
        }
    };
    let mut shares: Vec<ImportanceShare> = shares
        .into_iter()
        .map(|share| ImportanceShare {
            parameter: space.parameters()[share.place].name.clone(),
            alone: share.alone,
            in_all: share.in_all,
        })
        .collect();
    shares.sort_by(|a, b| b.in_all.total_cmp(&a.in_all));
    ImportanceSummary {
        silent,
        skill: skill.filter(|skill| skill.is_finite()),
        shares,
    }
}

fn warnings(
    row: &StudyRow,
    assessment: &Assessment,
    standing: &Standing,
    phase: Phase,
) -> Vec<String> {
    let found = assessment.findings.iter().filter_map(|one| match one.kind {
        FindingKind::Mixed
        | FindingKind::Ineffective
        | FindingKind::NothingToWin
        | FindingKind::ElapsedWorse
        | FindingKind::Unreported
        | FindingKind::DefaultLost
        | FindingKind::Other => Some(format!("{} {}", one.what, one.action)),
        // The summary has `quarantined` and `opened` for them.
        FindingKind::Quarantine | FindingKind::Drift => None,
    });
    let explores = row.pinned().is_none() && matches!(phase, Phase::Design | Phase::Search);
    let short = explores
        .then(|| too_short(row.limit_seconds?, standing.progress.headroom))
        .flatten();
    found.chain(short).collect()
}

#[expect(clippy::cast_precision_loss, reason = "no limit is that long")]
fn too_short(limit: u64, headroom: Headroom) -> Option<String> {
    let limit = limit as f64;
    let Headroom::Seconds(needed) = headroom else {
        return None;
    };
    let minutes = (needed / 60.0).ceil();
    headroom.lacks(limit).then(|| {
        format!(
            "the time limit of {} leaves no room to explore, which may take {}; jobs like the latest one get \
             the best known parametrization: submit with --time={minutes} (minutes) or more and the study \
             goes on",
            seconds(limit),
            seconds(needed)
        )
    })
}

fn quarantined(space: &Space, assessment: &Assessment) -> Vec<QuarantineSummary> {
    in_quarantine(assessment)
        .map(|(parametrization, finding)| QuarantineSummary {
            differs: space.differences(parametrization),
            parametrization: parametrization.clone(),
            why: finding.what.clone(),
        })
        .collect()
}

fn in_quarantine(assessment: &Assessment) -> impl Iterator<Item = (&Parametrization, &Finding)> {
    assessment
        .findings
        .iter()
        .filter(|one| one.kind == FindingKind::Quarantine)
        .filter_map(|one| Some((one.parametrization.as_ref()?, one)))
}

/// Runs for `history`; those of few studies with their present quarantine.
pub(crate) async fn runs(
    service: &Service,
    rows: Vec<RunRow>,
    reader: Reader,
    of_few: bool,
) -> Result<Vec<RunSummary>, ApiError> {
    // Only these may have been quarantined.
    let lost = rows
        .iter()
        .filter(|row| of_few && matches!(row.state.as_str(), "not_counted" | "censored"));
    let studies: BTreeSet<i64> = lost.map(|row| row.study_id).collect();
    let mut why = BTreeMap::new();
    for study_id in studies {
        let Some(assessment) = service.store.assessment(study_id).await? else {
            continue;
        };
        for (parametrization, finding) in in_quarantine(&assessment) {
            let key = (study_id, assessment.epoch, parametrization.key());
            why.insert(key, finding.what.clone());
        }
    }
    rows.into_iter()
        .map(|row| {
            let quarantined = why
                .get(&(row.study_id, row.epoch, row.parametrization.key()))
                .filter(|_| reader.learns_label(&row))
                .cloned();
            Ok(RunSummary {
                quarantined,
                ..run(row, reader)?
            })
        })
        .collect()
}

/// A run without its study's later findings.
pub(crate) fn run(row: RunRow, reader: Reader) -> Result<RunSummary, ApiError> {
    let (label, inputs) = (reader.learns_label(&row), reader.learns_inputs(&row));
    let applied = row.applied.filter(|_| label);
    Ok(RunSummary {
        run_id: row.run_id,
        study_id: row.study_id,
        application: row.application,
        full_name: row.full_name,
        uid: row.uid,
        user: row.user,
        accelerator: row.accelerator,
        nodes: row.nodes,
        epoch: row.epoch,
        epoch_opened_at: row.epoch_opened_at,
        epoch_opened_why: row.epoch_opened_why,
        objective: row.objective,
        cluster: row.job.cluster,
        job_id: row.job.job_id,
        restart_count: row.job.restart_count,
        node: row.node,
        phase: row.phase,
        role: label.then_some(row.role),
        differs: label.then(|| row.space.differences(&row.parametrization)),
        parametrization: label.then_some(row.parametrization),
        reason: inputs.then_some(row.reason),
        state: row.state.parse().unwrap_or(RunState::InFlight),
        verdict: row.verdict,
        not_counted_because: row.not_counted_because,
        outcome: row.outcome,
        applied: applied.map(stored).transpose()?,
        elapsed: row.elapsed,
        wait_status: row.wait_status,
        measures: if label { row.measures } else { BTreeMap::new() },
        started_at: row.started_at,
        finished_at: row.finished_at,
        quarantined: None,
    })
}

/// A run's time and its parametrization's estimate, corrected for how other runs fared at the same
/// time; `None` if the run is not of the study's epoch or the reader may not learn its role.
pub(crate) fn cleaned(
    service: &Service,
    state: &StudyState,
    row: &RunRow,
    reader: Reader,
) -> Option<Cleaned> {
    if !reader.learns_label(row) || row.epoch != state.epoch {
        return None;
    }
    let heard = heard_by(state);
    let surrogates = service.surrogates.of(state.epoch_id);
    let restricted = of_history(state, Cow::Borrowed(&heard.history));
    let epoch =
        Epoch::restricted(&restricted, &service.settings, state.seed).with_cache(&surrogates);
    let found = epoch.cleaned(&row.parametrization, restricted.history())?;
    let tested = heard.history.tested.iter();
    let mut same = tested.filter(|one| one.parametrization == row.parametrization);
    let estimate = found.estimate.told(&state.objective);
    let ratio = row.measures.get(OTHERS_RATIO);
    let took = row.elapsed.zip(ratio).and_then(|(elapsed, ratio)| {
        let value = state.objective.value(elapsed, &row.measures)?;
        Some(state.objective.told(found.of_run(value, *ratio)))
    });
    Some(Cleaned {
        took,
        estimate: Elapsed {
            n: same.next().map_or(0, |one| one.elapsed.count),
            mean: estimate.mean,
            interval: Some((estimate.low, estimate.high)),
        },
        share: found.share,
    })
}

/// A run with the inputs of its suggestion, its reports and its study's findings; not [`cleaned`],
/// and without the risks of its values.
pub(crate) fn detail(
    mut row: RunRow,
    mut reports: Vec<Value>,
    findings: Vec<Finding>,
    then: Option<History>,
    decided_by: Option<OrderSummary>,
    begun_from: Option<BegunFrom>,
    reader: Reader,
) -> Result<RunDetail, ApiError> {
    let of = |parametrization: &Parametrization| {
        let tested = &then.as_ref()?.tested;
        let found = tested
            .iter()
            .find(|one| one.parametrization == *parametrization);
        found
            .and_then(|one| elapsed_of(&one.elapsed))
            .map(|one| one.told(&row.objective))
    };
    let (expected, default_then) = (of(&row.parametrization), of(&row.space.default()));
    if !reader.learns_inputs(&row) {
        row.suggestion = Value::Null;
    }
    let delivery = if reader.learns_label(&row) {
        Some(stored(row.delivery.take())?)
    } else {
        reports.clear();
        None
    };
    Ok(RunDetail {
        request: serde_json::from_value(row.request.take()).ok(),
        suggestion: row.suggestion.take(),
        expected,
        default_then,
        cleaned: None,
        delivery,
        run: run(row, reader)?,
        reports,
        findings,
        decided_by,
        begun_from,
        risks: Vec::new(),
        study: None,
    })
}

pub(crate) fn stored<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|error| {
        tracing::error!(%error, "a stored value cannot be read");
        ApiError::unavailable(
            "internal",
            "a stored value cannot be read; the service's log says which",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use io_autotune_engine::{Role, Tested};
    use io_autotune_store::JobKey;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    /// A run of a settled study that is in flight though a node has reported, a control run or not.
    fn drawn(role: Role) -> RunRow {
        let space: Space = serde_json::from_value(json!([
            { "name": "size", "kind": "integer", "min": 1, "max": 8, "default": 1 }
        ]))
        .unwrap();
        let size: i32 = if role == Role::Control { 1 } else { 4 };
        let parametrization = Parametrization(BTreeMap::from([(
            "size".to_owned(),
            i64::from(size).into(),
        )]));
        RunRow {
            run_id: 17,
            study_id: 3,
            application: "ocean".to_owned(),
            full_name: None,
            uid: 1000,
            user: None,
            accelerator: "romio".to_owned(),
            nodes: Some(1),
            epoch: 1,
            epoch_opened_at: Timestamp::UNIX_EPOCH,
            epoch_opened_why: "first run".to_owned(),
            objective: Objective::Elapsed,
            space: Arc::new(space),
            job: JobKey {
                cluster: "c".to_owned(),
                job_id: 4711,
                restart_count: 0,
            },
            request: json!({ "app": "ocean", "mode": "tune" }),
            node: "n1".to_owned(),
            phase: Phase::Settled,
            role,
            label_pends: true,
            inputs_pend: true,
            reason: format!("{role} with {parametrization}"),
            suggestion: json!({ "draw": 0.1, "control_chance": 0.25, "reason": role }),
            delivery: json!({ "files": [{ "name": "hints", "variable": "HINTS",
                                          "content": parametrization.to_string() }], "watch": [] }),
            state: "in_flight".to_owned(),
            verdict: None,
            not_counted_because: None,
            outcome: None,
            applied: Some(json!({ "kind": "parametrization", "parametrization": parametrization })),
            elapsed: Some(60.0),
            wait_status: Some(0),
            measures: BTreeMap::from([("bytes".to_owned(), f64::from(size))]),
            started_at: Timestamp::UNIX_EPOCH,
            finished_at: Some(Timestamp::UNIX_EPOCH),
            parametrization,
        }
    }

    fn shown(row: RunRow, reader: Reader) -> Value {
        let reports = vec![json!({ "applied": row.applied })];
        let detail = detail(row, reports, Vec::new(), None, None, None, reader).unwrap();
        serde_json::to_value(detail).unwrap()
    }

    const USER: Reader = Reader::User(1000);

    #[test]
    fn the_default_has_one_number_and_a_single_run_stands_below_the_others() {
        let parameters =
            json!([{ "name": "size", "kind": "integer", "min": 1, "max": 9, "default": 1 }]);
        let space: Space = serde_json::from_value(parameters).unwrap();
        let point = |size: i64| Parametrization([("size".to_owned(), size.into())].into());
        let mut history = History::default();
        for (size, runs) in [(2, &[1.0][..]), (1, &[4.0, 5.0, 6.0]), (3, &[2.0, 4.0])] {
            let mut tested = Tested::new(point(size), size);
            for (place, seconds) in (1..).zip(runs) {
                tested.record(10 * size + place, *seconds).unwrap();
            }
            history.tested.push(tested);
        }
        let default = assess::of_default(&space, &history).unwrap();
        assert_eq!((default.n, default.mean), (3, 5.0));
        let summary = |tested: &Tested| TestedSummary {
            differs: space.differences(&tested.parametrization),
            elapsed: elapsed_of(&tested.elapsed),
            censored: 0,
            failed: 0,
            quarantined: None,
            parametrization: tested.parametrization.clone(),
        };
        let mut all: Vec<_> = history.tested.iter().map(summary).collect();
        all.sort_by(by_rank);
        let order = all.iter().map(|one| &one.parametrization);
        assert!(order.eq(&[point(3), point(1), point(2)]), "{all:?}");
    }

    /// Attack (drawn): A user, a coordinator or an operator asks in any way whether a run in flight
    /// is a control run.
    #[test]
    fn a_run_without_a_verdict_looks_the_same_to_its_user_whatever_was_drawn() {
        let control = shown(drawn(Role::Control), USER);
        for reader in [USER, Reader::Coordinator(1001), Reader::Operator] {
            for role in [Role::Control, Role::Settled] {
                assert_eq!(control, shown(drawn(role), reader), "{reader:?}");
            }
        }
        assert_eq!(control["run"]["elapsed"], 60.0);
        for untold in ["role", "parametrization", "differs", "reason", "applied"] {
            assert_eq!(control["run"].get(untold), Some(&Value::Null), "{untold}");
        }
        assert!(control["suggestion"].is_null() && control["delivery"].is_null());

        let all = shown(drawn(Role::Control), Reader::Admin);
        assert_eq!(all["run"]["role"], "control");
        assert_eq!(all["suggestion"]["control_chance"], 0.25);
        assert_eq!(all["delivery"]["files"][0]["content"], "size=1");
        assert_eq!(all["reports"].as_array().unwrap().len(), 1);
    }

    /// Attack (drawn): A user asks what decided an ended run, to learn of one that was in flight
    /// then.
    /// Outcome: The ended run's label is told, its reason not yet.
    #[test]
    fn a_run_that_ended_beside_such_a_run_does_not_tell_what_was_in_flight() {
        let beside = || RunRow {
            label_pends: false,
            state: "counted".to_owned(),
            ..drawn(Role::Control)
        };
        let told = shown(beside(), USER);
        assert_eq!(told["run"]["role"], "control");
        assert_eq!(told["run"]["differs"], json!({}));
        assert!(told["run"]["reason"].is_null() && told["suggestion"].is_null());
        let later = RunRow {
            inputs_pend: false,
            ..beside()
        };
        assert_eq!(shown(later, USER), shown(beside(), Reader::Admin));
    }
}
