//! What keeps a study from harm: limits on its cost, and signs that its runs cannot be compared.

pub(crate) mod mixture;
pub(crate) mod regret;
pub(crate) mod restriction;
pub(crate) mod time_limit;
