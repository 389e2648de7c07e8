"""A burst buffer to tune on a private cluster, by tests/burst-buffer.

The cluster's variant is ``burst_buffer``; Slurm's plugin reaches the agent by a program of the
cluster's own.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from devcluster import files
from devcluster.paths import Paths
from devcluster.users import SLURM_USER

REPOSITORY = Path(__file__).resolve().parents[2]
INSTRUMENT = REPOSITORY / "tests" / "burst-buffer"
SHIPPED = REPOSITORY / "deploy" / "accelerators.d" / "smart-burst-buffer.toml"


@contextmanager
def serving(
    paths: Paths, slow: Path, scaled: Mapping[str, str], options: Sequence[str]
) -> Iterator[Path]:
    """Give jobs the instrument in front of ``slow``; yield the agent's socket.

    ``scaled``: what the site's catalogue file has instead of the papers' values. ``options`` are
    the daemon's.
    """
    text = SHIPPED.read_text(encoding="utf-8")
    for papers, ours in scaled.items():
        assert papers in text
        text = text.replace(papers, ours)
    files.write(paths.accelerators / SHIPPED.name, text, mode=0o644)
    socket = paths.run / "buffers.sock"
    ask = paths.bin / "burst-buffer-ask"
    files.write(ask, (INSTRUMENT / "ask").read_bytes(), mode=0o755)
    program = f'#!/bin/sh\nexec {ask} {socket} "$@"\n'
    files.write(paths.bin / "burst-buffer", program, mode=0o755)
    slow.mkdir()
    places = [str(socket), str(paths.burst_buffers), str(slow)]
    daemon = [str(paths.bin / "burst-buffer-daemon"), *options]
    argv = [sys.executable, str(INSTRUMENT / "serve"), *places, SLURM_USER, *daemon]
    with subprocess.Popen(argv) as agent:
        try:
            yield socket
        finally:
            agent.send_signal(signal.SIGTERM)
