//! Does nothing. Where cargo builds an example, dependencies have the features that tests ask for: `make
//! build` builds this one, and so `make test` compiles no dependency a second time.

fn main() {}
