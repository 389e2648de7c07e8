"""Robert 2020: how many steps, to the optimum as the paper says, and to what is recommended."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from papers.claims import (
    Claim,
    Difference,
    Side,
    below,
    listed,
    paired,
    some,
    unpaired,
    with_readings,
)

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
    found, late, figure = _counted(to_optimum, to_recommended)
    counts = {TO_OPTIMUM: found, LATE: late, TO_RECOMMENDED: to_recommended}
    return _fewer(words, tried, counts, figure)


def claim_of_one(
    words: str,
    tried: str,
    to_optimum: Mapping[str, tuple[Steps, Steps]],
    to_recommended: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> Claim:
    """A claim for which one comparison with fewer steps is enough, at 5 % over all of them."""
    cases = len(to_optimum)
    recommended = {name: paired(a, b, cases=cases) for name, (a, b) in to_recommended.items()}
    found, late, figure = _counted(to_optimum, recommended, cases)

    def one_of(differences: Mapping[str, Difference]) -> Claim:
        sure = sum(of.side(-1) is Side.FOR for of in differences.values())
        return some(words, sure, figure, tried)

    readings = {TO_OPTIMUM: found, LATE: late, TO_RECOMMENDED: recommended}
    return with_readings({name: one_of(of) for name, of in readings.items()})


def claim_by_repetition(
    words: str,
    tried: str,
    steps: Mapping[str, Sequence[tuple[Steps, Steps]]],
    to_recommended: Mapping[str, Difference],
) -> Claim:
    """A claim of fewer steps over many methods, some of which make the same runs.

    So their studies are no sample, and each repetition has one mean, of those that ran the optimum.
    """

    def means(of: Callable[[Steps], list[float]]) -> dict[str, Difference]:
        both = {
            name: [(of(one), of(other)) for one, other in every if of(one) and of(other)]
            for name, every in steps.items()
        }
        return {
            name: paired([fmean(one) for one, _ in every], [fmean(other) for _, other in every])
            for name, every in both.items()
        }

    found, late = means(lambda of: of.where_it_ran), means(lambda of: of.of_all)
    figure = (
        f"{TO_OPTIMUM}, where it ran: {listed(found)}. {LATE.capitalize()}: {listed(late)}. "
        f"{TO_RECOMMENDED.capitalize()}: {listed(to_recommended)}"
    )
    counts = {TO_OPTIMUM: found, LATE: late, TO_RECOMMENDED: to_recommended}
    return _fewer(words, tried, counts, figure)


def _counted(
    to_optimum: Mapping[str, tuple[Steps, Steps]],
    to_recommended: Mapping[str, Difference],
    cases: int = 1,
) -> tuple[dict[str, Difference], dict[str, Difference], str]:
    """By the studies that ran the optimum, by all; and what is told of each count."""
    ran = {name: (a.where_it_ran, b.where_it_ran) for name, (a, b) in to_optimum.items()}
    found = {name: unpaired(one, other, cases=cases) for name, (one, other) in ran.items()}
    late = {name: unpaired(a.of_all, b.of_all, cases=cases) for name, (a, b) in to_optimum.items()}
    told = "; ".join(
        f"{name} {found[name].told()}, of {len(one)} and {len(other)} studies"
        for name, (one, other) in ran.items()
    )
    figure = f"{TO_OPTIMUM}, where it ran: {told}. {LATE.capitalize()}: {listed(late)}. "
    figure += f"{TO_RECOMMENDED.capitalize()}: "
    figure += listed(to_recommended)
    return found, late, figure


def _fewer(
    words: str, tried: str, counts: Mapping[str, Mapping[str, Difference]], figure: str
) -> Claim:
    """By each count, the first of which decides."""
    made = {
        name: replace(below(words, of, tried=tried), figure=figure) for name, of in counts.items()
    }
    return with_readings(made, counted=False)
