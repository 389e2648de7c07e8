"""Studies made up, many at once: log elapsed of control runs and of the tuned runs near them.

What is true is known here. Noise is log-normal with outliers; everything may drift; and the chosen
parametrization was the best of many that ran before, as it is in a site.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from io_autotune_report.analyse.estimators.ranks import Array

OUTLIER_SHARE = 1 / 16
OUTLIER_LEAST, OUTLIER_MOST = 1.3, 1.6


@dataclass(frozen=True)
class World:
    """What a simulation assumes of studies."""

    noise: float
    """Standard deviation of log elapsed, outliers apart."""
    outliers: bool = True
    drift: float = 0.0
    """By how much everything is slower at the end of ``runs`` than at the start."""
    control_noise: float | None = None
    """That of the default, if it differs."""


@dataclass(frozen=True)
class Blocks:
    """Studies on the first axis, blocks on the second, tuned runs on the third."""

    control: Array
    tuned: Array
    seconds: tuple[Array, Array]
    """Elapsed of control runs, and mean elapsed of each block's tuned runs."""


def draw(
    random: np.random.Generator,
    world: World,
    log_ratio: Array,
    blocks: int,
    tuned: int,
) -> Blocks:
    """So many blocks of one control run and ``tuned`` tuned runs for each of ``log_ratio``.

    ``log_ratio`` is the truth: the logarithm of the default's time over the chosen one's.
    """
    studies = log_ratio.size
    # A block's runs lie around its control run; drift goes on within it.
    place = np.arange(blocks * (tuned + 1)).reshape(blocks, tuned + 1)
    drift = np.log1p(world.drift * place / place.size)
    middle = tuned // 2
    others = np.delete(np.arange(tuned + 1), middle)
    noise = world.noise if world.control_noise is None else world.control_noise
    control = _logs(random, world, noise, (studies, blocks)) + drift[:, middle]
    control += log_ratio[:, None]
    runs = _logs(random, world, world.noise, (studies, blocks, tuned)) + drift[:, others]
    return Blocks(control, runs, (np.exp(control), np.exp(runs).mean(axis=-1)))


def best_of(random: np.random.Generator, world: World, log_ratios: Array, runs: int) -> Array:
    """The truth about what is chosen: of each row's parametrizations the one whose mean is lowest.

    This choice is made from ``runs`` runs each, and none of them is used afterwards.
    """
    shape = (*log_ratios.shape, runs)
    seen = np.exp(_logs(random, world, world.noise, shape) - log_ratios[..., None]).mean(axis=-1)
    return np.take_along_axis(log_ratios, seen.argmin(axis=1)[:, None], axis=1)[:, 0]


def _logs(random: np.random.Generator, world: World, noise: float, shape: tuple[int, ...]) -> Array:
    logs = noise * random.standard_normal(shape)
    if world.outliers:
        slow = random.random(shape) < OUTLIER_SHARE
        logs[slow] += np.log(random.uniform(OUTLIER_LEAST, OUTLIER_MOST, int(slow.sum())))
    return logs
