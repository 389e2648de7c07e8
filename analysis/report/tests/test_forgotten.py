"""A kept report of which users were forgotten: nothing names them, and no figure changes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from io_autotune_report.forgotten import Forgotten, without_names
from sample_report import report


def test_who_was_forgotten_is_named_nowhere_and_all_figures_stay() -> None:
    whole = report(7)
    user = next(one.name for one in whole.exploring if one.budget_of == "user")
    theirs = [study for study in whole.studies if study.user == user]
    assert theirs, "the sample has studies of who spent something"
    forgotten = {
        study.study_id: Forgotten(study.study_id, f"forgotten-{study.study_id}", "left-1", None)
        for study in theirs
    }
    after = without_names(whole, forgotten)
    assert f'"{user}"' in json.dumps(asdict(whole))
    assert f'"{user}"' not in json.dumps(asdict(after))
    assert [one.name for one in after.exploring] == [
        "left-1" if (one.budget_of, one.name) == ("user", user) else one.name
        for one in whole.exploring
    ]
    assert [replace(one, name="") for one in after.exploring] == [
        replace(one, name="") for one in whole.exploring
    ]
    assert [study.node_hours for study in after.studies] == [
        study.node_hours for study in whole.studies
    ]
