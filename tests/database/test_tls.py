"""The way to a database on another host: encrypted, and to nobody else's server."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command.place import SERVICE_USER, TREE, Place
from command.service import ALICE
from devcluster import command
from devcluster.certificates import Authority

from database.conftest import Runs
from database.servers import TRUST, Server

ROLE = "io_autotune_tls"
"""Comes in by a certificate alone."""
BY_PASSWORD = "io_autotune_password"
PLAIN = "io_autotune_plain"
"""Comes in by TLS, without more."""


@dataclass(frozen=True)
class Site:
    """A server with TLS, and the certificates of those who come."""

    server: Server
    authority: Authority
    other: Authority
    client: tuple[Path, Path]
    others_client: tuple[Path, Path]

    def url(self, host: str = "localhost", user: str = PLAIN, **parameters: str) -> str:
        """Return a URL of its database that trusts its authority, unless parameters say else."""
        given = {"sslmode": "verify-full", "sslrootcert": str(self.authority.certificate)}
        return self.server.tcp_url(host, user, **(given | parameters))

    def as_client(self, client: tuple[Path, Path], **parameters: str) -> str:
        """Return the URL of whoever has this certificate."""
        certificate, key = (str(path) for path in client)
        return self.url(user=ROLE, sslcert=certificate, sslkey=key, **parameters)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Run a server that lets TCP in by TLS alone."""
    root = Path(tempfile.mkdtemp(prefix="io-autotune-tls-", dir="/tmp"))
    root.chmod(0o755)
    server = Server(root, "h1")
    authority, other = (Authority(root, name, SERVICE_USER) for name in ("site", "other"))
    certificate, key = authority.certify("server", "subjectAltName=DNS:localhost")
    server.make()
    server.admit(
        TRUST,
        f"hostssl all {ROLE} 127.0.0.1/32 cert",
        f"hostssl all {PLAIN} 127.0.0.1/32 trust",
        f"hostssl all {BY_PASSWORD} 127.0.0.1/32 scram-sha-256",
    )
    tls = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)}
    with server.running(**tls, ssl_ca_file=str(authority.certificate)):
        server.create()
        for role in (ROLE, PLAIN):
            server.sql(f"create role {role} superuser login")
        server.sql(f"create role {BY_PASSWORD} superuser login password 'right'")
        yield Site(server, authority, other, authority.certify(ROLE), other.certify(ROLE))
    shutil.rmtree(root)


def migrated(where: Place, url: str, alone: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Let the service's program go to a database, whatever comes of it.

    ``alone``: the only authorities that are believed, those of the host's included.
    """
    argv = [str(where.paths.bin / "io-autotuned"), "--migrate", url]
    env = command.base_env() | ({"SSL_CERT_FILE": str(alone)} if alone else {})
    return command.run(argv, env=env, user=SERVICE_USER, timeout=60.0, check=False)


def test_a_service_serves_over_tls_by_its_own_certificate(site: Site, run_service: Runs) -> None:
    with run_service("tls", site.as_client(site.client), {}) as served:
        served.run(ALICE, "encrypted")
        (connections,) = site.server.sql(
            "select count(*) filter (where s.ssl and s.client_dn is not null), count(*)"
            " from pg_stat_activity a join pg_stat_ssl s using (pid)"
            f" where a.usename = '{ROLE}' and a.application_name like 'io-autotuned%'"
        )
        with_tls, all_of_them = connections.split("|")
        assert with_tls == all_of_them != "0"


def test_each_way_that_is_asked_for_is_taken(site: Site, where: Place) -> None:
    for url in (
        site.url(),
        site.server.tcp_url("127.0.0.1", PLAIN, sslmode="require"),
        site.server.tcp_url("127.0.0.1", PLAIN),
        site.server.tcp_url("127.0.0.1", PLAIN, sslmode="allow"),
        site.url(user=f"{BY_PASSWORD}:right"),
        site.as_client(site.client),
        # On a socket there is no TLS, as libpq has it.
        site.server.url(sslmode="verify-full", sslrootcert=str(site.authority.certificate)),
    ):
        done = migrated(where, url)
        assert done.returncode == 0, f"{url}: {done.stderr}"
    ours = site.authority.certificate
    done = migrated(where, site.url("127.0.0.1", sslmode="verify-ca"), alone=ours)
    assert done.returncode == 0, done.stderr


def test_verify_ca_believes_no_authority_of_the_host(site: Site, where: Place) -> None:
    """Attack (database): A server has another host's public certificate, and the URL says
    verify-ca.
    Outcome: The service starts only with its own authority alone.
    """
    url = site.url("127.0.0.1", sslmode="verify-ca")
    for alone in (None, site.other.certificate):
        done = migrated(where, url, alone=alone)
        assert done.returncode == 1
        assert "set SSL_CERT_FILE to this file" in done.stderr, done.stderr


def test_a_server_that_is_not_the_one_that_is_meant_is_refused_and_called_so(
    site: Site, where: Place
) -> None:
    """Attack (database): Another server answers with another authority's or name's certificate, or
    without TLS.
    Outcome: Nothing is sent to it, and it is called what it is.
    """
    others = str(site.other.certificate)
    cases = {
        site.url(sslrootcert=others): "certificate that is not trusted: sslrootcert does not have",
        site.url("127.0.0.1"): "certificate that is not trusted",
        site.url(sslrootcert="system"): "certificate that is not trusted",
    }
    for url, expected in cases.items():
        done = migrated(where, url)
        assert (done.returncode, expected in done.stderr) == (1, True), f"{url}: {done.stderr}"
        assert "let sslrootcert in [database] url name the authority" in done.stderr


def test_who_is_not_let_in_is_told_why(site: Site, where: Place) -> None:
    cases = {
        site.url(user=ROLE): ("refuses the client's certificate", "sslcert and sslkey"),
        site.as_client(site.others_client): ("refuses the client's certificate", "ssl_ca_file"),
        site.url(user=f"{BY_PASSWORD}:wrong"): ("refuses the password", "PGPASSFILE"),
        site.url(user="nobody_special"): ("refuses the role", "pg_hba.conf"),
        site.server.tcp_url("127.0.0.1", PLAIN, sslmode="disable"): (
            "refuses the role",
            "pg_hba.conf",
        ),
    }
    for url, (expected, remedy) in cases.items():
        done = migrated(where, url)
        assert done.returncode == 1, f"{url}: {done.stderr}"
        assert expected in done.stderr, f"{url}: {done.stderr}"
        assert remedy in done.stderr, f"{url}: {done.stderr}"


def test_a_server_without_tls_is_refused_and_called_so(
    server: Server, where: Place, site: Site
) -> None:
    root = str(site.authority.certificate)
    url = server.tcp_url("localhost", sslmode="verify-full", sslrootcert=root)
    server.admit(TRUST, "host all all 127.0.0.1/32 trust")
    server.sql("select pg_reload_conf()")
    done = migrated(where, url)
    assert (done.returncode, "has no TLS, which sslmode asks for" in done.stderr) == (1, True), done
    assert migrated(where, server.tcp_url("localhost", sslmode="prefer")).returncode == 0


def test_the_report_takes_the_same_url(site: Site, where: Place) -> None:
    """TLS, a client's certificate and several servers are libpq's own there."""
    url = site.as_client(site.client, target_session_attrs="read-write", connect_timeout="5")
    both = url.replace("@localhost:", "@localhost:1,localhost:")
    done = migrated(where, both)
    assert done.returncode == 0, done.stderr
    program = (
        "import sys\n"
        "from io_autotune_report.load.database import connect, studies\n"
        "with connect(sys.argv[1]) as connection: print(len(studies(connection)))\n"
    )
    python = str(TREE / "build" / "venv-report" / "bin" / "python")
    env = {**command.base_env(), "PYTHONPATH": str(TREE / "analysis" / "report")}
    done = command.run([python, "-c", program, both], env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdecimal()
