"""Claims and node-hours of many studies, from what the service says of each."""

from io_autotune_report.analyse.estimators.gain import false_discovery
from io_autotune_report.analyse.estimators.hours import Part, node_hours, node_hours_of
from io_autotune_report.analyse.estimators.run_costs import Spent, spent
from io_autotune_report.analyse.estimators.sums import group

__all__ = [
    "Part",
    "Spent",
    "false_discovery",
    "group",
    "node_hours",
    "node_hours_of",
    "spent",
]
