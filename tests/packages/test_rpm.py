"""RPMs for EL 9, as far as Debian's rpm can judge them: they are not installed on EL here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packages import rpms
from packages.rooms import TREE
from packages.site import PACKAGES
from packages.suites import OLDEST
from packages.table import COPIED, PLUGINS, table

EL_PLUGINS = "/usr/lib64/slurm"
FIELDS = "%{=NAME}|%{FILENAMES}|%{FILEUSERNAME}:%{FILEGROUPNAME}|%{FILEMODES:octal}|"
FIELDS += "%{FILEFLAGS:fflags}"
LIST = f"rpm --query --package --queryformat '[{FIELDS}\\n]' *.rpm"


@pytest.fixture(scope="session")
def packed(built: Path) -> Path:
    """Where the RPMs are."""
    return built / rpms.NAME


def inside(packed: Path, script: str) -> str:
    said = rpms.ROOM.run(
        ["/bin/bash", "-euc", f"cd /rpms\n{script}"],
        check=False,
        capture=True,
        binds={packed: "/rpms", TREE / "deploy/packages/rpm": "/spec"},
    )
    assert said.returncode == 0, said.stdout
    return said.stdout


def test_rpmlint_finds_nothing_that_is_not_meant(packed: Path) -> None:
    said = inside(
        packed, "rpmlint --config /spec/rpmlint.toml *.rpm /spec/io-autotune.spec || true"
    )
    findings = [line for line in said.splitlines() if re.search(r": [EW]: ", line)]
    assert not findings, said
    assert f"{len(PACKAGES)} packages and 1 specfiles checked" in said


def test_files_owners_and_modes_are_those_of_the_guide(packed: Path) -> None:
    found = {}
    for line in inside(packed, LIST).splitlines():
        package, path, owner, mode, flags = line.split("|")
        found[path] = (package, owner, f"0{mode[-3:]}", flags)
    for said, package, owner, mode in table():
        path = COPIED.get(said, said).replace(PLUGINS, EL_PLUGINS)
        pattern = re.escape(path).replace(r"\*", "[^/]+") + "$"
        matching = [each for each in found if re.match(pattern, each)]
        assert matching, f"{path} is in no package"
        for each in matching:
            # Debian's libraries are not executable, and EL's are.
            wanted = "0755" if each.endswith(".so") else mode
            assert found[each][:3] == (package, owner, wanted), each
            # An upgrade leaves what the admin has changed.
            assert ("c" in found[each][3] and "n" in found[each][3]) == each.startswith("/etc/"), (
                each
            )


def test_they_need_what_el_9_has(packed: Path) -> None:
    said = inside(packed, "rpm --query --package --requires *.rpm")
    needed = {tuple(map(int, each)) for each in re.findall(r"GLIBC_(\d+)\.(\d+)", said)}
    assert max(needed) <= (2, 34)
    assert f"python{OLDEST.python}" in said
    plugin = inside(packed, "rpm --query --package --requires slurm-spank-io-autotune-0*.rpm")
    assert "libslurm.so.38()(64bit)" in plugin


def test_they_unpack_and_their_programs_run(packed: Path) -> None:
    said = inside(
        packed,
        """
for package in *.rpm; do rpm2cpio $package | (cd / && cpio --quiet -idm --no-preserve-owner); done
io-autotuned --version
io-autotune --version
/usr/libexec/io-autotune/io-autotune-node --version
/usr/libexec/io-autotune/io-autotune-collector --version
io-autotune-report --help | head -n 1
""",
    )
    assert len(re.findall(r"^io-autotune\S* \d+\.\d+\.\d+$", said, re.MULTILINE)) == 4, said
    assert "usage: io-autotune-report" in said


def test_their_scripts_are_shell(packed: Path) -> None:
    said = inside(
        packed,
        """
for package in *.rpm; do
    for tag in PREIN POSTIN PREUN POSTUN; do
        rpm --query --package --queryformat "%{$tag}" $package >/tmp/script
        grep -q '^(none)$' /tmp/script || sh -n /tmp/script
        grep -E 'systemctl (--now )?(enable|start|restart)' /tmp/script && exit 1
    done
done
echo right
""",
    )
    assert said.splitlines()[-1] == "right"
