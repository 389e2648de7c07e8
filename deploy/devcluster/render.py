"""The cluster's configuration files as text. Pure: the same record gives the same text."""

from __future__ import annotations

from collections.abc import Mapping

from devcluster.paths import Paths
from devcluster.ports import HOST
from devcluster.record import Record
from devcluster.settings import Setting, quote, to_toml
from devcluster.users import SERVICE_USER, SLURM_USER

CPUS_PER_NODE = 8
"""CPUs that each node declares; more than the host need have (``config_overrides``)."""
MEMORY_PER_NODE = 16384
"""Memory that each node declares, in MiB; it is not consumed by jobs (``CR_CPU``)."""
DATABASE = "io_autotune"
"""The database's name."""

_NOTICE = "# Written by the development cluster at every 'up'; changes here are lost.\n"


def slurm_conf(paths: Paths, record: Record) -> str:
    """Return slurm.conf (slurm.conf(5), Slurm 22.05).

    Jobs start and end as fast as the scheduler allows: ``bf_interval`` and ``sched_interval`` in
    seconds, ``sched_min_interval`` and ``EpilogMsgTime`` in microseconds.
    """
    prolog = "PrologFlags=Alloc\n" if record.prolog_alloc else ""
    nodes = "".join(
        f"NodeName={node} NodeHostname=localhost NodeAddr={HOST} Port={port}"
        f" CPUs={CPUS_PER_NODE} RealMemory={MEMORY_PER_NODE} State=UNKNOWN\n"
        for node, port in zip(record.node_names(), record.ports.slurmd, strict=True)
    )
    names = ",".join(record.node_names())
    return f"""{_NOTICE}
ClusterName={record.name}
SlurmctldHost=localhost({HOST})
SlurmctldPort={record.ports.slurmctld}
SlurmUser={SLURM_USER}
SlurmdUser=root

AuthType=auth/munge
# Without cred_expire a user's requeue waits two minutes for the old credential to expire.
AuthInfo=socket={paths.munge_socket},cred_expire=5
CredType=cred/munge

StateSaveLocation={paths.slurmctld_spool}
SlurmctldPidFile={paths.slurmctld_run}/slurmctld.pid
SlurmctldLogFile={paths.log}/slurmctld.log
SlurmctldDebug=info
SlurmdSpoolDir={paths.spool}/slurmd-%n
SlurmdPidFile={paths.run}/slurmd-%n.pid
SlurmdLogFile={paths.log}/slurmd-%n.log
SlurmdDebug=info
PlugStackConfig={paths.plugstack_conf}

MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
{prolog}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=200000,batch_sched_delay=0

ReturnToService=2
MinJobAge=300
EpilogMsgTime=10
CompleteWait=0
KillWait=5
InactiveLimit=0
JobRequeue=1
MailProg=/bin/true
SlurmctldTimeout=60
SlurmdTimeout=60

{nodes}PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes={names} Default=NO MaxTime=INFINITE State=UP
"""


def plugstack_conf(paths: Paths, *, with_plugin: bool) -> str:
    """Return plugstack.conf (spank(8)); ``with_plugin`` tells whether the plugin is installed."""
    if not with_plugin:
        return _NOTICE
    return (
        f"{_NOTICE}optional {paths.plugin}"
        f" helper={paths.bin}/io-autotune-node config={paths.client_toml}"
        f" run_dir={paths.plugin_run} spool_dir={paths.plugin_spool}\n"
    )


def cgroup_conf() -> str:
    """Return cgroup.conf (cgroup.conf(5)).

    No cgroups are used. The plugin is named because slurmd loads one all the same: left to detect,
    it ends on hosts with both versions mounted, and cgroup/v2 asks systemd for a scope.
    """
    return f"{_NOTICE}CgroupPlugin=cgroup/v1\n"


def client_toml(paths: Paths, record: Record) -> str:
    """Return the configuration of io-autotune and io-autotune-node."""
    endpoints = [f"unix:{paths.service_socket}", f"tcp:{HOST}:{record.ports.service}"]
    return (
        f"{_NOTICE}endpoints = {to_toml(list(endpoints))}\n"
        f"service_user = {quote(SERVICE_USER)}\n"
        f"munge_socket = {quote(str(paths.munge_socket))}\n"
    )


def service_toml(paths: Paths, record: Record) -> str:
    """Return the configuration of io-autotuned."""
    url = (
        f"postgres:///{DATABASE}?host={paths.pg_sockets}"
        f"&port={record.ports.postgresql}&user={SERVICE_USER}"
    )
    return f"""{_NOTICE}
[listen]
unix = {quote(str(paths.service_socket))}
tcp = "{HOST}:{record.ports.service}"

[database]
url = {quote(url)}

[munge]
socket = {quote(str(paths.munge_socket))}

[access]
admin_uids = [0]
admin_groups = []

[accelerators]
directory = {quote(str(paths.accelerators))}
default = "romio"

[slurm]
cluster = {quote(record.name)}
conf = {quote(str(paths.slurm_conf))}

[reconcile]
# Runs here take seconds, and the next start wants to know how the last one ended.
poll_seconds = 0.25
sweep_seconds = 5.0

[study]
{_settings(record.study_settings)}"""


def postgresql_conf(paths: Paths, record: Record) -> str:
    """Return postgresql.conf: one Unix socket and no network."""
    return f"""{_NOTICE}
hba_file = '{paths.pg_hba_conf}'
listen_addresses = ''
unix_socket_directories = '{paths.pg_sockets}'
port = {record.ports.postgresql}
shared_buffers = 32MB
# The data survives the death of any process, not of the machine. In return the workloads, whose
# elapsed is measured on the same disk, are not disturbed by flushes.
fsync = off
full_page_writes = off
log_line_prefix = '%m [%p] %u@%d '
timezone = 'UTC'
"""


def pg_hba_conf() -> str:
    """Return pg_hba.conf: the service's Linux user by the local socket, and nobody else."""
    return f"{_NOTICE}local all {SERVICE_USER} peer\n"


def _settings(settings: Mapping[str, Setting]) -> str:
    return "".join(f"{key} = {to_toml(value)}\n" for key, value in sorted(settings.items()))
