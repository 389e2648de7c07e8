"""SlurmdParameters=contain_spank: the hooks of a step run in the job's own mount namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import cluster_of_its_own, skip_before
from devcluster import Variant, command, files
from harness import ALICE, Site, asked, await_true, lines

SINCE = (24, 11)
"""contain_spank is in 24.05, which is in no suite of Debian's."""
NAMESPACES = (25, 11)
"""From here on the plugins are called namespace/."""
CONTAINED = {"user_init", "task_post_fork", "task_exit"}
"""slurm.conf(5), SlurmdParameters."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster with contain_spank, and a plugin that tells where hooks run."""
    series = skip_before(SINCE, "has no SlurmdParameters=contain_spank")
    namespace = "namespace/linux" if series >= NAMESPACES else "job_container/tmpfs"
    variant = Variant(namespace=namespace, contain_spank=True)
    with cluster_of_its_own(request, "contain_spank", variant=variant) as site:
        site.introduce_nodes()
        yield site


@pytest.fixture(scope="module")
def told(site: Site) -> Path:
    """Return where the plugin tells of the jobs that start from now on."""
    plugin, told = site.paths.scratch / "where.so", site.paths.scratch / "where.told"
    include = [] if command.SLURM is None else [f"-I{command.SLURM}/include"]
    source = str(Path(__file__).with_name("where.c"))
    command.run(
        ["gcc", "-Wall", "-Werror", "-shared", "-fPIC", *include, "-o", str(plugin), source]
    )
    told.write_text("", encoding="utf-8")
    told.chmod(0o666)
    # A step reads it when it starts.
    conf = site.paths.plugstack_conf
    text = conf.read_text(encoding="utf-8")
    files.write(conf, f"{text}optional {plugin} {told}\n", mode=0o644)
    return told


def test_a_contained_step_is_tuned_and_timed_on_every_node(site: Site, told: Path) -> None:
    app = "contained"
    site.pinned(app, {"cb_nodes": "2"}, "--nodes=2")
    told.write_text("", encoding="utf-8")
    body = (
        "readlink /proc/self/ns/mnt; srun --ntasks-per-node=1 sh -c 'sleep 0.4; cat $ROMIO_HINTS'"
    )
    job = site.sbatch(body, asked(app), "--nodes=2")
    run = site.judged(job)
    assert (run["state"], run["applied"]["kind"]) == ("counted", "parametrization"), run["verdict"]
    assert run["elapsed"] >= 0.4
    own, *hints = lines(site.output(job))
    assert hints == ["cb_nodes 2"] * 2
    # Else all this would say nothing: the hooks were where the job was.
    where = [line.split() for line in lines(told.read_text(encoding="utf-8"))]
    inside = {hook for hook, place in where if place == own}
    assert inside >= CONTAINED, where
    outside = str(Path("/proc/self/ns/mnt").readlink())
    assert not [hook for hook, place in where if hook in CONTAINED and place == outside], where
    reports = site.explain(job)["reports"]
    assert [len(report["steps"]) for report in reports] in ([2, 1], [1, 2]), reports
    for report in reports:
        for step in report["steps"]:
            assert step["duration_ns"] > 0, report
            assert step["variables"]["ROMIO_HINTS"] == "set", report


def test_how_a_contained_task_ended_is_known(site: Site) -> None:
    run = site.run("srun -n1 sh -c 'exit 3'", asked("contained-ends"))
    assert (run["state"], run["outcome"]) == ("not_counted", "FAILED"), run["verdict"]
    run = site.run("srun -n1 sh -c 'kill -SEGV $$'", asked("contained-ends"))
    assert run["state"] == "not_counted", run["verdict"]


def test_a_users_own_hints_win_there_too(site: Site) -> None:
    app = "contained-own"
    site.pinned(app, {"cb_nodes": "2"})
    hints = site.paths.home(ALICE) / "own_hints"
    hints.write_text("cb_nodes 1\n", encoding="utf-8")
    job = site.sbatch("cat $ROMIO_HINTS", asked(app), env={"ROMIO_HINTS": str(hints)})
    run = site.judged(job)
    assert lines(site.output(job)) == ["cb_nodes 1"]
    assert run["applied"]["kind"] != "parametrization", run
    await_true("the directories to go", lambda: not site.job_directories())
