"""What a Gaussian process expects over two important parameters, the others as chosen."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from io_autotune_report.analyse.understanding.tested import (
    ABSENT,
    Array,
    Parameter,
    Tested,
    features,
    gather,
)
from io_autotune_report.document import Importance, Surface
from io_autotune_report.frames import CHOSEN_ROLES

MOST_PAIRS = 3
MOST_LEVELS = 12
MOST_POINTS = 96
_NOISE = 0.1
"""Of log elapsed, where no parametrization ran twice."""


def surfaces(runs: pd.DataFrame, importance: Importance) -> list[Surface]:
    """Of one epoch's runs: a surface for each pair of the most important parameters."""
    known = gather(runs)
    pairs = _pairs(known, importance)
    if not pairs:
        return []
    centre = _centre(runs, known)
    model = _Model(known)
    return [_surface(known, model, centre, *pair) for pair in pairs]


def _pairs(known: Tested, importance: Importance) -> list[tuple[int, int]]:
    """Interactions first, then pairs of the parameters with the largest shares."""
    place = {parameter.name: at for at, parameter in enumerate(known.parameters)}
    shares: dict[str, float] = {}
    for way in (importance.r2, importance.anova, importance.forest):
        for share in way:
            for name in share.parameters:
                shares[name] = max(share.share, shares.get(name, 0.0))
    together = [tuple(share.parameters) for share in importance.anova if len(share.parameters) > 1]
    strongest = sorted((name for name in shares if name in place), key=lambda name: -shares[name])
    wanted = [*together, *combinations(strongest, 2)]
    unique = dict.fromkeys(
        tuple(sorted((place[one], place[other])))
        for one, other in wanted
        if one in place and other in place
    )
    return [(first, second) for first, second in unique][:MOST_PAIRS]


def _centre(runs: pd.DataFrame, known: Tested) -> int:
    """The parametrization that was chosen last; before there is one, the quickest on average."""
    place = {key: at for at, key in enumerate(known.keys)}
    chosen = runs.loc[runs["role"].isin(CHOSEN_ROLES) & runs["key"].notna(), "key"]
    for key in reversed(chosen.to_list()):
        if key in place:
            return place[key]
    return int(np.argmin(known.logs))


class _Model:
    """The process, fitted to the parametrizations with the most runs and the quickest."""

    def __init__(self, known: Tested) -> None:
        self.noise = known.noise if known.noise else _NOISE
        order = np.lexsort((known.logs, -known.weights))[:MOST_POINTS]
        self.mean = float(np.mean(known.logs[order]))
        x = rows(known, np.stack([p.codes for p in known.parameters], axis=1)[order])
        scales = np.full(x.shape[1], 0.7)
        spread = max(float(np.var(known.logs[order])), 1e-6)
        kernel = ConstantKernel(spread, (spread / 30, spread * 30)) * Matern(
            scales, (0.1, 30.0), nu=2.5
        ) + WhiteKernel(spread / 100, (spread * 1e-5, spread))
        self.process = GaussianProcessRegressor(
            kernel, alpha=self.noise**2 / known.runs[order], random_state=0
        )
        with warnings.catch_warnings():
            # A length at its bound says that a parameter does not matter here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.process.fit(x, known.logs[order] - self.mean)

    def expect(self, x: Array) -> tuple[Array, Array]:
        """Expected elapsed of a run, and one standard deviation of what its logarithm is."""
        mean, deviation = self.process.predict(x, return_std=True)
        return np.exp(mean + self.mean + self.noise**2 / 2), deviation


def rows(known: Tested, codes: np.ndarray) -> Array:
    """A row of numbers for each row of level places."""
    columns = enumerate(known.parameters)
    return np.concatenate([features(each, codes[:, at]) for at, each in columns], axis=1)


def _surface(known: Tested, model: _Model, centre: int, first: int, second: int) -> Surface:
    x, y = known.parameters[first], known.parameters[second]
    across, down = _levels(x, centre), _levels(y, centre)
    codes = np.tile([p.codes[centre] for p in known.parameters], (len(down) * len(across), 1))
    codes[:, first] = np.tile(across, len(down))
    codes[:, second] = np.repeat(down, len(across))
    elapsed, deviation = model.expect(rows(known, codes))
    shape = (len(down), len(across))
    # Measured there means there alone: all others as chosen.
    same = np.ones(len(known.keys), dtype=bool)
    for at, parameter in enumerate(known.parameters):
        if at not in (first, second):
            same &= parameter.codes == parameter.codes[centre]
    same &= np.isin(x.codes, across) & np.isin(y.codes, down)
    return Surface(
        x=x.name,
        y=y.name,
        x_values=[level for code in across if (level := x.levels[code]) is not ABSENT],
        y_values=[level for code in down if (level := y.levels[code]) is not ABSENT],
        elapsed=elapsed.reshape(shape).tolist(),
        deviation=deviation.reshape(shape).tolist(),
        runs=[
            (
                x.levels[x.codes[at]],
                y.levels[y.codes[at]],
                float(known.elapsed[at]),
                int(known.runs[at]),
            )
            for at in np.flatnonzero(same)
        ],
    )


def _levels(parameter: Parameter, centre: int) -> list[int]:
    """The levels that exist; of very many some, evenly, that of the chosen one among them."""
    existing = [code for code, level in enumerate(parameter.levels) if level is not ABSENT]
    if len(existing) > MOST_LEVELS:
        places = np.linspace(0, len(existing) - 1, MOST_LEVELS).round().astype(int)
        chosen = int(parameter.codes[centre])
        existing = sorted({existing[place] for place in places} | ({chosen} & set(existing)))
    return existing
