"""Alabed and Yoneki 2021: one task, several, and clusters, on a table with measures."""

from itertools import accumulate
from statistics import median

from comparison.markdown import number, table
from comparison.simulate import Method
from peers.program import Program
from peers.tables import Table

from papers import drawing, studies
from papers.text import prose

NAME = "rocksdb-measures"
BUDGET = 100
"""Steps, as in the slides."""
NEAR = (0.05, 0.01)
"""Found: within so much of the best."""
_MULTITASK = "alabed2021-multitask"
METHODS = [
    Method("BO", "robert2019-surrogate"),
    Method("multi-task", _MULTITASK),
    Method("clustered", f"{_MULTITASK}:clusters=covariance"),
    Method("structured", f"{_MULTITASK}:clusters=covariance,{_MULTITASK}.objective=own"),
]


def page(program: Program, on: Table, seeds: int) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings."""
    words = ["--exploring-only", "--per-seed", "--budget", str(BUDGET), "--seeds", str(seeds)]
    result = program.simulate([on.path], [method.text for method in METHODS], words)
    default, best = on.truths[on.default], on.truths[on.best]
    rows = []
    series = {}
    for method, found in zip(METHODS, result["tables"][0]["methods"], strict=True):
        so_far = [list(accumulate(times, min)) for times in studies.courses(found, on)]
        gains = [100.0 * (default / times[-1] - 1.0) for times in so_far]
        cells = [_spread(gains, " %")]
        for share in NEAR:
            steps = [
                next((nth for nth, time in enumerate(times, 1) if time <= best * (1 + share)), None)
                for times in so_far
            ]
            cells.append(_steps(steps))
        computing = next(one for one in found["figures"] if one["metric"] == "ElTime")
        rows.append([method.name, *cells, f"{number(computing.get('value'))} s"])
        series[method.name] = studies.medians(so_far)
    series["default"] = [default] * BUDGET
    series["optimum"] = [best] * BUDGET
    head = ["", f"throughput over the default's after {BUDGET} steps"]
    head += [f"step that is within {share:.0%} of the best" for share in NEAR]
    said = {
        "seeds": str(seeds),
        "most": f"{100.0 * (default / best - 1.0):.0f}",
        "points": str(len(on.points)),
    }
    return [
        *prose("alabed2021", **said),
        "",
        *table([*head, "computing"], rows),
        "",
        "![best so far](figures/alabed2021.svg)",
        "",
        *prose("alabed2021-why"),
    ], {"alabed2021.svg": drawing.lines(series, "step", "best so far (median), s")}


def _spread(values: list[float], unit: str) -> str:
    return f"{median(values):.1f}{unit} ({min(values):.1f} to {max(values):.1f})"


def _steps(steps: list[int | None]) -> str:
    """The median and the range; a study that finds none counts as later than all."""
    late = BUDGET + 1
    known = sorted(late if step is None else step for step in steps)

    def told(step: float) -> str:
        return "none" if step >= late else number(step)

    return f"{told(median(known))} ({told(known[0])} to {told(known[-1])})"
