"""A service with TLS, and the helper as a node's root runs it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster import command, files, ports
from devcluster.certificates import Authority
from harness import hook_environment

from command.jobs import Json, Made
from command.place import BUILD, Place
from command.service import Service, service

HELPER = BUILD / "stage" / "bin" / "io-autotune-node"
NODE = "n1"
HOST = "localhost"
"""As certificates name the service."""


@dataclass(frozen=True)
class Site:
    """A service with TCP addresses, and what its nodes and users write into client.toml."""

    served: Service
    users_port: int
    nodes_port: int

    def client_toml(
        self, name: str, scheme: str = "tls", *, ca: Path | None = None, host: str = HOST
    ) -> Path:
        """Write a client.toml that asks over TCP, and believes this authority."""
        return client_toml(
            self.served.place,
            f"{self.served.name}-{name}",
            (f"{scheme}:{host}:{self.users_port}", f"{scheme}:{host}:{self.nodes_port}"),
            ca,
        )


def client_toml(
    place: Place, name: str, endpoints: tuple[str, str], ca: Path | None = None
) -> Path:
    """Write a client.toml with the endpoint of users and that of nodes."""
    path = place.paths.etc / f"{name}-client.toml"
    of_users, of_nodes = endpoints
    believed = {} if ca is None else {"tls_ca": str(ca)}
    text = place.client_toml([of_users], node_endpoints=[of_nodes], **believed)
    files.write(path, text, mode=0o644)
    return path


def ca_file(place: Place, authority: Authority) -> Path:
    """Return an authority's certificate as a host has it: root's, and anybody's to read."""
    path = place.paths.etc / authority.certificate.name
    files.write(path, authority.certificate.read_bytes(), mode=0o644)
    return path


@contextmanager
def site(
    place: Place, name: str, certified: tuple[Path, Path] | None, *, required: bool = False
) -> Iterator[Site]:
    """Run a service at TCP addresses, with this certificate and key."""
    users_port, nodes_port = ports.ephemeral(), ports.ephemeral()
    more: dict[str, dict[str, str | bool]] = {
        "listen": {"tcp": f"127.0.0.1:{users_port}", "nodes_tcp": f"127.0.0.1:{nodes_port}"}
    }
    if certified is not None:
        certificate, key = certified
        more["tls"] = {"certificate": str(certificate), "key": str(key), "required": required}
    with service(place, name, more=more) as served:
        yield Site(served, users_port, nodes_port)


@dataclass(frozen=True)
class Hook:
    """The helper's directories on a node, which no other job of the test uses."""

    root: Path

    def run(self, what: str, config: Path, job: Made) -> subprocess.CompletedProcess[str]:
        """Run the helper for a job as slurmd's prolog or epilog does."""
        return command.run(self.argv(what, config), env=self.env(job), check=False)

    def argv(self, what: str, config: Path) -> Sequence[str]:
        """Return the command line of the helper's ``start`` or ``finish``."""
        places = (f"--run-dir={self.root}/run", f"--spool-dir={self.root}/spool")
        return [str(HELPER), what, f"--config={config}", *places]

    def env(self, job: Made) -> dict[str, str]:
        """Return the environment in which slurmd runs hooks."""
        request = ",".join(f"{key}={value}" for key, value in job.request.items())
        return {
            **command.base_env(),
            **hook_environment(job.cluster, job.job_id, request, NODE, job.uid),
            "SLURM_JOB_PARTITION": "debug",
            "SLURM_JOB_CPUS_PER_NODE": "4",
            "SLURM_JOB_RESTART_COUNT": "0",
        }

    def started(self, job: Made) -> Json:
        """Return what the helper knows of a job after its start."""
        directory = self.root / "run" / job.cluster / NODE / str(job.job_id)
        assert (directory / "job.env").is_file(), "its steps would not be stamped"
        return json.loads((directory / "start.json").read_text(encoding="utf-8"))

    def leave(self) -> None:
        """Unmount what the helper has mounted for jobs."""
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        for point in (line.split(" ")[4] for line in mounts):
            if Path(point).is_relative_to(self.root):
                command.run(["umount", point])

    def waiting(self) -> list[str]:
        """Return the names of reports that are on their way."""
        return [path.name for path in (self.root / "spool").glob("*.json")]
