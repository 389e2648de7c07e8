"""Settings of a node: changed for a job that may, put back whatever happens, never for another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from devcluster import files
from harness import NEEDS_STRACE, Json, Site, asked, await_true, lines, writes
from page_cache import PIN, SHOW, VM, allowed, pinned_values, values

CACHE = "accelerator=page-cache"


@pytest.fixture(autouse=True)
def before(site: Site) -> Iterator[list[str]]:
    """Let the nodes change settings; in the end all are as they were, and nothing is saved."""
    with allowed(site) as found:
        yield found


def pinned(site: Site, app: str) -> None:
    """Make a study whose runs get the settings."""
    site.run("true", asked(app, CACHE), "--exclusive")
    site.pin(app, PIN)


def in_job(site: Site, app: str, *options: str) -> tuple[Json, list[str]]:
    """Run a job that shows the settings; return its run, and what it has seen."""
    job = site.sbatch(SHOW, asked(app, CACHE), *options)
    return site.judged(job), lines(site.output(job))


def test_settings_are_in_force_in_the_job_and_back_after_it(site: Site, before: list[str]) -> None:
    """Promise: a setting stays changed after a job"""
    app = "settings-applied"
    pinned(site, app)
    job = site.sbatch(SHOW, asked(app, CACHE), "--exclusive")
    run = site.counted(job)
    assert run["applied"]["kind"] == "parametrization"
    seen = lines(site.output(job))
    assert seen == pinned_values(before)
    assert values() == before
    (report,) = site.explain(job)["reports"]
    assert report["in_force"] == {
        "vm.dirty_bytes": "4294967296",
        "vm.dirty_expire_centisecs": "6000",
    }


@pytest.mark.parametrize(
    ("why", "options", "pin", "expected"),
    [
        ("shared", (), PIN, "--exclusive"),
        ("partition", ("--exclusive", "--partition=other"), PIN, "partition other"),
        ("range", ("--exclusive",), {"dirty_bytes": "268435456"}, "out of the range"),
        ("unnamed", ("--exclusive",), {"dirty_writeback_centisecs": "100"}, "not among"),
    ],
)
def test_what_the_node_does_not_allow_is_not_applied_and_does_not_count(
    site: Site,
    before: list[str],
    why: str,
    options: tuple[str, ...],
    pin: dict[str, str],
    expected: str,
) -> None:
    app = f"settings-{why}"
    first = site.run("true", asked(app, CACHE), *options)
    assert first["state"] == "counted", "a run of the default needs nothing"
    site.pin(app, pin)
    run, seen = in_job(site, app, *options)
    assert seen == before
    assert run["state"] == "not_counted"
    assert run["applied"]["kind"] == "incomplete"
    assert expected in run["applied"]["detail"]
    assert expected in run["verdict"]


def test_a_setting_that_somebody_else_changes_meanwhile_does_not_count(site: Site) -> None:
    app = "settings-changed"
    pinned(site, app)
    fence = site.paths.scratch / f"{app}.fence"
    job = site.sbatch(f"until [ -e {fence} ]; do sleep 0.1; done", asked(app, CACHE), "--exclusive")
    site.await_state(job, "RUNNING")
    # Slurm calls a job running before its prolog has ended.
    await_true("the job to have its settings", lambda: values()[4] == "6000")
    (VM / "dirty_expire_centisecs").write_text("700", encoding="utf-8")
    fence.touch()
    run = site.judged(job)
    assert run["state"] == "not_counted"
    assert "vm.dirty_expire_centisecs was 6000 and is 700" in run["verdict"]


def plain_job(site: Site) -> list[str]:
    """Run a job without us, and return what it has seen."""
    job = site.sbatch(SHOW)
    assert site.ended(job)["JobState"] == "COMPLETED"
    return lines(site.output(job))


@NEEDS_STRACE
def test_the_helper_is_killed_anywhere_in_the_prolog(site: Site, before: list[str]) -> None:
    """Promise: a setting stays changed after a job"""
    app = "settings-killed-start"
    pinned(site, app)
    applied = 0
    for call in writes(40, 1):
        with site.helper_killed("start", call):
            job = site.sbatch(SHOW, asked(app, CACHE), "--exclusive")
            assert site.ended(job)["JobState"] == "COMPLETED", f"killed in write {call}"
        seen = lines(site.output(job))
        whole = pinned_values(before)
        assert len(seen) == len(before)
        await_true(f"settings to be back, killed in write {call}", lambda: values() == before)
        applied += seen == whole
        run = site.judged(job)
        kind = run["applied"]["kind"]
        counts = kind == "parametrization"
        assert not counts or seen == whole, f"killed in write {call}: it counts for what it had not"
        assert kind != "default" or seen == before, f"killed in write {call}: no run of the default"
        if counts:
            # It was not killed any more: there are no further points.
            break
    assert call > 5, "it was never killed"
    assert applied > 0, "it was never killed once all was applied"


@NEEDS_STRACE
def test_the_helper_is_killed_anywhere_in_the_epilog(site: Site, before: list[str]) -> None:
    """Promise: a setting stays changed after a job"""
    app = "settings-killed-finish"
    pinned(site, app)
    late = 0
    for call in writes(20):
        with site.helper_killed("finish", call):
            job = site.sbatch("true", asked(app, CACHE), "--exclusive")
            assert site.ended(job)["JobState"] == "COMPLETED", f"killed in write {call}"
        late += values() != before
        assert plain_job(site) == before, f"killed in write {call}: a plain job is not spared"
        assert values() == before
        if call > 4 and not site.job_directories():
            break
        site.remove_job_directories()
    assert late > 0, "every epilog had put all back before it was killed"


def test_what_was_saved_at_a_reboot_is_forgotten(site: Site, before: list[str]) -> None:
    """Promise: a setting stays changed after a job"""
    saved = site.paths.plugin_spool / "saved" / site.cluster_name / "n1"
    saved.mkdir(parents=True, mode=0o700)
    target = '{"kind": "sysctl", "name": "vm.dirty_expire_centisecs"}'
    text = f'{{"boot_id": "another", "values": [{{"target": {target}, "value": "1"}}]}}'
    files.write(saved / "7.json", text.encode(), mode=0o400)
    site.sweep_as_at_boot()
    assert not saved.exists()
    assert values() == before
