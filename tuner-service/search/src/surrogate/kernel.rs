//! The correlation of two points. Per parameter it is a Matérn function with nu = 5/2 over ordered
//! levels (RW equation 4.17), and a constant for two different categories. The kernel mixes the
//! product over the parameters (any interaction) with their mean (learnt from few runs; additive
//! kernels, Duvenaud, Nickisch, Rasmussen 2011). A small share belongs to the point alone, because
//! real systems are not smooth everywhere.

use crate::math::Portable;
use std::array;
use std::collections::BTreeSet;

use super::cholesky::Symmetric;
use io_autotune_model::space::{ABSENT, Point, Space};

/// The grid of length scales; 1 is the whole range of an ordered parameter.
const LENGTHS: [f64; 7] = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4];
const START_LENGTH: usize = 3;
/// The grid of variances of one run's noise, relative to the process's variance.
const NOISES: [f64; 8] = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
const START_NOISE: f64 = 0.03;
/// The grid of shares of the additive part.
const ADDITIVE: [f64; 5] = [0.0, 0.1, 0.3, 0.6, 0.9];
const START_ADDITIVE: f64 = 0.3;
/// The grid of shares of the part that belongs to the point alone.
const OWN: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
const START_OWN: f64 = 0.01;

/// The most levels of a parameter for which correlations are tabled.
const MOST_TABLED: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub struct Hyperparameters {
    lengths: Vec<usize>,
    additive: f64,
    own: f64,
    /// The variance of one run's noise, relative to the process's variance.
    pub noise: f64,
}

#[derive(Clone, Copy, Debug)]
pub enum Coordinate {
    Noise,
    Own,
    Length(usize),
    Additive,
}

impl Hyperparameters {
    pub fn start(space: &Space) -> Self {
        Hyperparameters {
            lengths: vec![START_LENGTH; space.parameters().len()],
            additive: START_ADDITIVE,
            own: START_OWN,
            noise: START_NOISE,
        }
    }

    /// Hyperparameters with the given values; `lengths` must be values of [`LENGTHS`].
    #[cfg(test)]
    pub fn of(lengths: &[f64], additive: f64, own: f64, noise: f64) -> Self {
        let place = |length: &f64| LENGTHS.iter().position(|known| known == length).unwrap();
        Hyperparameters {
            lengths: lengths.iter().map(place).collect(),
            additive,
            own,
            noise,
        }
    }

    pub fn coordinates(&self) -> Vec<Coordinate> {
        let lengths = (0..self.lengths.len()).map(Coordinate::Length);
        [Coordinate::Noise, Coordinate::Own]
            .into_iter()
            .chain(lengths)
            .chain([Coordinate::Additive])
            .collect()
    }

    pub fn varied(&self, coordinate: Coordinate) -> Vec<Self> {
        let with = |change: &dyn Fn(&mut Self)| {
            let mut varied = self.clone();
            change(&mut varied);
            varied
        };
        match coordinate {
            Coordinate::Noise => NOISES.map(|value| with(&|h| h.noise = value)).into(),
            Coordinate::Own => OWN.map(|value| with(&|h| h.own = value)).into(),
            Coordinate::Additive => ADDITIVE.map(|value| with(&|h| h.additive = value)).into(),
            Coordinate::Length(index) => (0..LENGTHS.len())
                .map(|length| with(&|h| h.lengths[index] = length))
                .collect(),
        }
    }

    /// The logarithm of the log-normal prior density, up to a constant. The medians are the whole
    /// range for lengths, a sixth of the process's standard deviation for the noise, and a small
    /// own share.
    pub fn log_prior(&self) -> f64 {
        let normal = |value: f64, median: f64, spread: f64| {
            let z = (value / median).logarithm() / spread;
            -0.5 * z * z
        };
        let lengths: f64 = self
            .lengths
            .iter()
            .map(|index| normal(LENGTHS[*index], 1.0, 1.0))
            .sum();
        lengths + normal(self.noise, 0.03, 1.5) + normal(self.own, 0.02, 1.5)
    }

    fn mix(&self, product: f64, sum: f64) -> f64 {
        let mean = sum / self.lengths.len() as f64;
        (1.0 - self.own) * ((1.0 - self.additive) * product + self.additive * mean)
    }
}

/// The number of steps between the ends of an ordered parameter; none for categories.
type Scale = Option<f64>;

fn scales(space: &Space) -> Vec<Scale> {
    space
        .parameters()
        .iter()
        .map(|parameter| {
            let steps = (parameter.levels().max(2) - 1) as f64;
            parameter.is_ordered().then_some(steps)
        })
        .collect()
}

/// The correlation of two levels. An absent level is as far from any other as the two ends are
/// apart.
fn correlation(scale: Scale, a: u32, b: u32, length: f64) -> f64 {
    if a == b {
        return 1.0;
    }
    match scale {
        Some(steps) => {
            let apart = if a == ABSENT || b == ABSENT {
                steps
            } else {
                f64::from(a.abs_diff(b))
            };
            let r = 5_f64.sqrt() * apart / steps / length;
            (1.0 + r + r * r / 3.0) * (-r).exponential()
        }
        None => (-1.0 / length).exponential(),
    }
}

#[derive(Debug)]
struct Alike {
    scale: Scale,
    length: f64,
    /// Correlations by distance in levels; all categories are 1 apart. Empty if the table would be
    /// too long.
    by_distance: Vec<f64>,
}

impl Alike {
    fn new(scale: Scale, length: f64, most: usize) -> Self {
        let levels = scale.map_or(2, |steps| steps as usize + 1);
        let farthest = if levels <= most { levels as u32 } else { 0 };
        Alike {
            scale,
            length,
            by_distance: (0..farthest)
                .map(|apart| correlation(scale, 0, apart, length))
                .collect(),
        }
    }

    fn of(&self, a: u32, b: u32) -> f64 {
        let apart = a.abs_diff(b);
        let apart = if self.scale.is_some() {
            apart
        } else {
            apart.min(1)
        };
        match self.by_distance.get(apart as usize) {
            Some(correlation) => *correlation,
            None => correlation(self.scale, a, b, self.length),
        }
    }
}

#[derive(Debug)]
pub struct Kernel {
    parameters: Vec<Alike>,
    hyperparameters: Hyperparameters,
}

impl Kernel {
    pub fn new(space: &Space, hyperparameters: Hyperparameters) -> Self {
        let lengths = hyperparameters.lengths.iter();
        Kernel {
            parameters: scales(space)
                .into_iter()
                .zip(lengths)
                .map(|(scale, length)| Alike::new(scale, LENGTHS[*length], MOST_TABLED))
                .collect(),
            hyperparameters,
        }
    }

    pub fn hyperparameters(&self) -> &Hyperparameters {
        &self.hyperparameters
    }

    /// The correlation of two points in the form of [`Space::seen`].
    pub fn correlation(&self, a: &Point, b: &Point) -> f64 {
        if a == b {
            return 1.0;
        }
        let (mut product, mut sum) = (1.0, 0.0);
        for (parameter, (a, b)) in self.parameters.iter().zip(a.0.iter().zip(&b.0)) {
            let correlation = parameter.of(*a, *b);
            product *= correlation;
            sum += correlation;
        }
        self.hyperparameters.mix(product, sum)
    }

    /// [`Kernel::correlation`] of all these points with up to `LANES` points, but faster. Unused
    /// lanes are meaningless.
    pub fn with_several<const LANES: usize>(
        &self,
        all: &ByLevel,
        points: &[Point],
    ) -> Vec<[f64; LANES]> {
        // Many points share a level, so each level is looked up once.
        let lanes = |of: &Level| {
            let (mut alike, mut differs) = ([1.0; LANES], [0.0; LANES]);
            let parameter = &self.parameters[of.parameter];
            let lanes = alike.iter_mut().zip(&mut differs);
            for ((alike, differs), point) in lanes.zip(points) {
                let own = point.0[of.parameter];
                *alike = parameter.of(own, of.level);
                *differs = f64::from(u8::from(own != of.level));
            }
            (alike, differs)
        };
        let levels: Vec<_> = all.levels.iter().map(lanes).collect();
        let of_point = |places: &[usize]| {
            // Numbers alone, so that the lanes are worked on at once.
            let (mut products, mut sums) = ([1.0; LANES], [0.0; LANES]);
            let mut differences = [0.0; LANES];
            for place in places {
                let (alike, differs) = &levels[*place];
                for lane in 0..LANES {
                    products[lane] *= alike[lane];
                    sums[lane] += alike[lane];
                    differences[lane] += differs[lane];
                }
            }
            array::from_fn(|lane| match differences[lane] > 0.0 {
                true => self.hyperparameters.mix(products[lane], sums[lane]),
                false => 1.0,
            })
        };
        match self.parameters.len() {
            0 => vec![[1.0; LANES]; all.size],
            parameters => all.places.chunks(parameters).map(of_point).collect(),
        }
    }
}

/// Points by the levels that they have.
#[derive(Debug)]
pub struct ByLevel {
    size: usize,
    /// The levels of all points, each once.
    levels: Vec<Level>,
    /// For each point in turn, the places of its levels in `levels`.
    places: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Level {
    parameter: usize,
    level: u32,
}

impl ByLevel {
    /// Groups points, which must be in the form of [`Space::seen`].
    pub fn new(points: &[Point]) -> Self {
        let of = |point: &Point| {
            let levels = point.0.clone().into_iter().enumerate();
            levels.map(|(parameter, level)| Level { parameter, level })
        };
        let each: Vec<Level> = points.iter().flat_map(of).collect();
        let levels: BTreeSet<Level> = each.iter().copied().collect();
        let levels: Vec<Level> = levels.into_iter().collect();
        let place = |level| levels.partition_point(|other| other < level);
        ByLevel {
            size: points.len(),
            places: each.iter().map(place).collect(),
            levels,
        }
    }
}

/// For each pair, the product and sum of the correlations of all parameters but `left_out`.
#[derive(Debug)]
pub(crate) struct Partial {
    product: Vec<f64>,
    sum: Vec<f64>,
    left_out: Option<usize>,
}

/// The correlations of points as [`Space::seen`] gives them, cached by parameter and length scale.
#[derive(Debug)]
pub(crate) struct Correlations {
    size: usize,
    scales: Vec<Scale>,
    levels: Vec<Vec<u32>>,
    /// For each parameter and length scale, the strict lower triangle, row by row.
    kept: Vec<[Option<Vec<f64>>; LENGTHS.len()]>,
}

impl Correlations {
    pub(crate) fn new(space: &Space, points: &[Point]) -> Self {
        let scales = scales(space);
        let levels = (0..scales.len())
            .map(|index| points.iter().map(|point| point.0[index]).collect())
            .collect();
        Correlations {
            size: points.len(),
            kept: scales.iter().map(|_| array::from_fn(|_| None)).collect(),
            scales,
            levels,
        }
    }

    pub(crate) fn partial(
        &mut self,
        hyperparameters: &Hyperparameters,
        searched: Option<Coordinate>,
    ) -> Partial {
        let left_out = match searched {
            Some(Coordinate::Length(index)) => Some(index),
            _ => None,
        };
        let pairs = self.size * self.size.saturating_sub(1) / 2;
        let mut partial = Partial {
            product: vec![1.0; pairs],
            sum: vec![0.0; pairs],
            left_out,
        };
        for (index, length) in hyperparameters.lengths.iter().enumerate() {
            if left_out == Some(index) {
                continue;
            }
            let both = partial.product.iter_mut().zip(&mut partial.sum);
            for ((product, sum), correlation) in both.zip(self.of_parameter(index, *length)) {
                *product *= correlation;
                *sum += correlation;
            }
        }
        partial
    }

    /// The matrix for hyperparameters that differ from those of `partial` only in the coordinate
    /// that is being searched.
    pub(crate) fn matrix(
        &mut self,
        partial: &Partial,
        hyperparameters: &Hyperparameters,
    ) -> Symmetric {
        let both = || partial.product.iter().zip(&partial.sum);
        let mixed: Vec<f64> = match partial.left_out {
            Some(index) => both()
                .zip(self.of_parameter(index, hyperparameters.lengths[index]))
                .map(|((product, sum), last)| hyperparameters.mix(product * last, sum + last))
                .collect(),
            None => both()
                .map(|(product, sum)| hyperparameters.mix(*product, *sum))
                .collect(),
        };
        Symmetric::from_strict(self.size, &mixed, 1.0)
    }

    fn of_parameter(&mut self, index: usize, length: usize) -> &[f64] {
        let (scale, levels) = (self.scales[index], &self.levels[index]);
        self.kept[index][length].get_or_insert_with(|| {
            let pairs = levels.len() * levels.len() / 2;
            let alike = Alike::new(scale, LENGTHS[length], pairs.min(MOST_TABLED));
            let mut correlations = Vec::with_capacity(pairs);
            for (row, level) in levels.iter().enumerate() {
                let earlier = levels[..row].iter();
                correlations.extend(earlier.map(|other| alike.of(*level, *other)));
            }
            correlations
        })
    }
}
