"""A variable's mean over time at two stations, read from object storage."""

import sys

import fsspec
import xarray

with fsspec.open(sys.argv[1]) as file:
    data = xarray.open_dataset(file, engine="h5netcdf")
    for latitude, longitude in ((30, 40), (150, 200)):
        station = data["tas"].isel(lat=latitude, lon=longitude)
        print(latitude, longitude, float(station.mean()))
