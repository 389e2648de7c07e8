"""The tables of docs/sizing.md are what docs/measurements/bench.md says."""

import pytest
import sizing

BENCH = sizing.BENCH.read_text("utf-8")


def test_the_tables_are_computed_from_the_benchmark() -> None:
    page = sizing.PAGE.read_text("utf-8")
    assert page == sizing.renewed(page, sizing.read(BENCH)), "python3 tests/sizing.py"


def test_every_part_of_a_life_and_of_a_start_is_read() -> None:
    measured = sizing.read(BENCH)
    assert set(measured.life) == {"io-autotuned", "postgresql", "munged", "clients"}
    users = {"io-autotuned", "munged", "postgresql", "the nodes' sockets"}
    assert set(measured.node) == set(measured.task) == users


def test_twice_the_jobs_need_twice_as_much() -> None:
    cost = {"io-autotuned": 1.0, "munged": 0.0, "postgresql": 2.0}
    measured = sizing.Measured(life=cost, node=cost, task=cost, kib=1.0)
    lines = sizing.table(measured).splitlines()
    assert lines[4].startswith("| 1,000,000 | 27.8 | 0.03 processors | 0.06 processors |")
    assert "| 10,000 tasks of an array | 15.0 |" in lines


def test_a_benchmark_without_a_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="unpack"):
        sizing.read("| lives a second, without MUNGE | 1 |\n")
