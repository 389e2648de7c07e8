"""The cluster suite on Slurm's series: in roots of Debian's suites, nothing of the host touched."""
