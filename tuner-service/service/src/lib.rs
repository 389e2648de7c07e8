//! io-autotuned: the tuner service. This crate is wiring: the engine decides, the store remembers.

#![forbid(unsafe_code)]

mod access;
mod admission;
mod api;
mod assembly;
mod assess;
mod clock;
mod config;
mod crowd;
mod decide;
mod default_accelerator;
mod door;
mod exploring;
mod failed_work;
mod forget;
mod hosts;
mod joined_history;
mod launches;
mod limits;
mod listen;
mod log;
mod merge;
mod metrics;
mod peers;
mod program;
mod quota;
mod rate_limited_log;
mod reader;
mod reconcile;
mod reload;
mod replay;
mod retention;
mod retry;
mod serve;
mod sharing;
mod site_settings;
mod slurm;
mod supervisor;
mod surrogates;
#[cfg(test)]
mod tests;
mod tls;
mod verdict;

pub use program::run;
