//! Alabed and Yoneki 2021.

pub(crate) mod multitask;
pub(crate) mod settings;
