"""An exhaustive measurement of tests/burst-buffer: a table of the 2020 paper's shape."""
