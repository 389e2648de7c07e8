"""What agents inside jobs did, from nodes' records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
import psycopg

from io_autotune_report.document import InsideJob
from io_autotune_report.load import database

RUNS = 20
"""So many of a study's last runs are looked through: control runs have no agent."""
_SECOND = 1000.0


class _Entry(msgspec.Struct):
    at_ms: int
    bandwidth: int
    values: list[int]
    moves: int


class _Record(msgspec.Struct):
    policy: str
    levers: list[str]
    began: list[int]
    entries: list[_Entry]


def read(
    connection: psycopg.Connection, studies: Sequence[int], before: datetime
) -> dict[int, InsideJob]:
    """By study, what is to be drawn of it; none of a study whose jobs have no agent."""
    found = database.online(connection, studies, before, RUNS)
    return {study: inside_job(*each) for study, each in found.items()}


def inside_job(ordinal: int, node: str, record: str) -> InsideJob:
    """Of one record, as a node has told it: a newer service's has more fields."""
    told = msgspec.json.decode(record, type=_Record)
    return InsideJob(
        ordinal=ordinal,
        node=node,
        policy=told.policy,
        levers=told.levers,
        began=told.began,
        entries=[
            InsideJob.Entry(each.at_ms / _SECOND, float(each.bandwidth), each.values, each.moves)
            for each in told.entries
        ],
    )
