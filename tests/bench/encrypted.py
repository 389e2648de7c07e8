"""``make bench-tls``: what TLS adds to a start, over the loopback address.

The helper is run as slurmd's prolog runs it, against a real service, PostgreSQL and munged; Slurm
is played. Blocks with and without TLS alternate, and what is compared is a pair of blocks.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from command.encrypted import HOST, Hook, ca_file, site
from command.jobs import Made
from command.place import SERVICE_USER, place
from command.service import ALICE
from devcluster.certificates import Authority

from bench.figures import Aim, Figure, median, table
from bench.machine import measured_on

AIM = Aim(3.0)
OF_THE_SYSTEM = Path("/etc/ssl/certs/ca-certificates.crt")


def main() -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(prog="bench.encrypted", description=__doc__)
    parser.add_argument("--pairs", type=int, default=100, help="of blocks")
    parser.add_argument("--starts", type=int, default=8, help="in a block")
    options = parser.parse_args()
    with ExitStack() as stack:
        where = stack.enter_context(place())
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        root.chmod(0o755)
        authority = Authority(root, "site", SERVICE_USER)
        certified = authority.certify("service", f"subjectAltName=DNS:{HOST}")
        running = stack.enter_context(site(where, "bench", certified))
        ca = ca_file(where, authority)
        configs = [running.client_toml("clear", "tcp"), running.client_toml("tls", ca=ca)]
        sides = [("TLS", configs)]
        if OF_THE_SYSTEM.is_file():
            # The authority's own is read last, as one of many.
            bundle = ca.with_name("bundle.pem")
            bundle.write_bytes(OF_THE_SYSTEM.read_bytes() + ca.read_bytes())
            of_many = running.client_toml("bundle", ca=bundle)
            sides.append(("TLS, with the system's authorities", [configs[0], of_many]))
        hook = Hook(root)
        numbers = count(1)

        def job() -> Made:
            return running.served.job(ALICE, f"bench{next(numbers) % 20}")

        found = [
            _figure(hook, what, pair, job, options.pairs, options.starts) for what, pair in sides
        ]
    print(table([figure.row(measured_on()) for figure in found]))
    return 0


def _figure(
    hook: Hook, what: str, configs: Sequence[Path], job: Callable[[], Made], pairs: int, starts: int
) -> Figure:
    """Return what the second way of asking takes more than the first, for a start."""
    for config in configs:
        _block(hook, config, job, starts)
    clear, added = [], []
    for number in range(pairs):
        taken = [0.0, 0.0]
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            taken[side] = _block(hook, configs[side], job, starts)
        clear.append(taken[0])
        added.append(taken[1] - taken[0])
    return Figure(
        f"what a start takes more with {what}",
        "ms",
        median(added),
        AIM,
        f"median of {pairs} pairs of blocks of {starts} starts; without, a start takes"
        f" {median(clear)} ms",
    )


def _block(hook: Hook, config: Path, job: Callable[[], Made], starts: int) -> float:
    """Return the median of the milliseconds that starts take, one after the other."""
    taken = []
    for _ in range(starts):
        made = job()
        argv, env = hook.argv("start", config), hook.env(made)
        began = time.perf_counter()
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        taken.append((time.perf_counter() - began) * 1e3)
        assert hook.started(made)["answer"] is not None, done.stderr
        hook.leave()
    return statistics.median(taken)


if __name__ == "__main__":
    sys.exit(main())
