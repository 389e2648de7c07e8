"""A plugin file that Slurm cannot load costs only the tuning, and ``doctor`` names it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clusters import cluster_of_its_own
from devcluster import command
from harness import ALICE, COMPLETE, ROOT, Job, Site, asked, await_true

SUBMISSIONS = 80 if COMPLETE else 8
STEPS = 20 if COMPLETE else 2
SIDE_BY_SIDE = 8
OTHER_SERIES = """
const char plugin_name[] = "io_autotune", plugin_type[] = "spank";
const unsigned int plugin_version = (19 << 16) + (5 << 8) + 1, spank_plugin_version = 1;
int slurm_spank_init(void *spank, int count, char **words) { return -1; }
"""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose plugin may be spoilt."""
    with cluster_of_its_own(request, "plugin file") as site:
        site.introduce_nodes()
        yield site


def missing(plugin: Path) -> None:
    """Somebody has removed it."""
    plugin.unlink()


def unreadable(plugin: Path) -> None:
    """Users cannot read it."""
    plugin.chmod(0o600)


def of_another_series(plugin: Path) -> None:
    """Slurm was upgraded, and it was not."""
    source = plugin.with_suffix(".c")
    source.write_text(OTHER_SERIES, encoding="utf-8")
    argv = ["gcc", "-shared", "-fPIC", "-o", str(plugin), str(source)]
    command.run(argv)
    source.unlink()


def garbage(plugin: Path) -> None:
    """It is no library at all."""
    plugin.unlink()
    plugin.write_text("no library", encoding="utf-8")


def beside_stray_files(plugin: Path) -> None:
    """An editor's and a package's leftovers."""
    for place in (plugin, plugin.parents[2] / "etc" / "plugstack.conf"):
        for ending in (".rpmnew", "~"):
            place.with_name(place.name + ending).write_text("garbage", encoding="utf-8")


WAYS: dict[Callable[[Path], None], str | None] = {
    missing: "No such file",
    unreadable: None,
    of_another_series: "was built for Slurm 19.05",
    garbage: "is no plugin of Slurm",
    beside_stray_files: None,
}
"""What can be wrong with the plugin's file, and what root's doctor says of it."""


@pytest.mark.parametrize("spoil", WAYS, ids=lambda spoil: spoil.__name__)
def test_it_costs_only_the_tuning(site: Site, spoil: Callable[[Path], None]) -> None:
    spoil(site.paths.plugin)
    try:
        site.restart("slurmd-n1")
        await_true("the node to register", lambda: site.cluster.node_states()["n1"] == "idle")
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            jobs = list(pool.map(lambda _: submit(site), range(SUBMISSIONS)))
            steps = list(pool.map(lambda _: step(site), range(STEPS)))
        assert steps == ["done\n"] * STEPS
        for job in jobs:
            assert site.ended(job)["JobState"] == "COMPLETED"
        site.check_nodes()
        plugin = doctor(site)
        told = WAYS[spoil]
        assert plugin["state"] == ("ok" if told is None else "failed"), plugin
        assert (told or "") in plugin["detail"], plugin
    finally:
        site.paths.plugin.unlink(missing_ok=True)
        site.cluster.up()
    site.counted_run("true", asked("plugin-file"))


def submit(site: Site) -> Job:
    """Submit a job that asks for nothing."""
    return site.sbatch("true", "--output=/dev/null")


def step(site: Site) -> str:
    """Run a job directly, and return what it prints."""
    return site.cluster.run_as(ALICE, ["srun", "--quiet", "echo", "done"]).stdout


def doctor(site: Site) -> dict[str, str]:
    """Return what root's doctor says of the plugin."""
    done = site.cluster.run_as(ROOT, ["io-autotune", "doctor", "--json"], check=False)
    found: dict[str, dict[str, str]] = {
        each["name"]: each for each in json.loads(done.stdout)["checks"]
    }
    return found["plugin"]


def test_the_stub_takes_the_option_and_ignores_it(site: Site) -> None:
    conf = site.paths.plugstack_conf
    before = conf.read_text(encoding="utf-8")
    stub = site.paths.plugin.with_name("io_autotune_stub.so")
    conf.write_text(f"optional {stub}\n", encoding="utf-8")
    try:
        job = site.sbatch("#SBATCH --io-autotune=app=plugin-stub,colour=blue\ntrue")
        assert job.said() == []
        assert site.ended(job)["JobState"] == "COMPLETED"
        assert site.runs(job) == []
        assert "ignored" in doctor(site)["detail"]
    finally:
        conf.write_text(before, encoding="utf-8")
