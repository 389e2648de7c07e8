"""Commands that end: found in a fixed PATH, run with a deadline, their failure an error."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster import accounts, hung
from devcluster.errors import ClusterError, CommandFailed

SLURM = os.environ.get("IO_AUTOTUNE_SLURM") or None
"""The prefix of another Slurm than the system's: ``make test-cluster SLURM=PREFIX`` sets it."""

PATH = ":".join(
    [
        *([f"{SLURM}/sbin", f"{SLURM}/bin"] if SLURM else []),
        *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),
    ]
)
"""Where programs are found, whatever the caller's PATH is."""

SECONDS = 30.0
"""Default deadline of a command, in seconds."""


def find(name: str, group: str = "cluster") -> str:
    """Return the path of a program, which ``group`` of ``deploy/install-deps`` installs.

    Raises:
        ClusterError: it is not installed.

    """
    found = shutil.which(name, path=PATH)
    if found is None:
        raise ClusterError(
            f"the program '{name}' is needed and is not in {PATH};"
            f" run 'deploy/install-deps {group}', which installs it"
        )
    return found


def base_env() -> dict[str, str]:
    """Return the environment that every process of the cluster starts from."""
    return {"PATH": PATH, "LANG": "C.UTF-8"}


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    cwd: Path = Path("/"),
    stdin: str = "",
    timeout: float = SECONDS,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command and return its exit status and output, as ``user`` if one is given.

    ``env`` is the whole environment (default: ``base_env``); the program is looked up in its PATH;
    ``timeout`` is in seconds.

    Raises:
        ClusterError: the program does not exist.
        CommandFailed: it ran out of time, or ``check`` is set and its exit status is not zero.

    """
    environment = dict(base_env() if env is None else env)
    program = shutil.which(argv[0], path=environment.get("PATH", PATH))
    if program is None:
        raise ClusterError(
            f"the program '{argv[0]}' was to be run and is not in {environment.get('PATH', PATH)};"
            " 'deploy/install-deps cluster' installs the system's, the stage holds our own"
        )
    identity = None if user is None else accounts.find(user)
    with subprocess.Popen(
        [program, *argv[1:]],
        env=environment,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        user=None if identity is None else identity.uid,
        group=None if identity is None else identity.gid,
        extra_groups=None if identity is None else identity.groups,
    ) as running:
        try:
            stdout, stderr = running.communicate(stdin, timeout)
        except subprocess.TimeoutExpired as error:
            # While it still does what it has no time for.
            doing = hung.doing(running.pid)
            raise CommandFailed(
                argv, None, _text(error.stdout), _text(error.stderr), doing
            ) from None
        finally:
            # What it has started may hold its output open: that is not waited for.
            running.kill()
            running.wait()
    done = subprocess.CompletedProcess(argv, running.returncode, stdout, stderr)
    if check and done.returncode != 0:
        raise CommandFailed(argv, done.returncode, done.stdout, done.stderr)
    return done


def _text(output: str | bytes | None) -> str:
    if isinstance(output, bytes):
        return output.decode("utf-8", "replace")
    return output or ""
