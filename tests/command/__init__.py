"""The command ``io-autotune`` against a real service whose nodes and Slurm are played."""
