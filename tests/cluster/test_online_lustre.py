"""Tuning inside the job on a stand-in for a Lustre client, whose counters move as a job writes.

The agent, the hooks and the catalogue's `lustre-online` and `lustre-online-cache` are real, and so
is the job's own bandwidth: it writes as fast as the levers let it.
"""

from __future__ import annotations

import time

import lustre
import pytest
from harness import Site, asked, await_true

NODE_TOML = """
[exclusive]
cpus = 8

[settings]
lctl = "{lctl}"
proc = "{proc}"
sys = "{sys}"

[online]
period_ms = 100

[[settings.allow]]
kind = "lctl"
name = "osc.*.max_pages_per_rpc"
min = 1
max = 1024

[[settings.allow]]
kind = "lctl"
name = "osc.*.max_rpcs_in_flight"
min = 1
max = 256

[[settings.allow]]
kind = "lctl"
name = "osc.*.max_dirty_mb"
min = 1
max = 256
"""
NEAR = 0.8
"""Of the best that any settings bring."""
RESTS = 3.0
"""So long, in seconds, an agent that has settled leaves levers where they are: thirty periods."""


LITTLE = 16
"""MiB of dirty data for a target: with these the best requests bring less than half of the best."""


@pytest.mark.parametrize(
    ("accelerator", "version"),
    [("lustre-online", version) for version in lustre.VERSIONS]
    + [("lustre-online-cache", lustre.VERSIONS[-1])],
)
def test_the_agent_settles_near_the_best_and_the_client_is_as_it_was(
    site: Site, accelerator: str, version: str
) -> None:
    """With the cache as CARAT does: requests alone bring little where it is small."""
    app = f"{accelerator}-{version}"
    client = lustre.LustreClient(site.paths.scratch / app, version)
    moves_cache = accelerator == "lustre-online-cache"
    if moves_cache:
        client.set("max_dirty_mb", LITTLE)
    began = client.settings()
    node_toml = NODE_TOML.format(lctl=client.lctl, proc=client.proc, sys=client.sys)
    fence = site.paths.scratch / f"{app}.fence"
    online = f"accelerator={accelerator}"
    with client.mounted(), site.nodes_configured(node_toml):
        site.run("true", asked(app, online), "--exclusive")
        site.pin(app, {"online": "settling"})
        job = site.sbatch(
            f"until [ -e {fence} ]; do\n"
            f"dd if=/dev/zero of={client.pipe} bs=64k count=32 status=none\n"
            "done",
            asked(app, online),
            "--exclusive",
        )
        rested = Rested(client)
        await_true("the levers to rest where the path is quick", rested.near_the_best)
        settled = client.settings()
        assert client.settings(lustre.TARGETS[1]) == settled, "all targets alike"
        assert (settled["max_dirty_mb"] > began["max_dirty_mb"]) == moves_cache
        fence.touch()
        site.counted(job)
        for target in lustre.TARGETS:
            assert client.settings(target) == began
        # The last requests were of the size that was settled on.
        assert client.rpcs_by_pages()[settled["max_pages_per_rpc"]] > 0
    (report,) = site.explain(job)["reports"]
    told = report["online"]
    moved = 3 if moves_cache else 2
    assert told["levers"] == [f"osc.*.{name}" for name in lustre.DEFAULT][:moved]
    assert told["began"] == list(began.values())[:moved]
    default = lustre.bandwidth(*began.values())
    fastest = max(entry["bandwidth"] for entry in told["entries"])
    assert fastest > 2 * default, (fastest, default)


class Rested:
    """Whether levers have stayed for a while."""

    def __init__(self, client: lustre.LustreClient) -> None:
        """Look at a client from now on."""
        self._client = client
        self._last = client.settings()
        self._since = time.monotonic()

    def near_the_best(self) -> bool:
        """Whether they have, where the path is nearly as quick as it can be."""
        settings, now = self._client.settings(), time.monotonic()
        if settings != self._last:
            self._last, self._since = settings, now
        moved = lustre.bandwidth(*settings.values())
        return now - self._since >= RESTS and moved >= NEAR * lustre.best()
