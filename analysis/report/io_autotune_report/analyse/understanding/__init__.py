"""What the runs tell besides the gain: which parameters matter, how it scatters, what to look at.

All functions take runs with the columns of ``frames.RUNS``: ``importance``, ``surfaces`` and
``noise`` and ``explored`` those of one epoch. ``findings`` are of a study whose figures are known;
``quiet`` is said of a study without news, from when it ran last.
"""

from io_autotune_report.analyse.understanding.findings import Explored, explored, findings, quiet
from io_autotune_report.analyse.understanding.importance import importance
from io_autotune_report.analyse.understanding.noise import noise
from io_autotune_report.analyse.understanding.surfaces import surfaces
from io_autotune_report.analyse.understanding.tested import Tested, gather

__all__ = [
    "Explored",
    "Tested",
    "explored",
    "findings",
    "gather",
    "importance",
    "noise",
    "quiet",
    "surfaces",
]
