//! A study's epoch: its suggestions, recommendations and findings.

pub(crate) mod decision;
pub(crate) mod epoch;
pub(crate) mod facts;
pub(crate) mod findings;
pub(crate) mod next;
pub(crate) mod prior;
pub(crate) mod proof;
pub(crate) mod recommend;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod situation;
pub(crate) mod steering;
pub(crate) mod stopping;
pub(crate) mod warm_start;
pub(crate) mod without_noise;
