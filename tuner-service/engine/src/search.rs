//! The main method, and what every method must do.

pub(crate) mod surrogate_genetic;
#[cfg(test)]
mod tests;
