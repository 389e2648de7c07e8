"""What a user can try on a node while a job of theirs, or of another's, begins and ends there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from devcluster import files, render
from harness import (
    ALICE,
    BOB,
    ROOT,
    Site,
    asked,
    await_true,
    await_value,
    command_lines,
    grown_old,
    lines,
)
from mounting import NODE_TOML, RCLONE, fuse_for_users, rclone

ROOM = 147456
"""What a job can write of observed values, in bytes."""
ON_N1 = ("--exclusive", "--nodelist=n1")
"""On one node after another job of it."""
PYTHON = "/usr/bin/python3"
"""One that users can run; that of the tests may be root's alone."""
HOLD = """
import ctypes, fcntl, os, signal, sys
how, what, said, until = sys.argv[1:]
signal.signal(signal.SIGIO, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)
if how == "lease":
    file = os.open(what, os.O_RDONLY)
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
elif how == "traced":
    PTRACE_ATTACH = 16
    assert libc.ptrace(PTRACE_ATTACH, int(what), None, None) == 0, os.strerror(ctypes.get_errno())
    os.waitpid(int(what), 0x40000000)
open(said, "w").close()
os.read(os.open(until, os.O_RDWR), 1)
"""
"""Holds a lease on a file, or traces a process, until somebody writes to a FIFO."""


@pytest.fixture
def fuse() -> Iterator[None]:
    """Let users open /dev/fuse, or skip the test."""
    with fuse_for_users():
        yield


@contextmanager
def held(site: Site, how: str) -> Iterator[str]:
    """Yield lines of a job's script that have ``$what`` held, and go on once it is.

    Whoever holds it is a process of the user's that is not the job's, and does so until the end:
    Slurm kills the job's own.
    """
    place = site.paths.scratch / "held"
    place.mkdir()
    place.chmod(0o777)
    script, fifo, what, said = (place / name for name in ("hold.py", "until", "what", "said"))
    script.write_text(HOLD, encoding="utf-8")
    os.mkfifo(fifo)
    fifo.chmod(0o666)

    def hold() -> None:
        await_true("what is to be held", what.exists)
        text = what.read_text(encoding="utf-8").strip()
        if text:
            argv = [PYTHON, str(script), how, text, str(said), str(fifo)]
            site.cluster.run_as(ALICE, argv, timeout=300)

    holder = Thread(target=hold)
    # Both ends: whoever writes does not wait for a reader that has never come.
    end = os.open(fifo, os.O_RDWR)
    holder.start()
    try:
        yield (
            f"echo $what > {place}/new; mv {place}/new {what}\n"
            f"until [ -e {said} ]; do sleep 0.05; done"
        )
        assert holder.is_alive(), "it was not held until the end"
    finally:
        with contextlib.suppress(FileExistsError):
            what.touch(exist_ok=False)
        os.write(end, b"\n")
        holder.join()
        os.close(end)
        shutil.rmtree(place)


def called(name: str) -> list[int]:
    """Return the processes that call themselves so."""
    return [pid for pid, line in command_lines() if line.startswith(name)]


def by_name(name: str, user: str, site: Site) -> list[int]:
    """Return a user's living processes of a program, whatever they call themselves."""
    uid = site.paths.home(user).stat().st_uid
    found = []
    for pid, _line in command_lines():
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # Of one that is killed, who traced it may keep the number and the name.
        is_theirs = re.search(rf"^State:\s+[^Z].*^Uid:\s+{uid}\s", status, re.M | re.S)
        if is_theirs and re.match(rf"Name:\s+{name}\n", status):
            found.append(pid)
    return found


def test_a_lease_on_the_file_of_values_holds_nobody(site: Site) -> None:
    """Attack (files): What a user wrote for root is under a lease, a link, a FIFO, a directory, or
    another's.
    """
    app = "attacks-lease"
    site.pinned(app, {"romio_ds_write": "disable"})
    with held(site, "lease") as hold:
        job = site.sbatch(f"what=$MPI_IO_IN_FORCE\n{hold}", asked(app))
        # By its epilog: the lease is held meanwhile, and no timer has a reason to report.
        site.counted(job)
    await_true("nothing to be left in the spool", lambda: not site.spooled())


def test_a_job_cannot_fill_the_spool_with_values(site: Site) -> None:
    """Attack (files): A job fills the place of its observed values and marks, and makes other files
    there.
    Outcome: The place holds 144 KiB and no other file, of which root reads less.
    """
    app = "attacks-values"
    site.pinned(app, {"romio_ds_write": "disable"})
    body = (
        "yes romio_ds_write disable 2> /dev/null | head -c 60000000 2> /dev/null"
        ' > "$MPI_IO_IN_FORCE"\n'
        'stat --format %s "$MPI_IO_IN_FORCE"\n'
        'for more in "$MPI_IO_IN_FORCE".more "$(dirname "$MPI_IO_IN_FORCE")"/more; do\n'
        '  true > "$more" && echo more\n'
        "done 2> /dev/null; true"
    )
    job = site.sbatch(body, asked(app))
    run = site.judged(job)
    (size,) = lines(site.output(job))
    assert 0 < int(size) <= ROOM
    assert run["state"] == "counted", run["verdict"]
    (report,) = site.explain(job)["reports"]
    assert [told["in_force"] for told in report["told"]] == ["disable"]
    assert not site.spooled()


@contextmanager
def long_answers(at: Path, length: int, go_on: Event) -> Iterator[list[int]]:
    """Answer in the service's place, without a signature: a head, and bytes as long as it says.

    Yields how many of them whoever asks has taken, by answer.
    """
    taken: list[int] = []

    def answer(listener: socket.socket) -> None:
        block = b"x" * 65536
        while True:
            asker, _ = listener.accept()
            with asker, contextlib.suppress(ConnectionError):
                asker.recv(65536)
                asker.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n".encode())
                assert go_on.wait(30), "nobody has looked"
                taken.append(0)
                while taken[-1] < length:
                    asker.sendall(block)
                    taken[-1] += len(block)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(at))
        at.chmod(0o777)
        listener.listen()
        Thread(target=answer, args=(listener,), daemon=True).start()
        yield taken


def reader(site: Site) -> dict[str, str] | None:
    """Return what the kernel says of a process that reads an answer, once it has its filter."""
    for pid in site.helpers("read-answer"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            told = dict(re.findall(r"(?m)^(\w+):\s*(.*)$", status))
            if told["Seccomp"] == "2":
                return told
    return None


@pytest.mark.parametrize("length", [1 << 20, 64 << 20])
def test_root_reads_no_answer_and_nobody_a_long_one(site: Site, length: int) -> None:
    """Attack (service): Somebody answers in the service's place: garbage, unsigned, dripping, or 64
    MiB.
    Outcome: It is an outage within the deadline, and no report is put aside.

    Attack (service): An answer takes over the process that parses it.
    Outcome: That process is nobody, under a filter of system calls; root takes only a whole
    structure from it.
    """
    place = site.paths.scratch / f"answers-{length}"
    files.directory(place, 0o755)
    config, at, go_on = place / "client.toml", place / "service.sock", Event()
    ours = site.paths.client_toml.read_text(encoding="utf-8")
    files.write(config, render.asking(ours, [f"unix:{at}"]), mode=0o644)
    argv = ["io-autotune-node", "start", f"--config={config}", "--deadline-ms=20000"]
    argv += [f"--run-dir={place / 'run'}", f"--spool-dir={place / 'spool'}"]
    environment = site.hook_environment(3_999_200, "app=attacks-answer,mode=tune")
    with long_answers(at, length, go_on) as taken, ThreadPoolExecutor() as pool:
        asking = pool.submit(site.cluster.run_as, ROOT, argv, env=environment, check=False)
        try:
            if length == 1 << 20:
                seen = await_value("a reader under its filter", lambda: reader(site))
                assert set(seen["Uid"].split()) == {"65534"}
                assert int(seen["CapEff"], 16) == int(seen["CapPrm"], 16) == 0
        finally:
            go_on.set()
        done = asking.result()
    assert "defaults" in done.stderr, done.stderr
    # Of what is too long nobody reads more than the head, and what is under way in the socket.
    assert sum(taken) < 4 << 20


def test_a_process_by_a_steps_name_keeps_no_job_from_being_reported(site: Site) -> None:
    """Attack (files): A process, also a set-user-ID one, calls itself `slurmstepd: [JOBID.STEP]`.
    Outcome: Only root's processes count as steps, and the timer reports the job.
    """
    app = "attacks-name"
    # The second's directory in /proc is root's, because it lets nobody trace it.
    quiet = "import ctypes, signal; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); signal.pause()"
    with site.parts_stopped("flusher"):
        with site.helper_killed("finish", 1):
            job = site.sbatch("sleep 0.3", asked(app))
            site.ended(job)
        (directory,) = site.job_directories()
        name = f"slurmstepd: [{job.job_id}.0]"
        impostor = site.sbatch(
            f"(exec -a '{name}' sleep 600) &\n(exec -a '{name}' {PYTHON} -c '{quiet}') &\nwait",
            user=BOB,
        )
        await_true("two by a step's name", lambda: len(called(name)) == 2)
        grown_old(directory)
    try:
        assert site.judged(job)["state"] == "counted"
        assert len(called(name)) == 2, "they were not there so long"
    finally:
        site.cluster.run_as(BOB, ["scancel", str(impostor.job_id)])


def later_job_of_bobs(site: Site, app: str) -> None:
    """A later job, of another user, gets what it asks of this node."""
    body = "echo ${RCLONE_VFS_DIR:+mounted}"
    job = site.sbatch(body, asked(app, RCLONE), *ON_N1, user=BOB)
    site.counted(job)
    assert lines(site.output(job, BOB)) == ["mounted"]


def prepared(site: Site, app: str) -> None:
    """Let the next jobs of both users be given the cache."""
    for user in (ALICE, BOB):
        site.run("true", asked(app, RCLONE), "--exclusive", user=user)
        site.pin(app, {"cache_mode": "full"}, user=user)


@pytest.mark.usefixtures("fuse")
def test_what_a_job_leaves_beside_its_mount_is_in_nobodys_way(site: Site) -> None:
    """Attack (files): A job leaves nested or closed directories, or mounts within mounts, in a
    command's directory.
    Outcome: All are removed, if need be later and out of reach.
    """
    app = "attacks-beside"
    with rclone(site) as mounts:
        prepared(site, app)
        body = (
            'cd "$(dirname "$RCLONE_VFS_DIR")" && mkdir -p closed/below/it cache/closed/below &&'
            " touch closed/below/file && echo left; chmod 0 closed cache/closed; chmod 0500 ."
        )
        job = site.sbatch(body, asked(app, RCLONE), *ON_N1)
        assert site.judged(job)["state"] == "counted"
        assert lines(site.output(job)) == ["left"]
        later_job_of_bobs(site, app)
        await_true("all of it to be gone", lambda: not list(mounts.iterdir()))


@pytest.mark.usefixtures("fuse")
@pytest.mark.parametrize("how", ["stopped", "traced"])
def test_a_daemon_that_is_stopped_or_traced_ends_with_its_job(site: Site, how: str) -> None:
    """Attack (files): A user stops or traces what a command started, or a stop always fails.
    Outcome: It is killed with its control group; a stop is tried twenty times, and then `doctor`
    tells an admin.
    """
    app = f"attacks-{how}"
    with rclone(site) as mounts, held(site, how) as hold:
        prepared(site, app)
        # Their own job's: on another cluster of this host alice may have one too.
        find = 'what=$(pgrep -u $UID -f "rclone mount .*$RCLONE_VFS_DIR" | head -n 1); echo $what\n'
        find += "ls $RCLONE_VFS_DIR\n"
        stop = f"kill -STOP $what\n{hold}" if how == "stopped" else hold
        job = site.sbatch(find + stop, asked(app, RCLONE), *ON_N1)
        site.judged(job)
        daemon = int(site.output(job))
        await_true("the daemon to be gone", lambda: daemon not in by_name("rclone", ALICE, site))
        later_job_of_bobs(site, app)
        await_true("all of it to be gone", lambda: not list(mounts.iterdir()))


@pytest.mark.usefixtures("fuse")
def test_nobody_takes_the_place_of_anothers_directory(site: Site) -> None:
    """Attack (files): Others can make or swap directories where ours are to be.
    Outcome: None is used, unless the one above has the sticky bit.
    """
    app = "attacks-place"
    with rclone(site) as mounts:
        prepared(site, app)
        uid = site.paths.home(ALICE).stat().st_uid
        fence = site.paths.scratch / f"{app}.fence"
        body = f"until [ -e {fence} ]; do sleep 0.1; done; ls -d $RCLONE_VFS_DIR"
        # While one's is there, so is the directory in which they all are.
        running = site.sbatch(body, asked(app, RCLONE), "--exclusive")
        # Root may not look at what is mounted there.
        inside = await_value("the job's directory", lambda: next(mounts.glob("*/*/*"), None))
        base = inside.parent.parent
        names = [
            name
            for later in range(running.job_id + 1, running.job_id + 20)
            for name in (f"{uid}.{later}", f"{site.cluster_name}.n1.{later}")
        ]
        paths = [str(place / name) for place in (mounts, base) for name in names]
        script = 'for path; do mkdir "$path" && echo "$path"; done; ls "$0" && echo listed'
        taken = site.cluster.run_as(BOB, ["bash", "-c", script, str(base), *paths], check=False)
        assert taken.stdout == "", "others can make or list directories there"
        fence.touch()
        assert site.judged(running)["state"] == "counted"
        job = site.sbatch(body, asked(app, RCLONE), "--exclusive")
        site.counted(job)
        fence.unlink()
        await_true("all of it to be gone", lambda: not list(mounts.iterdir()))


BUFFER = """
name = "stuck"
title = "What a command of the site's starts and cannot stop"
description = "Made by a test."
takes_effect = "when the job starts"
needs = ["exclusive", "root"]
[[parameters]]
name = "workers"
kind = "ordered"
values = [1, 2]
default = 1
[delivery.command]
name = "stuck"
provides = ["STUCK"]
environment = [{ variable = "STUCK_WORKERS", value = "{workers}" }]
"""


def test_a_stop_that_always_fails_is_tried_so_often_and_then_an_admins(site: Site) -> None:
    """Attack (files): A user stops or traces what a command started, or a stop always fails.
    Outcome: It is killed with its control group; a stop is tried twenty times, and then `doctor`
    tells an admin.
    """
    app, option = "attacks-stop", "accelerator=stuck"
    catalogue = site.paths.accelerators / "stuck.toml"
    catalogue.write_text(BUFFER, encoding="utf-8")
    log = site.paths.scratch / "stops"
    log.touch()
    log.chmod(0o666)
    shell = '["/bin/sh", "-c", "{}"]'
    config = (
        f'{NODE_TOML}[[commands]]\nname = "stuck"\nstart = {shell.format("echo STUCK=yes")}\n'
        f"stop = {shell.format(f'echo x >> {log}; exit 1')}\n"
    )

    def known() -> bool:
        return "stuck" in [one["name"] for one in site.ask(ALICE, "accelerators", "list")]

    spool = site.paths.plugin_spool
    try:
        await_true("the accelerator to be there", known)
        with site.nodes_configured(config):
            site.run("true", asked(app, option), "--exclusive")
            site.pin(app, {"workers": "2"})
            for _ in range(2):
                job = site.sbatch("echo $STUCK", asked(app, option), "--exclusive")
                run = site.judged(job)
                # The second as well: nothing of the first is in its way.
                assert run["state"] == "counted", run["verdict"]
                assert lines(site.output(job)) == ["yes"]

        def given_up() -> bool:
            for stop in spool.glob("stops/*.json"):
                grown_old(stop)
            site.flush()
            return len(list(spool.glob("*.unstopped"))) == 2

        # Two passes at once would try one stop twice.
        with site.parts_stopped("flusher"):
            await_true("both to be given up", given_up)
        await_true("no stop to wait", lambda: not (spool / "stops").exists())
        assert len(lines(log.read_text(encoding="utf-8"))) == 2 * 20
        checks = json.loads(site.tuner(ROOT, "doctor", "--spool-dir", str(spool), "--json").stdout)[
            "checks"
        ]
        (check,) = [one for one in checks if one["name"] == "spool"]
        assert check["state"] == "failed", check
        assert ".unstopped" in check["detail"]
        assert "what was started" in check["fix"]
    finally:
        catalogue.unlink()
        for left in spool.glob("*.unstopped"):
            left.unlink()
        await_true("the accelerator to be gone", lambda: not known())
