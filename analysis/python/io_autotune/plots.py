"""Drawings of a study, by matplotlib: `io_autotune.plots.history(study)` returns its axes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from io_autotune.errors import Error
from io_autotune.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _axes(ax: Axes | None, title: str) -> Axes:
    if ax is None:
        try:
            import matplotlib.pyplot as plt  # noqa: PLC0415 - optional
        except ImportError as error:
            raise Error("plots need matplotlib: pip install 'io-autotune[plots]'") from error
        _, ax = plt.subplots()
    ax.set_title(title)
    return ax


def history(study: Study, ax: Axes | None = None) -> Axes:
    """Draw each run's value by its state, and what is expected to be the best."""
    ax = _axes(ax, f"{study.name}: runs")
    for state, marker in (("complete", "o"), ("cut", "^")):
        some = {run.id: run.value or 0.0 for run in study.runs if run.state == state}
        if some:
            ax.plot(list(some), list(some.values()), marker, label=state)
    failed = [run.id for run in study.runs if run.state == "failed"]
    if failed:
        low = ax.get_xaxis_transform()
        ax.plot(failed, [0.02] * len(failed), "x", label="failed", transform=low)
    if (best := study.best_value) is not None:
        ax.axhline(best, linestyle="--", label="mean of the best")
    ax.set(xlabel="run", ylabel=study.direction)
    ax.legend()
    return ax


def convergence(study: Study, ax: Axes | None = None) -> Axes:
    """Draw the best value seen so far. A lucky run of a noisy function makes it look better."""
    ax = _axes(ax, f"{study.name}: best seen")
    better = max if study.direction == "maximize" else min
    values = {run.id: run.value or 0.0 for run in study.runs if run.state == "complete"}
    ax.step(list(values), list(itertools.accumulate(values.values(), better)), where="post")
    ax.set(xlabel="run", ylabel=study.direction)
    return ax


def importance(study: Study, ax: Axes | None = None) -> Axes:
    """Draw what each parameter explains of the values' spread."""
    ax = _axes(ax, f"{study.name}: what the parameters explain")
    shares = study.importance()
    names = sorted(shares, key=lambda name: shares[name])
    ax.barh(names, [shares[name] for name in names])
    ax.set(xlabel="share of the spread" if names else "too few runs, or nothing is explained")
    return ax


def gain(study: Study, ax: Axes | None = None) -> Axes:
    """Draw the gain over the default with its interval, beside no gain."""
    found = study.gain
    if found is None or found.estimate is None or found.low is None or found.high is None:
        raise Error("no interval of the gain is known: optimize with compare=20, or with more")
    ax = _axes(ax, f"{study.name}: gain over the default ({found.verdict})")
    scale = 100 if found.unit == "share" else 1
    low, middle, high = (scale * end for end in (found.low, found.estimate, found.high))
    ax.errorbar([middle], [0], xerr=[[middle - low], [high - middle]], fmt="o", capsize=6)
    ax.axvline(0, color="grey")
    ax.set(xlabel="% of the default" if scale > 1 else "difference", yticks=[])
    return ax
