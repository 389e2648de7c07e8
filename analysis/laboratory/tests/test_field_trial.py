"""The field trial: its list, what its records say, its page, its jobs' scripts, and the cable."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from field_trial import figures, jobs, records
from field_trial.listing import Application, ListError, read
from field_trial.measure import compared, said
from field_trial.page import page
from field_trial.records import Record, Run, Said
from field_trial.storages import Place

ROOT = Path(__file__).resolve().parents[3]
TRIAL = ROOT / "analysis/laboratory/field_trial"
CATALOGUE = ROOT / "deploy/accelerators.d"
KEPT = ROOT / "analysis/data/field"
FAST = {"transfers": "32"}


def run(elapsed: float | None, setting: dict[str, str] | None = None, result: str = "same") -> Run:
    counted = elapsed is not None
    verdict = "" if counted else "Slurm says FAILED; no route"
    return Run(setting or {}, elapsed, counted, verdict, result, load=1.5)


def saying(runs: int, verdict: str, *, high: float | None = None, fast: bool = False) -> Said:
    chosen = FAST if fast else {}
    return Said(runs, "settled", "it was the quickest", verdict, 0.4, high, chosen, "")


def a_record() -> Record:
    """Four runs of a study that found half the time, and three blocks that show it."""
    return Record(
        "rclone-stage-in",
        began="2026-11-29 12:00",
        kernel="6.18",
        versions={"rclone": "1.60"},
        study=[run(4.0), run(4.2), run(2.0, FAST), run(None, FAST)],
        said=[
            saying(1, "not_yet"),
            saying(2, "faster", high=0.6, fast=True),
            saying(3, "not_yet", fast=True),
            saying(4, "faster", high=0.6, fast=True),
        ],
        blocks=[
            {"default": run(4.0), "transfers=32": run(2.0, FAST)},
            {"default": run(4.4), "transfers=32": run(2.0, FAST)},
            {"default": run(4.0), "transfers=32": run(2.2, FAST)},
        ],
    )


def the_list() -> list[Application]:
    return read(TRIAL / "trial.toml", CATALOGUE)


def test_the_list_has_known_and_drawn_programs_each_with_an_accelerator_that_is_shipped() -> None:
    applications = the_list()
    assert len([one for one in applications if one.drawn]) >= 5
    assert len([one for one in applications if one.storage.cable is not None]) >= 6
    for one in applications:
        assert one.grid, one.name
        assert '"{work}/result"' in one.script or "{work}/result" in one.script, one.name


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("transfers = 8,", "transfers = 7,", r"rclone-stage-in: rclone-copy has no transfers=7"),
        ('"rclone-stage-in"', '"xarray-on-s3"', r"two applications are called xarray-on-s3"),
        ('accelerator = "openfoam@risk"', 'accelerator = "foam"', r"there is no accelerator foam"),
        ('storage = "glusterfs"', 'storage = "tape"', r"openfoam-cavity: 'tape' is missing"),
        ("[storage.s3]", "[storage.s3", r"trial.toml: "),
    ],
)
def test_a_wrong_list_is_refused_in_words(
    was: str, becomes: str, told: str, tmp_path: Path
) -> None:
    text = (TRIAL / "trial.toml").read_text("utf-8")
    assert was in text
    wrong = tmp_path / "trial.toml"
    wrong.write_text(text.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(ListError, match=told):
        read(wrong, CATALOGUE)


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    a_record().save(path)
    assert records.load(path) == a_record()
    assert not list(tmp_path.glob("*.draft"))


def test_a_ratio_is_of_one_block_and_a_failed_run_gives_none() -> None:
    blocks = a_record().blocks
    assert figures.ratios(blocks, "transfers=32") == pytest.approx([2.0, 2.2, 4.0 / 2.2])
    blocks[1]["transfers=32"] = run(None, FAST)
    assert len(figures.ratios(blocks, "transfers=32")) == 2
    interval = figures.geometric(figures.ratios(a_record().blocks, "transfers=32"))
    assert interval is not None
    assert interval.middle == pytest.approx(2.0)
    assert (interval.low, interval.high) == pytest.approx((1.578, 2.534), abs=0.001)
    assert figures.geometric([]) is None
    assert figures.geometric([2.0]) == figures.Interval(2.0, of=1)


def test_a_winner_by_chance_is_not_judged_by_the_runs_that_made_it_one() -> None:
    """Two settings that are the default: one looks good in one block, the other in another."""
    quick, usual, slow = run(1.0), run(2.0), run(2.1)
    blocks = [
        {"default": usual, "a=1": quick, "b=1": slow},
        {"default": usual, "a=1": slow, "b=1": slow},
        {"default": usual, "a=1": slow, "b=1": slow},
    ]
    name, judged = figures.best(blocks, [{"a": "1"}, {"b": "1"}])
    assert name == "a=1", "by all blocks it looks best"
    assert judged is not None
    assert judged.middle < 1.0, "where it did not make itself the winner it wins nothing"


def test_all_runs_of_a_study_are_its_cost() -> None:
    record = a_record()
    whole = figures.whole_study(record)
    assert whole is not None
    # Five runs of the default take 4.12 s each; the study's four, a failed one among them, 10.2 s.
    assert whole.middle == pytest.approx(4 * 4.12 / 10.2)
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < whole.middle < whole.high
    record.study[3] = replace(record.study[3], elapsed=10.0)
    later = figures.whole_study(record)
    assert later is not None
    assert later.middle < 1, "the failed run's time is counted too"


def test_a_claim_counts_from_where_it_is_kept() -> None:
    record = a_record()
    assert figures.claimed_after(record) == 4, "the claim after two runs was taken back"
    assert figures.nothing_after(record) is None
    record.said = [
        saying(1, "not_yet"),
        saying(2, "undecided", high=0.2),
        saying(3, "undecided", high=0.04, fast=True),
        saying(4, "undecided"),
    ]
    record.said[0] = replace(record.said[0], phase="search")
    record.said[1] = replace(record.said[1], phase="search")
    assert figures.claimed_after(record) is None
    assert figures.nothing_after(record) == 3


def test_results_that_differ_are_told_by_their_settings() -> None:
    record = a_record()
    assert figures.others_results(record) == []
    record.study[2] = replace(record.study[2], result="other")
    assert figures.others_results(record) == [FAST]
    record.study[0] = replace(record.study[0], result="third")
    assert figures.others_results(record) is None, "the default's own results differ"


def test_the_page_has_what_gained_and_what_did_not_run() -> None:
    applications = the_list()
    broken = Record("xarray-on-s3", kernel="6.18", problem="the S3 gateway did not answer")
    text = page(applications, {"rclone-stage-in": a_record(), "xarray-on-s3": broken})
    assert all(f"\n## {one.name}\n" in text for one in applications)
    (row,) = [line for line in text.splitlines() if line.startswith("| [rclone-stage-in]")]
    assert "**2.00** (1.58 to 2.53)" in row
    assert "faster, 40% to 60% less time, after 4 runs" in row
    assert "It did not run to its end: the S3 gateway did not answer" in text
    assert text.count("It has not been run yet.") == len(applications) - 2
    assert "One run does not count" in text
    assert "`transfers=32`: Slurm says FAILED; no route" in text
    assert "above 1.3 for 1 of 1" in text
    assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith("|"))
    assert "- Verdicts that the blocks contradict: none." in text


def test_the_published_page_is_made_of_the_published_runs() -> None:
    kept = {path.stem: records.load(path) for path in sorted(KEPT.glob("*.json"))}
    published = (ROOT / "docs/measurements/field-trial.md").read_text("utf-8")
    assert page(the_list(), kept) == published
    assert all(record.said[-1].runs == len(record.study) for record in kept.values())


def test_a_claim_that_the_blocks_exclude_is_called_wrong() -> None:
    record = a_record()
    record.blocks = [
        {"default": run(2.0 + step / 100), "transfers=32": run(4.0, FAST)} for step in range(4)
    ]
    text = page(the_list(), {record.application: record})
    assert "- Verdicts that the blocks contradict: rclone-stage-in." in text


def test_what_status_tells_becomes_what_is_kept() -> None:
    gain = {"verdict": "faster", "low": 0.1, "high": 0.3}
    told = {
        "phase": "settled",
        "why": "quickest",
        "differs": {"transfers": 32},
        "assessment": {"gain": gain},
        "next": {"rule": "settled"},
    }
    one = said(20, told)
    assert (one.chosen, one.verdict, one.low, one.high) == (FAST, "faster", 0.1, 0.3)
    early = said(1, {**told, "assessment": None, "differs": None})
    assert (early.chosen, early.verdict, early.low) == ({}, "undecided", None)


def test_the_studys_choice_is_compared_once() -> None:
    (rclone, *_others) = the_list()
    record = a_record()
    assert compared(rclone, Record("none")) == [{}, *rclone.grid]
    assert compared(rclone, record) == [{}, *rclone.grid, FAST]
    record.said.append(replace(record.said[-1], chosen=rclone.grid[0]))
    assert compared(rclone, record) == [{}, *rclone.grid]


def test_a_job_is_a_script_that_bash_takes(tmp_path: Path) -> None:
    place = Place(tmp_path / "a place", {"AWS_ENDPOINT_URL": "http://10.77.0.2:9000"})
    places = {"programs": "/programs", "inputs": "/inputs", "python": "/venv/python"}
    for one in the_list():
        text = jobs.script(one, place, places, tmp_path / "output")
        assert f"{tmp_path}/a place/result" in text
        assert "export AWS_ENDPOINT_URL=http://10.77.0.2:9000" in text
        for word in ("{work}", *(f"{{{name}}}" for name in places)):
            assert word not in text
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_a_checksum_is_of_names_and_contents(tmp_path: Path) -> None:
    result = tmp_path / "result"
    assert jobs.checksum(result) == ""
    result.mkdir()
    (result / "a").write_text("one", encoding="utf-8")
    first = jobs.checksum(result)
    (result / "a").rename(result / "b")
    second = jobs.checksum(result)
    (result / "b").write_text("two", encoding="utf-8")
    assert len({first, second, jobs.checksum(result)}) == 3


def test_the_last_line_of_a_failed_job_is_told(tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert jobs.last_line(output) == "it left no output"
    output.write_text("begins\nno route to host\n\n", encoding="utf-8")
    assert jobs.last_line(output) == "no route to host"


def test_the_cables_queue_keeps_delay_rate_and_order(tmp_path: Path) -> None:
    argv = ["make", "--no-print-directory", f"BUILD={tmp_path}", "-C", str(TRIAL / "wire"), "test"]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 3 test(s)." in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [["wire"], ["wire", "cable", "a", "b", "-1", "0"], ["wire", "cable", "a", "b", "1", "x"]],
)
def test_the_cable_refuses_what_is_no_number(words: list[str], tmp_path: Path) -> None:
    make = ["make", "--no-print-directory", f"BUILD={tmp_path}", "-C", str(TRIAL / "wire"), "all"]
    subprocess.run(make, check=True, capture_output=True)
    done = subprocess.run(
        [str(tmp_path / words[0]), *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "usage: wire" in done.stderr or "give a whole number" in done.stderr
