//! Comparisons with a name, and settings that several have.

use io_autotune_engine::{MethodName, NeighboursOf, ProofSettings, Settings, table_v};

use crate::method::MethodSpec;

/// A site's settings, without proofs: where nobody looks whether a gain may be claimed, a proof would
/// last until it is given up.
pub fn without_proofs() -> Settings {
    Settings {
        proof: ProofSettings::NEVER,
        ..Settings::default()
    }
}

/// Table V of robert2020: 252 genetic algorithms and the random sampler, named by [`table_v`].
pub fn robert2020_table_v() -> Vec<MethodSpec> {
    let named = |label, settings| MethodSpec {
        label,
        settings,
        sets_budget: false,
    };
    let genetic = table_v().into_iter().map(|(label, robert2020)| {
        let method = MethodName::Robert2020;
        let settings = Settings {
            method,
            robert2020,
            ..Settings::default()
        };
        named(label, settings)
    });
    let random = Settings {
        method: MethodName::Random,
        ..Settings::default()
    };
    genetic.chain([named("RS".to_owned(), random)]).collect()
}

/// The methods of table V that regress, with neighbourhoods that are shares of the tested points
/// instead of the space: another reading of "n the total population size" (section VI-B).
pub fn robert2020_table_v_of_the_tested() -> Vec<MethodSpec> {
    let regresses = |spec: &MethodSpec| spec.label.starts_with('F');
    let of_the_tested = |mut spec: MethodSpec| {
        spec.settings.robert2020.neighbours_of = NeighboursOf::Tested;
        spec
    };
    let table = robert2020_table_v().into_iter();
    table.filter(regresses).map(of_the_tested).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robert2020_vi_b_what_regresses_is_crossed_with_the_tested_points() {
        let crossed = robert2020_table_v_of_the_tested();
        assert_eq!(crossed.len(), 32 + 192);
        let settings = crossed.iter().map(|spec| &spec.settings.robert2020);
        assert!(
            settings
                .clone()
                .all(|one| one.neighbours_of == NeighboursOf::Tested)
        );
    }
}
