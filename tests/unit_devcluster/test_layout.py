"""What is removed with a cluster, and what a killed test has left mounted below it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from devcluster import command, layout
from devcluster.paths import Paths

MOUNTINFO = r"""
21 1 8:1 / / rw - ext4 /dev/vda rw
30 21 0:40 / /var/lib/dev rw - tmpfs outer rw
31 30 0:41 / /var/lib/dev/run/small rw,relatime shared:7 - tmpfs io-autotune-small rw
32 31 0:42 / /var/lib/dev/run/small/a\040b rw - tmpfs deep rw
33 21 0:43 / /var/lib/dev-other/run rw - tmpfs other rw
""".lstrip()


def test_what_was_mounted_last_comes_first_and_what_is_not_below_does_not_come() -> None:
    found = layout.mounted_below(Path("/var/lib/dev"), MOUNTINFO)
    assert found == ["/var/lib/dev/run/small/a b", "/var/lib/dev/run/small"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_root_with_mounts_is_removed_and_what_was_there_is_not_looked_at(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "root")
    outside, inside = tmp_path / "outside", paths.plugin_spool / "inner"
    outside.mkdir()
    (outside / "kept").touch()
    paths.etc.mkdir(parents=True)
    paths.plugin_spool.mkdir(parents=True)
    command.run(["mount", "-t", "tmpfs", "small", str(paths.plugin_spool)])
    inside.mkdir()
    command.run(["mount", "--bind", str(outside), str(inside)])
    layout.remove(paths)
    assert not paths.root.exists()
    assert [path.name for path in outside.iterdir()] == ["kept"]
