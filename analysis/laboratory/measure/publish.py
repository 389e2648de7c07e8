"""The published table, NAME.json and NAME.csv (docs/papers/simulate.md), and its summary."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from measure.agreement import Agreement, Matrix
from measure.journal import Measured
from measure.plan import Plan, Value


def csv_text(plan: Plan, measured: Sequence[Measured]) -> str:
    """A row per run, by parametrization and block; ``order``, its place in time, shows drift."""
    orders = {
        run.planned: order
        for order, run in enumerate(sorted(measured, key=lambda run: (run.started_at, run.job_id)))
    }
    loads = ["load"] if any(run.load is not None for run in measured) else []
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        [*(parameter.name for parameter in plan.parameters), "rep", "order", *loads, "time"]
    )
    points = plan.points
    for run in sorted(measured, key=lambda run: (run.planned.place, run.planned.block)):
        planned = run.planned
        load = [run.load] if loads else []
        row = (planned.block, orders[planned], *load, f"{run.elapsed:.4f}")
        rows.writerow([*points[planned.place], *row])
    return text.getvalue()


def json_text(plan: Plan, machine: Mapping[str, str], more: Mapping[str, Any]) -> str:
    """The space with its default, and how it was measured; readers ignore the latter."""
    parameters = ",\n".join(
        "  " + json.dumps({"name": p.name, "kind": p.kind, "values": list(p.values)})
        for p in plan.parameters
    )
    rest = {
        "default": plan.named(plan.default),
        **({"first": list(plan.first)} if plan.first else {}),
        "objective": plan.objective,
        "workload": str(plan.workload),
        "blocks": plan.blocks,
        "seed": plan.seed,
        "machine": dict(machine),
        **more,
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in rest.items())
    name = json.dumps(plan.accelerator)
    return f'{{\n "name": {name},\n "parameters": [\n{parameters}\n ],\n{lines}\n}}\n'


def write(
    directory: Path,
    plan: Plan,
    measured: Sequence[Measured],
    machine: Mapping[str, str],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Writes both files atomically; ``more`` is what else the JSON says."""
    texts = {"csv": csv_text(plan, measured), "json": json_text(plan, machine, more or {})}
    for suffix, text in texts.items():
        path = directory / f"{plan.accelerator}.{suffix}"
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.rename(path)


def matrix(plan: Plan, measured: Sequence[Measured]) -> Matrix:
    """Times in seconds, a row per parametrization and a column per block."""
    times = {run.planned: run.elapsed for run in measured}
    columns = [sorted(plan.block(b), key=lambda planned: planned.place) for b in range(plan.blocks)]
    return [[times[planned] for planned in row] for row in zip(*columns, strict=True)]


def summary(plan: Plan, times: Matrix, found: Agreement) -> str:
    """The summary in lines."""
    means = [fmean(row) for row in times]
    points = plan.points
    best = min(range(len(means)), key=means.__getitem__)
    default = means[points.index(plan.default)]
    differs = {
        parameter.name: value
        for parameter, value in zip(plan.parameters, points[best], strict=True)
        if value != parameter.default
    }
    slower = fmean(mean > default for mean in means)
    lines = {
        "runs": f"{len(means)} parametrizations x {plan.blocks} blocks",
        "means": f"{min(means):.3f} .. {max(means):.3f} s",
        "default": f"{default:.3f} s, {default / means[best]:.2f} times the best;"
        f" {slower:.0%} of the parametrizations are slower",
        "best": " ".join(f"{name}={value}" for name, value in differs.items()) or "the default",
        "variance, log time": f"parametrization {found.parametrization:.1%},"
        f" block {found.block:.1%}, rest {found.rest:.1%}",
        "intraclass corr.": f"{found.icc_run:.3f} of single runs, {found.icc_mean:.3f} of means",
        "Kendall's W": f"{found.kendall_w:.3f} (Friedman's chi-squared {found.friedman:.0f},"
        f" {len(means) - 1} degrees of freedom)",
        "medians of blocks": " ".join(f"{value:.3f}" for value in found.medians),
        "beyond Tukey's fence": f"{found.outliers:.1%} of the runs",
        "by parameter": "mean time under a value over the mean of all:",
    }
    told = [f"{word:<21}{text}" for word, text in lines.items()]
    return "\n".join([*told, *effects(plan, means)])


def effects(plan: Plan, means: Sequence[float]) -> list[str]:
    """The mean time under each value of each parameter, over all values of the others."""
    whole = fmean(means)
    lines = []
    for index, parameter in enumerate(plan.parameters):
        under: dict[Value, list[float]] = {value: [] for value in parameter.values}
        for point, mean in zip(plan.points, means, strict=True):
            under[point[index]].append(mean)
        shares = (f"{value} {fmean(found) / whole:.2f}" for value, found in under.items())
        lines.append(f"  {parameter.name:<19}{', '.join(shares)}")
    return lines
