"""What may be claimed of many studies, and the node-hours of one or many.

The service decides what may be claimed of one study, and the effects of what it chose; here they
are summed (``group``), held against all other studies (``false_discovery``) and joined with what
searching cost (``node_hours``).
"""

from io_autotune_report.analyse.estimators.gain import false_discovery
from io_autotune_report.analyse.estimators.hours import Part, node_hours, node_hours_of
from io_autotune_report.analyse.estimators.spent import Spent, spent
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
