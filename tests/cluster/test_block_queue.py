"""The queue of a real block device: given to a job that asked, read back, and put back.

The device is a loop device of the test's own; its queue is the kernel's as any other's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from devcluster import files
from gains import storage
from harness import NEEDS_STRACE, Site, asked, await_true, lines, writes

QUEUE = "accelerator=block-queue"
PIN = {
    "scheduler": "mq-deadline",
    "read_ahead_kb": "2048",
    "nr_requests": "64",
    "max_sectors_kb": "256",
}
NODE_TOML = """
[exclusive]
cpus = 8

[settings]
block_devices = ["{device}"]

[[settings.allow]]
kind = "block"
name = "scheduler"
values = ["none", "mq-deadline"]
""" + "".join(
    f'\n[[settings.allow]]\nkind = "block"\nname = "{name}"\nmin = 16\nmax = 8192\n'
    for name in ("read_ahead_kb", "nr_requests", "max_sectors_kb")
)


@dataclass(frozen=True)
class Queue:
    """A device's queue."""

    device: str

    def values(self) -> dict[str, str]:
        """Return what is in force of what is tuned."""
        found = {
            name: (Path("/sys/block") / self.device / "queue" / name).read_text().strip()
            for name in PIN
        }
        # All that there are, the one in force in brackets.
        found["scheduler"] = found["scheduler"].split("[")[1].split("]")[0]
        return found

    @property
    def show(self) -> str:
        """What a job has to run to print them, in the order of ``PIN``."""
        return f"cd /sys/block/{self.device}/queue; cat {' '.join(PIN)}"


def seen(text: str) -> dict[str, str]:
    """Return what a job has printed."""
    scheduler, *others = lines(text)
    values = [scheduler.split("[")[1].split("]")[0], *others]
    return dict(zip(PIN, values, strict=True))


@pytest.fixture
def queue(site: Site) -> Iterator[Queue]:
    """Make a device whose queue the nodes may change; in the end it is as it was."""
    if not Path("/dev/loop-control").exists():
        pytest.skip("there is no /dev/loop-control: loop devices are needed")
    with storage.loop_device(site.paths.scratch) as device:
        queue = Queue(device)
        found = queue.values()
        offered = Path(f"/sys/block/{device}/queue/scheduler").read_text()
        if "mq-deadline" not in offered:
            pytest.skip(f"this kernel has no scheduler mq-deadline, only {offered.strip()}")
        with site.nodes_configured(NODE_TOML.replace("{device}", device)):
            yield queue
            await_true("the queue to be as it was", lambda: queue.values() == found)


def pinned(site: Site, app: str) -> None:
    """Make a study whose runs get the settings."""
    site.run("true", asked(app, QUEUE), "--exclusive")
    site.pin(app, PIN)


def test_a_queue_is_the_jobs_own_while_it_runs(site: Site, queue: Queue) -> None:
    app = "queue-applied"
    before = queue.values()
    default = site.sbatch(queue.show, asked(app, QUEUE), "--exclusive")
    assert site.judged(default)["applied"] == {"kind": "default"}
    assert seen(site.output(default)) == before
    site.pin(app, PIN)
    job = site.sbatch(queue.show, asked(app, QUEUE), "--exclusive")
    run = site.counted(job)
    assert run["applied"]["kind"] == "parametrization"
    assert seen(site.output(job)) == PIN
    (report,) = site.explain(job)["reports"]
    assert report["in_force"] == {f"{queue.device}/{name}": value for name, value in PIN.items()}
    assert queue.values() == before


def test_a_scheduler_that_the_kernel_does_not_have_leaves_the_queue_alone(
    site: Site, queue: Queue
) -> None:
    app = "queue-refused"
    before = queue.values()
    node_toml = site.paths.etc / "node.toml"
    text = node_toml.read_text().replace('"mq-deadline"', '"cfq"')
    files.write(node_toml, text, mode=0o644)
    site.run("true", asked(app, QUEUE), "--exclusive")
    # The catalogue offers it, and this node does not allow it: what was set before it is put back.
    site.pin(app, {**PIN, "scheduler": "kyber"})
    job = site.sbatch(queue.show, asked(app, QUEUE), "--exclusive")
    run = site.judged(job)
    assert seen(site.output(job)) == before
    assert run["state"] == "not_counted"
    assert "scheduler" in run["verdict"]


@NEEDS_STRACE
def test_the_helper_is_killed_anywhere_and_the_queue_is_as_it_was(site: Site, queue: Queue) -> None:
    app = "queue-killed"
    before = queue.values()
    pinned(site, app)
    whole = 0
    for call in writes(60):
        with site.helper_killed("start", call):
            job = site.sbatch(queue.show, asked(app, QUEUE), "--exclusive")
            assert site.ended(job)["JobState"] == "COMPLETED", f"killed in write {call}"
        found = seen(site.output(job))
        await_true(
            f"the queue to be back, killed in write {call}", lambda: queue.values() == before
        )
        applied = site.judged(job)["applied"]["kind"]
        assert applied != "parametrization" or found == PIN, f"killed in write {call}"
        assert applied != "default" or found == before, f"killed in write {call}"
        whole += found == PIN
        if applied == "parametrization":
            # It was not killed any more: there are no further points.
            break
    assert call > 8, "it was never killed between two settings"
    assert whole > 0, "it was never killed once all was applied"
    late = 0
    for call in writes(14, 1):
        with site.helper_killed("finish", call):
            job = site.sbatch("true", asked(app, QUEUE), "--exclusive")
            fields = site.ended(job)
            assert fields["JobState"] == "COMPLETED", f"killed in write {call}"
        late += queue.values() != before
        plain = site.sbatch(queue.show, f"--nodelist={fields['NodeList']}")
        assert site.ended(plain)["JobState"] == "COMPLETED"
        assert seen(site.output(plain)) == before, f"killed in write {call}"
        if call > 4 and not site.job_directories():
            # It was not killed any more: there are no further points.
            break
        site.remove_job_directories()
    assert late > 0, "every epilog had put all back before it was killed"
