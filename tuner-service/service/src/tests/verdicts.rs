//! What becomes of a run: by what nodes report, and by what Slurm says.
