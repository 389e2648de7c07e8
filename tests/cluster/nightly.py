"""The nightly report, made of a cluster's database."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from devcluster import render
from devcluster.users import DATABASE_ADMIN
from harness import Json, Site

TREE = Path(__file__).resolve().parents[2]
PYTHON = TREE / "build/venv-report/bin/python"
"""It has what the report needs."""

needs_report = pytest.mark.skipif(
    not PYTHON.exists(), reason="the report's environment (build/venv-report) is not made"
)


@dataclass(frozen=True)
class Night:
    """A report."""

    document: Json
    page: str


def publish(site: Site) -> None:
    """Make today's where the cluster's service gives it out."""
    _make(site, site.paths.nights.with_name("nights-state"), site.paths.nights, render.DATABASE)


def _make(site: Site, state: Path, nights: Path, database: str) -> Path:
    url = render.database_url(site.paths, site.record(), DATABASE_ADMIN, database)
    argv = [str(PYTHON), "-m", "io_autotune_report.command", f"--database={url}"]
    argv += [f"--state={state}", f"--nights={nights}"]
    argv += [f"--first={datetime.now().astimezone().date()}", "--processes=1"]
    run = subprocess.run(
        argv, cwd=TREE / "analysis/report", check=True, text=True, stdout=subprocess.PIPE
    )
    return Path(run.stdout.strip())


def report(site: Site, directory: Path, database: str = render.DATABASE) -> Night:
    """Make today's; what was read for one before in the same directory is not read again."""
    page = _make(site, directory / "state", directory / "nights", database)
    return Night(
        json.loads(page.with_name("report.json").read_bytes()), page.read_text(encoding="utf-8")
    )
