//! Guards: limits on a study's cost, and signs that its runs are not comparable.

pub(crate) mod lost_default;
pub(crate) mod members;
pub(crate) mod mixture;
pub(crate) mod restriction;
#[cfg(test)]
mod tests;
pub(crate) mod time_limit;
pub(crate) mod veto;
