"""The guide's table of files: which package has what, whose it is, and with which mode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packages.rooms import TREE

INSTALL = TREE / "docs/install.md"
PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
UNITS = re.compile(r"^/etc/systemd/system/")
DIRECTIVES = "io_autotune_directives.lua"
COPIED = {f"/etc/slurm/{DIRECTIVES}": f"/usr/share/io-autotune/slurm/{DIRECTIVES}"}


def paths(cell: str) -> Iterator[str]:
    """Return a cell's files: a bare name is beside the one before, `.x` is another end of it."""
    before = Path("/")
    for said in re.findall(r"`([^`]+)`", cell):
        if said.startswith("."):
            path = before.with_suffix(said)
        elif said.startswith("PluginDir/"):
            path = Path(PLUGINS) / Path(said).name
        elif "/" in said:
            path = Path(said)
        elif "." in said or said.startswith("io-"):
            path = before.with_name(said)
        else:
            continue
        before = path
        yield str(path)


def table() -> list[tuple[str, str, str, str]]:
    """Return what the guide says: a file or pattern, its package, owner and group, mode."""
    rows = []
    text = INSTALL.read_text(encoding="utf-8").split("## 3. Files")[1].split("## 4.")[0]
    for line in text.splitlines():
        if not line.startswith("| `"):
            continue
        file, package, _, owner = (cell.strip() for cell in line.strip("|").split(" | "))
        user, modes = owner.split(", ", 1)
        user = user if ":" in user else f"{user}:{user}"
        found = list(paths(file.split("` (")[0] + "`"))
        each = re.findall(r"0\d{3}", modes)
        for path, mode in zip(found, each * len(found) if len(each) == 1 else each, strict=False):
            rows.append(
                (UNITS.sub("/usr/lib/systemd/system/", path), package.split(",")[0], user, mode)
            )
    return rows
