"""The directories of a cluster's root: who owns them, and who may enter."""

from __future__ import annotations

from devcluster import accounts, files, users
from devcluster.paths import Paths


def make(paths: Paths, nodes: list[str]) -> None:
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
        *(paths.slurmd_spool(node) for node in nodes),
    ):
        files.directory(path, 0o755)
    # io-autotuned makes its socket here; sticky, so that it cannot touch that of munged.
    files.directory(paths.run, 0o1775, 0, service.gid)
    files.directory(paths.pg_sockets, 0o755, service.uid, service.gid)
    files.directory(paths.plugin_run, 0o711)
    files.directory(paths.slurmctld_run, 0o755, slurm.uid, slurm.gid)
    files.directory(paths.munge_spool, 0o700)
    files.directory(paths.slurmctld_spool, 0o700, slurm.uid, slurm.gid)
    files.directory(paths.plugin_spool, 0o700)
    files.directory(paths.scratch, 0o1777)
    for name in users.JOB_USERS:
        account = accounts.find(name)
        files.directory(paths.home(name), 0o755, account.uid, account.gid)
