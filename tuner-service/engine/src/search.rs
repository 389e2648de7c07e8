//! The main method, and the conformance tests of every method.

pub(crate) mod reach;
pub(crate) mod surrogate_genetic;
#[cfg(test)]
mod tests;
