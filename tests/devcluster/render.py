"""The cluster's configuration files as text. Pure: the same record gives the same text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from devcluster import command
from devcluster.cgroups import MOUNTPOINT
from devcluster.paths import Paths
from devcluster.ports import HOST, NODES_HOST
from devcluster.record import Record
from devcluster.settings import Setting, quote, to_toml
from devcluster.users import COLLECTOR_USER, DATABASE_ADMIN, SERVICE_USER, SLURM_USER
from devcluster.variant import Variant

CPUS_PER_NODE = 8
"""CPUs that each node declares; more than the host need have (``config_overrides``)."""
MEMORY_PER_NODE = 16384
"""Memory that each node declares, in MiB; jobs consume it where they are held to it."""
MEMORY_PER_CPU = 256
"""Memory that a job gets per CPU without ``--mem``, in MiB, where it is held to it."""
DATABASE = "io_autotune"
"""The database's name."""
ACCOUNTING_DATABASE = "slurm_acct_db"
"""slurmdbd's database in MariaDB."""

_NOTICE = "# Written by the development cluster at every 'up'; changes here are lost.\n"


def slurm_conf(paths: Paths, record: Record) -> str:
    """Return slurm.conf (slurm.conf(5), Slurm 22.05).

    Jobs start and end as fast as the scheduler allows: ``bf_interval`` and ``sched_interval`` in
    seconds, ``sched_min_interval`` and ``EpilogMsgTime`` in microseconds. ``MessageTimeout`` is
    more than its 10 s: slurmctld closes a connection whose client, on a loaded machine, is so late
    with its request.
    """
    flags = ["Alloc"] if record.prolog_alloc else []
    if record.variant.run_in_job:
        flags.append("RunInJob")
    if record.variant.namespace is not None:
        flags.append("Contain")
    prolog = f"PrologFlags={','.join(flags)}\n" if flags else ""
    if record.variant.run_in_job:
        prolog += f"Prolog={paths.run_in_job}\nEpilog={paths.run_in_job}\n"
    elif record.variant.expedited_requeue:
        prolog += "Epilog=/bin/true\n"
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

{_auth(paths, record.variant)}
StateSaveLocation={paths.slurmctld_spool}
{_parameters("SlurmctldParameters", _of_slurmctld(record.variant))}
SlurmctldPidFile={paths.slurmctld_run}/slurmctld.pid
SlurmctldLogFile={paths.log}/slurmctld.log
SlurmctldDebug=info
SlurmdSpoolDir={paths.spool}/slurmd-%n
SlurmdPidFile={paths.run}/slurmd-%n.pid
SlurmdLogFile={paths.log}/slurmd-%n.log
SlurmdDebug=debug
PlugStackConfig={paths.plugstack_conf}

MpiDefault=pmi2
{_tracking(record.variant)}{_namespace(record.variant)}JobAcctGatherType=jobacct_gather/none
{prolog}
SelectType=select/cons_tres
{_parameters("SlurmdParameters", _of_slurmd(record.variant))}
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=20000,batch_sched_delay=0

ReturnToService=2
MinJobAge={record.variant.min_job_age}
EpilogMsgTime=10
CompleteWait=0
KillWait=5
InactiveLimit=0
JobRequeue=1
MailProg=/bin/true
MessageTimeout=60
SlurmctldTimeout=60
SlurmdTimeout={record.variant.slurmd_timeout}
{_completion(paths, record)}{_burst_buffer(record.variant)}
{nodes}{_partitions(names, record.variant)}"""


def _parameters(key: str, values: Sequence[str]) -> str:
    """Return a line of slurm.conf; nothing where there is no value."""
    return f"{key}={','.join(values)}" if values else ""


def _of_slurmctld(variant: Variant) -> list[str]:
    values = ["enable_configless"] if variant.configless else []
    return [*values, *(["enable_expedited_requeue"] if variant.expedited_requeue else [])]


def _of_slurmd(variant: Variant) -> list[str]:
    return ["config_overrides", *(["contain_spank"] if variant.contain_spank else [])]


def _auth(paths: Paths, variant: Variant) -> str:
    """Return by what Slurm knows who asks.

    Without cred_expire a user's requeue waits two minutes for the old credential to expire.
    """
    if variant.auth == "slurm":
        info = "use_client_ids,cred_expire=5" if variant.client_ids else "cred_expire=5"
        return f"AuthType=auth/slurm\nCredType=cred/slurm\nAuthInfo={info}\n"
    socket = f"socket={paths.munge_socket}"
    return f"AuthType=auth/munge\nCredType=cred/munge\nAuthInfo={socket},cred_expire=5\n"


def _namespace(variant: Variant) -> str:
    """Return how each job gets a mount namespace of its own, if it does."""
    if variant.namespace is None:
        return ""
    kind = "JobContainerType" if variant.namespace.startswith("job_container") else "NamespaceType"
    return f"{kind}={variant.namespace}\n"


def _tracking(variant: Variant) -> str:
    """Return how Slurm follows a job's processes, and what of a node a job consumes."""
    if not variant.memory:
        return (
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectTypeParameters=CR_CPU\n"
        )
    return (
        "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n"
        f"SelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU={MEMORY_PER_CPU}\n"
    )


def _burst_buffer(variant: Variant) -> str:
    """Return by what jobs get burst buffers, if they do."""
    return "BurstBufferType=burst_buffer/lua\n" if variant.burst_buffer else ""


def _completion(paths: Paths, record: Record) -> str:
    """Return to whom Slurm says how jobs ended."""
    lines = ""
    if record.variant.jobcomp:
        lines += f"JobCompType=jobcomp/script\nJobCompLoc={paths.jobcomp}\n"
    if record.variant.accounting:
        lines += (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost={HOST}\nAccountingStoragePort={record.ports.slurmdbd}\n"
        )
        if record.variant.auth == "munge":
            # The password is then the socket's path (slurm.conf(5)).
            lines += f"AccountingStoragePass={paths.munge_socket}\n"
    return lines


def _partitions(names: str, variant: Variant) -> str:
    """Return the partitions; with preemption, main and other stand above those that yield."""
    if not variant.preemption:
        return (
            f"PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP\n"
            f"PartitionName=other Nodes={names} Default=NO MaxTime=INFINITE State=UP\n"
        )
    high = "MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF"
    low = "MaxTime=INFINITE State=UP PriorityTier=1"
    return (
        # The cluster's mode allows each partition its own (slurm.conf(5), PreemptMode).
        "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\nSchedulerTimeSlice=5\n"
        f"PartitionName=main Nodes={names} Default=YES {high}\n"
        f"PartitionName=other Nodes={names} Default=NO {high}\n"
        f"PartitionName=low-requeue Nodes={names} Default=NO {low} PreemptMode=REQUEUE\n"
        f"PartitionName=low-cancel Nodes={names} Default=NO {low} PreemptMode=CANCEL\n"
        f"PartitionName=low-suspend Nodes={names} Default=NO {low} PreemptMode=SUSPEND"
        " OverSubscribe=FORCE:1\n"
    )


def plugstack_conf(paths: Paths, *, with_plugin: bool) -> str:
    """Return plugstack.conf (spank(8)); ``with_plugin`` tells whether the plugin is installed."""
    if not with_plugin:
        return _NOTICE
    return (
        f"{_NOTICE}optional {paths.plugin}"
        f" helper={paths.bin}/io-autotune-node config={paths.client_toml}"
        f" run_dir={paths.plugin_run} spool_dir={paths.plugin_spool}\n"
    )


def cgroup_conf(variant: Variant) -> str:
    """Return cgroup.conf (cgroup.conf(5)).

    The plugin is named even where no cgroups are used, because slurmd loads one all the same: left
    to detect, it ends on hosts with both versions mounted, and cgroup/v2 asks systemd for a scope.
    """
    plugin = f"{_NOTICE}CgroupPlugin=cgroup/v1\n"
    if not variant.memory:
        return plugin
    # A job that may swap instead of ending would only be slow.
    return f"{plugin}CgroupMountpoint={MOUNTPOINT}\nConstrainRAMSpace=yes\nMinRAMSpace=16\n"


def job_container_conf(paths: Paths) -> str:
    """Return job_container.conf(5), of job_container/tmpfs and namespace/tmpfs."""
    return f"{_NOTICE}AutoBasePath=true\nBasePath={paths.namespaces}\n"


def namespace_yaml(paths: Paths) -> str:
    """Return namespace.yaml(5), of namespace/linux: a /run of each job's own."""
    return f'{_NOTICE}defaults:\n  base_path: {paths.namespaces}\n  dirs: "/tmp,/dev/shm"\n'


def run_in_job(paths: Paths, text: str) -> str:
    """Return deploy/slurm/run-in-job with the cluster's paths."""
    for shipped, own in {
        "/usr/libexec/io-autotune/io-autotune-node": paths.bin / "io-autotune-node",
        "/etc/io-autotune/client.toml": paths.client_toml,
        "/run/io-autotune": paths.plugin_run,
        "/var/spool/io-autotune": paths.plugin_spool,
    }.items():
        text = text.replace(shipped, str(own))
    return text


def burst_buffer_conf() -> str:
    """Return burst_buffer.conf(5); a time is in seconds."""
    # So that a job that failed to be set up would not stay for ever.
    return f"{_NOTICE}Directive=BB\nFlags=TeardownFailure\nOtherTimeout=30\n"


def burst_buffer_lua(paths: Paths, text: str) -> str:
    """Return a script of deploy/slurm for burst_buffer/lua with the cluster's paths."""
    programs = command.SLURM or "/usr"
    for shipped, own in {
        "/etc/slurm/?.lua": f"{paths.etc}/?.lua",
        "/etc/slurm/burst-buffer": paths.bin / "burst-buffer",
        "/var/spool/io-autotune-burst-buffers": paths.burst_buffers_spool,
        '"/burst-buffers"': f'"{paths.burst_buffers}"',
        "/usr/libexec/io-autotune/io-autotune-node": paths.bin / "io-autotune-node",
        "/etc/io-autotune/client.toml": paths.client_toml,
        # That it answers in time is tested, not how fast a busy host is.
        "deadline_ms = 1500": "deadline_ms = 5000",
        'squeue = "squeue"': f'squeue = "{programs}/bin/squeue"',
    }.items():
        text = text.replace(shipped, str(own))
    return text


def jobcomp(paths: Paths) -> str:
    """Return the program that Slurm runs at a job's end: the script, told where its spool is."""
    return f"#!/bin/bash\n{_NOTICE}exec {paths.bin}/io-autotune-jobcomp {paths.jobcomp_spool}\n"


def slurmdbd_conf(paths: Paths, record: Record) -> str:
    """Return slurmdbd.conf (slurmdbd.conf(5)); the database knows SlurmUser by its socket."""
    auth = "AuthType=auth/slurm"
    if record.variant.auth == "munge":
        auth = f"AuthType=auth/munge\nAuthInfo=socket={paths.munge_socket}"
    return f"""{_NOTICE}
{auth}
DbdHost=localhost
DbdAddr={HOST}
DbdPort={record.ports.slurmdbd}
SlurmUser={SLURM_USER}
DebugLevel=info
LogFile={paths.log_of("slurmdbd")}
PidFile={paths.mariadb_run}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={SLURM_USER}
StorageLoc={ACCOUNTING_DATABASE}
"""


def mariadb_conf(paths: Paths) -> str:
    """Return the configuration of slurmdbd's database: one Unix socket and no network."""
    return f"""{_NOTICE}
[mariadbd]
datadir = {paths.mariadb_data}
socket = {paths.mariadb_socket}
pid_file = {paths.mariadb_run}/mariadbd.pid
init_file = {paths.mariadb_init}
skip_networking
innodb_buffer_pool_size = 32M
innodb_log_file_size = 16M
innodb_lock_wait_timeout = 900
# As with PostgreSQL: the data survives the death of any process, not of the machine.
innodb_flush_log_at_trx_commit = 0
innodb_doublewrite = 0
"""


def mariadb_init() -> str:
    """Return what slurmdbd's database does before it takes connections: slurmdbd's own is there.

    slurmdbd would make it itself, and goes on with the connection that was refused meanwhile.
    MariaDB's client library from 3.4.10 on, Debian's of 11.8.9, has forgotten that connection's
    options by then, and takes no result of any column: slurmdbd ends.
    """
    return f"CREATE DATABASE IF NOT EXISTS {ACCOUNTING_DATABASE};\n"


def client_toml(paths: Paths, record: Record) -> str:
    """Return the configuration of io-autotune and io-autotune-node."""
    port = record.ports.service
    endpoints = [f"unix:{paths.service_socket}", f"tcp:{HOST}:{port}"]
    of_nodes = [f"unix:{paths.nodes_socket}", f"tcp:{NODES_HOST}:{port}"]
    return (
        f"{_NOTICE}endpoints = {to_toml(list(endpoints))}\n"
        f"node_endpoints = {to_toml(list(of_nodes))}\n"
        f"service_user = {quote(SERVICE_USER)}\n"
        f"{_signing(paths, record.variant, 'munge_socket')}\n"
    )


def asking(client_toml: str, users: Sequence[str], nodes: Sequence[str] | None = None) -> str:
    """Return such a configuration with other endpoints; nodes ask where users do, if not said."""
    text = client_toml
    for key, endpoints in (("endpoints", users), ("node_endpoints", nodes or users)):
        line = f"{key} = {to_toml(list(endpoints))}"
        text, count = re.subn(rf"(?m)^{key} = .*$", line, text)
        assert count == 1, f"client.toml lacks {key}:\n{client_toml}"
    return text


def _signing(paths: Paths, variant: Variant, munge_socket: str) -> str:
    """Return the lines that say who signs, with this key for munged's socket."""
    if variant.auth == "slurm":
        return 'auth = "slurm"'
    return f'auth = "munge"\n{munge_socket} = {quote(str(paths.munge_socket))}'


def database_url(paths: Paths, record: Record, role: str, database: str = DATABASE) -> str:
    """Return the URL by which a role reaches a database, the service's if not said."""
    where = f"host={paths.pg_sockets}&port={record.ports.postgresql}"
    return f"postgres:///{database}?{where}&user={role}"


def service_toml(paths: Paths, record: Record) -> str:
    """Return the configuration of io-autotuned."""
    url = database_url(paths, record, SERVICE_USER)
    return f"""{_NOTICE}
{_signing(paths, record.variant, "munge.socket")}

[listen]
unix = {quote(str(paths.service_socket))}
tcp = "{HOST}:{record.ports.service}"
nodes_unix = {quote(str(paths.nodes_socket))}
nodes_tcp = "{NODES_HOST}:{record.ports.service}"

[database]
url = {quote(url)}

[access]
admins = [0]
{_accounts(record.variant)}
[accelerators]
directory = {quote(str(paths.accelerators))}
default = "romio"
otherwise = {to_toml(list(record.variant.otherwise))}

[report]
directory = {quote(str(paths.nights))}

[slurm]
cluster = {quote(record.name)}
conf = {quote(str(paths.slurm_conf))}
{_programs()}{_sources(record.variant)}{_associations(record.variant)}
[reconcile]
# Runs here take seconds, and the next start wants to know how the last one ended.
poll_seconds = 0.1
sweep_seconds = 1.0

[study]
{_settings(record.study_settings)}"""


def _programs() -> str:
    """Return where the service finds Slurm's programs, if that is not where it looks by itself."""
    if command.SLURM is None:
        return ""
    return f"programs = {quote(f'{command.SLURM}/bin')}\n"


def _accounts(variant: Variant) -> str:
    """Return the roles of accounts that are not root's."""
    collectors = f"collectors = {to_toml([COLLECTOR_USER])}\n" if variant.jobcomp else ""
    buffers = f"burst_buffers = {to_toml([SLURM_USER])}\n" if variant.burst_buffer else ""
    coordinators = "coordinators = true\n" if variant.accounting else ""
    return collectors + buffers + coordinators


def _associations(variant: Variant) -> str:
    """Return whether the service asks who is in which account: where slurmdbd can tell."""
    return "associations = true\n" if variant.accounting else ""


def _sources(variant: Variant) -> str:
    """Return the service's sources, where they are not its own choice."""
    sources = variant.effective_sources()
    return "" if sources == ("squeue",) else f"sources = {to_toml(list(sources))}\n"


def postgresql_conf(paths: Paths, record: Record) -> str:
    """Return postgresql.conf: one Unix socket and no network."""
    return f"""{_NOTICE}
hba_file = '{paths.pg_hba_conf}'
ident_file = '{paths.pg_ident_conf}'
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
    """Return pg_hba.conf: the service's role and the superuser, by the local socket."""
    return f"{_NOTICE}local all {SERVICE_USER},{DATABASE_ADMIN} peer map=service\n"


def pg_ident_conf() -> str:
    """Return pg_ident.conf: who has which role.

    root is there because the report's environment lies where the service's user may not look.
    """
    pairs = itertools.product((SERVICE_USER, "root"), (SERVICE_USER, DATABASE_ADMIN))
    return _NOTICE + "".join(f"service {user} {role}\n" for user, role in pairs)


def _settings(settings: Mapping[str, Setting]) -> str:
    return "".join(f"{key} = {to_toml(value)}\n" for key, value in sorted(settings.items()))
