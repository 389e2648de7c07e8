//! The protocol between the parts of io-autotune: HTTP/1.1 with JSON bodies, on a Unix socket and
//! TCP, there with TLS if a site has set it up.
//!
//! Requests carry a credential by MUNGE or SACK ([`signature`]), except health checks and the API's
//! description. Answers to them are signed too, because root acts on them.

mod account;
mod application;
mod believed;
pub mod bounds;
mod client;
mod clock;
mod config;
mod confined;
pub mod credentials;
mod export;
mod hostlist;
mod marks;
mod munge;
mod online;
mod plugstack;
mod printable;
mod request;
mod runtime;
mod sack;
mod setting;
pub mod signature;
mod signer;
#[cfg(test)]
mod testing;
mod tls;
mod types;
mod unique_names;
mod variable;

pub use account::is_account;
pub use application::{ApplicationName, called, is_application};
pub use client::{Call, Client, ClientError, Prepared, read_answer};
pub use clock::{clock_seconds, digits};
pub use config::{ClientConfig, ConfigError, Endpoint, ServiceAccount};
pub use confined::confine;
pub use export::{export_end, export_header};
pub use io_autotune_model::Outcome;

pub use hostlist::{count_hosts, first_host, has_host, is_hostlist};
pub use marks::{MARKS_BYTES, MARKS_VARIABLE, Mark, Marked, MpiIo, ReportedError, marked};
pub use online::{
    DeliveredOnline, OnlineEntry, OnlineLever, OnlinePolicy, OnlineReason, OnlineRecord,
};
pub use plugstack::{PluginLine, plugin_line, plugstack_conf, slurm_conf};
pub use printable::{is_deceptive, shown, shown_json, shown_lines};
pub use request::{Mode, Note, Request, RequestError, TextError, is_name, is_name_byte};
pub use runtime::block_on;
pub use setting::SettingKind;
pub use signer::{Addressed, Audience, Auth, Signer};
pub use types::*;
pub use variable::is_deliverable_variable;
