from __future__ import annotations
from collections.abc import Mapping, Sequence
from field_trial.listing import Application
from field_trial.records import Record


def page(applications: Sequence[Application], kept: Mapping[str, Record]) -> str:
    return ""
