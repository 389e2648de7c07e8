"""The command line: ``PYTHONPATH=tests python3 -m devcluster COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from devcluster import accounts, record, users
from devcluster.cluster import DEFAULT_BUILD, DEFAULT_NODES, DEFAULT_ROOT, Cluster, PartStatus
from devcluster.errors import ClusterError
from devcluster.paths import Paths
from devcluster.variant import PARTITIONS, SOURCES, Variant

NOT_RUNNING = 3
"""Exit status of ``status`` when a part does not run, as init scripts have it (LSB)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 1 for an error, 3 for not running."""
    options = _parser().parse_args(arguments)
    try:
        cluster = _cluster(options)
        if options.command == "up":
            cluster.up()
        elif options.command == "down":
            cluster.down()
        elif options.command == "destroy":
            cluster.destroy()
        elif options.command == "status":
            return _status(cluster)
        elif options.command == "shell":
            _shell(cluster, options.user, options.argv)
        else:
            _become_and_exec(cluster, users.SERVICE_USER, [*cluster.psql_argv(), *options.argv])
    except ClusterError as error:
        print(f"devcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("devcluster: interrupted", file=sys.stderr)
        return 130
    return 0


def table(statuses: Sequence[PartStatus]) -> str:
    """Return the parts' states as a table with aligned columns."""
    rows = [["PART", "STATE", "PID", "PORT", "LOG"]]
    for item in statuses:
        pid = "-" if item.pid is None else str(item.pid)
        port = "-" if item.port is None else str(item.port)
        rows.append([item.name, item.state, pid, port, str(item.log)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)) for r in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--root",
        type=Path,
        default=DEFAULT_ROOT,
        metavar="DIR",
        help=f"the cluster's root directory (default: {DEFAULT_ROOT})",
    )
    parser = argparse.ArgumentParser(
        prog="devcluster",
        description="A private Slurm cluster on this host, with its own munge and PostgreSQL.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", parents=[common], help="start it, or bring it up to date")
    up.add_argument(
        "--build",
        type=Path,
        default=DEFAULT_BUILD,
        metavar="DIR",
        help=f"what the build has made (default: {DEFAULT_BUILD})",
    )
    up.add_argument(
        "--nodes", type=int, metavar="N", help=f"number of nodes (new cluster: {DEFAULT_NODES})"
    )
    up.add_argument(
        "--prolog-alloc",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="run the prolog on all nodes at allocation, PrologFlags=Alloc (new cluster: yes)",
    )
    up.add_argument(
        "--study-setting",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting of studies in service.toml; KEY= drops the override",
    )
    _add_variant(up)
    commands.add_parser("down", parents=[common], help="cancel all jobs and end everything")
    commands.add_parser("status", parents=[common], help="show the parts")
    commands.add_parser(
        "destroy", parents=[common], help="end everything and remove the root directory"
    )
    shell = commands.add_parser("shell", parents=[common], help="a shell that uses the cluster")
    shell.add_argument("--user", default="root", help="whose shell (default: root)")
    shell.add_argument(
        "argv", nargs="*", metavar="COMMAND", help="run this after '--', not an interactive shell"
    )
    psql = commands.add_parser("psql", parents=[common], help="open the cluster's database")
    psql.add_argument("argv", nargs="*", metavar="ARG", help="arguments of psql, after '--'")
    return parser


_SWITCHES = {
    "jobcomp": "Slurm runs the job-completion script, and the collector delivers",
    "accounting": "slurmdbd with a database; 'deploy/install-deps accounting' installs both",
    "memory": "hold jobs to --mem by control groups",
    "preemption": f"add the partitions {', '.join(PARTITIONS)}, which yield to the others",
}


def _add_variant(up: argparse.ArgumentParser) -> None:
    """Add an option for each of a variant's fields."""
    for name, text in _SWITCHES.items():
        action = argparse.BooleanOptionalAction
        up.add_argument(f"--{name}", action=action, default=None, help=f"{text} (new cluster: no)")
    plain = Variant()
    for name in ("slurmd_timeout", "min_job_age"):
        setting = {"slurmd_timeout": "SlurmdTimeout", "min_job_age": "MinJobAge"}[name]
        up.add_argument(
            f"--{name.replace('_', '-')}",
            type=int,
            metavar="SECONDS",
            help=f"Slurm's {setting} (new cluster: {getattr(plain, name)})",
        )
    up.add_argument(
        "--sources",
        metavar="LIST",
        help=f"the service's sources of Slurm's word, of {', '.join(SOURCES)}, or 'none'"
        " (default: what --jobcomp and --accounting bring, else squeue)",
    )


def variant_of(options: argparse.Namespace, known: Variant) -> Variant:
    """Return the variant after the options that were given."""
    names = (*_SWITCHES, "slurmd_timeout", "min_job_age")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.sources is not None:
        words = options.sources.split(",")
        given["sources"] = () if words == ["none"] else tuple(word.strip() for word in words)
    return replace(known, **given)


def _cluster(options: argparse.Namespace) -> Cluster:
    def say(message: str) -> None:
        print(message, flush=True)

    if options.command != "up":
        return Cluster(options.root, say=say)
    known = record.load(Paths(options.root.absolute().resolve()).record)
    return Cluster(
        options.root,
        variant=variant_of(options, Variant() if known is None else known.variant),
        build=options.build,
        nodes=options.nodes,
        prolog_alloc=options.prolog_alloc,
        study_settings=options.study_setting,
        say=say,
    )


def _status(cluster: Cluster) -> int:
    statuses = cluster.status()
    print(table(statuses))
    if all(item.state != "running" for item in statuses if item.name == "slurmctld"):
        return NOT_RUNNING
    for node, state in cluster.node_states().items():
        print(f"node {node}: {state}")
    return 0 if all(item.state == "running" for item in statuses) else NOT_RUNNING


def _shell(cluster: Cluster, user: str, argv: Sequence[str]) -> None:
    if argv:
        _become_and_exec(cluster, user, list(argv))
    name = cluster.root.name
    print(f"A shell of {user} in the cluster {cluster.root}; leave it with 'exit'. For example:")
    print("  sinfo")
    print("  sbatch --io-autotune -n4 ocean.sh")
    print("  io-autotune status", flush=True)
    prompt = {"PS1": f"[{name}] \\u:\\w\\$ "}
    _become_and_exec(cluster, user, ["/bin/bash", "--norc", "--noprofile", "-i"], prompt)


def _become_and_exec(
    cluster: Cluster, user: str, argv: Sequence[str], extra: dict[str, str] | None = None
) -> None:
    """Replace this process by a command of ``user``; returns only by an error."""
    environment = {**cluster.env(user), **(extra or {})}
    if "TERM" in os.environ:
        environment["TERM"] = os.environ["TERM"]
    home = Path(environment["HOME"])
    if not home.is_dir():
        raise ClusterError(f"there is no cluster in {cluster.root}; make one with 'up'")
    cluster.enter()
    if user != "root":
        accounts.become(accounts.find(user))
    os.chdir(home)
    try:
        os.execvpe(argv[0], list(argv), environment)
    except OSError as error:
        raise ClusterError(f"'{argv[0]}' cannot be run as {user}: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
