"""The guide's blocks, executed as they stand on the hosts that their prompts name."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from packages.rooms import TREE
from pages import Step, steps

from install.cluster import ADMINS, ALICE, CLUSTER, LOGIN, NODES, SERVICE, Site

INSTALL, PACKAGES, MONITORING = (
    TREE / f"docs/{page}.md" for page in ("install", "packages", "monitoring")
)
PROMPTS = {
    "service#": (SERVICE,),
    "submit#": (LOGIN,),
    "node#": NODES,
    "each#": (SERVICE, LOGIN, *NODES),
    "submit$": (LOGIN,),
}
NOW, PREVIOUS = "/packages/now", "/packages/previous"
"""Where a host has packages: of this tree, and of an older commit."""
BY_HAND = {
    "/usr/share/io-autotune/sql": "/packages/deploy/sql",
    "/usr/share/io-autotune/slurm/plugstack.conf": "/packages/deploy/etc/plugstack.conf",
}
"""Where the tree has what the blocks take from packages."""
_CHECKER = doctest.OutputChecker()
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_END = "\x1e"


def follow(
    site: Site,
    page: Path,
    sections: Collection[str],
    directory: str = NOW,
    hosts: Collection[str] = (SERVICE, LOGIN, *NODES),
    blocks: Collection[int] = (),
    words: Mapping[str, str] = MappingProxyType({}),
    after: Callable[[Step], None] = lambda _: None,
) -> int:
    """Execute blocks of some sections, on some hosts, and return how many commands ran.

    What a block assigns, and where it has gone, lasts until its end; it begins in the directory
    of the packages, or in the user's home.

    Raises:
        AssertionError: a command failed, or printed something else than the page says.

    """
    executed = 0
    kept: dict[tuple[int, str], str] = {}
    chosen = [step for step in steps(page, list(PROMPTS)) if step.section in sections]
    assert {step.section for step in chosen} == set(sections), f"{page.name} has other sections"
    chosen = [step for step in chosen if not blocks or step.block in blocks]
    for step in chosen:
        for host in PROMPTS[step.prompt]:
            if host in hosts:
                state = (step.block, f"{host} {step.prompt}")
                begins = "cd" if step.prompt.endswith("$") else f"cd {directory}"
                before = kept.get(state, begins)
                kept[state] = _execute(site, page, step, host, before, words)
                executed += 1
        after(step)
    return executed


def _execute(
    site: Site, page: Path, step: Step, host: str, before: str, words: Mapping[str, str]
) -> str:
    """Execute a step on a host, and return what brings the next one where this has left off."""
    command = step.command
    names = {"SERVICE": SERVICE, "ADDRESS": site[SERVICE].address, "ADMINS": ADMINS}
    for word, meant in {**names, "CLUSTER": CLUSTER}.items():
        command = re.sub(rf"\b{word}\b", meant, command)
    for word, meant in words.items():
        command = command.replace(word, meant)
    assigned = re.findall(r"^(\w+)=", command, re.M)
    assigned += re.findall(r"^declare -- (\w+)=", before, re.M)
    script = f"{before}\n{command}\n"
    script += f"printf '{_END}'; printf 'cd %q\\n' \"$PWD\"\n"
    script += "".join(f"declare -p {name}\n" for name in dict.fromkeys(assigned))
    user = ALICE if step.prompt.endswith("$") else "root"
    # A user's shell goes on after a command that fails: the page says what that prints.
    head = "set +e\n" if user == ALICE else ""
    said, _, left = site[host].run(head + script, user=user).rpartition(_END)
    where = f"{page.name}:{step.line}: {host}: {command}"
    if step.prints:
        found = _CHECKER.check_output(f"{step.prints}\n", said, _OPTIONS)
        assert found, f"{where}\nthe page says:\n{step.prints}\nit printed:\n{said}"
    return left


def blocks(page: Path, section: str) -> list[int]:
    """Return the lines at which a section's blocks begin."""
    found = (step.block for step in steps(page, list(PROMPTS)) if step.section == section)
    return list(dict.fromkeys(found))


def indented(page: Path, first: str) -> str:
    """Return the indented block of a page that begins with a line."""
    text = page.read_text(encoding="utf-8")
    block = re.search(rf"^    {re.escape(first)}\n(?:    .*\n)*", text, re.M)
    assert block, f"{page.name} has no block that begins with {first}"
    return re.sub(r"^    ", "", block[0], flags=re.M)
