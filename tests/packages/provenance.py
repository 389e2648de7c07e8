"""Where a release comes from: a statement of in-toto's (v1) with SLSA's predicate (provenance v1).

It names each file of the release by its checksum, the commit that they were built from, and what
took part in building them: the compiler, the locks of crates and wheels, and every Debian package
of the roots. It has no time and no host, so that two builds of one commit state the same.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
https://slsa.dev/spec/v1.0/provenance
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packages import debs, inputs, programs, rpms, sums
from packages.rooms import Room
from packages.suites import named
from packages.tree import Source

NAME = "provenance.json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD = "urn:io-autotune:make-packages:1"
"""The kind of build: what `make packages` does, as docs/packages.md tells."""
BUILDER = "urn:io-autotune:releaser"
"""Who runs it: whoever holds the key that signs the checksums."""
COMMIT = re.compile("[0-9a-f]{40,64}")
VERSION = re.compile("[0-9A-Za-z.+~^-]{1,100}")
LOCKS = ("Cargo.lock", "analysis/report/requirements.txt", "tests/packages/requirements.txt")

Described = Mapping[str, object]
"""A resource as in-toto describes one: `uri` or `name`, and `digest`."""


def write(source: Source, tree: Path, names: Iterable[str], out: Path) -> Path:
    """State where the files below a directory come from, built of a written tree for suites."""
    names = list(names)
    parts = [
        {"uri": "git+io-autotune", "digest": {"gitCommit": source.commit}},
        *({"name": lock, "digest": {"sha256": sums.digest(tree / lock)}} for lock in LOCKS),
        {"name": "rustc", "annotations": {"version": _compiler()}},
        *_roots(names),
    ]
    written = out / NAME
    text = json.dumps(statement(source, names, parts, out), indent=1)
    written.write_text(text + "\n", encoding="utf-8")
    return written


def statement(
    source: Source, names: Iterable[str], parts: Iterable[Described], out: Path
) -> dict[str, object]:
    """Return what is stated of the files below a directory, built of parts for suites."""
    return {
        "_type": STATEMENT,
        "subject": [
            {"name": str(file.relative_to(out)), "digest": {"sha256": sums.digest(file)}}
            for file in sums.files(out)
            if file.name != NAME
        ],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {
                    "commit": source.commit,
                    "version": source.version,
                    "suites": list(names),
                },
                "resolvedDependencies": list(parts),
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }


@dataclass(frozen=True)
class Stated:
    """What a release's statement says, read by whoever checks the release."""

    commit: str
    version: str
    suites: tuple[str, ...]
    checksums: Mapping[str, str]
    """Of each file, by its path below the release's directory."""
    parts: frozenset[str]
    """What took part in the build, each as JSON."""


def read(release: Path) -> Stated:
    """Read the statement of a release.

    Raises:
        ValueError: it is none of this kind.
        OSError: there is none, or it cannot be read.

    """
    try:
        said = json.loads((release / NAME).read_text(encoding="utf-8"))
        if (said["_type"], said["predicateType"]) != (STATEMENT, PREDICATE):
            raise ValueError(f"{NAME} is no statement of SLSA's provenance")
        definition = said["predicate"]["buildDefinition"]
        given = definition["externalParameters"]
        commit, version = f"{given['commit']}", f"{given['version']}"
        # They are given to git, and shown as this command's own words.
        if not (COMMIT.fullmatch(commit) and VERSION.fullmatch(version)):
            raise ValueError(f"{NAME} states no commit and version: {commit!r}, {version!r}")
        return Stated(
            commit=commit,
            version=version,
            suites=tuple(f"{suite}" for suite in given["suites"]),
            checksums={f"{each['name']}": each["digest"]["sha256"] for each in said["subject"]},
            parts=frozenset(
                json.dumps(part, sort_keys=True) for part in definition["resolvedDependencies"]
            ),
        )
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as error:
        raise ValueError(f"{NAME} is no statement of SLSA's provenance: {error!r}") from error


def _compiler() -> str:
    command = [str(inputs.toolchain() / "bin/rustc"), "-vV"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _roots(names: Iterable[str]) -> Iterator[Described]:
    """Describe every Debian package of the roots in which suites' packages are built."""
    rooms = [
        programs.ROOM,
        *(rpms.ROOM if name == rpms.NAME else debs.room(named(name)) for name in names),
    ]
    for room in rooms:
        for name, version, architecture in _installed(room):
            where = f"?arch={architecture}&distro={room.suite}"
            yield {
                "uri": f"pkg:deb/debian/{name}@{version}{where}",
                "annotations": {"root": f"{room.suite}.{room.name}"},
            }


def _installed(room: Room) -> Iterator[tuple[str, str, str]]:
    """Read what dpkg says of a root: name, version and architecture of each package."""
    command = ["dpkg-query", f"--admindir={room.root()}/var/lib/dpkg", "--show"]
    command += ["--showformat", "${Package} ${Version} ${Architecture}\n"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in said.splitlines():
        name, version, architecture = line.split(" ")
        yield name, version, architecture
