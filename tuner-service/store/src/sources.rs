//! What epochs have learnt of their spaces, which other studies begin with.
//!
//! A process keeps what starts have read. Which sources there are is read anew after
//! [`RENEWED`], once for all studies of a space; what one has learnt is read once. So a copy may be
//! older than the database by that, and a decision keeps what it had.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hashlink::LruCache;
use serde_json::Value;
use sqlx::types::Json;

use crate::Store;
use crate::connections::Connection;
use crate::epoch_state::EpochState;
use crate::error::{Named, StoreError};

/// Of so many that began last, those whose measures are nearest are taken.
const LOOKED_AT: usize = 64;
/// Most that a start is told.
const MOST: usize = 8;
/// How old a list of sources may be.
const RENEWED: Duration = Duration::from_secs(1);
/// So many lists are kept, each of an accelerator's space.
const LISTS: usize = 64;
/// So much of what studies have learnt is kept, at some 60 KB each.
const LEARNT: usize = 256;

/// What another study's epoch has learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The epoch.
    pub epoch_id: i64,
    /// Number of judgements that it is made of, for [`Store::history_at`](crate::Store::history_at).
    pub judged: i64,
    /// What the engine made of them.
    pub learnt: Value,
}

impl Store {
    /// What other studies have learnt of an epoch's space, until it has settled, where starts are told.
    pub(crate) async fn sources(
        &self,
        connection: &mut Connection,
        name: &'static str,
        study_id: i64,
        epoch: &EpochState,
    ) -> Result<Vec<Arc<Learnt>>, StoreError> {
        match self.reads_sources && !epoch.has_settled() {
            true => self.sources.of(connection, name, study_id, epoch).await,
            false => Ok(Vec::new()),
        }
    }

    /// The number and application of each of these epochs' studies, if it is this owner's; without
    /// an owner all.
    pub async fn studies_of_epochs(
        &self,
        epochs: &[i64],
        owner: Option<u32>,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        const NAME: &str = "studies_of_epochs";
        let rows = sqlx::query!(
            "select distinct s.id, a.name from epochs e join studies s on s.id = e.study_id
             join applications a on a.id = s.application_id
             where e.id = any($1) and ($2::bigint is null or a.owner_uid = $2) order by s.id",
            epochs,
            owner.map(i64::from)
        )
        .fetch_all(&self.pool)
        .await
        .named(NAME)?;
        Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
    }
}

/// What starts have read of what others have learnt.
#[derive(Debug)]
pub(crate) struct KeptSources(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    lists: LruCache<Place, List>,
    learnt: LruCache<i64, Copied>,
}

/// A cluster, an accelerator, and a hash of the space.
type Place = (String, String, i64);

#[derive(Debug)]
struct List {
    read_at: Instant,
    candidates: Arc<[Candidate]>,
}

/// A study that is a source.
#[derive(Debug)]
struct Candidate {
    study_id: i64,
    epoch_id: i64,
    /// Another one whenever its row was written. A database that was set back has another start.
    version: String,
    /// What runs of its default do: logarithms by name.
    measures: BTreeMap<String, f64>,
}

#[derive(Debug)]
struct Copied {
    version: String,
    learnt: Arc<Learnt>,
}

impl Default for KeptSources {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            lists: LruCache::new(LISTS),
            learnt: LruCache::new(LEARNT),
        }))
    }
}

impl KeptSources {
    /// Of the cluster's other studies with the same accelerator and space. A study whose latest epoch has learnt
    /// little is none: what it knew before a reset or a drift may hold no longer.
    pub(crate) async fn of(
        &self,
        connection: &mut Connection,
        name: &'static str,
        study_id: i64,
        epoch: &EpochState,
    ) -> Result<Vec<Arc<Learnt>>, StoreError> {
        let (cluster, accelerator) = (epoch.cluster.clone(), epoch.accelerator.clone());
        let place = (cluster, accelerator, epoch.space_key);
        let candidates = match self.listed(&place, Instant::now()) {
            Some(candidates) => candidates,
            None => {
                let candidates: Arc<[Candidate]> =
                    candidates(connection, name, &place).await?.into();
                let list = List {
                    read_at: Instant::now(),
                    candidates: Arc::clone(&candidates),
                };
                self.lock().lists.insert(place, list);
                candidates
            }
        };
        let mut chosen = nearest(study_id, &own_measures(epoch), &candidates);
        chosen.sort_by_key(|one| one.epoch_id);
        let missing = self.missing(&chosen);
        if !missing.is_empty() {
            let read = learnt(connection, name, &missing).await?;
            let mut kept = self.lock();
            for one in chosen.iter().filter(|one| missing.contains(&one.study_id)) {
                if let Some(learnt) = read.get(&one.study_id) {
                    // It may be newer than the list.
                    let copied = Copied {
                        version: one.version.clone(),
                        learnt: Arc::clone(learnt),
                    };
                    kept.learnt.insert(one.study_id, copied);
                }
            }
        }
        let mut kept = self.lock();
        let known = chosen.iter().filter_map(|one| {
            let copied = kept.learnt.get(&one.study_id)?;
            Some(Arc::clone(&copied.learnt))
        });
        Ok(known.collect())
    }

    /// The list, unless whoever asks is the first to find it too old, and is to read it anew.
    fn listed(&self, place: &Place, now: Instant) -> Option<Arc<[Candidate]>> {
        let mut kept = self.lock();
        let list = kept.lists.get_mut(place)?;
        if now.duration_since(list.read_at) < RENEWED {
            return Some(Arc::clone(&list.candidates));
        }
        list.read_at = now;
        None
    }

    fn missing(&self, chosen: &[&Candidate]) -> Vec<i64> {
        let mut kept = self.lock();
        let mut is_missing = |one: &Candidate| {
            let copied = kept.learnt.get(&one.study_id);
            copied.is_none_or(|copied| copied.version != one.version)
        };
        let missing = chosen.iter().filter(|one| is_missing(one));
        missing.map(|one| one.study_id).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What runs of the epoch's default do: logarithms by name.
fn own_measures(epoch: &EpochState) -> BTreeMap<String, f64> {
    let default = epoch.space.default();
    let own = epoch.history.tested.iter();
    let own = own.filter(|one| one.parametrization == default);
    own.flat_map(|one| &one.measures)
        .filter(|(_, moments)| moments.count > 0)
        .map(|(name, moments)| (name.clone(), moments.mean))
        .collect()
}

/// Those of other studies whose measures are nearest; of equally near ones, those that began last.
fn nearest<'a>(
    study_id: i64,
    own: &BTreeMap<String, f64>,
    candidates: &'a [Candidate],
) -> Vec<&'a Candidate> {
    let others = candidates.iter().filter(|one| one.study_id != study_id);
    let mut others: Vec<(f64, &Candidate)> = others
        .take(LOOKED_AT)
        .map(|one| (distance(own, &one.measures), one))
        .collect();
    others.sort_by(|(near, _), (far, _)| near.total_cmp(far));
    others.truncate(MOST);
    others.into_iter().map(|(_, one)| one).collect()
}

/// The mean square of the differences; 1 where no measure is known of both.
fn distance(own: &BTreeMap<String, f64>, theirs: &BTreeMap<String, f64>) -> f64 {
    let both = own
        .iter()
        .filter_map(|(name, own)| Some(theirs.get(name)? - own));
    let (mut sum, mut count) = (0.0, 0.0);
    for difference in both {
        sum += difference * difference;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { 1.0 }
}

/// Those that began last, the latest first.
async fn candidates(
    connection: &mut Connection,
    name: &'static str,
    (cluster, accelerator, space_key): &Place,
) -> Result<Vec<Candidate>, StoreError> {
    let rows = sqlx::query!(
        r#"with latest as materialized (
               -- In the order of the index, which gives these without a look at all others.
               select f.study_id, f.epoch_id, f.measures, f.xmin::text as row_version
               from sources f join studies s on s.id = f.study_id
               where f.accelerator = $1 and f.space_key = $2 and s.cluster = $4
               order by f.epoch_id desc limit $3
           )
           select study_id, epoch_id, measures as "measures: Json<BTreeMap<String, f64>>",
                  concat_ws(' ', row_version, pg_postmaster_start_time()) as "version!"
           from latest
           where epoch_id = (select id from epochs where study_id = latest.study_id order by ordinal desc limit 1)
           order by epoch_id desc"#,
        accelerator,
        space_key,
        // One of them may be the asker's own.
        LOOKED_AT as i64 + 1,
        cluster
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let rows = rows.into_iter().map(|row| Candidate {
        study_id: row.study_id,
        epoch_id: row.epoch_id,
        version: row.version,
        measures: row.measures.0,
    });
    Ok(rows.collect())
}

async fn learnt(
    connection: &mut Connection,
    name: &'static str,
    studies: &[i64],
) -> Result<HashMap<i64, Arc<Learnt>>, StoreError> {
    let rows = sqlx::query!(
        "select study_id, epoch_id, judged, learnt from sources where study_id = any($1)",
        studies
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let rows = rows.into_iter().map(|row| {
        let learnt = Learnt {
            epoch_id: row.epoch_id,
            judged: row.judged,
            learnt: row.learnt,
        };
        (row.study_id, Arc::new(learnt))
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(study_id: i64, measure: f64) -> Candidate {
        Candidate {
            study_id,
            epoch_id: study_id,
            version: String::new(),
            measures: BTreeMap::from([("bytes".to_owned(), measure)]),
        }
    }

    #[test]
    fn eight_are_taken_the_nearest_by_their_measures() {
        let candidates: Vec<Candidate> = (0..70).map(|id| candidate(id, id as f64)).collect();
        let own = BTreeMap::from([("bytes".to_owned(), 20.2), ("calls".to_owned(), 7.0)]);
        let ids = |own| {
            nearest(20, own, &candidates)
                .iter()
                .map(|one| one.study_id)
                .collect()
        };
        let near: Vec<i64> = ids(&own);
        assert_eq!(near, [21, 19, 22, 18, 23, 17, 24, 16]);
        let unknown: Vec<i64> = ids(&BTreeMap::new());
        assert_eq!(unknown, [0, 1, 2, 3, 4, 5, 6, 7], "as they are listed");
    }

    #[test]
    fn a_list_that_is_too_old_is_read_by_one_and_used_by_the_others() {
        let (kept, now) = (KeptSources::default(), Instant::now());
        let place = (String::new(), String::new(), 1);
        assert!(kept.listed(&place, now).is_none());
        let list = List {
            read_at: now,
            candidates: [candidate(1, 0.0)].into(),
        };
        kept.lock().lists.insert(place.clone(), list);
        assert!(kept.listed(&place, now).is_some());
        let later = now + RENEWED;
        assert!(kept.listed(&place, later).is_none(), "the first reads it");
        assert!(kept.listed(&place, later).is_some());
    }
}
