//! The points that a space admits: all of a small space, random ones of any.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::rules::Existing;
use super::{Point, Space};

/// The number of levels examined per requested point before a space counts as too large to list.
/// Without constraints at most one level of each of 20 parameters, and one more, are needed per
/// point.
const STEPS_PER_POINT: usize = 64;
/// The number of draws from the whole grid before a point is built parameter by parameter.
const DRAWS: u32 = 64;
/// The number of attempts to build a point.
const BEGUN: u32 = 32;
/// The number of levels tried per parameter before an attempt is given up; all levels if there are
/// no more.
const LEVELS_TRIED: u32 = 64;

impl Space {
    /// All admitted points, in order. None if there are more than `most`, or if constraints exclude
    /// so many points that listing them takes too long. Time and memory are proportional to `most`.
    pub fn points(&self, most: usize) -> Option<Vec<Point>> {
        let mut walk = Walk {
            space: self,
            found: Vec::new(),
            most,
            steps: most.saturating_add(1).saturating_mul(STEPS_PER_POINT),
            levels: Vec::with_capacity(self.parameters.len()),
        };
        walk.descend(Existing::NONE).then_some(walk.found)
    }

    /// A random admitted point. The method always ends. The point is drawn uniformly by rejection
    /// if constraints leave enough of the grid; otherwise it is built parameter by parameter, and
    /// as a last resort by changing the default as far as constraints allow. Without constraints it
    /// draws once per parameter.
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> Point {
        let mut last = self.default.clone();
        for _ in 0..DRAWS {
            let levels = self.levels.iter().map(|count| rng.random_range(0..*count));
            last = self.canonical(Point(levels.collect()));
            if self.admits(&last) {
                return last;
            }
        }
        (0..BEGUN)
            .find_map(|_| self.build(rng))
            .unwrap_or_else(|| self.approach(&self.default, &last, rng))
    }

    /// A point built parameter by parameter; none if every level of one breaks a constraint.
    fn build(&self, rng: &mut ChaCha8Rng) -> Option<Point> {
        let mut point = self.default.clone();
        let mut existing = Existing::NONE;
        for (place, count) in self.levels.iter().enumerate() {
            if !self.rules.exists(place, &point.0, existing) {
                continue;
            }
            existing.insert(place);
            let fits = |point: &mut Point, level: u32| {
                point.0[place] = level;
                self.rules.hold_at(place, &point.0, existing)
            };
            let first = rng.random_range(0..*count);
            let found = if *count <= LEVELS_TRIED {
                (0..*count).any(|step| fits(&mut point, (first + step) % count))
            } else {
                (1..LEVELS_TRIED).fold(fits(&mut point, first), |found, _| {
                    found || fits(&mut point, rng.random_range(0..*count))
                })
            };
            if !found {
                return None;
            }
        }
        Some(point)
    }

    /// Returns `to`, a canonical point, if it is admitted. Otherwise returns `from`, an admitted
    /// point, with as many levels of `to` as constraints allow. The levels are taken one by one in
    /// random order, and each result must be admitted.
    pub fn approach(&self, from: &Point, to: &Point, rng: &mut ChaCha8Rng) -> Point {
        if self.admits(to) {
            return to.clone();
        }
        let mut places: Vec<usize> = (0..self.parameters.len()).collect();
        places.shuffle(rng);
        let mut reached = from.clone();
        // Two rounds, because a parameter may exist only after another's level has been taken.
        for place in places.iter().chain(&places) {
            let mut nearer = reached.clone();
            nearer.0[*place] = to.0[*place];
            let nearer = self.canonical(nearer);
            if self.admits(&nearer) {
                reached = nearer;
            }
        }
        reached
    }
}

struct Walk<'a> {
    space: &'a Space,
    found: Vec<Point>,
    most: usize,
    steps: usize,
    /// The levels so far.
    levels: Vec<u32>,
}

impl Walk<'_> {
    /// Finds all points that begin with the levels so far. Returns false at the limit.
    fn descend(&mut self, existing: Existing) -> bool {
        let place = self.levels.len();
        let Some(count) = self.space.levels.get(place) else {
            if self.found.len() == self.most {
                return false;
            }
            self.found.push(Point(self.levels.clone()));
            return true;
        };
        let exists = self.space.rules.exists(place, &self.levels, existing);
        let mut with = existing;
        let range = if exists {
            with.insert(place);
            0..*count
        } else {
            let default = self.space.default.0[place];
            default..default + 1
        };
        for level in range {
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            self.levels.push(level);
            let go_on = !self.space.rules.hold_at(place, &self.levels, with) || self.descend(with);
            self.levels.pop();
            if !go_on {
                return false;
            }
        }
        true
    }
}
