"""A dataset that ranks write by columns, collectively, as solvers write their fields."""

import sys

import h5py
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, STEPS = 2048, 512, 3

world = MPI.COMM_WORLD
mine = slice(world.rank * COLUMNS, (world.rank + 1) * COLUMNS)
block = np.arange(ROWS * COLUMNS, dtype="f8").reshape(ROWS, COLUMNS) + world.rank
with h5py.File(sys.argv[1], "w", driver="mpio", comm=world) as file:
    field = file.create_dataset("field", (ROWS, COLUMNS * world.size), dtype="f8")
    for step in range(STEPS):
        with field.collective:
            field[:, mine] = block + step
