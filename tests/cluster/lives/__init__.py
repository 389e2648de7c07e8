"""Every way a job can go: kinds of jobs, kinds of ends, and what is recorded of each."""
