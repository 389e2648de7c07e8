//! Comparisons with a name.

use io_autotune_engine::table_v;

use crate::method::MethodSpec;

/// The methods of table V of robert2020: 252 genetic algorithms and the random sampler, by the names that
/// [`table_v`] gives them.
pub fn robert2020_table_v() -> Vec<MethodSpec> {
    let named = |(label, settings)| MethodSpec {
        label,
        settings,
        sets_budget: false,
    };
    table_v().into_iter().map(named).collect()
}
