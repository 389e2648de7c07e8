//! Tests of the store on a real PostgreSQL, which `make test-store` starts.
//!
//! Each test has a database of its own on the server that `DATABASE_URL` names. Queries here are
//! not checked when they are compiled, so that the committed descriptions hold the store's alone.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and clippy sees no test in a helper's module"
)]

mod accounts;
mod admin;
mod assess;
mod cancellation;
mod clusters;
mod connections;
mod doctor;
mod drift;
mod exploring;
mod finish;
mod forget;
mod generation;
mod judge;
mod migration;
mod nonces;
mod objective;
mod operations;
mod orders;
mod outcomes;
mod release;
mod replicas;
mod report;
mod retention;
mod roles;
mod schema;
mod sharing;
mod sources;
mod start;
mod storm;
mod support;
mod transfer;
mod views;
