"""Which root directories are refused, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from devcluster.errors import ClusterError
from devcluster.paths import UNIX_SOCKET_LIMIT, Paths, check_root


def test_accepts_the_usual_place() -> None:
    check_root(Path("/var/lib/io-autotune-dev"), nodes=2)


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ("/dev2", "of its own"),
        ("/var/lib/a b", "letters, digits"),
        ("/var/lib/a%n", "letters, digits"),
        ("/var/lib/a#b", "letters, digits"),
        ("var/lib/relative", "letters, digits"),
    ],
)
def test_refuses(root: str, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        check_root(Path(root), nodes=2)


def test_the_longest_socket_decides() -> None:
    longest = max(len(str(path)) for path in Paths(Path("/var/lib/x")).sockets(2))
    fits = "x" * (UNIX_SOCKET_LIMIT - longest + 1)
    check_root(Path("/var/lib") / fits, nodes=2)
    with pytest.raises(ClusterError, match="1 bytes longer"):
        check_root(Path("/var/lib") / f"{fits}x", nodes=2)


def test_more_nodes_have_longer_sockets() -> None:
    paths = Paths(Path("/var/lib/x"))
    longest = [max(len(str(path)) for path in paths.sockets(nodes)) for nodes in (9, 10)]
    assert longest[1] == longest[0] + 2


def test_refuses_a_parent_that_others_cannot_enter(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(ClusterError, match="cannot enter"):
        check_root(tmp_path / "c", nodes=1)


def test_refuses_a_parent_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setattr(Path, "parents", property(lambda path: [path.parent]))
    with pytest.raises(ClusterError, match="sticky"):
        check_root(tmp_path / "c", nodes=1)
    tmp_path.chmod(0o1777)
    check_root(tmp_path / "c", nodes=1)
