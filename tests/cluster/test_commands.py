"""A command of the site's that starts something for a job, and is stopped whatever happens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devcluster import files
from harness import ALICE, Job, Site, asked, await_true, lines
from mounting import NODE_TOML, OTHERWISE, RCLONE, fuse_for_users, rclone

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
def fuse() -> Iterator[None]:
    """Let users open /dev/fuse, or skip the test."""
    with fuse_for_users():
        yield


@pytest.mark.usefixtures("fuse")
def test_rclone_reads_through_a_cache_of_the_jobs_own(site: Site) -> None:
    """Every run has the mount: the default's and the tuned one's, with and without a service."""
    app = "commands-rclone"
    with rclone(site) as (slow, mounts):
        (slow / "input").write_text("what the job reads\n", encoding="utf-8")
        (slow / "input").chmod(0o666)
        body = (
            'input="$RCLONE_VFS_DIR/input"; cat "$input"; stat --file-system --format %T "$input"; '
            'touch "$input" && echo written; true'
        )

        def reads_by_mount(job: Job) -> None:
            text = lines(site.output(job))
            assert text[0] == "what the job reads"
            assert text[1] in FUSE, "it was not read through FUSE"
            assert "written" not in text, "the mount is for reading only"
            await_true("the mount and its cache to be gone", lambda: not list(mounts.iterdir()))

        default = site.sbatch(body, asked(app, RCLONE), "--exclusive")
        run = site.judged(default)
        assert (run["state"], run["applied"]["kind"]) == ("counted", "default"), run["verdict"]
        reads_by_mount(default)
        site.pin(app, {"cache_mode": "full", "read_ahead": "4M"})
        job = site.sbatch(body, asked(app, RCLONE), "--exclusive")
        site.counted(job)
        reads_by_mount(job)
        with site.parts_stopped("io-autotuned"):
            alone = site.sbatch(body, asked(app, RCLONE), "--exclusive")
            assert site.ended(alone)["JobState"] == "COMPLETED"
            reads_by_mount(alone)
        # Others may be on the node of a job that does not ask for all of it.
        shared = site.sbatch("echo $RCLONE_VFS_DIR", asked(app, RCLONE))
        assert site.judged(shared)["state"] == "not_counted"
        assert lines(site.output(shared)) == [OTHERWISE]
        assert (slow / "input").exists()


@pytest.mark.usefixtures("fuse")
def test_an_rclone_that_is_killed_leaves_nothing_behind(site: Site) -> None:
    app = "commands-rclone-killed"
    with rclone(site) as (_slow, mounts):
        site.run("true", asked(app, RCLONE), "--exclusive")
        site.pin(app, {"cache_mode": "full"})
        # The mount stays, and nobody answers there any more.
        body = 'pkill -KILL -u $UID -x rclone; ls "$RCLONE_VFS_DIR" 2> /dev/null || echo gone'
        job = site.sbatch(body, asked(app, RCLONE), "--exclusive")
        site.judged(job)
        assert lines(site.output(job)) == ["gone"], "rclone still answered"
        await_true("the mount to be gone", lambda: not list(mounts.iterdir()))
