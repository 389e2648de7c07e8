"""A new configuration without a restart: what changes, what waits, and no start is missed."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import accounts, files, process, render
from devcluster.users import SERVICE_USER
from harness import ALICE, BOB, Json, Site, await_true
from services import Beside, metrics, nodes_socket, running_beside

ADDRESS = "127.0.0.1:9465"


@dataclass(frozen=True)
class Reloaded:
    """A service whose configuration changes, and who asks it."""

    site: Site
    beside: Beside
    clients: Path
    supervisor: socket.socket

    def write(self, old: str, new: str) -> None:
        """Change its configuration."""
        text = self.beside.config.read_text(encoding="utf-8")
        assert old in text
        gid = accounts.find(SERVICE_USER).gid
        files.write(self.beside.config, text.replace(old, new), mode=0o640, gid=gid)

    def reload(self) -> list[Json]:
        """Have it read anew, as systemd does; return what it logged meanwhile."""
        before = len(self._log())
        process.send(self.beside.identity, signal.SIGHUP)
        told = self.supervisor.recv(256).decode()
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+\n", told), told
        assert self.supervisor.recv(256) == b"READY=1\n"
        return self._log()[before:]

    def _log(self) -> list[Json]:
        lines = self.beside.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["fields"] for line in lines if line.startswith("{")]

    def may_examine(self, user: str) -> bool:
        """Whether a user may see the service's own checks."""
        done = self.site.tuner(user, f"--config={self.clients}", "doctor", "--json")
        return "schema" in {check["name"] for check in json.loads(done.stdout)["checks"]}


@contextmanager
def reloading(site: Site, name: str) -> Iterator[Reloaded]:
    path = site.paths.scratch / f"{name}-notify.sock"
    text = site.paths.service_toml.read_text(encoding="utf-8")
    text = text.replace("[listen]\n", f'[listen]\nmetrics = "{ADDRESS}"\n')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(path))
        path.chmod(0o666)
        supervisor.settimeout(60.0)
        with running_beside(site, name, text, {"NOTIFY_SOCKET": str(path)}) as beside:
            assert supervisor.recv(256) == b"READY=1\n"
            clients = site.paths.etc / f"{name}-client.toml"
            asking = render.asking(
                site.paths.client_toml.read_text(encoding="utf-8"),
                [f"unix:{beside.unix}"],
                [f"unix:{nodes_socket(site, name)}"],
            )
            files.write(clients, asking, mode=0o644)
            yield Reloaded(site, beside, clients, supervisor)
        path.unlink()


def await_refused(site: Site, is_refused: float) -> None:
    """Wait until Prometheus reads whether the last reload was refused: a text lasts a second."""
    await_true(
        "the metric to tell",
        lambda: metrics(site, ADDRESS)["io_autotune_reload_refused"] == is_refused,
    )


def said(log: list[Json], key: str) -> list[str]:
    return [line[key] for line in log if key in line]


def test_a_reload_changes_what_it_can_and_names_what_waits(site: Site) -> None:
    with reloading(site, "reload") as service:
        alice = accounts.find(ALICE).uid
        assert service.reload()[-1] == {"message": "the configuration is reloaded", "changed": ""}
        assert not service.may_examine(ALICE)

        service.write("admins = [0]", f"admins = [0, {alice}]")
        assert said(service.reload(), "changed") == ["access.admins"]
        assert service.may_examine(ALICE)
        assert not service.may_examine(BOB)

        # What is wrong changes nothing, and is named with what is meant.
        for wrong, told in (
            (("admins", "adminz"), "did you mean `admins`?"),
            (('default = "romio"', 'default = "nothing"'), "not in the catalogue"),
        ):
            service.write(*wrong)
            refused = service.reload()[-1]
            assert "is not reloaded" in refused["message"]
            assert told in refused["error"]
            assert service.may_examine(ALICE)
            await_refused(site, 1.0)
            service.write(*reversed(wrong))
            service.reload()
            await_refused(site, 0.0)

        # A listener and a database wait, what else has changed does not.
        service.write("[listen]\n", "[listen]\nhost_connections = 63\n")
        service.write("[database]\n", "[database]\nconnections = 15\n")
        service.write("[slurm]\n", "[users]\nstudies = 5\n\n[slurm]\n")
        service.write(f"admins = [0, {alice}]", "admins = [0]")
        log = service.reload()
        assert said(log, "changed") == ["access.admins, users.studies"]
        assert said(log, "waiting") == ["database.connections, listen.host_connections"]
        assert not service.may_examine(ALICE)
