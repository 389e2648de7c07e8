//! The nightly report, as the service hands it out.
