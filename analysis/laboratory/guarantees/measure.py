"""The figures of docs/measurements/report-guarantees.md, each from a simulation of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from io_autotune_report.analyse.estimators.effect import Effect, ratio_and_error
from io_autotune_report.analyse.estimators.gain import false_discovery
from io_autotune_report.analyse.estimators.sums import total
from io_autotune_report.document import Gain, Verdict

from guarantees.baselines import yuen_claims
from guarantees.study import look
from guarantees.worlds import Blocks, World, best_of, draw

RUNS = 700
EVERY = 10
BLOCKS = RUNS // EVERY
CANDIDATES, CANDIDATE_RUNS = 13, 3
_PORTION = 125


@dataclass(frozen=True)
class Rate:
    """A share of studies."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """As a fraction."""
        return self.hits / self.of

    def __add__(self, other: Rate) -> Rate:
        """Both together."""
        return Rate(self.hits + other.hits, self.of + other.of)


@dataclass(frozen=True)
class Null:
    """Of A/A studies, each looked at after every control run."""

    ever: Rate
    """Claimed at some look."""
    every_look: Rate
    """Yuen's test at 5 % at every look: what nightly looks do to an interval for one look."""
    lucky: Rate
    """Called faster by the very runs that the choice was made from, against the baseline."""


@dataclass(frozen=True)
class Coverage:
    """Of studies with effects between -25 and 50 %."""

    end: Rate
    """Intervals after the last run that hold the truth."""
    always: Rate
    """Studies of which every interval of their life did."""


def null(seed: int, studies: int, world: World) -> Null:
    """Best of 13 that all take what the default takes; then 700 runs."""
    random = np.random.default_rng(seed)
    truth = best_of(random, world, np.zeros((studies, CANDIDATES)), CANDIDATE_RUNS)
    blocks = draw(random, world, truth, BLOCKS, EVERY - 1)
    said = look(blocks, truth)
    looks = list(range(4, BLOCKS + 1))
    naive = yuen_claims(blocks, looks, [0.05] * len(looks))
    return Null(
        _rate((said.claimed != 0).any(axis=1)),
        _rate((naive != 0).any(axis=1)),
        _rate(_lucky(random, world, studies)),
    )


def coverage(seed: int, studies: int, world: World) -> Coverage:
    """The choice is made among 13 that differ, so that what is chosen differs too."""
    random = np.random.default_rng(seed)
    candidates = -np.log1p(-random.uniform(-0.25, 0.5, (studies, CANDIDATES)))
    truth = best_of(random, world, candidates, CANDIDATE_RUNS)
    said = look(draw(random, world, truth, BLOCKS, EVERY - 1), truth, claims=False)
    return Coverage(_rate(said.covered[:, -1]), _rate(said.covered.all(axis=1)))


def detectable(
    seed: int, studies: int, world: World, controls: list[int], tuned: int = EVERY - 1
) -> list[float | None]:
    """After so many control runs, the smallest gain of which 80 % are claimed at that look."""
    random = np.random.default_rng(seed)
    blocks = draw(random, world, np.zeros(studies), max(controls), tuned)
    shares = np.concatenate([np.arange(0.01, 0.3, 0.01), np.arange(0.3, 0.71, 0.05)])
    found: list[float | None] = [None] * len(controls)
    for share in shares:
        shift = -np.log1p(-share)
        slower = blocks.control + shift
        moved = Blocks(slower, blocks.tuned, (np.exp(slower), blocks.seconds[1]))
        waiting = [place for place, smallest in enumerate(found) if smallest is None]
        if not waiting:
            break
        said = look(moved, np.full(studies, shift), [controls[place] for place in waiting])
        shown = (said.claimed > 0).mean(axis=0)
        for place, probability in zip(waiting, shown, strict=True):
            if probability >= 0.8:
                found[place] = float(share)
    return found


def doubling(
    seed: int, studies: int, world: World, share: float
) -> tuple[list[float], list[float]]:
    """Power after 16 to 63 control runs: ours, and Yuen's test looked at after 4, 8, 16, 32, ...

    Its error rate is split over all doublings to come as ours is over comparisons: look ``j`` has
    ``1 / (j (j + 1))`` of it.
    """
    random = np.random.default_rng(seed)
    controls = [16, 24, 31, 32, 48, 63]
    truth = np.full(studies, -np.log1p(-share))
    blocks = draw(random, world, truth, max(controls), EVERY - 1)
    ours = (look(blocks, truth, controls).claimed > 0).mean(axis=0)
    # The first comparison of a study has half of the error rate.
    spent = {4 * 2**j: 0.025 / ((j + 1) * (j + 2)) for j in range(4)}
    yuens = yuen_claims(blocks, list(spent), list(spent.values())) > 0
    looked = [max(j for j, seen in enumerate(spent) if seen <= now) for now in controls]
    return list(ours), [float(yuens[:, place].mean()) for place in looked]


def discoveries(seed: int, studies: int, world: World, nulls: float) -> tuple[float, float, int]:
    """The share of false ones among a site's claims, that of effects found, how many were claimed.

    Effects are between 5 and 50 %, half of them losses; sites have studies of all ages.
    """
    random = np.random.default_rng(seed)
    without = random.random(studies) < nulls
    gains = random.uniform(0.05, 0.5, studies) * random.choice([1, -1], studies)
    truth = np.where(without, 0.0, -np.log1p(-gains))
    said = look(draw(random, world, truth, BLOCKS, EVERY - 1), truth)
    age = random.integers(0, BLOCKS, studies)
    rows = np.arange(studies)
    claims = [
        _claim(int(said.claimed[row, age[row]]), float(said.evidence[row, age[row]]))
        for row in rows
    ]
    held = np.array([kept.verdict != "not_yet" for kept in false_discovery(claims)])
    false = float((held & without).sum() / max(held.sum(), 1))
    return false, float((held & ~without).sum() / (~without).sum()), int(held.sum())


@dataclass(frozen=True)
class Totals:
    """Of sites, each looked at in twelve nights of its life."""

    end: Rate
    """Intervals of the site's total in the last night that hold the truth."""
    always: Rate
    """Sites of which every night's did."""
    false: Rate
    """Sites claimed to gain or lose in some night, none of whose studies does."""


def totals(seed: int, sites: int, world: World, studies: int = 20) -> Totals:
    """Sites with so many studies of all sizes and ages; every other site is without effects."""
    random = np.random.default_rng(seed)
    null_site = np.arange(sites) % 2 == 0
    truth = random.choice([0.0, 0.0, 0.02, 0.05, 0.2], (sites, studies)) - 0.01
    truth[null_site] = 0.0
    blocks = draw(random, world, truth.ravel(), BLOCKS, EVERY - 1)
    born = random.integers(0, BLOCKS - 4, truth.size)
    born[::studies] = 0
    weights = np.exp(random.standard_normal(truth.size))
    covered, claimed = [], []
    for night in np.unique(np.geomspace(4, BLOCKS, 12).astype(int)):
        seen = np.clip(night - born, 0, None)
        said = _site_totals(_first(blocks, seen), seen, weights, truth.shape)
        true = 1 - _weighted(np.exp(-truth), (weights * seen).reshape(truth.shape))
        covered.append([s.low <= t <= s.high for s, t in zip(said, true, strict=True)])
        claimed.append([not s.low <= 0 <= s.high for s in said])
    hits, shown = np.array(covered), np.array(claimed)
    return Totals(_rate(hits[-1]), _rate(hits.all(axis=0)), _rate(shown.any(axis=0)[null_site]))


def _first(blocks: Blocks, seen: np.ndarray) -> Blocks:
    there = np.arange(blocks.control.shape[1]) < seen[:, None]
    return replace(blocks, tuned=np.where(there[..., None], blocks.tuned, np.nan))


def _weighted(ratios: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.sum(ratios * weights, axis=1) / np.sum(weights, axis=1)


def _site_totals(
    blocks: Blocks, seen: np.ndarray, weights: np.ndarray, shape: tuple[int, ...]
) -> list[Gain]:
    each = blocks.tuned.shape[2]
    count = np.where(np.arange(blocks.control.shape[1]) < seen[:, None], each, 0)
    ratios, errors = ratio_and_error(blocks.control, blocks.tuned, count)
    effects = [
        _effect(int(seen[study]), each, float(ratios[study]), float(errors[study]), weights[study])
        for study in range(seen.size)
    ]
    said = []
    for site in range(shape[0]):
        mine = effects[site * shape[1] : (site + 1) * shape[1]]
        said.append(total([e for e in mine if np.isfinite(e.standard_error)]))
    return said


def _effect(blocks: int, each: int, ratio: float, error: float, weight: float) -> Effect:
    return Effect(
        epoch=1,
        key="",
        number=1,
        blocks=blocks,
        tuned_runs=blocks * each,
        log_ratio=ratio,
        low=-np.inf,
        high=np.inf,
        standard_error=error,
        log_evidence=0.0,
        detectable=None,
        blocks_needed=None,
        default_hours=weight * blocks,
        saved=ratio,
        controls=0.0,
        net_variance=None,
        a_month=None,
        last="",
    )


def portions(
    pool: ProcessPoolExecutor | None,
    measure: Callable[[int, int, World], Null | Coverage | Totals],
    seed: int,
    studies: int,
    world: World,
) -> dict[str, Rate]:
    """The rates of a measurement over so many studies, portion by portion."""
    sizes = [min(_PORTION, studies - at) for at in range(0, studies, _PORTION)]
    seeds = [seed + 7919 * place for place in range(len(sizes))]
    run = map if pool is None else pool.map
    total: dict[str, Rate] = {}
    for part in run(measure, seeds, sizes, [world] * len(sizes)):
        for name, rate in vars(part).items():
            total[name] = total[name] + rate if name in total else rate
    return total


def _lucky(random: np.random.Generator, world: World, studies: int) -> np.ndarray:
    """The mean of the best of 13 x 3 runs is 8 % below the mean of four baseline runs, or more."""
    baseline = draw(random, world, np.zeros(studies), 4, 1).control
    children = draw(random, world, np.zeros(studies), CANDIDATES * CANDIDATE_RUNS, 1).control
    means = np.exp(children).reshape(studies, CANDIDATES, CANDIDATE_RUNS).mean(axis=2).min(axis=1)
    return means < 0.92 * np.exp(baseline).mean(axis=1)


def _claim(sign: int, evidence: float) -> Gain:
    verdicts: dict[int, Verdict] = {1: "faster", -1: "slower", 0: "not_yet"}
    gain = Gain("not_yet", "", 0.0, 0.0, 0.0, 0.975, 1, 1, None, None, evidence)
    return replace(gain, verdict=verdicts[sign])


def _rate(flags: np.ndarray) -> Rate:
    return Rate(int(flags.sum()), int(flags.size))
