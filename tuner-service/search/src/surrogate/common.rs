//! The setting that the studies of a site have in common: a point that the study of one user ran
//! and found faster than the default, judged by the studies of all others. The study that found it
//! is no judge of it, because the best of many noisy runs looks better than it is; and all studies
//! of one user are one voice, because one person can submit as many studies as they like.
//!
//! Of what other studies have found, only such a point may run in one step, however far it is from
//! what a study has run: as its first exploring run, or later once its own runs have confirmed the
//! others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use io_autotune_model::Ratio;
use io_autotune_model::space::{Point, Space};

use super::Prediction;
use super::source::{Process, SharedSource};
use crate::math::Portable;

/// The number of users, other than the one whose study found a point, whose studies must find it
/// harmless before it runs in one step.
const USERS: usize = 3;
/// The number of standard deviations by which a prediction must be faster, or too slow, before a
/// point counts as promised, or as terrible.
pub(super) const DOUBT: f64 = 1.0;
/// The smallest promised gain, as the log of a ratio.
pub(super) const LEAST_PROMISE: f64 = 0.03;
/// The standard deviations on either side of the mean that hold 95 % of a normal distribution.
const TWO_SIDED: f64 = 1.96;

/// A point that the studies of several users find faster than the default.
#[derive(Clone, Debug, PartialEq)]
pub struct Common {
    /// The point.
    pub point: Point,
    /// The log of its elapsed over the default's, as other studies than those that ran it expect.
    pub log_ratio: f64,
    /// The users whose studies find it harmless.
    pub users: u64,
}

fn ratio(log: Prediction) -> Ratio {
    Ratio {
        mean: log.mean.exponential(),
        low: log.end(-TWO_SIDED).exponential(),
        high: log.end(TWO_SIDED).exponential(),
    }
}

/// The setting that all studies of a space have in common, with what each judge expects of it.
#[derive(Clone, Debug, PartialEq)]
pub struct InCommon {
    /// The setting.
    pub common: Common,
    /// Its ratio for one more application: the spread between users is part of the interval.
    pub together: Ratio,
    /// The ratio of each study that judges, by its place among the sources. The studies of the user
    /// whose study found the setting are left out.
    pub judges: Vec<(usize, Ratio)>,
}

/// The setting that these sources have in common, where each user counts once; none unless the
/// studies of three other users find it harmless, as for [one more study](of).
#[must_use]
pub fn in_common(space: &Space, sources: &[Arc<SharedSource>]) -> Option<InCommon> {
    let known = sources.iter().enumerate();
    let known: Vec<(usize, u32, Arc<Process>)> = known
        .filter_map(|(place, source)| Some((place, source.user()?, source.process(space)?)))
        .collect();
    let mut studies: BTreeMap<u32, f64> = BTreeMap::new();
    for (_, user, _) in &known {
        *studies.entry(*user).or_default() += 1.0;
    }
    let witnesses: Vec<Witness<'_>> = known
        .iter()
        .map(|(place, user, process)| Witness {
            source: *place,
            user: *user,
            weight: 1.0 / studies[user],
            process,
        })
        .collect();
    let default = space.default_point();
    let judged = of(&witnesses, |point| *point != default)?;
    let judges = judged.judges.into_iter();
    Some(InCommon {
        common: judged.common,
        together: ratio(judged.together),
        judges: judges.map(|(source, log)| (source, ratio(log))).collect(),
    })
}

/// A source whose user is known.
pub(super) struct Witness<'a> {
    /// Its place among the sources.
    pub(super) source: usize,
    pub(super) user: u32,
    /// How much it counts beside the others.
    pub(super) weight: f64,
    pub(super) process: &'a Process,
}

/// A point that witnesses have in common, and what its judges predict of it, in logarithms.
pub(super) struct Judged {
    pub(super) common: Common,
    together: Prediction,
    judges: Vec<(usize, Prediction)>,
}

/// The points that the study of one user ran and found faster than the default, as those of all
/// others see it: the studies of [`USERS`] other users each find it no slower than the default, even
/// by the pessimistic end of what they predict, and all others together find it faster.
pub(super) fn all(witnesses: &[Witness<'_>], admits: impl Fn(&Point) -> bool) -> Vec<Judged> {
    let found = witnesses.iter().flat_map(|one| {
        let points = one.process.found_faster();
        points.map(move |point| (point, one.user))
    });
    let mut points: Vec<(&Point, u32)> = found.filter(|(point, _)| admits(point)).collect();
    points.sort();
    points.dedup();
    let asked: Vec<Point> = points.iter().map(|(point, _)| (*point).clone()).collect();
    let said: Vec<(&Witness<'_>, Vec<Prediction>)> = witnesses
        .iter()
        .map(|one| (one, one.process.predict(&asked)))
        .collect();
    let judged = points
        .into_iter()
        .enumerate()
        .filter_map(|(place, (point, of))| {
            let judges = said.iter().filter(|(one, _)| one.user != of);
            let judges: Vec<(&Witness<'_>, Prediction)> =
                judges.map(|(one, all)| (*one, all[place])).collect();
            let harmless = judges.iter().filter(|(_, log)| log.end(DOUBT) < 0.0);
            let users: BTreeSet<u32> = harmless.map(|(one, _)| one.user).collect();
            let together = pooled(judges.iter().map(|(one, log)| (one.weight, *log)));
            let is_common = users.len() >= USERS && together.end(DOUBT) < -LEAST_PROMISE;
            is_common.then(|| Judged {
                common: Common {
                    point: point.clone(),
                    log_ratio: together.mean,
                    users: users.len() as u64,
                },
                together,
                judges: judges
                    .into_iter()
                    .map(|(one, log)| (one.source, log))
                    .collect(),
            })
        });
    judged.collect()
}

/// The most promising of [these points](all).
pub(super) fn of(witnesses: &[Witness<'_>], admits: impl Fn(&Point) -> bool) -> Option<Judged> {
    all(witnesses, admits).into_iter().min_by(|one, other| {
        let by = (one.together.end(DOUBT)).total_cmp(&other.together.end(DOUBT));
        by.then_with(|| one.common.point.cmp(&other.common.point))
    })
}

/// The prediction for one more application, from those for several: the spread between these, and
/// the uncertainty of their mean, to which each adds by the square of its share of the weights.
fn pooled(each: impl Iterator<Item = (f64, Prediction)> + Clone) -> Prediction {
    let sum: f64 = each.clone().map(|(weight, _)| weight).sum();
    let shares = each.map(|(weight, one)| (weight / sum, one));
    let mean: f64 = shares.clone().map(|(share, one)| share * one.mean).sum();
    let variance =
        shares.map(|(share, one)| share * (one.mean - mean).powi(2) + share * share * one.variance);
    Prediction {
        mean,
        variance: variance.sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surrogate::source::Source;
    use crate::testing::{grid, valley};

    /// Sources of these users; the bottom of each one's valley is at level 5 of 7.
    fn sources(space: &Space, of: &[(f64, u32)]) -> Vec<Arc<SharedSource>> {
        let of = of.iter().map(|(height, user)| {
            let source = Source::of(space, &valley(space, *height, 14)).unwrap();
            Arc::new(SharedSource::of_user(source, *user))
        });
        of.collect()
    }

    #[test]
    fn a_sites_setting_is_judged_by_the_studies_of_other_users_than_its_finder() {
        let space = grid(&[7, 7]);
        let of = [(1.0, 1), (0.9, 2), (0.8, 3), (1.1, 4), (1.05, 4)];
        let found = in_common(&space, &sources(&space, &of)).unwrap();
        assert_eq!((found.common.point.0[0], found.common.users), (5, 3));
        assert!(found.together.low < found.together.mean && found.together.high < 0.6);
        let judges: Vec<usize> = found.judges.iter().map(|(place, _)| *place).collect();
        let finder = judges.len() + of.len() - 5;
        assert!(matches!(finder, 3 | 4), "{judges:?}");
        assert!(found.judges.iter().all(|(_, ratio)| ratio.mean < 0.6));
    }

    #[test]
    fn a_user_with_many_studies_does_not_outvote_the_others() {
        let space = grid(&[7, 7]);
        let four = [(1.0, 1), (0.9, 2), (0.8, 3), (1.1, 4)];
        let expected = |of: &[(f64, u32)]| {
            let found = in_common(&space, &sources(&space, of)).unwrap();
            assert_eq!(found.common.point.0[0], 5);
            found.together.mean
        };
        // Ten studies of one user, who gains little.
        let many: Vec<(f64, u32)> = (four.into_iter()).chain([(0.2, 5); 10]).collect();
        let once: Vec<(f64, u32)> = (four.into_iter()).chain([(0.2, 5)]).collect();
        assert!((expected(&many) - expected(&once)).abs() < 1e-9);
        assert!(expected(&once) > expected(&four));
    }

    #[test]
    fn three_users_have_no_setting_in_common_and_the_default_is_none() {
        let space = grid(&[7, 7]);
        let three = [(1.0, 1), (0.9, 2), (0.8, 3)];
        assert_eq!(in_common(&space, &sources(&space, &three)), None);
        let worse = [(-1.0, 1), (-0.9, 2), (-0.8, 3), (-1.1, 4)];
        assert_eq!(in_common(&space, &sources(&space, &worse)), None);
        assert_eq!(in_common(&space, &[]), None);
    }
}
