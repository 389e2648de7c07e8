"""What was built: judged by lintian, checked and signed, its parts from others listed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from packages import check, debs, inputs, licences, programs, provenance, rpms, site, tree
from packages.rooms import DIRECTORY, TREE, Room
from packages.site import PACKAGES
from packages.suites import SUITES

BOMS = ("io-autotuned", "io-autotune-cli", "io-autotune-node", "io-autotune-collector")
UNJUDGED = "alien-tag,package-has-long-file-name"
"""What an older lintian does not know; what a version of no release brings along."""
FEWEST = 50
"""Components of the smallest program, at least."""


def test_lintian_finds_nothing(here: site.Site, built: Path) -> None:
    said = debs.room(here.suite).run(
        [
            "/bin/sh",
            "-euc",
            f"cd /debs; lintian --allow-root --suppress-tags {UNJUDGED} *.changes",
        ],
        check=False,
        capture=True,
        binds={built / here.suite.name: "/debs"},
    )
    findings = [line for line in said.stdout.splitlines() if re.match("[EW]: ", line)]
    assert not findings, said.stdout
    assert said.returncode == 0, said.stdout


def test_programs_run_on_the_oldest_c_library(built: Path, tmp_path: Path) -> None:

    for suite in SUITES:
        for name in (
            "io-autotune-service",
            "io-autotune",
            "io-autotune-node",
            "io-autotune-collector",
        ):
            for deb in (built / suite.name).glob(f"{name}_*.deb"):
                unpacked = tmp_path / suite.name / name
                unpacked.mkdir(parents=True)
                subprocess.run(["dpkg-deb", "--extract", str(deb), str(unpacked)], check=True)
                found = [
                    unpacked / place for place in ("usr/bin", "usr/sbin", "usr/libexec/io-autotune")
                ]
                binaries = [
                    file
                    for place in found
                    if place.exists()
                    for file in place.iterdir()
                    if file.read_bytes()[:4] == b"\x7fELF"
                ]
                assert len(binaries) == 1, name
                programs.check(binaries[0])


def test_a_later_c_library_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "NEWEST_GLIBC", (2, 0))
    with pytest.raises(ValueError, match=r"needs a later C library than 2\.0"):
        programs.check(Path("/usr/bin/env"))


def test_the_bills_of_materials_name_what_cargo_locks(built: Path) -> None:
    lock = tomllib.loads((TREE / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {(package["name"], package["version"]) for package in lock["package"]}
    for name in BOMS:
        bom = json.loads((built / f"licences/{name}.cdx.json").read_text(encoding="utf-8"))
        assert bom["bomFormat"] == "CycloneDX"
        named_ = {(component["name"], component["version"]) for component in bom["components"]}
        assert len(named_) >= FEWEST
        assert named_ <= locked
        assert str(TREE) not in json.dumps(bom)
    report = json.loads(
        (built / "licences/io-autotune-report.cdx.json").read_text(encoding="utf-8")
    )
    assert {"numpy", "psycopg", "scikit-learn"} <= {part["name"] for part in report["components"]}


def test_every_part_of_others_has_its_licence(built: Path) -> None:
    listed = (built / "licences/third-party.txt").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^(.+? \((?:Rust|Python)\)): (.+);", listed, re.MULTILINE))
    components = [
        component
        for name in BOMS
        for component in json.loads((built / f"licences/{name}.cdx.json").read_text("utf-8"))[
            "components"
        ]
        if not component["name"].startswith("io-autotune")
    ]
    assert components
    for component in components:
        assert rows[f"{component['name']} {component['version']} (Rust)"]
    wheels = re.findall(
        r"^([a-z0-9-]+)==(\S+)", (TREE / "analysis/report/requirements.txt").read_text(), re.M
    )
    python = {
        name.rsplit(" ", 2)[0].lower().replace("_", "-")
        for name in rows
        if name.endswith("(Python)")
    }
    assert {name for name, _ in wheels} == python


# systemd's, which comes along for the accounts, makes and leaves these.
SYSTEMDS = "^/(root/[.]ssh|var/(cache|lib|log)/private|var/lib/systemd/.*)/?$"
PIUPARTS = f"""
cp --archive /clean /tmp/chroot
cd /debs
piuparts --existing-chroot=/tmp/chroot --no-eatmydata --distribution=$1 \\
    --ignore-regex='{SYSTEMDS}' \\
    {" ".join(f"{name}.deb" for name in PACKAGES)} \\
    >/tmp/said 2>&1 || {{ grep -v DEBUG /tmp/said; exit 1; }}
tail --lines=5 /tmp/said
"""


def test_piuparts_finds_nothing(here: site.Site) -> None:
    room = Room(here.suite.name, "piuparts", ("piuparts", "debootstrap"), network=True)
    clean = Room(here.suite.name, "clean").root()
    command = ["/bin/bash", "-euc", PIUPARTS, "piuparts", here.suite.name]
    said = room.run(command, check=False, capture=True, binds={clean: "/clean", here.now: "/debs"})
    assert said.returncode == 0, said.stdout
    assert "PASS: All tests" in said.stdout


ANOTHER_MACHINE = """
mkdir -p "$1/kept"
mount --bind "$1/kept" "$2"
hostname another-machine
umask 077
export TZ=Asia/Kathmandu LC_ALL=C HOME="$1/home" PYTHONPATH="$1/tree/tests"
cd "$1/tree"
exec taskset --cpu-list 0 python3 -m packages --out="$1/out" --commit="$3" "${@:4}"
"""
"""Another clone, roots and sources fetched anew, and whatever else two machines differ in."""
KEPT_BY_CARGO = ("CARGO_HOME", "RUSTUP_HOME")


@pytest.mark.slow
def test_a_build_on_another_machine_gives_the_same_bytes(tmp_path: Path) -> None:
    chosen = [f"--suite={name}" for name in (SUITES[0].name, rpms.NAME)]
    commit = tree.current().commit
    site.build([f"--out={tmp_path / 'here'}", f"--commit={commit}", *chosen])
    # It has the objects of this one, with changes that are not committed yet.
    clone = ["git", "clone", "--quiet", "--shared", str(TREE), str(tmp_path / "tree")]
    subprocess.run(clone, check=True)
    (tmp_path / "tree/build").mkdir()
    for tool in (inputs.TOOLS, licences.CYCLONEDX.parents[1]):
        (tmp_path / "tree/build" / tool.name).symlink_to(tool)
    environment = os.environ | {
        name: os.environ.get(name, str(Path.home() / f".{name.split('_')[0].lower()}"))
        for name in KEPT_BY_CARGO
    }
    there = ["unshare", "--mount", "--uts", "/bin/bash", "-euc", ANOTHER_MACHINE, "machine"]
    subprocess.run(
        [*there, str(tmp_path), str(DIRECTORY), commit, *chosen], check=True, env=environment
    )
    assert len(list((tmp_path / "here").rglob("*.deb"))) >= len(PACKAGES)
    assert list(check.differences(tmp_path / "here", tmp_path / "out")) == []
    here, out = (provenance.read(tmp_path / made) for made in ("here", "out"))
    assert here.parts == out.parts


def test_the_statement_names_what_built_the_packages(built: Path) -> None:
    said = provenance.read(built)
    assert list(check.files(built)) == []
    assert list(check.stated(built)) == []
    assert any(part.startswith('{"annotations": {"root": "bookworm.rust"}') for part in said.parts)
    for name in ("gcc", "libc6-dev", "libslurm-dev"):
        assert any(f"pkg:deb/debian/{name}@" in part for part in said.parts), name
    assert any(said.commit in part for part in said.parts)
