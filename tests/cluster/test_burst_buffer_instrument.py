"""The papers' burst buffer, by tests/burst-buffer: tuned through Slurm's burst_buffer/lua."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant
from devcluster.instrument import serving
from harness import ALICE, ROOT, Site, asked, await_true, lines

BUFFERED = "accelerator=smart-burst-buffer"
SCALED = {
    "[2, 4, 6, 8, 10, 12]": "[1, 2, 4, 6]",
    "default = 10": "default = 1",
    "[40, 50, 60]": "[16, 40, 96]",
    "default = 60": "default = 96",
    "[50, 60, 70, 80, 90]": "[5, 50, 90]",
}
"""What the site's catalogue file has instead of the papers' values, on a host of this size."""

WORKLOAD = """#BB target=slow
cat > checkpoint.py <<'END'
import os, sys, time
from multiprocessing import get_context

def work(rank):
    data = os.urandom(1 << 20)
    path = f"{os.environ['BURST_BUFFER_DIR']}/{os.environ['SLURM_JOB_ID']}.{rank}"
    for _ in range(2):
        with open(path, "wb", buffering=0) as file:
            for _ in range(4):
                file.write(data)
        time.sleep(0.1)
    with open(path, "rb", buffering=0) as file:
        while part := file.read(1 << 20):
            assert part == data
        os.fsync(file.fileno())

# Python 3.14 would start them from a server that imports this file again.
workers = [get_context("fork").Process(target=work, args=(rank,)) for rank in range(4)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
sys.exit(any(worker.exitcode for worker in workers))
END
exec python3 checkpoint.py
"""
"""Checkpoints of four processes, written twice and read back, as in the papers."""


def _slow(site: Site) -> Path:
    return site.paths.scratch / "slow"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose jobs can have the instrument in front of a slow directory."""
    if not Path("/dev/fuse").exists():
        pytest.skip("there is no /dev/fuse on this host")
    variant = Variant(burst_buffer=True)
    with cluster_of_its_own(request, "instrument", variant=variant) as site:
        options = ["--rate=60", "--neighbour=0.2"]
        with serving(site.paths, _slow(site), SCALED, options) as socket:
            await_true("the agent to listen", socket.exists)

            def is_scaled() -> bool:
                shown = site.ask(ALICE, "accelerators", "show", "smart-burst-buffer")
                return shown["space"][0]["default"] == 1

            await_true("the accelerator to be the site's", is_scaled)
            site.introduce_nodes()
            yield site
            _await_no_buffers(site)


@pytest.fixture(autouse=True)
def _nothing_leaks(site: Site) -> Iterator[None]:
    yield
    _await_no_buffers(site)


def _daemons(site: Site) -> dict[int, str]:
    """Return the arguments of the daemons that run, by their process ids."""
    daemon = str(site.paths.bin / "burst-buffer-daemon")
    found = subprocess.run(
        ["pgrep", "-f", "-a", f"^{re.escape(daemon)} "], capture_output=True, text=True, check=False
    )
    rows = (line.split(" ", 1) for line in found.stdout.splitlines())
    return {int(pid): arguments for pid, arguments in rows}


def _await_no_buffers(site: Site) -> None:
    def left() -> bool:
        held = site.cluster.run_as(ROOT, ["scontrol", "show", "burstbuffer"]).stdout
        places = (site.paths.burst_buffers, site.paths.burst_buffers_spool)
        mounted = str(site.paths.burst_buffers) in Path("/proc/self/mounts").read_text("utf-8")
        is_used = any(any(place.iterdir()) for place in places)
        return "JobID=" in held or mounted or is_used or bool(_daemons(site))

    await_true("no buffer to be left", lambda: not left())


def test_a_study_of_the_four_parameters_goes_through_slurms_plugin(site: Site) -> None:
    app = "instrument"
    option = f"--io-autotune=smart-burst-buffer,app={app}"
    applied = [site.counted_run(WORKLOAD, option, "--exclusive")["applied"] for _ in range(5)]
    assert [one["kind"] for one in applied[:2]] == ["default"] * 2
    # The design's points follow, and the default once more where they have lost much.
    tuned = [one["parametrization"] for one in applied if one["kind"] == "parametrization"]
    assert tuned, applied
    names = {"workers", "destagers", "cache_gb", "cache_threshold"}
    assert all(set(one) == names for one in tuned)


def test_the_daemon_has_what_the_directives_say(site: Site) -> None:
    app = "instrument-pinned"
    assert site.run("#BB x\ntrue", asked(app, BUFFERED))["state"] == "counted"
    values = {"workers": "4", "destagers": "2", "cache_gb": "40", "cache_threshold": "50"}
    site.pin(app, values)
    body = "#BB x\necho here > $BURST_BUFFER_DIR/file; stat -fc %T $BURST_BUFFER_DIR; sleep 600"
    job = site.sbatch(body, asked(app, BUFFERED))
    await_true("the job to have its buffer", lambda: "fuse" in _printed(site, job.job_id))
    [(_, arguments)] = _daemons(site).items()
    for option in ("--workers=4", "--destagers=2", "--cache-mib=40", "--threshold=50"):
        assert option in arguments
    site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
    site.ended(job)
    _await_no_buffers(site)
    uid = site.paths.home(ALICE).stat().st_uid
    assert (_slow(site) / str(uid) / "file").read_text("utf-8") == "here\n"


def test_a_daemon_that_is_killed_loses_nothing_that_was_synced(site: Site) -> None:
    body = (
        "#BB x\ncd $BURST_BUFFER_DIR; head -c 3000000 /dev/zero | tr '\\0' x > synced\n"
        "sync synced; cd /; echo synced; until ! ls $BURST_BUFFER_DIR; do sleep 0.1; done"
        " > /dev/null 2>&1; echo gone"
    )
    job = site.sbatch(body)
    await_true("the job to have synced", lambda: "synced" in _printed(site, job.job_id))
    [pid] = _daemons(site)
    os.kill(pid, signal.SIGKILL)
    site.ended(job)
    assert lines(site.output(job)) == ["synced", "gone"]
    uid = site.paths.home(ALICE).stat().st_uid
    assert (_slow(site) / str(uid) / "synced").read_text("utf-8") == "x" * 3_000_000


def _printed(site: Site, job_id: int) -> str:
    path = site.paths.home(ALICE) / f"{job_id}.out"
    return path.read_text(encoding="utf-8") if path.exists() else ""
