"""The page: ours and Ax's, pattern by pattern and together."""

import math
import statistics
from collections.abc import Callable
from typing import Any

from scipy.stats import t

from ax_transfer.life import FIT_STEPS, LOOKS, Life

_OURS = {
    "from_others": "ours, a site's study",
    "unbounded": "ours, outside Slurm",
}
_AX = "Ax's transfer"
_Lives = list[dict[str, Any]]

_HEAD = """\
# Ax's transfer learning beside ours

Written by `make -C analysis ax-transfer AX_TRANSFER_ARGS="--seeds {seeds}"`; do not edit.
With {packages}.

Twelve applications of romio, [measured](tables.md#access-patterns) over one grid of 48 points.
Each study begins from what the eight others have learnt whose measures are nearest to its own: for
each point that they ran its mean over the default's, {learnt} points of each in the mean. A run
takes what one of the point's four measured runs took.

- *Ours, a site's study*: four runs of the default first, then a first step that is small, and a
  bound on what is lost. *Ours, outside Slurm*: the default once, then nothing bounds it; {ours}
  studies of each pattern.
- *Ax*: the default once, then `Generators.BOTL` and its choice by cross validation, as
  `transfer_learning_generator_specs_constructor` puts them together; {seeds} studies of each
  pattern. A fit makes at most {steps} steps: without a bound it makes thousands, a minute for each
  run. A study of 50 runs takes {computing:.0f} s of a processor.
- *Recommended*: over the true best. *Average run*: over the default. *Harm*: what slower runs than
  the default cost together, in runs of the default.
- Intervals are Student's of 95 %, over patterns.
"""


def render(ours: list[dict[str, Any]], ax: dict[str, list[Life]], packages: dict[str, str]) -> str:
    """The page as Markdown: `ours` as `transfer` wrote it, Ax's lives by pattern."""
    rows = {name: [of[key] for of in ours] for key, name in _OURS.items()}
    rows[_AX] = [[vars(life) for life in ax[of["pattern"]]] for of in ours]
    computing = [life.computing for lives in ax.values() for life in lives]
    head = _HEAD.format(
        packages=", ".join(f"{name} {one}" for name, one in packages.items()),
        learnt=round(statistics.fmean(len(one["learnt"]) for of in ours for one in of["others"])),
        ours=len(ours[0]["from_others"]),
        seeds=min(len(lives) for lives in ax.values()),
        steps=FIT_STEPS,
        computing=statistics.fmean(computing),
    )
    return "\n".join([head, *_together(rows), "", *_ratios(rows), "", *_patterns(ours, rows), ""])


def _together(rows: dict[str, list[_Lives]]) -> list[str]:
    lines = ["## All patterns", "", *_table(["", "figure"])]
    figures: dict[str, Callable[[list[float]], str]] = {
        "recommended": lambda values: _interval(values, "{:.3f}", math.log, math.exp),
        "average": lambda values: _interval(values, "{:.3f}", math.log, math.exp),
        "harm": lambda values: _interval(values, "{:.2f}", float, float),
    }
    for figure, text in figures.items():
        for name, patterns in rows.items():
            cells = [text([_mean(of, figure, look) for of in patterns]) for look in _looks()]
            lines.append(_row(name, "average run" if figure == "average" else figure, *cells))
    return lines


def _ratios(rows: dict[str, list[_Lives]]) -> list[str]:
    lines = ["## Ours over Ax's: recommended", "", *_table([""])]
    for name in _OURS.values():
        cells = []
        for look in _looks():
            both = zip(rows[name], rows[_AX], strict=True)
            ratios = [
                _mean(mine, "recommended", look) / _mean(theirs, "recommended", look)
                for mine, theirs in both
            ]
            cells.append(_interval(ratios, "{:.3f}", math.log, math.exp))
        lines.append(_row(name, *cells))
    return lines


def _patterns(ours: list[dict[str, Any]], rows: dict[str, list[_Lives]]) -> list[str]:
    lines = ["## Each pattern: recommended", "", *_table(["pattern", "part", ""])]
    for place, of in enumerate(ours):
        part = "held out" if of["held_out"] else "development"
        for name, patterns in rows.items():
            means = [_mean(patterns[place], "recommended", look) for look in _looks()]
            lines.append(_row(of["pattern"], part, name, *(f"{mean:.3f}" for mean in means)))
    return lines


def _looks() -> range:
    return range(len(LOOKS))


def _mean(lives: _Lives, figure: str, look: int) -> float:
    return statistics.fmean(life[figure][look] for life in lives)


def _interval(
    values: list[float],
    form: str,
    there: Callable[[float], float],
    back: Callable[[float], float],
) -> str:
    changed = [there(value) for value in values]
    mean = statistics.fmean(changed)
    quantile = t.ppf(0.975, len(changed) - 1)
    half = quantile * statistics.stdev(changed) / math.sqrt(len(changed))
    low, middle, high = (form.format(back(mean + side * half)) for side in (-1, 0, 1))
    return f"{middle} ({low}..{high})"


def _table(first: list[str]) -> list[str]:
    looks = [f"after {look} runs" for look in LOOKS]
    return [_row(*first, *looks), _row(*("---" for _ in first), *("---:" for _ in looks))]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
