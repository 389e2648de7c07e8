"""A command of the site's that starts something for a job, and is stopped whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devcluster import files
from harness import ALICE, Job, Site, asked, await_true, lines
from mounting import KINDS, NODE_TOML, OTHERWISE, Kind, fuse_for_users, mounted

BUFFER = """
name = "stager"
title = "A burst buffer that a command of the site's starts"
description = "Made by a test."
takes_effect = "when the job starts"
needs = ["exclusive", "root"]
[[parameters]]
name = "workers"
kind = "ordered"
values = [1, 2, 4]
default = 1
[delivery.command]
name = "buffer"
provides = ["BUFFER_DIR"]
environment = [{ variable = "BUFFER_WORKERS", value = "{workers}" }]
"""

COMMAND = """#!/bin/bash
# $1: start or stop; $2: a directory of the test's.
who="uid=$UID groups=$(id -G) first=$IO_AUTOTUNE_FIRST_NODE dir=$IO_AUTOTUNE_DIR"
echo "$1 workers=$BUFFER_WORKERS job=$IO_AUTOTUNE_JOB_ID $who" >> "$2/log"
"""

FUSE = ("fuse", "fuseblk")
"""How stat(1) calls it, from coreutils 9.6 on and before."""


def names(site: Site) -> list[str]:
    """Return the accelerators that the service knows."""
    return [accelerator["name"] for accelerator in site.ask(ALICE, "accelerators", "list")]


@contextmanager
def buffer(site: Site, start: str = "", *, start_ms: int = 1000) -> Iterator[Path]:
    """Have an accelerator whose command logs, and then does as it is told; return where it logs."""
    place = site.paths.scratch / "buffer"
    place.mkdir()
    place.chmod(0o777)
    command = site.paths.bin / "buffer"
    script = f'{COMMAND}[ "$1" = start ] || exit 0\n{start}\necho BUFFER_DIR="$2/$BUFFER_WORKERS"\n'
    files.write(command, script, mode=0o755)
    catalogue = site.paths.accelerators / "stager.toml"
    catalogue.write_text(BUFFER, encoding="utf-8")
    argv = [f'["{command}", "{verb}", "{place}"]' for verb in ("start", "stop")]
    config = (
        f'{NODE_TOML}[[commands]]\nname = "buffer"\nstart = {argv[0]}\nstop = {argv[1]}\n'
        f"start_ms = {start_ms}\n"
    )
    try:
        await_true(
            "the accelerator to be there",
            lambda: "stager" in names(site),
        )
        with site.nodes_configured(config):
            yield place
    finally:
        catalogue.unlink()
        command.unlink()
        shutil.rmtree(place)
        await_true(
            "the accelerator to be gone",
            lambda: "stager" not in names(site),
        )


def test_a_command_starts_and_stops_with_the_job(site: Site) -> None:
    """Promise: a setting stays changed after a job"""
    app, option = "commands-buffer", "accelerator=stager"
    with buffer(site) as place:
        site.run("true", asked(app, option), "--exclusive")
        assert not (place / "log").exists(), "for the default nothing is started"
        site.pin(app, {"workers": "4"})
        body = f"echo $BUFFER_DIR; srun -n1 printenv BUFFER_DIR; wc -l < {place}/log"
        job = site.sbatch(body, asked(app, f"{option},dir=/project/x"), "--exclusive")
        site.counted(job)
        assert lines(site.output(job)) == [f"{place}/4", f"{place}/4", "1"]
        log = lines((place / "log").read_text(encoding="utf-8"))
        uid = (site.paths.home(ALICE)).stat().st_uid
        gid = (site.paths.home(ALICE)).stat().st_gid
        told = f"workers=4 job={job.job_id} uid={uid} groups={gid} first=yes dir=/project/x"
        assert log == [f"start {told}", f"stop {told}"], "as the user, in no group but the job's"


@pytest.mark.parametrize(
    ("how", "start", "why"),
    [
        ("fails", "exit 3", "exit status: 3"),
        ("hangs", "sleep 600", "not ended after 500 ms"),
        ("mumbles", "echo nothing; exit 0", "not printed BUFFER_DIR"),
    ],
)
def test_a_command_that_fails_costs_the_job_nothing(
    site: Site, how: str, start: str, why: str
) -> None:
    """Promise: a job fails"""
    app, option = f"commands-{how}", "accelerator=stager"
    with buffer(site, start, start_ms=500) as place:
        site.run("true", asked(app, option), "--exclusive")
        site.pin(app, {"workers": "2"})
        job = site.sbatch("echo ${BUFFER_DIR-none}", asked(app, option), "--exclusive")
        assert site.ended(job)["JobState"] == "COMPLETED"
        run = site.judged(job)
        assert lines(site.output(job)) == ["none"]
        assert run["state"] == "not_counted"
        assert why in run["verdict"]
        log = lines((place / "log").read_text(encoding="utf-8"))
        assert [line.split()[0] for line in log] == ["start", "stop"], "what failed is stopped"


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    """Let users open /dev/fuse for this kind of mount, or skip the test."""
    with fuse_for_users(*request.param.programs):
        yield request.param


of_each_kind = pytest.mark.parametrize(
    "kind", KINDS, indirect=True, ids=[kind.accelerator for kind in KINDS]
)


@of_each_kind
def test_a_job_has_its_storage_by_a_mount_of_its_own(site: Site, kind: Kind) -> None:
    """Every run has the mount: the default's and the tuned one's, with and without a service."""
    app = f"commands-{kind.daemon.split()[0]}"
    with mounted(site, kind) as there:
        there.put("input", "what the job reads\n")
        body = (
            f'cd "${kind.variable}"; cat input; stat --file-system --format %T input; '
            "{ echo written > output.$SLURM_JOB_ID; } 2> /dev/null && echo written; true"
        )

        def has_its_mount(job: Job) -> None:
            text = lines(site.output(job))
            assert text[0] == "what the job reads"
            assert text[1] in FUSE, "it was not read through FUSE"
            assert ("written" in text) != kind.is_read_only
            await_true("what served it to be gone", lambda: not list(there.mounts.iterdir()))
            assert not there.daemons(kind)
            if not kind.is_read_only:
                assert there.kept(f"output.{job.job_id}") == "written\n"

        default = site.sbatch(body, asked(app, kind.option), "--exclusive")
        run = site.judged(default)
        assert (run["state"], run["applied"]["kind"]) == ("counted", "default"), run["verdict"]
        has_its_mount(default)
        site.pin(app, kind.pin)
        job = site.sbatch(body, asked(app, kind.option), "--exclusive")
        run = site.counted(job)
        assert run["applied"]["kind"] == "parametrization"
        has_its_mount(job)
        with site.parts_stopped("io-autotuned"):
            alone = site.sbatch(body, asked(app, kind.option), "--exclusive")
            assert site.ended(alone)["JobState"] == "COMPLETED"
            has_its_mount(alone)
        # Others may be on the node of a job that does not ask for all of it.
        shared = site.sbatch(f"echo ${kind.variable}", asked(app, kind.option))
        assert site.judged(shared)["state"] == "not_counted"
        assert lines(site.output(shared)) == [OTHERWISE]
        assert there.kept("input") == "what the job reads\n"


@of_each_kind
def test_a_mount_whose_program_is_killed_leaves_nothing_behind(site: Site, kind: Kind) -> None:
    """What a job had closed before is in the storage."""
    app = f"commands-{kind.daemon.split()[0]}-killed"
    with mounted(site, kind) as there:
        site.run("true", asked(app, kind.option), "--exclusive")
        site.pin(app, kind.pin)
        ready, killed = (site.paths.home(ALICE) / what for what in ("ready", "killed"))
        body = (
            f'cd "${kind.variable}"; {{ echo whole > output && sync output; }} 2> /dev/null;'
            f" touch {ready}; until [ -e {killed} ]; do sleep 0.1; done;"
            " ls . 2> /dev/null || echo gone"
        )
        job = site.sbatch(body, asked(app, kind.option), "--exclusive")
        await_true("the job to be there", ready.exists)
        for pid in there.daemons(kind):
            # The mount stays, and nobody answers there any more.
            os.kill(pid, signal.SIGKILL)
        killed.touch()
        site.judged(job)
        assert lines(site.output(job)) == ["gone"], "it still answered"
        await_true("the mount to be gone", lambda: not list(there.mounts.iterdir()))
        if not kind.is_read_only:
            assert there.kept("output") == "whole\n"
        for path in (ready, killed):
            path.unlink()
