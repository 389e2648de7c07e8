"""From the database to data frames: at once for researchers, night by night for the report."""

from io_autotune_analysis.reading.database import DatabaseError, connect
from io_autotune_analysis.reading.mirror import Mirror, MirrorError
from io_autotune_analysis.reading.researchers import read_runs, read_studies

__all__ = [
    "DatabaseError",
    "Mirror",
    "MirrorError",
    "connect",
    "read_runs",
    "read_studies",
]
