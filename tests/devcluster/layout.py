"""The directories of a cluster's root: who owns them, and who may enter."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from devcluster import accounts, command, files, users
from devcluster.errors import ClusterError
from devcluster.paths import Paths
from devcluster.record import Record

_MOUNTINFO = Path("/proc/self/mountinfo")
SACK_RUN = Path("/run/slurm")
"""Where slurmd has the socket of auth/slurm; slurmctld has it in ``/run/slurmctld``."""


def make(paths: Paths, record: Record) -> None:
    """Make every directory of the root, with its mode and owner."""
    service = accounts.find(users.SERVICE_USER)
    slurm = accounts.find(users.SLURM_USER)
    for path in (
        paths.root,
        paths.bin,
        paths.slurm_lib.parent,
        paths.slurm_lib,
        paths.etc,
        paths.accelerators,
        paths.log,
        paths.spool,
        paths.homes,
        *(paths.slurmd_spool(node) for node in record.node_names()),
    ):
        files.directory(path, 0o755)
    # io-autotuned makes its socket here; sticky, so that it cannot touch that of munged.
    files.directory(paths.run, 0o1775, 0, service.gid)
    files.directory(paths.pg_sockets, 0o755, service.uid, service.gid)
    files.directory(paths.plugin_run, 0o711)
    files.directory(paths.slurmctld_run, 0o755, slurm.uid, slurm.gid)
    files.directory(paths.munge_spool, 0o700)
    files.directory(paths.slurmctld_spool, 0o700, slurm.uid, slurm.gid)
    files.directory(paths.plugin_spool, 0o711)
    files.directory(paths.scratch, 0o1777)
    if record.variant.auth == "slurm":
        _sockets_of_auth_slurm(slurm)
    if record.variant.namespace is not None:
        for node in record.node_names():
            files.directory(paths.namespaces / node, 0o755)
    if record.variant.burst_buffer:
        files.directory(paths.burst_buffers, 0o755, slurm.uid, slurm.gid)
        files.directory(paths.burst_buffers_spool, 0o700, slurm.uid, slurm.gid)
    if record.variant.configless:
        _lead_to_what_signs(paths, record)
    if record.variant.accounting:
        files.directory(paths.mariadb_run, 0o755, slurm.uid, slurm.gid)
    if record.variant.jobcomp:
        collector = accounts.find(users.COLLECTOR_USER)
        # SlurmUser appends; the collector reads, and removes what is delivered.
        files.directory(paths.jobcomp_spool, 0o2770, slurm.uid, collector.gid)
        files.directory(paths.collector_spool, 0o700, collector.uid, collector.gid)
    for name in users.JOB_USERS:
        account = accounts.find(name)
        files.directory(paths.home(name), 0o755, account.uid, account.gid)


def _sockets_of_auth_slurm(slurm: accounts.Account) -> None:
    """Make the places where its daemons have their sockets: no paths of the cluster's own."""
    files.directory(SACK_RUN, 0o755)
    for daemon in ("slurmctld", "slurmdbd"):
        files.directory(SACK_RUN.with_name(daemon), 0o755, slurm.uid, slurm.gid)


def _lead_to_what_signs(paths: Paths, record: Record) -> None:
    """Let a slurmd that has no configuration yet find the cluster's key or munged.

    Raises:
        ClusterError: this host has its own.

    """
    # Before slurmd has its configuration it looks for what signs where Slurm does by itself.
    key = Path("/etc/slurm/slurm.key"), paths.slurm_key
    socket = Path("/run/munge/munge.socket.2"), paths.munge_socket
    place, target = key if record.variant.auth == "slurm" else socket
    files.directory(place.parent, 0o755)
    if place.exists() and not place.is_symlink():
        raise ClusterError(f"a configless cluster needs {place} for itself, and it is there")
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def remove(paths: Paths) -> None:
    """Remove the root, and first whatever a test or a job that was killed has left mounted there.

    The record goes last: a removal that was interrupted can be taken up again.
    """
    for place in mounted_below(paths.root, _MOUNTINFO.read_text(encoding="utf-8")):
        # Not made canonical: a dead FUSE file system would not answer.
        command.run(["umount", "--lazy", "--no-canonicalize", place])
    for item in paths.root.iterdir():
        if item.is_dir() and item != paths.etc:
            shutil.rmtree(item)
    shutil.rmtree(paths.root)


def mounted_below(root: Path, mountinfo: str) -> list[str]:
    """Return the places below ``root`` where something is mounted, what was mounted last first.

    ``mountinfo`` is as /proc/self/mountinfo has it (proc_pid_mountinfo(5)): the fifth field is the
    place, with blanks as octal escapes.
    """
    places = (line.split(" ")[4] for line in mountinfo.splitlines())
    unescaped = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), at) for at in places]
    return [place for place in reversed(unescaped) if root in Path(place).parents]
