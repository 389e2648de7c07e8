"""The installation guide, followed on whole hosts of each suite: ``make test-install``."""
