"""Linux accounts: looked up by name, and taken on."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from devcluster.errors import ClusterError


@dataclass(frozen=True)
class Account:
    """A Linux user with all groups."""

    name: str
    uid: int
    gid: int
    groups: list[int]


def find(name: str) -> Account:
    """Return a user's account.

    Raises:
        ClusterError: there is no such user.

    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ClusterError(
            f"there is no user '{name}' on this host; 'up' makes io-autotune, io-alice and io-bob"
        ) from None
    return Account(name, entry.pw_uid, entry.pw_gid, os.getgrouplist(name, entry.pw_gid))


def become(account: Account) -> None:
    """Turn this process into the user's, for good; only root can."""
    os.setgroups(account.groups)
    os.setgid(account.gid)
    os.setuid(account.uid)
