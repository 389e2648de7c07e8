"""The command behind `make -C analysis search-ablation`: what each part of the search is worth."""

import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from peers.program import Program, ReplayError, command_line
from peers.replay import run_methods
from peers.studies import Score, Study, score
from peers.tables import Table, TableError, named

from comparison.markdown import table
from comparison.prose import prose
from comparison.simulate import Method
from comparison.split import split

_PARTS = {
    "models_failures": ("false", "true"),
    "explores_outwards": ("false", "true"),
    "design_points": ("3", "5"),
}
"""Each part's setting, without it and with it."""


def _with(count: int) -> str:
    settings = enumerate(_PARTS.items())
    values = [f"{name}={of[place < count]}" for place, (name, of) in settings]
    return "surrogate-genetic:" + ",".join(values)


PLAIN = Method("neither part", _with(0))
FAILURES = Method("+ failures", _with(1))
DEFAULT = Method("+ outwards: the default", _with(2))
METHODS = [PLAIN, FAILURES, DEFAULT, Method("+ a design of five", _with(3))]
"""Each adds one part to those before it."""
OUTSIDE = [method for method in METHODS if method != FAILURES]
"""Without a regret budget nothing explores outwards, so that `FAILURES` and `DEFAULT` are one."""
RANDOM = Method("random", "random")
RESAMPLES = 1000
MOST = 3.0
"""What a study may lose, in runs of the default, and a run take, over the default."""


@dataclass(frozen=True)
class Figures:
    """What one study came to: its score, and what harm it did."""

    score: Score
    worst: float
    """The slowest run's parametrization over the default."""


def figures(on: Table, study: Study) -> Figures:
    """The figures of a study, by the table's means."""
    times = [on.truths[place] for place in study.runs if place is not None]
    return Figures(
        score=score(on, study),
        worst=max(times) / on.truths[on.default],
    )


Of = Callable[[Figures], float]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _ratio(ours: list[list[Figures]], base: list[list[Figures]], of: Of) -> str:
    """The geometric mean over tables of ratios of means, with the bootstrap's 95 % interval."""
    draw = random.Random(0)

    def over(places: list[list[int]]) -> float:
        logs = [
            math.log(_mean([of(a[k]) for k in some]) / _mean([of(b[k]) for k in some]))
            for a, b, some in zip(ours, base, places, strict=True)
        ]
        return math.exp(_mean(logs))

    value = over([list(range(len(one))) for one in ours])
    some = sorted(
        over([draw.choices(range(len(one)), k=len(one)) for one in ours]) for _ in range(RESAMPLES)
    )
    low, high = some[RESAMPLES // 40], some[-RESAMPLES // 40 - 1]
    return f"{value:.3f} ({low:.3f}-{high:.3f})"


def _geometric(tables: list[list[Figures]], of: Of) -> float:
    return math.exp(_mean([math.log(_mean([of(one) for one in some])) for some in tables]))


def _share(tables: list[list[Figures]], is_so: Callable[[Figures], bool]) -> str:
    return f"{100.0 * _mean([float(is_so(one)) for some in tables for one in some]):.0f} %"


def _quantile(tables: list[list[Figures]], of: Of, share: float) -> float:
    values = sorted(of(one) for some in tables for one in some)
    return values[min(int(share * len(values)), len(values) - 1)]


def _recommended(one: Figures) -> float:
    return one.score.recommended


def _average(one: Figures) -> float:
    return one.score.average


def _overall(by_method: dict[str, list[list[Figures]]]) -> list[str]:
    base = by_method[PLAIN.name]
    rows = [
        [
            name,
            f"{_geometric(ours, _recommended):.3f}",
            _ratio(ours, base, _recommended),
            f"{_geometric(ours, _average):.3f}",
            _ratio(ours, base, _average),
            f"{_mean([one.score.failed for some in ours for one in some]):.1f}",
            f"{_quantile(ours, lambda one: one.score.loss, 0.95):.1f}",
            _share(ours, lambda one: one.score.loss > MOST),
            _share(ours, lambda one: one.worst > MOST),
        ]
        for name, ours in by_method.items()
    ]
    head = ["", "recommended", "by neither's", "average run", "by neither's", "failed runs"]
    return table([*head, "loss, 95 %", "loss above 3", "a run above 3"], rows)


def _by_table(names: list[str], by_method: dict[str, list[list[Figures]]]) -> list[str]:
    of = [PLAIN.name, DEFAULT.name, RANDOM.name]
    rows = [
        [
            name,
            *(f"{_mean([one.score.recommended for one in by_method[m][at]]):.3f}" for m in of),
            *(f"{_mean([one.score.average for one in by_method[m][at]]):.2f}" for m in of),
            *(f"{_mean([one.score.failed for one in by_method[m][at]]):.1f}" for m in of),
            *(f"{_quantile([by_method[m][at]], lambda one: one.worst, 0.99):.1f}" for m in of),
        ]
        for at, name in enumerate(names)
    ]
    figures = ["recommended", "average run", "failed runs", "slowest run"]
    words = ("neither part", "the default", "random")
    return table(["", *(f"{figure}, {word}" for figure in figures for word in words)], rows)


def main() -> int:
    """Replays and writes the page."""
    page = Path("docs/measurements/search-ablation.md")
    parser = command_line("comparison.ablation", __doc__, page)
    parser.add_argument("--seeds", type=int, nargs=2, default=[20, 8], metavar=("50", "150"))
    parser.add_argument("--work", type=Path, default=Path("build/comparison"))
    arguments = parser.parse_args()
    program = Program(arguments.simulate, arguments.jobs, arguments.work / "kept")
    lines = prose("ablation", outside=str(arguments.seeds[0]), site=str(arguments.seeds[1]))
    try:
        for part in split(named(arguments.tables)):
            some = part.tables
            lines += ["", f"## {part.title}", *part.missing()]
            if not some:
                continue
            for title, budget, seeds, of_a_site in (
                ("50 runs outside Slurm", 50, arguments.seeds[0], False),
                ("A site's study of 150 runs", 150, arguments.seeds[1], True),
            ):
                methods = [*(METHODS if of_a_site else OUTSIDE), RANDOM]
                texts = [method.text for method in methods]
                studies = run_methods(
                    some, texts, range(seeds), budget, program, of_a_site=of_a_site
                )
                by_method = {
                    method.name: [
                        [figures(on, timed.study) for timed in studies[on.name, method.text]]
                        for on in some
                    ]
                    for method in methods
                }
                lines += ["", f"### {part.title}: {title}", ""]
                lines += _overall(by_method)
                lines += ["", *_by_table([on.name for on in some], by_method)]
    except (TableError, ReplayError) as error:
        print(f"search-ablation: {error}", file=sys.stderr)
        return 1
    arguments.output.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
