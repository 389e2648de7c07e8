"""PrologFlags=RunInJob: a step of the job's runs the prolog and the epilog, and not slurmd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clusters import cluster_of_its_own, skip_before
from devcluster import Variant, files
from harness import ALICE, Site, asked, await_true, lines
from mounting import RCLONE, fuse_for_users, rclone

SINCE = (24, 11)
"""RunInJob is in 24.05, which is in no suite of Debian's."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with RunInJob."""
    skip_before(SINCE, "has no PrologFlags=RunInJob")
    with cluster_of_its_own(request, "RunInJob", variant=Variant(run_in_job=True)) as site:
        site.introduce_nodes()
        yield site


@contextmanager
def epilog_as_user(site: Site) -> Iterator[Path]:
    """Run epilogs as alice, and no timer's pass; yield where they say what.

    Slurm 24.11 to 25.11.3 do so now and then.
    """
    home = site.paths.home(ALICE).stat()
    epilog, said = site.paths.etc / "epilog-as-user", site.paths.scratch / "said"
    files.write(
        epilog,
        f"#!/bin/sh\nexec setpriv --reuid={home.st_uid} --regid={home.st_gid} --keep-groups"
        f" {site.paths.run_in_job} 2> {said}\n",
        mode=0o755,
    )
    said.unlink(missing_ok=True)
    with site.parts_stopped("flusher"), site.slurm_conf_changed(Epilog=str(epilog)):
        yield said


def test_an_epilog_that_is_not_roots_leaves_the_report_to_the_timer(site: Site) -> None:
    """Attack (second-round): RunInJob runs the epilog as the job's user, who could mislead the
    helper.
    Outcome: It does nothing, and the timer reports the job.
    """
    app = "run-in-job-not-root"
    site.pinned(app, {"cb_nodes": "2"})
    with epilog_as_user(site) as said:
        job = site.sbatch("sleep 0.3; cat $ROMIO_HINTS", asked(app))
        assert site.ended(job)["ExitCode"] == "0:0"
        await_true("the epilog", said.exists)
        (directory,) = site.job_directories()
        assert directory.name == str(job.job_id)
    assert "and not as root" in said.read_text(encoding="utf-8")
    # The job's last step is gone: the timer waits no longer.
    run = site.judged(job)
    assert (run["state"], run["applied"]["kind"]) == ("counted", "parametrization"), run["verdict"]
    assert run["elapsed"] >= 0.3
    assert lines(site.output(job)) == ["cb_nodes 2"]
    await_true("the directory to go", lambda: not site.job_directories())
    assert not site.spooled()


def test_the_timer_also_undoes_what_was_done_for_its_job(site: Site) -> None:
    app = "run-in-job-undone"
    with fuse_for_users(), rclone(site) as mounts:
        site.run("true", asked(app, RCLONE), "--exclusive")
        site.pin(app, {"cache_mode": "full"})
        with epilog_as_user(site) as said:
            job = site.sbatch("ls -d $RCLONE_VFS_DIR", asked(app, RCLONE), "--exclusive")
            site.ended(job)
            await_true("the epilog", said.exists)
            assert lines(site.output(job))[0].startswith(str(mounts))
            assert (site.paths.plugin_spool / "saved").exists()
        site.counted(job)
        await_true("all of it to be gone", lambda: not list(mounts.iterdir()))


def test_a_killed_epilog_reports_all_the_same(site: Site) -> None:
    app = "run-in-job-killed"
    site.pinned(app, {"cb_nodes": "2"})
    helper = site.paths.bin / "io-autotune-node"
    real, once = helper.with_suffix(".real"), site.paths.scratch / "once"
    helper.rename(real)
    wrapper = (
        f'#!/bin/bash\nif [ "$1" = finish ] && [ ! -e {once} ]; then\n'
        f'    touch {once}\n    kill -KILL $$\nfi\nexec -a {helper} {real} "$@"\n'
    )
    files.write(helper, wrapper, mode=0o755)
    try:
        with site.parts_stopped("flusher"):
            job = site.sbatch("true", asked(app))
            assert site.judged(job)["state"] == "counted"
    finally:
        real.rename(helper)
    assert once.exists(), "it was not killed"
