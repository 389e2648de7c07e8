"""What the report promises of many studies: ``python -m guarantees``."""
