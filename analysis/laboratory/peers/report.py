"""The report on the studies: figures with intervals, and ratios."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, geometric_mean
from typing import Any, Self

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
HARM = {
    "slower": "slower than the default",
    "loss": "loss, runs of the default",
    "failed": "failed runs",
}
"""Means, beside them."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval, and the number of seeds behind it."""

    value: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, figures: list[float], seeds: int) -> Self:
        """Takes the result of `Bootstrap.means` or a transform of it."""
        resampled = sorted(figures[1:])
        low, high = (resampled[round((RESAMPLES - 1) * share)] for share in (0.025, 0.975))
        return cls(figures[0], low, high, seeds)

    def verdict(self) -> str:
        """A time ratio in words; empty for too few seeds."""
        if self.seeds < ENOUGH_SEEDS:
            return ""
        if self.high < 1.0:
            return "ahead"
        return "behind" if self.low > 1.0 else "level"


class Bootstrap:
    """1000 resamples of the seeds, alike for all methods of a table (Efron 1979, percentiles)."""

    def __init__(self, tables: list[str], seeds: int) -> None:
        """Draws with a fixed seed."""
        generator = random.Random(0)
        every = range(seeds)
        drawn = [
            {table: generator.choices(every, k=seeds) for table in tables} for _ in range(RESAMPLES)
        ]
        # With one index an itemgetter returns a number and not a tuple.
        self._pick = {table: [itemgetter(*one[table], 0) for one in drawn] for table in tables}

    def means(self, table: str, numbers: list[float]) -> list[float]:
        """The mean of one number per seed, then that of each resample."""
        first, of = numbers[0], len(numbers)
        resampled = [(sum(pick(numbers)) - first) / of for pick in self._pick[table]]
        return [sum(numbers) / of, *resampled]


class Comparison:
    """All figures of all methods on all tables.

    A method's figures use the seeds that it has on every table; a ratio uses those of both methods.
    """

    def __init__(
        self,
        tables: list[Table],
        methods: list[str],
        peers: list[str],
        studies: dict[tuple[str, str], list[Timed]],
        budget: int,
    ) -> None:
        """`studies` maps a table and a method or peer to its studies."""
        self.tables, self.methods, self.peers, self.budget = tables, methods, peers, budget
        self.names = [table.name for table in tables]
        self.seeds: dict[str, list[int]] = {}
        """By method: the seeds that it has on every table."""
        for name in self.all:
            of = [{timed.study.seed for timed in studies[table, name]} for table in self.names]
            self.seeds[name] = sorted(set.intersection(*of))
        self._scores: dict[tuple[str, str], dict[int, Score]] = {
            (table.name, name): {
                timed.study.seed: score(table, timed.study)
                for timed in studies[table.name, name]
                if timed.study.seed in set(self.seeds[name])
            }
            for table in tables
            for name in self.all
        }
        self._computing = {
            name: sum(t.computing for table in self.names for t in studies[table, name])
            / (sum(len(studies[table, name]) for table in self.names) * budget)
            for name in self.all
        }
        self._bootstraps: dict[int, Bootstrap] = {}
        self._means: dict[tuple[str, str, str, tuple[int, ...]], list[float]] = {}

    @property
    def all(self) -> list[str]:
        """Our methods, then the peers."""
        return [*self.methods, *self.peers]

    def on_table(self, table: str, name: str, figure: str) -> Estimate:
        """A figure on one table: the mean over seeds."""
        seeds = self.seeds[name]
        return Estimate.of(self._resampled(table, name, figure, seeds), len(seeds))

    def overall(self, name: str, figure: str) -> Estimate:
        """A figure over the tables: the geometric mean of times, the mean of others."""
        seeds = self.seeds[name]
        over = geometric_mean if figure in FIGURES else fmean
        columns = [self._resampled(table, name, figure, seeds) for table in self.names]
        return Estimate.of([over(row) for row in zip(*columns, strict=True)], len(seeds))

    def ratio(self, name: str, others: list[str], figure: str, tables: list[str]) -> Estimate:
        """A method's time over another's, geometric mean over tables.

        Of several others each resample takes, on each table, the one with the greatest ratio.
        """
        rows = []
        for table in tables:
            against = [self._quotients(table, name, other, figure) for other in others]
            rows.append([max(row) for row in zip(*against, strict=True)])
        fewest = min(len(self._common(name, other)) for other in others)
        return Estimate.of([geometric_mean(row) for row in zip(*rows, strict=True)], fewest)

    def failures(self, name: str, other: str) -> Estimate | None:
        """A method's failed runs over another's, of all tables; None if the other has none."""
        seeds = self._common(name, other)
        own, theirs = (
            [sum(row) for row in zip(*columns, strict=True)]
            for columns in (
                [self._resampled(table, one, "failed", seeds) for table in self.names]
                for one in (name, other)
            )
        )
        if not all(theirs):
            return None
        quotients = [one / another for one, another in zip(own, theirs, strict=True)]
        return Estimate.of(quotients, len(seeds))

    def _quotients(self, table: str, name: str, other: str, figure: str) -> list[float]:
        seeds = self._common(name, other)
        own = self._resampled(table, name, figure, seeds)
        theirs = self._resampled(table, other, figure, seeds)
        return [one / another for one, another in zip(own, theirs, strict=True)]

    def _common(self, name: str, other: str) -> list[int]:
        return sorted(set(self.seeds[name]) & set(self.seeds[other]))

    def _resampled(self, table: str, name: str, figure: str, seeds: list[int]) -> list[float]:
        key = (table, name, figure, tuple(seeds))
        if key not in self._means:
            if len(seeds) not in self._bootstraps:
                self._bootstraps[len(seeds)] = Bootstrap(self.names, len(seeds))
            of = self._bootstraps[len(seeds)]
            scores = self._scores[table, name]
            self._means[key] = of.means(table, [getattr(scores[s], figure) for s in seeds])
        return self._means[key]

    def baselines(self, name: str) -> dict[str, list[str]]:
        """Each peer, the best peer of each table (with enough seeds, if any), our other methods."""
        baselines = {peer: [peer] for peer in self.peers}
        known = [p for p in self.peers if len(self._common(name, p)) >= ENOUGH_SEEDS]
        if len(self.peers) > 1:
            baselines[BEST_PEER] = known or self.peers
        return baselines | {other: [other] for other in self.methods if other != name}

    def as_json(self) -> dict[str, Any]:
        """Everything, as JSON types."""
        figures = [*FIGURES, *HARM]
        first = self.methods[0]
        return {
            "budget": self.budget,
            "seeds": {name: len(seeds) for name, seeds in self.seeds.items()},
            "methods": self.methods,
            "peers": self.peers,
            "overall": {n: {f: vars(self.overall(n, f)) for f in figures} for n in self.all},
            "computing_per_run": self._computing,
            "best_of": self.baselines(first).get(BEST_PEER, []),
            "ratios": {
                baseline: {
                    figure: {
                        "all": vars(self.ratio(first, others, figure, self.names)),
                        "tables": {
                            t: vars(self.ratio(first, others, figure, [t])) for t in self.names
                        },
                    }
                    for figure in FIGURES
                }
                for baseline, others in self.baselines(first).items()
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
    """The report in Markdown, from `Comparison.as_json`."""
    names = [*result["methods"], *result["peers"]]
    made_with = ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
    lines = [
        "# io-autotune beside other optimisers",
        "",
        f"{len(result['tables'])} tables, {result['budget']} runs, by",
        "",
        f"    {command}",
        "",
        f"with {made_with}.",
        "",
        "How, and what they mean: analysis/laboratory/README.md. In brackets: 95 % intervals.",
        "",
        "## All tables: time over the true best",
        "",
        *overall(result, names),
        "",
        f"## {result['methods'][0]} divided by",
        "",
        *ratios(result, list(result["ratios"])),
        *ratios_by_table(result, list(result["ratios"]), f"## {result['methods'][0]} divided by"),
    ]
    for table in result["tables"]:
        size, default = table["parametrizations"], table["default"] / table["best"]
        lines += [
            "",
            f"## {table['name']}",
            "",
            f"{size} parametrizations; best {table['best']:.4g} s, default {default:.3f} of it.",
            "",
            *_on_table(result, table, names),
        ]
    return "\n".join(lines) + "\n"


def overall(result: dict[str, Any], names: list[str]) -> list[str]:
    """The figures of methods over all tables."""
    lines = [
        "Times: means over seeds, geometric means over tables. All else: means over both.",
        "",
        row(["", "seeds", *FIGURES.values(), *HARM.values(), "ms per suggestion"]),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        cells = _figures(result["overall"][name])
        milliseconds = f"{1000 * result['computing_per_run'][name]:.1f}"
        lines.append(row([name, str(result["seeds"][name]), *cells, milliseconds]))
    return lines


def ratios(result: dict[str, Any], baselines: list[str]) -> list[str]:
    """The first method divided by others, over all tables."""
    lines = [
        "Below 1 it is the faster one. Ahead, behind: the interval excludes 1. Nothing is claimed",
        f"from fewer than {ENOUGH_SEEDS} seeds: their intervals are too narrow.",
        "",
        row(["", "seeds", *FIGURES.values()]),
        row(["---", "---:", *("---" for _ in FIGURES)]),
    ]
    for baseline in baselines:
        of = result["ratios"][baseline]
        seeds = str(of["average"]["all"]["seeds"])
        lines.append(row([baseline, seeds, *(_judged(of[figure]["all"]) for figure in FIGURES)]))
    return lines


def ratios_by_table(
    result: dict[str, Any], baselines: list[str], title: str, name: Callable[[str], str] = str
) -> list[str]:
    """The first method divided by others, a row per table under what `name` makes of its name."""
    lines = []
    for figure, words in FIGURES.items():
        lines += ["", f"{title}: {words}", "", row(["", *baselines])]
        lines += [row(["---"] * (1 + len(baselines)))]
        for table in (table["name"] for table in result["tables"]):
            of = (result["ratios"][baseline][figure]["tables"][table] for baseline in baselines)
            lines.append(row([name(table), *(_judged(one) for one in of)]))
    return lines


def _on_table(result: dict[str, Any], table: dict[str, Any], names: list[str]) -> list[str]:
    lines = [
        row(["", "seeds", *FIGURES.values(), *HARM.values()]),
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in names:
        cells = _figures(table["figures"][name])
        lines.append(row([name, str(result["seeds"][name]), *cells]))
    return lines


def _figures(of: dict[str, Any]) -> list[str]:
    cells = [_interval(of[figure]) for figure in FIGURES]
    slower, loss, failed = (of[figure]["value"] for figure in HARM)
    return [*cells, f"{100 * slower:.0f} %", f"{loss:.1f}", f"{failed:.1f}"]


def row(cells: list[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"


def _interval(estimate: dict[str, float]) -> str:
    return f"{estimate['value']:.3f} ({estimate['low']:.3f}-{estimate['high']:.3f})"


def _judged(estimate: dict[str, Any]) -> str:
    return f"{_interval(estimate)} {Estimate(**estimate).verdict()}".rstrip()
