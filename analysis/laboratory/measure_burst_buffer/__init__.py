"""An exhaustive measurement of the instrument tests/burst-buffer: a table of the 2020 paper's shape."""
