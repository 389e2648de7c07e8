"""io-autotune's history: data frames, estimators and report; see docs/papers/data-frames.md."""

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
