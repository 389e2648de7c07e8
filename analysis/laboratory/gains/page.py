"""The page of the results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from io_autotune_report.document import Gain

from gains.cases import Case

HEAD = """\
# What each accelerator gains here

Written by `make -C analysis accelerators-report`; do not edit. Each accelerator that is proven on
the cluster tunes a job of its own through `sbatch --io-autotune`. The workload is chosen so that
the default has a weakness: these are proofs that delivery and tuning work, and no promise for other
jobs or machines. Slow storage is a file system on a loop device whose rate the blkio cgroup
throttles.

The gain is of the runs made after the choice against control runs of the default interleaved with
them, as the [nightly report](../derivation/report-statistics.md) says it: the interval
holds for all looks of a study's life. *faster* is a claim; anything else is no gain here.
"""
TABLE = """
| accelerator | default | tuned | gain | interval | verdict | runs of both | all runs |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Row:
    """A case and its result."""

    case: Case
    skipped: str | None = None
    """Why this host cannot measure it."""
    gain: Gain | None = None
    study: dict[str, Any] | None = None
    """As ``io-autotune status --json`` has it."""
    runs: int = 0
    means: tuple[float | None, float | None] = (None, None)
    """Seconds: of the control runs, of the tuned runs."""


def page(rows: Sequence[Row], *, kernel: str, before: str = "") -> str:
    """Return the page; accelerators without a row keep their part of the page ``before``."""
    lines = dict(re.findall(r"^(\| `([a-z+-]+)` \|.*\n)", before, re.MULTILINE))
    lines = {name: line for line, name in lines.items()}
    sections = {
        name: section
        for section, name in re.findall(r"(\n## ([a-z+-]+)\n(?:(?!\n## ).|\n(?!## ))*)", before)
    }
    lines |= {row.case.accelerator: _line(row) for row in rows}
    sections |= {row.case.accelerator: _section(row, kernel) for row in rows}
    return HEAD + TABLE + "".join(lines.values()) + "".join(sections.values())


def _line(row: Row) -> str:
    name = f"`{row.case.accelerator}`"
    if row.gain is None:
        return f"| {name} | | | | | not measured | | |\n"
    default, tuned = ("" if mean is None else f"{mean:.2f} s" for mean in row.means)
    gain = row.gain
    cells = [name, default, tuned, _percent(gain.share), _interval(gain), _verdict(gain)]
    cells += [f"{gain.tuned_runs} and {gain.control_runs}", str(row.runs)]
    return f"| {' | '.join(cells)} |\n"


def _section(row: Row, kernel: str) -> str:
    text = f"\n## {row.case.accelerator}\n\n{row.case.what}.\n\n{row.case.why}\n\n"
    if row.gain is None or row.study is None:
        return text + f"Not measured: {row.skipped}.\n"
    differs = row.study["differs"]
    chosen = ", ".join(f"`{name}={value}`" for name, value in differs.items()) or "the default"
    text += f"Chosen: {chosen}.\n\n"
    needed = row.gain.runs_needed
    more = f" About {needed} more runs would tell." if needed else ""
    return text + f"{row.gain.reason}{more} Linux {kernel}.\n"


def _verdict(gain: Gain) -> str:
    return "faster" if gain.verdict == "faster" else f"no gain here ({_words(gain.verdict)})"


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")


def _interval(gain: Gain) -> str:
    if gain.low is None or gain.high is None:
        return "not bounded"
    return f"{_percent(gain.low)} .. {_percent(gain.high)}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
