"""Kinds of jobs: how a job is submitted, and where in it the work runs.

A kind is added by an entry of KINDS; what becomes of its work is the end's (``ends.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Hints(Enum):
    """What the job's work must find in its ROMIO_HINTS."""

    PINNED = "what its study is pinned to"
    OWN = "what the user has set"
    NONE = "nothing"


WORK = "{work}"
"""In a kind's script: the command that is the job's work."""
OWN_HINTS = "{own}"
"""In a kind's script or environment: the user's own file of hints."""
NESTED = "{nested}"
"""In a kind's script: the command that submits the nested job."""
RUN_DIRECTORY = "{run}"
"""In a kind's script: the product's run directory."""


@dataclass(frozen=True)
class Kind:
    """A kind of job."""

    name: str
    means: str
    """For the page."""
    script: str
    """What the program is given: bash lines with WORK in them."""
    program: str = "sbatch"
    options: tuple[str, ...] = ()
    components: tuple[tuple[str, ...], ...] = ()
    """The options of a heterogeneous job's later components."""
    env: Mapping[str, str] = field(default_factory=dict)
    option: str | None = "--io-autotune=app={app}"
    """How tuning is asked for; None where the job does not ask."""
    named: bool = True
    """Whether the job is given a name that tells it from others."""
    submitted_as: str = "stdin"
    """How sbatch gets the script: ``stdin``, ``wrap``, or the name of a file."""
    nested_in: str | None = None
    """The script of the outer job, with NESTED in it."""
    hints: Hints = Hints.PINNED
    ranks: int = 1
    """How many processes do the work."""
    tuned_ranks: int | None = None
    """How many of them, from rank 0 on, are to find the study's hints; None: all."""
    before: float = 0.0
    """Seconds that its steps take besides the work."""
    pause: float = 0.0
    """Seconds between its steps, which are not elapsed."""
    nodes: int = 1
    """How many nodes it has."""
    why_not: str | None = None
    """A pattern of the verdict, where a job of this kind never counts."""
    gets_run: bool = True
    """Whether it is to have a run."""
    says: str | None = None
    """What its output must say, where it must."""


_OBSERVED = r"name says nothing"
_LEFT_ALONE = r"user's own ROMIO_HINTS"

BATCH = Kind("batch", "sbatch; the work is the script itself", f"exec {WORK}")
STEPS = Kind(
    "batch, steps",
    "sbatch; two steps, the second is the work. One run: steps do not count twice",
    f"srun -n1 sleep 1\nsrun -n1 {WORK}",
    before=1.0,
)
MPIEXEC = Kind(
    "batch, mpiexec",
    "sbatch; two ranks, started by mpiexec.mpich",
    f"exec mpiexec.mpich -n 2 {WORK}",
    # On two nodes, where one has too few CPUs left, it would be another study.
    options=("--nodes=1", "--ntasks=2"),
    ranks=2,
)
SALLOC = Kind(
    "salloc",
    "salloc; a step of a second, a pause of three, and a step that is the work",
    f"srun -n1 sleep 1; sleep 3; srun -n1 {WORK}",
    program="salloc",
    options=("--ntasks=1",),
    before=1.0,
    pause=3.0,
)
SRUN = Kind("srun", "srun from the shell; one task", WORK, program="srun", options=("--ntasks=1",))
TWO_NODES = Kind(
    "batch, two nodes",
    "sbatch; one step, a rank on each node",
    f"srun {WORK}",
    options=("--nodes=2", "--ntasks-per-node=1"),
    ranks=2,
    nodes=2,
)
SECOND_NODE = Kind(
    "batch, step on the second node",
    "sbatch on two nodes; the work's only rank is on the second one",
    f"srun --nodes=1 --ntasks=1 --relative=1 {WORK}",
    options=("--nodes=2", "--ntasks-per-node=1"),
    nodes=2,
)
SALLOC_TWO = Kind(
    "salloc, two nodes",
    "salloc; a step on the first node, then the work with a rank on each",
    f"srun --nodes=1 --ntasks=1 --relative=0 sleep 1; srun {WORK}",
    program="salloc",
    options=("--nodes=2", "--ntasks-per-node=1"),
    ranks=2,
    nodes=2,
    before=1.0,
)
SRUN_TWO = Kind(
    "srun, two nodes",
    "srun from the shell; a rank on each node",
    WORK,
    program="srun",
    options=("--nodes=2", "--ntasks-per-node=1"),
    ranks=2,
    nodes=2,
)
FOUR_NODES = Kind(
    "batch, four nodes",
    "sbatch; one step, a rank on each node",
    f"srun {WORK}",
    options=("--nodes=4", "--ntasks-per-node=1"),
    ranks=4,
    nodes=4,
)
ARRAY = Kind("array task", "sbatch --array; one task of it", f"exec {WORK}", options=("--array=7",))
NESTED_JOB = Kind(
    "nested",
    "sbatch within a tuned job: a run of its own, never its parent's hints",
    f"exec {WORK}",
    nested_in=NESTED,
)
HET = Kind(
    "het",
    "a heterogeneous job of two components, a rank on each. One run, the first component's, where"
    " rank 0 reads the hints for all",
    f"srun --het-group=0,1 --ntasks=1 {WORK}",
    options=("--ntasks=1",),
    components=(("--ntasks=1",),),
    ranks=2,
    tuned_ranks=1,
)
EXPORT_NONE = Kind(
    "--export=NONE", "sbatch --export=NONE; a step", f"srun -n1 {WORK}", options=("--export=NONE",)
)
EXPORT_VAR = Kind(
    "--export=VAR", "sbatch --export=HOME; a step", f"srun -n1 {WORK}", options=("--export=HOME",)
)
STDIN = Kind(
    "stdin",
    "sbatch without a name, the script on its standard input: observed",
    f"exec {WORK}",
    option="--io-autotune",
    named=False,
    hints=Hints.NONE,
    why_not=_OBSERVED,
)
WRAP = Kind(
    "--wrap",
    "sbatch --wrap, without a name: observed",
    WORK,
    option="--io-autotune",
    named=False,
    submitted_as="wrap",
    hints=Hints.NONE,
    why_not=_OBSERVED,
)
RUN_SH = Kind(
    "run.sh",
    "sbatch run.sh, a name that means nothing: observed",
    f"exec {WORK}",
    option="--io-autotune",
    named=False,
    submitted_as="run.sh",
    hints=Hints.NONE,
    why_not=_OBSERVED,
)
PLAIN = Kind(
    "srun in a plain job",
    "srun --io-autotune within a job that did not ask: untuned, and told why",
    f"srun -n1 --io-autotune {WORK}",
    option=None,
    hints=Hints.NONE,
    gets_run=False,
    says="untuned",
)
PLAIN_SECOND = Kind(
    "srun in a plain job, second node",
    "the same, on a node where nothing ran before",
    f"srun --nodes=1 --ntasks=1 --relative=1 --io-autotune {WORK}",
    option=None,
    options=("--nodes=2", "--ntasks-per-node=1"),
    hints=Hints.NONE,
    nodes=2,
    gets_run=False,
    says="untuned",
)
OWN_SHELL = Kind(
    "own hints, shell",
    "sbatch; ROMIO_HINTS was set in the user's shell",
    f"srun -n1 {WORK}",
    env={"ROMIO_HINTS": OWN_HINTS},
    hints=Hints.OWN,
    why_not=_LEFT_ALONE,
)
OWN_SCRIPT = Kind(
    "own hints, script",
    "sbatch; the script sets ROMIO_HINTS",
    f"export ROMIO_HINTS={OWN_HINTS}\nsrun -n1 {WORK}",
    hints=Hints.OWN,
    why_not=_LEFT_ALONE,
)
OWN_STEP = Kind(
    "own hints, step",
    "sbatch; ROMIO_HINTS is set for the step alone",
    f"srun -n1 --export=ALL,ROMIO_HINTS={OWN_HINTS} {WORK}",
    hints=Hints.OWN,
    why_not=_LEFT_ALONE,
)
CONTAINER = Kind(
    "mount namespace",
    "sbatch; the work sees another file system, with the run directory bound into it",
    f"""[ -n "${{ROMIO_HINTS-}}" ] || exec {WORK}
run=$(dirname "$ROMIO_HINTS")
exec unshare --user --map-root-user --mount bash -c '
    set -e
    mkdir -p "$HOME/run.$SLURM_JOB_ID"
    mount --bind "$1" "$HOME/run.$SLURM_JOB_ID"
    mount -t tmpfs none {RUN_DIRECTORY}
    mkdir -p "$1"
    mount --bind "$HOME/run.$SLURM_JOB_ID" "$1"
    exec {WORK}
' container "$run\"""",
)

KINDS = tuple(one for one in list(globals().values()) if isinstance(one, Kind))
"""All of them, in the order of the page."""
