"""Services beside the cluster's own: other sockets, and what else is to differ."""

from __future__ import annotations

import http.client
import re
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from devcluster import accounts, command, files, ports, process
from devcluster.certificates import Authority
from devcluster.network import Namespace
from devcluster.users import SERVICE_USER
from harness import Site, await_true


@dataclass(frozen=True)
class Beside:
    """A service beside the cluster's own."""

    unix: Path
    """The users' socket."""
    config: Path
    log: Path
    identity: process.Identity


class Encrypted:
    """TLS at addresses of a service's own, where it takes nothing else."""

    def __init__(self, site: Site) -> None:
        """Have an authority and a certificate in this cluster."""
        with Namespace(site.paths.root).inside():
            self._port = ports.ephemeral()
        made = site.paths.scratch / "certificates"
        made.mkdir(mode=0o755)
        authority = Authority(made, "site", SERVICE_USER)
        self._certificate, self._key = authority.certify(
            "service", f"subjectAltName=IP:{ports.HOST},IP:{ports.NODES_HOST}"
        )
        self.ca = site.paths.etc / "tls-ca.crt"
        """The authority that clients believe."""
        files.write(self.ca, authority.certificate.read_bytes(), mode=0o644)
        self.of_users = f"tls:{ports.HOST}:{self._port}"
        self.of_nodes = f"tls:{ports.NODES_HOST}:{self._port}"

    def listening(self, service_toml: str) -> str:
        """Return the configuration of a service without TCP, listening so."""
        listen = (
            f'[listen]\ntcp = "{ports.HOST}:{self._port}"\n'
            f'nodes_tcp = "{ports.NODES_HOST}:{self._port}"\n'
        )
        tls = f'[tls]\ncertificate = "{self._certificate}"\nkey = "{self._key}"\nrequired = true\n'
        return service_toml.replace("[listen]\n", listen) + "\n" + tls


@contextmanager
def service_beside(
    site: Site,
    name: str,
    service_toml: str,
    env: Mapping[str, str] | None = None,
    encrypted: Encrypted | None = None,
) -> Iterator[Path]:
    """Run another io-autotuned, configured so but for where it listens; yield its users' socket.

    ``env`` is put on top of its environment. With ``encrypted`` it also listens there.
    """
    with running_beside(site, name, service_toml, env, encrypted) as beside:
        yield beside.unix


@contextmanager
def running_beside(
    site: Site,
    name: str,
    service_toml: str,
    env: Mapping[str, str] | None = None,
    encrypted: Encrypted | None = None,
) -> Iterator[Beside]:
    """Run the same, and yield all that is known of it."""
    paths = site.paths
    unix = paths.run / f"{name}.sock"
    config = paths.etc / f"{name}.toml"
    text = service_toml.replace(str(paths.service_socket), str(unix))
    text = text.replace(str(paths.nodes_socket), str(nodes_socket(site, name)))
    text = re.sub(r"(?m)^(tcp|nodes_tcp) = .*$", "", text)
    if encrypted is not None:
        text = encrypted.listening(text)
    account = accounts.find(SERVICE_USER)
    files.write(config, text, mode=0o640, gid=account.gid)
    argv = [str(paths.bin / "io-autotuned"), "--config", str(config)]
    with Namespace(paths.root).inside():
        service = process.spawn(
            argv,
            env={**command.base_env(), **(env or {})},
            output=paths.log_of(name),
            account=account,
        )
    try:
        await_true(f"the {name} service to listen", lambda: accepts(unix))
        yield Beside(unix, config, paths.log_of(name), service)
    finally:
        assert process.end(service, signal.SIGTERM, 20.0), f"the {name} service does not end"


def metrics(site: Site, address: str) -> dict[str, float]:
    """Read /metrics as Prometheus does: each series with its value."""
    with Namespace(site.paths.root).inside():
        connection = http.client.HTTPConnection(address, timeout=10.0)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
    assert answer.status == HTTPStatus.OK
    assert text.endswith("# EOF\n")
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}


def nodes_socket(site: Site, name: str) -> Path:
    """Return the socket at which a service beside the cluster's own listens for nodes."""
    return site.paths.run / f"{name}-nodes.sock"


def accepts(unix: Path) -> bool:
    """Tell whether something listens there: the file alone may be of a service that has ended."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(unix)) == 0


def resident(site: Site, config: Path, field: str = "VmRSS") -> int:
    """Return the memory in bytes of the service that was started with a configuration.

    As /proc/PID/status has it: VmRSS now, VmHWM at the most so far.
    """
    pids = [
        pid
        for pid in process.all_pids()
        if f"{site.paths.bin}/io-autotuned".encode()
        in _read(Path(f"/proc/{pid}/cmdline")).split(b"\0")[:1]
        and str(config).encode() in _read(Path(f"/proc/{pid}/cmdline"))
    ]
    # One that it has just forked has its arguments until it runs another program.
    status = Path(f"/proc/{min(pids)}/status").read_text(encoding="ascii")
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
