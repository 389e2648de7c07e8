"""What the report promises, shown by simulation: ``python -m io_autotune_analysis.guarantees``."""
