//! Imports exported studies. The pieces of a file are stored first; then one transaction reads
//! them, writes everything, and either commits or leaves nothing.

use std::collections::HashMap;
use std::time::Duration;

use io_autotune_model::Assessment;
use io_autotune_model::text::listed;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::types::Json;

use super::format::{
    EpochRecord, JudgementRecord, LaunchKey, Record, ReportRecord, RunRecord, StudyRecord, Takes,
    check_header, read,
};
use crate::accounts;
use crate::audit::{Audit, Entry, write};
use crate::connections::Connection;
use crate::error::{Named, StoreError};
use crate::judgements::fold;
use crate::pool::{Store, one_row};
use crate::records::{StudyKey, number};
use crate::tested;

const NAME: &str = "import";

/// The number of runs and reports that are written at once. The bytes of lines that are written at
/// once follow.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 4 << 20;

/// The most studies that a refusal names.
const NAMED: usize = 10;

/// The parameters of an import.
#[derive(Clone, Copy, Debug)]
pub struct Import<'a> {
    /// The importer's name for the pieces.
    pub upload: &'a str,
    /// The number of pieces.
    pub chunks: u32,
    /// The cluster to which the studies will belong, because the file names none.
    pub cluster: &'a str,
    /// True to leave out the studies that exist.
    pub skip_existing: bool,
    /// True to change nothing and keep the pieces.
    pub dry_run: bool,
}

/// An imported study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The study's key.
    pub key: StudyKey,
    /// The study's number in this database; for a study that was left out, that of the existing
    /// one.
    pub study_id: i64,
    /// The number of its epochs in the file.
    pub epochs: u64,
    /// The number of its runs in the file.
    pub runs: u64,
    /// True if it was left out because it exists.
    pub skipped: bool,
}

/// The reason why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {path}: {problem}")]
pub struct Refusal {
    /// The number of the line, from 1; if several lines together are wrong, the last of them.
    pub line: u64,
    /// The place in the line.
    pub path: String,
    /// The problem, and what to do.
    pub problem: String,
}

/// The reason why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Stores a piece of an import. Storing the same piece again is harmless. `false`: the upload
    /// is another user's, or the place has another piece.
    pub async fn stage_chunk(
        &self,
        upload: &str,
        uid: u32,
        place: u32,
        body: &str,
    ) -> Result<bool, StoreError> {
        const NAME: &str = "stage_chunk";
        let result = sqlx::query!(
            "insert into import_chunks (upload, place, uid, body)
             select $1, $2, $3, $4
             where not exists (select from import_chunks where upload = $1 and uid <> $3)
             on conflict (upload, place) do nothing",
            upload,
            place.cast_signed(),
            i64::from(uid),
            body
        )
        .execute(&self.pool)
        .await
        .named(NAME)?;
        if result.rows_affected() == 1 {
            return Ok(true);
        }
        sqlx::query_scalar!(
            r#"select exists (select from import_chunks
                              where upload = $1 and place = $2 and uid = $3 and body = $4) as "same!""#,
            upload,
            place.cast_signed(),
            i64::from(uid),
            body
        )
        .fetch_one(&self.pool)
        .await
        .named(NAME)
    }

    /// Removes a user's upload.
    pub async fn discard_import(&self, upload: &str, uid: u32) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from import_chunks where upload = $1 and uid = $2",
            upload,
            i64::from(uid)
        )
        .execute(&self.pool)
        .await
        .named("discard_import")?;
        Ok(())
    }

    /// Removes uploads to which nothing was added for this long. Returns the number of pieces.
    pub async fn forget_imports(&self, older_than: Duration) -> Result<u64, StoreError> {
        let result = sqlx::query!(
            "delete from import_chunks c
             where not exists (select from import_chunks later where later.upload = c.upload
                               and later.received_at > now() - $1 * interval '1 second')",
            older_than.as_secs_f64()
        )
        .execute(&self.pool)
        .await
        .named("forget_imports")?;
        Ok(result.rows_affected())
    }

    /// Imports the stored pieces, all of them or nothing, with a line of the audit for each study.
    pub async fn import(
        &self,
        import: Import<'_>,
        audit: Audit<'_>,
    ) -> Result<Vec<Imported>, ImportError> {
        let mut transaction = self.begin(NAME, Duration::from_secs(5)).await?;
        let mut importer = Importer::new(&mut transaction, import, audit);
        let imported = match importer.all().await {
            // Data that the schema refuses is the file's fault.
            Err(ImportError::Store(error)) if error.is_refusal() => {
                return Err(importer
                    .refused("the records up to here", error.to_string())
                    .into());
            }
            other => other?,
        };
        if !import.dry_run {
            sqlx::query!("delete from import_chunks where upload = $1", import.upload)
                .execute(&mut *transaction)
                .await
                .named(NAME)?;
            transaction.commit().await.named(NAME)?;
        }
        Ok(imported)
    }
}

/// The study that is being read.
struct Open {
    imported: Imported,
    epochs: Vec<OpenEpoch>,
    /// The ids of its runs, in the order of the file.
    runs: Vec<i64>,
    launches: HashMap<LaunchKey, i64>,
    /// The epoch of its assessment.
    assessed: Option<i32>,
    has_reports: bool,
}

struct OpenEpoch {
    id: i64,
    record: EpochRecord,
}

struct Importer<'a> {
    connection: &'a mut Connection,
    import: Import<'a>,
    audit: Audit<'a>,
    line: u64,
    open: Option<Open>,
    done: Vec<Imported>,
    runs: Vec<RunRecord>,
    reports: Vec<ReportRecord>,
    batched: usize,
    ended: bool,
}

impl<'a> Importer<'a> {
    fn new(connection: &'a mut Connection, import: Import<'a>, audit: Audit<'a>) -> Self {
        Self {
            connection,
            import,
            audit,
            line: 0,
            open: None,
            done: Vec::new(),
            runs: Vec::new(),
            reports: Vec::new(),
            batched: 0,
            ended: false,
        }
    }

    fn refused(&self, path: &str, problem: impl Into<String>) -> Refusal {
        Refusal {
            line: self.line,
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    async fn all(&mut self) -> Result<Vec<Imported>, ImportError> {
        let mut rest = String::new();
        for place in 0..self.import.chunks {
            let piece = sqlx::query_scalar!(
                "select body from import_chunks where upload = $1 and place = $2 and uid = $3",
                self.import.upload,
                place.cast_signed(),
                i64::from(self.audit.uid)
            )
            .fetch_optional(&mut *self.connection)
            .await
            .named(NAME)?;
            let Some(piece) = piece else {
                let problem = format!("piece {place} of the file is not here: import it again");
                return Err(self.refused("file", problem).into());
            };
            let mut lines = piece.split('\n');
            rest.push_str(lines.next().unwrap_or_default());
            for next in lines {
                let line = std::mem::replace(&mut rest, next.to_owned());
                self.take(&line).await?;
            }
        }
        if !rest.is_empty() {
            self.take(&rest).await?;
        }
        if !self.ended {
            return Err(self
                .refused("file", "it ends before its end: export it again")
                .into());
        }
        self.refuse_existing()?;
        Ok(std::mem::take(&mut self.done))
    }

    fn refuse_existing(&self) -> Result<(), Refusal> {
        let existing: Vec<String> = self
            .done
            .iter()
            .filter(|one| one.skipped)
            .map(|one| {
                format!(
                    "{} of uid {} with {} (study {})",
                    one.key.application, one.key.owner_uid, one.key.accelerator, one.study_id
                )
            })
            .collect();
        if existing.is_empty() || self.import.skip_existing {
            return Ok(());
        }
        let named = listed(&existing, NAMED);
        Err(self.refused(
            "file",
            format!("these studies exist here, and nothing is added to them: {named}; --skip-existing imports the others"),
        ))
    }

    async fn take(&mut self, text: &str) -> Result<(), ImportError> {
        self.line += 1;
        if self.line == 1 {
            return check_header(text).map_err(|why| self.refused("header", why).into());
        }
        if self.ended {
            return Err(self.refused(".", "nothing comes after the end").into());
        }
        let record = read(text).map_err(|(path, why)| self.refused(&path, why))?;
        match record {
            Record::Header(_) => return Err(self.refused("header", "there is one already").into()),
            Record::Study(study) => {
                self.close().await?;
                self.study(*study).await?;
            }
            Record::Epoch(epoch) => self.epoch(*epoch).await?,
            Record::Run(run) => {
                self.check_run(&run)?;
                self.runs.push(*run);
                self.batch(text.len()).await?;
            }
            Record::Report(report) => {
                self.write_runs().await?;
                self.current("report")?.has_reports = true;
                self.reports.push(*report);
                self.batch(text.len()).await?;
            }
            Record::End(end) => {
                self.close().await?;
                let found = self.done.len() as u64;
                if end.studies != found {
                    let problem = format!("the file says {} and has {found}", end.studies);
                    return Err(self.refused("end.studies", problem).into());
                }
                self.ended = true;
            }
        }
        Ok(())
    }

    fn current(&mut self, path: &str) -> Result<&mut Open, Refusal> {
        let line = self.line;
        self.open.as_mut().ok_or_else(|| Refusal {
            line,
            path: path.to_owned(),
            problem: "it comes before its study".to_owned(),
        })
    }

    async fn batch(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.batched += bytes;
        let many = self.runs.len() + self.reports.len() >= BATCH || self.batched >= BATCH_BYTES;
        if many {
            self.write_runs().await?;
            self.write_reports().await?;
            self.batched = 0;
        }
        Ok(())
    }

    async fn study(&mut self, study: StudyRecord) -> Result<(), ImportError> {
        for (path, text) in [
            ("study.application", &study.application),
            ("study.accelerator", &study.accelerator),
        ] {
            if text.is_empty() || text.len() > 1024 || text.chars().any(char::is_control) {
                return Err(self
                    .refused(path, "a name of at most 1024 plain bytes is expected")
                    .into());
            }
        }
        // A full name may be any text. It is made harmless where it is shown.
        let full_name = study.full_name.as_deref().unwrap_or("-");
        let is_other = study.full_name.as_deref() != Some(study.application.as_str());
        if !(1..=1024).contains(&full_name.len()) || full_name.contains('\0') || !is_other {
            let problem = "another text than the application's name, of at most 1024 bytes without a zero byte, is expected";
            return Err(self.refused("study.full_name", problem).into());
        }
        let assessed = study.assessment.as_ref().map(|one| one.epoch);
        // Whom it heard elsewhere is nobody here, and what its next run gets is decided here.
        let own = study.assessment.map(|assessment| Assessment {
            shared: None,
            overview: None,
            ..assessment
        });
        let key = StudyKey {
            cluster: self.import.cluster.to_owned(),
            owner_uid: study.owner_uid,
            owner_name: study.owner_name,
            application: study.application,
            full_name: study.full_name,
            accelerator: study.accelerator,
            context: study.context,
        };
        let application_id = sqlx::query_scalar!(
            "insert into applications (owner_uid, owner_name, name, full_name) values ($1, $2, $3, $4)
             on conflict (owner_uid, name) do update
                 set owner_name = coalesce(applications.owner_name, excluded.owner_name)
             returning id",
            i64::from(key.owner_uid),
            key.owner_name,
            key.application,
            key.full_name
        )
        .fetch_one(&mut *self.connection)
        .await
        .named(NAME)?;
        let (at, by, why) = study.accepted.map_or((None, None, None), |accepted| {
            (
                Some(accepted.at.as_microsecond()),
                Some(i64::from(accepted.uid)),
                Some(accepted.why),
            )
        });
        let inserted = sqlx::query_scalar!(
            "insert into studies (application_id, accelerator, context, context_key, created_at, mixed_accepted_at,
                                  mixed_accepted_by, mixed_accepted_why, assessment, cluster)
             values ($1, $2, $3, $4, timestamptz 'epoch' + $5 * interval '1 microsecond',
                     timestamptz 'epoch' + $6 * interval '1 microsecond', $7, $8, $9, $10)
             on conflict do nothing returning id",
            application_id,
            key.accelerator,
            Json(&key.context) as _,
            key.context_key(),
            study.created_at.as_microsecond() as f64,
            at.map(|at| at as f64),
            by,
            why,
            own.as_ref().map(Json) as _,
            key.cluster
        )
        .fetch_optional(&mut *self.connection)
        .await
        .named(NAME)?;
        let (study_id, skipped) = match inserted {
            Some(study_id) => (study_id, false),
            None => (self.existing(application_id, &key).await?, true),
        };
        if let (Some(pin), false) = (study.pin, skipped) {
            let result = sqlx::query!(
                "insert into pins (study_id, parametrization, uid, why, pinned_at, until)
                 values ($1, $2, $3, $4, timestamptz 'epoch' + $5 * interval '1 microsecond',
                         timestamptz 'epoch' + $6 * interval '1 microsecond')",
                study_id,
                Json(&pin.parametrization) as _,
                i64::from(pin.uid),
                pin.why,
                pin.pinned_at.as_microsecond() as f64,
                pin.until.map(|until| until.as_microsecond() as f64)
            )
            .execute(&mut *self.connection)
            .await
            .named(NAME)?;
            one_row(NAME, &result)?;
        }
        self.open = Some(Open {
            imported: Imported {
                key,
                study_id,
                epochs: 0,
                runs: 0,
                skipped,
            },
            epochs: Vec::new(),
            runs: Vec::new(),
            launches: HashMap::new(),
            assessed,
            has_reports: false,
        });
        Ok(())
    }

    async fn existing(&mut self, application_id: i64, key: &StudyKey) -> Result<i64, StoreError> {
        sqlx::query_scalar!(
            "select id from studies where application_id = $1 and accelerator = $2 and context_key = $3
               and coalesce(cluster, $4) = $4",
            application_id,
            key.accelerator,
            key.context_key(),
            key.cluster
        )
        .fetch_one(&mut *self.connection)
        .await
        .named(NAME)
    }

    async fn epoch(&mut self, epoch: EpochRecord) -> Result<(), ImportError> {
        let line = self.line;
        let open = self.current("epoch")?;
        let refused = |path: &str, problem: &str| {
            Err(Refusal {
                line,
                path: format!("epoch.{path}"),
                problem: problem.to_owned(),
            }
            .into())
        };
        open.imported.epochs += 1;
        if open.imported.runs > 0 {
            return refused("ordinal", "the epochs come before the runs");
        }
        if Ok(epoch.ordinal) != i32::try_from(open.imported.epochs) {
            return refused("ordinal", "the epochs are numbered from 1, in this order");
        }
        if epoch
            .parent
            .is_some_and(|parent| !(1..epoch.ordinal).contains(&parent))
        {
            return refused("parent", "it is no epoch before this one");
        }
        if (epoch.takes == Takes::Runs) != epoch.taken_judgements.is_some() {
            return refused("taken_judgements", "there are some where runs are taken");
        }
        if epoch
            .inherited
            .iter()
            .any(|one| epoch.space.validate(one).is_err())
        {
            return refused("inherited", "one does not fit the space");
        }
        if open.imported.skipped {
            return Ok(());
        }
        let parent = epoch
            .parent
            .and_then(|parent| usize::try_from(parent - 1).ok());
        let parent = parent.and_then(|place| Some(open.epochs.get(place)?.id));
        let study_id = open.imported.study_id;
        let takes = json!(epoch.takes);
        let id = sqlx::query_scalar!(
            "insert into epochs (study_id, ordinal, parent_id, takes, taken_judgements, space, objective, seed,
                                 opened_at, opened_why, inherited, drift, parameter_effects)
             values ($1, $2, $3, $4, $5, $6, $7, $8, timestamptz 'epoch' + $9 * interval '1 microsecond', $10, $11,
                     $12, $13) returning id",
            study_id,
            epoch.ordinal,
            parent,
            takes.as_str().unwrap_or_default(),
            epoch.taken_judgements,
            Json(&epoch.space) as _,
            epoch.objective.to_string(),
            epoch.seed,
            epoch.opened_at.as_microsecond() as f64,
            epoch.opened_why,
            Json(&epoch.inherited) as _,
            epoch.drift,
            Json(&epoch.parameter_effects) as _
        )
        .fetch_one(&mut *self.connection)
        .await
        .named(NAME)?;
        self.current("epoch")?
            .epochs
            .push(OpenEpoch { id, record: epoch });
        Ok(())
    }

    fn check_run(&mut self, run: &RunRecord) -> Result<(), Refusal> {
        let refusal = |line, path: &str, problem: &str| Refusal {
            line,
            path: format!("run.{path}"),
            problem: problem.to_owned(),
        };
        let line = self.line;
        let Some(open) = self.open.as_mut() else {
            return Err(refusal(line, "epoch", "it comes before its study"));
        };
        let batch = &self.runs;
        open.imported.runs += 1;
        if open.has_reports {
            return Err(refusal(line, "job_id", "the runs come before the reports"));
        }
        if !(1..=open.imported.epochs).contains(&u64::try_from(run.epoch).unwrap_or(0)) {
            return Err(refusal(line, "epoch", "the study has no such epoch"));
        }
        let launch = run.launch();
        if open.launches.contains_key(&launch) || batch.iter().any(|one| one.launch() == launch) {
            return Err(refusal(
                line,
                "job_id",
                "this launch is in the file already",
            ));
        }
        if run.judgements.is_empty() {
            return Err(refusal(line, "judgements", "there are none"));
        }
        let epoch = usize::try_from(run.epoch - 1).unwrap_or(usize::MAX);
        if let Some(OpenEpoch { record, .. }) = open.epochs.get(epoch) {
            let objective = &record.objective;
            let lacks = |one: &JudgementRecord| {
                let value = |elapsed| objective.value(elapsed, &one.measures);
                one.elapsed.is_some_and(|elapsed| value(elapsed).is_none())
            };
            if run.judgements.iter().any(lacks) {
                let problem = format!("one counts that has no {objective}, its epoch's objective");
                return Err(refusal(line, "judgements", &problem));
            }
        }
        Ok(())
    }

    async fn write_runs(&mut self) -> Result<(), ImportError> {
        let runs = std::mem::take(&mut self.runs);
        let Some(open) = self.open.as_ref() else {
            return Ok(());
        };
        if runs.is_empty() || open.imported.skipped {
            return Ok(());
        }
        let epoch_of = |run: &RunRecord| {
            let place = usize::try_from(run.epoch - 1).unwrap_or(0);
            open.epochs.get(place).map(|epoch| epoch.id)
        };
        let rows: Vec<Value> = runs.iter().map(|run| row(run, epoch_of(run))).collect();
        self.refuse_known(&runs).await?;
        let inserted = sqlx::query!(
            r#"insert into runs (epoch_id, cluster, job_id, restart_count, generation, sluid, uid, node, nodes, request,
                   phase, role, parametrization, reason, suggestion, delivery, directives, started_at, finished_at,
                   elapsed, wait_status, applied, measures, outcome, outcome_at, outcome_source, suspended,
                   limit_seconds, missing, epilog, unstarted, released, dirty, listed_at, trimmed_at, state, verdict, judged_at,
                   judged_ordinal, changes, judged_changes)
               select r.epoch_id, r.cluster, r.job_id, r.restart_count, r.generation, r.sluid, r.uid, r.node, r.nodes,
                   r.request, r.phase, r.role, r.parametrization, r.reason, r.suggestion - '{others,sources,order}'::text[], r.delivery, r.directives,
                   r.started_at, r.finished_at, r.elapsed, r.wait_status, r.applied, r.measures, r.outcome,
                   r.outcome_at, r.outcome_source, r.suspended, r.limit_seconds, r.missing, r.epilog, r.unstarted,
                   r.released, r.dirty, r.listed_at, r.trimmed_at, r.state, r.verdict, r.judged_at, r.judged_ordinal, r.changes,
                   r.judged_changes
               from rows from (jsonb_to_recordset($1) as (
                   epoch_id bigint, cluster text, job_id bigint, restart_count integer, generation integer, sluid text,
                   uid bigint, node text, nodes integer, request jsonb, phase text, role text, parametrization jsonb,
                   reason text, suggestion jsonb, delivery jsonb, directives jsonb, started_at timestamptz,
                   finished_at timestamptz, elapsed double precision, wait_status integer, applied jsonb,
                   measures jsonb, outcome text, outcome_at timestamptz, outcome_source text, suspended boolean,
                   limit_seconds bigint, missing text, epilog jsonb, unstarted boolean, released boolean,
                   dirty boolean, listed_at timestamptz, trimmed_at timestamptz, state text, verdict text, judged_at timestamptz,
                   judged_ordinal bigint, changes bigint, judged_changes bigint)) with ordinality as r
               order by r.ordinality
               returning id, epoch_id, cluster, job_id, restart_count, generation"#,
            Value::Array(rows)
        )
        .fetch_all(&mut *self.connection)
        .await
        .named(NAME)?;
        let mut ids = HashMap::with_capacity(inserted.len());
        for row in inserted {
            let launch = LaunchKey {
                cluster: row.cluster,
                job_id: number(NAME, row.job_id)?,
                restart_count: row.restart_count,
                generation: row.generation,
            };
            ids.insert(launch, (row.id, row.epoch_id));
        }
        let (mut judgements, mut outcomes, mut surroundings) = (Vec::new(), Vec::new(), Vec::new());
        let mut placed = Vec::with_capacity(runs.len());
        for run in &runs {
            let launch = run.launch();
            let (run_id, epoch_id) = *ids.get(&launch).ok_or_else(|| {
                StoreError::invariant(NAME, "a run that was written is not there")
            })?;
            placed.push((launch, run_id));
            let owned = json!({ "run_id": run_id, "epoch_id": epoch_id, "cluster": run.cluster,
                                "job_id": run.job_id });
            judgements.extend(run.judgements.iter().map(|one| with(one, &owned)));
            outcomes.extend(run.outcomes.iter().map(|one| with(one, &owned)));
            surroundings.extend(run.surroundings.iter().map(|one| with(one, &owned)));
        }
        self.write_judgements(judgements).await?;
        self.write_outcomes(outcomes).await?;
        let written: Vec<i64> = placed.iter().map(|(_, run_id)| *run_id).collect();
        accounts::remember(&mut *self.connection, NAME, &written).await?;
        self.write_surroundings(surroundings).await?;
        let open = self.current("run")?;
        for (launch, run_id) in placed {
            // The engine takes the order of runs from their ids.
            if open.runs.last().is_some_and(|last| *last >= run_id) {
                return Err(StoreError::invariant(
                    NAME,
                    "runs were written in another order than the file's",
                )
                .into());
            }
            open.runs.push(run_id);
            open.launches.insert(launch, run_id);
        }
        Ok(())
    }

    /// Returns an error if a job is known here, because its run may belong to one study only.
    async fn refuse_known(&mut self, runs: &[RunRecord]) -> Result<(), ImportError> {
        let launches: Vec<LaunchKey> = runs.iter().map(RunRecord::launch).collect();
        let known = sqlx::query!(
            "select r.cluster, r.job_id, e.study_id from runs r join epochs e on e.id = r.epoch_id
             join jsonb_to_recordset($1) as asked (cluster text, job_id bigint, restart_count integer,
                                                   generation integer)
               using (cluster, job_id, restart_count, generation)
             order by r.id limit 1",
            json!(launches)
        )
        .fetch_optional(&mut *self.connection)
        .await
        .named(NAME)?;
        match known {
            None => Ok(()),
            Some(known) => {
                let problem = format!(
                    "job {} of cluster {:?} has a run here already, in study {}, or twice in the file: what was \
                     measured once is not counted twice",
                    known.job_id, known.cluster, known.study_id
                );
                Err(self.refused("run.job_id", problem).into())
            }
        }
    }

    async fn write_judgements(&mut self, judgements: Vec<Value>) -> Result<(), StoreError> {
        sqlx::query!(
            "insert into judgements (epoch_id, ordinal, run_id, effect, parametrization, elapsed, measures, verdict, not_counted_because,
                                     judged_at)
             select epoch_id, ordinal, run_id, effect, parametrization, elapsed, measures, verdict, not_counted_because, judged_at
             from jsonb_to_recordset($1) as j (
                 epoch_id bigint, ordinal bigint, run_id bigint, effect text, parametrization jsonb,
                 elapsed double precision, measures jsonb, verdict text, not_counted_because text, judged_at timestamptz)
             order by ordinal",
            Value::Array(judgements)
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        Ok(())
    }

    /// Writes outcome records. A record that also came here directly and met no run is the same
    /// record.
    async fn write_outcomes(&mut self, outcomes: Vec<Value>) -> Result<(), StoreError> {
        if outcomes.is_empty() {
            return Ok(());
        }
        sqlx::query!(
            "delete from outcomes o using jsonb_to_recordset($1) as said (
                 cluster text, job_id bigint, source text, state text, exit_code text, restart_count integer,
                 started_at timestamptz, ended_at timestamptz, suspended_seconds bigint, limit_seconds bigint)
             where o.run_id is null and o.cluster = said.cluster and o.job_id = said.job_id and o.source = said.source
               and o.state = said.state and o.exit_code is not distinct from said.exit_code
               and o.restart_count is not distinct from said.restart_count
               and o.started_at is not distinct from said.started_at
               and o.ended_at is not distinct from said.ended_at
               and o.suspended_seconds is not distinct from said.suspended_seconds
               and o.limit_seconds is not distinct from said.limit_seconds",
            Value::Array(outcomes.clone())
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        sqlx::query!(
            "insert into outcomes (source, cluster, job_id, state, exit_code, restart_count, started_at, ended_at,
                                   suspended_seconds, limit_seconds, received_at, run_id, account, uid, node_list)
             select o.source, o.cluster, o.job_id, o.state, o.exit_code, o.restart_count, o.started_at, o.ended_at,
                    o.suspended_seconds, o.limit_seconds, o.received_at, o.run_id, o.account, o.uid, o.node_list
             from rows from (jsonb_to_recordset($1) as (
                 source text, cluster text, job_id bigint, state text, exit_code text, restart_count integer,
                 started_at timestamptz, ended_at timestamptz, suspended_seconds bigint, limit_seconds bigint,
                 received_at timestamptz, run_id bigint, account text, uid bigint, node_list text))
                 with ordinality as o
             order by o.ordinality",
            Value::Array(outcomes)
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        Ok(())
    }

    async fn write_surroundings(&mut self, surroundings: Vec<Value>) -> Result<(), StoreError> {
        sqlx::query!(
            "insert into surroundings (cluster, at, slowness, runs)
             select cluster, at, slowness, runs
             from jsonb_to_recordset($1) as s (cluster text, at timestamptz, slowness double precision, runs bigint)
             on conflict do nothing",
            Value::Array(surroundings)
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        Ok(())
    }

    async fn write_reports(&mut self) -> Result<(), ImportError> {
        let reports = std::mem::take(&mut self.reports);
        let Some(open) = self.open.as_ref() else {
            return Ok(());
        };
        if reports.is_empty() || open.imported.skipped {
            return Ok(());
        }
        let mut rows = Vec::with_capacity(reports.len());
        for report in reports {
            let Some(run_id) = open.launches.get(&report.launch) else {
                let problem = format!("the study has no run of job {}", report.launch.job_id);
                return Err(self.refused("report.launch", problem).into());
            };
            rows.push(
                json!({ "run_id": run_id, "node": report.node, "body": report.body,
                              "received_at": report.received_at }),
            );
        }
        sqlx::query!(
            "insert into reports (run_id, node, body, received_at)
             select r.run_id, r.node, r.body, r.received_at
             from rows from (jsonb_to_recordset($1) as (run_id bigint, node text, body jsonb,
                                                        received_at timestamptz)) with ordinality as r
             order by r.ordinality",
            Value::Array(rows)
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        Ok(())
    }

    /// Ends the study that is being read: its caches are computed from its judgements.
    async fn close(&mut self) -> Result<(), ImportError> {
        self.write_runs().await?;
        self.write_reports().await?;
        self.batched = 0;
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        if open.imported.epochs == 0 {
            return Err(self
                .refused("study", "the study before has no epoch")
                .into());
        }
        let mut counts = Vec::with_capacity(open.epochs.len());
        for OpenEpoch { id, record } in &open.epochs {
            if let (Some(taken), Some(parent)) = (record.taken_judgements, record.parent) {
                let has = usize::try_from(parent - 1)
                    .ok()
                    .and_then(|place| counts.get(place));
                if has.is_none_or(|has| taken > *has) {
                    let problem = format!(
                        "epoch {} of {} takes {taken} judgements, and its parent has fewer",
                        record.ordinal, open.imported.key.application
                    );
                    return Err(self.refused("epoch.taken_judgements", problem).into());
                }
            }
            let parent = record
                .parent
                .and_then(|parent| usize::try_from(parent - 1).ok());
            let parent = parent.and_then(|place| open.epochs.get(place));
            let is_needed = record.taken_judgements.is_some()
                && record.removed.is_none()
                && parent.is_some_and(|parent| parent.record.removed.is_some());
            let is_current = record.ordinal as usize == open.epochs.len();
            if is_needed || is_current && record.removed.is_some() {
                let problem = format!(
                    "epoch {} of {} needs runs that are said to be removed",
                    record.ordinal, open.imported.key.application
                );
                return Err(self.refused("epoch.removed", problem).into());
            }
            counts.push(self.close_epoch(*id, record, &open.runs).await?);
        }
        if !open.imported.skipped {
            let latest = open.epochs.last().map_or(0, |epoch| epoch.record.ordinal);
            if let Some(of) = open.assessed.filter(|of| *of > latest) {
                let problem = format!("it is about epoch {of}, and there are {latest}");
                return Err(self.refused("study.assessment.epoch", problem).into());
            }
            let detail = json!({
                "application": open.imported.key.application,
                "owner_uid": open.imported.key.owner_uid,
                "epochs": open.imported.epochs,
                "runs": open.imported.runs,
            });
            let entry = Entry::of_study("import", open.imported.study_id, detail);
            write(&mut *self.connection, NAME, entry, self.audit).await?;
        }
        self.done.push(open.imported);
        Ok(())
    }

    /// Ends an epoch. Returns the number of its judgements.
    async fn close_epoch(
        &mut self,
        epoch_id: i64,
        record: &EpochRecord,
        runs: &[i64],
    ) -> Result<i64, ImportError> {
        let judged = sqlx::query!(
            r#"select count(*) as "count!", coalesce(max(ordinal), 0) as "last!" from judgements where epoch_id = $1"#,
            epoch_id
        )
        .fetch_one(&mut *self.connection)
        .await
        .named(NAME)?;
        if record.removed.is_some() && judged.count > 0 {
            let problem = format!(
                "epoch {} has runs, and they are said to be removed",
                record.ordinal
            );
            return Err(self.refused("epoch.removed", problem).into());
        }
        if judged.count != judged.last {
            let problem = format!(
                "epoch {} has {} judgements, and the last is number {}",
                record.ordinal, judged.count, judged.last
            );
            return Err(self.refused("run.judgements", problem).into());
        }
        let record_of = |path: &str, place: i64| match place {
            0 => Ok(0),
            place => {
                let found = usize::try_from(place - 1)
                    .ok()
                    .and_then(|place| runs.get(place));
                found.copied().ok_or_else(|| {
                    let problem = format!(
                        "epoch {} names run {place}, and there are {}",
                        record.ordinal,
                        runs.len()
                    );
                    self.refused(&format!("epoch.places.{path}"), problem)
                })
            }
        };
        let (through, since) = (
            record_of("through", record.places.through)?,
            record_of("since", record.places.since)?,
        );
        let drifted = record_of("drifted", record.places.drifted)?;
        let (tally, judgements) = match &record.removed {
            Some(removed) => (removed.tally, removed.judgements),
            None => {
                let fold = fold(&mut *self.connection, NAME, epoch_id, i64::MAX).await?;
                tested::replace(&mut *self.connection, NAME, epoch_id, &fold.tested).await?;
                (fold.tally, judged.count)
            }
        };
        let removed = record.removed.as_ref();
        let count = |count: u64| number::<u64, i64>(NAME, count);
        let result = sqlx::query!(
            "update epochs set judgements = $2, baseline = $3, explored = $4, controls = $5, settled = $6,
                    settled_controls = $7, total = $8, proof = $15,
                    evidence = $9::jsonb || jsonb_strip_nulls(jsonb_build_object(
                        'through', case when $9::jsonb ? 'through' then $10::bigint end,
                        'since', case when $9::jsonb ? 'since' then $11::bigint end)),
                    removed_at = timestamptz 'epoch' + $13 * interval '1 microsecond',
                    -- Its runs have no numbers here.
                    removed_run = case when $13::float8 is not null then 0 end,
                    removed_start = timestamptz 'epoch' + $14 * interval '1 microsecond',
                    drift = case when drift #> '{drift,since}' is null then drift
                                 else jsonb_set(drift, '{drift,since}', to_jsonb($12::bigint)) end
             where id = $1",
            epoch_id,
            judgements,
            count(tally.baseline)?,
            count(tally.explored)?,
            count(tally.controls)?,
            count(tally.settled)?,
            count(tally.settled_controls)?,
            count(tally.total)?,
            record.evidence,
            through,
            since,
            drifted,
            removed.map(|removed| removed.at.as_microsecond() as f64),
            removed.map(|removed| removed.through.as_microsecond() as f64),
            count(tally.proof)?
        )
        .execute(&mut *self.connection)
        .await
        .named(NAME)?;
        one_row(NAME, &result)?;
        Ok(judgements)
    }
}

/// The row of a run: its record, and the result of its latest judgement.
fn row(run: &RunRecord, epoch_id: Option<i64>) -> Value {
    let latest = run.latest();
    let judged = json!({
        "epoch_id": epoch_id,
        "state": latest.map(|one| one.effect.state()),
        "verdict": latest.map(|one| &one.verdict),
        "judged_at": latest.map(|one| one.judged_at),
        "judged_ordinal": latest.map(|one| one.ordinal),
        "changes": if run.awaits_verdict { 2 } else { 1 },
        "judged_changes": 1,
    });
    with(run, &judged)
}

/// A record as a row, with further columns.
fn with<T: Serialize>(record: &T, more: &Value) -> Value {
    let mut row = json!(record);
    if let (Some(row), Some(more)) = (row.as_object_mut(), more.as_object()) {
        row.extend(more.clone());
    }
    row
}
