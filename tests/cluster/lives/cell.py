"""One job of one kind that comes to one end: submitted, ended, looked at, recorded."""

from __future__ import annotations

import re
import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import CommandFailed, files
from harness import ALICE, ENDED, ROOT, Job, Json, Site, await_true, await_value, lines

from lives.ends import Begins, End, Launch
from lives.kinds import NESTED, OWN_HINTS, RUN_DIRECTORY, WORK, Hints, Kind
from lives.page import NOTHING, Row, normalised

PINNED = {"cb_nodes": "2", "romio_cb_write": "disable"}
"""What the kinds' studies are pinned to."""
OWN = {"cb_nodes": "1"}
"""What users have in hint files of their own."""
AT_ONCE = 16
"""How many jobs are looked after at once; the nodes' CPUs let about as many run."""
SETTLING_SECONDS = 30.0
"""How long what is recorded of a job that has ended may change yet."""
CLOCKS = 0.01
"""Seconds by which what took two seconds may seem shorter."""

_UNSET = "unset"
"""What the work writes where it finds no hints."""

_HISTORY = {"counted": "yes", "censored": "lower bound", "not_counted": "no"}
"""What ``history`` and ``explain`` show for a run's state."""


@dataclass
class Cell:
    """A kind of job and a kind of end, on one cluster."""

    kind: Kind
    end: End
    cluster: str
    runs_in: str
    site: Site
    job_id: int = 0
    """Known once it is submitted."""
    stderr: str = ""
    others: list[Job] = field(default_factory=list)
    """Jobs that were submitted to end it, and are to end too."""
    submitted: float = 0.0
    """When, by the monotonic clock."""

    @property
    def name(self) -> str:
        """The job's name, where it has one of its own."""
        return "-".join(["lives", *map(_slug, (self.kind.name, self.end.name))])

    @property
    def application(self) -> str:
        """The application; the jobs of one kind share its pinned study."""
        return self.name if self.end.own_study else f"lives-{_slug(self.kind.name)}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What its rows have in common."""
        return (self.kind.name, self.end.name, self.cluster)

    @property
    def hints(self) -> Hints:
        """What its work must find."""
        fresh = self.end.own_study and self.kind.hints is Hints.PINNED
        return Hints.NONE if fresh else self.kind.hints

    @property
    def requeues(self) -> bool:
        """Whether Slurm begins it anew where its node fails."""
        return "--requeue" in self.end.batch_options

    def job(self) -> Job:
        """Return the job, once it is submitted."""
        return Job(self.job_id, self.stderr)

    @property
    def directory(self) -> Path:
        """Where its work lies, and writes."""
        return self.site.paths.scratch / self.name

    @property
    def release(self) -> Path:
        """A file for which work may wait."""
        return self.directory / "release"

    @property
    def began(self) -> Path:
        """Where each process that does the work writes a line at its start."""
        return self.directory / "began"

    def directories(self) -> list[Path]:
        """Return what the nodes that have begun it keep of it: CLUSTER/NODE/JOB."""
        return list(self.site.paths.plugin_run.glob(f"*/*/{self.job_id}"))


def live(site: Site, cells: Sequence[Cell]) -> dict[tuple[str, str, str], list[Row] | Exception]:
    """Let the jobs of these cells live, many at once, and return the rows or what went wrong."""
    unpinned = _pin(site, cells)
    results: dict[tuple[str, str, str], list[Row] | Exception] = {
        cell.key: unpinned[cell.kind.name] for cell in cells if cell.kind.name in unpinned
    }
    for group in _groups([cell for cell in cells if cell.key not in results]):
        results |= _live_together(site, group)
    return results


def _groups(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Split cells so that what is done to the cluster for some does not reach the others."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        # What is done to all is done to those of one partition.
        partition = cell.end.options if cell.end.act_on_all else ()
        groups.setdefault((cell.end.around, cell.end.act_on_all, partition), []).append(cell)
    yield from groups.values()


def _live_together(
    site: Site, cells: Sequence[Cell]
) -> dict[tuple[str, str, str], list[Row] | Exception]:
    around, act_on_all = cells[0].end.around, cells[0].end.act_on_all
    # Some are to be at the same point at the same time: then all have to be looked after at once.
    together = around is not None or act_on_all is not None
    # One more: the last to arrive lets the whole group go on.
    barrier = threading.Barrier(len(cells) + 1) if together else None
    with ThreadPoolExecutor(len(cells) if together else AT_ONCE) as pool:
        try:
            with nullcontext() if around is None else around(site):
                futures = {cell.key: pool.submit(_live, cell, barrier) for cell in cells}
                if barrier is not None:
                    _arrive(barrier)
                    _arrive(barrier)
                if act_on_all is not None:
                    act_on_all(site, [cell for cell in cells if cell.job_id])
            if barrier is not None:
                _arrive(barrier)
        except BaseException:
            # Nobody is left waiting for those who will not come.
            if barrier is not None:
                barrier.abort()
            raise
        return {key: _outcome(future.result) for key, future in futures.items()}


def _outcome(result: Callable[[], list[Row]]) -> list[Row] | Exception:
    try:
        return result()
    except Exception as error:  # noqa: BLE001 - a test of its own tells it
        return error


def _live(cell: Cell, barrier: threading.Barrier | None) -> list[Row]:
    """Submit the job, do to it what its end asks for, wait for its end, and record it."""
    # The client stays until the job's end for salloc and srun.
    with ThreadPoolExecutor(1) as client:
        try:
            try:
                _prepare(cell)
                cell.submitted = time.monotonic()
                submission = client.submit(_submit, cell)
                _find(cell, submission)
                if cell.end.act is not None or cell.end.act_on_all is not None:
                    _await_begin(cell)
            finally:
                # Nothing is done to one before all have begun: a job that is cancelled in a prolog
                # that waits leaves its node completing, where Slurm starts none of the others.
                if barrier is not None:
                    _arrive(barrier)
            if cell.end.act is not None:
                cell.end.act(cell.site, cell)
        finally:
            if barrier is not None:
                _arrive(barrier)
                _arrive(barrier)
        _await_end(cell)
        took = time.monotonic() - cell.submitted
        submission.result()
    _check_work(cell)
    rows = _await_rows(cell, took)
    _check_output(cell)
    return rows


def _arrive(barrier: threading.Barrier) -> None:
    barrier.wait(timeout=600.0)


# Submitting


def _prepare(cell: Cell) -> None:
    """Write the work where every node and every user finds it."""
    directory = cell.directory
    directory.mkdir(exist_ok=True)
    directory.chmod(0o1777)
    own = "".join(f"{name} {value}\n" for name, value in OWN.items())
    files.write(directory / "own_hints", own, mode=0o644)
    for leftover in (cell.began, cell.release):
        leftover.unlink(missing_ok=True)
    # One write, so that the lines of several ranks do not mix. All nodes are on one host: the file
    # of another node is there, but it would not be on a real cluster.
    text = f"""#!/bin/bash
ulimit -c 0
export RELEASE={cell.release}
case "${{ROMIO_HINTS-}}" in
"") seen=unset ;;
{cell.site.paths.plugin_run}/*/"$SLURMD_NODENAME"/* | {directory}/*)
    seen=$(paste -sd, "$ROMIO_HINTS" 2>&1)
    ;;
*) seen="$ROMIO_HINTS on $SLURMD_NODENAME" ;;
esac
echo "${{SLURM_RESTART_COUNT:-0}} ${{SLURM_PROCID:-0}} $seen" >>{cell.began}
{cell.end.work}
"""
    files.write(directory / "work", text, mode=0o755)


def _fill(cell: Cell, text: str) -> str:
    places = {
        WORK: str(cell.directory / "work"),
        OWN_HINTS: str(cell.directory / "own_hints"),
        RUN_DIRECTORY: str(cell.site.paths.plugin_run),
        "{app}": cell.application,
    }
    for place, value in places.items():
        text = text.replace(place, value)
    return text


def _options(cell: Cell) -> list[str]:
    kind = cell.kind
    options = [*kind.options, *cell.end.options]
    if kind.program == "sbatch":
        options += cell.end.batch_options
    if kind.named:
        options.append(f"--job-name={cell.name}")
    if kind.option is not None:
        options.append(_fill(cell, kind.option))
    return options


def _submit(cell: Cell) -> None:
    """Submit the job. salloc and srun come back when it has ended, whatever its end."""
    site, kind = cell.site, cell.kind
    env = {name: _fill(cell, value) for name, value in kind.env.items()}
    # What is said of a job that stays untuned is looked at.
    env["IO_AUTOTUNE_VERBOSE"] = "1"
    script = _fill(cell, kind.script)
    options = _options(cell)
    if kind.program != "sbatch":
        command = ["bash", "-c", script] if kind.program == "salloc" else [script]
        done = site.cluster.run_as(
            ALICE, [kind.program, *options, *command], env=env, check=False, timeout=600.0
        )
        cell.stderr = done.stderr
        return
    output = f"--output={cell.directory}/output"
    argv = ["sbatch", "--parsable", output, *options]
    for more in kind.components:
        argv += [":", f"--job-name={cell.name}", *more, *cell.end.options]
    stdin = ""
    if kind.submitted_as == "wrap":
        argv.append(f"--wrap={script}")
    elif kind.submitted_as == "stdin":
        stdin = f"#!/bin/bash\n{script}\n"
    else:
        file = cell.directory / kind.submitted_as
        files.write(file, f"#!/bin/bash\n{script}\n", mode=0o755)
        argv.append(str(file))
    if kind.nested_in is not None:
        _submit_nested(cell, argv, stdin)
        return
    done = site.cluster.run_as(ALICE, argv, env=env, stdin=stdin)
    cell.job_id, cell.stderr = int(done.stdout.split(";")[0]), done.stderr


def _submit_nested(cell: Cell, argv: Sequence[str], stdin: str) -> None:
    """Have a tuned job submit it."""
    inner = cell.directory / "inner"
    files.write(inner, stdin, mode=0o755)
    command = shlex.join([*argv, "--ntasks=1", str(inner)])
    assert cell.kind.nested_in is not None
    body = cell.kind.nested_in.replace(NESTED, command)
    cell.site.sbatch(body, "--io-autotune=app=lives-outer", "--job-name=lives-outer")


def _find(cell: Cell, submission: Future[None]) -> None:
    """Wait until the job has an id: by its name where its client does not tell it at once."""

    def look() -> int | None:
        over = submission.done()
        if over:
            submission.result()
        # A client that is gone has submitted its job before now, and not before an older look.
        jobs = cell.site.all_jobs.look(0.0) if over else cell.site.all_jobs.look()
        if not cell.job_id and cell.kind.named:
            ids = [job_id for job_id, (name, _state) in jobs.items() if name == cell.name]
            cell.job_id = min(ids, default=0)
        # A nested job's submission ends before it does.
        refused = over and not cell.job_id and cell.kind.nested_in is None
        assert not refused, f"{cell.name} was not submitted: {cell.stderr}"
        # From now on, a job that is not listed is one that Slurm has forgotten.
        return cell.job_id if cell.job_id in jobs else None

    await_value(f"the job {cell.name} to be in the queue", look, cell.end.seconds)


# Its life


def _await_begin(cell: Cell) -> None:
    begins = cell.end.begins
    reached = {
        Begins.QUEUE: lambda: _state(cell) is not None,
        Begins.PROLOG: lambda: bool(cell.directories()),
        Begins.WORK: lambda: len(_began(cell)) >= cell.kind.ranks,
    }[begins]
    await_true(f"job {cell.job_id} ({cell.name}): {begins.value}", reached, cell.end.seconds)


def _await_end(cell: Cell) -> None:
    """Wait until Slurm calls the job ended, and nothing of it waits on the nodes."""
    # Slurm forgets a job that ended long ago: what is not listed any more has ended.
    await_true(
        f"job {cell.job_id} ({cell.name}) to end",
        lambda: _state(cell) in {*ENDED, None},
        cell.end.seconds,
    )
    for job in cell.others:
        cell.site.ended(job)
    await_true(
        f"the reports of job {cell.job_id} ({cell.name})",
        lambda: not cell.directories() and not _undelivered(cell),
        cell.end.seconds,
    )


def _state(cell: Cell) -> str | None:
    known = cell.site.all_jobs.look().get(cell.job_id)
    return None if known is None else known[1]


def _undelivered(cell: Cell) -> list[Path]:
    return list(cell.site.paths.plugin_spool.glob(f"*.{cell.job_id}.*.json"))


def _began(cell: Cell) -> list[list[str]]:
    """Return restart count, rank and hints of each process that began the work."""
    try:
        text = cell.began.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [line.split(maxsplit=2) for line in lines(text)]


# What is recorded


def _check_work(cell: Cell) -> None:
    """Check what the processes found in their environment."""
    expected = {
        Hints.PINNED: _as_seen(PINNED),
        Hints.OWN: _as_seen(OWN),
        Hints.NONE: _UNSET,
    }[cell.hints]
    seen = _began(cell)
    works = not cell.end.launches or any(launch.works for launch in cell.end.launches)
    if cell.end.launches and works:
        assert len(seen) >= cell.kind.ranks, f"the work of {cell.name} was not reached: {seen}"
    tuned_ranks = cell.kind.tuned_ranks or cell.kind.ranks
    for restarts, rank, hints in seen:
        # A launch that was begun anew may have been given something else.
        if restarts == "0":
            wanted = expected if int(rank) < tuned_ranks else _UNSET
            assert hints == wanted, f"rank {rank} of {cell.name} was to find {wanted}: {seen}"


def _as_seen(hints: Mapping[str, str]) -> str:
    return ",".join(f"{name} {value}" for name, value in hints.items())


def _check_output(cell: Cell) -> None:
    if cell.kind.says is not None and not cell.end.act:
        said = (cell.directory / "output").read_text(encoding="utf-8")
        assert cell.kind.says in said, f"{cell.name} does not say why: {said!r}"


def _await_rows(cell: Cell, took: float) -> list[Row]:
    """Wait until what is recorded is what is expected, and return it."""
    problems: list[str] = []
    rows: list[Row] = []

    def settled() -> bool:
        runs = _runs(cell)
        problems[:] = _problems(cell, runs, took)
        if not problems:
            rows[:] = _rows(cell, runs)
        return not problems

    try:
        await_true(f"job {cell.job_id}", settled, SETTLING_SECONDS)
    except AssertionError:
        told = "\n  ".join(problems)
        raise AssertionError(f"job {cell.job_id} ({cell.name}):\n  {told}") from None
    _check_shown(cell, _runs(cell))
    return rows


def _runs(cell: Cell) -> list[Json]:
    runs = [run for run in cell.site.all_runs.look() if run["job_id"] == cell.job_id]
    return sorted(runs, key=lambda run: run["restart_count"])


def _problems(cell: Cell, runs: Sequence[Json], took: float) -> list[str]:
    expected = cell.end.expected(cell.kind, cell.cluster)
    if len(runs) != len(expected):
        shown = [(run["state"], run["outcome"], run["verdict"]) for run in runs]
        return [f"it was to have {len(expected)} runs, and has {len(runs)}: {shown}"]
    problems = []
    if not runs:
        state = _state(cell)
        wanted = cell.end.job_states or {"COMPLETED"}
        problems += [] if state in wanted else [f"squeue says {state}, not {sorted(wanted)}"]
    for number, (run, launch) in enumerate(zip(runs, expected, strict=True), 1):
        problems += [
            f"launch {number}: {problem}" for problem in _problems_of(cell, run, launch, took)
        ]
    return problems


def _problems_of(cell: Cell, run: Json, launch: Launch, took: float) -> list[str]:
    problems = []
    if run["state"] != launch.state:
        problems.append(f"it is {run['state']}, not {launch.state}")
    if run["outcome"] not in (launch.slurm or {None}):
        problems.append(f"Slurm's word is {run['outcome']}, not one of {sorted(launch.slurm)}")
    if not re.search(launch.why, run["verdict"] or ""):
        problems.append(f"its verdict is {run['verdict']!r}, which does not have {launch.why!r}")
    if launch.roles is not None and run["role"] not in launch.roles:
        problems.append(f"its role is {run['role']}, not one of {sorted(launch.roles)}")
    if launch.at_least is not None:
        least = launch.at_least + cell.kind.before - CLOCKS
        most = took - cell.kind.pause
        elapsed = run["elapsed"]
        if elapsed is None or not least <= elapsed <= most:
            problems.append(f"its elapsed is {elapsed}, not {least:.2f} to {most:.2f} s")
    return problems


def _rows(cell: Cell, runs: Sequence[Json]) -> list[Row]:
    same = {
        "kind": cell.kind.name,
        "end": cell.end.name,
        "cluster": cell.cluster,
        "runs_in": cell.runs_in,
    }
    if not runs:
        return [
            Row(
                **same,
                launch=NOTHING,
                slurm=_state(cell) or NOTHING,
                state="no run",
                elapsed=NOTHING,
                applied=NOTHING,
                role=NOTHING,
                why=NOTHING,
            )
        ]
    return [
        Row(
            **same,
            launch=str(run["restart_count"] + 1),
            slurm=run["outcome"] or NOTHING,
            state=run["state"],
            elapsed="no" if run["elapsed"] is None else "yes",
            applied=NOTHING if run["applied"] is None else run["applied"]["kind"],
            role=run["role"],
            why=normalised(run["verdict"]),
        )
        for run in runs
    ]


def _check_shown(cell: Cell, runs: Sequence[Json]) -> None:
    """Check that the job's owner is shown what was recorded."""
    explained = cell.site.tuner(ALICE, "explain", str(cell.job_id))
    if not runs:
        assert explained.returncode != 0, f"explain shows a run: {explained.stdout}"
        assert "no run" in explained.stderr, explained.stderr
        return
    assert explained.returncode == 0, explained.stderr
    blocks = re.split(r"(?m)^(?=job  )", explained.stdout)[1:]
    columns = ["--parsable2", "--noheader", "--format", "JobID,Restarts,Counts"]
    study = str(runs[0]["study_id"])
    listed = cell.site.tuner(ALICE, "history", "--study", study, "--limit", "10000", *columns)
    assert listed.returncode == 0, listed.stderr
    for run, block in zip(runs, blocks, strict=True):
        restarts = run["restart_count"]
        shown = f"{cell.job_id} (restart {restarts})" if restarts else str(cell.job_id)
        assert re.match(rf"job +{re.escape(shown)} \(cluster", block), block
        counts = _HISTORY[run["state"]]
        assert run["verdict"] in block, f"explain does not say why: {block}"
        assert re.search(rf"(?m)^counts +{counts}\b", block), f"explain: {block}"
        row = f"{cell.job_id}|{restarts}|{counts}"
        assert row in listed.stdout.splitlines(), f"history has no {row}: {listed.stdout}"
        if run["elapsed"] is not None:
            bound = "at least " if run["state"] == "censored" else ""
            figure = re.search(rf"elapsed {bound}(\d+(?:\.(\d+))?) s\n", block)
            assert figure is not None, f"explain does not show the time: {block}"
            rounding = 0.5 * 10.0 ** -len(figure[2] or "")
            assert abs(float(figure[1]) - run["elapsed"]) <= rounding + 1e-9, block
        if run["outcome"] is not None:
            assert run["outcome"] in block, f"explain does not say {run['outcome']}: {block}"


# Pinned studies


def _pin(site: Site, cells: Sequence[Cell]) -> dict[str, Exception]:
    """Give each kind its pinned study, by a first run of it, all kinds at once.

    Return why a kind could not be given one.
    """
    kinds = {cell.kind.name: cell for cell in cells if _needs_pin(cell)}
    warm = [
        Cell(cell.kind, _FIRST, cell.cluster, cell.runs_in, site)
        for cell in kinds.values()
        if not site.ask(ROOT, "status", cell.application)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        problems = pool.map(_warm_up, warm)
        pairs = zip(warm, problems, strict=True)
        return {cell.kind.name: problem for cell, problem in pairs if problem is not None}


def _needs_pin(cell: Cell) -> bool:
    return cell.kind.hints is Hints.PINNED and not cell.end.own_study


def _warm_up(cell: Cell) -> Exception | None:
    try:
        with ThreadPoolExecutor(1) as client:
            _prepare(cell)
            submission = client.submit(_submit, cell)
            _find(cell, submission)
            _await_end(cell)
            submission.result()
        (study,) = cell.site.ask(ROOT, "status", cell.application)
        assignments = [f"{name}={value}" for name, value in PINNED.items()]
        number = str(study["study_id"])
        cell.site.ask(ROOT, "pin", number, *assignments, "--why", "the tests know it then")
    except (AssertionError, CommandFailed, ValueError) as error:
        return error
    return None


_FIRST = End("first", "Not on the page: it makes the study that is pinned.", "true", ())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
