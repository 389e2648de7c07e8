"""What io-autotune's history says: data frames, estimators, and the nightly report.

For researchers: ``read_studies`` and ``read_runs`` give data frames, ``read_assessments`` what the
service has decided of each study; ``node_hours``, ``false_discovery``, ``importance`` and ``noise``
are what the report makes of them. docs/researchers.md has examples.
"""

from io_autotune_report.analyse.estimators import false_discovery, node_hours
from io_autotune_report.analyse.understanding import importance, noise
from io_autotune_report.load import read_assessments, read_runs, read_studies

__all__ = [
    "false_discovery",
    "importance",
    "node_hours",
    "noise",
    "read_assessments",
    "read_runs",
    "read_studies",
]
