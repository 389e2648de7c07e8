"""What the parameters explain of log elapsed, three ways that fail in different places.

Each parametrization is one observation: its mean.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from io_autotune_report.analyse.understanding.tested_parametrizations import (
    Array,
    Parameter,
    Tested,
    features,
    gather,
)
from io_autotune_report.document import Importance
from io_autotune_report.frames import Runs

if TYPE_CHECKING:
    from sklearn.tree._tree import Tree

LEAST = 10
"""Parametrizations; fewer say nothing."""

SIGNIFICANT_R2 = 0.6
"""Cao et al. 2018, section 4.4: no parameter is named below it."""

LEAST_SKILL = 0.3
"""The forest is silent below it."""

MOST = 500
"""Parametrizations that are looked at: the latest."""

_FOLDS, _TREES, _SHUFFLES = 5, 10, 4
_FEATURES, _LEAST_IN_LEAF = 0.7, 2
_LEVEL = 0.05
_LEAST_IN_GROUP = 4
_RANDOM = np.random.RandomState(0)
"""Seeded for each tree: making one takes longer than a tree."""

Share = Importance.Share


def importance(runs: Runs, known: Tested | None = None) -> Importance:
    """Of one epoch's runs, ``known`` if they are gathered."""
    known = known or gather(runs)
    count = len(known.keys)
    if count < LEAST:
        return Importance(silent=f"{count} parametrizations ran; it takes {LEAST}.")
    if not known.parameters or float(np.ptp(known.logs)) <= 0:
        return Importance(silent="All parametrizations that ran take the same.")
    r2, anova = r_squared(known), variance_shares(known)
    skill, forest = forest_shares(known)
    if not (r2 or anova or forest):
        return Importance(
            silent=f"{count} parametrizations ran, and no parameter explains their times.",
            forest_skill=skill,
        )
    return Importance(silent=None, r2=r2, anova=anova, forest=forest, forest_skill=skill)


def r_squared(known: Tested) -> list[Share]:
    """Cao et al. 2018, table 5: the first and the second parameter whose adjusted R2 is over 0.6.

    The first is fixed at each level for the second; a level needs four observations.
    """
    everything = np.ones(known.logs.size, dtype=bool)
    first = _best(known, list(known.parameters), [everything])
    if first is None:
        return []
    name, share = first
    others = [parameter for parameter in known.parameters if parameter.name != name]
    fixed = next(parameter for parameter in known.parameters if parameter.name == name)
    second = _best(known, others, [fixed.codes == code for code in range(len(fixed.levels))])
    shares = [Share([name], share)]
    return shares if second is None else [*shares, Share([second[0]], second[1])]


def _best(
    known: Tested, parameters: list[Parameter], groups: list[NDArray[np.bool_]]
) -> tuple[str, float] | None:
    found = [
        (max(_adjusted(known.logs[group], each.codes[group]) for group in groups), each.name)
        for each in parameters
    ]
    if not found or max(found)[0] <= SIGNIFICANT_R2:
        return None
    share, name = max(found)
    return name, share


def _adjusted(logs: Array, codes: NDArray[np.int64]) -> float:
    levels, place = np.unique(codes, return_inverse=True)
    freedom = logs.size - levels.size
    total = float(np.sum((logs - logs.mean()) ** 2)) if logs.size else 0.0
    if logs.size < _LEAST_IN_GROUP or freedom < 1 or levels.size == 1 or total <= 0:
        return 0.0
    means = np.bincount(place, weights=logs) / np.bincount(place)
    left = float(np.sum((logs - means[place]) ** 2))
    return 1 - (left / freedom) / (total / (logs.size - 1))


def variance_shares(known: Tested) -> list[Share]:
    """Analysis of variance, type II, with interactions of two.

    Numbers have a line and a parabola, others one-hot columns. Interactions of the strongest enter
    while half of the observations are left for noise. An F-test at 5 %, after Bonferroni, names a
    term.
    """
    weights = np.sqrt(known.weights)
    y = (known.logs - np.average(known.logs, weights=known.weights)) * weights
    mains: dict[tuple[str, ...], Array] = {
        (each.name,): _columns(each) for each in known.parameters
    }
    base = _left(y, weights, list(mains.values()))
    drop = {
        term: _left(y, weights, [c for other, c in mains.items() if other != term])[0] - base[0]
        for term in mains
    }
    strongest = sorted(mains, key=lambda term: -drop[term])
    terms, freedom = dict(mains), base[1]
    for one, other in combinations(strongest, 2):
        product = (mains[one][:, :, None] * mains[other][:, None, :]).reshape(y.size, -1)
        if y.size - freedom - product.shape[1] >= y.size / 2:
            terms[one + other] = product
            freedom += product.shape[1]
    left, used = _left(y, weights, list(terms.values()))
    rest = y.size - used
    total = float(np.sum(y**2))
    if rest < 1 or total <= 0:
        return []
    shares = []
    for term, columns in terms.items():
        if len(term) == 1:
            squares, size = drop[term], _rank(columns)
        else:
            others = _left(y, weights, [c for other, c in terms.items() if other != term])
            squares, size = others[0] - left, max(used - others[1], 1)
        ratio = (squares / size) / max(left / rest, 1e-12 * total)
        if fdtrc(size, rest, ratio) < _LEVEL / len(terms):
            shares.append(Share(list(term), min(max(squares / total, 0.0), 1.0)))
    return sorted(shares, key=lambda share: -share.share)


def _columns(parameter: Parameter) -> Array:
    """Centred, so that products are not their factors over again."""
    present = parameter.scale[parameter.codes]
    if parameter.is_curve:
        exists = present >= 0
        line = np.where(exists, present - present[exists].mean(), 0.0)
        columns = [line, np.where(exists, line**2 - np.mean(line[exists] ** 2), 0.0)]
        if not exists.all():
            columns.append(exists - exists.mean())
        return np.stack(columns, axis=1)
    one_hot = np.eye(len(parameter.levels))[parameter.codes][:, 1:]
    return one_hot - one_hot.mean(axis=0)


def _left(y: Array, weights: Array, columns: list[Array]) -> tuple[float, int]:
    """Residual sum of squares, and number of coefficients."""
    design = np.concatenate([np.ones((y.size, 1)), *columns], axis=1) * weights[:, None]
    basis, singular, _ = np.linalg.svd(design, full_matrices=False)
    basis = basis[:, singular > singular[0] * 1e-9]
    return float(np.sum(y**2) - np.sum((basis.T @ y) ** 2)), basis.shape[1]


def _rank(columns: Array) -> int:
    return max(int(np.linalg.matrix_rank(columns)), 1)


def forest_shares(known: Tested) -> tuple[float | None, list[Share]]:
    """A random forest's R2 over five folds, and its loss when a parameter is shuffled.

    Shuffling a parameter that adds ``v`` to the variance costs ``2 v``: half the loss is its share.
    The interval is two standard errors between folds.
    """
    parameters = known.parameters
    blocks = [features(each, each.codes) for each in parameters]
    edges = np.cumsum([0, *(block.shape[1] for block in blocks)])
    x, y, weights = np.concatenate(blocks, axis=1), known.logs, known.weights
    x = x.astype(np.float32)  # what trees compare
    latest = slice(max(0, y.size - MOST), None)
    x, y, weights = x[latest], y[latest], weights[latest]
    random = np.random.default_rng(0)
    fold = random.permutation(np.arange(y.size) % _FOLDS)
    spread = float(np.average((y - np.average(y, weights=weights)) ** 2, weights=weights))
    errors, losses = 0.0, np.zeros((_FOLDS, len(parameters)))
    for number in range(_FOLDS):
        held = fold == number
        copies = [x[held]]
        for start, stop in pairwise(edges):
            for _ in range(_SHUFFLES):
                copy = x[held].copy()
                copy[:, start:stop] = copy[random.permutation(copy.shape[0]), start:stop]
                copies.append(copy)
        asked = np.concatenate(copies)
        predicted = _forest(random, x[~held], y[~held], weights[~held], asked)
        predicted = predicted.reshape(len(copies), -1)
        wrong = np.average((predicted - y[held]) ** 2, axis=1, weights=weights[held])
        errors += float(wrong[0] * weights[held].sum())
        shuffled = wrong[1:].reshape(len(parameters), _SHUFFLES).mean(axis=1)
        losses[number] = (shuffled - wrong[0]) / 2 / spread
    skill = 1 - errors / float(weights.sum()) / spread
    if skill < LEAST_SKILL:
        return skill, []
    means = losses.mean(axis=0)
    reach = 2 * losses.std(axis=0, ddof=1) / np.sqrt(_FOLDS)
    shares = [
        Share([each.name], min(float(mean), 1.0), max(float(mean - half), 0.0), float(mean + half))
        for each, mean, half in zip(parameters, means, reach, strict=True)
        if mean - half > 0
    ]
    return skill, sorted(shares, key=lambda share: -share.share)


def _forest(
    random: np.random.Generator, x: NDArray[np.float32], y: Array, weights: Array, asked: Array
) -> Array:
    """What a random forest predicts for ``asked``, on average over its trees.

    scikit-learn's estimators spend ten times as long on checks as on so few observations: here are
    the parts of its trees, and a test compares them.
    """
    said = np.zeros(asked.shape[0])
    for _ in range(_TREES):
        drawn = np.bincount(random.integers(0, y.size, y.size), minlength=y.size)
        there = drawn > 0
        grown = tree(x[there], y[there], (drawn * weights)[there], int(random.integers(2**31)))
        said += grown.predict(asked)[:, 0]
    return said / _TREES


def tree(x: NDArray[np.float32], y: Array, weights: Array, seed: int) -> Tree:
    """A tree whose splits look at seven tenths of the columns."""
    from sklearn.tree._criterion import MSE
    from sklearn.tree._splitter import BestSplitter
    from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

    columns = x.shape[1]
    grown = Tree(columns, np.ones(1, dtype=np.intp), 1)
    looked_at = max(1, int(_FEATURES * columns))
    _RANDOM.seed(seed)
    splitter = BestSplitter(MSE(1, y.size), looked_at, _LEAST_IN_LEAF, 0.0, _RANDOM, None)
    deepest = np.iinfo(np.int32).max
    builder = DepthFirstTreeBuilder(splitter, 2 * _LEAST_IN_LEAF, _LEAST_IN_LEAF, 0.0, deepest, 0.0)
    builder.build(grown, np.asfortranarray(x), y[:, None], weights, None)
    return grown
