"""Robert 2020: how many steps, to the optimum as the paper says, and to what is recommended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from papers.claims import Claim, Difference, below, listed, unpaired, with_readings

TO_OPTIMUM, TO_RECOMMENDED = "to the optimum", "to what is recommended"
RUNS = 50
"""Of a study."""
LATE = f"to the optimum, a study that never ran it counting {RUNS + 1}"


@dataclass(frozen=True)
class Steps:
    """To the true optimum, of the studies of one side of a comparison."""

    studies: Sequence[Mapping[str, Any]]
    place: int
    """Of the optimum."""

    @property
    def where_it_ran(self) -> list[float]:
        """Of the studies that ran it, which are few."""
        return first_runs(self.studies, self.place)

    @property
    def of_all(self) -> list[float]:
        """Of all studies; it would be later than all runs of those that never ran it."""
        return [
            study["runs"].index(self.place) + 1.0 if self.place in study["runs"] else RUNS + 1.0
            for study in self.studies
        ]


def first_runs(studies: Sequence[Mapping[str, Any]], place: int) -> list[float]:
    """The number of the first run of a parametrization, from 1, of the studies that ran it."""
    return [study["runs"].index(place) + 1.0 for study in studies if place in study["runs"]]


def claim(
    words: str,
    tried: str,
    to_optimum: Mapping[str, tuple[Steps, Steps]],
    to_recommended: Mapping[str, Difference],
) -> Claim:
    """A claim of fewer steps, by the one and by the other count; both figures stand beside it.

    Few studies run the true optimum: `to_optimum` has, for each comparison, the steps of all that
    did under the one and under the other.
    """
    ran = {name: (a.where_it_ran, b.where_it_ran) for name, (a, b) in to_optimum.items()}
    found = {name: unpaired(one, other) for name, (one, other) in ran.items()}
    late = {name: unpaired(a.of_all, b.of_all) for name, (a, b) in to_optimum.items()}
    told = "; ".join(
        f"{name} {found[name].told()}, of {len(one)} and {len(other)} studies"
        for name, (one, other) in ran.items()
    )
    figure = f"{TO_OPTIMUM}, where it ran: {told}. {LATE.capitalize()}: {listed(late)}. "
    figure += f"{TO_RECOMMENDED.capitalize()}: "
    figure += listed(to_recommended)
    return with_readings(
        {
            TO_OPTIMUM: replace(below(words, found, tried=tried), figure=figure),
            LATE: below(words, late, tried=tried),
            TO_RECOMMENDED: below(words, to_recommended, tried=tried),
        }
    )
