"""The moments of a zarr array in object storage, as a user of Dask asks for them."""

import sys

from dask import array

field = array.from_zarr(sys.argv[1])
print(f"{float(field.mean().compute()):.9f} {float(field.std(axis=0).max().compute()):.6f}")
