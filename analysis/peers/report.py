"""What the studies come to: figures with intervals, ratios, a report to read."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from peers.replay import Timed
from peers.studies import Score, score
from peers.tables import Table

RESAMPLES = 1000
ENOUGH_SEEDS = 20
"""With fewer the bootstrap's intervals are much too narrow, and nothing is claimed from them."""
BEST_PEER = "the best peer of each table"

FIGURES = {
    "recommended": "recommended",
    "common": "recommended, common rule",
    "average": "average run",
}
"""Times over the true best, which are compared: name and words."""
HARM = {"slower": "slower than the default", "loss": "loss, runs of the default"}
"""Means, beside them."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def verdict(self) -> str:
        """What a ratio of times says."""
        if self.high < 1.0:
            return "ahead"
        return "behind" if self.low > 1.0 else "level"


class Bootstrap:
    """Seeds drawn with replacement, a thousand times, alike for all methods of a table.

    Percentiles (Efron 1979). A figure is a function of `mean(table, numbers)`, where numbers are
    one method's on one table, one for each seed.
    """

    def __init__(self, tables: list[str], seeds: int) -> None:
        """Draws; always the same."""
        generator = random.Random(0)
        self._all = range(seeds)
        self._drawn = [
            {table: generator.choices(self._all, k=seeds) for table in tables}
            for _ in range(RESAMPLES)
        ]

    def estimate(self, figure: Callable[[Callable[[str, list[float]], float]], float]) -> Estimate:
        """The figure of all seeds, and its interval."""

        def of(indices: dict[str, list[int]]) -> float:
            pick = {table: itemgetter(*drawn) for table, drawn in indices.items() if len(drawn) > 1}

            def mean(table: str, numbers: list[float]) -> float:
                return sum(pick[table](numbers)) / len(numbers) if table in pick else numbers[0]

            return figure(mean)

        value = figure(lambda _, numbers: sum(numbers) / len(numbers))
        figures = sorted(of(indices) for indices in self._drawn)
        low, high = (figures[round((RESAMPLES - 1) * share)] for share in (0.025, 0.975))
        return Estimate(value, low, high)


class Comparison:
    """All figures of all methods on all tables."""

    def __init__(
        self,
        tables: list[Table],
        methods: list[str],
        peers: list[str],
        studies: dict[tuple[str, str], list[Timed]],
        budget: int,
    ) -> None:
        """`studies` has the studies by table and method or peer, in the order of their seeds."""
        self.tables, self.methods, self.peers, self.budget = tables, methods, peers, budget
        self.seeds = len(next(iter(studies.values())))
        self.names = [table.name for table in tables]
        self._bootstrap = Bootstrap(self.names, self.seeds)
        self._scores: dict[tuple[str, str], list[Score]] = {
            (table.name, name): [score(table, timed.study) for timed in studies[table.name, name]]
            for table in tables
            for name in self.all
        }
        self._computing = {
            name: sum(t.computing for table in self.names for t in studies[table, name])
            / (len(tables) * self.seeds * budget)
            for name in self.all
        }

    @property
    def all(self) -> list[str]:
        """Our methods, then the peers."""
        return [*self.methods, *self.peers]

    def numbers(self, table: str, name: str, figure: str) -> list[float]:
        """A figure of every study."""
        return [getattr(score, figure) for score in self._scores[table, name]]

    def on_table(self, table: str, name: str, figure: str) -> Estimate:
        """A figure on one table: the mean over seeds."""
        numbers = self.numbers(table, name, figure)
        return self._bootstrap.estimate(lambda mean: mean(table, numbers))

    def overall(self, name: str, figure: str) -> Estimate:
        """A figure over the tables: the geometric mean of times, the mean of others."""
        numbers = {table: self.numbers(table, name, figure) for table in self.names}
        over = _geometric if figure in FIGURES else _arithmetic
        return self._bootstrap.estimate(lambda mean: over([mean(t, n) for t, n in numbers.items()]))

    def ratio(self, name: str, others: list[str], figure: str, tables: list[str]) -> Estimate:
        """A method's time over another's, geometric mean over tables.

        Of several others it is the best of each table, taken in each resample anew, as it was in
        the seeds themselves.
        """
        own = {table: self.numbers(table, name, figure) for table in tables}
        theirs = {t: [self.numbers(t, other, figure) for other in others] for t in tables}

        def figure_of(mean: Callable[[str, list[float]], float]) -> float:
            return _geometric(
                [mean(t, own[t]) / min(mean(t, n) for n in theirs[t]) for t in tables]
            )

        return self._bootstrap.estimate(figure_of)

    def rivals(self, name: str) -> dict[str, list[str]]:
        """What a method is divided by: each peer, the best of each table, our other methods."""
        rivals = {peer: [peer] for peer in self.peers}
        if len(self.peers) > 1:
            rivals[BEST_PEER] = self.peers
        return rivals | {other: [other] for other in self.methods if other != name}

    def as_json(self) -> dict[str, Any]:
        """All there is."""
        figures = [*FIGURES, *HARM]
        first = self.methods[0]
        return {
            "budget": self.budget,
            "seeds": self.seeds,
            "methods": self.methods,
            "peers": self.peers,
            "overall": {n: {f: vars(self.overall(n, f)) for f in figures} for n in self.all},
            "computing_per_run": self._computing,
            "ratios": {
                rival: {
                    figure: {
                        "all": vars(self.ratio(first, others, figure, self.names)),
                        "tables": {
                            t: vars(self.ratio(first, others, figure, [t])) for t in self.names
                        },
                    }
                    for figure in FIGURES
                }
                for rival, others in self.rivals(first).items()
            },
            "tables": [
                {
                    "name": table.name,
                    "sha256": table.digest,
                    "parametrizations": len(table.points),
                    "best": table.truths[table.best],
                    "default": table.truths[table.default],
                    "figures": {
                        n: {f: vars(self.on_table(table.name, n, f)) for f in figures}
                        for n in self.all
                    },
                }
                for table in self.tables
            ],
        }


def render(result: dict[str, Any], packages: dict[str, str], command: str) -> str:
    """The report, in Markdown, from what `Comparison.as_json` has."""
    names = [*result["methods"], *result["peers"]]
    judged = _judged if result["seeds"] >= ENOUGH_SEEDS else _interval
    made_with = ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
    first = result["methods"][0]
    lines = [
        "# io-autotune beside other optimisers",
        "",
        f"{len(result['tables'])} tables, {result['budget']} runs, {result['seeds']} seeds, by",
        "",
        f"    {command}",
        "",
        f"with {made_with}.",
        "",
        "How, and what the figures mean: analysis/README.md. In brackets: 95 % intervals.",
        "",
        "## All tables: time over the true best",
        "",
        "Times: means over seeds, geometric means over tables. Slower runs, loss: means over both.",
        "",
        _row(["", *FIGURES.values(), *HARM.values(), "ms per suggestion"]),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        of = result["overall"][name]
        cells = [_interval(of[figure]) for figure in FIGURES]
        cells += [f"{100 * of['slower']['value']:.0f} %", f"{of['loss']['value']:.1f}"]
        cells.append(f"{1000 * result['computing_per_run'][name]:.1f}")
        lines.append(_row([name, *cells]))
    lines += [
        "",
        f"## {first} divided by",
        "",
        "Below 1 it is the faster one. Ahead, behind: the interval excludes 1."
        if result["seeds"] >= ENOUGH_SEEDS
        else f"Below 1 it is the faster one. Intervals of fewer than {ENOUGH_SEEDS} seeds are "
        "too narrow: nothing is claimed.",
        "",
        f"| | {' | '.join(FIGURES.values())} |",
        "| --- | --- | --- | --- |",
    ]
    for rival, of in result["ratios"].items():
        lines.append(_row([rival, *(judged(of[figure]["all"]) for figure in FIGURES)]))
    for figure, words in FIGURES.items():
        lines += ["", f"## {first} divided by, table by table: {words}", ""]
        lines += [_row(["", *(t["name"] for t in result["tables"])])]
        lines += [_row(["---"] * (1 + len(result["tables"])))]
        for rival, of in result["ratios"].items():
            lines.append(_row([rival, *(judged(e) for e in of[figure]["tables"].values())]))
    for table in result["tables"]:
        size, default = table["parametrizations"], table["default"] / table["best"]
        lines += [
            "",
            f"## {table['name']}",
            "",
            f"{size} parametrizations; best {table['best']:.4g} s, default {default:.3f} of it.",
            "",
            _row(["", *FIGURES.values(), *HARM.values()]),
            "| --- | ---: | ---: | ---: | ---: | ---: |",
        ]
        for name in names:
            of = table["figures"][name]
            cells = [_interval(of[figure]) for figure in FIGURES]
            cells += [f"{100 * of['slower']['value']:.0f} %", f"{of['loss']['value']:.1f}"]
            lines.append(_row([name, *cells]))
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.3f} ({estimate['low']:.3f}-{estimate['high']:.3f})"


def _judged(estimate: dict[str, float]) -> str:
    return f"{_interval(estimate)} {Estimate(**estimate).verdict()}"


def _geometric(numbers: list[float]) -> float:
    return math.exp(sum(math.log(number) for number in numbers) / len(numbers))


def _arithmetic(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)
