//! A cell's figures, and their intervals.

use serde::{Deserialize, Serialize};

use crate::life::Outcome;

/// The figures of the studies of one cell under one engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) engine: String,
    pub(crate) cell: String,
    pub(crate) studies: usize,
    pub(crate) seed: u64,
    /// Runs from the first submission to the claim: median and 80 % quantile.
    pub(crate) runs: [Quantile; 2],
    /// The same from the first run that is compared.
    pub(crate) after: [Quantile; 2],
    /// Runs before it: the median.
    pub(crate) search: Quantile,
    pub(crate) faster: Share,
    pub(crate) slower: Share,
    pub(crate) holds_choice: Share,
    pub(crate) holds_tuned: Share,
    /// Mean and standard error.
    pub(crate) found: (f64, f64),
    pub(crate) regret: (f64, f64),
    #[serde(default)]
    pub(crate) harm: (f64, f64),
    /// Seconds of one processor.
    pub(crate) seconds: f64,
}

/// A quantile with the 95 % interval between order statistics, by the binomial distribution. None
/// where too few studies got so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Quantile {
    pub(crate) value: Option<u32>,
    pub(crate) low: Option<u32>,
    pub(crate) high: Option<u32>,
}

/// A share with its 95 % interval (Wilson 1927).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The bound, in standard deviations, of the middle 95 % of a normal distribution.
const Z: f64 = 1.96;

impl Figures {
    pub(crate) fn of(
        engine: &str,
        cell: &str,
        seed: u64,
        outcomes: &[Outcome],
        seconds: f64,
    ) -> Self {
        let studies = outcomes.len();
        let quantiles = |runs: &dyn Fn(&Outcome) -> Option<u32>| {
            let mut sorted: Vec<u32> = outcomes
                .iter()
                .map(|one| runs(one).unwrap_or(u32::MAX))
                .collect();
            sorted.sort_unstable();
            [0.5, 0.8].map(|share| Quantile::of(&sorted, share))
        };
        let share = |is: &dyn Fn(&Outcome) -> bool| {
            Share::of(outcomes.iter().filter(|one| is(one)).count(), studies)
        };
        let mean = |of: &dyn Fn(&Outcome) -> f64| {
            let mean = outcomes.iter().map(of).sum::<f64>() / studies as f64;
            let squares: f64 = outcomes.iter().map(|one| (of(one) - mean).powi(2)).sum();
            let variance = squares / (studies as f64 - 1.0).max(1.0);
            (mean, (variance / studies as f64).sqrt())
        };
        let [search, _] = quantiles(&|one| one.settled);
        Figures {
            engine: engine.to_owned(),
            cell: cell.to_owned(),
            studies,
            seed,
            runs: quantiles(&|one| one.faster),
            after: quantiles(&|one| Some(one.faster?.saturating_sub(one.settled?))),
            search,
            faster: share(&|one| one.faster.is_some()),
            slower: share(&|one| one.slower.is_some()),
            holds_choice: share(&|one| one.holds_choice),
            holds_tuned: share(&|one| one.holds_tuned),
            found: mean(&|one| one.found),
            regret: mean(&|one| one.regret),
            harm: mean(&|one| one.harm),
            seconds,
        }
    }
}

impl Quantile {
    /// Returns the quantile of sorted numbers; `u32::MAX` stands for none.
    pub(crate) fn of(sorted: &[u32], share: f64) -> Self {
        let studies = sorted.len() as f64;
        let spread = Z * (studies * share * (1.0 - share)).sqrt();
        let at = |place: f64| {
            // Places are counted from 1.
            let place = (place.max(1.0) as usize).min(sorted.len());
            let value = sorted.get(place.saturating_sub(1)).copied();
            value.filter(|runs| *runs < u32::MAX)
        };
        Quantile {
            value: at((studies * share).ceil()),
            low: at((studies * share - spread).floor()),
            high: at((studies * share + spread).ceil() + 1.0),
        }
    }
}

impl Share {
    /// Returns the share over the studies of several cells together.
    pub(crate) fn together<'a>(shares: impl Iterator<Item = (&'a Share, usize)>) -> Self {
        let (hits, studies) = shares.fold((0.0, 0), |(hits, all), (share, studies)| {
            (hits + share.value * studies as f64, all + studies)
        });
        Share::of(hits.round() as usize, studies)
    }

    pub(crate) fn of(hits: usize, studies: usize) -> Self {
        let (n, value) = (studies as f64, hits as f64 / studies as f64);
        let middle = value + Z * Z / (2.0 * n);
        let spread = Z * (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + Z * Z / n;
        Share {
            value,
            low: ((middle - spread) / scale).max(0.0),
            high: ((middle + spread) / scale).min(1.0),
        }
    }
}
