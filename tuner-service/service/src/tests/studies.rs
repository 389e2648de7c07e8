//! Studies: what is shown of them, and what their users change.
