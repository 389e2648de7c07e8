//! The service, tested through its doors: requests as nodes and people send them, a PostgreSQL of each
//! test's own, and no Slurm. `TestService` is where to begin.

mod answer;
mod credentials;
mod jobs;
pub(crate) mod log;
mod service;
mod slurm;

mod accelerators;
mod access;
mod budgets;
mod doctor;
mod history;
mod journey;
mod limits;
mod orders;
mod preview;
mod replicas;
mod report;
mod studies;
mod sweeps;
mod transfer;
mod verdicts;

use self::answer::Answer;
use self::jobs::{Course, QUICK, TestJob};
use self::log::Log;
use self::service::{
    ADMIN, ALICE, BOB, BURST_BUFFER, CLUSTER, COLLECTOR, OPERATOR, REPORT_READER, ROOT, SERVICE,
    Signed, TestService,
};
