"""What the report promises, shown by simulation: ``python -m guarantees``."""
