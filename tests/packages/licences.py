"""What comes along from others: bills of materials (CycloneDX), and licences with their texts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from packages import inputs
from packages.rooms import TREE
from packages.suites import OLDEST
from packages.tree import Source

CYCLONEDX = TREE / "build/cargo-cyclonedx-0.5.9/bin/cargo-cyclonedx"
TARGET = "x86_64-unknown-linux-gnu"
PROGRAMS = ("service", "cli", "node", "collector")
"""Members of the workspace that have a program."""
NOTICE = re.compile(r"(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)
LIST = "third-party.txt"


def write(source: Source, tree: Path, into: Path) -> None:
    """Write a bill of materials of each program and of the report, and the list of licences.

    Raises:
        ValueError: a component has no licence, or no text of it.

    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(source.time)}
    command = [str(CYCLONEDX), "cyclonedx", "--format=json", "--spec-version=1.5", "--quiet"]
    command += [f"--target={TARGET}", "--override-filename=bom"]
    subprocess.run(command, cwd=tree, check=True, env=environment)
    for name in PROGRAMS:
        bom = json.loads((tree / f"tuner-service/{name}/bom.json").read_text(encoding="utf-8"))
        product = bom["metadata"]["component"]["name"]
        _keep(bom, tree, into / f"{product}.cdx.json")
    command = [str(inputs.TOOLS / "bin/cyclonedx-py"), "requirements", "--output-reproducible"]
    command += ["--sv=1.5", "--pyproject=pyproject.toml", "requirements.txt"]
    said = subprocess.run(
        command, cwd=tree / "analysis/report", check=True, stdout=subprocess.PIPE, text=True
    )
    _keep(json.loads(said.stdout), tree, into / "io-autotune-report.cdx.json")
    for made in tree.rglob("bom.json"):
        made.unlink()
    components = {**_crates(source, tree, into), **_wheels(source, tree)}
    (into / LIST).write_text(_listed(components), encoding="utf-8")


def _keep(bom: dict[str, object], tree: Path, file: Path) -> None:
    """Write a bill without what differs between two makings, and without paths of this host."""
    bom.pop("serialNumber", None)
    text = json.dumps(bom, indent=1, sort_keys=True)
    file.write_text(text.replace(f"{tree}", "io-autotune") + "\n", encoding="utf-8")


Component = tuple[str, Mapping[str, str]]
"""A licence's expression; its files, each by its name."""


def _crates(source: Source, tree: Path, boms: Path) -> dict[str, Component]:
    """Return what the programs are made of from others: as the bills say it, in the sources."""
    vendored = inputs.crates(source, tree)
    found: dict[str, Component] = {}
    for file in boms.glob("*.cdx.json"):
        for component in json.loads(file.read_text(encoding="utf-8"))["components"]:
            name, version = component["name"], component.get("version", "")
            directory = vendored / f"{name}-{version}"
            if not component.get("purl", "").startswith("pkg:cargo/") or not directory.is_dir():
                continue
            texts = {
                path.name: path.read_text(encoding="utf-8", errors="replace")
                for path in sorted(directory.iterdir())
                if path.is_file() and NOTICE.match(path.name)
            }
            found[f"{name} {version} (Rust)"] = (_expression(component), texts)
    return found


def _expression(component: Mapping[str, list[dict[str, dict[str, str] | str]]]) -> str:
    said = []
    for licence in component.get("licenses", []):
        one = licence.get("expression") or licence.get("license")
        said.append(one if isinstance(one, str) else (one or {}).get("id") or (one or {})["name"])
    return " AND ".join(said)


def _wheels(source: Source, tree: Path) -> dict[str, Component]:
    found: dict[str, Component] = {}
    for wheel in sorted(inputs.wheels(source, tree, OLDEST).glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            head = archive.read(metadata).decode().split("\n\n")[0]
            fields = dict(
                re.findall(r"^(License-Expression|License|Name|Version): (.+)$", head, re.M)
            )
            classified = re.findall(
                r"^Classifier: License :: (?:OSI Approved :: )?(.+)$", head, re.M
            )
            licence = fields.get("License-Expression") or " AND ".join(classified)
            texts = {
                name.rsplit("/", 1)[-1]: archive.read(name).decode(errors="replace")
                for name in archive.namelist()
                if name.startswith(metadata.rsplit("/", 1)[0]) and NOTICE.match(Path(name).name)
            }
            name = f"{fields['Name']} {fields['Version']} (Python)"
            found[name] = (licence or fields.get("License", ""), texts)
    return found


def _listed(components: Mapping[str, Component]) -> str:
    """Return the list, and after it each text once.

    Raises:
        ValueError: a component has no licence.

    """
    texts: dict[str, int] = {}
    rows = []
    for name, (expression, files) in sorted(components.items()):
        if not expression:
            raise ValueError(f"{name} says no licence: look what it is under")
        numbers = [str(texts.setdefault(_even(text), len(texts) + 1)) for text in files.values()]
        said = f"texts {', '.join(numbers)}" if numbers else "no text of its own"
        rows.append(f"{name}: {expression}; {said}")
    return "\n".join([*_head(), *rows, *_bodies(texts)]) + "\n"


def _head() -> Iterator[str]:
    yield "What io-autotune's packages contain of others, and its licences; the texts follow."
    yield ""


def _bodies(texts: Mapping[str, int]) -> Iterator[str]:
    for text, number in texts.items():
        yield f"\n---------- text {number}\n\n{text}"


def _even(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
