"""Two accelerators at once: one study over both, delivered, read back and undone together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import ALICE, NEEDS_STRACE, Json, Site, asked, await_true, hints, lines, writes
from page_cache import PIN, SHOW, allowed, pinned_values, values

TOGETHER = "romio+page-cache"
BOTH = {**PIN, "cb_nodes": "8", "romio_ds_write": "disable"}
HINTS = {"cb_nodes": "8", "romio_ds_write": "disable"}
LOOK = f'{SHOW}; if [ -e "$ROMIO_HINTS" ]; then cat "$ROMIO_HINTS"; else echo none; fi'
"""Prints the settings of the node, and the hints, if there are any."""
LIBRARY = Path(__file__).resolve().parents[2] / "build/stage/lib/io-autotune/mpi-in-force-mpich.so"

FIRST = """
name = "first"
title = "A first accelerator"
[[parameters]]
name = "size"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.environment]]
variable = "FIRST_SIZE"
value = "{size}"
omit_default = true
"""
SECOND = FIRST.replace("first", "second").replace("FIRST", "SECOND")


@pytest.fixture
def before(site: Site) -> Iterator[list[str]]:
    """Let the nodes change settings of the page cache; return what they are."""
    with allowed(site) as found:
        yield found


def seen(site: Site, app: str, *options: str) -> tuple[Json, list[str], dict[str, str] | None]:
    """Run a job that looks; return its run, and the settings and hints that it has seen."""
    job = site.sbatch(LOOK, asked(app, TOGETHER), *options)
    run = site.judged(job)
    text = lines(site.output(job))
    return run, text[:6], None if text[6:] == ["none"] else hints("\n".join(text[6:]))


def test_both_are_in_force_in_the_job_and_undone_after_it(site: Site, before: list[str]) -> None:
    app = "together-applied"
    site.run("true", asked(app, TOGETHER), "--exclusive")
    study = site.pin(app, BOTH)
    assert study["accelerator"] == "page-cache+romio"
    library = site.paths.scratch / "mpi-in-force-together.so"
    library.write_bytes(LIBRARY.read_bytes())
    library.chmod(0o755)
    strided = "srun --mpi=pmi2 strided --file $HOME/together.data --block-size 512 --blocks 50"
    body = f"{LOOK}; export LD_PRELOAD={library}; {strided} --collective > /dev/null"
    # In the other order it is the same study.
    option = asked(app, "accelerator=page-cache+romio")
    job = site.sbatch(body, option, "--exclusive", "--ntasks=2")
    assert f"application {app}, accelerator page-cache+romio: the pinned values" in job.said()[0]
    run = site.counted(job)
    assert run["study_id"] == study["study_id"]
    assert run["applied"]["kind"] == "parametrization"
    text = lines(site.output(job))
    assert text[:6] == pinned_values(before)
    assert hints("\n".join(text[6:])) == HINTS
    assert values() == before
    assert not site.job_directories(), "the hints are still there"
    (report,) = site.explain(job)["reports"]
    assert report["in_force"] == {f"vm.{name}": value for name, value in PIN.items()}
    told = {one["parameter"]: one["in_force"] for one in report["told"]}
    assert told["romio_ds_write"] == "disable"
    for written in (TOGETHER, "page-cache+romio"):
        studies = site.ask(ALICE, "status", app, "--accelerator", written)
        assert [one["study_id"] for one in studies] == [study["study_id"]]
    site.ask(ALICE, "pin", app, "--end", "--why", "a test asks for it")
    reset = site.ask(ALICE, "reset", app, "--why", "a test asks for it")
    assert (reset["accelerator"], reset["epoch"]) == ("page-cache+romio", 2)


def test_where_the_job_shares_its_node_neither_is_applied(site: Site, before: list[str]) -> None:
    app = "together-shared"
    assert seen(site, app)[0]["state"] == "counted", "a run of the default needs nothing"
    site.pin(app, BOTH)
    run, settings, given = seen(site, app)
    assert (settings, given) == (before, None), "half a parametrization is none"
    assert (run["state"], run["applied"]["kind"]) == ("not_counted", "incomplete")
    assert "--exclusive" in run["verdict"]
    # Hints alone change nothing on a node.
    site.pin(app, HINTS)
    run, settings, given = seen(site, app)
    assert (settings, given, run["state"]) == (before, HINTS, "counted"), run["verdict"]


def test_where_a_node_does_not_allow_one_neither_is_applied(site: Site, before: list[str]) -> None:
    app = "together-not-allowed"
    assert seen(site, app, "--exclusive")[0]["state"] == "counted"
    site.pin(app, {"dirty_writeback_centisecs": "100", **HINTS})
    run, settings, given = seen(site, app, "--exclusive")
    assert (settings, given, run["state"]) == (before, None, "not_counted")
    assert "vm.dirty_writeback_centisecs" in run["verdict"]
    assert "not among" in run["verdict"]


@NEEDS_STRACE
def test_a_helper_that_is_killed_leaves_nothing_of_either(site: Site, before: list[str]) -> None:
    """Promise: a setting stays changed after a job"""
    app = "together-killed"
    site.run("true", asked(app, TOGETHER), "--exclusive")
    site.pin(app, BOTH)
    halves = 0
    for call in writes(40, 2):
        with site.helper_killed("start", call):
            run, settings, given = seen(site, app, "--exclusive")
        await_true(f"settings to be back, killed in write {call}", lambda: values() == before)
        await_true("the job's directory to be gone", lambda: not site.job_directories())
        whole = (settings, given) == (pinned_values(before), HINTS)
        halves += not whole and (settings, given) != (before, None)
        if run["applied"]["kind"] == "parametrization":
            assert whole, f"killed in write {call}: it counts for what it had not"
            # It was not killed any more: there are no further points.
            break
    assert call > 5, "it was never killed"
    assert halves > 0, "it was never killed when only one was in force"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("romio+romio", "names romio twice"),
        ("romio+page-cash", 'there is no accelerator "page-cash"; choose one of: block-online'),
        ("romio+", "nothing before or after a '+'"),
        ("romio+ompio+page-cache+block-queue", "22 parameters together, and a study takes 20"),
    ],
)
def test_what_cannot_be_tuned_together_is_refused_at_submission(
    site: Site, spec: str, why: str
) -> None:
    name = "together-refused"
    done = site.try_sbatch("true", f"--job-name={name}", asked(name, spec))
    assert done.returncode != 0, f"sbatch took {spec!r}"
    assert why in done.stderr
    assert site.jobs_named(name) == []
    shown = site.tuner(ALICE, "accelerators", "show", spec)
    assert shown.returncode == 4
    assert why in shown.stderr


def test_each_file_of_two_may_change_and_go(site: Site) -> None:
    app, spec = "together-changed", "second+first"
    paths = [site.paths.accelerators / f"{name}.toml" for name in ("first", "second")]

    def shown() -> Json | None:
        done = site.tuner(ALICE, "accelerators", "show", spec, "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def values_of(parameter: int) -> list[int]:
        found = shown()
        return found["space"][parameter]["values"] if found else []

    try:
        for path, text in zip(paths, (FIRST, SECOND), strict=True):
            path.write_text(text, encoding="utf-8")
        await_true("the accelerators to be there", lambda: shown() is not None)
        # Both call a parameter `size`: each says whose it is.
        site.run("true", asked(app, spec))
        study = site.pin(app, {"first.size": "2", "second.size": "4"})
        assert study["accelerator"] == "first+second"
        job = site.sbatch("echo $FIRST_SIZE $SECOND_SIZE", asked(app, spec))
        assert site.judged(job)["state"] == "counted"
        assert lines(site.output(job)) == ["2 4"]
        site.ask(ALICE, "pin", app, "--end", "--why", "a test asks for it")

        # A change of either opens a new epoch, which takes the runs that still fit.
        paths[1].write_text(SECOND.replace("[1, 2, 4]", "[1, 2]"), encoding="utf-8")
        await_true("the value to be gone", lambda: values_of(1) == [1, 2])
        run = site.run("true", asked(app, spec))
        assert (run["epoch"], run["role"]) == (2, "baseline")
        assert "2 of" in run["reason"], f"the default's first run is not known: {run['reason']}"

        # Both set one variable: told to whoever asks for both, and to nobody else.
        paths[1].write_text(SECOND.replace("SECOND_SIZE", "FIRST_SIZE"), encoding="utf-8")
        await_true("the two not to go together", lambda: shown() is None)
        refused = site.try_sbatch("true", asked(app, spec))
        assert refused.returncode != 0
        assert "first and second cannot be tuned together" in refused.stderr
        assert "both set the variable FIRST_SIZE" in refused.stderr
        assert site.run("true", asked("together-alone", "second"))["state"] == "counted"

        # One goes while a job of both runs: its report still counts, and its study is still there.
        paths[1].write_text(SECOND, encoding="utf-8")
        await_true("the two to go together", lambda: shown() is not None)
        fence = site.paths.scratch / f"{app}.fence"
        job = site.sbatch(f"until [ -e {fence} ]; do sleep 0.1; done", asked(app, spec))
        site.started(job)
        paths[1].unlink()
        await_true("one of them to be gone", lambda: shown() is None)
        fence.touch()
        assert site.judged(job)["state"] == "counted"
        (study,) = site.ask(ALICE, "status", app)
        assert study["accelerator"] == "first+second"
        refused = site.try_sbatch("true", asked(app, spec))
        assert 'there is no accelerator "second"' in refused.stderr
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
