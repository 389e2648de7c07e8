"""Alabed and Yoneki 2021: one task, several, and clusters, on a table with measures."""

import json
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import NormalDist, fmean, median, variance
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method
from peers.program import Program
from peers.tables import Table

from papers import drawing, studies
from papers.claims import UNTRIED, Claim, Difference, above, below, paired
from papers.claims import rows as claimed
from papers.text import prose

NAME = "rocksdb-measures"
BUDGET = 100
"""Steps, as in the slides."""
NEAR = (0.05, 0.01)
"""Found: within so much of the best."""
LIVE_NEAR = (0.2, 0.1)
"""The same where runs are noisy."""
LIVE = Path("analysis/data/live/rocksdb.json")
"""What `make -C analysis rocksdb-live` writes."""
WIDE = 2.0
"""Standard deviations of the posterior that a run should lie within, mostly."""
PARTS = 3
"""Of a study after its design, by which the posterior is shown."""
_MULTITASK = "alabed2021-multitask"
DESIGN = 4
"""Points of the design: the slides do not tell how many."""
_DESIGN = f"design_points={DESIGN}"
METHODS = [
    Method("BO", f"robert2019-surrogate:{_DESIGN}"),
    Method("multi-task", f"{_MULTITASK}:{_DESIGN}"),
    Method("clustered", f"{_MULTITASK}:{_DESIGN},clusters=covariance"),
    Method(
        "structured",
        f"{_MULTITASK}:{_DESIGN},clusters=covariance,{_MULTITASK}.objective=own",
    ),
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
    live = json.loads(LIVE.read_text("utf-8"))
    setup = live["setup"]
    said = {
        "scatter": f"{100.0 * _scatter(live['studies']):.0f}",
        "half": f"{100.0 * math.expm1(NormalDist().inv_cdf(0.75) * _scatter(live['studies'])):.0f}",
        "steps": str(setup["steps"]),
        "design": str(setup["design"]),
        "live_seeds": str(len({one["seed"] for one in live["studies"]})),
        "seeds": str(seeds),
        "most": f"{100.0 * (default / best - 1.0):.0f}",
        "points": str(len(on.points)),
    }
    found, drawn = _live(live["studies"])
    return [
        *prose("alabed2021", **said),
        "",
        *claimed(_claims(live["studies"])),
        "",
        *prose("alabed2021-live", **said),
        "",
        *found,
        "",
        "![best so far, live](figures/alabed2021-live.svg)",
        "",
        *prose("alabed2021-posterior", **said),
        "",
        *_posterior(live["studies"]),
        "",
        *prose("alabed2021-table", **said),
        "",
        *table([*head, "computing"], rows),
        "",
        "![best so far](figures/alabed2021.svg)",
        "",
        *prose("alabed2021-why"),
    ], {
        "alabed2021.svg": drawing.lines(series, "step", "best so far (median), s"),
        "alabed2021-live.svg": drawn,
    }


def _by_method(live: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The studies of each method, by seed."""
    ordered = sorted(live, key=lambda one: one["seed"])
    return {
        method.name: [one for one in ordered if one["method"] == method.name] for method in METHODS
    }


def _so_far(study: dict[str, Any]) -> list[float]:
    """The least time so far, by step; a run that failed has none."""
    times = [math.inf if time is None else time for time in study["elapsed"]]
    return list(accumulate(times, min))


def _again(study: dict[str, Any]) -> float:
    """The throughput of what a study found best over the default's, both run again, %."""
    return 100.0 * (median(study["default_again"]) / median(study["again"]) - 1.0)


def _reached(studies_of_seed: Sequence[dict[str, Any]], share: float) -> list[int]:
    """For each study of a seed the step that came within `share` of the best of them all."""
    courses = [_so_far(study) for study in studies_of_seed]
    best = min(course[-1] for course in courses)
    return [
        next((nth for nth, time in enumerate(course, 1) if time <= best * (1 + share)), len(course))
        for course in courses
    ]


def _steps_of(live: Sequence[dict[str, Any]], share: float) -> dict[str, list[int]]:
    by_method = _by_method(live)
    found: dict[str, list[int]] = {name: [] for name in by_method}
    for of_seed in zip(*by_method.values(), strict=True):
        for name, step in zip(by_method, _reached(of_seed, share), strict=True):
            found[name].append(step)
    return found


def _live(live: Sequence[dict[str, Any]]) -> tuple[list[str], str]:
    by_method = _by_method(live)
    steps = {share: _steps_of(live, share) for share in LIVE_NEAR}
    rows = []
    series = {}
    for name, of in by_method.items():
        courses = [_so_far(study) for study in of]
        told = [
            f"{median(one)} ({min(one)} to {max(one)})" for one in (steps[s][name] for s in steps)
        ]
        failed = sum(time is None for study in of for time in study["elapsed"])
        rows.append(
            [
                name,
                _spread([1000.0 * course[-1] for course in courses], ""),
                _spread([_again(study) for study in of], " %"),
                *told,
                str(failed),
            ]
        )
        series[name] = studies.medians(courses)
    head = [
        "",
        "quickest run, ms",
        "throughput over the default's, both run again",
        *(f"step that is within {share:.0%} of the quickest of a seed" for share in LIVE_NEAR),
        "failed runs",
    ]
    return table(head, rows), drawing.lines(series, "step", "quickest so far (median), s")


def _surprises(study: dict[str, Any]) -> list[tuple[float, float, int]]:
    """Of each run that was predicted: how far it was off, the deviation expected, the measures."""
    of = zip(study["elapsed"], study["predicted"], study["factor"], study["measures"], strict=True)
    return [
        (math.log(elapsed / predicted), math.log(factor), measures)
        for elapsed, predicted, factor, measures in of
        if elapsed is not None and predicted is not None
    ]


def _scatter(live: Sequence[dict[str, Any]]) -> float:
    """The standard deviation of log times of one parametrization, of the runs after the search."""
    defaults = {one["seed"]: one["default_again"] for one in live}
    groups = [*defaults.values(), *(one["again"] for one in live)]
    return math.sqrt(fmean(variance([math.log(time) for time in group]) for group in groups))


def _posterior(live: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for name, of in _by_method(live).items():
        surprises = [_surprises(study) for study in of]
        for part in range(PARTS):
            some = [
                one
                for study in surprises
                for one in study[len(study) * part // PARTS : len(study) * (part + 1) // PARTS]
            ]
            off = 100.0 * (math.exp(median(abs(one[0]) for one in some)) - 1.0)
            expected = 100.0 * (math.exp(median(one[1] for one in some)) - 1.0)
            within = 100.0 * fmean(abs(one[0]) <= WIDE * one[1] for one in some)
            used = 100.0 * fmean(one[2] > 0 for one in some)
            cells = [f"{off:.0f} %", f"{expected:.0f} %", f"{within:.0f} %", f"{used:.0f} %"]
            rows.append([name, f"{part + 1} of {PARTS}", *cells])
    head = ["", "part of the search", "a run is off by (median)", "deviation expected (median)"]
    return table([*head, "runs within two deviations", "with measures"], rows, left=2)


def _claims(live: Sequence[dict[str, Any]]) -> list[Claim]:
    """The slides' sentences, by paired differences over seeds."""
    by_method = _by_method(live)
    again = {name: [_again(study) for study in of] for name, of in by_method.items()}
    steps = {name: [float(one) for one in of] for name, of in _steps_of(live, 0.1).items()}
    off = {
        name: [fmean(abs(one[0]) for one in _surprises(study)) for study in of]
        for name, of in by_method.items()
    }

    def pairs(of: dict[str, list[float]], *names: tuple[str, str]) -> dict[str, Difference]:
        return {f"{one} - {other}": paired(of[one], of[other]) for one, other in names}

    multi = ("multi-task", "BO")
    clusters = (("clustered", "multi-task"), ("structured", "multi-task"))
    return [
        above(
            "the throughput is improved over the default",
            {name: paired(of, [0.0] * len(of)) for name, of in again.items()},
            " %",
        ),
        below("multi-task converges faster than BO", pairs(steps, multi), " steps"),
        below("clusters converge faster still", pairs(steps, *clusters), " steps"),
        above("multi-task finds more throughput than BO", pairs(again, multi), " %"),
        above("clusters find more still", pairs(again, *clusters), " %"),
        below(
            "other tasks provide more data per run: the error of a prediction falls (log)",
            pairs(off, multi, ("clustered", "BO"), ("structured", "BO")),
        ),
        Claim(
            "with noise that measures do not share, and few data, they do",
            "holds here",
            "`alabed2021_other_tasks_provide_more_data_per_iteration`, "
            "`alabed2021_a_task_with_few_parameters_lowers_the_error_too`",
        ),
        Claim(
            "decomposition lowers the largest dimension from five to three",
            UNTRIED,
            "which parameters each metric has there is in a picture without text",
        ),
        Claim(
            "100 steps of 15 minutes each, 50 million queries of a social graph",
            UNTRIED,
            "a run is a fifth of a second here, of 40,000 queries",
        ),
    ]


def _spread(values: list[float], unit: str) -> str:
    return f"{median(values):.1f}{unit} ({min(values):.1f} to {max(values):.1f})"


def _steps(steps: list[int | None]) -> str:
    """The median and the range; a study that finds none counts as later than all."""
    late = BUDGET + 1
    known = sorted(late if step is None else step for step in steps)

    def told(step: float) -> str:
        return "none" if step >= late else number(step)

    return f"{told(median(known))} ({told(known[0])} to {told(known[-1])})"
