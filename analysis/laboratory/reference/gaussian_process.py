"""The predictions of scikit-learn's Gaussian process with the engine's kernel, fixed.

Writes JSON to stdout (``make -C analysis reference``) for the engine's test
``the_process_is_scikit_learns``.
The kernel is composed of scikit-learn's own kernels.
"""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

Matrix = NDArray[np.float64]
LEVELS = (5, 3)
"""Levels of the two ordered parameters."""
CATEGORIES = 3
"""Values of the third parameter."""
LENGTHS = (0.4, 1.6, 0.8)
ADDITIVE = 0.3
OWN = 0.01
NOISE = 0.03
JITTER = 1e-8
TREND = 1e6
"""The prior variance of the constant trend: as good as none."""

RUNS = {
    (0, 0, 0): (3.10, 4),
    (4, 2, 1): (2.25, 1),
    (2, 1, 2): (2.40, 2),
    (1, 2, 0): (2.95, 1),
    (3, 0, 1): (2.60, 1),
    (2, 2, 0): (2.71, 3),
    (4, 0, 2): (2.05, 1),
    (0, 1, 1): (3.42, 2),
}
"""Mean log elapsed and number of runs of each point that ran."""


class Columns(Kernel):  # type: ignore[misc]
    """A kernel of some columns."""

    def __init__(self, kernel: Kernel, first: int, last: int) -> None:
        """Give ``kernel`` the columns from ``first`` to before ``last``."""
        self.kernel, self.first, self.last = kernel, first, last

    def __call__(self, a: Matrix, b: Matrix | None = None) -> Matrix:
        """Return the kernel's matrix."""
        columns = slice(self.first, self.last)
        return self.kernel(a[:, columns], None if b is None else b[:, columns])

    def diag(self, a: Matrix) -> Matrix:
        """Return the matrix's diagonal."""
        return self.kernel.diag(a[:, self.first : self.last])

    def is_stationary(self) -> bool:
        """Return that it is."""
        return True


def features(point: tuple[int, ...]) -> list[float]:
    """Return ordered parameters as shares of their ranges, a category as a simplex corner."""
    ordered = [level / (levels - 1) for level, levels in zip(point, LEVELS, strict=False)]
    # Two corners are 1 apart.
    corners = [float(point[-1] == category) / np.sqrt(2) for category in range(CATEGORIES)]
    return ordered + corners


def kernel() -> Kernel:
    """Return the engine's kernel (surrogate/kernel.rs), of variance 1, and its trend."""
    parameters = [
        Columns(Matern(LENGTHS[0], "fixed", nu=2.5), 0, 1),
        Columns(Matern(LENGTHS[1], "fixed", nu=2.5), 1, 2),
        # nu = 1/2 is exp(-distance / length), the engine's factor for two different categories.
        Columns(Matern(LENGTHS[2], "fixed", nu=0.5), 2, 2 + CATEGORIES),
    ]

    def constant(value: float) -> Kernel:
        return ConstantKernel(value, "fixed")

    product = parameters[0] * parameters[1] * parameters[2]
    mean = constant(1 / 3) * (parameters[0] + parameters[1] + parameters[2])
    shared = constant(1 - ADDITIVE) * product + constant(ADDITIVE) * mean
    # A length scale this short correlates only a point with itself.
    own = Matern(1e-4, "fixed", nu=0.5)
    return constant(TREND) + constant(1 - OWN) * shared + constant(OWN) * own


def reference() -> dict[str, Any]:
    """Return hyperparameters, data and predictions at every point."""
    points = list(RUNS)
    noise = np.array([NOISE / runs + JITTER for _mean, runs in RUNS.values()])
    process = GaussianProcessRegressor(kernel(), alpha=noise, optimizer=None)
    process.fit(np.array([features(p) for p in points]), np.array([m for m, _ in RUNS.values()]))
    ranges = [range(levels) for levels in (*LEVELS, CATEGORIES)]
    everywhere = list(itertools.product(*ranges))
    means, deviations = process.predict(
        np.array([features(point) for point in everywhere]), return_std=True
    )
    return {
        "lengths": LENGTHS,
        "additive": ADDITIVE,
        "own": OWN,
        "noise": NOISE,
        "levels": LEVELS,
        "categories": CATEGORIES,
        "known": [{"point": p, "log_mean": m, "runs": n} for p, (m, n) in RUNS.items()],
        "predicted": [
            {"point": point, "mean": round(mean, 8), "variance": round(deviation**2, 8)}
            for point, mean, deviation in zip(everywhere, means, deviations, strict=True)
        ],
    }


def text(value: dict[str, Any]) -> str:
    """Return JSON, a line for each entry of a list of objects."""
    lines = []
    for name, entry in value.items():
        rows = entry if isinstance(entry, list) else None
        shown = json.dumps(entry)
        if rows is not None:
            shown = "[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "]"
        lines.append(f" {json.dumps(name)}: {shown}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.stdout.write(text(reference()))
