"""Print what tuning inside a job gains on real kernels: the end of docs/measurements/online.md.

Each block runs one work under every policy, in a random order, beside the default; ratios are of
the same block. The agent is the one that jobs get, with the same file formats and confinement.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from online import paths
from online.paths import IoPath, Work

POLICIES = ("best static", "iopathtune", "iopathtune-each", "settling", "settling from the best")
T_95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201}
"""Student's quantile of 97.5 %, by degrees of freedom."""


INTRODUCTION = """
## Real kernels

The agent that jobs get (`io-autotune-node agent`) moves levers of Linux {release}, {processors}
processors, while fio runs for {seconds:g} s; it decides each {period} ms instead of each 10 s.

- Each work: {blocks} blocks; in each the default and all policies once, in a random order.
- *Default*: its mean bandwidth, MB/s. *Of the default's*: of the same block, the geometric mean
  over blocks, in brackets 95 %. Where that holds 1.00, nothing is shown.
- *Best static*: the levers in the text's order, the best of some settings in one run each before.
  *Settling from the best* begins there, as a job does whose study has found it.
- An agent was ready after {coming:.1f} ms (median of {agents}; at most {longest:.1f} ms), for which
  a prolog waits. It had at most {memory:.1f} MiB, and used {processor:.2f} ms of a processor for
  its start and all its turns.
- Others use this machine too, and this ran at nice 19: the load was {began:.1f} at the beginning
  and {ended:.1f} at the end.
"""
TABLE = """
### {title}

{text}

| work | default | policy | of the default's | moves a run |
| --- | ---: | --- | ---: | ---: |"""


@dataclass(frozen=True)
class Cost:
    """What one agent cost."""

    coming: float
    """Seconds until it was ready: what a prolog waits."""
    processor: float
    """Seconds of a processor, all in all."""
    memory: int
    """Its most, KiB."""


class Bench:
    """A path, and how long each run takes."""

    def __init__(self, path: IoPath, node: Path, seconds: float, period_ms: int) -> None:
        """Measure on a path with the agent of this helper."""
        self._path = path
        self._node = node
        self._seconds = seconds
        self._period_ms = period_ms
        self.costs: list[Cost] = []

    def set(self, values: tuple[int, ...]) -> None:
        """Set the levers."""
        for lever, value in zip(self._path.levers, values, strict=True):
            lever.file.write_text(str(value), encoding="ascii")

    def bandwidth(self, work: Work) -> float:
        """Run a work, and return what it moved, bytes a second."""
        argv = [
            *("fio", "--name=work", f"--directory={self._path.mount}", *self._path.fio),
            *("--time_based", f"--runtime={self._seconds}"),
            *("--group_reporting", "--output-format=json"),
        ]
        done = subprocess.run([*argv, *work.fio], check=True, capture_output=True, text=True)
        (job,) = json.loads(done.stdout)["jobs"]
        return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"])

    @contextmanager
    def agent(self, policy: str, began: tuple[int, ...], journal: Path) -> Iterator[None]:
        """Let an agent move the levers, as it does for a job."""
        order = {
            "policy": policy,
            "period_ms": self._period_ms,
            "levers": [
                {
                    "name": lever.file.name,
                    "least": lever.least,
                    "most": lever.most,
                    "began": value,
                    "files": [os.path.realpath(lever.file)],
                    "kept": [],
                }
                for lever, value in zip(self._path.levers, began, strict=True)
            ],
            "sources": self._path.sources,
            "journal": str(journal),
            "group": None,
        }
        pipe = subprocess.PIPE
        asked = time.monotonic()
        agent = subprocess.Popen([self._node, "agent"], stdin=pipe, stdout=pipe, text=True)
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(order) + "\n")
        agent.stdin.flush()
        said = agent.stdout.readline()
        if said != "ready\n":
            raise RuntimeError(f"the agent has not come up: {said}")
        coming = time.monotonic() - asked
        agent.stdin.write("go\n")
        agent.stdin.flush()
        try:
            yield
        finally:
            own = Path("/proc") / str(agent.pid)
            memory = (
                own.joinpath("status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]
            )
            processor = own.joinpath("schedstat").read_text(encoding="ascii").split()[0]
            self.costs.append(Cost(coming, int(processor) / 1e9, int(memory)))
            agent.terminate()
            agent.wait()
            agent.stdin.close()
            agent.stdout.close()

    def tuned(self, work: Work, policy: str, best: tuple[int, ...]) -> tuple[float, int]:
        """Run a work under a policy; return its bandwidth, and how often a lever moved."""
        if policy == "best static":
            self.set(best)
            return self.bandwidth(work), 0
        name = policy.removesuffix(" from the best")
        began = self._path.default if name == policy else best
        self.set(began)
        with tempfile.TemporaryDirectory() as directory:
            journal = Path(directory) / "journal"
            with self.agent(name, began, journal):
                bandwidth = self.bandwidth(work)
            _, *entries = journal.read_text(encoding="utf-8").splitlines()
            return bandwidth, sum(json.loads(entry)["moves"] for entry in entries)


def ratio(logs: list[float]) -> str:
    """Return a geometric mean with its interval."""
    mean = statistics.fmean(logs)
    error = T_95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(mean - error), math.exp(mean + error)
    return f"{math.exp(mean):.2f} ({low:.2f}..{high:.2f})"


def rows(bench: Bench, path: IoPath, work: Work, blocks: int, dice: random.Random) -> Iterator[str]:
    """Measure one work, and yield its rows."""
    bench.set(path.default)
    bench.bandwidth(work)  # It lays out its files.
    tried = {}
    statics = list(itertools.product(*(lever.statics for lever in path.levers)))
    for values in dice.sample(statics, len(statics)):
        bench.set(values)
        tried[values] = bench.bandwidth(work)
    best = max(tried, key=lambda values: tried[values])
    logs: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    moves = dict.fromkeys(POLICIES, 0)
    defaults = []
    for _ in range(blocks):
        found = {}
        for policy in dice.sample(("default", *POLICIES), len(POLICIES) + 1):
            if policy == "default":
                bench.set(path.default)
                found[policy] = bench.bandwidth(work)
            else:
                found[policy], moved = bench.tuned(work, policy, best)
                moves[policy] += moved
        defaults.append(found["default"])
        for policy in POLICIES:
            logs[policy].append(math.log(found[policy] / found["default"]))
    default = statistics.fmean(defaults) / 1e6
    for policy in POLICIES:
        shown = ", ".join(map(str, best))
        name = f"best static {shown}" if policy == "best static" else policy
        yield (
            f"| {work.name} | {default:.0f} | {name} | {ratio(logs[policy])} |"
            f" {moves[policy] / blocks:.0f} |"
        )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="online", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the image is made")
    parser.add_argument("--node", type=Path, required=True, help="the node helper")
    parser.add_argument("--buffer", type=Path, required=True, help="the burst buffer's program")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run")
    parser.add_argument("--period-ms", type=int, default=500, help="of the agent")
    parser.add_argument("--blocks", type=int, default=3, help="repetitions of each work: 3 to 12")
    parser.add_argument("--seed", type=int, default=2026, help="of the runs' order")
    parser.add_argument("--only", choices=("loop", "fuse"), action="append", help="this path")
    arguments = parser.parse_args()
    arguments.root.mkdir(parents=True, exist_ok=True)
    began = os.getloadavg()[0]
    dice = random.Random(arguments.seed)
    tables: list[str] = []
    costs: list[Cost] = []
    made = {
        "loop": paths.loop_device(arguments.root),
        "fuse": paths.burst_buffer(arguments.root, arguments.buffer),
    }
    for name in arguments.only or made:
        with made[name] as path:
            bench = Bench(path, arguments.node, arguments.seconds, arguments.period_ms)
            tables.append(TABLE.format(title=path.title, text=path.text))
            for work in path.works:
                tables += rows(bench, path, work, arguments.blocks, dice)
            costs += bench.costs
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
        )
    )
    print("\n".join(tables))


if __name__ == "__main__":
    main()
