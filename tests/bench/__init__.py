"""``make bench``: what the tuner costs, each figure a ratio in one run, printed whatever it is."""
