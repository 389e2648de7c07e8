//! Table V of the paper: all the methods that it compares.

use super::settings::{Crossover, Noise, Regression, Resampling, Robert2020, Selection};

/// The values of `p_resamp` in table V.
const RESAMPLING_SHARES: [f64; 3] = [0.10, 0.20, 0.40];
/// The values of `p_fit` in table V.
const NEIGHBOUR_SHARES: [f64; 4] = [0.05, 0.10, 0.20, 0.50];

/// Every method of table V with its name and settings: two selections times two crossovers, without
/// noise reduction (CGA, 4), with two resamplings of three shares (RGA, 24), two regressions of
/// four shares (FGA, 32), or both (FRGA, 192): 252, though the text says 200. The random sampler
/// (RS) is the 253rd. Budget 50, design 15 and mutation rate 0.2 are the paper's.
///
/// Names are like `FRGA sedr 40% quadratic 5% tournament single-point`.
pub fn table_v() -> Vec<(String, Robert2020)> {
    let mut table: Vec<(String, Robert2020)> = Vec::new();
    for (class, noise, share) in noises() {
        for (selected, selection) in [
            ("tournament", Selection::default()),
            ("probabilistic", Selection::Probabilistic),
        ] {
            for (crossed, crossover) in [
                ("single-point", Crossover::SinglePoint),
                ("n-point", Crossover::NPoint { points: 2 }),
            ] {
                let settings = Robert2020 {
                    selection,
                    crossover,
                    noise,
                    resampling_share: share,
                    ..Robert2020::default()
                };
                table.push((format!("{class} {selected} {crossed}"), settings));
            }
        }
    }
    table
}

fn noises() -> Vec<(String, Noise, f64)> {
    let resamplings = || {
        [
            ("averaging", Resampling::Averaging),
            ("sedr", Resampling::Sedr),
        ]
        .into_iter()
        .flat_map(|(word, resampling)| {
            RESAMPLING_SHARES
                .map(|share| (format!("{word} {:.0}%", 100.0 * share), resampling, share))
        })
    };
    let regressions = || {
        [
            ("weighted", Regression::Weighted),
            ("quadratic", Regression::Quadratic),
        ]
        .into_iter()
        .flat_map(|(word, regression)| {
            NEIGHBOUR_SHARES
                .map(|share| (format!("{word} {:.0}%", 100.0 * share), regression, share))
        })
    };
    let unused = Robert2020::default().resampling_share;
    let mut noises = vec![("CGA".to_owned(), Noise::None, unused)];
    noises.extend(resamplings().map(|(word, resampling, share)| {
        (
            format!("RGA {word}"),
            Noise::Resampling { resampling },
            share,
        )
    }));
    noises.extend(regressions().map(|(word, regression, neighbour_share)| {
        let noise = Noise::Regression {
            regression,
            neighbour_share,
        };
        (format!("FGA {word}"), noise, unused)
    }));
    for (resampled, resampling, share) in resamplings() {
        noises.extend(regressions().map(|(word, regression, neighbour_share)| {
            let noise = Noise::Both {
                resampling,
                regression,
                neighbour_share,
            };
            (format!("FRGA {resampled} {word}"), noise, share)
        }));
    }
    noises
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn robert2020_viii_d_the_cross_is_whole() {
        let table = table_v();
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, settings) in &table {
            settings.validate().unwrap();
            let class = name.split(' ').next().unwrap();
            *classes.entry(class).or_default() += 1;
        }
        let expected = [("CGA", 4), ("FGA", 32), ("FRGA", 192), ("RGA", 24)];
        assert_eq!(classes, BTreeMap::from(expected));
        let names: BTreeSet<&String> = table.iter().map(|(name, _)| name).collect();
        let distinct: BTreeSet<String> = table
            .iter()
            .map(|(_, settings)| serde_json::to_string(settings).unwrap())
            .collect();
        assert_eq!((names.len(), distinct.len()), (252, 252));
        let found = |name: &str| {
            let entry = table.iter().find(|(known, _)| known == name);
            entry.map(|(_, settings)| settings.clone())
        };
        let best = found("RGA sedr 10% tournament single-point");
        assert_eq!(
            best,
            Some(Robert2020::default()),
            "as robert2020 is without settings"
        );
        let both = found("FRGA sedr 40% quadratic 5% probabilistic n-point").unwrap();
        assert_eq!(
            (both.resampling_share, both.selection),
            (0.4, Selection::Probabilistic)
        );
        let noise = Noise::Both {
            resampling: Resampling::Sedr,
            regression: Regression::Quadratic,
            neighbour_share: 0.05,
        };
        assert_eq!(both.noise, noise);
    }
}
