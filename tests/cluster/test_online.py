"""Tuning inside the job: what an agent moves on a real device, and that nothing is left of it.

The device is a loop device of the test's own with a file system; the agents decide ten times in a
second instead of once in ten.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from devcluster import files
from gains import storage
from harness import (
    NEEDS_STRACE,
    Job,
    Json,
    Site,
    asked,
    await_true,
    lines,
    writes,
)

ONLINE = "accelerator=block-online"
LEVERS = ("max_sectors_kb", "nr_requests")
NODE_TOML = """
[exclusive]
cpus = 8

[settings]
block_devices = ["{device}"]

[online]
period_ms = {period}
""" + "".join(
    f'\n[[settings.allow]]\nkind = "block"\nname = "{name}"\nmin = 16\nmax = 8192\n'
    for name in LEVERS
)


@dataclass(frozen=True)
class Disk:
    """A device with a file system, whose queue is moved."""

    device: str
    mount: Path

    def queue(self) -> dict[str, str]:
        """Return all that can be set of the device's queue."""
        directory = Path("/sys/block") / self.device / "queue"
        return {
            file.name: file.read_text()
            for file in sorted(directory.iterdir())
            if file.is_file() and file.stat().st_mode & 0o200 and file.stat().st_mode & 0o400
        }

    def work(self, until: Path) -> str:
        """What a job has to run to write and read there until a file exists."""
        mine = f"{self.mount}/$SLURM_JOB_ID"
        return (
            f"until [ -e {until} ]; do\n"
            f"dd if=/dev/zero of={mine} bs=1M count=16 conv=fsync status=none\n"
            f"dd if={mine} of=/dev/null bs=1M iflag=direct status=none\n"
            f"done; rm -f {mine}"
        )


@pytest.fixture
def disk(site: Site) -> Iterator[Disk]:
    """Make a disk that nodes may tune; in the end its queue is as it was, and no agent runs."""
    if not Path("/dev/loop-control").exists():
        pytest.skip("there is no /dev/loop-control: loop devices are needed")
    with storage.mounted(site.paths.scratch) as made:
        disk = Disk(made.device, made.mount)
        before = disk.queue()
        with site.nodes_configured(node_toml(disk, 100)):
            yield disk
            await_true("the queue to be as it was", lambda: disk.queue() == before)
            assert not agents(site)


def node_toml(disk: Disk, period: int) -> str:
    """Return what lets nodes move the disk's levers, so many milliseconds apart."""
    return NODE_TOML.replace("{device}", disk.device).replace("{period}", str(period))


def agents(site: Site) -> list[int]:
    """Return the processes that tune inside jobs."""
    return site.helpers("agent")


def pinned(site: Site, app: str, policy: str = "iopathtune-each") -> None:
    """Make a study whose runs are tuned inside."""
    site.run("true", asked(app, ONLINE), "--exclusive")
    site.pin(app, {"online": policy})


def working(site: Site, disk: Disk, app: str) -> tuple[Job, Path]:
    """Start a job that works, and return it once its agent has moved a lever, with its end."""
    fence = site.paths.scratch / f"{app}.fence"
    before = disk.queue()
    job = site.sbatch(disk.work(fence), asked(app, ONLINE), "--exclusive")
    await_true("a lever to move", lambda: disk.queue() != before)
    return job, fence


def record(site: Site, job: Job) -> Json:
    """Return what a job's agent has told."""
    (report,) = site.explain(job)["reports"]
    return report.get("online")


def test_only_the_named_levers_move_and_they_are_back_after_the_job(site: Site, disk: Disk) -> None:
    """Promise: a setting stays changed after a job"""
    app = "online-moves"
    before = disk.queue()
    pinned(site, app)
    job, fence = working(site, disk, app)
    (agent,) = agents(site)
    seen: dict[str, set[str]] = {name: set() for name in before}

    def both_have_moved() -> bool:
        for name, value in disk.queue().items():
            seen[name].add(value)
        return all(len(seen[name]) > 2 for name in LEVERS)

    await_true("both levers to move again", both_have_moved)
    moved = {name for name, values in seen.items() if values != {before[name]}}
    assert moved == set(LEVERS)
    status = Path(f"/proc/{agent}/status").read_text(encoding="utf-8")
    assert "\nUid:\t65534\t65534\t65534\t65534\n" in status
    fence.touch()
    run = site.counted(job)
    assert run["applied"]["kind"] == "parametrization"
    told = record(site, job)
    assert told["policy"] == "iopathtune-each"
    assert told["levers"] == list(LEVERS)
    assert told["began"] == [int(before[name]) for name in LEVERS]
    entries = told["entries"]
    assert sum(entry["moves"] for entry in entries) >= 4
    assert any(entry["bandwidth"] > 0 for entry in entries)
    text = site.tuner("root", "explain", str(job.job_id), "--details").stdout
    assert "in the job   by iopathtune-each on n" in text
    assert "in the job   max_sectors_kb" in text
    assert disk.queue() == before


def test_a_job_that_is_cancelled_leaves_nothing(site: Site, disk: Disk) -> None:
    app = "online-cancelled"
    before = disk.queue()
    pinned(site, app)
    job, _ = working(site, disk, app)
    site.cluster.run_as("root", ["scancel", str(job.job_id)])
    assert site.ended(job)["JobState"] == "CANCELLED"
    await_true("the queue to be as it was", lambda: disk.queue() == before and not agents(site))


def test_an_agent_that_is_killed_leaves_nothing_and_its_run_does_not_count(
    site: Site, disk: Disk
) -> None:
    """Promise: a setting stays changed after a job"""
    app = "online-killed"
    before = disk.queue()
    pinned(site, app)
    job, fence = working(site, disk, app)
    (agent,) = agents(site)
    os.kill(agent, signal.SIGKILL)
    await_true("it to be gone", lambda: not agents(site))
    fence.touch()
    run = site.judged(job)
    assert run["state"] == "not_counted"
    assert "ended before the job did" in run["verdict"]
    assert disk.queue() == before


def test_slurmd_is_killed_and_the_job_ends_without_it(site: Site, disk: Disk) -> None:
    """Promise: a setting stays changed after a job"""
    app = "online-slurmd"
    before = disk.queue()
    pinned(site, app)
    job, fence = working(site, disk, app)
    node = site.shown(job)["NodeList"]
    site.kill_alone(f"slurmd-{node}")
    assert agents(site), "it is out of slurmd's processes"
    fence.touch()
    site.cluster.up()
    assert site.ended(job)["JobState"] in {"COMPLETED", "NODE_FAIL"}
    await_true("the queue to be as it was", lambda: disk.queue() == before and not agents(site))


def test_a_sweep_as_at_boot_ends_agents_and_puts_levers_back(site: Site, disk: Disk) -> None:
    app = "online-swept"
    before = disk.queue()
    pinned(site, app)
    job, fence = working(site, disk, app)
    site.sweep_as_at_boot()
    assert not agents(site)
    assert disk.queue() == before
    fence.touch()
    run = site.judged(job)
    assert run["state"] == "not_counted"


def test_a_job_shorter_than_a_period_is_untouched(site: Site, disk: Disk) -> None:
    app = "online-short"
    before = disk.queue()
    pinned(site, app)
    files.write(site.paths.etc / "node.toml", node_toml(disk, 10_000), mode=0o644)
    job = site.sbatch(
        f"cat /sys/block/{disk.device}/queue/max_sectors_kb", asked(app, ONLINE), "--exclusive"
    )
    site.counted(job)
    assert lines(site.output(job)) == [before["max_sectors_kb"].strip()]
    told = record(site, job)
    assert told["entries"] == []
    text = site.tuner("root", "explain", str(job.job_id), "--details").stdout
    assert "nothing moved" in text


@pytest.mark.usefixtures("disk")
def test_a_job_with_an_agent_has_nothing_else_that_is_different(site: Site) -> None:
    app = "online-same"
    pinned(site, app)
    # Its environment, control groups, limits, open files, and the processes of its session.
    show = (
        "env | sort; cat /proc/self/cgroup /proc/self/limits;"
        " ls /proc/self/fd | wc -l; ps -o comm= -s $(ps -o sess= -p $$) | sort"
    )

    def shown(policy: str) -> list[str]:
        site.pin(app, {"online": policy})
        job = site.sbatch(show, asked(app, ONLINE), "--exclusive", "--nodelist=n1")
        site.counted(job)
        told = record(site, job)
        assert (told is not None) == (policy != "off")
        text = site.output(job)
        # What every job has of its own: a variable's whole value, a control group's or a
        # directory's name. The same digits inside another value (SLURM_WORKING_CLUSTER's) are not
        # its number.
        own = "|".join((str(job.job_id), *own_numbers(text)))
        return [re.sub(rf"(^\w+=|/job_|\.n1\.)({own})(?!\d)", r"\1N", line) for line in lines(text)]

    assert shown("settling") == shown("off")


def own_numbers(text: str) -> list[str]:
    """Return a job's own process ids, times and the id of its launch, as in its environment."""
    told = ("TASK_PID", "JOB_START_TIME", "JOB_END_TIME", "JOB_SLUID")
    names = tuple(f"SLURM_{name}=" for name in told)
    values = (line.partition("=")[2] for line in text.splitlines() if line.startswith(names))
    return sorted({value for value in values if value}, key=len, reverse=True)


@NEEDS_STRACE
def test_the_helper_is_killed_anywhere_and_nothing_is_left(site: Site, disk: Disk) -> None:
    """Promise: a setting stays changed after a job"""
    app = "online-helper"
    before = disk.queue()
    pinned(site, app)
    moved = 0
    for call in writes(60, 1):
        with site.helper_killed("start", call, follow=False):
            job = site.sbatch(
                f"dd if=/dev/zero of={disk.mount}/x bs=1M count=64 conv=fsync status=none;"
                f" rm -f {disk.mount}/x",
                asked(app, ONLINE),
                "--exclusive",
            )
            assert site.ended(job)["JobState"] == "COMPLETED", f"killed in write {call}"
        await_true(
            f"nothing to be left, killed in write {call}",
            lambda: disk.queue() == before and not agents(site),
        )
        run = site.judged(job)
        told = record(site, job)
        moved += told is not None
        if run["applied"]["kind"] == "parametrization":
            break
        site.remove_job_directories()
    assert call > 8, "it was never killed on its way"
    assert moved > 0
