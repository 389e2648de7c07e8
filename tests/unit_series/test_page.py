"""The page of the series: a run of some cells leaves the rows of the others."""

from __future__ import annotations

import os
from pathlib import Path

from series import __main__ as program
from series import page
from series.page import Kept, Result
from series.suites import SUITES

SUITE = SUITES[0]
PLAIN, CONFIGLESS = (cell.name for cell in SUITE.cells()[:2])
NOVEMBER = 1795478400.0
"""2026-11-24, in seconds since 1970."""


def result(cell: str, at: str = "2026-11-23", passed: int = 3) -> Result:
    return Result(SUITE.name, cell, passed, 1, 1, ("test_a::test_b",), ("`test_c`: no",), at)


def test_what_is_kept_is_read_back() -> None:
    kept = Kept({SUITE.name: {"slurmd": "22.05.8"}}, (result(PLAIN), result(CONFIGLESS)))
    text = page.dump(kept)
    assert page.load(text) == kept
    # Two runs that renew different cells change different lines.
    assert sum(PLAIN in line for line in text.splitlines()) == 1


def test_a_run_of_one_cell_leaves_the_rows_of_the_others() -> None:
    kept = Kept({SUITE.name: {"slurmd": "22.05.8"}}, (result(PLAIN), result(CONFIGLESS)))
    fresh = result(CONFIGLESS, "2026-11-24", passed=9)
    now = page.renewed(kept, {}, [fresh], {fresh.key})
    assert now == Kept(kept.versions, (result(PLAIN), fresh))
    text = page.render(now)
    for row in (f"{PLAIN} | 3 | 1 | 1 | 2026-11-23", f"{CONFIGLESS} | 9 | 1 | 1 | 2026-11-24"):
        assert f"| {SUITE.slurm} | {row} |" in text
    assert f"- {SUITE.slurm}, {PLAIN}: `test_a::test_b`" in text
    assert f"- {SUITE.slurm}: `test_c`: no" in text
    assert f"| {SUITE.name} | 22.05.8 |" in text


def test_a_cell_that_was_run_and_gave_nothing_keeps_no_old_row() -> None:
    kept = Kept({}, (result(PLAIN), result(CONFIGLESS)))
    assert page.renewed(kept, {}, [], {(SUITE.name, PLAIN)}).results == (result(CONFIGLESS),)


def test_files_of_an_earlier_run_do_not_replace_what_is_newer() -> None:
    kept = Kept({}, (result(PLAIN, "2026-11-24"),))
    for day in ("2026-11-23", "2026-11-24"):
        assert page.renewed(kept, {}, [result(PLAIN, day, passed=1)], set()) == kept
    later = result(PLAIN, "2026-11-25", passed=1)
    assert page.renewed(kept, {}, [later], set()).results == (later,)


def test_a_cell_that_is_none_any_more_goes() -> None:
    assert page.renewed(Kept({}, (result("auth/none"),)), {}, [], set()).results == ()


def test_what_pytest_wrote_is_counted(tmp_path: Path) -> None:
    cell = SUITE.cells()[0]
    assert page.read(SUITE, cell, tmp_path) is None
    file = tmp_path / "all.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="tests.cluster.test_x" name="test_1"/>'
        '<testcase classname="tests.cluster.test_x" name="test_2"><failure/></testcase>'
        '<testcase classname="tests.cluster.test_x" name="test_2"><error/></testcase>'
        '<testcase classname="tests.cluster.test_y" name="test_3"><skipped message="why"/>'
        "</testcase></testsuite></testsuites>",
        encoding="utf-8",
    )
    os.utime(file, (NOVEMBER, NOVEMBER))
    assert page.read(SUITE, cell, tmp_path) == Result(
        SUITE.name, cell.name, 1, 2, 1, ("test_x::test_2",), ("`test_y`: why",), "2026-11-24"
    )


def test_the_committed_page_is_made_of_what_is_committed() -> None:
    kept = page.load(program.KEPT.read_text(encoding="utf-8"))
    assert page.render(kept) == program.PAGE.read_text(encoding="utf-8")
    cells = {(suite.name, cell.name) for suite in SUITES for cell in suite.cells()}
    assert {one.key for one in kept.results} <= cells
