//! Comparisons with a name, and settings that several have.

use io_autotune_engine::{MethodName, ProofSettings, Settings, table_v};

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
