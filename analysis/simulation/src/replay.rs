//! The replay of one study on a table.

use std::collections::BTreeMap;
use std::time::Instant;

use io_autotune_engine::{
    Epoch, History, Parametrization, Pending, Phase, Role, Settings, Stopped, Suggestion,
    SurrogateCache, Tally, Tested,
};

use crate::dataset::Table;

/// Which runs count for the budget and the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// All runs, as for a user of the service.
    #[default]
    All,
    /// Exploring runs alone, as in the papers: no baseline, control or confirmation runs.
    Exploring,
}

/// The outcome of a run whose parametrization the table lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// It fails, after the default's time.
    #[default]
    Fails,
    /// It takes no time and counts as twice as slow as the slowest of the table: "evaluation results
    /// of zero (i.e., no throughput)" (cao2018, section 3).
    Slow,
}

/// How a study is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The study's settings, with its method.
    pub settings: Settings,
    /// The number of runs.
    pub budget: u32,
    /// Which runs these are.
    pub counted: Counted,
    /// The number of runs in flight at once, at least 1.
    pub in_flight: u32,
    /// The outcome of runs that the table lacks.
    pub outside: Outside,
    /// True if the design begins with the table's other defaults ([`SpaceFile::first`]).
    ///
    /// [`SpaceFile::first`]: io_autotune_optimize::SpaceFile::first
    pub defaults_first: bool,
}

/// One run of a replayed study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The configuration's place in the table; none if it is not there: the run failed.
    pub place: Option<usize>,
    /// The role of the run.
    pub role: Role,
    /// When it started, seconds since the study's start.
    pub start: f64,
    /// The elapsed time, seconds.
    pub elapsed: f64,
}

/// The result of a replayed study.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// The counted runs, by start.
    pub runs: Vec<Run>,
    /// The place of the final recommendation, or of the default without one; if only exploring runs
    /// count, of the parametrization that the method ranks best.
    pub recommended: usize,
    /// What the study said of how much can be won, if its search ended for that.
    pub said: Option<Said>,
    /// The expected regret of all runs, in runs of the default ([`Epoch::expected_regret`]).
    pub expected_loss: f64,
    /// The seconds that the method computed: the only figure that is not reproducible.
    pub computing: f64,
}

/// The bound on what can be won, with which a study ended its search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// The number of runs until then.
    pub after: usize,
    /// The bound, as a share of the default's time.
    pub most: f64,
}

struct Flight {
    pending: Pending,
    run: Run,
    ordinal: i64,
    measures: BTreeMap<String, f64>,
}

impl Flight {
    fn end(&self) -> f64 {
        self.run.start + self.run.elapsed
    }
}

/// Replays one study: suggestion, run, judgement, as the service does.
///
/// A run starts as soon as fewer than `in_flight` are in flight; otherwise the earliest end comes
/// first and enters the history. `seed` is the epoch's and chooses the noise ([`Table::draw`]),
/// independently of the method. [`Outside`] says what a parametrization outside the table does.
/// After `budget` runs, those in flight end and the engine gives its recommendation.
pub fn replay(table: &Table, plan: &Plan, seed: u64) -> Trajectory {
    let first: &[Parametrization] = match plan.defaults_first {
        true => &table.file.first,
        false => &[],
    };
    let surrogates = SurrogateCache::default();
    Study {
        table,
        plan,
        epoch: Epoch::new(&table.file.space, &plan.settings, seed)
            .inheriting(first)
            .with_cache(&surrogates),
        seed,
        history: History::default(),
        flights: Vec::new(),
        started: vec![0; table.configurations().len()],
        runs: Vec::new(),
        said: None,
        settled: false,
        now: 0.0,
        ordinal: 0,
        computing: 0.0,
    }
    .replay()
}

struct Study<'a> {
    table: &'a Table,
    plan: &'a Plan,
    epoch: Epoch<'a>,
    seed: u64,
    history: History,
    flights: Vec<Flight>,
    /// The started runs of each configuration.
    started: Vec<u64>,
    runs: Vec<Run>,
    said: Option<Said>,
    settled: bool,
    now: f64,
    ordinal: i64,
    computing: f64,
}

impl Study<'_> {
    fn replay(mut self) -> Trajectory {
        let wanted = self.plan.budget as usize;
        let at_once = self.plan.in_flight.max(1) as usize;
        while self.runs.len() < wanted {
            if self.flights.len() >= at_once {
                self.end_next();
                continue;
            }
            let suggestion = self.suggest();
            // A search with nothing left to try would never use up a budget of exploring runs.
            if self.plan.counted == Counted::Exploring && suggestion.phase == Phase::Settled {
                break;
            }
            self.start(&suggestion);
        }
        while !self.flights.is_empty() {
            self.end_next();
        }
        let clock = Instant::now();
        let best = self.best();
        self.computing += clock.elapsed().as_secs_f64();
        let default = || self.table.place(&self.table.default().point);
        let recommended = best
            .and_then(|best| self.table.file.space.validate(&best).ok())
            .and_then(|point| self.table.place(&point))
            .or_else(default)
            .unwrap_or_default();
        Trajectory {
            said: self.said,
            expected_loss: self.epoch.expected_regret(&self.history),
            runs: self.runs,
            recommended,
            computing: self.computing,
        }
    }

    fn best(&self) -> Option<Parametrization> {
        match self.plan.counted {
            Counted::All => self.epoch.recommend_now(&self.history),
            Counted::Exploring => self.epoch.leader(&self.history),
        }
    }

    fn suggest(&mut self) -> Suggestion {
        let pending: Vec<Pending> = self.flights.iter().map(|f| f.pending.clone()).collect();
        let clock = Instant::now();
        let suggestion = self.epoch.suggest(&self.history, &pending);
        self.computing += clock.elapsed().as_secs_f64();
        if suggestion.phase == Phase::Settled && !self.settled {
            self.settled = true;
            self.said = match self.epoch.nothing_to_win(&self.history) {
                Some(Stopped::LittleToWin { most, .. }) => Some(Said {
                    after: self.runs.len(),
                    most,
                }),
                _ => None,
            };
        }
        suggestion
    }

    fn start(&mut self, suggestion: &Suggestion) {
        let point = self.table.file.space.validate(&suggestion.parametrization);
        let place = point.ok().and_then(|point| self.table.place(&point));
        let mut measures = BTreeMap::new();
        let elapsed = place.and_then(|place| {
            let nth = self.started[place];
            self.started[place] += 1;
            measures = self.table.measures(place, nth, self.seed);
            self.table.draw(place, nth, self.seed)
        });
        let run = Run {
            place,
            role: suggestion.role,
            start: self.now,
            elapsed: elapsed.unwrap_or(match self.plan.outside {
                Outside::Fails => self.table.default().truth,
                Outside::Slow => 0.0,
            }),
        };
        if self.plan.counted == Counted::All || run.role.explores() {
            self.runs.push(run);
        }
        self.flights.push(Flight {
            pending: Pending {
                parametrization: suggestion.parametrization.clone(),
                phase: suggestion.phase,
                role: suggestion.role,
                count: 1,
            },
            run,
            ordinal: self.ordinal,
            measures,
        });
        self.ordinal += 1;
    }

    /// Ends the run with the earliest end; among several the one that started first.
    fn end_next(&mut self) {
        let next = (0..self.flights.len()).min_by(|a, b| {
            let (a, b) = (&self.flights[*a], &self.flights[*b]);
            a.end()
                .total_cmp(&b.end())
                .then_with(|| a.ordinal.cmp(&b.ordinal))
        });
        let Some(next) = next else { return };
        let flight = self.flights.swap_remove(next);
        self.now = flight.end();
        self.history.tally += Tally::of(flight.pending.phase, flight.pending.role);
        let parametrization = flight.pending.parametrization;
        let known = self
            .history
            .tested
            .iter()
            .position(|tested| tested.parametrization == parametrization);
        let place = known.unwrap_or_else(|| {
            let new = Tested::new(parametrization, flight.ordinal);
            self.history.tested.push(new);
            self.history.tested.len() - 1
        });
        let tested = &mut self.history.tested[place];
        let elapsed = match (flight.run.place, self.plan.outside) {
            (Some(_), _) => Some(flight.run.elapsed),
            (None, Outside::Slow) => Some(2.0 * self.table.slowest()),
            (None, Outside::Fails) => None,
        };
        let counts = elapsed.is_some_and(|time| tested.record(flight.ordinal, time).is_ok());
        if counts {
            tested.record_measures(&flight.measures);
        } else {
            tested.record_failure(flight.ordinal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use io_autotune_engine::{ChildRevisits, MethodName, Noise};
    use io_autotune_optimize::SpaceFile;
    use proptest::prelude::*;

    use super::*;

    /// Two parameters of six levels; the time grows with the distance from (4, 1).
    fn table(holes: bool) -> Table {
        let space = r#"{"parameters": [
            {"name": "a", "kind": "int", "values": [0, 1, 2, 3, 4, 5]},
            {"name": "b", "kind": "ordinal", "values": ["b0", "b1", "b2", "b3", "b4", "b5"]}],
            "default": {"a": 0, "b": "b5"}}"#;
        let mut csv = "a,b,rep,time\n".to_owned();
        for a in 0_i32..6 {
            for b in 0_i32..6 {
                if holes && (a * b) % 3 == 1 {
                    continue;
                }
                let truth = 100.0 + 20.0 * f64::from((a - 4).pow(2) + (b - 1).pow(2));
                for (rep, factor) in [0.9, 0.95, 1.0, 1.05, 1.1].into_iter().enumerate() {
                    csv.push_str(&format!("{a},b{b},{rep},{}\n", truth * factor));
                }
            }
        }
        let file = SpaceFile::parse(space, Path::new("t.json")).unwrap();
        Table::parse(file, &csv, Path::new("t.csv")).unwrap()
    }

    fn plan(method: MethodName, budget: u32, in_flight: u32) -> Plan {
        Plan {
            settings: Settings {
                method,
                budget,
                ..Settings::default()
            },
            budget,
            counted: Counted::All,
            in_flight,
            outside: Outside::Fails,
            defaults_first: false,
        }
    }

    fn same(a: &Trajectory, b: &Trajectory) -> bool {
        a.runs == b.runs && a.recommended == b.recommended
    }

    #[test]
    fn a_study_starts_at_the_default_and_ends_better() {
        let table = table(false);
        for method in MethodName::ALL {
            for in_flight in [1, 4] {
                let trajectory = replay(&table, &plan(*method, 60, in_flight), 3);
                assert_eq!(trajectory.runs.len(), 60);
                let first = &trajectory.runs[0];
                let default = table.place(&table.default().point);
                assert_eq!((first.place, first.role), (default, Role::Baseline));
                let truth = table.configurations()[trajectory.recommended].truth;
                assert!(truth < 0.5 * table.default().truth, "{method} {truth}");
            }
        }
    }

    #[test]
    fn only_exploring_runs_are_counted_where_asked() {
        let table = table(false);
        let mut plan = plan(MethodName::Robert2020, 20, 1);
        plan.counted = Counted::Exploring;
        let trajectory = replay(&table, &plan, 0);
        assert_eq!(trajectory.runs.len(), 20);
        assert!(trajectory.runs.iter().all(|run| run.role.explores()));
    }

    /// Where nothing runs twice a child runs once, so nothing but the default could be recommended.
    #[test]
    fn the_papers_recommend_what_ran_once() {
        let table = table(false);
        let mut plan = plan(MethodName::Robert2020, 30, 1);
        plan.settings.robert2020.noise = Noise::None;
        plan.settings.robert2020.revisits = ChildRevisits::Never;
        plan.counted = Counted::Exploring;
        let trajectory = replay(&table, &plan, 0);
        let best = trajectory.recommended;
        assert!(table.configurations()[best].truth < table.default().truth);
        let runs = trajectory.runs.iter().filter(|run| run.place == Some(best));
        assert_eq!(runs.count(), 1);
    }

    /// Cao 2018, section 3: "Invalid configurations will always come with evaluation results of zero
    /// (i.e., no throughput)".
    #[test]
    fn cao2018_iii_what_is_invalid_has_no_throughput_and_takes_no_time() {
        let table = table(true);
        let mut plan = plan(MethodName::Random, 30, 1);
        plan.counted = Counted::Exploring;
        plan.outside = Outside::Slow;
        let trajectory = replay(&table, &plan, 2);
        let (outside, inside): (Vec<&Run>, Vec<&Run>) =
            trajectory.runs.iter().partition(|run| run.place.is_none());
        assert!(!outside.is_empty() && outside.iter().all(|run| run.elapsed == 0.0));
        assert!(inside.iter().all(|run| run.elapsed > 0.0));
        // It is known after one run, and not tried again: the others are all different.
        assert_eq!(trajectory.runs.len(), 30);
    }

    /// Cao 2018, section 4.2: "GA and BO require several initial configurations (prior points), which
    /// we set to default configurations of all seven file systems".
    #[test]
    fn cao2018_iv_2_a_study_can_begin_with_the_defaults() {
        let mut table = table(false);
        let other = |a: i64, b: &str| {
            let values = [("a".to_owned(), a.into()), ("b".to_owned(), b.into())];
            Parametrization(values.into())
        };
        table.file.first = vec![other(0, "b5"), other(3, "b2"), other(5, "b0")];
        let mut plan = plan(MethodName::Cao2018Genetic, 12, 1);
        plan.counted = Counted::Exploring;
        plan.defaults_first = true;
        let places = |trajectory: &Trajectory| -> Vec<Option<usize>> {
            trajectory.runs.iter().map(|run| run.place).collect()
        };
        let began = places(&replay(&table, &plan, 1));
        let wanted = table.file.first[1..].iter();
        let wanted: Vec<Option<usize>> = wanted
            .map(|one| table.place(&table.file.space.validate(one).unwrap()))
            .collect();
        assert_eq!(
            began[..2],
            wanted,
            "but for the default, which is known already"
        );
        plan.defaults_first = false;
        assert_ne!(places(&replay(&table, &plan, 1))[..2], wanted);
    }

    #[test]
    fn what_the_table_lacks_fails_and_the_study_goes_on() {
        let table = table(true);
        let outside: usize = (0..8)
            .map(|seed| {
                let trajectory = replay(&table, &plan(MethodName::Robert2020, 40, 2), seed);
                assert_eq!(trajectory.runs.len(), 40);
                trajectory
                    .runs
                    .iter()
                    .filter(|run| run.place.is_none())
                    .count()
            })
            .sum();
        assert!(outside > 0);
    }

    #[test]
    fn methods_see_the_same_noise() {
        let table = table(false);
        let seen = |method| {
            let mut nth = vec![0_usize; table.configurations().len()];
            let mut times = std::collections::BTreeMap::new();
            for run in replay(&table, &plan(method, 60, 1), 5).runs {
                let place = run.place.unwrap();
                times.insert((place, nth[place]), run.elapsed);
                nth[place] += 1;
            }
            times
        };
        let (one, other) = (
            seen(MethodName::Robert2020),
            seen(MethodName::SurrogateGenetic),
        );
        let shared: Vec<_> = one.keys().filter(|key| other.contains_key(key)).collect();
        assert!(shared.len() >= 8, "{}", shared.len());
        assert!(shared.iter().all(|key| one[key] == other[key]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn runs_overlap_as_far_as_they_may_and_no_further(
            seed in any::<u64>(),
            in_flight in 1_u32..6,
            budget in 5_u32..40,
        ) {
            let table = table(false);
            let plan = plan(MethodName::Robert2020, budget, in_flight);
            let trajectory = replay(&table, &plan, seed);
            prop_assert!(same(&trajectory, &replay(&table, &plan, seed)));
            prop_assert_eq!(trajectory.runs.len(), budget as usize);
            prop_assert!(trajectory.runs.is_sorted_by_key(|run| run.start));
            for run in &trajectory.runs {
                let open = |other: &&Run| {
                    other.start <= run.start && other.start + other.elapsed > run.start
                };
                let open = trajectory.runs.iter().filter(open).count();
                prop_assert!(open <= in_flight as usize, "{}", open);
            }
            let at_zero = trajectory.runs.iter().filter(|run| run.start == 0.0).count();
            prop_assert_eq!(at_zero, (in_flight.min(budget)) as usize);
        }
    }
}
