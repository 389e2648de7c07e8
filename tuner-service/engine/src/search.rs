//! The main method, and what every method must do.

pub(crate) mod reach;
pub(crate) mod surrogate_genetic;
#[cfg(test)]
mod tests;
