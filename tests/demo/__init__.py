"""The demo: a real MPI-IO job is tuned from its first run to a measured gain."""
