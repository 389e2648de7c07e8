"""TLS between the service and whoever asks it, by the real programs; and all that can be wrong."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from devcluster import command, files
from devcluster.certificates import OVER, Authority
from harness import await_true

from command.encrypted import HELPER, HOST, Hook, Site, ca_file, client_toml, site
from command.jobs import End
from command.place import SERVICE_USER, Place
from command.service import ALICE, ROOT
from command.test_doctor import checks

NAMES = f"subjectAltName=DNS:{HOST}"


@dataclass(frozen=True)
class Certificates:
    """Of the site's authority and of another."""

    authority: Authority
    ca: Path
    others_ca: Path
    good: tuple[Path, Path]
    over: tuple[Path, Path]


@pytest.fixture(scope="module")
def certificates(where: Place) -> Iterator[Certificates]:
    """Make certificates where services and clients read them."""
    root = Path(tempfile.mkdtemp(prefix="io-autotune-certificates-", dir="/tmp"))
    root.chmod(0o755)
    authority, other = (Authority(root, name, SERVICE_USER) for name in ("site", "other"))
    yield Certificates(
        authority,
        ca_file(where, authority),
        ca_file(where, other),
        authority.certify("good", NAMES),
        authority.certify("over", NAMES, valid=OVER),
    )
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def secured(where: Place, certificates: Certificates) -> Iterator[Site]:
    """Run a service that takes TLS alone."""
    with site(where, "secured", certificates.good, required=True) as running:
        yield running


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Make the directories of a node's helper."""
    root = Path(tempfile.mkdtemp(prefix="io-autotune-hook-", dir="/tmp"))
    root.chmod(0o755)
    made = Hook(root)
    yield made
    made.leave()
    shutil.rmtree(root)


def submitted(config: Path) -> str:
    """Return what the helper prints for a user who submits a job."""
    argv = [str(HELPER), "submit", f"--config={config}", "--request=app=encrypted"]
    done = command.run(argv, env=command.base_env(), user=ALICE, check=False)
    return done.stdout + done.stderr


def test_nodes_and_users_ask_by_tls_and_nothing_else_is_taken(
    secured: Site, certificates: Certificates, hook: Hook
) -> None:
    served, config = secured.served, secured.client_toml("good", ca=certificates.ca)
    job = served.job(ALICE, "encrypted")
    done = hook.run("start", config, job)
    assert (done.returncode, done.stderr) == (0, "")
    assert hook.started(job)["answer"]["run_id"] > 0
    done = hook.run("finish", config, job)
    assert (done.returncode, hook.waiting()) == (0, []), done.stderr
    end = End()
    for slurm in served.slurms.values():
        slurm.queue({job.job_id: job.queued(end)})
    served.judged(job)
    assert "encrypted" in submitted(config)
    found = served.tuner(ALICE, "--config", str(config), "status")
    assert (found.returncode, "encrypted" in found.stdout) == (0, True), found
    _, of_admin = checks(served, ROOT, "--config", str(config), "doctor")
    assert of_admin[f"endpoint tls:{HOST}:{secured.users_port}"]["state"] == "ok"
    # It holds for a day.
    assert of_admin["certificate"]["state"] == "warning", of_admin["certificate"]
    assert "systemctl reload io-autotuned" in of_admin["certificate"]["fix"]
    clear = secured.client_toml("clear", "tcp")
    refused = served.tuner(ALICE, "--config", str(clear), "status")
    assert (refused.returncode, refused.stdout) != (0, ""), refused
    assert "write tls:HOST:PORT and tls_ca into client.toml" in refused.stderr


@contextmanager
def _silent() -> Iterator[int]:
    """Yield the port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_whatever_is_wrong_costs_tuning_and_no_job(
    where: Place, secured: Site, certificates: Certificates, hook: Hook
) -> None:
    """Attack (tls): Another server has a certificate of another authority, for another name, or one
    that has run out or is not yet valid; or it speaks clear text.
    Outcome: Nothing is sent to it; it is an outage, which says what to do.

    Attack (tls): The handshake stalls.
    Outcome: It is an outage within the deadline.

    Attack (tls): A client speaks clear text where the site requires TLS.
    Outcome: It is told what to write into client.toml, and nothing else.
    """
    served, ca = secured.served, certificates.ca
    with (
        site(where, "run_out", certificates.over) as run_out,
        site(where, "clear", None) as clear,
        _silent() as port,
    ):
        stalls = f"tls:{HOST}:{port}"
        for config, expected in (
            (run_out.client_toml("over", ca=ca), "its certificate ran out at 2021-01-01T00:00:00Z"),
            (secured.client_toml("ca", ca=certificates.others_ca), "no authority of tls_ca"),
            (secured.client_toml("name", ca=ca, host="127.0.0.1"), "as its certificate does"),
            (clear.client_toml("clear", ca=ca), "speaks no TLS"),
            (
                client_toml(where, "stalls", (stalls, stalls), ca),
                "no answer from the tuner service",
            ),
            (secured.client_toml("clear", "tcp"), "write tls:HOST:PORT and tls_ca"),
            (
                secured.client_toml("gone", ca=where.paths.etc / "none.pem"),
                "none.pem: No such file",
            ),
        ):
            (hook.root / "run" / ".outage").unlink(missing_ok=True)
            job = served.job(ALICE, "encrypted")
            done = hook.run("start", config, job)
            assert done.returncode == 0, done
            assert expected in hook.started(job)["failure"], hook.started(job)
            assert expected in done.stderr, done
            assert "runs with defaults" in submitted(config)
            found = served.tuner(ALICE, "--config", str(config), "doctor")
            assert (found.returncode, expected in found.stdout) == (1, True), found
            done = hook.run("finish", config, job)
            assert done.returncode == 0, done
        # Nothing is lost of what these jobs had to tell.
        assert len(hook.waiting()) == 7
        good = secured.client_toml("good", ca=ca)
        command.run(hook.argv("flush", good), env=command.base_env())
        assert hook.waiting() == []
        # A service whose certificate has run out serves whoever is on its host.
        of_unix = run_out.served.tuner(ALICE, "doctor")
        assert of_unix.returncode == 0, of_unix
        _, of_admin = checks(run_out.served, ROOT, "doctor")
        assert of_admin["certificate"]["state"] == "failed", of_admin["certificate"]


def test_check_says_what_is_wrong_with_the_files(
    where: Place, secured: Site, certificates: Certificates
) -> None:
    text = (where.paths.etc / f"{secured.served.name}.toml").read_text(encoding="utf-8")
    certificate, key = certificates.good
    path = where.paths.etc / "checked.toml"

    def said(certificate: Path, key: Path) -> tuple[int, str]:
        named = text.replace(str(certificates.good[0]), str(certificate))
        named = named.replace(str(certificates.good[1]), str(key))
        account = where.service_account
        files.write(path, named, mode=0o640, gid=account.gid)
        argv = [str(where.paths.bin / "io-autotuned"), "--check", "--config", str(path)]
        done = command.run(argv, env=command.base_env(), user=SERVICE_USER, check=False)
        return done.returncode, done.stdout + done.stderr

    assert said(certificate, key) == (0, "")
    over, of_over = certificates.over
    for given, expected in (
        ((certificate, of_over), "[tls] key: {key}: it does not belong to {certificate}"),
        ((over, of_over), "[tls] certificate: {certificate}: it ran out at 2021-01-01T00:00:00Z"),
        ((key, key), "[tls] certificate: {certificate}: there is no certificate in PEM in it"),
        ((certificate, Path("/none")), "[tls] key: /none: No such file"),
    ):
        status, told = said(*given)
        named = dict(zip(("certificate", "key"), given, strict=True))
        assert (status, expected.format(**named) in told) == (1, True), told
    open_to_all = key.with_suffix(".open")
    shutil.copy(key, open_to_all)
    shutil.chown(open_to_all, SERVICE_USER)
    open_to_all.chmod(0o644)
    status, told = said(certificate, open_to_all)
    assert (status, "others can read or change it" in told) == (1, True), told


def test_a_reload_takes_a_renewed_certificate(
    where: Place, certificates: Certificates, hook: Hook
) -> None:
    certificate, key = (path.with_name(f"renewed-{path.name}") for path in certificates.over)

    def have(certified: tuple[Path, Path]) -> None:
        for source, target in zip(certified, (certificate, key), strict=True):
            shutil.copy2(source, target)
            shutil.chown(target, SERVICE_USER)

    have(certificates.over)
    with site(where, "renewed", (certificate, key)) as running:
        config = running.client_toml("good", ca=certificates.ca)
        asked = ("--config", str(config), "status")
        assert running.served.tuner(ALICE, *asked).returncode != 0
        have(certificates.good)
        running.served.reload()
        await_true(
            "the renewed certificate is in force",
            lambda: running.served.tuner(ALICE, *asked).returncode == 0,
        )
        job = running.served.job(ALICE, "renewed")
        assert hook.run("start", config, job).returncode == 0
        assert hook.started(job)["answer"]["run_id"] > 0
