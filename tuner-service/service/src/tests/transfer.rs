//! Studies that begin from what others have learnt: exports, imports, priors, warm starts.
