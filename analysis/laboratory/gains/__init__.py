"""What each accelerator gains over its default here: ``make -C analysis accelerators-report``."""
