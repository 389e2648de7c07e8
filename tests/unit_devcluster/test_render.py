"""The configuration files, as their readers see them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from devcluster import render
from devcluster.paths import Paths
from devcluster.record import Ports, Record
from devcluster.variant import PARTITIONS, Variant

PATHS = Paths(Path("/var/lib/io-autotune-dev"))
RECORD = Record(
    name="dev",
    nodes=2,
    prolog_alloc=True,
    ports=Ports(10241, 10242, 10243, slurmd=(10244, 10245), slurmdbd=10246),
    study_settings={"method": "robert2020", "budget": 6},
)


def slurm_lines(record: Record = RECORD) -> list[str]:
    text = render.slurm_conf(PATHS, record)
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def slurm_keys(record: Record = RECORD) -> dict[str, str]:
    repeated = ("NodeName", "PartitionName")
    plain = [line for line in slurm_lines(record) if not line.startswith(repeated)]
    keys = dict(line.split("=", 1) for line in plain)
    assert len(keys) == len(plain), "a key is set twice"
    return keys


def test_slurm_conf_is_the_clusters_own() -> None:
    keys = slurm_keys()
    assert keys["ClusterName"] == "dev"
    assert keys["SlurmctldPort"] == "10242"
    assert keys["AuthInfo"] == "socket=/var/lib/io-autotune-dev/run/munge.sock,cred_expire=5"
    assert keys["PlugStackConfig"] == "/var/lib/io-autotune-dev/etc/plugstack.conf"
    for key in ("StateSaveLocation", "SlurmdSpoolDir", "SlurmdPidFile", "SlurmdLogFile"):
        assert keys[key].startswith("/var/lib/io-autotune-dev/"), key


def test_slurm_conf_keeps_the_nodes_apart() -> None:
    keys = slurm_keys()
    for key in ("SlurmdSpoolDir", "SlurmdPidFile", "SlurmdLogFile"):
        assert "%n" in keys[key], key


def test_slurm_conf_nodes_and_partitions() -> None:
    lines = slurm_lines()
    nodes = [line.split() for line in lines if line.startswith("NodeName=")]
    assert [(words[0], words[3]) for words in nodes] == [
        ("NodeName=n1", "Port=10244"),
        ("NodeName=n2", "Port=10245"),
    ]
    partitions = [line for line in lines if line.startswith("PartitionName=")]
    assert [line.split()[:3] for line in partitions] == [
        ["PartitionName=main", "Nodes=n1,n2", "Default=YES"],
        ["PartitionName=other", "Nodes=n1,n2", "Default=NO"],
    ]


def test_prolog_flags_follow_the_option() -> None:
    assert "PrologFlags=Alloc" in slurm_lines()
    without = slurm_lines(replace(RECORD, prolog_alloc=False))
    assert not [line for line in without if line.startswith("PrologFlags")]


def of(variant: Variant) -> Record:
    return replace(RECORD, variant=variant)


def test_the_plain_cluster_is_light() -> None:
    keys = slurm_keys()
    assert keys["ProctrackType"] == "proctrack/linuxproc"
    assert keys["SelectTypeParameters"] == "CR_CPU"
    assert (keys["MinJobAge"], keys["SlurmdTimeout"]) == ("300", "60")
    others = ("JobComp", "Accounting", "Preempt", "DefMem")
    assert not [key for key in keys if key.startswith(others)]
    assert render.cgroup_conf(Variant()).splitlines()[1:] == ["CgroupPlugin=cgroup/v1"]


def test_parameters_of_slurms_daemons_go_together() -> None:
    plain = slurm_keys()
    assert "SlurmctldParameters" not in plain
    assert plain["SlurmdParameters"] == "config_overrides"
    keys = slurm_keys(of(Variant(configless=True, expedited_requeue=True, contain_spank=True)))
    assert keys["SlurmctldParameters"] == "enable_configless,enable_expedited_requeue"
    assert keys["SlurmdParameters"] == "config_overrides,contain_spank"
    assert keys["Epilog"] == "/bin/true"


def test_jobcomp_runs_the_script_on_the_clusters_spool() -> None:
    keys = slurm_keys(of(Variant(jobcomp=True)))
    assert keys["JobCompType"] == "jobcomp/script"
    assert keys["JobCompLoc"] == str(PATHS.jobcomp)
    first, *_, last = render.jobcomp(PATHS).splitlines()
    assert first == "#!/bin/bash"
    assert last.split() == [
        "exec",
        "/var/lib/io-autotune-dev/bin/io-autotune-jobcomp",
        "/var/lib/io-autotune-dev/spool/jobcomp",
    ]


def test_accounting_is_the_clusters_own() -> None:
    keys = slurm_keys(of(Variant(accounting=True)))
    assert keys["AccountingStorageType"] == "accounting_storage/slurmdbd"
    assert keys["AccountingStoragePort"] == "10246"
    assert keys["AccountingStoragePass"] == str(PATHS.munge_socket)
    daemon = render.slurmdbd_conf(PATHS, RECORD).splitlines()
    assert "DbdPort=10246" in daemon
    assert f"AuthInfo=socket={PATHS.munge_socket}" in daemon
    # Without munged nothing may ask for it.
    variant = Variant(accounting=True, auth="slurm")
    assert "AccountingStoragePass" not in slurm_keys(of(variant))
    unsigned = render.slurmdbd_conf(PATHS, of(variant)).splitlines()
    assert "AuthType=auth/slurm" in unsigned
    assert not any("munge" in line for line in unsigned)
    database = render.mariadb_conf(PATHS).splitlines()
    assert "skip_networking" in database
    assert f"socket = {PATHS.mariadb_socket}" in database


def test_slurmdbd_finds_its_database_at_its_first_start() -> None:
    daemon = render.slurmdbd_conf(PATHS, RECORD).splitlines()
    (name,) = (line.partition("=")[2] for line in daemon if line.startswith("StorageLoc="))
    assert f"init_file = {PATHS.mariadb_init}" in render.mariadb_conf(PATHS).splitlines()
    assert render.mariadb_init() == f"CREATE DATABASE IF NOT EXISTS {name};\n"


def test_memory_is_held_by_cgroups() -> None:
    variant = Variant(memory=True)
    keys = slurm_keys(of(variant))
    assert keys["TaskPlugin"] == "task/cgroup"
    assert keys["SelectTypeParameters"] == "CR_CPU_Memory"
    assert "ConstrainRAMSpace=yes" in render.cgroup_conf(variant).splitlines()


def test_preemption_has_a_partition_for_each_way_to_yield() -> None:
    lines = slurm_lines(of(Variant(preemption=True)))
    assert "PreemptType=preempt/partition_prio" in lines
    partitions = {
        words[0].partition("=")[2]: dict(word.split("=", 1) for word in words[1:])
        for words in (line.split() for line in lines if line.startswith("PartitionName="))
    }
    assert [partitions[name]["PreemptMode"] for name in PARTITIONS] == [
        "REQUEUE",
        "CANCEL",
        "SUSPEND",
    ]
    low = max(int(partitions[name]["PriorityTier"]) for name in PARTITIONS)
    assert int(partitions["main"]["PriorityTier"]) > low
    assert partitions["main"]["Default"] == "YES"


def test_slurms_patience_follows_the_options() -> None:
    keys = slurm_keys(of(Variant(slurmd_timeout=6, min_job_age=10)))
    assert (keys["SlurmdTimeout"], keys["MinJobAge"]) == ("6", "10")


def test_the_service_learns_its_sources_where_they_are_not_its_own_choice() -> None:
    def slurm(variant: Variant) -> dict[str, object]:
        return tomllib.loads(render.service_toml(PATHS, of(variant)))["slurm"]

    assert "sources" not in slurm(Variant())
    assert slurm(Variant(sources=()))["sources"] == []
    assert slurm(Variant(accounting=True))["sources"] == ["sacct"]
    assert slurm(Variant(accounting=True))["associations"] is True
    assert slurm(Variant(jobcomp=True, sources=("jobcomp", "squeue")))["sources"] == [
        "jobcomp",
        "squeue",
    ]


def test_the_collector_is_let_in_only_where_there_is_one() -> None:
    def access(variant: Variant) -> dict[str, object]:
        return tomllib.loads(render.service_toml(PATHS, of(variant)))["access"]

    assert "collectors" not in access(Variant())
    assert access(Variant(jobcomp=True))["collectors"] == ["io-autotune-collector"]


def test_plugstack_names_the_plugin_only_when_it_is_installed() -> None:
    lines = render.plugstack_conf(PATHS, with_plugin=True).splitlines()
    assert lines[-1].split() == [
        "optional",
        "/var/lib/io-autotune-dev/lib/slurm/io_autotune.so",
        "helper=/var/lib/io-autotune-dev/bin/io-autotune-node",
        "config=/var/lib/io-autotune-dev/etc/client.toml",
        "run_dir=/var/lib/io-autotune-dev/run/io-autotune",
        "spool_dir=/var/lib/io-autotune-dev/spool/io-autotune",
    ]
    without = render.plugstack_conf(PATHS, with_plugin=False).splitlines()
    assert all(line.startswith("#") for line in without)


def test_client_toml() -> None:
    assert tomllib.loads(render.client_toml(PATHS, RECORD)) == {
        "endpoints": [
            "unix:/var/lib/io-autotune-dev/run/io-autotuned.sock",
            "tcp:127.0.0.1:10241",
        ],
        "node_endpoints": [
            "unix:/var/lib/io-autotune-dev/run/nodes.sock",
            "tcp:127.0.0.2:10241",
        ],
        "service_user": "io-autotune",
        "auth": "munge",
        "munge_socket": "/var/lib/io-autotune-dev/run/munge.sock",
    }


def test_service_toml() -> None:
    data = tomllib.loads(render.service_toml(PATHS, RECORD))
    url = urlsplit(data["database"].pop("url"))
    assert (url.scheme, url.netloc, url.path) == ("postgres", "", "/io_autotune")
    assert parse_qs(url.query) == {
        "host": ["/var/lib/io-autotune-dev/run/pg"],
        "port": ["10243"],
        "user": ["io-autotune"],
    }
    assert data == {
        "listen": {
            "unix": "/var/lib/io-autotune-dev/run/io-autotuned.sock",
            "tcp": "127.0.0.1:10241",
            "nodes_unix": "/var/lib/io-autotune-dev/run/nodes.sock",
            "nodes_tcp": "127.0.0.2:10241",
        },
        "database": {},
        "auth": "munge",
        "munge": {"socket": "/var/lib/io-autotune-dev/run/munge.sock"},
        "access": {"admins": [0]},
        "accelerators": {
            "directory": "/var/lib/io-autotune-dev/etc/accelerators.d",
            "default": "romio",
            "otherwise": [],
        },
        "report": {"directory": "/var/lib/io-autotune-dev/nights"},
        "slurm": {"cluster": "dev", "conf": "/var/lib/io-autotune-dev/etc/slurm.conf"},
        "reconcile": {"poll_seconds": 0.1, "sweep_seconds": 1.0},
        "study": {"method": "robert2020", "budget": 6},
    }


def test_postgresql_listens_on_no_network() -> None:
    lines = render.postgresql_conf(PATHS, RECORD).splitlines()
    assert "listen_addresses = ''" in lines
    assert "port = 10243" in lines
    (access,) = rules(render.pg_hba_conf())
    assert access == "local all io-autotune,postgres peer map=service"
    assert rules(render.pg_ident_conf()) == [
        "service io-autotune io-autotune",
        "service io-autotune postgres",
        "service root io-autotune",
        "service root postgres",
    ]


def rules(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]
