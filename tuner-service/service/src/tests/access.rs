//! Who may do what: each endpoint by each role, and each request by its credential.
