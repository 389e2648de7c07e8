//! A comparison as text for people, as CSV and JSON for programs, and as plots.

pub mod csv;
pub mod plot;
pub mod table_vi;
pub mod text;
