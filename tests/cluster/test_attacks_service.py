"""What a user can send the service: no prolog waits for it, and it holds no more than a little."""

from __future__ import annotations

import http.client
import json
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devcluster import accounts, command, files, process
from devcluster.floods import KINDS
from devcluster.network import Namespace
from devcluster.parts import munge
from devcluster.ports import NODES_HOST
from devcluster.users import SERVICE_USER
from flooding import floods, over_tcp, starts
from harness import ALICE, BOB, COMPLETE, ROOT, Site, asked, await_true
from services import service_beside
from test_attacks import Sender, finish_of, start_of, to_service

FLOOD_SECONDS = 6.0 if COMPLETE else 3.0
"""At the least: a flood lasts until what is tried beside it has ended."""
STARTS = 60 if COMPLETE else 30
"""Starts during a flood; each takes milliseconds, or misses the deadline of two seconds."""
RESTING = ("--rest-ms=50",)
"""So that they are spread over much of the flood."""
RUNS = 1500
"""As many has the user who asks for lists of them."""


sender = pytest.fixture(scope="module")(to_service)


@pytest.fixture
def jobs(site: Site) -> Iterator[int]:
    """Return a job id below which nothing is; what was started there is removed."""
    first = 3_000_000_000 + secrets.randbelow(1_000_000_000)
    yield first
    site.sql(f"delete from runs where job_id >= {first} and state = 'in_flight'")


@pytest.fixture(scope="module")
def history(site: Site) -> Iterator[None]:
    """Give bob runs to ask for, in many studies."""
    first = 2_900_000_000
    bobs = (f"--uid={accounts.find(BOB).uid}",)
    began = starts(site, "attacks-bobs", first, RUNS, clients=16, studies=150, more=bobs)
    assert began["failed"] == 0, began["failures"]
    yield
    these = f"job_id between {first} and {first + RUNS} and state = 'in_flight'"
    site.sql(f"delete from runs where {these}")


@pytest.mark.slow
@pytest.mark.usefixtures("history")
@pytest.mark.parametrize("kind", KINDS)
def test_no_flood_of_a_users_delays_a_prolog_beyond_its_deadline(
    site: Site, jobs: int, kind: str
) -> None:
    """Attack (floods): Users flood the service in every way at once, with endless resets.
    Outcome: Every start is answered within its deadline, and resets keep to the quota.

    Each kind alone; all of them together are another test's.
    """
    with floods(site, [KINDS[kind]], FLOOD_SECONDS) as flood:
        config = over_tcp(site) if kind == "silence at the door for nodes" else None
        began = starts(site, "attacks-flood", jobs, STARTS, config=config, more=RESTING)
        assert began["failed"] == 0, began["failures"]
        _, (seen,) = flood.end()
        assert sum(seen.values()) > 0, "there was no flood"
    assert not site.outage.exists(), "a prolog took the service for down"


@pytest.mark.usefixtures("history")
def test_all_floods_at_once_by_two_users_cost_no_job_its_tuning(site: Site, jobs: int) -> None:
    """Attack (floods): Users flood the service in every way at once, with endless resets.
    Outcome: Every start is answered within its deadline, and resets keep to the quota.
    """
    for user in (ALICE, BOB):
        site.run("true", asked(f"attacks-reset-{user}"), user=user)
    resets = {
        user: ["--connections=8", f"--study={site.study(f'attacks-reset-{user}')['study_id']}"]
        for user in (ALICE, BOB)
    }
    everything = list(KINDS.values())
    with floods(site, everything, FLOOD_SECONDS, (ALICE, BOB)) as begun:
        for user, arguments in resets.items():
            begun.begin([*arguments, "resets"], user)
        began = starts(site, "attacks-floods", jobs, STARTS, more=RESTING)
        # Submitted by root: a user's own submission asks for a preview, which waits in their queue.
        run = site.run("true", asked("attacks-floods"), user=ROOT)
        assert began["failed"] == 0, began["failures"]
        lasted, seen = begun.end()
        for resetting in seen[-2:]:
            assert resetting.get("200", 0) <= 10 + 2 * (lasted + 2), "resets are bounded"
    assert run["state"] == "counted"
    assert "no answer" not in run["reason"]


def test_the_door_for_nodes_is_closed_to_users(site: Site) -> None:
    """On the Unix socket, and on TCP before the first byte: they cannot bind its ports.

    Attack (service): Users, and root for anything but runs, come to the nodes' door.
    Outcome: They are cut off, or told to ask at the users' door.
    """
    knock = (
        "import socket, sys\n"
        "one = socket.socket(socket.AF_INET if ':' in sys.argv[1] else socket.AF_UNIX)\n"
        "one.settimeout(20)\n"
        "host, _, port = sys.argv[1].rpartition(':')\n"
        "one.connect((host, int(port)) if host else sys.argv[1])\n"
        "one.sendall(b'GET /v1/health HTTP/1.0\\r\\n\\r\\n')\n"
        "print(one.recv(100))\n"
    )
    for address in (str(site.paths.nodes_socket), f"{NODES_HOST}:{site.service_port()}"):
        done = site.cluster.run_as(BOB, ["python3", "-c", knock, address], check=False)
        assert "HTTP" not in done.stdout, f"{address}: {done.stdout}"
    connection = http.client.HTTPConnection("io-autotuned")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(site.paths.nodes_socket))
    connection.request("GET", "/v1/openapi.json")
    assert connection.getresponse().status == 401, "root has no business there but runs"


def test_a_request_that_one_replica_has_read_is_refused_by_another(
    site: Site, sender: Sender
) -> None:
    """MUNGE remembers on one host, SACK in one process: the database for all replicas.

    Attack (service): A change, a report or an import is read and sent again, to the same or another
    replica.
    Outcome: One is accepted.
    """
    site.run("true", asked("attacks-replay"), user=ALICE)
    path = f"/v1/studies/{site.study('attacks-replay')['study_id']}/reset"
    report = json.dumps(finish_of(site, 3_999_010)).encode()
    # Root's own reset: the quotas of alice and bob may still be spent by what they flooded with.
    requests = ((ROOT, path, b'{"why": "replayed"}'), (ROOT, "/v1/runs/finish", report))
    text = site.paths.service_toml.read_text(encoding="utf-8")
    with another_host_signs(site) as socket_of_munge:
        elsewhere = text.replace(str(site.paths.munge_socket), str(socket_of_munge))
        with service_beside(site, "elsewhere", elsewhere) as unix:
            for user, path, body in requests:
                nonce = secrets.token_hex(16)
                credential = sender.credential(user, path, body, nonce)
                assert sender.send(path, body, nonce, credential).status == 200
                again = Sender(site, unix).send(path, body, nonce, credential)
                assert (again.status, "read before" in again.body) == (401, True), again


@contextmanager
def another_host_signs(site: Site) -> Iterator[Path]:
    """Run a munged that knows the cluster's key and has read nothing; yield its socket."""
    paths = site.paths
    unix = paths.run / "elsewhere-munge.sock"
    if site.record().variant.auth == "slurm":
        yield unix
        return
    name = "elsewhere-munged"
    argv = munge.argv(paths, name, unix, "127.0.0.9")
    log = paths.log_of(name)
    munged = process.spawn(argv, env=command.base_env(), output=log)
    try:
        await_true("another munged", unix.is_socket)
        yield unix
    finally:
        process.end(munged, signal.SIGTERM, 20.0)


def test_root_of_a_host_speaks_for_its_own_node_alone(site: Site) -> None:
    """Where the site wants it: by the address that munged vouches for, and Slurm's NodeAddr.

    Attack (nodes): With `check_origins`, root of a host speaks for another node, or for one that
    Slurm does not list.

    Attack (nodes): With `check_origins`, a start comes of a node that Slurm does not list.
    Outcome: The service answers 503, and refuses nothing for good.
    """
    if site.record().variant.auth == "slurm":
        pytest.skip("SACK's tokens name no host, and the nodes here have one address")
    text = site.paths.service_toml.read_text(encoding="utf-8")
    strict = text.replace("[access]", "[access]\ncheck_origins = true", 1)
    path, body = "/v1/runs/start", json.dumps(start_of(site, 3_999_401)).encode()
    with another_host_signs(site) as elsewhere, service_beside(site, "strict", strict) as unix:
        at_home = Sender(site, unix)
        await_true(
            "the service to know the nodes", lambda: at_home.signed(ROOT, path, body).status == 200
        )
        nonce = secrets.token_hex(16)
        payload = at_home.payload(path, body, nonce)
        to = accounts.find(SERVICE_USER).uid
        argv = ["munge", f"--socket={elsewhere}", f"--restrict-uid={to}", "--ttl=60"]
        forged = site.cluster.run_as(ROOT, [*argv, "--string", payload]).stdout.strip()
        answer = at_home.send(path, body, nonce, forged)
        assert (answer.status, "is not at 127.0.0.9" in answer.body) == (403, True), answer
        unknown = start_of(site, 3_999_402)
        unknown["job"]["node"] = "n77"
        answer = at_home.signed(ROOT, path, json.dumps(unknown).encode())
        assert (answer.status, "lists no node" in answer.body) == (503, True), answer


def test_the_service_takes_the_sockets_that_systemd_holds_for_it(
    site: Site, sender: Sender
) -> None:
    """While it is down its addresses are systemd's, and no user's to take.

    Attack (service): Somebody takes the address of a service that is down.
    Outcome: systemd holds it.
    """
    paths = site.paths
    unix = {door: paths.run / f"activated-{door}.sock" for door in ("users", "nodes")}
    config = paths.etc / "activated.toml"
    text = paths.service_toml.read_text(encoding="utf-8")
    account = accounts.find(SERVICE_USER)
    files.write(config, text, mode=0o640, gid=account.gid)
    argv = [
        "systemd-socket-activate",
        *(f"--listen={path}" for path in unix.values()),
        f"--fdname={':'.join(unix)}",
        str(paths.bin / "io-autotuned"),
        f"--config={config}",
    ]
    with Namespace(paths.root).inside():
        service = process.spawn(
            argv, env=command.base_env(), output=paths.log_of("activated"), account=account
        )
    try:
        await_true("systemd's sockets", lambda: all(path.is_socket() for path in unix.values()))
        start = json.dumps(start_of(site, 3_999_301)).encode()
        answer = Sender(site, unix["nodes"]).signed(ROOT, "/v1/runs/start", start)
        assert answer.status == 200, answer
        assert Sender(site, unix["users"]).signed(ALICE, "/v1/runs", method="GET").status == 200
        assert sender.signed(ALICE, "/v1/runs", method="GET").status == 200, "the other goes on"
    finally:
        process.end(service, signal.SIGTERM, 20.0)
        for path in unix.values():
            path.unlink(missing_ok=True)
