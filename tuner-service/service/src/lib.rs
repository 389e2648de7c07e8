//! io-autotuned: the tuner service. This crate is wiring: the engine decides, the store remembers.

#![forbid(unsafe_code)]

mod access;
mod admission;
mod apart;
mod api;
mod assembly;
mod assess;
mod clock;
mod config;
mod decide;
mod door;
mod heard;
mod hosts;
mod launches;
mod limits;
mod listen;
mod log;
mod merge;
mod metrics;
mod peers;
mod plain;
mod program;
mod quota;
mod reader;
mod reconcile;
mod reload;
mod replay;
mod retention;
mod retry;
mod seldom;
mod serve;
mod sharing;
mod slurm;
mod supervisor;
mod surrogates;
#[cfg(test)]
mod tests;
mod verdict;

pub use program::run;
