//! The data of a study: spaces, parametrizations, the history of an epoch, the reason of a run.
//! Without the engine, for crates that only pass these on.

#![forbid(unsafe_code)]

pub mod assessment;
pub mod choice;
pub mod drift;
pub mod exploring;
pub mod history;
pub mod job_state;
pub mod measure;
pub mod mixture;
pub mod not_counted;
pub mod objective;
pub mod overridden;
pub mod reason;
pub mod recipe;
pub mod rows;
pub mod rule;
pub mod run;
pub mod site_setting;
pub mod sluid;
pub mod space;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod word_enum;

pub use assessment::{
    Assessment, CleanedEstimates, Compared, Effect, Elapsed, ElapsedBeside, Estimate, Finding,
    FindingKind, Gain, GainVerdict, Outlook, Overview, Recommended, SharedGain,
};
pub use choice::{Candidate, Choice, Chosen, UsedIf};
pub use drift::{Changed, DRIFT_RUNS, Drift, SettledRun};
pub use exploring::{BudgetOf, OverBudget};
pub use history::stays_settled;
pub use history::{History, Moments, Pending, RecentRun, Tally, Tested};
pub use history::{MOST_MEASURES, RECENT_RUNS, SampleError, carried, carried_parametrization};
pub use job_state::is_end;
pub use measure::{LARGEST_MEASURE, Measure, OTHERS_RATIO, SMALLEST_REPORTED};
pub use mixture::Mixture;
pub use not_counted::NotCountedBecause;
pub use objective::{
    ELAPSED_BESIDE, MARKED, MPI_IO_LOST, MPI_IO_READ, MPI_IO_SECONDS, MPI_IO_WRITTEN, Objective,
    ObjectiveError, REPORTED, is_of_the_longest_node, is_reported_name,
};
pub use overridden::{IneffectiveParameter, ObservedValue, ParameterEffect, ParameterEffects};
pub use reason::{
    Acquisition, BestKnownBecause, LostDefault, NoHeadroom, Reason, Stopped, Suggestion,
};
pub use recipe::Recipe;
pub use rows::{AuditLine, JobName, Outcome, Pin, Removed};
pub use rule::{Headroom, LongerLimit, Next, Others, Pause, Progress, Rule, Standing, Unknown};
pub use run::{Phase, Role};
pub use site_setting::{Judge, Ratio, SiteSetting};
pub use sluid::{NoSluid, Sluid};
pub use space::{Comparison, Condition, Constraint, Domain, Parameter, Parametrization, Point};
pub use space::{Space, SpaceError, Value};
pub use word_enum::UnknownWord;
