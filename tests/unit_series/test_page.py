"""The page of the series: a run of some cells leaves the rows of the others."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from series import __main__ as program
from series import page
from series.functions import functions, of_cell
from series.page import Kept, Result
from series.suites import SUITES

SUITE = SUITES[0]
PLAIN, CONFIGLESS = (cell.name for cell in SUITE.cells()[:2])
VERSIONS = dict.fromkeys(page.PACKAGES, "1-1")
TESTS = ("test_a::test_b", "test_lives::test_c")
NOVEMBER = 1795478400.0
"""2026-11-24, in seconds since 1970."""


def result(cell: str, at: str = "2026-11-23", passed: int = 3) -> Result:
    return Result(
        SUITE.name,
        cell,
        passed,
        1,
        1,
        ("test_a::test_b",),
        ("`test_c`: no",),
        at,
        VERSIONS,
        TESTS if cell == PLAIN else TESTS[1:],
    )


def test_what_is_kept_is_read_back() -> None:
    kept = Kept((result(PLAIN), result(CONFIGLESS)), TESTS)
    text = page.dump(kept)
    assert page.load(text) == kept
    assert text.count(TESTS[0]) == 3, "once as a failure of each, and once in a list of both"
    # Two runs that renew different cells change different lines.
    assert sum(PLAIN in line for line in text.splitlines()) == 1


def test_a_run_of_one_cell_leaves_the_rows_of_the_others() -> None:
    kept = Kept((result(PLAIN), result(CONFIGLESS)))
    fresh = result(CONFIGLESS, "2026-11-24", passed=9)
    now = page.renewed(kept, [fresh], {fresh.key}, TESTS)
    assert now == Kept((result(PLAIN), fresh), TESTS)
    text = page.render(now)
    for row in (f"{PLAIN} | 3 | 1 | 1 | 2026-11-23", f"{CONFIGLESS} | 9 | 1 | 1 | 2026-11-24"):
        assert f"| {SUITE.slurm} | {row} |" in text
    assert f"- {SUITE.slurm}, {PLAIN}: `test_a::test_b`" in text
    assert f"- {SUITE.slurm}: `test_c`: no" in text
    assert f"| {SUITE.name} | {' | '.join(VERSIONS.values())} | all |" in text


def test_cells_that_ran_with_other_packages_have_rows_of_their_own() -> None:
    newer = replace(result(CONFIGLESS), versions={**VERSIONS, "MariaDB": "2-1"})
    text = page.render(Kept((result(PLAIN), newer), TESTS))
    assert f"| {SUITE.name} | {' | '.join(VERSIONS.values())} | {PLAIN} |" in text
    assert f"| {SUITE.name} | {' | '.join(newer.versions.values())} | {CONFIGLESS} |" in text


def test_a_failure_says_what_other_packages_came_since() -> None:
    now = {**VERSIONS, "MariaDB": "2-1"}
    assert page.since(result(PLAIN), now) == "; since 2026-11-23: MariaDB 1-1 is now 2-1"
    assert page.since(result(PLAIN), VERSIONS) == ""
    assert page.since(None, now) == ""


def test_the_page_says_which_tests_a_cell_has_not_had() -> None:
    tests = (*TESTS, "test_new::test_d")
    kept = Kept((result(PLAIN), result(CONFIGLESS)), tests)
    text = page.render(kept)
    assert f"- `test_new::test_d`: {SUITE.slurm}, {PLAIN}\n" in text
    assert f"- {SUITE.slurm}, {SUITE.cells()[2].name}: not known" in text, "it never ran"
    lacks = page.lacking(kept, tests)
    assert lacks[(SUITE.name, PLAIN)] == ("test_new::test_d",)
    assert (SUITE.name, CONFIGLESS) not in lacks, "it runs test_lives alone"


def test_a_cell_that_was_run_and_gave_nothing_keeps_no_old_row() -> None:
    kept = Kept((result(PLAIN), result(CONFIGLESS)))
    assert page.renewed(kept, [], {(SUITE.name, PLAIN)}, ()).results == (result(CONFIGLESS),)


def test_files_of_an_earlier_run_do_not_replace_what_is_newer() -> None:
    kept = Kept((result(PLAIN, "2026-11-24"),))
    for day in ("2026-11-23", "2026-11-24"):
        assert page.renewed(kept, [result(PLAIN, day, passed=1)], set(), ()) == kept
    later = result(PLAIN, "2026-11-25", passed=1)
    assert page.renewed(kept, [later], set(), ()).results == (later,)


def test_a_cell_that_is_none_any_more_goes() -> None:
    assert page.renewed(Kept((result("auth/none"),)), [], set(), ()).results == ()


def test_what_pytest_wrote_is_counted(tmp_path: Path) -> None:
    cell = SUITE.cells()[0]
    assert page.read(SUITE, cell, tmp_path) is None
    file = tmp_path / "all.xml"
    file.write_text(
        '<testsuites><testsuite><testcase classname="tests.cluster.test_x" name="test_1[a::b]"/>'
        '<testcase classname="tests.cluster.test_x" name="test_2"><failure/></testcase>'
        '<testcase classname="tests.cluster.test_x" name="test_2"><error/></testcase>'
        '<testcase classname="tests.cluster.test_y" name="test_3"><skipped message="why"/>'
        "</testcase></testsuite></testsuites>",
        encoding="utf-8",
    )
    os.utime(file, (NOVEMBER, NOVEMBER))
    (tmp_path / page.VERSIONS).write_text(json.dumps(VERSIONS), encoding="utf-8")
    assert page.read(SUITE, cell, tmp_path) == Result(
        SUITE.name,
        cell.name,
        1,
        2,
        1,
        ("test_x::test_2",),
        ("`test_y`: why",),
        "2026-11-24",
        VERSIONS,
        ("test_x::test_1", "test_x::test_2", "test_y::test_3"),
    )


def test_what_is_run_again_counts_as_it_came_out_then(tmp_path: Path) -> None:
    failed = '<testcase classname="tests.cluster.test_x" name="{}"><failure/></testcase>'
    passed = '<testcase classname="tests.cluster.test_x" name="{}"/>'
    first = "".join(failed.format(f"test_{n}") for n in (1, 2)) + passed.format("test_3")
    for day, (name, cases) in enumerate(
        {
            "z": first,
            "test_x.again-0": passed.format("test_1") + failed.format("test_2"),
        }.items()
    ):
        file = tmp_path / f"{name}.xml"
        file.write_text(f"<testsuites>{cases}</testsuites>", encoding="utf-8")
        os.utime(file, (NOVEMBER + day, NOVEMBER + day))
    found = page.read(SUITE, SUITE.cells()[0], tmp_path)
    assert found is not None
    assert (found.passed, found.failed) == (2, 1)
    assert (found.failures, found.alone) == (("test_x::test_2",), ("test_x::test_1",))
    text = page.render(Kept((found,)))
    assert f"passed alone (`SERIES_ARGS=--again`):\n\n- {SUITE.slurm}, {PLAIN}: `test_x::" in text


def test_the_functions_of_the_suite_are_read_without_importing_it(tmp_path: Path) -> None:
    plain = """
import not_there, pytest
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_one(n): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.array
def test_array(): pass
def helper(): pass
"""
    (tmp_path / "test_plain.py").write_text(plain, encoding="utf-8")
    slow = "pytestmark = [pytest.mark.slow]\ndef test_two(): pass\n"
    (tmp_path / "test_slow.py").write_text(slow, encoding="utf-8")
    (tmp_path / "helper.py").write_text("def test_no(): pass\n", encoding="utf-8")
    assert functions(tmp_path) == ("test_plain::test_one",)
    assert len(functions()) > 150
    assert of_cell(SUITE.cells()[1], functions()), "test_lives has one"


def test_the_committed_page_is_made_of_what_is_committed() -> None:
    kept = page.load(program.KEPT.read_text(encoding="utf-8"))
    assert page.render(kept) == program.PAGE.read_text(encoding="utf-8")
    cells = {(suite.name, cell.name) for suite in SUITES for cell in suite.cells()}
    assert {one.key for one in kept.results} <= cells


@pytest.mark.parametrize(
    "key", [(suite.name, cell.name) for suite in SUITES for cell in suite.cells()], ids="-".join
)
def test_the_committed_page_is_not_far_behind_the_suite(key: tuple[str, str]) -> None:
    kept = page.load(program.KEPT.read_text(encoding="utf-8"))
    lacks = page.lacking(kept, functions()).get(key, ())
    suite, cell = key
    assert key in {result.key for result in kept.results}, f"{suite}, {cell} was never run"
    assert len(lacks) <= page.LAG, (
        f"docs/measurements/series.md is older than the suite: {suite}, {cell} has not had"
        f" {len(lacks)} test functions, {', '.join(lacks[:3])} among them. As root:"
        f" make test-series SERIES_ARGS='--suite {suite} --cell \"{cell}\"'"
    )
