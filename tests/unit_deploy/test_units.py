"""The systemd units: how much of the host each leaves open may not rise; each has limits."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "deploy" / "systemd"

CEILINGS = {
    "io-autotuned": 1.2,
    "io-autotune-collector": 1.2,
    "io-autotune-report": 1.2,
    "io-autotune-flush": 5.0,
    "io-autotune-restore": 4.2,
}
"""The most that `systemd-analyze security` may say, from 0 to 10. Lower a number when it falls."""

ROOTS = {"io-autotune-flush", "io-autotune-restore"}
MOST_OF_AN_ACCOUNT = 2.0

SOCKETS = {
    "io-autotuned-users": ("users", "0666"),
    "io-autotuned-nodes": ("nodes", "0600"),
}
"""The name by which the service takes a unit's sockets over, and the mode of its Unix socket."""


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def security(unit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return analyze("security", "--offline=true", "--no-pager", *arguments, str(unit))


def settings(unit: Path) -> dict[str, list[str]]:
    """Return what a unit sets, without its comments."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def test_each_unit_has_its_ceiling() -> None:
    assert {unit.stem for unit in UNITS.glob("*.service")} == set(CEILINGS)
    assert {unit.stem for unit in UNITS.glob("*.socket")} == set(SOCKETS)
    assert all(CEILINGS[name] <= MOST_OF_AN_ACCOUNT for name in set(CEILINGS) - ROOTS)


@pytest.mark.parametrize("name", CEILINGS)
def test_a_unit_leaves_no_more_open_than_before(name: str) -> None:
    """Attack (units): A program of ours is taken over, or takes memory or processes without end.
    Outcome: Its unit limits them, and leaves open only what it names with a reason.
    """
    threshold = round(CEILINGS[name] * 10)
    said = security(UNITS / f"{name}.service", f"--threshold={threshold}")
    assert said.returncode == 0, said.stdout + said.stderr


def test_a_score_above_its_ceiling_is_noticed(tmp_path: Path) -> None:
    unit = tmp_path / "io-autotuned.service"
    text = (UNITS / unit.name).read_text(encoding="utf-8")
    unit.write_text(text.replace("NoNewPrivileges=yes\n", ""), encoding="utf-8")
    assert security(unit, "--threshold=12").returncode != 0


@pytest.mark.parametrize("name", CEILINGS)
def test_what_a_unit_leaves_open_it_says_why(name: str) -> None:
    """Attack (units): A program of ours is taken over, or takes memory or processes without end.
    Outcome: Its unit limits them, and leaves open only what it names with a reason.
    """
    unit = UNITS / f"{name}.service"
    text = unit.read_text(encoding="utf-8")
    items = json.loads(security(unit, "--json=short").stdout)
    assert items
    for item in items:
        if not item["set"] and item["exposure"] not in (None, "0.0"):
            # As `CapabilityBoundingSet=~CAP_SYS_ADMIN` or `ProtectProc=`.
            directive = re.match(r"\w+", item["name"])
            assert directive, item
            said = directive.group() in text or item["json_field"] in ("UserOrDynamicUser",)
            assert said, f"{unit.name} does not say why {item['name']} is open"


@pytest.mark.parametrize("name", CEILINGS)
def test_a_unit_has_limits_of_memory_and_tasks(name: str) -> None:
    """Attack (units): A program of ours is taken over, or takes memory or processes without end.
    Outcome: Its unit limits them, and leaves open only what it names with a reason.
    """
    limits = settings(UNITS / f"{name}.service")
    assert re.fullmatch(r"\d+[MG]", limits["MemoryMax"][0])
    assert limits["TasksMax"][0].isdigit()


@pytest.mark.parametrize("name", sorted(ROOTS))
def test_what_takes_away_mounts_does_so_on_the_host(name: str) -> None:
    # Each of them gives the unit a mount namespace; what is unmounted there stays mounted outside.
    namespaced = {
        "MountFlags", "PrivateDevices", "PrivateMounts", "PrivateTmp", "ProcSubset",
        "ProtectControlGroups", "ProtectHome", "ProtectKernelLogs", "ProtectKernelModules",
        "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "ReadWritePaths", "RootDirectory",
    }  # fmt: skip
    unit = settings(UNITS / f"{name}.service")
    assert not namespaced & set(unit)
    # fusermount3 is setuid.
    assert unit.get("NoNewPrivileges", ["no"]) == ["no"]


@pytest.mark.parametrize("name", SOCKETS)
def test_sockets_are_handed_to_the_service_and_stay(name: str) -> None:
    """Attack (units): A user opens the service's port while the service is down.
    Outcome: systemd holds the addresses.
    """
    passed_as, mode = SOCKETS[name]
    socket = settings(UNITS / f"{name}.socket")
    assert socket["FileDescriptorName"] == [passed_as]
    assert socket["Service"] == ["io-autotuned.service"]
    assert socket["SocketMode"] == [mode]
    assert socket["Backlog"] == ["4096"]
    assert socket["RemoveOnStop"] == ["yes"]
    # A socket that gives up after failures leaves its port to any user.
    assert socket["StartLimitIntervalSec"] == socket["TriggerLimitIntervalSec"] == ["0"]
    unix, tcp = socket["ListenStream"]
    assert unix.startswith("/run/io-autotuned/")
    assert re.fullmatch(r"127\.0\.0\.1:\d+", tcp)
    # The directory that they are in outlives the service.
    assert settings(UNITS / "io-autotuned.service")["RuntimeDirectoryPreserve"] == ["yes"]


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    units = []
    for unit in UNITS.iterdir():
        text = unit.read_text(encoding="utf-8")
        # The programs are not installed here.
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        units.append(str(tmp_path / unit.name))
    said = analyze("verify", "--man=no", "--recursive-errors=no", *units)
    assert (said.returncode, said.stderr.strip()) == (0, "")
