"""PrologFlags=RunInJob: a step of the job's runs the prolog and the epilog, and not slurmd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant, command, files
from harness import ALICE, Site, asked, await_true, lines

SINCE = (24, 11)
"""RunInJob is in 24.05, which is in no suite of Debian's."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with RunInJob."""
    version = command.run([command.find("slurmd"), "-V"]).stdout.split()[1]
    if tuple(map(int, version.split(".")[:2])) < SINCE:
        pytest.skip(f"Slurm {version} has no PrologFlags=RunInJob")
    with cluster_of_its_own(request, "RunInJob", variant=Variant(run_in_job=True)) as site:
        site.introduce_nodes()
        yield site


def test_an_epilog_that_is_not_roots_leaves_the_report_to_the_timer(site: Site) -> None:
    """Slurm 24.11 to 25.11.3 run an epilog as the job's user now and then, and here always."""
    app = "run-in-job-not-root"
    site.pinned(app, {"cb_nodes": "2"})
    home = site.paths.home(ALICE).stat()
    epilog, said = site.paths.etc / "epilog-as-user", site.paths.scratch / "said"
    files.write(
        epilog,
        f"#!/bin/sh\nexec setpriv --reuid={home.st_uid} --regid={home.st_gid} --keep-groups"
        f" {site.paths.run_in_job} 2> {said}\n",
        mode=0o755,
    )
    with site.parts_stopped("flusher"):
        with site.slurm_conf_changed(Epilog=str(epilog)):
            job = site.sbatch("sleep 0.3; cat $ROMIO_HINTS", asked(app))
            assert site.ended(job)["ExitCode"] == "0:0"
            await_true("the epilog", said.exists)
        assert "and not as root" in said.read_text(encoding="utf-8")
        (directory,) = site.job_directories()
        assert directory.name == str(job.job_id)
    # The job's last step is gone: the timer waits no longer.
    run = site.judged(job)
    assert (run["state"], run["applied"]["kind"]) == ("counted", "parametrization"), run["verdict"]
    assert run["elapsed"] >= 0.3
    assert lines(site.output(job)) == ["cb_nodes 2"]
    await_true("the directory to go", lambda: not site.job_directories())
    assert not (site.paths.plugin_spool / "in-force").exists()


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
