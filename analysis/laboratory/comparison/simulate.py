"""Methods and tables for `io-autotune-simulate`, and figures of what it prints."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.tables import Table


@dataclass(frozen=True)
class Method:
    """A method under this report's name for it."""

    name: str
    text: str
    """As `--method` takes it."""


def figures(of_method: dict[str, Any]) -> dict[str, float | None]:
    """The means of a method on a table, by metric."""
    return {figure["metric"]: figure.get("value") for figure in of_method["figures"]}


def near(on: Table, share: float) -> int:
    """The number of parametrizations within `share` of the best time."""
    return sum(truth <= on.truths[on.best] * (1.0 + share) for truth in on.truths)


def without_noise(table: Table, directory: Path) -> Path:
    """Writes the table with each parametrization's mean for every run."""
    directory.mkdir(parents=True, exist_ok=True)
    described = dict(table.described)
    described["name"] = table.name
    described.pop("measures", None)
    path = directory / f"{table.name}.json"
    path.write_text(json.dumps(described), "utf-8")
    names = [parameter.name for parameter in table.parameters]
    lines = [",".join([*names, "time"])]
    for point, mean in zip(table.points, table.truths, strict=True):
        values = [p.values[level] for p, level in zip(table.parameters, point, strict=True)]
        fields = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
        lines.append(",".join([*fields, repr(mean)]))
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n", "utf-8")
    return path
