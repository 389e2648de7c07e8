"""The cluster: its life from ``up`` to ``destroy``."""

from __future__ import annotations

import fcntl
import os
import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from devcluster import (
    accounts,
    cgroups,
    clock,
    command,
    control,
    files,
    hung,
    layout,
    network,
    parts,
    ports,
    process,
    record,
    registry,
    render,
    settings,
    stage,
    users,
)
from devcluster.errors import ClusterError, CommandFailed
from devcluster.parts import postgres
from devcluster.paths import Paths, check_root
from devcluster.record import Record
from devcluster.supervisor import Supervisor
from devcluster.variant import Variant

DEFAULT_ROOT = Path("/var/lib/io-autotune-dev")
"""Root directory of the cluster that ``make cluster`` starts."""
DEFAULT_BUILD = Path(__file__).resolve().parents[2] / "build"
"""Where the build puts what the cluster runs."""
KEY_BYTES = 1024
"""Size of the key of auth/slurm."""
DEFAULT_NODES = 2
"""Number of nodes of a new cluster."""


@dataclass(frozen=True)
class PartStatus:
    """How a part of the cluster is doing."""

    name: str
    state: str
    """``running``, ``stopped``, ``died``, or ``not staged``."""
    pid: int | None
    port: int | None
    log: Path


class Cluster:
    """A private cluster in one root directory. Only root can run one.

    Options left at None keep what the cluster remembers, or its defaults when it is new.
    """

    def __init__(
        self,
        root: Path = DEFAULT_ROOT,
        *,
        build: Path = DEFAULT_BUILD,
        nodes: int | None = None,
        prolog_alloc: bool | None = None,
        study_settings: Iterable[str] = (),
        variant: Variant | None = None,
        say: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Describe a cluster without touching anything.

        ``build`` holds the stage and the tests' workloads; ``nodes`` the number of nodes (default
        2); ``prolog_alloc`` whether Slurm has ``PrologFlags=Alloc`` (default true);
        ``study_settings`` are ``key=value`` overrides for io-autotuned; ``variant`` how it differs
        from the plain cluster; ``say`` hears a line at each step.

        Raises:
            ClusterError: the caller is not root.

        """
        if os.geteuid() != 0:
            raise ClusterError("the development cluster can only be run by root; try with sudo")
        self.root = root.absolute().resolve()
        self.paths = Paths(self.root)
        self._build = build.absolute()
        self._nodes = nodes
        self._prolog_alloc = prolog_alloc
        self._study_settings = list(study_settings)
        self._variant = variant
        self._say = say
        self._supervisor = Supervisor(self.paths.processes, say)
        self._network = network.Namespace(self.root)

    def up(self) -> bool:
        """Bring everything up, and return whether anything had to be done.

        Raises:
            ClusterError: a root directory that cannot be used, a program that is missing, a part
                that does not start (what did start is left running, for a look at it).

        """
        nodes = DEFAULT_NODES if self._nodes is None else self._nodes
        record.check_nodes(nodes)
        known = record.load(self.paths.record)
        if known is not None and self._nodes is None:
            nodes = known.nodes
        check_root(self.root, nodes)
        self._check_ours(known)
        files.directory(self.root, 0o755)
        with self._locked():
            self._network.ensure()
            with self._network.inside():
                return self._up(nodes, known)

    def _up(self, nodes: int, known: Record | None) -> bool:
        wanted = self._remembered(nodes)
        layout.make(self.paths, wanted)
        wanted = self._install(wanted)
        record.save(self.paths.record, wanted)
        self._configure(wanted)
        everything = parts.in_order(self.paths, wanted, self._say)
        started = self._supervisor.converge(everything)
        if known is not None and known.variant.memory and not wanted.variant.memory:
            cgroups.remove_leftovers(known.node_names())
        resumed = control.wait_for_nodes(self.paths, lambda: self._supervisor.check(everything))
        for node in resumed:
            self._say(f"{node} was drained; it is resumed")
        self._supervisor.check(everything)
        if not started and not resumed:
            self._say(f"the cluster in {self.root} is up already")
        return bool(started or resumed)

    def revive(self) -> list[str]:
        """Start again what has died or runs with an old configuration, and return its names.

        Unlike ``up`` this writes no configuration, installs nothing, and resumes no node.

        Raises:
            PartFailed: a part did not become ready.

        """
        remembered = self._require_record()
        with self._locked(), self._network.inside():
            everything = parts.in_order(self.paths, remembered, self._say)
            return self._supervisor.converge(everything)

    def down(self) -> bool:
        """End everything that ``up`` started, and return whether anything ran."""
        if record.load(self.paths.record) is None:
            self._say(f"there is no cluster in {self.root}")
            return False
        with self._locked(), self._network.inside():
            ended = self._down()
        self._network.delete()
        return ended

    def destroy(self) -> bool:
        """End the cluster and remove its root directory and the users that were made for it.

        The users stay while another cluster of this host needs them. Returns whether there was
        anything to destroy.
        """
        if record.load(self.paths.record) is None:
            self._say(f"there is no cluster in {self.root}")
            return False
        with self._locked(), self._network.inside():
            self._down()
            layout.remove(self.paths)
        self._network.delete()
        with registry.opened() as shared:
            shared.roots.discard(self.root)
            for name in sorted(shared.users) if not shared.roots else []:
                if users.remove(name):
                    shared.users.discard(name)
                else:
                    self._say(f"the user {name} still has processes and stays")
        self._say(f"{self.root} is removed")
        return True

    def status(self) -> list[PartStatus]:
        """Return how each part is doing, in the order of their start."""
        remembered = self._require_record()
        unstaged: list[str] = []
        everything = parts.in_order(self.paths, remembered, unstaged.append)
        started = self._supervisor.running()
        statuses = []
        for part in everything:
            item = started.get(part.name)
            if item is None:
                state, pid = "stopped", None
            elif process.is_alive(item.identity):
                state, pid = "running", item.identity.pid
            else:
                state, pid = "died", None
            statuses.append(PartStatus(part.name, state, pid, part.port, part.log))
        return statuses

    def node_states(self) -> dict[str, str]:
        """Return each node's state as sinfo has it, such as ``idle``."""
        with self._network.inside():
            return control.node_states(self.paths)

    def enter(self) -> None:
        """Put this process into the cluster's network for good, as a shell in it needs."""
        if not self._network.exists():
            raise ClusterError(f"there is no cluster up in {self.root}; start it with 'up'")
        self._network.enter()

    def env(self, user: str = "root") -> dict[str, str]:
        """Return the whole environment in which ``user`` works with this cluster."""
        home = self.paths.home(user) if user in users.JOB_USERS else self.root
        return {
            **command.base_env(),
            "PATH": f"{self.paths.bin}:{command.PATH}",
            "SLURM_CONF": str(self.paths.slurm_conf),
            "IO_AUTOTUNE_CONFIG": str(self.paths.client_toml),
            "HOME": str(home),
            "USER": user,
            "LOGNAME": user,
            "SHELL": "/bin/bash",
        }

    def run_as(
        self,
        user: str,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout: float = 60.0,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as ``user`` in this cluster and return its exit status and output.

        ``cwd`` is the user's home directory by default, ``env`` is put on top of ``env(user)``,
        ``timeout`` is in seconds.

        Raises:
            CommandFailed: it ran out of time, or ``check`` is set and its exit status is not zero.
                In the first case with what it did, and the last lines of Slurm's logs.

        """
        environment = {**self.env(user), **(env or {})}
        try:
            with self._network.inside():
                return command.run(
                    argv,
                    env=environment,
                    user=user,
                    cwd=Path(environment["HOME"]) if cwd is None else cwd,
                    stdin=stdin,
                    timeout=timeout,
                    check=check,
                )
        except CommandFailed as failed:
            if failed.status is not None:
                raise
            said = hung.tails(sorted(self.paths.log.glob("slurm*.log")))
            doing = f"{failed.doing}\n{said}"
            raise CommandFailed(argv, None, failed.stdout, failed.stderr, doing) from None

    def psql_argv(self) -> list[str]:
        """Return the command that opens the cluster's database; the service's user must run it."""
        remembered = self._require_record()
        program = postgres.programs(self.paths.pg_data) / "psql"
        database = f"--dbname={render.DATABASE}"
        return [str(program), *postgres.connect_args(self.paths, remembered), database]

    def _check_ours(self, known: Record | None) -> None:
        """Refuse a directory that was there before: 'destroy' would remove it."""
        # A first 'up' that was interrupted leaves the lock, but perhaps no record.
        if known is None and self.root.exists() and not self.paths.lock.is_file():
            raise ClusterError(
                f"{self.root} exists and is not a development cluster's;"
                " choose a directory that does not exist yet with --root, or remove it"
            )

    def _remembered(self, nodes: int) -> Record:
        """Make the users, and return and save the cluster's record with this command's options.

        Under the registry's lock, so that no other cluster's end takes the users away, and no other
        cluster's start the ports.
        """
        files.directory(self.paths.etc, 0o755)
        with registry.opened() as shared:
            others = {root for root in shared.roots if root != self.root}
            loaded = {root: record.load_neighbour(Paths(root).record) for root in others}
            records = {root: item for root, item in loaded.items() if item is not None}
            taken = {port for item in records.values() for port in item.ports}
            wanted = self._wanted(nodes, taken)
            if wanted.variant.memory:
                _check_memory(records)
            created = users.ensure(users.needed(collector=wanted.variant.jobcomp))
            shared.users.update(created)
            record.save(self.paths.record, wanted)
            shared.roots.add(self.root)
        if created:
            self._say(f"created the users {', '.join(created)}")
        return wanted

    def _wanted(self, nodes: int, taken: set[int]) -> Record:
        known = record.load(self.paths.record)
        if known is None:
            return Record(
                name=record.cluster_name(self.root),
                nodes=nodes,
                prolog_alloc=self._prolog_alloc is not False,
                ports=ports.allocate(nodes, taken),
                variant=self._variant or Variant(),
                study_settings=settings.merge({}, self._study_settings),
            )
        known_ports = known.ports
        if not self._supervisor.alive() and not all(map(ports.is_free, known_ports.all())):
            self._say("a port of the cluster is taken by now: picking new ones")
            known_ports = ports.allocate(known.nodes, taken)
        alloc = known.prolog_alloc if self._prolog_alloc is None else self._prolog_alloc
        return replace(
            known,
            nodes=nodes,
            prolog_alloc=alloc,
            ports=ports.resize(known_ports, nodes, taken),
            variant=known.variant if self._variant is None else self._variant,
            study_settings=settings.merge(known.study_settings, self._study_settings),
        )

    def _install(self, wanted: Record) -> Record:
        if not (self._build / "stage").is_dir():
            self._say(f"there is no stage in {self._build}: nothing is installed from it")
            return wanted
        installed, changed = stage.install(self._build, self.paths, wanted.installed)
        if changed:
            self._say(f"installed {changed} changed files from {self._build}")
        return wanted.with_installed(installed)

    def _configure(self, wanted: Record) -> None:
        service = accounts.find(users.SERVICE_USER)
        if wanted.variant.clock:
            files.write(clock.clock_file(self.paths), "+0\n", mode=0o644)
        texts = {
            self.paths.slurm_conf: render.slurm_conf(self.paths, wanted),
            self.paths.plugstack_conf: render.plugstack_conf(
                self.paths, with_plugin=self.paths.plugin.exists()
            ),
            self.paths.cgroup_conf: render.cgroup_conf(wanted.variant),
            self.paths.client_toml: render.client_toml(self.paths, wanted),
            self.paths.postgresql_conf: render.postgresql_conf(self.paths, wanted),
            self.paths.pg_hba_conf: render.pg_hba_conf(),
            self.paths.pg_ident_conf: render.pg_ident_conf(),
        }
        for path, text in texts.items():
            files.write(path, text, mode=0o644)
        if wanted.variant.namespace is not None:
            container = render.job_container_conf(self.paths)
            files.write(self.paths.etc / "job_container.conf", container, mode=0o644)
            namespace = render.namespace_yaml(self.paths)
            files.write(self.paths.etc / "namespace.yaml", namespace, mode=0o644)
        if wanted.variant.run_in_job:
            text = (self._build / "stage/share/slurm/run-in-job").read_text(encoding="utf-8")
            files.write(self.paths.run_in_job, render.run_in_job(self.paths, text), mode=0o755)
        if wanted.variant.burst_buffer:
            conf = render.burst_buffer_conf()
            files.write(self.paths.etc / "burst_buffer.conf", conf, mode=0o644)
            for name in ("burst_buffer.lua", "io_autotune_directives.lua"):
                text = (self._build / "stage/share/slurm" / name).read_text(encoding="utf-8")
                text = render.burst_buffer_lua(self.paths, text)
                files.write(self.paths.etc / name, text, mode=0o644)
        if wanted.variant.auth == "slurm" and not self.paths.slurm_key.exists():
            slurm = accounts.find(users.SLURM_USER)
            key = secrets.token_bytes(KEY_BYTES)
            files.write(self.paths.slurm_key, key, mode=0o600, uid=slurm.uid, gid=slurm.gid)
        if wanted.variant.jobcomp:
            files.write(self.paths.jobcomp, render.jobcomp(self.paths), mode=0o755)
        if wanted.variant.accounting:
            files.write(self.paths.mariadb_conf, render.mariadb_conf(self.paths), mode=0o644)
            files.write(self.paths.mariadb_init, render.mariadb_init(), mode=0o644)
            # slurmdbd refuses a file that is another's, or readable by others.
            slurm = accounts.find(users.SLURM_USER)
            text = render.slurmdbd_conf(self.paths, wanted)
            files.write(self.paths.slurmdbd_conf, text, mode=0o600, uid=slurm.uid, gid=slurm.gid)
        # Readable by the service alone, as on a real site.
        text = render.service_toml(self.paths, wanted)
        files.write(self.paths.service_toml, text, mode=0o640, gid=service.gid)

    def _down(self) -> bool:
        alive = self._supervisor.alive()
        if "slurmctld" in alive:
            try:
                cancelled = control.cancel_jobs(self.paths)
            except ClusterError as error:
                self._say(f"not all jobs could be cancelled: {error}")
            else:
                if cancelled:
                    self._say(f"cancelled {cancelled} jobs")
        ended = self._supervisor.end_all()
        leftovers = control.end_leftovers(self.paths)
        if leftovers:
            self._say(f"killed {leftovers} slurmstepd that had outlived their slurmd")
        known = record.load(self.paths.record)
        if known is not None and known.variant.memory:
            cgroups.remove_leftovers(known.node_names())
        if ended:
            self._say(f"ended {', '.join(reversed(ended))}")
        else:
            self._say(f"the cluster in {self.root} is down already")
        return bool(ended or leftovers)

    def _require_record(self) -> Record:
        known = record.load(self.paths.record)
        if known is None:
            raise ClusterError(f"there is no cluster in {self.root}; make one with 'up'")
        return known

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the cluster's lock: one command at a time changes it."""
        with self.paths.lock.open("a", encoding="utf-8") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._say(f"waiting for another command that works on {self.root}")
                fcntl.flock(held, fcntl.LOCK_EX)
            yield


def _check_memory(others: Mapping[Path, record.Neighbour]) -> None:
    """Check that jobs can be held to their memory, and that no other cluster does so.

    Slurm 22.05 names its control groups by the node's name alone, and every cluster has an n1.
    """
    problem = cgroups.memory_problem()
    if problem is not None:
        raise ClusterError(f"a cluster that holds jobs to their memory was asked for: {problem}")
    for root, item in others.items():
        if item.memory:
            raise ClusterError(
                "a cluster that holds jobs to their memory was asked for, and this host can have"
                f" only one, which is in {root}; destroy that one first"
            )
