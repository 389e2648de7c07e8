"""What runs did besides taking time, from their judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
import psycopg

from io_autotune_report.load import database

RUNS = 100
"""So many of a study's last runs: one in ten of a settled one's is a control run."""

Measures = Mapping[int, Mapping[str, float]]
"""By run and name, positive numbers."""

_DECODER = msgspec.json.Decoder(dict[str, float])


def read(connection: psycopg.Connection, studies: Sequence[int], before: datetime) -> Measures:
    """Of studies' latest runs; a run that was judged again has its latest."""
    found = database.measures(connection, studies, before, RUNS)
    return {run: _DECODER.decode(text) for run, text in found}
