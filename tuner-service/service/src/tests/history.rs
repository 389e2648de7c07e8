//! Runs: lists of them, why each got what it got, and whether that comes out again.
