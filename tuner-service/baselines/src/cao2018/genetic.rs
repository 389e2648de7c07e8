//! The genetic algorithm of Cao, Tarasov, Tiwari and Zadok 2018 (sections 2.2 and 4.2): generations
//! of 8. It is stateless, see [`io_autotune_search::replay`].
//!
//! The paper gives population and mutation rate; the rest follows its library Pyevolve: one-point
//! crossover into two children of nine pairs in ten, and the best member survives if no child is
//! better. The selection of parents is a setting ([`Cao2018Selection`]), because the paper's words
//! and its library's default differ. The first generation is the default and a Latin hypercube (in the paper seven file
//! systems' defaults). A generation must end before the next is bred.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::settings::{Cao2018Genetic, Cao2018Selection};
use crate::revisits::Purse;
use io_autotune_model::reason::{BestKnownBecause, Reason};
use io_autotune_model::space::{Point, Space, levels_of, other_level};
use io_autotune_search::checks::MAX_DESIGN_POINTS;
use io_autotune_search::{Method, MethodContext, Proposal, random, replay};

/// The number of generations of known children after which breeding counts as exhausted.
const MOST_GENERATIONS: u64 = 256;
/// The number of draws of a pair. If all fail, the last one is approached as far as the space
/// admits.
const DRAWS: usize = 100;
/// The number of random streams per generation: the most pairs.
const MOST_PAIRS: u64 = MAX_DESIGN_POINTS as u64;

#[derive(Clone)]
struct Member {
    point: Point,
    mean: f64,
}

struct Child {
    point: Point,
    parents: [Point; 2],
    cut: Option<usize>,
    mutated: Vec<String>,
}

impl Cao2018Genetic {
    /// The children of a generation, in pairs.
    fn breed(
        &self,
        space: &Space,
        generation: &[Member],
        number: u64,
        rng: &ChaCha8Rng,
    ) -> Vec<Child> {
        let population = self.population.clamp(2, MAX_DESIGN_POINTS);
        let mut children: Vec<Child> = (0..u64::from(population.div_ceil(2)))
            .flat_map(|pair| {
                let mut drawn = replay::generator(rng, number * MOST_PAIRS + pair);
                couple(self, space, generation, &mut drawn)
            })
            .collect();
        children.truncate(population as usize);
        children
    }
}

impl Method for Cao2018Genetic {
    fn design_points(&self, _: &Space, _: u32) -> u32 {
        self.population.saturating_sub(1)
    }

    fn propose(&self, context: &MethodContext<'_>, rng: &mut ChaCha8Rng) -> Proposal {
        let mut generation = first(context);
        if generation.is_empty() {
            return context
                .nothing_known()
                .unwrap_or_else(|| random::draw(context, rng));
        }
        let mut purse = Purse::new(self.revisits, context);
        for number in 0..MOST_GENERATIONS {
            let children = self.breed(context.space(), &generation, number, rng);
            let due = children.iter().find(|child| {
                context.is_untested(&child.point) || purse.must_pay(context, &child.point)
            });
            if let Some(child) = due {
                return run(context.space(), child);
            }
            let waits = |child: &Child| {
                let flying = |known: &io_autotune_search::history::by_point::Known| {
                    known.in_flight > 0 && known.mean().is_none() && !known.is_quarantined()
                };
                context.view.get(&child.point).is_some_and(flying)
            };
            if children.iter().any(waits) {
                return Proposal::Wait(BestKnownBecause::AwaitingResults);
            }
            generation = succeed(context, &generation, &children);
        }
        let best = generation.swap_remove(0).point;
        random::elsewhere(context, &best, rng)
    }
}

/// The default and the design as far as they are known, the fastest first.
fn first(context: &MethodContext<'_>) -> Vec<Member> {
    let default = std::iter::once(&context.view.default);
    let others = context
        .design
        .iter()
        .filter(|point| **point != context.view.default);
    let mut members: Vec<Member> = default
        .chain(others)
        .filter_map(|point| member(context, point))
        .collect();
    rank(&mut members);
    members
}

fn member(context: &MethodContext<'_>, point: &Point) -> Option<Member> {
    let known = context.view.get(point)?;
    let mean = known.mean().filter(|_| !known.is_quarantined())?;
    Some(Member {
        point: point.clone(),
        mean,
    })
}

fn rank(members: &mut [Member]) {
    members.sort_by(|a, b| {
        a.mean
            .total_cmp(&b.mean)
            .then_with(|| a.point.cmp(&b.point))
    });
}

fn couple(
    settings: &Cao2018Genetic,
    space: &Space,
    generation: &[Member],
    rng: &mut ChaCha8Rng,
) -> [Child; 2] {
    for _ in 1..DRAWS {
        let children = cross(settings, space, generation, rng);
        if children.iter().all(|child| space.admits(&child.point)) {
            return children;
        }
    }
    cross(settings, space, generation, rng).map(|mut child| {
        child.point = space.approach(&child.parents[0], &child.point, rng);
        child
    })
}

/// Two children, which the space may not admit.
fn cross(
    settings: &Cao2018Genetic,
    space: &Space,
    generation: &[Member],
    rng: &mut ChaCha8Rng,
) -> [Child; 2] {
    let parents = select(settings.selection, generation, rng);
    let parents = parents.map(|index| &generation[index].point);
    let places = space.parameters().len().saturating_sub(1);
    // A rate of 1 draws nothing, so that what was decided before there was a rate stays the same.
    let crosses = settings.crossover_rate >= 1.0 || rng.random::<f64>() < settings.crossover_rate;
    let cut = (crosses && places > 0).then(|| 1 + rng.random_range(0..places));
    let [mut first, mut second] = parents.map(Point::clone);
    if let Some(cut) = cut {
        first.0[cut..].swap_with_slice(&mut second.0[cut..]);
    }
    let mut finish = |mut point: Point, parents: [&Point; 2]| {
        let mutated = mutate(space, &mut point, settings.mutation_rate, rng);
        Child {
            point: space.canonical(point),
            parents: parents.map(Point::clone),
            cut,
            mutated,
        }
    };
    let first = finish(first, parents);
    let second = finish(second, [parents[1], parents[0]]);
    [first, second]
}

/// The places of two parents in a generation, which is ordered by mean. Pyevolve may draw one member
/// twice; linear ranks are drawn without replacement.
fn select(selection: Cao2018Selection, generation: &[Member], rng: &mut ChaCha8Rng) -> [usize; 2] {
    match selection {
        Cao2018Selection::Best => [0, 1].map(|_| one_of_the_best(generation, rng)),
        Cao2018Selection::Proportional => [0, 1].map(|_| by_throughput(generation, rng)),
        Cao2018Selection::Ranks => {
            let one = by_rank(generation.len(), rng);
            let other = (0..DRAWS)
                .map(|_| by_rank(generation.len(), rng))
                .find(|drawn| *drawn != one);
            [one, other.unwrap_or(one)]
        }
    }
}

/// "This selector will pick the best individual of the population every time" (Pyevolve,
/// `GRankSelector`): one of those with the best's mean.
fn one_of_the_best(generation: &[Member], rng: &mut ChaCha8Rng) -> usize {
    let best = generation.first().map_or(0.0, |member| member.mean);
    let equal = generation.partition_point(|member| member.mean <= best);
    rng.random_range(0..equal.max(1))
}

/// Draws a member with a probability proportional to its throughput.
fn by_throughput(generation: &[Member], rng: &mut ChaCha8Rng) -> usize {
    let best = generation.first().map_or(1.0, |member| member.mean);
    // The best has weight 1: weights in (0, 1] have a finite sum.
    let weight = |member: &Member| best / member.mean;
    let mut left = rng.random::<f64>() * generation.iter().map(weight).sum::<f64>();
    let drawn = generation.iter().position(|member| {
        left -= weight(member);
        left < 0.0
    });
    drawn.unwrap_or(generation.len().saturating_sub(1))
}

/// Linear ranks: of n members the first is drawn n times as often as the last.
fn by_rank(count: usize, rng: &mut ChaCha8Rng) -> usize {
    let mut left = rng.random_range(0..count * (count + 1) / 2);
    for index in 0..count {
        let weight = count - index;
        if left < weight {
            return index;
        }
        left -= weight;
    }
    count - 1
}

/// Each existing parameter takes another value with this probability. Returns the names of those
/// that did.
fn mutate(space: &Space, point: &mut Point, rate: f64, rng: &mut ChaCha8Rng) -> Vec<String> {
    let mut mutated = Vec::new();
    for (place, parameter) in space.parameters().iter().enumerate() {
        let levels = levels_of(parameter);
        let mobile = levels > 1 && space.existing(point).contains(place);
        if mobile && rng.random::<f64>() < rate {
            let level = &mut point.0[place];
            *level = other_level(*level, levels, rng);
            mutated.push(parameter.name.clone());
        }
    }
    mutated
}

/// The next generation, the fastest first: the children, with the old best in the place of the
/// worst child if it is faster than all of them. Without usable children the generation stays.
fn succeed(context: &MethodContext<'_>, generation: &[Member], children: &[Child]) -> Vec<Member> {
    let mut next: Vec<Member> = children
        .iter()
        .filter_map(|child| member(context, &child.point))
        .collect();
    if next.is_empty() {
        return generation.to_vec();
    }
    rank(&mut next);
    if generation[0].mean < next[0].mean {
        next.pop();
        next.insert(0, generation[0].clone());
    }
    next
}

fn run(space: &Space, child: &Child) -> Proposal {
    Proposal::Run {
        point: child.point.clone(),
        reason: Reason::Child {
            parents: [0, 1].map(|index| space.parametrization(&child.parents[index])),
            cuts: child.cut.into_iter().collect(),
            mutated: child.mutated.clone(),
            redraws: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use io_autotune_search::testing::{grid, history, tested, with_context};

    /// Cao 2018, section 2.2, figure 2: "cut at the same crossover point, and then the subparts after
    /// the crossover point are exchanged".
    #[test]
    fn cao2018_ii_2_the_subparts_after_one_cut_are_exchanged() {
        let space = grid(&[2, 2, 2, 2]);
        let parents = [vec![0; 4], vec![1; 4]].map(|levels| Member {
            point: Point(levels),
            mean: 1.0,
        });
        let settings = Cao2018Genetic {
            mutation_rate: 0.0,
            selection: Cao2018Selection::Ranks,
            crossover_rate: 1.0,
            ..Cao2018Genetic::default()
        };
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut cuts = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let [one, other] = cross(&settings, &space, &parents, &mut rng);
            let cut = one.cut.unwrap();
            cuts.insert(cut);
            assert!(
                one.point.0[..cut]
                    .iter()
                    .all(|level| *level == one.point.0[0])
            );
            assert!(
                one.point.0[cut..]
                    .iter()
                    .all(|level| *level != one.point.0[0])
            );
            let together = one.point.0.iter().zip(&other.point.0);
            assert!(together.into_iter().all(|(a, b)| a + b == 1));
        }
        assert_eq!(cuts, [1, 2, 3].into());
    }

    /// How often each of four members is a parent in 6,000 pairs; the second and third are alike.
    fn parents(selection: Cao2018Selection) -> [u32; 4] {
        let generation: Vec<Member> = [1.0, 2.0, 2.0, 4.0]
            .into_iter()
            .enumerate()
            .map(|(level, mean)| Member {
                point: Point(vec![level as u32]),
                mean,
            })
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut drawn = [0_u32; 4];
        for _ in 0..6000 {
            for parent in select(selection, &generation, &mut rng) {
                drawn[parent] += 1;
            }
        }
        drawn
    }

    fn is_near(drawn: [u32; 4], expected: [u32; 4]) -> bool {
        let together = drawn.into_iter().zip(expected);
        // The standard deviations are below 56.
        together
            .into_iter()
            .all(|(count, expected)| count.abs_diff(expected) < 280)
    }

    /// Cao 2018, section 4.2: "configurations with low throughput values have a lower chance to be
    /// picked as parents".
    #[test]
    fn cao2018_iv_2_low_throughput_has_a_lower_chance_to_be_picked_as_a_parent() {
        // Throughputs 4 : 2 : 2 : 1 of 9.
        let drawn = parents(Cao2018Selection::Proportional);
        assert!(is_near(drawn, [5333, 2667, 2667, 1333]), "{drawn:?}");
    }

    /// Pyevolve's `GRankSelector`: the best of the population, and those that are as good.
    #[test]
    fn cao2018_iii_the_librarys_default_selects_the_best_alone() {
        assert_eq!(parents(Cao2018Selection::Best), [12_000, 0, 0, 0]);
        let alike: Vec<Member> = [7.0, 7.0, 9.0]
            .into_iter()
            .map(|mean| Member {
                point: Point(vec![0]),
                mean,
            })
            .collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let drawn: std::collections::BTreeSet<usize> = (0..100)
            .flat_map(|_| select(Cao2018Selection::Best, &alike, &mut rng))
            .collect();
        assert_eq!(drawn, [0, 1].into());
    }

    #[test]
    fn linear_ranks_follow_the_order_alone() {
        // Firsts 4 : 3 : 2 : 1 of 10; the second is another one.
        let drawn = parents(Cao2018Selection::Ranks);
        assert!(drawn.is_sorted_by(|a, b| a > b), "{drawn:?}");
        assert_eq!(drawn.iter().sum::<u32>(), 12_000);
    }

    /// Pyevolve crosses nine pairs in ten; the others' children are copies.
    #[test]
    fn cao2018_iii_a_pair_that_is_not_crossed_has_copies_for_children() {
        let space = grid(&[2, 2, 2, 2]);
        let generation = [vec![0; 4], vec![1; 4]].map(|levels| Member {
            point: Point(levels),
            mean: 1.0,
        });
        let settings = Cao2018Genetic {
            mutation_rate: 0.0,
            ..Cao2018Genetic::default()
        };
        assert_eq!(settings.crossover_rate, 0.9);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut crossed = 0;
        for _ in 0..2000 {
            let children = cross(&settings, &space, &generation, &mut rng);
            let copies = children.iter().all(|one| one.point == one.parents[0]);
            assert!(children[0].cut.is_some() || copies);
            crossed += u32::from(children[0].cut.is_some());
        }
        // The standard deviation is 13.
        assert!((1735..1865).contains(&crossed), "{crossed}");
    }

    #[test]
    fn cao2018_iii_pyevolve_keeps_the_best_unless_a_child_is_better() {
        let space = grid(&[9]);
        let entries = [50.0, 80.0, 60.0, 40.0].into_iter().enumerate();
        let entries = entries.map(|(level, time)| tested(&space, &[level as u32], &[time], 0));
        let history = history(entries.collect(), 0, 0);
        let settings = Cao2018Genetic::default();
        with_context(&space, &history, &[], &settings, 1, |context| {
            let member = |level| member(context, &Point(vec![level])).unwrap();
            let child = |level| Child {
                point: Point(vec![level]),
                parents: [Point(vec![0]), Point(vec![0])],
                cut: None,
                mutated: Vec::new(),
            };
            let next = |children: &[Child]| -> Vec<u32> {
                let next = succeed(context, &[member(0)], children);
                next.iter().map(|member| member.point.0[0]).collect()
            };
            assert_eq!(next(&[child(1), child(2)]), [0, 2]);
            assert_eq!(next(&[child(1), child(3)]), [3, 1]);
            assert_eq!(next(&[child(8)]), [0], "of whom nothing is known");
        });
    }
}
