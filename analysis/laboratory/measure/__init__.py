"""An exhaustive measurement of the ROMIO accelerator, which becomes a table of measurements."""
