"""What may be claimed: gains and node-hours, from runs alone.

``gain`` and ``node_hours`` take one study's runs (``frames.RUNS``). Whoever needs more than one of
them, or keeps studies from night to night, reads a study once with ``part`` and says the rest from
that: ``gain_of``, ``node_hours_of``, ``group``. ``false_discovery`` goes over all studies' gains.
"""

from io_autotune_report.analyse.estimators.gain import false_discovery, gain, gain_of
from io_autotune_report.analyse.estimators.hours import node_hours, node_hours_of
from io_autotune_report.analyse.estimators.part import Part, part
from io_autotune_report.analyse.estimators.sums import group

__all__ = [
    "Part",
    "false_discovery",
    "gain",
    "gain_of",
    "group",
    "node_hours",
    "node_hours_of",
    "part",
]
