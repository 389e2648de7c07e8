"""The studies that `io-autotune-simulate --per-seed` prints, as times."""

from statistics import median
from typing import Any

from peers.tables import Table


def courses(method: dict[str, Any], on: Table) -> list[list[float]]:
    """The true time of each run of each study; a run outside the table takes the default's."""
    default = on.truths[on.default]
    return [
        [default if place is None else on.truths[place] for place in study["runs"]]
        for study in method["studies"]
    ]


def medians(of: list[list[float]]) -> list[float]:
    """The median over studies, by run."""
    return [median(times) for times in zip(*of, strict=False)]
