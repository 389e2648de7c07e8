"""Commands of the pages, as tests execute them: blocks of ``console`` with prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Step:
    """A command of a page, and what the page says that it prints."""

    section: str
    """The heading above it."""
    block: int
    """The line at which its block begins."""
    line: int
    prompt: str
    command: str
    prints: str


def steps(page: Path, prompts: Sequence[str]) -> Iterator[Step]:
    """Yield the commands of a page's console blocks; ``> `` goes on with one.

    Raises:
        AssertionError: a block begins without a command.

    """
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^( *)```console\n(.*?)^ *```$", text, re.M | re.S):
        section = re.findall(r"^#+ (.*)$", text[: block.start()], re.M)[-1]
        lines: list[tuple[int, str, list[str], list[str]]] = []
        first = text[: block.start()].count("\n") + 2
        for number, indented in enumerate(block[2].splitlines(), start=first):
            line = indented.removeprefix(block[1])
            prompt = next((each for each in prompts if line.startswith(f"{each} ")), None)
            if prompt is not None:
                lines.append((number, prompt, [line[len(prompt) + 1 :]], []))
                continue
            assert lines, f"{page.name}: a block without a command at line {first}"
            _, _, command, prints = lines[-1]
            if line.startswith("> ") and not prints:
                command.append(line[2:])
            else:
                prints.append(line)
        for number, prompt, command, prints in lines:
            yield Step(section, first, number, prompt, "\n".join(command), "\n".join(prints))
