"""The soak's jobs: what each is asked to do, and what it must have printed. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

APPLICATIONS = 5
"""How many applications each user has."""
OWN_HINTS = "/the/users/own"
"""What a user has set."""
SETTING = "net.ipv4.tcp_fin_timeout"
"""A setting of the network namespace, which is the cluster's own."""
WEIGHTS = {
    "tuned": 40,
    "array": 25,
    "steps": 8,
    "own hints": 6,
    "fails": 7,
    "plain": 6,
    "settings": 8,
}
"""The kinds of submissions, and how often each comes."""
TASKS = 5
"""Tasks of an array."""
STEPS = 2
FAILURE = 7
NUMBER = r"(\d+\.\d+)"


@dataclass(frozen=True)
class Submission:
    """One call of sbatch: a job, or an array of jobs."""

    name: str
    kind: str
    user: str
    application: str
    pause: float
    """Seconds that the job sleeps."""

    @property
    def tasks(self) -> int:
        """How many jobs it makes."""
        return TASKS if self.kind == "array" else 1

    @property
    def exit_code(self) -> int:
        """What the script ends with."""
        return FAILURE if self.kind == "fails" else 0

    @property
    def tuned(self) -> bool:
        """Whether there is to be a run."""
        return self.kind != "plain"

    @property
    def has_srun(self) -> bool:
        """Whether it needs slurmd and slurmctld while it runs."""
        return self.kind == "steps"

    def options(self) -> list[str]:
        """Return what sbatch is given."""
        options = [f"--job-name={self.name}", "--output=soak/%x-%j.out", "--time=5"]
        if self.tuned:
            more = ",accelerator=soak-net" if self.kind == "settings" else ""
            options.append(f"--io-autotune=app={self.application}{more}")
        if self.kind == "array":
            options.append(f"--array=1-{TASKS}")
        if self.kind == "steps":
            options.append(f"--ntasks={STEPS}")
        if self.kind == "settings":
            # Every node is in the same namespace: one node alone may change it.
            options += ["--exclusive", "--nodelist=n1"]
        return options

    def env(self) -> dict[str, str]:
        """Return what the user has set."""
        return {"ROMIO_HINTS": OWN_HINTS} if self.kind == "own hints" else {}

    def body(self) -> str:
        """Return the script."""
        work = f"sleep {self.pause:.2f}"
        if self.kind == "steps":
            work += "\nsrun echo step"
        # The shell's own commands: each process costs a loaded machine time.
        given = '[ -z "${ROMIO_HINTS-}" ] || tr "\\n" " " <"$ROMIO_HINTS"'
        if self.kind == "own hints":
            given = 'echo -n "$ROMIO_HINTS"'
        elif self.kind == "settings":
            given = f"cat /proc/sys/{SETTING.replace('.', '/')}"
        clock = "read up _ </proc/uptime; echo at $up"
        lines = (
            f"echo begin {self.name}",
            clock,
            f"echo given $({given})",
            work,
            clock,
            f"echo end {self.name}",
            f"exit {self.exit_code}",
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class Printed:
    """What a job has printed, understood."""

    seconds: float
    """From its first line to its last, by the machine's clock since boot."""
    given: str
    """The hints that it read, or the setting that it found."""


def understood(submission: Submission, text: str) -> Printed | None:
    """Return what the output says, or None if it is not what the job prints."""
    steps = "step\n" * STEPS if submission.has_srun else ""
    pattern = (
        rf"begin {submission.name}\nat {NUMBER}\ngiven ?([^\n]*)\n{steps}at {NUMBER}\n"
        rf"end {submission.name}\n"
    )
    found = re.fullmatch(pattern, text)
    if found is None:
        return None
    return Printed(float(found[3]) - float(found[1]), found[2].strip())


def generated(seed: int, jobs: int, users: Sequence[str]) -> list[Submission]:
    """Return submissions that make at least so many jobs; the same for the same seed."""
    chance = random.Random(f"jobs {seed}")
    submissions: list[Submission] = []
    total = 0
    while total < jobs:
        (kind,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        application = f"soak-{'net' if kind == 'settings' else chance.randrange(APPLICATIONS)}"
        one = Submission(
            name=f"soak-{len(submissions):05}",
            kind=kind,
            user=chance.choice(users),
            application=application,
            pause=chance.uniform(0.1, 0.6),
        )
        submissions.append(one)
        total += one.tasks
    return submissions
