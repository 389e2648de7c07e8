"""The soak: short real jobs on a private cluster, faults by a seed, and what must hold."""
