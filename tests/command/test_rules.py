"""Rules for applications, as the service has them and as a file would have them."""

from __future__ import annotations

from pathlib import Path

from command.service import ALICE, BOB, ROOT, Service

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
MINE = """
[[rules]]
name = "mine"
job_name = '^nf-MADE_UP_.(?<sample>.*).$'
application = "sample-{sample}"
"""


def test_names_are_checked_as_the_service_would_take_them(served: Service) -> None:
    checked = served.ask(BOB, "rules", "check", "nf-ALIGN_(s1)", "run.sh", "ocean")
    shown = [(one["application"], one["observed"], one["rule"]) for one in checked]
    assert shown == [
        ("nf-ALIGN", False, "nextflow"),
        ("run.sh", True, None),
        ("ocean", False, None),
    ]
    by_comment = served.ask(BOB, "rules", "check", UUID, "--comment", "rule_align")
    assert by_comment[0]["application"] == "smk-align"
    # And the service takes them so.
    for name, application in (("nf-ALIGN_(s1)", "nf-ALIGN"), ("ocean", "ocean")):
        assert served.live(served.job(BOB, job_name=name))["application"] == application


def test_a_run_says_by_which_rule_its_application_was_named(served: Service) -> None:
    run = served.live(served.job(ALICE, job_name="nf-TOLD_(s2)"))
    shown = served.tuner(ALICE, "explain", str(run["job_id"])).stdout
    assert 'by rule nextflow, from the job\'s name "nf-TOLD_(s2)"' in shown
    run = served.run(ALICE, "named-by-hand")
    assert "by rule" not in served.tuner(ALICE, "explain", str(run["job_id"])).stdout


def test_rules_that_are_tried_say_what_would_become_of_histories(
    served: Service, shared: Path
) -> None:
    mine = shared / "mine.toml"
    mine.write_text(MINE, encoding="utf-8")
    runs = [
        served.live(served.job(ALICE, job_name=f"nf-MADE_UP_({sample})", comment="very-private"))
        for sample in ("s1", "s2")
    ]
    assert {run["application"] for run in runs} == {"nf-MADE_UP"}
    for user in (ALICE, ROOT):
        trial = served.ask(user, "rules", "try", str(mine))
        split = {one["becomes"]: one["what"] for one in trial["changes"] if "mine" in one["rules"]}
        assert split == {"sample-s1": ["split"], "sample-s2": ["split"]}
    of_bob = served.ask(BOB, "rules", "try", str(mine))
    assert not [one for one in of_bob["changes"] if "mine" in one["rules"]]
    shown = served.tuner(ALICE, "rules", "try", str(mine)).stdout
    assert "sample-s1" in shown
    checked = served.ask(BOB, "rules", "check", "--file", str(mine), "nf-MADE_UP_(x)")
    assert checked[0]["application"] == "sample-x"


def test_a_file_of_rules_that_is_wrong_is_refused_with_its_place(
    served: Service, shared: Path
) -> None:
    bad = shared / "bad.toml"
    bad.write_text(MINE.replace("{sample}", "{simple}"), encoding="utf-8")
    for command in (("rules", "check", "--file", str(bad), "x"), ("rules", "try", str(bad))):
        done = served.tuner(ALICE, *command)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert "simple" in done.stderr
        assert "bad.toml" in done.stderr
