"""What a cluster remembers of its creation: its name, ports, nodes, options. Kept as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from devcluster import files, variant
from devcluster.errors import ClusterError
from devcluster.settings import Setting
from devcluster.variant import Variant

VERSION = 1
"""Version of the file's format."""

MAX_NODES = 64
"""More slurmds than this on one host are taken for a mistake."""


@dataclass(frozen=True)
class Ports:
    """TCP ports on 127.0.0.1; PostgreSQL's only names its Unix socket."""

    service: int
    slurmctld: int
    postgresql: int
    slurmd: tuple[int, ...]
    slurmdbd: int | None = None
    """None in the record of a cluster that was made without."""

    def all(self) -> list[int]:
        """Return every port."""
        own = [] if self.slurmdbd is None else [self.slurmdbd]
        return [self.service, self.slurmctld, self.postgresql, *self.slurmd, *own]


@dataclass(frozen=True)
class Record:
    """A cluster's memory."""

    name: str
    nodes: int
    prolog_alloc: bool
    ports: Ports
    variant: Variant = field(default_factory=Variant)
    study_settings: Mapping[str, Setting] = field(default_factory=dict)
    installed: Mapping[str, str] = field(default_factory=dict)
    """Files copied from the stage: path in the root directory -> SHA-256 of its content."""

    def node_names(self) -> list[str]:
        """Return the nodes' names: n1, n2, ..."""
        return [f"n{index}" for index in range(1, self.nodes + 1)]

    def with_installed(self, installed: Mapping[str, str]) -> Record:
        """Return a copy that remembers these files as installed."""
        return replace(self, installed=dict(installed))


def cluster_name(root: Path) -> str:
    """Return a valid Slurm ``ClusterName`` from the root directory's name.

    Lower case letters, digits and underscores, at most 40 characters, a letter first; the product's
    own name in front is dropped: ``io-autotune-dev`` gives ``dev``.
    """
    name = re.sub(r"[^a-z0-9]+", "_", root.name.lower().removeprefix("io-autotune-")).strip("_")
    if not name or not name[0].isalpha():
        name = f"c{name}"
    return name[:40]


def check_nodes(nodes: int) -> None:
    """Raise ClusterError unless the number of nodes is one that makes sense."""
    if not 1 <= nodes <= MAX_NODES:
        raise ClusterError(f"a cluster of {nodes} nodes was asked for; choose 1 to {MAX_NODES}")


def dump(record: Record) -> str:
    """Return the record as JSON."""
    data = {"version": VERSION, **asdict(record), "variant": variant.to_json(record.variant)}
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def parse(text: str, source: Path) -> Record:
    """Return the record that JSON ``text`` holds; ``source`` is named in errors.

    Raises:
        ClusterError: the text is not a record of this version.

    """
    try:
        data: dict[str, Any] = json.loads(text)
        version = data.pop("version")
        if version != VERSION:
            raise ValueError(f"its version is {version}, and only {VERSION} is known")
        ports = data.pop("ports")
        record = Record(
            name=str(data["name"]),
            nodes=int(data["nodes"]),
            prolog_alloc=bool(data["prolog_alloc"]),
            ports=Ports(
                service=int(ports["service"]),
                slurmctld=int(ports["slurmctld"]),
                postgresql=int(ports["postgresql"]),
                slurmd=tuple(int(port) for port in ports["slurmd"]),
                slurmdbd=None if ports.get("slurmdbd") is None else int(ports["slurmdbd"]),
            ),
            variant=variant.from_json(data.get("variant", {})),
            study_settings=dict(data["study_settings"]),
            installed=dict(data["installed"]),
        )
        if len(record.ports.slurmd) != record.nodes:
            raise ValueError("it does not name one port per node")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{source} cannot be read as a cluster's record: {error!r};"
            " remove the cluster's root directory and start again"
        ) from error
    return record


@dataclass(frozen=True)
class Neighbour:
    """What another cluster of this host holds: it may be of another version of this tree."""

    ports: frozenset[int]
    memory: bool
    """It confines jobs by the memory cgroup."""


def load_neighbour(path: Path) -> Neighbour | None:
    """Return what the cluster with this record holds, or None if there is no such file.

    Raises:
        ClusterError: it does not even name ports.

    """
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        ports = dict(data["ports"])
        held = [*ports.pop("slurmd"), *(port for port in ports.values() if port is not None)]
        memory = bool(data.get("variant", {}).get("memory", False))
        return Neighbour(frozenset(int(port) for port in held), memory)
    except FileNotFoundError:
        return None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ClusterError(
            f"{path} cannot be read as a cluster's record: {error!r};"
            " remove that cluster's root directory and start again"
        ) from error


def load(path: Path) -> Record | None:
    """Return the record kept in a file, or None if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return parse(text, path)


def save(path: Path, record: Record) -> None:
    """Write the record, atomically."""
    files.write(path, dump(record), mode=0o644)
