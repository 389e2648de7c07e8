"""Table VI of the 2020 paper, and why ours differs."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from peers.program import Program
from peers.tables import Sample, Table

from comparison import ranks
from comparison.interpretations import Figures, Interpretation, figures, replay, sample
from comparison.markdown import number, table
from comparison.prose import prose
from comparison.published import CLASSES, TABLE_VI, TABLE_VI_NOISE
from comparison.simulate import figures as simulated

HIGHER = {"SuccessRate", "InferiorDefault", "ScoreOptim", "ScoreStability", "Score"}
"""The metrics of which more is better."""
SCORES = {"ScoreOptim": "optim", "ScoreStability": "stability", "Score": "score"}
SHARE = 0.10
"""p of the resampling whose interpretations are replayed: the paper's best."""
METRICS = {
    "success": "SuccessRate",
    "distance": "DistOptim",
    "steps": "NbrSteps",
    "average": "AvgDistOptim",
}
"""The figures of an interpretation that the paper has too."""
RESAMPLED = "RGA SEDR 10 %"
INTERPRETATION_SEEDS = 200
"""Studies of each interpretation."""
QUIET = "as the engine reads it, and no noise"
FREE = "resamples are no iterations, and no noise"
INTERPRETATIONS = (
    Interpretation("as the engine reads it"),
    Interpretation("children may be what was tested", returns=True),
    Interpretation("parents picked by 1 / (t - least t + 1 s)", picks=True),
    Interpretation("65 iterations: the design comes on top", budget=65),
    Interpretation("resamples are no iterations", resamples_count=False),
    Interpretation("both: 65, resamples not counted", budget=65, resamples_count=False),
)


@dataclass(frozen=True)
class Best:
    """The best method of a class, by `Score`."""

    name: str
    metrics: dict[str, float | None]


def section(program: Program, on: Table, seeds: int) -> list[str]:
    """The section of the report."""
    result = program.simulate(
        [on.path], [], ["--preset", "robert2020-table-v", "--seeds", str(seeds)]
    )
    best = best_of_each(result)
    return [
        *prose(
            "robert2020",
            genetic=str(len(result["methods"]) - 1),
            table=on.name,
            budget=str(result["budget"]),
            seeds=str(seeds),
        ),
        "",
        *_table_vi(best),
        "",
        "Rankings of the five classes, best first, and Kendall's tau-b with the paper's:",
        "",
        *_rankings(best),
        "",
        *_hyperparameters(result),
        "",
        *_explained(on, result),
    ]


def best_of_each(result: dict[str, Any]) -> list[Best]:
    """In the order of the classes."""
    of = list(zip(result["methods"], result["tables"][0]["methods"], strict=True))
    best = []
    for name in CLASSES:
        candidates = [pair for pair in of if pair[0].split(" ")[0] == name]
        label, method = max(candidates, key=lambda pair: pair[1]["scores"]["score"])
        scores = {metric: method["scores"][key] for metric, key in SCORES.items()}
        best.append(Best(label, simulated(method) | scores))
    return best


def _table_vi(best: list[Best]) -> list[str]:
    noise = [one.name.removeprefix(name).strip() for one, name in zip(best, CLASSES, strict=True)]
    rows = [
        ["ours", *noise],
        ["the paper's", *TABLE_VI_NOISE],
    ]
    for metric, theirs in TABLE_VI.items():
        cells = [
            f"{number(one.metrics[metric])} ({number(their, 4)})"
            for one, their in zip(best, theirs, strict=True)
        ]
        rows.append([metric, *cells])
    return table(["", *CLASSES], rows)


def _rankings(best: list[Best]) -> list[str]:
    rows = []
    for metric, theirs in TABLE_VI.items():
        if metric == "ElTime":
            continue
        ours = [ranks.rounded(one.metrics[metric]) for one in best]
        higher = metric in HIGHER
        rows.append(
            [
                metric,
                ranks.order(CLASSES, ours, higher),
                ranks.order(CLASSES, theirs, higher),
                number(ranks.tau(ours, theirs), 2),
            ]
        )
    return table(["", "ours", "the paper", "tau"], rows, left=3)


def _hyperparameters(result: dict[str, Any]) -> list[str]:
    """The mean `Score` by noise reduction, over selections and crossovers, for RGA and FGA."""
    scores: dict[str, list[float]] = {}
    for label, method in zip(result["methods"], result["tables"][0]["methods"], strict=True):
        words = label.split(" ")
        if words[0] in {"RGA", "FGA"}:
            scores.setdefault(" ".join(words[:3]), []).append(method["scores"]["score"])
    ordered = sorted(scores.items(), key=lambda pair: -sum(pair[1]) / len(pair[1]))
    rows = [[name, number(sum(of) / len(of), 2)] for name, of in ordered]
    return [
        "`Score` by noise reduction, mean over selections and crossovers:",
        "",
        *table(["", "Score"], rows),
    ]


def _explained(on: Table, result: dict[str, Any]) -> list[str]:
    seeds = INTERPRETATION_SEEDS
    quiet = without_spread(on)
    rows, by_words = _engine(result), {}
    for words, of_table, interpretation in [
        *((interpretation.words, on, interpretation) for interpretation in INTERPRETATIONS),
        (QUIET, quiet, INTERPRETATIONS[0]),
        (FREE, quiet, INTERPRETATIONS[4]),
    ]:
        for name, share in (("CGA", None), (RESAMPLED, SHARE)):
            if share is None and not interpretation.resamples_count:
                continue
            of = figures(
                of_table, [replay(of_table, interpretation, share, s) for s in range(seeds)]
            )
            by_words[words, name] = of
            rows.append([words, name, *_cells(of)])
    for words, interpretation in (("50 runs", INTERPRETATIONS[0]), ("65 runs", INTERPRETATIONS[3])):
        of = figures(on, [sample(on, interpretation, seed) for seed in range(seeds)])
        by_words[words, "RS"] = of
        rows.append([words, "RS", *_cells(of)])
    paper = {name: place for place, name in enumerate(CLASSES)}
    for name, column in (("CGA", "CGA"), (RESAMPLED, "RGA"), ("RS", "RS")):
        cells = {ours: TABLE_VI[theirs][paper[column]] for ours, theirs in METRICS.items()}
        printed = [number(cells.get(field.name), 4) for field in fields(Figures)]
        rows.append(["the paper", name, *printed])
    return [
        *prose("interpretations", seeds=str(seeds)),
        "",
        *table(
            [
                "",
                "",
                "SuccessRate %",
                "DistOptim %",
                "NbrSteps",
                "AvgDistOptim %",
                "tried %",
                "nearest %",
                "levels",
            ],
            rows,
            left=2,
        ),
        "",
        *_why(on, by_words),
    ]


def _engine(result: dict[str, Any]) -> list[list[str]]:
    """The engine's figures for the variants that are replayed in Python."""
    labels = {
        "CGA": "CGA tournament single-point",
        RESAMPLED: "RGA sedr 10% tournament single-point",
        "RS": "RS",
    }
    rows = []
    for name, label in labels.items():
        found = simulated(result["tables"][0]["methods"][result["methods"].index(label)])
        cells = [found.get(METRICS.get(field.name, "")) for field in fields(Figures)]
        rows.append(["the engine", name, *(number(cell) for cell in cells)])
    return rows


def _cells(of: Figures) -> list[str]:
    return [number(getattr(of, field.name)) for field in fields(Figures)]


def without_spread(on: Table) -> Table:
    """The table with each parametrization's mean for every run."""
    quiet = Table(Path(on.path))
    quiet.samples = [[Sample(mean, None)] for mean in on.truths]
    return quiet


def near(on: Table, share: float) -> int:
    """The number of parametrizations within `share` of the best time."""
    return sum(truth <= on.truths[on.best] * (1.0 + share) for truth in on.truths)


def _why(on: Table, of: dict[tuple[str, str], Figures]) -> list[str]:
    ours = of[INTERPRETATIONS[0].words, RESAMPLED]
    random, more = of["50 runs", "RS"], of["65 runs", "RS"]
    next_best = sorted(on.truths)[1] / on.truths[on.best]
    return prose(
        "robert2020-why",
        success=number(ours.success),
        tried=number(ours.tried),
        quiet=number(of[QUIET, RESAMPLED].success),
        free=number(of[FREE, RESAMPLED].success),
        free_tried=number(of[INTERPRETATIONS[4].words, RESAMPLED].tried),
        gap=number(100.0 * (next_best - 1.0), 1),
        noise=number(100.0 * on.scatter, 2),
        near=str(near(on, 0.03)),
        random_distance=number(random.distance),
        random_levels=number(random.levels, 2),
        random_nearest=number(random.nearest, 2),
        more_nearest=number(more.nearest, 2),
        free_nearest=number(of[INTERPRETATIONS[4].words, RESAMPLED].nearest, 2),
        both_tried=number(of[INTERPRETATIONS[5].words, RESAMPLED].tried),
        both_nearest=number(of[INTERPRETATIONS[5].words, RESAMPLED].nearest, 2),
        conventional_tried=number(of[INTERPRETATIONS[0].words, "CGA"].tried),
        random_steps=number(random.steps),
        more_steps=number(more.steps),
    )
