"""What one epoch's runs tell besides the gain: importance, surfaces, noise, findings."""

from io_autotune_report.analyse.understanding.findings import Explored, explored, findings, quiet
from io_autotune_report.analyse.understanding.importance import importance
from io_autotune_report.analyse.understanding.noise import noise
from io_autotune_report.analyse.understanding.surfaces import surfaces
from io_autotune_report.analyse.understanding.tested_parametrizations import Tested, gather

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
