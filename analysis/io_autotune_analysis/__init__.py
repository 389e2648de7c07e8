"""What io-autotune's history says: data frames, estimators, and the nightly report.

For researchers: ``read_studies`` and ``read_runs`` give data frames; ``gain``, ``node_hours``,
``false_discovery``, ``importance`` and ``noise`` are what the report makes of them.
docs/researchers.md has examples.
"""

from io_autotune_analysis.estimators import false_discovery, gain, node_hours
from io_autotune_analysis.reading import read_runs, read_studies
from io_autotune_analysis.understanding import importance, noise

__all__ = [
    "false_discovery",
    "gain",
    "importance",
    "node_hours",
    "noise",
    "read_runs",
    "read_studies",
]
