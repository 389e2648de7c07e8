"""What was built: judged by lintian, checked and signed, its parts from others listed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from packages import debs, programs, rpms, site, sums
from packages.rooms import TREE, Room
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


def test_checksums_are_signed_and_a_changed_package_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    key = "releaser@example.org"
    command = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", key]
    subprocess.run(command, check=True)
    package = tmp_path / "out/bookworm/a.deb"
    package.parent.mkdir(parents=True)
    package.write_bytes(b"a package")
    written = sums.write(tmp_path / "out")
    signature = sums.sign(written, key)

    def right(*command: str) -> bool:
        said = subprocess.run(command, cwd=tmp_path / "out", check=False, capture_output=True)
        return said.returncode == 0

    verify = ("gpg", "--verify", str(signature), str(written))
    check = ("sha256sum", "--check", "SHA256SUMS")
    assert right(*verify)
    assert right(*check)
    package.write_bytes(b"another")
    assert not right(*check)
    sums.write(tmp_path / "out")
    assert right(*check)
    assert not right(*verify)


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


@pytest.mark.slow
def test_a_second_build_gives_the_same_bytes() -> None:
    out = TREE / "build/test-packages.again"
    try:
        found = []
        for turn in ("first", "second"):
            shutil.rmtree(out, ignore_errors=True)
            anew = ["--anew"] if turn == "second" else []
            chosen = (f"--suite={name}" for name in (SUITES[0].name, rpms.NAME))
            site.build([f"--out={out}", *chosen, *anew])
            # It names the build's own surroundings.
            lines = (out / sums.NAME).read_text(encoding="ascii").splitlines()
            found.append([line for line in lines if not line.endswith((".buildinfo", ".changes"))])
        assert len([line for line in found[0] if line.endswith(".deb")]) >= len(PACKAGES)
        assert found[0] == found[1]
    finally:
        shutil.rmtree(out, ignore_errors=True)
