"""lives.md: what is written is read back, and what differs is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lives import page
from lives.page import Legend, Row
from lives.record import PAGE, legend
from lives.table import LONG, OTHER_CLUSTERS, QUICK

LEGEND = Legend(
    version="22.05.8",
    kinds={"batch": "sbatch", "srun": "from the shell"},
    ends={"COMPLETED": "well", "TIMEOUT, trapped": "late"},
    clusters={"squeue": "ours", "none": "nobody"},
)
ROW = Row(
    kind="batch",
    end="COMPLETED",
    cluster="squeue",
    launch="1",
    slurm="COMPLETED",
    state="counted",
    elapsed="yes",
    applied="default",
    role="baseline",
    why="completed in N s",
    runs_in="test",
)


def test_what_is_written_is_read_back() -> None:
    rows = [
        ROW,
        replace(ROW, launch="2", why="a | b"),
        replace(ROW, kind="srun", end="TIMEOUT, trapped", cluster="none", runs_in="slow"),
    ]
    assert page.parse(page.render(reversed(rows), LEGEND)) == rows


def test_the_overview_shows_what_was_run_and_nothing_else() -> None:
    text = page.render([ROW, replace(ROW, kind="srun", end="TIMEOUT, trapped")], LEGEND)
    assert "|  | COMPLETED | TIMEOUT, trapped |" in text
    assert "| batch | counted |  |" in text
    assert "| srun |  | counted |" in text


def test_rows_of_what_the_tests_no_longer_have_are_dropped() -> None:
    assert page.parse(page.render([ROW, replace(ROW, kind="fax")], LEGEND)) == [ROW]


def test_a_job_that_ran_again_gives_its_rows_anew_and_others_stay() -> None:
    other = replace(ROW, kind="srun")
    before = [ROW, replace(ROW, launch="2"), other]
    now = [replace(ROW, state="not_counted")]
    assert page.merged(before, now, {ROW.key[:3]}) == [other, *now]


def test_a_difference_names_the_row_and_both_sides() -> None:
    assert page.differences([ROW], [ROW]) == []
    (told,) = page.differences([ROW], [replace(ROW, state="censored")])
    assert told.startswith("batch, COMPLETED, squeue, 1: lives.md has ")
    assert "counted" in told
    assert "censored" in told
    (told,) = page.differences([], [ROW])
    assert "no row" in told
    (told,) = page.differences([ROW], [])
    assert told.endswith("now no row")


@pytest.mark.parametrize(
    ("sentence", "normalised"),
    [
        ("completed in 2.013 s", "completed in N s"),
        ("n2 has not reported", "NODE has not reported"),
        ("a step ended with wait status 768", "a step ended with wait status N"),
        ("the epilog was told exit code 0:15", "the epilog was told exit code N:N"),
    ],
)
def test_what_differs_from_run_to_run_is_taken_out(sentence: str, normalised: str) -> None:
    assert page.normalised(sentence) == normalised


def test_a_broken_page_is_not_taken_for_an_empty_one() -> None:
    with pytest.raises(ValueError, match="not one"):
        page.parse("## COMPLETED\n\n| batch | squeue |\n")


def test_the_page_has_just_the_combinations_that_are_run() -> None:
    run = {(entry.kind.name, entry.end.name, "squeue") for entry in (*QUICK, *LONG)}
    for cluster, entries in OTHER_CLUSTERS.items():
        run |= {(entry.kind.name, entry.end.name, cluster) for entry in entries}
    rows = page.parse(PAGE.read_text(encoding="utf-8"))
    assert {row.key[:3] for row in rows} == run, "run 'make lives'"


def test_every_word_of_the_tables_is_explained() -> None:
    known = legend("22.05.8")
    for make_up, entries in {"squeue": (*QUICK, *LONG), **OTHER_CLUSTERS}.items():
        assert make_up in known.clusters
        for entry in entries:
            assert known.kinds[entry.kind.name]
            assert known.ends[entry.end.name]
    names = [entry.name for entry in (*QUICK, *LONG)]
    assert len(names) == len(set(names)), "a combination is run twice"
