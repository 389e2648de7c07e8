"""The grid: table 2 of Cao 2018 as far as this kernel and a small device have it."""

from collections.abc import Mapping

from measure.plan import Parameter, Plan, Point, Value

from measure_file_systems.workload import MIB, WORKLOAD

NOT_APPLICABLE = "n/a"
"""The paper's value of a parameter that a file system does not have (section 3)."""
PARAMETERS = (
    Parameter("file_system", "categorical", ("ext2", "ext3", "ext4", "xfs", "btrfs"), "ext4"),
    Parameter("block_size", "ordinal", (1024, 2048, 4096), 4096),
    Parameter("inode_size", "categorical", (256, 512, 1024, NOT_APPLICABLE), 256),
    Parameter("groups", "categorical", (2, 4, 16, 64, NOT_APPLICABLE), 4),
    Parameter(
        "journal", "categorical", ("journal", "ordered", "writeback", NOT_APPLICABLE), "ordered"
    ),
    Parameter("atime", "categorical", ("relatime", "noatime"), "relatime"),
    Parameter("special", "categorical", ("none", "compress", "nodatacow"), "none"),
)
"""Allocation groups are `groups`, XFS's or, of ext, block groups. The default is ext4's."""

_EXT: dict[str, Value] = {
    "block_size": 4096,
    "inode_size": 256,
    "groups": 4,
    "atime": "relatime",
    "special": "none",
}
_NONE = NOT_APPLICABLE
FIRST: tuple[dict[str, Value], ...] = (
    {"file_system": "ext4", **_EXT, "journal": "ordered"},
    {"file_system": "ext2", **_EXT, "journal": _NONE},
    {"file_system": "ext3", **_EXT, "journal": "ordered"},
    {"file_system": "xfs", **_EXT, "inode_size": 512, "journal": _NONE},
    {"file_system": "btrfs", **_EXT, "inode_size": _NONE, "groups": _NONE, "journal": _NONE},
)
"""Each file system's default, on a device of this size: where the paper's GA and BO begin."""

_JOURNALLED = {"ext3", "ext4"}
_GROUP_BLOCKS_A_BYTE = 8
"""ext's groups: a block is the bitmap of its group's blocks."""
_LOG = 64 * MIB
"""XFS's smallest log, which has to fit into a group."""
_XFS_INODE = 512
"""Its smallest inode that has a checksum; the largest is half a block."""
_BTRFS_SECTOR = 4096
"""Its smallest."""


class ValidPlan(Plan):
    """The valid points of the grid; others have no time."""

    @property
    def points(self) -> list[Point]:
        """The valid parametrizations, the last parameter changing fastest."""
        return [point for point in super().points if is_valid(self.named(point))]


def is_valid(named: Mapping[str, Value]) -> bool:
    """Whether each parameter is one of the file system's, and mkfs makes the file system."""
    system = named["file_system"]
    if (named["journal"] != NOT_APPLICABLE) != (system in _JOURNALLED):
        return False
    if named["special"] != "none" and system != "btrfs":
        return False
    block, inode, groups = (named[name] for name in ("block_size", "inode_size", "groups"))
    if system == "btrfs":
        return inode == groups == NOT_APPLICABLE and block == _BTRFS_SECTOR
    if not (isinstance(block, int) and isinstance(inode, int) and isinstance(groups, int)):
        return False
    size = WORKLOAD.device_mib * MIB
    if system == "xfs":
        return _XFS_INODE <= inode <= block // 2 and size // groups > _LOG
    return size // block // groups <= block * _GROUP_BLOCKS_A_BYTE


def file_systems(blocks: int, seed: int) -> Plan:
    """The plan."""
    objective = "elapsed seconds of a file server's work on a loop device; see README.md"
    return ValidPlan("file-systems", PARAMETERS, WORKLOAD, blocks, seed, objective, FIRST)
