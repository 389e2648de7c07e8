"""Real programs on real storage, tuned as users have it done: ``make -C analysis field-trial``."""
