"""What each accelerator gains over its default here: ``make accelerators-report``."""
