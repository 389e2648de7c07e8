"""Print what tuning inside a job gains on real kernels: the end of docs/measurements/online.md.

Each block runs one trial under every policy, in a random order, beside the default; ratios are of
the same block. The agent is the one that jobs get, with the same file formats and confinement.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from online import paths
from online.bench import (
    DEFAULT,
    POLICIES,
    PUBLISHED,
    STATIC,
    Bench,
    Ran,
    Trial,
    Values,
)
from online.paths import Work

T_95 = {
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
    10: 2.228,
    11: 2.201,
    12: 2.179,
    13: 2.160,
    14: 2.145,
    15: 2.131,
}
"""Student's quantile of 97.5 %, by degrees of freedom."""


INTRODUCTION = """
## Real kernels

The agent that jobs get (`io-autotune-node agent`) moves levers of Linux {release}, {processors}
processors, while fio runs each work for {seconds:g} s; it decides each {period} ms instead of each
10 s.

- {blocks} blocks; in each the default and all policies once, in a random order.
- *Works in turn* is the paper's dynamic test: all the works one after the other, in another order
  in each block, with one agent; below it each work in its turn. *Five clients* is its table 2: a
  work each, on what is slow for all of them; each has levers and an agent of its own.
- *Default*: its mean bandwidth, MB/s. *Of the default's*: of the same block, the geometric mean
  over blocks, in brackets 95 %. Where that holds 1.00, nothing is shown. *Of IOPathTune's*: of
  `iopathtune-each`'s.
- *Best static*: the levers in the text's order, the best of some settings in one run each before;
  of works in turn, and of five clients, one setting for all.
  *Settling from the best* begins there, as a job does whose study has found it.
- An agent was ready after {coming:.1f} ms (median of {agents}; at most {longest:.1f} ms), for which
  a prolog waits. It had at most {memory:.1f} MiB, and used {processor:.2f} ms of a processor for
  its start and all its turns.
- Others use this machine too: the load was {began:.1f} at the beginning and {ended:.1f} at the end
  (nice {nice}).
"""
TABLE = """
### {title}

{text}

| work | default | policy | of the default's | of IOPathTune's | moves a run |
| --- | ---: | --- | ---: | ---: | ---: |"""
TOGETHER = """
Five clients of this path, MB/s of each:

| policy | {works} | all |
| --- | {lines} ---: |"""


@dataclass(frozen=True)
class Found:
    """What a trial's blocks brought, by policy."""

    trial: Trial
    best: Values
    ran: dict[str, list[Ran]]

    def logs(self, policy: str, other: str, work: Work | None = None) -> list[float]:
        """Return logarithms of a policy's bandwidths against another's, of the same blocks.

        Of works in turn, `work` is one of them.
        """

        def moved(ran: Ran) -> float:
            return ran.bandwidth if work is None else ran.of(work)

        pairs = zip(self.ran[policy], self.ran[other], strict=True)
        return [math.log(moved(one) / moved(beside)) for one, beside in pairs]

    def rows(self) -> Iterator[str]:
        """Yield its rows, and of works in turn each one's."""
        default = statistics.fmean(ran.bandwidth for ran in self.ran[DEFAULT]) / 1e6
        for policy in POLICIES:
            shown = ", ".join(map(str, self.best))
            name = f"{STATIC} {shown}" if policy == STATIC else policy
            moves = statistics.fmean(ran.moves for ran in self.ran[policy])
            yield (
                f"| **{self.trial.name}** | {default:.0f} | {name} |"
                f" {ratio(self.logs(policy, DEFAULT))} | {ratio(self.logs(policy, PUBLISHED))} |"
                f" {moves:.0f} |"
            )
        if len(self.trial.phases) == 1:
            return
        for (work,) in sorted(self.trial.phases, key=lambda works: works[0].name):
            default = statistics.fmean(ran.of(work) for ran in self.ran[DEFAULT]) / 1e6
            for policy in POLICIES:
                against = [self.logs(policy, other, work) for other in (DEFAULT, PUBLISHED)]
                cells = " | ".join(map(ratio, against))
                yield f"| in turn: {work.name} | {default:.0f} | {policy} | {cells} | |"

    def clients(self) -> Iterator[str]:
        """Yield a table of each client's bandwidth."""
        (works,) = self.trial.phases
        names = " | ".join(work.name for work in works)
        yield TOGETHER.format(works=names, lines=" ".join("---: |" for _ in works))
        for policy in (DEFAULT, *POLICIES):
            each = zip(*(ran.clients for ran in self.ran[policy]), strict=True)
            means = [statistics.fmean(one) / 1e6 for one in each]
            cells = " | ".join(f"{mean:.0f}" for mean in (*means, sum(means)))
            yield f"| {policy} | {cells} |"


class Runner:
    """Finds best static settings, and runs trials in blocks."""

    def __init__(self, bench: Bench, blocks: int, dice: random.Random) -> None:
        """Measure with a bench; the dice decide the order."""
        self._bench = bench
        self._blocks = blocks
        self._dice = dice

    def tried(self, trial: Trial) -> dict[Values, float]:
        """Return the bandwidth of each static setting."""
        # It lays out its files.
        self._bench.run_at(trial, self._bench.path.default)
        statics = list(itertools.product(*(lever.statics for lever in self._bench.path.levers)))
        order = self._dice.sample(statics, len(statics))
        return {values: self._bench.run_at(trial, values).bandwidth for values in order}

    def found(self, best: Values, trials: Sequence[Trial]) -> Found:
        """Run blocks: a trial each under every policy."""
        ran: dict[str, list[Ran]] = {policy: [] for policy in (DEFAULT, *POLICIES)}
        for trial in trials:
            for policy in self._dice.sample(tuple(ran), len(ran)):
                ran[policy].append(self._bench.run(trial, policy, best))
        return Found(trials[-1], best, ran)

    def all(self, kinds: Sequence[str]) -> Iterator[Found]:
        """Run each work alone, all in turn, and a work of each client at once."""
        path = self._bench.path
        sums: dict[Values, float] = {}
        for work in path.works if {"alone", "in-turn"} & set(kinds) else ():
            alone = Trial(work.name, ((work,),))
            tried = self.tried(alone)
            for values, bandwidth in tried.items():
                sums[values] = sums.get(values, 0.0) + bandwidth
            if "alone" in kinds:
                yield self.found(_best(tried), [alone] * self._blocks)
        if "in-turn" in kinds:
            # In another order in each block.
            orders = [self._dice.sample(path.works, len(path.works)) for _ in range(self._blocks)]
            yield self.found(
                _best(sums),
                [Trial("works in turn", tuple((work,) for work in works)) for works in orders],
            )
        if "together" in kinds:
            together = Trial("five clients", (path.together,))
            yield self.found(_best(self.tried(together)), [together] * self._blocks)


def _best(tried: dict[Values, float]) -> Values:
    return max(tried, key=lambda values: tried[values])


def ratio(logs: list[float]) -> str:
    """Return a geometric mean with its interval."""
    mean = statistics.fmean(logs)
    error = T_95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(mean - error), math.exp(mean + error)
    return f"{math.exp(mean):.2f} ({low:.2f}..{high:.2f})"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="online", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the image is made")
    parser.add_argument("--node", type=Path, required=True, help="the node helper")
    parser.add_argument("--buffer", type=Path, required=True, help="the burst buffer's program")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each work")
    parser.add_argument("--period-ms", type=int, default=150, help="of the agent")
    parser.add_argument("--blocks", type=int, default=3, help="repetitions of each work: 3 to 16")
    parser.add_argument("--seed", type=int, default=2026, help="of the runs' order")
    parser.add_argument("--only", choices=("loop", "fuse"), action="append", help="this path")
    kinds = ("alone", "in-turn", "together")
    parser.add_argument("--trials", choices=kinds, action="append", help="these")
    arguments = parser.parse_args()
    arguments.root.mkdir(parents=True, exist_ok=True)
    began = os.getloadavg()[0]
    dice = random.Random(arguments.seed)
    tables: list[str] = []
    made = {
        "loop": paths.loop_devices(arguments.root),
        "fuse": paths.burst_buffer(arguments.root, arguments.buffer),
    }
    costs = []
    for name in arguments.only or made:
        with made[name] as path:
            bench = Bench(path, arguments.node, arguments.seconds, arguments.period_ms)
            found = list(Runner(bench, arguments.blocks, dice).all(arguments.trials or kinds))
            costs += bench.costs
        tables.append(TABLE.format(title=path.title, text=path.text))
        tables += itertools.chain.from_iterable(one.rows() for one in found)
        for one in found:
            if len(one.trial.phases[0]) > 1:
                tables += one.clients()
    comings = [1e3 * cost.coming for cost in costs]
    processors = [1e3 * cost.processor for cost in costs]
    print(
        INTRODUCTION.format(
            agents=len(comings),
            coming=statistics.median(comings),
            longest=max(comings),
            memory=max(cost.memory for cost in costs) / 1024,
            processor=statistics.median(processors),
            release=os.uname().release.split("-")[0],
            processors=os.cpu_count(),
            seconds=arguments.seconds,
            period=arguments.period_ms,
            blocks=arguments.blocks,
            began=began,
            ended=os.getloadavg()[0],
            nice=os.nice(0),
        )
    )
    print("\n".join(tables))


if __name__ == "__main__":
    main()
