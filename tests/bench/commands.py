"""What users wait for: submitting, and what slurmd does at a job's start and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from devcluster import files, process

from bench.figures import Aim, Figure, median, ratio_of_pairs
from bench.place import Place, in_turn
from bench.slurmd_log import Moments, read

USER = "io-alice"
NODE = "n1"
HELD = ["sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true"]
"""A submission, and nothing more."""
SUBMITTED_SECONDS = 600.0
SUBMISSION_AIM = Aim(1.0)
UNASKED_AIM = Aim(1.02)
TUNED = ["--io-autotune=app=bench"]
START_AIM, END_AIM = Aim(12.0), Aim(10.0)


def figures(place: Place, pairs: int) -> list[Figure]:
    """Measure, and return the figures."""
    return [
        _submission(place, "app=bench", pairs // 2),
        _submission(place, "app=bench,verbose", pairs // 2),
        *_unasked(place, pairs),
        *_slurmd(place, pairs // 3),
    ]


def _submission(place: Place, spec: str, triples: int) -> Figure:
    """Return what the option adds to sbatch, against one squeue -j.

    A person at a terminal is shown what the job will have, here with ``verbose``; a script is not.
    """
    (first,) = _run(place, *HELD).split()
    shares, added = [], []
    for number in range(triples):
        # In another order each time: whoever is first pays for what the other has cooled down.
        order = (HELD, [*HELD, f"--io-autotune={spec}"])
        plain, tuned = _in_order(place, order, reverse=number % 2 == 1)
        (asked,) = _in_order(place, (["squeue", "--noheader", "-j", first],))
        shares.append((tuned - plain) / asked)
        added.append((tuned - plain) * 1e3)
    _cancel(place)
    return Figure(
        f"what `sbatch --io-autotune={spec}` takes more than `sbatch`, against one `squeue -j`",
        "ratio",
        median(shares),
        SUBMISSION_AIM,
        f"median of {triples}; it adds {median(added)} ms",
    )


def _unasked(place: Place, pairs: int) -> Iterator[Figure]:
    """Yield what sbatch and srun that do not ask take with the plugin, against without it.

    For comparison, what sbatch takes with a plugin that has nothing in it: Slurm's own part.
    """
    empty = place.build / "empty_plugin" / "empty_plugin.so"
    installed = place.cluster.paths.plugstack_conf.read_text(encoding="utf-8")
    lists = {"ours": installed, "none": "# none\n", "empty": f"optional {empty}\n"}
    srun = ["srun", f"--nodelist={NODE}", "true"]
    for what, argv, plugins, aim in (
        ("`sbatch` that does not ask for tuning, with the plugin", HELD, "ours", UNASKED_AIM),
        ("`sbatch` with a plugin that has nothing in it", HELD, "empty", None),
        ("`srun` that does not ask for tuning, with the plugin", srun, "ours", UNASKED_AIM),
    ):
        times: dict[str, list[float]] = {plugins: [], "none": []}
        for number in range(pairs):
            for side in (plugins, "none") if number % 2 == 0 else ("none", plugins):
                with _plugstack(place, lists[side]):
                    times[side] += _in_order(place, (argv,))
        _cancel(place)
        yield Figure(
            f"{what} installed, against without",
            "ratio",
            ratio_of_pairs(times[plugins], times["none"]),
            aim,
            f"median of {pairs} pairs; {median(times[plugins]).value * 1e3:.1f} ms against"
            f" {median(times['none']).value * 1e3:.1f} ms",
        )


def _slurmd(place: Place, pairs: int) -> Iterator[Figure]:
    """Yield what a tuned job's start and end take more in slurmd than another's.

    For comparison, what those of a job take more where Prolog= and Epilog= are programs that do
    nothing: Slurm's own part.
    """
    plain: list[str] = []
    order = [plain, TUNED]
    seen = _moments(place, [job for n in range(pairs) for job in order[:: 1 - n % 2 * 2]])
    both = {"plain": seen[0::4] + seen[3::4], "tuned": seen[1::4] + seen[2::4]}
    empty: dict[str, list[Moments]] = {"without": [], "with": []}
    scripts = {"without": "", "with": "Prolog=/bin/true\nEpilog=/bin/true\n"}
    with _plugstack(place, "# none\n"):
        for side in in_turn(2, "without", "with"):
            empty[side] += _moments(place, [plain] * (pairs // 2), scripts[side])
    for name, of, aim in (
        ("start, from slurmctld's request to the script", Moments.start, START_AIM),
        ("end, from the script to the end of the epilog", Moments.end, END_AIM),
    ):
        yield _more(
            f"what slurmd takes more for a tuned job's {name}",
            of,
            both["plain"],
            both["tuned"],
            aim,
        )
        yield _more(
            f"what it takes more with an empty Prolog= and Epilog= for a job's {name}",
            of,
            empty["without"],
            empty["with"],
            None,
        )


def _more(
    name: str,
    of: Callable[[Moments], float | None],
    less: Sequence[Moments],
    more: Sequence[Moments],
    aim: Aim | None,
) -> Figure:
    both = [(of(one), of(other)) for one, other in zip(less, more, strict=True)]
    known = [(one, other) for one, other in both if one is not None and other is not None]
    return Figure(
        name,
        "ms",
        median([other - one for one, other in known]),
        aim,
        f"median of {len(known)} pairs; without it {median([one for one, _ in known])} ms",
    )


def _moments(place: Place, jobs: Sequence[list[str]], settings: str = "") -> list[Moments]:
    """Run jobs with these options of sbatch, one after the other, with more in slurm.conf."""
    base = ["sbatch", "--parsable", "--exclusive", f"--nodelist={NODE}", "--output=/dev/null"]
    log = place.cluster.paths.log_of(f"slurmd-{NODE}")
    with _debugging(place, settings):
        begin = log.stat().st_size
        ids = [int(_run(place, *base, *options, "--wrap=true")) for options in jobs]
        _await_empty(place)
        with log.open("r", encoding="utf-8", errors="replace") as text:
            text.seek(begin)
            moments = read(text)
    return [moments[job_id] for job_id in ids]


def _run(place: Place, *argv: str) -> str:
    return place.cluster.run_as(USER, list(argv)).stdout


def _in_order(place: Place, commands: Sequence[list[str]], *, reverse: bool = False) -> list[float]:
    """Return the seconds that commands take; in their order, whatever the order they are run in."""
    taken = [0.0] * len(commands)
    places = range(len(commands))
    for index in reversed(places) if reverse else places:
        began = time.perf_counter()
        _run(place, *commands[index])
        taken[index] = time.perf_counter() - began
    return taken


@contextmanager
def _plugstack(place: Place, plugins: str) -> Iterator[None]:
    """Have Slurm find these plugins: its programs read the list each time."""
    path = place.cluster.paths.plugstack_conf
    text = path.read_text(encoding="utf-8")
    files.write(path, plugins, mode=0o644)
    try:
        yield
    finally:
        files.write(path, text, mode=0o644)


@contextmanager
def _debugging(place: Place, settings: str) -> Iterator[None]:
    """Have slurmd tell each step it takes, with more in slurm.conf."""
    path = place.cluster.paths.slurm_conf
    text = path.read_text(encoding="utf-8")

    def configure(now: str) -> None:
        files.write(path, now, mode=0o644)
        place.cluster.run_as("root", ["scontrol", "reconfigure"])

    configure(text.replace("SlurmdDebug=debug", "SlurmdDebug=debug2") + settings)
    try:
        yield
    finally:
        configure(text)


def _cancel(place: Place) -> None:
    _run(place, "scancel", f"--user={USER}")
    _await_empty(place)


def _await_empty(place: Place) -> None:
    def look() -> str | None:
        left = _run(place, "squeue", "--noheader", "--format=%A").split()
        return f"{len(left)} jobs are in the queue" if left else None

    problem = process.wait_until(look, SUBMITTED_SECONDS)
    assert problem is None, problem
