"""The cluster's Linux users: made when missing, removed when they were made for us."""

from __future__ import annotations

import pwd
from collections.abc import Iterable
from pathlib import Path

from devcluster import command

SERVICE_USER = "io-autotune"
"""Runs PostgreSQL and io-autotuned."""
DATABASE_ADMIN = "postgres"
"""PostgreSQL's superuser: a role, which the service's user and root may take."""
JOB_USERS = ("io-alice", "io-bob")
"""Submit jobs."""
SLURM_USER = "slurm"
"""Runs slurmctld, and slurmdbd with its database; Debian's package makes it."""
COLLECTOR_USER = "io-autotune-collector"
"""Runs the collector, where there is one."""

# Job users have a shell because sbatch --export=NONE reads their environment by `su - USER`; with
# their passwords locked they cannot log in.
_SHELLS = dict.fromkeys((SERVICE_USER, SLURM_USER, COLLECTOR_USER), "/usr/sbin/nologin")


def needed(*, collector: bool) -> list[str]:
    """Return the names of the users that a cluster needs, with a collector or without."""
    return [SLURM_USER, SERVICE_USER, *JOB_USERS, *([COLLECTOR_USER] if collector else [])]


def ensure(names: Iterable[str]) -> list[str]:
    """Create those of the users that are missing and return their names."""
    created = []
    for name in names:
        try:
            pwd.getpwnam(name)
        except KeyError:
            shell = _SHELLS.get(name, "/bin/sh")
            argv = ["useradd", "--system", "--user-group", "--no-create-home"]
            command.run([*argv, "--home-dir", "/nonexistent", "--shell", shell, name])
            created.append(name)
    return created


def remove(name: str) -> bool:
    """Remove a user without processes; return whether the user is gone."""
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        return True
    if has_processes(uid):
        return False
    # By force, because userdel counts zombies that wait for their parent.
    command.run(["userdel", "--force", name])
    return True


def has_processes(uid: int) -> bool:
    """Return whether any process, zombies apart, has this real or effective user id."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "status").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        status = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if str(uid) in status["Uid"].split()[:2] and not status["State"].strip().startswith("Z"):
            return True
    return False
