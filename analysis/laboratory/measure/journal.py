"""The runs made so far, in files: an interrupted measurement continues with the missing runs."""

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from measure.plan import Plan, PlanError, Planned

COLUMNS = ("block", "place", "job_id", "started_at", "elapsed", "load")


@dataclass(frozen=True)
class Measured:
    """A run that counts."""

    planned: Planned
    job_id: int
    """Slurm's; 0 for what is no job."""
    started_at: datetime
    """By the service's clock; this machine's for what is no job."""
    elapsed: float
    """Seconds."""
    load: float | None = None
    """The machine's load average over the last minute as the run began, where somebody looked."""


class Journal:
    """``plan.json`` and ``runs.csv`` in one directory. A row is never changed."""

    def __init__(self, directory: Path, plan: Plan) -> None:
        """Opens or begins a plan's journal; PlanError if it is another plan's or unreadable."""
        directory.mkdir(parents=True, exist_ok=True)
        self._runs = directory / "runs.csv"
        noted = directory / "plan.json"
        text = json.dumps(plan.as_json(), indent=1) + "\n"
        if not noted.exists():
            noted.write_text(text, encoding="utf-8")
        elif noted.read_text(encoding="utf-8") != text:
            raise PlanError(
                f"{directory} holds runs of another plan (plan.json): remove the directory to"
                " measure anew, or go back to that plan"
            )
        self.measured = self._read()
        """The runs that were made so far, in the order of their rows."""

    def missing(self, runs: Iterable[Planned]) -> list[Planned]:
        """The planned runs that were not made yet, in their order."""
        made = {measured.planned for measured in self.measured}
        return [planned for planned in runs if planned not in made]

    def append(self, measured: Iterable[Measured]) -> None:
        """Adds runs. They survive this process; the machine's end only after `sync`."""
        new = list(measured)
        if not new:
            return
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        for run in new:
            planned = run.planned
            row = (
                planned.block,
                planned.place,
                run.job_id,
                run.started_at.isoformat(),
                repr(run.elapsed),
                "" if run.load is None else f"{run.load:.2f}",
            )
            rows.writerow(row)
        with self._runs.open("a", encoding="utf-8") as file:
            file.write(text.getvalue())
        self.measured += new

    def sync(self) -> None:
        """Writes the rows to disk; between blocks, as it would disturb a run."""
        with self._runs.open("a", encoding="utf-8") as file:
            os.fsync(file.fileno())

    def _read(self) -> list[Measured]:
        header = ",".join(COLUMNS) + "\n"
        if not self._runs.exists():
            self._runs.write_text(header, encoding="utf-8")
        text = self._runs.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            # The incomplete last row's run is made again.
            self._runs.write_text(whole, encoding="utf-8")
        measured = []
        for line, row in enumerate(csv.DictReader(whole.splitlines()), start=2):
            try:
                planned = Planned(int(row["block"]), int(row["place"]))
                measured.append(
                    Measured(
                        planned,
                        int(row["job_id"]),
                        datetime.fromisoformat(row["started_at"]),
                        float(row["elapsed"]),
                        float(row["load"]) if row["load"] else None,
                    )
                )
            except (KeyError, TypeError, ValueError) as error:
                raise PlanError(
                    f"{self._runs}, line {line}: {error!r}: correct it, or remove the line and its"
                    " run is made again"
                ) from error
        return measured
