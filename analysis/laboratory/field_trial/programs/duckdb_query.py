"""Five stations' counts and means, from a Parquet file in object storage."""

import sys

import duckdb
import fsspec

duckdb.register_filesystem(fsspec.filesystem("s3"))
rows = duckdb.execute(
    "SELECT station, count(*), round(avg(a), 9) FROM read_parquet(?)"
    " WHERE station < 5 GROUP BY station ORDER BY station",
    [sys.argv[1]],
).fetchall()
for row in rows:
    print(*row)
