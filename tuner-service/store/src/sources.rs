//! Sources of priors: what epochs have learnt of their spaces, with which other studies begin.
//!
//! A process keeps copies of what starts have read. The list of sources is read anew after
//! [`RENEWED`], once for all studies of a space; the content of a source is read once. A copy may
//! therefore be older than the database by that time, and each decision stores what it used.

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

/// The number of latest studies among which the sources with the nearest measures are chosen.
const LOOKED_AT: usize = 64;
/// The most sources that a start gets.
const MOST: usize = 8;
/// The largest age of a list of sources.
const RENEWED: Duration = Duration::from_secs(1);
/// The most lists that are kept, each for an accelerator's space.
const LISTS: usize = 64;
/// The most contents of sources that are kept, at some 60 KB each.
const LEARNT: usize = 256;

/// The knowledge of another study's epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The epoch.
    pub epoch_id: i64,
    /// The user whose study it is.
    pub owner_uid: u32,
    /// The number of judgements it is made of, for [`Store::history_at`](crate::Store::history_at).
    pub judged: i64,
    /// The engine's summary of them.
    pub learnt: Value,
}

impl Learnt {
    pub(crate) fn of(epoch_id: i64, owner_uid: i64, judged: i64, learnt: Value) -> Arc<Self> {
        Arc::new(Self {
            epoch_id,
            // A check constraint keeps it in the range of user ids.
            owner_uid: owner_uid as u32,
            judged,
            learnt,
        })
    }
}

impl Store {
    /// The sources for an epoch until it has settled; none if starts do not read priors.
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

    /// The number and application of each of these epochs' studies, if it belongs to this owner;
    /// all if no owner is given.
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

/// Copies of the sources that starts have read.
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
    /// A version that changes whenever the row is written. A database that was set back has another
    /// start.
    version: String,
    /// The means of the logarithms of the measures of runs of its default, by name.
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
    /// The sources among the cluster's other studies with the same accelerator and space. A study
    /// whose latest epoch has learnt little is not a source: what it knew before a reset or a drift
    /// may no longer hold.
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
                    // The content may be newer than the list.
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

    /// The list, unless the caller is the first to find it too old, and has to read it anew.
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

/// The means of the logarithms of the measures of runs of the epoch's default, by name.
fn own_measures(epoch: &EpochState) -> BTreeMap<String, f64> {
    let default = epoch.space.default();
    let own = epoch.history.tested.iter();
    let own = own.filter(|one| one.parametrization == default);
    own.flat_map(|one| &one.measures)
        .filter(|(_, moments)| moments.count > 0)
        .map(|(name, moments)| (name.clone(), moments.mean))
        .collect()
}

/// The other studies with the nearest measures; among equally near ones, those that began last.
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

/// The mean square of the differences; 1 if there is no measure that both have.
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

/// The studies that began last, the latest first.
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
        // One of them may be the study itself.
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
        "select f.study_id, f.epoch_id, f.judged, f.learnt, a.owner_uid
         from sources f join studies s on s.id = f.study_id
         join applications a on a.id = s.application_id
         where f.study_id = any($1)",
        studies
    )
    .fetch_all(connection)
    .await
    .named(name)?;
    let rows = rows.into_iter().map(|row| {
        let learnt = Learnt::of(row.epoch_id, row.owner_uid, row.judged, row.learnt);
        (row.study_id, learnt)
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
