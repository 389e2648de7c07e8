"""Which application a job's name is: the site's rules, as users meet them."""

from __future__ import annotations

from pathlib import Path

from forging import forge
from harness import ALICE, BOB, ROOT, Site

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
MINE = """
[[rules]]
name = "mine"
job_name = '^nf-MADE_UP_.(?<sample>.*).$'
application = "sample-{sample}"
"""


def named(name: str, comment: str) -> str:
    """Return what the plugin would send of a job of this name; both need no escapes."""
    return f"name={name},comment={comment},mode=tune"


def test_samples_share_a_history_and_users_are_told_by_which_rule(
    site: Site, forger: Path, tmp_path: Path
) -> None:
    names = [f"nf-MADE_UP_%28{sample}%29" for sample in ("s1", "s2")]
    jobs = [forge(site, forger, named(name, "very-private")) for name in names]
    runs = [site.judged(job) for job in jobs]
    assert {run["application"] for run in runs} == {"nf-MADE_UP"}
    assert len({run["study_id"] for run in runs}) == 1
    shown = site.tuner(ALICE, "explain", str(jobs[1].job_id)).stdout
    assert 'by rule nextflow, from the job\'s name "nf-MADE_UP_(s2)"' in shown

    for stored in (
        "select count(*) from runs where request::text like '%very-private%'",
        "select count(*) from reports where body::text like '%very-private%'",
    ):
        assert site.sql(stored) == [["0"]], "a comment that decided nothing was kept"

    mine = tmp_path / "mine.toml"
    mine.write_text(MINE, encoding="utf-8")
    trial = site.ask(ROOT, "rules", "try", str(mine))
    split = {one["becomes"]: one["what"] for one in trial["changes"] if one["rules"] == ["mine"]}
    assert split == {"sample-s1": ["split"], "sample-s2": ["split"]}


def test_a_comment_is_kept_if_its_rule_reads_it(site: Site, forger: Path) -> None:
    comment = "rule_made_up_wildcards_s1"
    job = forge(site, forger, named(UUID, comment))
    assert site.judged(job)["application"] == "smk-made_up"
    assert site.explain(job)["request"]["comment"] == comment
    unread = forge(site, forger, named(UUID, "mine"))
    run = site.judged(unread)
    assert (run["application"], run["state"]) == ("unnamed", "not_counted")
    assert "comment" not in site.explain(unread)["request"]


def test_names_can_be_checked_by_anyone(site: Site) -> None:
    checked = site.ask(BOB, "rules", "check", "nf-ALIGN_(s1)", "run.sh", "ocean")
    shown = [(one["application"], one["observed"], one["rule"]) for one in checked]
    assert shown == [
        ("nf-ALIGN", False, "nextflow"),
        ("run.sh", True, None),
        ("ocean", False, None),
    ]
    by_comment = site.ask(BOB, "rules", "check", UUID, "--comment", "rule_align")
    assert by_comment[0]["application"] == "smk-align"
