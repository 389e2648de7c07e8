"""Studies, the common rule, the comparison: without any peer's library."""

import json
import math
import random
from pathlib import Path

import pytest
from peers.program import Program
from peers.replay import Kept, Timed, replay_peer, run_methods, run_peers
from peers.report import BEST_PEER, Bootstrap, Comparison, Estimate, render
from peers.studies import Study, common_rule, score
from peers.tables import Table

ROOT = Path(__file__).parents[3]
BUDGET = 20


def quietly(done: int, of: int) -> None:
    """No progress is shown."""


def small(directory: Path, name: str = "small") -> Table:
    """Twelve parametrizations, 10 s to 21 s without noise; the default takes 21 s."""
    path = directory / f"{name}.json"
    parameters = [
        {"name": "a", "kind": "int", "values": [0, 1, 2, 3]},
        {"name": "b", "kind": "categorical", "values": ["x", "y", "z"]},
    ]
    described = {"parameters": parameters, "default": {"a": 3, "b": "z"}}
    path.write_text(json.dumps(described), "utf-8")
    rows = [f"{a},{b},{10 + 3 * a + 'xyz'.index(b)}" for a in range(4) for b in "xyz"]
    path.with_suffix(".csv").write_text("\n".join(["a,b,time", *rows]), "utf-8")
    return Table(path)


def test_a_study_is_scored_by_hand(tmp_path: Path) -> None:
    table = small(tmp_path)
    # 21, 10, 13 and 13 s; outside the table once.
    study = Study(0, (11, 0, None, 3, 3), 3)
    figures = score(table, study)
    assert figures.recommended == pytest.approx(1.3)
    assert figures.common == 1.0
    assert figures.average == pytest.approx((21 + 10 + 13 + 13) / 4 / 10)
    assert (figures.slower, figures.loss, figures.failed) == (0.0, 0.0, 1.0)
    assert study.times(table) == {11: [21.0], 0: [10.0], 3: [13.0, 13.0]}
    # A default in the middle: one run of four is slower, by 8/13.
    table.default = 3
    figures = score(table, study)
    assert (figures.slower, figures.loss) == (0.25, pytest.approx(8 / 13))


def test_the_common_rule_trusts_what_ran_often() -> None:
    often = [10.0, 12.0, 9.5, 11.0, 10.0, 11.5]
    # Once 10.3 s says less than six times 10.6 s, where means scatter little more than runs.
    assert common_rule({0: [10.3], 1: often, 2: [12.0, 13.5], 3: [12.5]}) == 1
    # Once 8 s says more, and so does 10.3 s where means are far apart.
    assert common_rule({0: [8.0], 1: often, 2: [12.0, 13.5], 3: [12.5]}) == 0
    assert common_rule({0: [10.3], 1: often, 2: [30.0, 33.0], 3: [90.0]}) == 0
    # Nothing ran twice; one alone; nothing.
    assert common_rule({0: [10.0], 1: [9.0]}) == 1
    assert common_rule({4: [10.0, 30.0]}) == 4
    assert common_rule({}) is None


def test_random_starts_at_the_default_and_keeps_to_its_seed(tmp_path: Path) -> None:
    table = small(tmp_path)
    one, same, other = (replay_peer(table, "random", seed, BUDGET).study for seed in (1, 1, 2))
    assert one == same
    assert one.runs != other.runs
    assert len(one.runs) == BUDGET
    assert one.runs[0] == table.default
    # Without noise the lowest time that was seen is the best that ran.
    assert table.truths[one.recommended] == min(table.truths[place] for place in one.runs)


def test_what_was_run_is_kept_and_only_what_is_missing_is_run(tmp_path: Path) -> None:
    table = small(tmp_path)
    told: list[tuple[int, int]] = []

    def run(seeds: range) -> list[Timed]:
        told.clear()
        studies = run_peers(
            [table], ["random"], seeds, BUDGET, tmp_path, 1, lambda *args: told.append(args)
        )
        return studies["small", "random"]

    first = run(range(2))
    assert told == [(1, 2), (2, 2)]
    file = tmp_path / "small--random.jsonl"
    # As if the program had been ended while it wrote the second study.
    file.write_text(file.read_text("utf-8")[:-20], "utf-8")
    again = run(range(3))
    assert told == [(1, 2), (2, 2)]
    assert [timed.study for timed in again[:2]] == [timed.study for timed in first]
    run(range(3))
    assert not told
    # Another budget: all that is kept is of no use.
    assert not Kept(tmp_path, table, "random", BUDGET + 1).studies


def test_the_interval_of_a_mean_covers() -> None:
    generator = random.Random(5)
    covered = 0
    for _ in range(40):
        numbers = [generator.gauss(1.0, 1.0) for _ in range(30)]
        interval = Estimate.of(Bootstrap(["t"], 30).means("t", numbers), 30)
        assert interval.low < interval.value < interval.high
        covered += interval.low <= 1.0 <= interval.high
    # 95 % are expected; 30 of 40 or fewer have a probability below 1e-4.
    assert covered > 30


def planted(tables: list[Table], seeds: int) -> Comparison:
    """`good` runs 10 s and 21 s in turn; `bad` and `worse` what is slower, on the same seeds."""
    studies = {}
    for table in tables:
        for name, places in {"good": (0, 11), "bad": (3, 11), "worse": (6, 11)}.items():
            studies[table.name, name] = [
                Timed(Study(seed, places * (5 + seed % 3), places[0]), 2.0) for seed in range(seeds)
            ]
    return Comparison(tables, ["good"], ["bad", "worse"], studies, 10)


def test_planted_differences_are_found_with_their_sizes(tmp_path: Path) -> None:
    comparison = planted([small(tmp_path), small(tmp_path, "second")], 24)
    ratio = comparison.ratio("good", ["bad"], "recommended", comparison.names)
    assert ratio.value == pytest.approx(1 / 1.3)
    assert (ratio.low, ratio.high) == pytest.approx((ratio.value, ratio.value))
    assert ratio.verdict() == "ahead"
    assert comparison.ratio("bad", ["good"], "average", ["small"]).verdict() == "behind"
    best = comparison.ratio("good", ["bad", "worse"], "average", comparison.names)
    assert best.value == pytest.approx((10 + 21) / (13 + 21))
    result = comparison.as_json()
    assert result["overall"]["worse"]["recommended"]["value"] == pytest.approx(1.6)
    assert result["computing_per_run"]["good"] == pytest.approx(0.2)
    assert all(math.isfinite(of["common"]["value"]) for of in result["overall"].values())
    command = "make -C analysis bench-peers"
    report = render(json.loads(json.dumps(result)), {"optuna": "5.0.0"}, command)
    assert "| the best peer of each table | 24 | 0.769 (0.769-0.769) ahead |" in report
    assert "## second" in report


def test_failed_runs_are_counted_together(tmp_path: Path) -> None:
    tables = [small(tmp_path), small(tmp_path, "second")]
    failing = {"good": (0, None), "bad": (None, None), "worse": (0, 0)}
    studies = {
        (table.name, name): [Timed(Study(seed, runs, 0), 1.0) for seed in range(20)]
        for table in tables
        for name, runs in failing.items()
    }
    comparison = Comparison(tables, ["good"], ["bad", "worse"], studies, 2)
    ratio = comparison.failures("good", "bad")
    assert ratio is not None
    assert (ratio.value, ratio.low, ratio.high, ratio.seeds) == (0.5, 0.5, 0.5, 20)
    assert comparison.failures("good", "worse") is None


def test_few_seeds_claim_nothing(tmp_path: Path) -> None:
    report = render(planted([small(tmp_path)], 6).as_json(), {}, "make -C analysis bench-peers")
    assert "| bad | 6 | 0.769 (0.769-0.769) |" in report
    assert "(0.769-0.769) ahead" not in report


def test_methods_are_compared_on_the_seeds_that_both_have(tmp_path: Path) -> None:
    tables = [small(tmp_path), small(tmp_path, "second")]
    every = {"good": range(30), "bad": range(25), "worse": range(5, 10)}
    studies = {
        (table.name, name): [
            # Even seeds are bad for all: who compares unlike seeds finds a difference.
            Timed(Study(seed, (11 if seed % 2 == 0 else 0,), 0), 1.0)
            for seed in seeds
            # The last seed of all is missing on the second table.
            if (table.name, seed) != ("second", seeds[-1])
        ]
        for table in tables
        for name, seeds in every.items()
    }
    comparison = Comparison(tables, ["good"], ["bad", "worse"], studies, 1)
    assert {name: len(seeds) for name, seeds in comparison.seeds.items()} == {
        "good": 29,
        "bad": 24,
        "worse": 4,
    }
    for peer, seeds in (("bad", 24), ("worse", 4)):
        ratio = comparison.ratio("good", [peer], "average", comparison.names)
        assert (ratio.value, ratio.low, ratio.high, ratio.seeds) == (1.0, 1.0, 1.0, seeds)
    # The best peer is one of those with enough seeds.
    assert comparison.baselines("good")[BEST_PEER] == ["bad"]


def test_what_was_kept_of_something_else_is_set_aside(tmp_path: Path) -> None:
    table = small(tmp_path)
    run_peers([table], ["random"], range(2), BUDGET, tmp_path, 1, quietly)
    file = tmp_path / "small--random.jsonl"
    before = file.read_text("utf-8")
    assert not Kept(tmp_path, table, "random", BUDGET + 1).studies
    assert file.read_text("utf-8") == before, "reading changes nothing"
    run_peers([table], ["random"], range(1), BUDGET + 1, tmp_path, 1, quietly)
    assert file.with_name("small--random.jsonl.old").read_text("utf-8") == before
    found = run_peers([table], ["random"], range(0), BUDGET + 1, tmp_path, 1, quietly)
    assert [timed.study.seed for timed in found["small", "random"]] == [0], "what is kept counts"


def test_our_own_studies_are_what_the_program_says(tmp_path: Path) -> None:
    program = tmp_path / "io-autotune"
    table = small(tmp_path)
    figures = [{"metric": "ET", "value": 0.5}]
    studies = [{"seed": 4, "runs": [11, 0, None], "recommended": 0}]
    methods = [{"figures": figures, "studies": studies}]
    answer = {"tables": [{"best": 10.0, "default": 21.0, "methods": methods}]}
    program.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(answer)}\nE\n", "utf-8")
    program.chmod(0o755)
    result = run_methods([table], ["default"], range(4, 5), 3, Program(program, 1))
    assert result == {("small", "default"): [Timed(Study(4, (11, 0, None), 0), 0.5)]}
