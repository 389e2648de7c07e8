"""A private development cluster on one host: munge, PostgreSQL, io-autotuned and Slurm.

Everything lives in one root directory and in a network namespace of its own that has nothing but
loopback, so that it runs beside the system's services and beside other clusters of its kind, and
nobody outside reaches it.

From a shell: ``PYTHONPATH=tests python3 -m devcluster up``. From a test::

    cluster = Cluster(Path("/var/lib/io-autotune-test"), build=Path("build"))
    cluster.up()
    cluster.run_as("io-alice", ["sbatch", "job.sh"])
    cluster.destroy()
"""

from devcluster.cluster import DEFAULT_BUILD, DEFAULT_ROOT, Cluster, PartStatus
from devcluster.errors import ClusterError, CommandFailed, PartFailed
from devcluster.paths import Paths
from devcluster.variant import Variant

__all__ = [
    "DEFAULT_BUILD",
    "DEFAULT_ROOT",
    "Cluster",
    "ClusterError",
    "CommandFailed",
    "PartFailed",
    "PartStatus",
    "Paths",
    "Variant",
]
