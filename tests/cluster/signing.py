"""Credentials as any user can have them, by what signs on the cluster."""

from __future__ import annotations

import sys

from devcluster import accounts
from devcluster.users import SERVICE_USER
from harness import Site

SACK = """
import os, socket, struct, sys
reader, payload = int(sys.argv[1]), sys.argv[2].encode() + os.urandom(16)
body = struct.pack(">III", 64001, reader, len(payload)) + payload
with socket.socket(socket.AF_UNIX) as server:
    server.settimeout(10)
    server.connect("/run/slurm/sack.socket")
    server.sendall(struct.pack(">HI", 40 << 8, 4 + len(body)) + body)
    answer = server.makefile("rb")
    print(answer.read(struct.unpack(">I", answer.read(4))[0]).rstrip(b"\\0").decode())
"""
"""Asks Slurm's auth/slurm for a token (src/common/sack_api.c)."""


def credential(site: Site, user: str, payload: str) -> str:
    """Sign a payload as a user, for the service alone."""
    to = str(accounts.find(SERVICE_USER).uid)
    if site.record().variant.auth == "slurm":
        return site.cluster.run_as(user, [sys.executable, "-c", SACK, to, payload]).stdout.strip()
    argv = ["munge", f"--socket={site.paths.munge_socket}", f"--restrict-uid={to}", "--ttl=60"]
    return site.cluster.run_as(user, [*argv, "--string", payload]).stdout.strip()
