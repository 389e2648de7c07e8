"""Where everything in a cluster's root directory lies, and which roots can hold a cluster."""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from devcluster.errors import ClusterError

UNIX_SOCKET_LIMIT = 107
"""Longest path of a Unix socket in bytes: ``sun_path`` holds 108 with the closing NUL (unix(7))."""

_PLAIN = re.compile(r"/[A-Za-z0-9._/-]+")


@dataclass(frozen=True)
class Paths:
    """The layout of a cluster's root directory."""

    root: Path

    @property
    def bin(self) -> Path:
        """Programs: io-autotuned, io-autotune, io-autotune-node, and the workloads."""
        return self.root / "bin"

    @property
    def slurm_lib(self) -> Path:
        """Slurm plugins."""
        return self.root / "lib" / "slurm"

    @property
    def plugin(self) -> Path:
        """The SPANK plugin."""
        return self.slurm_lib / "io_autotune.so"

    @property
    def etc(self) -> Path:
        """Configuration."""
        return self.root / "etc"

    @property
    def record(self) -> Path:
        """What the cluster remembers of its creation: ports, nodes, options."""
        return self.etc / "cluster.json"

    @property
    def slurm_conf(self) -> Path:
        """Slurm's configuration; ``SLURM_CONF`` names it."""
        return self.etc / "slurm.conf"

    @property
    def plugstack_conf(self) -> Path:
        """Slurm's list of SPANK plugins."""
        return self.etc / "plugstack.conf"

    @property
    def cgroup_conf(self) -> Path:
        """Slurm's cgroup configuration."""
        return self.etc / "cgroup.conf"

    @property
    def slurmdbd_conf(self) -> Path:
        """Configuration of slurmdbd, which looks for it beside slurm.conf."""
        return self.etc / "slurmdbd.conf"

    @property
    def mariadb_conf(self) -> Path:
        """Configuration of slurmdbd's database."""
        return self.etc / "mariadb.cnf"

    @property
    def mariadb_init(self) -> Path:
        """What that database does whenever it starts."""
        return self.etc / "mariadb.sql"

    @property
    def jobcomp(self) -> Path:
        """Slurm's job-completion script (``JobCompLoc``)."""
        return self.etc / "jobcomp"

    @property
    def run_in_job(self) -> Path:
        """Slurm's ``Prolog=`` and ``Epilog=`` under RunInJob."""
        return self.etc / "run-in-job"

    @property
    def burst_buffers(self) -> Path:
        """Where a job finds its burst buffer, in a cluster that has some."""
        return self.root / "burst-buffers"

    @property
    def burst_buffers_spool(self) -> Path:
        """What slurmctld's host keeps of jobs' burst buffers."""
        return self.spool / "burst-buffers"

    @property
    def namespaces(self) -> Path:
        """Where the jobs' private directories lie, in a cluster that gives them some."""
        return self.root / "namespaces"

    @property
    def slurm_key(self) -> Path:
        """The key of auth/slurm, which looks for it beside slurm.conf."""
        return self.etc / "slurm.key"

    @property
    def munge_key(self) -> Path:
        """The cluster's own munge key."""
        return self.etc / "munge.key"

    @property
    def client_toml(self) -> Path:
        """Configuration of io-autotune and io-autotune-node."""
        return self.etc / "client.toml"

    @property
    def service_toml(self) -> Path:
        """Configuration of io-autotuned."""
        return self.etc / "service.toml"

    @property
    def accelerators(self) -> Path:
        """The catalogue: one file per accelerator."""
        return self.etc / "accelerators.d"

    @property
    def nights(self) -> Path:
        """The reports that the service gives out; who makes one puts it there."""
        return self.root / "nights"

    @property
    def postgresql_conf(self) -> Path:
        """PostgreSQL's configuration."""
        return self.etc / "postgresql.conf"

    @property
    def pg_hba_conf(self) -> Path:
        """Who may connect to PostgreSQL."""
        return self.etc / "pg_hba.conf"

    @property
    def pg_ident_conf(self) -> Path:
        """As whom they may."""
        return self.etc / "pg_ident.conf"

    @property
    def log(self) -> Path:
        """Logs, one per part."""
        return self.root / "log"

    @property
    def run(self) -> Path:
        """Sockets, process ids, run-time state."""
        return self.root / "run"

    @property
    def lock(self) -> Path:
        """Held while a command changes the cluster."""
        return self.root / "lock"

    @property
    def processes(self) -> Path:
        """Which processes are the cluster's."""
        return self.run / "processes.json"

    @property
    def munge_socket(self) -> Path:
        """The socket of the cluster's own munged."""
        return self.run / "munge.sock"

    @property
    def service_socket(self) -> Path:
        """The socket of io-autotuned."""
        return self.run / "io-autotuned.sock"

    @property
    def nodes_socket(self) -> Path:
        """Its socket for root of the nodes."""
        return self.run / "nodes.sock"

    @property
    def pg_sockets(self) -> Path:
        """The directory of PostgreSQL's socket."""
        return self.run / "pg"

    @property
    def mariadb_run(self) -> Path:
        """The run directory of slurmdbd and its database, SlurmUser's own."""
        return self.run / "slurmdbd"

    @property
    def mariadb_socket(self) -> Path:
        """The socket of slurmdbd's database."""
        return self.mariadb_run / "mariadb.sock"

    @property
    def plugin_run(self) -> Path:
        """The plugin's run directory (its ``run_dir``)."""
        return self.run / "io-autotune"

    @property
    def slurmctld_run(self) -> Path:
        """The run directory of slurmctld, SlurmUser's own."""
        return self.run / "slurmctld"

    @property
    def spool(self) -> Path:
        """State that outlives processes."""
        return self.root / "spool"

    @property
    def munge_spool(self) -> Path:
        """The seed of munged."""
        return self.spool / "munge"

    @property
    def slurmctld_spool(self) -> Path:
        """The state of slurmctld."""
        return self.spool / "slurmctld"

    @property
    def plugin_spool(self) -> Path:
        """The node helper's spool (the plugin's ``spool_dir``)."""
        return self.spool / "io-autotune"

    @property
    def jobcomp_spool(self) -> Path:
        """Where the job-completion script appends, and the collector reads."""
        return self.spool / "jobcomp"

    @property
    def collector_spool(self) -> Path:
        """Where the collector keeps how far it has got."""
        return self.spool / "collector"

    @property
    def mariadb_data(self) -> Path:
        """The data of slurmdbd's database."""
        return self.root / "mariadb"

    @property
    def pg_data(self) -> Path:
        """PostgreSQL's data."""
        return self.root / "pg"

    @property
    def scratch(self) -> Path:
        """Where jobs may write."""
        return self.root / "scratch"

    @property
    def homes(self) -> Path:
        """Home directories of the job users."""
        return self.root / "home"

    def home(self, user: str) -> Path:
        """Return the home directory of a job user."""
        return self.homes / user

    def slurmd_spool(self, node: str) -> Path:
        """Return the spool directory of one node's slurmd."""
        return self.spool / f"slurmd-{node}"

    def log_of(self, part: str) -> Path:
        """Return the log of a part."""
        return self.log / f"{part}.log"

    def output_of(self, part: str) -> Path:
        """Return where the standard output of a part goes that writes a log by itself."""
        return self.log / f"{part}.out"

    def sockets(self, nodes: int) -> list[Path]:
        """Return the Unix sockets at their longest, for a cluster of ``nodes`` nodes."""
        node = f"n{nodes}"
        # slurmstepd's socket is NODE_JOB.STEP in the spool directory, both numbers of 32 bits.
        step = self.slurmd_spool(node) / f"{node}_4294967295.4294967295"
        return [
            self.munge_socket,
            self.service_socket,
            self.pg_sockets / ".s.PGSQL.65535",
            self.mariadb_socket,
            step,
        ]


def check_root(root: Path, nodes: int) -> None:
    """Check that a resolved ``root`` can hold a cluster of ``nodes`` nodes.

    Raises:
        ClusterError: characters that a configuration file cannot carry, a socket path that is too
            long, or a parent directory that users cannot traverse or munged does not trust.

    """
    asked = f"the cluster's root directory cannot be {root}"
    if not _PLAIN.fullmatch(str(root)):
        raise ClusterError(
            f"{asked}: use an absolute path of letters, digits, '.', '_' and '-' only"
        )
    if root.parent == Path("/"):
        raise ClusterError(f"{asked}: choose a directory of its own, such as {root / 'devcluster'}")
    longest = max(Paths(root).sockets(nodes), key=lambda path: len(str(path).encode()))
    excess = len(str(longest).encode()) - UNIX_SOCKET_LIMIT
    if excess > 0:
        raise ClusterError(
            f"{asked}: the socket {longest} would be {excess} bytes longer than the system allows;"
            f" choose a path that is at least {excess} bytes shorter"
        )
    for parent in root.parents:
        _check_parent(parent, asked)


def _check_parent(parent: Path, asked: str) -> None:
    """Check one directory above the root: traversable, and trusted by munged (its rules)."""
    try:
        info = parent.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(info.st_mode)
    if not stat.S_ISDIR(info.st_mode):
        raise ClusterError(f"{asked}: {parent} is not a directory")
    if not mode & stat.S_IXOTH:
        raise ClusterError(
            f"{asked}: {parent} has mode {mode:04o}, so jobs of other users cannot enter it;"
            " choose a directory that everybody can traverse, such as one under /var/lib"
        )
    if info.st_uid != 0:
        raise ClusterError(
            f"{asked}: {parent} does not belong to root, and munged refuses such a place;"
            " choose a directory under /var/lib"
        )
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
        raise ClusterError(
            f"{asked}: {parent} is writable by others without the sticky bit, and munged refuses"
            " such a place; choose a directory under /var/lib"
        )
