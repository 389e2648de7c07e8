"""A Gaussian process over two important parameters, the others as chosen."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from io_autotune_report.analyse.understanding.tested_parametrizations import (
    ABSENT,
    Array,
    Parameter,
    Tested,
    features,
    gather,
)
from io_autotune_report.document import Importance, Surface
from io_autotune_report.frames import CHOSEN_ROLES, Runs, words

MOST_PAIRS = 3
MOST_LEVELS = 12
MOST_POINTS = 96
_NOISE = 0.1
"""Of log elapsed, where no parametrization ran twice."""
_HALF_LOG_TAU = float(np.log(2 * np.pi)) / 2


def surfaces(runs: Runs, importance: Importance, known: Tested | None = None) -> list[Surface]:
    """A surface for each pair of the most important parameters."""
    known = known or gather(runs)
    pairs = _pairs(known, importance)
    if not pairs:
        return []
    centre = _centre(runs, known)
    model = _Model(known)
    return [_surface(known, model, centre, *pair) for pair in pairs]


def _pairs(known: Tested, importance: Importance) -> list[tuple[int, int]]:
    """Interactions, then pairs of the largest shares."""
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


def _centre(runs: Runs, known: Tested) -> int:
    """What was chosen last, else the quickest on average."""
    place = {key: at for at, key in enumerate(known.keys)}
    chosen = np.isin(words(runs, "role"), CHOSEN_ROLES)
    for key in reversed(words(runs, "key")[chosen]):
        if key in place:
            return place[key]
    return int(np.argmin(known.logs))


class _Model:
    """Fitted to what ran most, then to the quickest."""

    def __init__(self, known: Tested) -> None:
        self.noise = known.noise if known.noise else _NOISE
        order = np.lexsort((known.logs, -known.weights))[:MOST_POINTS]
        self.mean = float(np.mean(known.logs[order]))
        x = rows(known, np.stack([p.codes for p in known.parameters], axis=1)[order])
        self.process = Process(x, known.logs[order] - self.mean, self.noise**2 / known.runs[order])

    def expect(self, x: Array) -> tuple[Array, Array]:
        """Expected elapsed, and one standard deviation of its logarithm."""
        mean, deviation = self.process.predict(x)
        return np.exp(mean + self.mean + self.noise**2 / 2), deviation


class Process:
    """A Gaussian process: Matern 5/2, a length per column, white noise, the likeliest of each.

    scikit-learn's, which a test compares, takes ten times as long on so few points.
    """

    def __init__(self, x: Array, y: Array, alpha: Array) -> None:
        """``alpha``: the points' known variances; ``y`` has mean 0."""
        self._x, self._y, self._alpha = x, y, alpha
        self._squares = ((x[:, None, :] - x[None, :, :]) ** 2).reshape(-1, x.shape[1])
        spread = max(float(np.var(y)), 1e-6)
        lengths = x.shape[1]
        start = np.log([spread, *[0.7] * lengths, spread / 100])
        bounds = [(spread / 30, spread * 30), *[(0.1, 30.0)] * lengths, (spread * 1e-5, spread)]
        self._theta = minimize(
            self._loss, start, jac=True, method="L-BFGS-B", bounds=np.log(bounds)
        ).x
        scale, inverse, white = self._values(self._theta)
        covariance = scale * _matern(self._squares @ inverse)[0].reshape(y.size, -1)
        self._factor = cholesky(covariance + np.diag(alpha + white), lower=True)
        self._weights = cho_solve((self._factor, True), y)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean, and standard deviation of a measurement, at each row."""
        scale, inverse, white = self._values(self._theta)
        squares = (x[:, None, :] - self._x[None, :, :]) ** 2 @ inverse
        near = scale * _matern(squares)[0]
        left = scale + white - np.sum(solve_triangular(self._factor, near.T, lower=True) ** 2, 0)
        return near @ self._weights, np.sqrt(np.maximum(left, 0.0))

    @staticmethod
    def _values(theta: Array) -> tuple[float, Array, float]:
        """Variance, inverse squares of the lengths, noise."""
        values = np.exp(theta)
        return float(values[0]), values[1:-1] ** -2, float(values[-1])

    def _loss(self, theta: Array) -> tuple[float, Array]:
        """Minus the log likelihood, and its gradient."""
        scale, inverse, white = self._values(theta)
        kernel, slope = _matern(self._squares @ inverse)
        count = self._y.size
        covariance = scale * kernel.reshape(count, count) + np.diag(self._alpha + white)
        factor = cholesky(covariance, lower=True, check_finite=False)
        weights = cho_solve((factor, True), self._y, check_finite=False)
        loss = self._y @ weights / 2 + np.log(np.diag(factor)).sum() + count * _HALF_LOG_TAU
        change = np.outer(weights, weights)
        change -= cho_solve((factor, True), np.eye(count), check_finite=False)
        flat = scale * change.ravel()
        lengths = (flat * slope) @ self._squares * inverse
        return loss, -np.array([flat @ kernel, *lengths, white * np.trace(change)]) / 2


def _matern(squares: Array) -> tuple[Array, Array]:
    """The kernel, and its slope by a length's logarithm over that length's square."""
    root = np.sqrt(5 * squares)
    fall = np.exp(-root)
    return (1 + root + root**2 / 3) * fall, 5 / 3 * (1 + root) * fall


def rows(known: Tested, codes: np.ndarray) -> Array:
    """The features of rows of level places."""
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
    """Existing levels; of many some, evenly, and the chosen one."""
    existing = [code for code, level in enumerate(parameter.levels) if level is not ABSENT]
    if len(existing) > MOST_LEVELS:
        places = np.linspace(0, len(existing) - 1, MOST_LEVELS).round().astype(int)
        chosen = int(parameter.codes[centre])
        existing = sorted({existing[place] for place in places} | ({chosen} & set(existing)))
    return existing
