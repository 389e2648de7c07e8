"""Alabed and Yoneki 2021: one task, several, and clusters, on a table with measures."""

import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import NormalDist, fmean, median, variance
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method
from peers.program import Program
from peers.tables import Table

from papers import clusters, drawing, studies
from papers.claims import (
    Claim,
    Difference,
    above,
    below,
    column,
    judged,
    listed,
    mean,
    paired,
    proven,
    share,
    untried,
    with_readings,
)
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
ACTS = 0.01
"""A parameter influences a measure if it explains so much of its variance: our bound."""
HALF = 50.0
"""Of studies, %: most."""
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


def page(program: Program, on: Table, seeds: int, work: Path) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings; `work` is for tables with fewer measures."""
    words = ["--exploring-only", "--per-seed", "--budget", str(BUDGET), "--seeds", str(seeds)]
    result = program.simulate([on.path], [method.text for method in METHODS], words)
    random = program.simulate([on.path], ["random"], words)["tables"][0]["methods"][0]
    methods = result["tables"][0]["methods"]
    of_tasks = _by_tasks(program, on, words, work)
    default, best = on.truths[on.default], on.truths[on.best]
    rows = []
    series = {}
    for method, found in zip(METHODS, methods, strict=True):
        so_far = [list(accumulate(times, min)) for times in studies.courses(found, on)]
        gains = [100.0 * (default / times[-1] - 1.0) for times in so_far]
        cells = [_spread(gains, " %"), *(_steps(_reaching(found, on, share)) for share in NEAR)]
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
        "matters": _matters(clusters.of_time(on)),
        "points": str(len(on.points)),
        "quicker": _quicker(live["studies"]),
    }
    said["costs"] = _costs(
        {
            method.name: [value or 0.0 for value in column(of, "ElTime")]
            for method, of in zip(METHODS, methods, strict=True)
        }
    )
    found, drawn = _live(live["studies"])
    replayed = Replayed(
        steps={
            name: [float(step or BUDGET + 1) for step in _reaching(method, on, NEAR[0])]
            for name, method in zip(
                [*(method.name for method in METHODS), "random"], [*methods, random], strict=True
            )
        },
        seconds={
            method.name: [value or 0.0 for value in column(of, "ElTime")]
            for method, of in zip(METHODS, methods, strict=True)
        },
        of_tasks=of_tasks,
        optimal={
            method.name: [step is not None for step in _reaching(of, on, NEAR[1])]
            for method, of in zip(METHODS, methods, strict=True)
        },
        shares=clusters.shares(on),
        of_time=clusters.of_time(on),
        with_time=clusters.with_time(on),
    )
    return [
        *prose("alabed2021", **said),
        "",
        *prose("rule", source="the slides", has="have"),
        "",
        *claimed(_claims(live["studies"], replayed), "the slides"),
        "",
        *prose("alabed2021-criteria"),
        "",
        *claimed(_criteria(live["studies"]), "the slides"),
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
        *prose("alabed2021-why", **said),
    ], {
        "alabed2021.svg": drawing.lines(series, "step", "best so far (median), s"),
        "alabed2021-live.svg": drawn,
    }


@dataclass(frozen=True)
class Replayed:
    """What is known of the methods on the table, by method."""

    steps: Mapping[str, list[float]]
    """Until a run within 5 % of the best; one more than there are if there is none."""
    seconds: Mapping[str, list[float]]
    """What all suggestions of a study took to compute."""
    of_tasks: Mapping[int, list[float]]
    """The same of multi-task by the number of tasks, the time one of them."""
    optimal: Mapping[str, list[bool]]
    """Which studies come within 1 % of the best."""
    shares: Mapping[str, Mapping[str, float]]
    """By measure and parameter, the share of the variance that it explains."""
    of_time: Mapping[str, float]
    """The same of the time, by parameter."""
    with_time: Mapping[str, Difference]
    """By measure, its correlation with the time."""


def _by_tasks(program: Program, on: Table, words: list[str], work: Path) -> dict[int, list[float]]:
    """What each study takes to compute on the table with its first measures, by their number."""
    measures = on.described["measures"]
    work.mkdir(parents=True, exist_ok=True)
    paths = []
    for count in range(1, len(measures) + 1):
        path = work / f"{on.name}-{count}.json"
        described = {**on.described, "name": path.stem, "measures": measures[:count]}
        path.write_text(json.dumps(described), "utf-8")
        shutil.copyfile(on.path.with_suffix(".csv"), path.with_suffix(".csv"))
        paths.append(path)
    texts = [method.text for method in METHODS[:2]]
    found = program.simulate(paths, texts, words)["tables"]

    def seconds(method: dict[str, Any]) -> list[float]:
        return [value or 0.0 for value in column(method, "ElTime")]

    alone = seconds(found[0]["methods"][0])
    return {1: alone} | {nth + 1: seconds(of["methods"][1]) for nth, of in enumerate(found, 1)}


def _reaching(method: dict[str, Any], on: Table, share: float) -> list[int | None]:
    """The step of each study that comes within a share of the table's best."""
    near = on.truths[on.best] * (1 + share)
    return [
        next((nth for nth, time in enumerate(times, 1) if time <= near), None)
        for times in studies.courses(method, on)
    ]


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


MULTI = ("multi-task", "BO")
CLUSTERS = (("clustered", "multi-task"), ("structured", "multi-task"))
"""What is compared with what."""


def _pairs(
    of: Mapping[str, list[float]], where: str, *names: tuple[str, str]
) -> dict[str, Difference]:
    return {f"{where}{one} - {other}": paired(of[one], of[other]) for one, other in names}


def _claims(live: Sequence[dict[str, Any]], on_table: Replayed) -> list[Claim]:
    """The slides' sentences, by paired differences over seeds."""
    by_method = _by_method(live)
    steps = {name: [float(one) for one in of] for name, of in _steps_of(live, 0.1).items()}
    off = {
        name: [fmean(abs(one[0]) for one in _surprises(study)) for study in of]
        for name, of in by_method.items()
    }

    def sooner(words: str, tried: str, *names: tuple[str, str]) -> Claim:
        differences = _pairs(steps, "live, ", *names) | _pairs(on_table.steps, "table, ", *names)
        return below(words, differences, " steps", tried=tried)

    def unsteady(of: Mapping[str, list[float]]) -> dict[str, list[float]]:
        """How far each study's steps are from the median of its method's."""
        return {name: [abs(one - median(all_)) for one in all_] for name, all_ in of.items()}

    return [
        untried(
            '"Parameters are influenced by the hardware specifications, service objectives, and '
            'workload characteristics"; "finding optimal parameters might require many '
            'experiments"',
            "motives; there is one machine here, one objective, and one work for each system",
        ),
        below(
            '"BO reduces the number of communications with the real system"',
            _pairs(on_table.steps, "table, ", ("BO", "random")),
            " steps",
            tried="a communication is a run, and it has fewer than random search: the steps until "
            "a run within 5 % of the table's best",
        ),
        above(
            '"a mechanism to find optimal configurations in RocksDB using Bayesian optimization"',
            {
                f"table, {name}": share(sum(found), len(found))
                for name, found in on_table.optimal.items()
            },
            " %",
            bound=HALF,
            tried="more than 50 % of the studies run one within 1 % of the table's best, which is "
            "our bound of optimal, in 100 steps",
        ),
        _as_found(
            lambda of: above(
                '"Performance improvement over the default"',
                {name: mean(gains) for name, gains in of.items()},
                " %",
                tried="live: the throughput of what a study found best over the default's, both "
                "run again",
            ),
            by_method,
        ),
        sooner(
            '"Achieved faster convergence by utilizing multi-task learning"',
            "fewer steps than BO, of one task",
            MULTI,
        ),
        below(
            'multi-task learning "provides more information per execution run", "per training '
            'sample"',
            _pairs(off, "live, ", MULTI, ("clustered", "BO"), ("structured", "BO")),
            tried="the error of what is predicted of the next run, as a logarithm, is below BO's; "
            "each method predicts the points that it chose itself",
        ),
        untried(
            'a Gaussian process "still suffers from the curse of dimensionality in high '
            'dimensional settings"; multi-task learning is "mitigating the curse of dimensionality '
            'by providing context about the system interactions"; it "learns the wider context of '
            'the system"',
            "RocksDB is tuned with ten parameters live and with six on the table, but with other "
            "works, sizes and measures, so that nothing shows how a method fares as dimensions "
            "grow; of context nothing is measured",
        ),
        untried(
            '"Optimizing other tasks provide more data per iteration"',
            "nothing optimizes another task here: a run's other measures are looked at, and its "
            "time alone is optimized. That each run gives a row for each task is two rows below",
        ),
        _implicitly(on_table),
        proven(
            '"Downside: it duplicates the training samples in the process"; it "creates a copy of '
            'every parameter and a task observation"',
            "`predictions_are_those_of_the_whole_system` in "
            "`tuner-service/search/src/surrogate/multitask/tests.rs`",
            tried="the model has a row for each point that each of T tasks knows (n T is at most "
            "144): T n where all know all n points",
        ),
        _scales(on_table.of_tasks),
        untried(
            '"A standard GP inference scales linearly with number of tasks O(Tn^3)"',
            "a count of operations, which for T processes apart is as said. Ours is joint: it "
            "factors one matrix of T n rows. Inference is not timed apart from the search for "
            "hyperparameters and for the next point",
        ),
        *_of_clusters(on_table.shares, on_table.of_time),
        proven(
            '"The assignment was done by picking association with the highest covariance values" '
            '(the summary: "through manual assignment")',
            "`alabed2021_assignment_is_by_the_highest_covariance`",
            tried="a parameter belongs to the measure whose variance it explains best; nothing is "
            "assigned by hand here",
        ),
        untried(
            'the assignment "can be found through a combination of expert knowledge and '
            'unsupervised learning methods"; "use the expert knowledge to reduce the dimensions"',
            "no study here has clusters by hand (`clusters = by_hand`), nor has an expert made any",
        ),
        _as_bo(
            sooner(
                '"Decomposability of parameter space through manual assignment to a specific task '
                'led to even faster" convergence',
                "clusters, here by covariance, need fewer steps than multi-task without",
                *CLUSTERS,
            ),
            on_table.steps,
        ),
        below(
            '"and stable convergence"',
            _pairs(unsteady(steps), "live, ", *CLUSTERS)
            | _pairs(unsteady(on_table.steps), "table, ", *CLUSTERS),
            " steps",
            tried="how far a study's steps are from the median of its method's is less than "
            "without clusters",
        ),
        _of_complexity(on_table.seconds),
        untried(
            'the experiment: "100 steps"; "50 million queries in fifteen-minutes" of "a social '
            'graph workload" whose "pattern change every 5000 operation"; "the median of five '
            'runs"',
            "a run is a fifth of a second here, of 40,000 queries of one pattern; the live studies "
            "are four of 80 runs",
        ),
    ]


def _implicitly(on_table: Replayed) -> Claim:
    """A correlation is not what optimizing a measure would do; and the time contains these."""
    parts = [100.0 * of.mean**2 for of in on_table.with_time.values()]
    most = max(on_table.of_time, key=on_table.of_time.__getitem__)
    acts = 100.0 * max(0.0, *(of[most] for of in on_table.shares.values()))
    with_time = {f"table, {measure}": of for measure, of in on_table.with_time.items()}
    return untried(
        '"Optimizing the complimentary tasks provide implicit optimization to the primary goal"',
        "nothing optimizes another task here. Known is how each measure correlates with the time: "
        f"{listed(with_time)}. That decides nothing: the time of this table "
        "[contains the measures](../measurements/tables.md#rocksdb-measures), as bytes written at "
        "50 MB/s and blocks not in the cache at 500 MB/s; a measure explains "
        f"{min(parts):.0f} to {max(parts):.0f} % of the variance of times; and {most} alone "
        f"explains {100.0 * on_table.of_time[most]:.0f} %, and of no measure's more than "
        f"{math.ceil(acts)} %",
    )


def _scales(of_tasks: Mapping[int, list[float]]) -> Claim:
    """What a study takes to compute with one task more, study by study."""
    return above(
        '"Multi-task scales poorly"',
        {
            f"table, {more} tasks - {fewer}": paired(of_tasks[more], of_tasks[fewer])
            for fewer, more in pairwise(sorted(of_tasks))
        },
        " s",
        tried="each further task makes a study's suggestions take longer to compute, the first "
        "after BO's one included. All tasks together have 144 observations at most, so that with "
        "more of them fewer points are in the model; whether it is poor is not judged",
    )


def _of_complexity(seconds: Mapping[str, list[float]]) -> Claim:
    """Less time may come of clusters, or of measures that are left out."""
    return untried(
        '"while reducing runtime complexity"',
        "a measure that tells too little is left out, live of clusters "
        "[more often](#the-posterior), and what is left is BO: how much time the clusters save is "
        "not measured apart. Known is what a study's suggestions take to compute in all: "
        f"{listed(_pairs(seconds, 'table, ', *CLUSTERS), ' s')}",
    )


def _as_bo(claim: Claim, steps: Mapping[str, list[float]]) -> Claim:
    """The claim, with a word on clusters that take the very steps of one task alone."""
    alike = [name for name, _ in CLUSTERS if steps[name] == steps["BO"]]
    if not alike:
        return claim
    told = f"{claim.figure}. On the table {' and '.join(alike)} take BO's steps in each study"
    return replace(claim, figure=told)


def _of_clusters(
    shares: Mapping[str, Mapping[str, float]], of_time: Mapping[str, float]
) -> list[Claim]:
    acting = {
        measure: [name for name, share in of.items() if share >= ACTS]
        for measure, of in shares.items()
    }
    of_parameters = len(next(iter(shares.values())))
    partly = [
        name
        for name in next(iter(shares.values()))
        if 0 < sum(name in names for names in acting.values()) < len(acting)
    ]
    chosen = clusters.by_covariance({"elapsed": of_time, **shares})
    largest = max(map(len, chosen.values()))

    def decomposed(most: int) -> Claim:
        return judged(
            '"Decomposing the parameter space reduces the max dimensions by assigning a subset of '
            'parameters to each task" (in a drawing from five to three)',
            {"": most < of_parameters},
            f"on the table from {of_parameters} to {most}: "
            + "; ".join(
                f"{measure}: {', '.join(names) or 'none'}" for measure, names in chosen.items()
            )
            + ". In clustered, which we infer the slides do not draw, elapsed keeps all"
            f" {of_parameters}",
            tried="the task with the most parameters has fewer than there are, in structured, "
            "which we infer to be the slides' drawing, since with a maximum of three no task keeps "
            "all five",
        )

    return [
        judged(
            '"Computer systems have a natural decomposability where certain parameters only '
            'influence a subset of the metrics"',
            {"": bool(partly)},
            f"on the table {', '.join(partly) or 'none'}: "
            + "; ".join(f"{measure}: {', '.join(names)}" for measure, names in acting.items()),
            tried=f"some parameter explains at least {ACTS:.0%} of the variance (adjusted), which "
            "is our bound, of some measures and not of others",
        ),
        with_readings(
            {"structured": decomposed(largest), "clustered": decomposed(of_parameters)},
            "structured",
        ),
    ]


def _criteria(live: Sequence[dict[str, Any]]) -> list[Claim]:
    """Of throughput the slides have a picture, and no sentence."""
    by_method = _by_method(live)
    what = "the throughput of what a study found best over the default's, both run again"
    return [
        _as_found(
            lambda of: above(
                '"the most performant IO throughput": of multi-task before BO',
                _pairs(of, "live, ", MULTI),
                " %",
                tried=what,
            ),
            by_method,
        ),
        _as_found(
            lambda of: above(
                "the same: of clusters before multi-task without",
                _pairs(of, "live, ", *CLUSTERS),
                " %",
                tried=what,
            ),
            by_method,
        ),
    ]


def _as_found(
    made: Callable[[Mapping[str, list[float]]], Claim],
    by_method: Mapping[str, Sequence[dict[str, Any]]],
) -> Claim:
    """By what was found, run again; and by the quickest run itself, as the slides' picture is."""
    again = {name: [_again(study) for study in of] for name, of in by_method.items()}
    found = {
        name: [100.0 * (median(study["default_again"]) / _so_far(study)[-1] - 1.0) for study in of]
        for name, of in by_method.items()
    }
    quickest = made(found)
    name = f"by the quickest run itself, as the slides' caption has it ({quickest.figure})"
    return with_readings({"run again": made(again), name: quickest}, "what is run again")


def _quicker(live: Sequence[dict[str, Any]]) -> str:
    """The quickest runs of multi-task and of BO, by seed."""
    one, other = (
        [1000.0 * _so_far(study)[-1] for study in _by_method(live)[name]] for name in MULTI
    )
    found = paired(one, other)
    quicker = sum(a < b for a, b in zip(one, other, strict=True))
    return (
        f"quicker than BO's in {quicker} of {len(one)} seeds, by {-found.mean:.1f} ms on average "
        f"({-found.high:.1f} to {-found.low:.1f})"
    )


def _costs(seconds: Mapping[str, list[float]]) -> str:
    """How many times as long as BO's the suggestions of the others take to compute."""
    alone = fmean(seconds[METHODS[0].name])
    times = [fmean(of) / alone for name, of in seconds.items() if name != METHODS[0].name]
    return f"{min(times):.1f} to {max(times):.1f}"


def _matters(of_time: Mapping[str, float]) -> str:
    """The two parameters that explain most of the time's variance, and how much."""
    first = sorted(of_time, key=of_time.__getitem__, reverse=True)[:2]
    return ", ".join(f"`{name}` {100.0 * of_time[name]:.0f} %" for name in first)


def _spread(values: list[float], unit: str) -> str:
    return f"{median(values):.1f}{unit} ({min(values):.1f} to {max(values):.1f})"


def _steps(steps: list[int | None]) -> str:
    """The median and the range; a study that finds none counts as later than all."""
    late = BUDGET + 1
    known = sorted(late if step is None else step for step in steps)

    def told(step: float) -> str:
        return "none" if step >= late else number(step)

    return f"{told(median(known))} ({told(known[0])} to {told(known[-1])})"
