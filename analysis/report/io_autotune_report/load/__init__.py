"""From the database to data frames."""

from io_autotune_report.load.database import DatabaseError, connect
from io_autotune_report.load.evaluation_cache import State, StateError
from io_autotune_report.load.researchers import read_assessments, read_runs, read_studies

__all__ = [
    "DatabaseError",
    "State",
    "StateError",
    "connect",
    "read_assessments",
    "read_runs",
    "read_studies",
]
