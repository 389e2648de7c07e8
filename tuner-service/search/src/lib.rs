//! The interface of search methods, and the parts that they share.
//!
//! A [`Method`] gets a [`MethodContext`]: the [history by point](history), its [surrogate] and the
//! [regret] budget. [`acquisition`], [`neighbourhood`], [`random`] and [`replay`] are shared by
//! several methods. The crate is pure: no I/O, no clock, no global random numbers.

#![forbid(unsafe_code)]

pub mod acquisition;
pub mod checks;
pub mod history;
pub mod latin_hypercube;
pub mod math;
mod method;
pub mod neighbourhood;
pub mod random;
pub mod regret;
pub mod replay;
pub mod surrogate;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use method::{Method, MethodContext, Proposal};
