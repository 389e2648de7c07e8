"""The measured file systems: which combinations are valid, and the instrument on real devices."""

import csv
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from measure.plan import Value
from measure.side_by_side import RunFailed
from measure_file_systems import device
from measure_file_systems.grid import FIRST, PARAMETERS, file_systems, is_valid
from measure_file_systems.workload import WORKLOAD
from peers.tables import Table

TABLE = Path(__file__).parents[3] / "analysis/data/papers/file-systems.json"
MAKERS = ("mkfs.ext2", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "losetup")
LACKS = device.needs() or next((f"no {m}" for m in MAKERS if shutil.which(m) is None), None)
EXT4 = FIRST[0]


def test_parameters_that_a_file_system_lacks_are_invalid() -> None:
    """Cao 2018, section 3: "Any parameter with n/a value is considered invalid"."""
    assert all(is_valid(first) for first in FIRST)
    for change in (
        {"journal": "n/a"},
        {"file_system": "ext2"},
        {"special": "compress"},
        {"groups": "n/a"},
        {"block_size": 1024},
        {"file_system": "btrfs"},
        {"file_system": "xfs", "journal": "n/a"},
    ):
        assert not is_valid({**EXT4, **change}), change


def test_btrfs_is_rare_as_in_the_paper() -> None:
    """Cao 2018, section 4.2: "Fewer than 2% of all valid configurations are Btrfs ones"."""
    points = file_systems(1, 1).points
    btrfs = sum(point[0] == "btrfs" for point in points)
    assert (len(points), btrfs) == (278, 6)


def test_the_table_that_is_shipped_is_what_the_plan_says() -> None:
    described = json.loads(TABLE.read_text("utf-8"))
    plan = file_systems(described["blocks"], described["seed"])
    assert described["blocks"] >= 3
    assert described["default"] == plan.named(plan.default) == EXT4
    assert described["first"] == list(FIRST)
    assert described["workload"] == str(WORKLOAD)
    with TABLE.with_suffix(".csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = [tuple(row[p.name] for p in PARAMETERS) for row in rows]
    wanted = [tuple(map(str, point)) for point in plan.points]
    assert measured == [point for point in wanted for _ in range(plan.blocks)]
    assert {int(row["order"]) for row in rows} == set(range(len(rows)))
    assert all(float(row["load"]) > 0.0 for row in rows)
    assert len(Table(TABLE).points) == len(plan.points)


@pytest.mark.skipif(LACKS is not None, reason=str(LACKS))
@pytest.mark.parametrize("system", ["ext2", "ext4", "xfs", "btrfs"])
def test_mkfs_refuses_what_the_grid_calls_invalid(system: str) -> None:
    journal = "ordered" if system == "ext4" else "n/a"
    rest = {"journal": journal, "atime": "relatime", "special": "none"}
    by_name = {p.name: [v for v in p.values if v != "n/a"] for p in PARAMETERS}
    some: list[list[Value]] = [by_name[n] for n in ("block_size", "inode_size", "groups")]
    if system == "btrfs":
        some[1:] = [["n/a"], ["n/a"]]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="test-file-systems-") as folder:
        image = Path(folder) / "image"
        for block, inode, groups in itertools.product(*some):
            named = {"file_system": system, "block_size": block, "inode_size": inode}
            named |= {"groups": groups, **rest}
            with image.open("wb") as file:
                file.truncate(WORKLOAD.device_mib * 2**20)
            command = [*device.make(WORKLOAD, named), str(image)]
            made = subprocess.run(command, capture_output=True, check=False).returncode == 0
            assert made == is_valid(named), command


@pytest.mark.skipif(LACKS is not None, reason=str(LACKS))
def test_a_run_takes_what_its_device_allows_and_leaves_nothing() -> None:
    slow = replace(WORKLOAD, whole_kib=4096, rounds=1, megabytes_a_second=16)
    assert device.run(slow, FIRST[3]) > 0.8, "16 MiB at 16 MB/s"
    with pytest.raises(RunFailed, match=r"mkfs\.ext4.*out of range"):
        device.run(WORKLOAD, {**EXT4, "block_size": 1024})
    own = f"measure-file-systems-{os.getpid()}-"
    attached = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    assert own not in attached.stdout
    assert not list(Path("/dev/shm").glob(f"{own}*"))
    limits = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device").read_text("utf-8")
    assert " 16000000\n" not in limits


@pytest.mark.skipif(LACKS is not None, reason=str(LACKS))
def test_what_a_killed_command_leaves_is_removed() -> None:
    # Above every process id.
    dead = f"measure-file-systems-{2**22 + 1}-"
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix=dead))
    (folder / "mount").mkdir()
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(WORKLOAD.device_mib * 2**20)
    attach = ["losetup", "--find", "--show", str(image)]
    found = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
    for command in (device.make(WORKLOAD, EXT4), ["mount", "-t", "ext4"]):
        rest = [found] if command[0] != "mount" else [found, str(folder / "mount")]
        subprocess.run([*command, *rest], capture_output=True, check=True)
    device.clean()
    assert not folder.exists()
    listed = ["losetup", "--list", "--output", "BACK-FILE"]
    attached = subprocess.run(listed, capture_output=True, text=True, check=True)
    assert str(folder) not in attached.stdout
