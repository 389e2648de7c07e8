"""From the database to data frames: at once for researchers, night by night for the report."""

from io_autotune_report.load.database import DatabaseError, connect
from io_autotune_report.load.mirror import Mirror, MirrorError
from io_autotune_report.load.researchers import read_assessments, read_runs, read_studies

__all__ = [
    "DatabaseError",
    "Mirror",
    "MirrorError",
    "connect",
    "read_assessments",
    "read_runs",
    "read_studies",
]
