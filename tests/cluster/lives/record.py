"""What a session of tests recorded, compared with lives.md or written into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster import command, files

from lives import ends, kinds, page
from lives.page import Legend, Row

PAGE = Path(__file__).resolve().parents[3] / "docs" / "measurements" / "lives.md"
"""The page."""

CLUSTERS = {
    "squeue": "Slurm's word comes from squeue; `PrologFlags=Alloc`; two nodes",
    "no Alloc": "the same without `PrologFlags=Alloc`: a prolog runs where a step starts",
    "four nodes": "as squeue, with four nodes",
    "four nodes, no Alloc": "both",
    "jobcomp": "Slurm's word comes from the job-completion script by way of the collector; it knows"
    " no suspension",
    "sacct": "Slurm's word comes from the accounting database",
    "none": "nobody can be asked for Slurm's word: the fallback rule",
    "memory": "as squeue, with task/cgroup and ConstrainRAMSpace",
    "preemption": "as squeue, with partitions that others preempt",
}
"""The clusters' make-ups and what they are."""


class Record:
    """The rows of one session, and the page as it was committed."""

    def __init__(self, *, writes: bool) -> None:
        """Read the page; ``writes`` tells whether it is to be renewed."""
        self._writes = writes
        text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        self._committed = page.parse(text)
        self._recorded: dict[tuple[str, str, str], Sequence[Row]] = {}

    def take(self, key: tuple[str, str, str], rows: Sequence[Row]) -> None:
        """Take the rows of one job; fail where the page says otherwise and is not to be renewed."""
        if self._writes:
            self._recorded[key] = rows
            return
        committed = [row for row in self._committed if row.key[:3] == key]
        told = page.differences(committed, rows)
        assert not told, "\n".join([*told, "if that is meant, 'make lives' writes it down"])

    def write(self) -> bool:
        """Write the page if that was asked for, and return whether it was."""
        if not self._recorded:
            return False
        rows = [row for rows in self._recorded.values() for row in rows]
        merged = page.merged(self._committed, rows, set(self._recorded))
        version = command.run(["slurmctld", "-V"]).stdout.split()[-1]
        files.write(PAGE, page.render(merged, legend(version)), mode=0o644)
        return True


def legend(version: str) -> Legend:
    """Return the words that the page explains; ``version`` is Slurm's."""
    return Legend(
        version=version,
        kinds=_meanings(kinds.KINDS),
        ends=_meanings(ends.ENDS),
        clusters=CLUSTERS,
    )


def _meanings(words: Sequence[kinds.Kind | ends.End]) -> Mapping[str, str]:
    return {word.name: word.means for word in words}
