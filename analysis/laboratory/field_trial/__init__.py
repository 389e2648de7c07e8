"""Real programs on real storage, tuned as a user has them tuned: ``make -C analysis field-trial``."""
