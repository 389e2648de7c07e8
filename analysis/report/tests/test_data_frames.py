"""What docs/papers/data-frames.md shows runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest
from generated_site import Shape, assess, make, write
from io_autotune_report.frames import RUNS, STUDIES

DOCS = Path(__file__).parents[3] / "docs" / "papers" / "data-frames.md"
SHOWN = "postgres:///io_autotune?host=/var/run/postgresql&user=io-autotune-report"


@pytest.mark.store
def test_the_examples_run_and_give_what_they_say(database: str) -> None:
    year = make(Shape(applications=8, studies=12, runs=4000, days=90))
    with psycopg.connect(database, autocommit=True) as connection:
        write(connection, year)
    assess(database)
    text = DOCS.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python") == 5
    assert SHOWN in blocks[0]
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace(SHOWN, database), names)
    assert len(names["runs"]) == year.started_at.size
    romio = [
        place + 1 for place, each in enumerate(year.studies) if each.accelerator.name == "romio"
    ]
    assert set(names["mine"]["study_id"]) == set(romio)
    assert isinstance(names["slowest"], pd.Series)
    assert len(names["slowest"]) == 5
    assert {"elapsed", "role"} < set(names["table"].columns)
    assert len(names["claimed"]) > 0
    assert all(cv > 0 for cv in names["scatter"].values() if cv is not None)
    assert len(names["shares"]) == 3
    assert len(names["saved"]) == len(year.studies)


def test_the_page_names_every_column() -> None:
    text = DOCS.read_text()
    for column in {**RUNS, **STUDIES}:
        assert f"`{column}`" in text
