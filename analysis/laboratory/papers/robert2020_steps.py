"""Robert 2020: how many steps, to the optimum as the paper says, and to what is recommended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from papers.claims import Claim, Difference, below, listed, unpaired, with_readings

TO_OPTIMUM, TO_RECOMMENDED = "to the optimum", "to what is recommended"


def first_runs(studies: Sequence[Mapping[str, Any]], place: int) -> list[float]:
    """The number of the first run of a parametrization, from 1, of the studies that ran it."""
    return [study["runs"].index(place) + 1.0 for study in studies if place in study["runs"]]


def claim(
    words: str,
    tried: str,
    to_optimum: Mapping[str, tuple[list[float], list[float]]],
    to_recommended: Mapping[str, Difference],
) -> Claim:
    """A claim of fewer steps, by the one and by the other count; both figures stand beside it.

    Few studies run the true optimum: `to_optimum` has, for each comparison, the steps of all that
    did under the one and under the other.
    """
    found = {name: unpaired(one, other) for name, (one, other) in to_optimum.items()}
    told = "; ".join(
        f"{name} {found[name].told()}, of {len(one)} and {len(other)} studies"
        for name, (one, other) in to_optimum.items()
    )
    figure = f"{TO_OPTIMUM}, where it ran: {told}. {TO_RECOMMENDED.capitalize()}: "
    figure += listed(to_recommended)
    return with_readings(
        {
            TO_OPTIMUM: replace(below(words, found, tried=tried), figure=figure),
            TO_RECOMMENDED: below(words, to_recommended, tried=tried),
        }
    )
