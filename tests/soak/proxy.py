"""A proxy in front of the service that does to requests and answers what a network can do."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from soak.background import running

SECONDS = 10.0
"""How long the proxy waits for anything; every caller has given up by then."""
BLOCK = 65536
DRIP_SECONDS = 0.1
FORGED = "soak_forged 1"
"""A hint that no service gives."""
CREDENTIAL = b"x-io-autotune-credential"
SIGNATURE = b"x-io-autotune-signature"


class Proxy:
    """Listens on a socket and does one of ``MODES`` to whoever connects."""

    def __init__(self, listen: Path, service: Path, forged_signature: str) -> None:
        """Stand at ``listen`` before the service; the signature is a user's own."""
        self._listen = listen
        self._service = service
        self._signature = forged_signature
        self._over = threading.Event()
        self.served = 0
        """How many connections came."""

    @contextmanager
    def standing(self, mode: str) -> Iterator[None]:
        """Do this to every connection for a while; whoever waits then is cut off."""
        act = MODES[mode]
        self._listen.unlink(missing_ok=True)
        self._over.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(self._listen))
            self._listen.chmod(0o777)
            listener.listen(64)
            listener.settimeout(0.1)
            try:
                with running(self._over, lambda: self._accept(listener, act)):
                    yield
            finally:
                self._listen.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket, act: Callable[[Proxy, socket.socket], None]) -> None:
        threads = []
        while not self._over.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            self.served += 1
            thread = threading.Thread(target=self._serve, args=(connection, act))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def _serve(
        self, connection: socket.socket, act: Callable[[Proxy, socket.socket], None]
    ) -> None:
        # Whoever has given up is no failure here.
        with connection, contextlib.suppress(OSError):
            connection.settimeout(SECONDS)
            act(self, connection)

    def ask(self, request: bytes) -> bytes:
        """Pass a request on, and return the whole answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as service:
            service.settimeout(SECONDS)
            service.connect(str(self._service))
            service.sendall(request)
            return message(service)

    def mute(self, connection: socket.socket) -> None:
        """Never answer."""
        while not self._over.wait(0.05):
            # A caller that has left lets go of its place.
            with contextlib.suppress(TimeoutError):
                connection.settimeout(0.01)
                if not connection.recv(BLOCK):
                    return

    def drip(self, connection: socket.socket) -> None:
        """Answer a byte at a time."""
        answer = self.ask(message(connection))
        for place in range(len(answer)):
            connection.sendall(answer[place : place + 1])
            if self._over.wait(DRIP_SECONDS):
                return

    def garbage(self, connection: socket.socket) -> None:
        """Answer with what is not HTTP."""
        message(connection)
        connection.sendall(bytes(range(256)) * 16)

    def huge(self, connection: socket.socket) -> None:
        """Answer with a body that does not end."""
        message(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")
        while not self._over.is_set():
            connection.sendall(b" " * BLOCK)

    def wrong_credential(self, connection: socket.socket) -> None:
        """Change the credential on its way."""
        request = message(connection)
        changed = re.sub(rb"(?i)(" + CREDENTIAL + rb": MUNGE:.{40})..", rb"\1AA", request, count=1)
        connection.sendall(self.ask(changed))

    def replayed(self, connection: socket.socket) -> None:
        """Send everything twice, and answer with the second answer."""
        request = message(connection)
        self.ask(request)
        connection.sendall(self.ask(request))

    def altered(self, connection: socket.socket) -> None:
        """Change what the service says, and leave its signature."""
        connection.sendall(_with_forged_hint(self.ask(message(connection))))

    def forged(self, connection: socket.socket) -> None:
        """Change what the service says, and sign it as somebody else."""
        answer = _with_forged_hint(self.ask(message(connection)))
        pattern = rb"(?i)(" + SIGNATURE + rb": )[^\r]*"
        connection.sendall(re.sub(pattern, rb"\1" + self._signature.encode(), answer, count=1))


MODES: dict[str, Callable[[Proxy, socket.socket], None]] = {
    "service mute": Proxy.mute,
    "answers drip": Proxy.drip,
    "answers garbage": Proxy.garbage,
    "answers huge": Proxy.huge,
    "credential wrong": Proxy.wrong_credential,
    "request replayed": Proxy.replayed,
    "answer altered": Proxy.altered,
    "answer forged": Proxy.forged,
}
"""What it can do, by the operation's name."""


def message(connection: socket.socket) -> bytes:
    """Return one whole HTTP message, head and body; what there is if the other side ends it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(BLOCK)
        if not more:
            return data
        data += more
    head, _, _ = data.partition(b"\r\n\r\n")
    found = re.search(rb"(?im)^content-length: *(\d+)", head)
    whole = len(head) + 4 + (int(found[1]) if found else 0)
    while len(data) < whole:
        more = connection.recv(BLOCK)
        if not more:
            return data
        data += more
    return data


def _with_forged_hint(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    changed = body.replace(b'"content":"', b'"content":"' + FORGED.encode() + b"\\n")
    if changed == body:
        changed = body.replace(b"{", b'{"forged":1,', 1)
    head = re.sub(rb"(?im)^(content-length: *)\d+", rb"\g<1>%d" % len(changed), head)
    return head + b"\r\n\r\n" + changed
