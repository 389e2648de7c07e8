"""Ways in which the service cannot be reached. Each is undone at the end of its ``with``."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from devcluster import command, files
from devcluster.network import Namespace
from devcluster.ports import HOST, NODES_HOST
from harness import Site, await_true, command_lines

BACKLOG = 64
"""Connections that the kernel accepts for a listener that never looks at them."""
SMALL_SIZE = "4m"
"""Size of a directory that is to be full."""
FILLER = "filler"
"""The file that fills it."""
PATIENCE_MS = 60_000
"""What a hook has where it is to be caught waiting, or a busy host is not to matter, in ms."""


@contextmanager
def service_stopped(site: Site) -> Iterator[None]:
    """Stop the service in good order (SIGTERM): nobody listens."""
    with site.parts_stopped("io-autotuned"):
        yield
    site.await_asked_again()


@contextmanager
def service_mute(site: Site) -> Iterator[None]:
    """Put listeners in the service's place that take every connection and never answer."""
    with site.parts_stopped("io-autotuned"), _mute_listeners(site):
        yield
    site.await_asked_again()


@contextmanager
def service_frozen(site: Site) -> Iterator[None]:
    """Freeze the service: it hears what is asked meanwhile, and answers after the ``with``."""
    with site.part_frozen("io-autotuned"):
        yield
    site.await_asked_again()


@contextmanager
def patient_hooks(site: Site) -> Iterator[None]:
    """Let prologs and epilogs take much longer than a site would."""
    if site.paths.run_in_job.exists():
        patient = rf"\g<1>{PATIENCE_MS}"
        changed = _line_changed(site.paths.run_in_job, r"(.* --deadline-ms )\d+", patient, 0o755)
    else:
        # slurmd starts a new slurmstepd for each prolog, which reads the file.
        patient = rf"\g<0> job_deadline_ms={PATIENCE_MS}"
        changed = _line_changed(site.paths.plugstack_conf, r"optional .*", patient)
    with changed:
        yield


@contextmanager
def _line_changed(path: Path, line: str, to: str, mode: int = 0o644) -> Iterator[None]:
    """Change the one line of a file that matches, and change it back."""
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(rf"(?m)^{line}$", to, text)
    assert count == 1, f"{path} has {count} lines like {line}, not one:\n{text}"
    files.write(path, changed, mode=mode)
    try:
        yield
    finally:
        files.write(path, text, mode=mode)


@contextmanager
def prologs_wait(site: Site) -> Iterator[None]:
    """Let prologs wait, much longer than a site would, for a service that never answers.

    It is there again when none waits any more. A frozen service would hear their starts, and answer
    them late. The flusher is away too: it would notice the outage for the node, whose prologs would
    not wait then.
    """
    helper = f"{site.paths.bin / 'io-autotune-node'} start "
    with site.parts_stopped("io-autotuned", "flusher"):
        with patient_hooks(site), _mute_listeners(site):
            yield
        await_true(
            "the prologs to end",
            lambda: not any(helper in line for _pid, line in command_lines()),
        )
    site.await_asked_again()


@contextmanager
def signer_gone(site: Site) -> Iterator[None]:
    """Point the helper, and nothing else, to a munged or a SACK that does not run."""
    with _helper_signer(site, site.paths.run / "no-signer.sock"):
        yield
    site.await_asked_again()


@contextmanager
def signer_mute(site: Site) -> Iterator[None]:
    """Point the helper, and nothing else, to one that takes connections and never answers."""
    path = site.paths.run / "mute-signer.sock"
    with _mute_unix(path), _helper_signer(site, path):
        yield
    site.await_asked_again()


@contextmanager
def small(directory: Path, mode: str, size: str = SMALL_SIZE) -> Iterator[None]:
    """Give a directory a small file system of its own; what is there at the end is gone."""
    options = f"size={size},mode={mode}"
    command.run(["mount", "-t", "tmpfs", "-o", options, "io-autotune-small", str(directory)])
    try:
        yield
    finally:
        # Whoever still has it open keeps it until then.
        command.run(["umount", "--lazy", str(directory)])


def small_spool(site: Site) -> AbstractContextManager[None]:
    """Give the spool a small file system of its own; what waits there at the end is gone."""
    return small(site.paths.plugin_spool, "0700")


def spool_full(site: Site) -> AbstractContextManager[None]:
    """Leave not a byte in the spool, which is small."""
    return full(site.paths.plugin_spool)


@contextmanager
def full(directory: Path, spare: int = 0) -> Iterator[None]:
    """Leave so many bytes, rounded down to pages, in a directory that is small."""
    filler = directory / FILLER
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o400)
    try:
        for block in (65536, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(descriptor, b"\0" * block)
        os.ftruncate(descriptor, os.fstat(descriptor).st_size - spare)
        yield
    finally:
        os.close(descriptor)
        filler.unlink()


OUTAGES: dict[str, Callable[[Site], AbstractContextManager[None]]] = {
    "service stopped": service_stopped,
    "service mute": service_mute,
    "signer gone": signer_gone,
    "signer mute": signer_mute,
}
"""All of them, by name."""

SLOW_OUTAGES = {"service mute", "signer mute"}
"""Those that cost whoever asks the whole deadline."""


@contextmanager
def _mute_listeners(site: Site) -> Iterator[None]:
    """Listen where a service that is stopped did; who waits for an answer is cut off at the end."""
    with contextlib.ExitStack() as stack:
        for path in (site.paths.service_socket, site.paths.nodes_socket):
            stack.enter_context(_mute_unix(path))
        for host in (HOST, NODES_HOST):
            # A socket stays in the network that it was made in, and the cluster has one of its own.
            with Namespace(site.paths.root).inside():
                tcp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind((host, site.service_port()))
            tcp.listen(BACKLOG)
        yield


@contextmanager
def _mute_unix(path: Path) -> Iterator[None]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen(BACKLOG)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def _helper_signer(site: Site, path: Path) -> Iterator[None]:
    """Slurm has its sockets otherwise; client.toml is the helper's alone."""
    # Until its next pass the flusher has what client.toml said before: it would deliver what the
    # helper cannot.
    old, new = r"munge_socket = .*", f'munge_socket = "{path}"'
    if site.record().variant.auth == "slurm":
        old, new = 'auth = "slurm"', f'auth = "slurm"\nsack_sockets = ["{path}"]'
    socket_named = _line_changed(site.paths.client_toml, old, new)
    with site.parts_stopped("flusher"), socket_named:
        yield
