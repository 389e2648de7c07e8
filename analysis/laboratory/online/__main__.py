"""Print what tuning inside a job gains on a loop device: the end of docs/measurements/online.md.

Each block runs one work under every policy, in a random order, beside the default; ratios are of
the same block. The agent is the one that jobs get, with the same file formats and confinement.
"""

from __future__ import annotations

import argparse
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

from gains import storage

LEVERS = {"max_sectors_kb": (16, 1280), "nr_requests": (4, 128)}
"""In what range each is moved."""
STATICS = [(sectors, requests) for sectors in (16, 128, 1280) for requests in (8, 128)]
DEFAULT = (1280, 128)
"""What a loop device has of its own accord: one of the statics."""
POLICIES = ("best static", "iopathtune", "iopathtune-each", "settling")
T_95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 7: 2.365, 9: 2.262, 11: 2.201}
"""Student's quantile of 97.5 %, by degrees of freedom."""


INTRODUCTION = """
## A real device

The agent that jobs get (`io-autotune-node agent`) moves `max_sectors_kb` and `nr_requests` of a
**loop device** with ext4, Linux {release}, {processors} processors, while fio runs works of the
paper's table 1 (direct, 16 requests in flight) for {seconds:g} s; it decides each {period} ms
instead of each 10 s.

- Each work: {blocks} blocks; in each the default and all policies once, in a random order.
- *Default*: its mean bandwidth, MB/s. *Of the default's*: of the same block, the geometric mean
  over blocks, in brackets 95 %. Where that holds 1.00, nothing is shown.
- *Best static*: `max_sectors_kb` and `nr_requests`, the best of {statics} settings in one run each
  before.
- An agent was ready after {coming:.1f} ms (median of {agents}; at most {longest:.1f} ms), for which
  a prolog waits. It had at most {memory:.1f} MiB, and used {processor:.2f} ms of a processor for
  its start and all its turns.
- Others use this machine too, and this ran at nice 19: the load was {began:.1f} at the beginning
  and {ended:.1f} at the end.

| work | default | policy | of the default's | moves a run |
| --- | ---: | --- | ---: | ---: |"""


@dataclass(frozen=True)
class Work:
    """A workload of the paper's table 1."""

    name: str
    fio: tuple[str, ...]


WORKS = [
    Work("random write, 8 KiB", ("--rw=randwrite", "--bs=8k")),
    Work("random write, 1 MiB", ("--rw=randwrite", "--bs=1m")),
    Work("five-stream random write, 1 MiB", ("--rw=randwrite", "--bs=1m", "--numjobs=5")),
    Work("sequential write, 1 MiB", ("--rw=write", "--bs=1m")),
    Work("sequential read-write, 1 MiB", ("--rw=rw", "--bs=1m")),
    Work("whole file read-write, 16 MiB", ("--rw=rw", "--bs=16m")),
]


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
    """A device, and how long each run takes."""

    def __init__(self, disk: storage.Storage, node: Path, seconds: float, period_ms: int) -> None:
        """Measure on a disk with the agent of this helper."""
        self._disk = disk
        self._node = node
        self._seconds = seconds
        self._period_ms = period_ms
        self.costs: list[Cost] = []

    def _queue(self, name: str) -> Path:
        return Path(f"/sys/block/{self._disk.device}/queue/{name}")

    def set(self, values: tuple[int, ...]) -> None:
        """Set the levers."""
        for name, value in zip(LEVERS, values, strict=True):
            self._queue(name).write_text(str(value), encoding="ascii")

    def bandwidth(self, work: Work) -> float:
        """Run a work, and return what it moved, bytes a second."""
        argv = [
            *("fio", "--name=work", f"--directory={self._disk.mount}", "--size=64m"),
            *("--ioengine=libaio", "--iodepth=16", "--direct=1", "--time_based"),
            *(f"--runtime={self._seconds}", "--group_reporting", "--output-format=json"),
        ]
        done = subprocess.run([*argv, *work.fio], check=True, capture_output=True, text=True)
        (job,) = json.loads(done.stdout)["jobs"]
        return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"])

    @contextmanager
    def agent(self, policy: str, journal: Path) -> Iterator[None]:
        """Let an agent move the levers, as it does for a job."""
        stat = {"path": f"/sys/block/{self._disk.device}/stat", "format": "block_stat"}
        order = {
            "policy": policy,
            "period_ms": self._period_ms,
            "levers": [
                {
                    "name": name,
                    "least": least,
                    "most": most,
                    "began": began,
                    "files": [os.path.realpath(self._queue(name))],
                    "kept": [],
                }
                for (name, (least, most)), began in zip(LEVERS.items(), DEFAULT, strict=True)
            ],
            "sources": [
                stat,
                {"path": "/proc/vmstat", "format": "vmstat"},
                {"path": "/proc/meminfo", "format": "meminfo"},
            ],
            "journal": str(journal),
            "group": None,
        }
        pipe = subprocess.PIPE
        began = time.monotonic()
        agent = subprocess.Popen([self._node, "agent"], stdin=pipe, stdout=pipe, text=True)
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps(order) + "\n")
        agent.stdin.flush()
        said = agent.stdout.readline()
        if said != "ready\n":
            raise RuntimeError(f"the agent has not come up: {said}")
        coming = time.monotonic() - began
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
        self.set(DEFAULT)
        with tempfile.TemporaryDirectory() as directory:
            journal = Path(directory) / "journal"
            with self.agent(policy, journal):
                bandwidth = self.bandwidth(work)
            _, *entries = journal.read_text(encoding="utf-8").splitlines()
            return bandwidth, sum(json.loads(entry)["moves"] for entry in entries)


def ratio(logs: list[float]) -> str:
    """Return a geometric mean with its interval."""
    mean = statistics.fmean(logs)
    error = T_95[len(logs) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    low, high = math.exp(mean - error), math.exp(mean + error)
    return f"{math.exp(mean):.2f} ({low:.2f}..{high:.2f})"


def rows(bench: Bench, work: Work, blocks: int, dice: random.Random) -> Iterator[str]:
    """Measure one work, and yield its rows."""
    bench.set(DEFAULT)
    bench.bandwidth(work)  # It lays out its files.
    tried = {}
    for values in dice.sample(STATICS, len(STATICS)):
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
                bench.set(DEFAULT)
                found[policy] = bench.bandwidth(work)
            else:
                found[policy], moved = bench.tuned(work, policy, best)
                moves[policy] += moved
        defaults.append(found["default"])
        for policy in POLICIES:
            logs[policy].append(math.log(found[policy] / found["default"]))
    default = statistics.fmean(defaults) / 1e6
    for policy in POLICIES:
        name = f"best static {best[0]}, {best[1]}" if policy == "best static" else policy
        yield (
            f"| {work.name} | {default:.0f} | {name} | {ratio(logs[policy])} |"
            f" {moves[policy] / blocks:.0f} |"
        )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="online", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="where the image is made")
    parser.add_argument("--node", type=Path, required=True, help="the node helper")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--period-ms", type=int, default=100, help="of the agent")
    parser.add_argument("--blocks", type=int, default=3, help="repetitions of each work: 3 to 12")
    parser.add_argument("--seed", type=int, default=2026, help="of the runs' order")
    arguments = parser.parse_args()
    arguments.root.mkdir(parents=True, exist_ok=True)
    began = os.getloadavg()[0]
    dice = random.Random(arguments.seed)
    found: list[str] = []
    with storage.mounted(arguments.root) as disk:
        bench = Bench(disk, arguments.node, arguments.seconds, arguments.period_ms)
        for work in WORKS:
            found += rows(bench, work, arguments.blocks, dice)
    comings = [1e3 * cost.coming for cost in bench.costs]
    processors = [1e3 * cost.processor for cost in bench.costs]
    print(
        INTRODUCTION.format(
            agents=len(comings),
            coming=statistics.median(comings),
            longest=max(comings),
            memory=max(cost.memory for cost in bench.costs) / 1024,
            processor=statistics.median(processors),
            release=os.uname().release.split("-")[0],
            processors=os.cpu_count(),
            seconds=arguments.seconds,
            period=arguments.period_ms,
            blocks=arguments.blocks,
            statics=len(STATICS),
            began=began,
            ended=os.getloadavg()[0],
        )
    )
    print("\n".join(found))


if __name__ == "__main__":
    main()
