"""What a user who means harm can try on a real cluster: jobs go on, root is not led astray.

Those on a node's files are tuner-service/node/tests/attacks.rs; docs/attacks.md lists every
test with an Attack marker.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from devcluster import command
from harness import ALICE, BOB, ROOT, Site, asked
from outages import full, small
from signing import credential

ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e"
"""What acts on a terminal, or turns text round."""
PAGE = 4096
"""What tmpfs gives a file at a time."""


@dataclass(frozen=True)
class Answer:
    """What the service answers."""

    status: int
    body: str


class Sender:
    """Sends requests to the service as no client of ours would."""

    def __init__(self, site: Site, unix: Path | None = None) -> None:
        """Talk to the service of a cluster, or to another by its socket."""
        self.site = site
        self._unix = unix or site.paths.service_socket

    def credential(
        self, user: str, path: str, body: bytes, nonce: str, method: str = "POST"
    ) -> str:
        """Sign a request as a user."""
        return credential(self.site, user, self.payload(path, body, nonce, method))

    @staticmethod
    def payload(path: str, body: bytes, nonce: str, method: str = "POST") -> str:
        """Return what is signed (docs/protocol.md)."""
        text = "\n".join([method, path, nonce, hashlib.sha256(body).hexdigest()])
        return f"io-autotune request 1 {hashlib.sha256(text.encode()).hexdigest()}"

    def send(
        self, path: str, body: bytes, nonce: str, credential: str, method: str = "POST"
    ) -> Answer:
        """Send what is given, whoever signed it."""
        connection = http.client.HTTPConnection("io-autotuned")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(str(self._unix))
        headers = {
            "content-type": "application/json",
            "x-io-autotune-nonce": nonce,
            "x-io-autotune-credential": credential,
        }
        try:
            # Who refuses a body need not read it: the answer may be there before all of it is sent.
            with contextlib.suppress(BrokenPipeError):
                connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read().decode())
        finally:
            connection.close()

    def signed(self, user: str, path: str, body: bytes = b"", method: str = "POST") -> Answer:
        """Send a request as a user."""
        nonce = secrets.token_hex(16)
        return self.send(
            path, body, nonce, self.credential(user, path, body, nonce, method), method
        )


def to_service(site: Site) -> Sender:
    """Return what sends anything to the service."""
    return Sender(site)


sender = pytest.fixture(scope="module")(to_service)


def start_of(site: Site, job_id: int) -> dict[str, Any]:
    """Return the body of a start, as root's helper sends it."""
    job = {
        "cluster": site.cluster_name,
        "job_id": job_id,
        "restart_count": 0,
        "uid": 1000,
        "gid": 1000,
        "node": "n1",
        "nodes": 1,
        "partition": "main",
        "cpus_per_node": "1",
    }
    return {"job": job, "request": {"app": "attacks-body", "mode": "observe"}}


def finish_of(site: Site, job_id: int) -> dict[str, Any]:
    """Return the body of a finish."""
    step = {"step_id": 0, "duration_ns": 1, "wait_status": 0, "nodes": 1, "variables": {}}
    more = {"applied": {"kind": "default"}, "steps": [step], "measures": {"bytes": 1.0}}
    return {**start_of(site, job_id), **more}


def test_a_credential_is_good_once_and_for_what_it_was_made(sender: Sender) -> None:
    """Attack (service): A credential of MUNGE is sent for another request or reader, twice, cut, or
    made up.
    """
    path, nonce = "/v1/studies", secrets.token_hex(16)
    credential = sender.credential(ALICE, path, b"", nonce, "GET")
    stolen = sender.send("/v1/runs", b"", nonce, credential, "GET")
    assert (stolen.status, "unauthorized" in stolen.body) == (401, True), "for another path"

    credential = sender.credential(ALICE, path, b"", nonce, "GET")
    assert sender.send(path, b"", nonce, credential, "GET").status == 200
    assert sender.send(path, b"", nonce, credential, "GET").status == 401, "a second time"

    credential = sender.credential(ALICE, "/v1/preview", b'{"request": {}}', nonce)
    other = b'{"request": {"app": "x"}}'
    assert sender.send("/v1/preview", other, nonce, credential).status == 401, "another body"
    for forged in ("", "MUNGE:AwQFAAC:", "x" * 5000, credential[:-9] + "AAAAAAA:"):
        assert sender.send("/v1/preview", other, nonce, forged).status == 401, forged[:50]


PATHS = ("/v1/runs/start", "/v1/runs/finish", "/v1/runs/over", "/v1/preview", "/v1/outcomes")
"""What takes a body."""


def test_the_users_environment_does_not_reach_roots_hooks(site: Site) -> None:
    """Attack (environment): The environment has LD_PRELOAD, SLURM_*, sockets of MUNGE and SACK, or
    programs called like ours.
    Outcome: The job is tuned as its option says.
    """
    app = "attacks-environment"
    site.pinned(app, {"cb_nodes": "2"})
    home = site.paths.home(ALICE)
    # A library that tells of every process that loads it, and a config of a service that is none.
    source, library, told = home / "spy.c", home / "spy.so", home / "spy.told"
    source.write_text(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "__attribute__((constructor)) static void tell(void) {\n"
        f'    FILE *file = fopen("{told}", "a");\n'
        '    if (!file) return;\n    fprintf(file, "%u %s\\n", (unsigned)geteuid(),'
        " program_invocation_short_name);\n    fclose(file);\n}\n",
        encoding="utf-8",
    )
    command.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)])
    told.write_text("", encoding="utf-8")
    told.chmod(0o666)
    evil = home / "client.toml"
    evil.write_text('endpoints = ["tcp:127.0.0.1:1"]\nservice_user = 0\n', encoding="utf-8")
    env = {
        "LD_PRELOAD": str(library),
        "IO_AUTOTUNE_CONFIG": str(evil),
        "IO_AUTOTUNE_RUN_DIR": str(home),
        "SPANK_IO_AUTOTUNE": "app=attacks-other,mode=observe",
        "SLURM_SPANK_IO_AUTOTUNE": "app=attacks-other,mode=observe",
        "SBATCH_IO_AUTOTUNE": "app=attacks-other,mode=off",
        "SLURM_IO_AUTOTUNE": "app=attacks-other,mode=off",
        "SLURM_JOB_UID": "0",
        "SLURM_CLUSTER_NAME": "../../../etc",
        "SLURMD_NODENAME": "../../../etc",
        "MUNGE_SOCKET": str(home / "munge.sock"),
    }
    if site.record().variant.auth == "munge":
        # Where auth/slurm signs, sbatch itself asks there (26.05).
        env["SLURM_SACK_SOCKET"] = str(home / "sack.sock")
    job = site.sbatch("cat $ROMIO_HINTS", asked(app), env=env)
    run = site.judged(job)
    assert site.output(job) == "cb_nodes 2\n"
    assert (run["application"], run["applied"]["kind"]) == (app, "parametrization")
    loaded = told.read_text(encoding="utf-8").split("\n")
    assert any(line.endswith(" cat") for line in loaded), f"the spy tells nothing: {loaded}"
    assert not [line for line in loaded if line.startswith("0 ") and "io-autotune" in line], loaded


def test_a_job_can_do_nothing_to_what_root_laid_out_for_it(site: Site) -> None:
    """Attack (files): A job lists, writes, moves, links, removes and mounts over root's directories
    and files.
    Outcome: Nothing of it works, and the run counts.
    """
    app = "attacks-files"
    site.pinned(app, {"cb_nodes": "2"})
    body = """
        exec 2>&1
        dir=$(dirname $ROMIO_HINTS); node=$(dirname $dir); cluster=$(dirname $node)
        try() { "$@" >/dev/null && echo "done: $*"; }
        for place in $dir $node $cluster $(dirname $cluster); do
            try ls $place; try touch $place/x; try mkfifo $place/job.env
            try mv $place $place.old; try ln -s /etc $place/link; try chmod 777 $place
            try rmdir $place; try mount -t tmpfs none $place
        done
        # Of a step that has ended: its record is there.
        srun --ntasks=1 true
        until [ -e $dir/step-0.measures ]; do sleep 0.1; done
        stamp=step-4294967291.stamp
        for file in job.env start.json $stamp step-0.measures romio_hints ../watched; do
            try rm -f $dir/$file; try ln -sf /etc/passwd $dir/$file; try sh -c "echo x > $dir/$file"
            try truncate -s 1T $dir/$file; try chmod 666 $dir/$file
            try ln $dir/$file $HOME/hard-$SLURM_JOB_ID
        done
        try cat $dir/job.env; try cat $dir/start.json; try cat $dir/$stamp
        try cat $dir/step-0.measures
        cat $ROMIO_HINTS
    """
    job = site.sbatch(body, asked(app))
    run = site.judged(job)
    output = site.output(job)
    assert "done:" not in output, output
    assert output.endswith("cb_nodes 2\n"), output
    assert run["applied"]["kind"] == "parametrization"
    assert run["state"] == "counted", run["verdict"]
    assert run["measures"]["measured_steps"] == 2


@pytest.mark.parametrize(
    "options",
    [
        ["--io-autotune=" + "x" * 100_000],
        ["--io-autotune=app=" + ESCAPES],
        ["--io-autotune=app=a\nb"],
        ["--io-autotune=app=../../x"],
        ["--io-autotune=app=%s%n"],
        ["--io-autotune=" + "," * 50_000 + "nonsense=1"],
    ],
    ids=["long", "escapes", "lines", "path", "format", "commas"],
)
def test_a_hostile_option_is_refused_in_printable_words(site: Site, options: list[str]) -> None:
    """Attack (environment): A job's name or option has escapes, lines, a path, a shell's words,
    SQL, zero bytes, or 1,000,000 characters.
    Outcome: It becomes a short name of letters, digits and few signs, or is refused.
    """
    done = site.try_sbatch("true", *options)
    assert done.returncode != 0, done.stdout
    assert "--io-autotune" in done.stderr
    # Slurm itself repeats what it was given.
    ours = [line for line in done.stderr.splitlines() if "error: io-autotune: " in line]
    assert ours
    assert all(line.isprintable() and len(line) < 1000 for line in ours), f"{done.stderr!r}"


def test_an_option_given_a_thousand_times_is_the_last_one(site: Site) -> None:
    """Attack (environment): A user gives the option a thousand times.
    Outcome: The last one counts.
    """
    many = [asked(f"attacks-many-{place}") for place in range(1000)]
    run = site.run("true", *many)
    assert run["application"] == "attacks-many-999"


def test_a_script_with_a_line_of_a_million_characters_harms_nobody(site: Site) -> None:
    """Attack (environment): A job's name or option has escapes, lines, a path, a shell's words,
    SQL, zero bytes, or 1,000,000 characters.
    Outcome: It becomes a short name of letters, digits and few signs, or is refused.
    """
    done = site.try_sbatch(f"#SBATCH --io-autotune=app={'x' * 1_000_000}\ntrue")
    assert all(line.isprintable() for line in done.stderr.splitlines()), done.stderr[:500]
    site.counted_run("true", asked("attacks-after-a-million"))


@pytest.mark.parametrize(
    "name",
    [ESCAPES, "a\nb", "../../etc/passwd", "$(touch /tmp/x)`id`", "%s%n", "x" * 1000, "'; drop"],
    ids=["escapes", "lines", "path", "shell", "format", "long", "sql"],
)
def test_a_jobs_name_is_only_a_name(site: Site, name: str) -> None:
    """Attack (environment): A job's name or option has escapes, lines, a path, a shell's words,
    SQL, zero bytes, or 1,000,000 characters.
    Outcome: It becomes a short name of letters, digits and few signs, or is refused.
    """
    job = site.sbatch("true", "--io-autotune", f"--job-name={name}")
    assert all(line.isprintable() for line in job.stderr.splitlines()), f"{job.stderr!r}"
    run = site.judged(job)
    for arguments in (["status"], ["history"], ["explain", str(job.job_id)]):
        for user in (ALICE, ROOT):
            shown = site.tuner(user, *arguments).stdout
            assert all(line.isprintable() for line in shown.splitlines()), f"{shown!r}"
    assert all(c.isascii() and (c.isalnum() or c in "._+@-~") for c in run["application"])
    assert len(run["application"]) <= 128


def test_connections_that_say_nothing_keep_nobody_out(site: Site) -> None:
    """Anybody may connect; what is too much of one user's is closed, and others go on.

    Attack (floods): Connections say nothing, never end a request, or are too many of one user or
    host.
    Outcome: Each is closed in time, and each may have so many; local root has no limit.
    """
    holding = (
        "import select, socket, sys\n"
        "held = []\n"
        "for _ in range(600):\n"
        "    one = socket.socket(socket.AF_UNIX); one.settimeout(20)\n"
        "    try:\n        one.connect(sys.argv[1]); one.send(b'POST /v1/preview HTT')\n"
        "    except OSError: break\n"
        "    held.append(one)\n"
        "# What was closed at once can be read at once: its end, or a reset.\n"
        "while len(held) > 64:\n"
        "    ended = select.select(held, [], [], 20)[0]\n"
        "    if not ended: break\n"
        "    held = [one for one in held if one not in ended]\n"
        "print(len(held), flush=True)\n"
    )
    script = site.paths.home(BOB) / "hold.py"
    script.write_text(holding, encoding="utf-8")
    done = site.cluster.run_as(BOB, ["python3", str(script), str(site.paths.service_socket)])
    assert int(done.stdout) <= 64, f"one user holds {done.stdout} connections"
    site.counted_run("true", asked("attacks-connections"), user=ALICE)


def opened(site: Site, *headers: str, signed: str | None = None) -> socket.socket:
    """Begin a finish with these headers, signed by a user or by nobody."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(60)
    stream.connect(str(site.paths.service_socket))
    path, nonce = "/v1/runs/finish", secrets.token_hex(16)
    by = "MUNGE:none:" if signed is None else Sender(site).credential(signed, path, b"", nonce)
    head = [
        f"POST {path} HTTP/1.1",
        "host: io-autotuned",
        "content-type: application/json",
        f"x-io-autotune-nonce: {nonce}",
        f"x-io-autotune-credential: {by}",
        *headers,
    ]
    stream.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    return stream


@pytest.mark.parametrize("pages", range(9))
def test_a_run_directory_with_little_room_gives_a_job_all_or_nothing(
    site: Site, pages: int
) -> None:
    """What root lays out for a job is a few files; a job must never have a part of them.

    Attack (files): The run directory has room for none, some or all of a job's files.
    Outcome: The job gets all of its hints or nothing.
    """
    app = "attacks-full"
    if not site.ask(ROOT, "status", app):
        site.pinned(app, {"cb_nodes": "2"})
    body = "cat ${ROMIO_HINTS:-/dev/null}; exit 7"
    with small(site.paths.plugin_run, "0711"), full(site.paths.plugin_run, pages * PAGE):
        job = site.sbatch(body, asked(app))
        assert site.ended(job)["ExitCode"] == "7:0", "the job does not end as it would"
        run = site.judged(job)
        assert site.output(job) in ("", "cb_nodes 2\n"), "a part of what was laid out"
        had = site.output(job) != ""
        assert (run["applied"]["kind"] == "parametrization") <= had, run["applied"]
    assert site.judged(site.sbatch("true", asked(app)))["state"] == "counted"


def test_a_users_program_of_our_name_is_not_run(site: Site) -> None:
    """PATH is the user's; the helper is run by its whole path.

    Attack (environment): The environment has LD_PRELOAD, SLURM_*, sockets of MUNGE and SACK, or
    programs called like ours.
    Outcome: The job is tuned as its option says.
    """
    home = site.paths.home(ALICE)
    directory = home / "bin"
    directory.mkdir(exist_ok=True)
    ran = home / "ran"
    for name in ("io-autotune-node", "munge", "squeue"):
        program: Path = directory / name
        program.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
        program.chmod(0o755)
    path = f"{directory}:{site.cluster.env(ALICE)['PATH']}"
    site.counted_run("true", asked("attacks-path"), env={"PATH": path})
    assert not ran.exists(), "a program of the user's was run in our place"
