"""io-autotuned, the tuner service."""

from __future__ import annotations

import contextlib
import http.client
from http import HTTPStatus

from devcluster import accounts, clock, command
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.ports import HOST
from devcluster.record import Record
from devcluster.render import database_url
from devcluster.users import DATABASE_ADMIN, SERVICE_USER

READY = "/v1/ready"
"""Answers 200 when the service can take requests."""


def unready(connection: http.client.HTTPConnection) -> str | None:
    """Return what keeps the service that this reaches from taking requests; None: nothing."""
    try:
        connection.request("GET", READY)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{READY}: {error}"
    return None if status == HTTPStatus.OK else f"{READY} answers {status}"


def part(paths: Paths, record: Record) -> Part:
    """Return the part; the service's user runs it."""
    port = record.ports.service
    program = str(paths.bin / "io-autotuned")
    owner = f"{database_url(paths, record, DATABASE_ADMIN)}&options[role]=io-autotune-migrate"

    def prepare() -> None:
        # The service's role may not.
        command.run([program, "--migrate", owner], user=SERVICE_USER, timeout=60.0)

    def probe() -> str | None:
        connection = http.client.HTTPConnection(HOST, port, timeout=2.0)
        with contextlib.closing(connection):
            problem = unready(connection)
        return f"http://{HOST}:{port}{problem}" if problem else None

    return Part(
        name="io-autotuned",
        argv=[program, "--config", str(paths.service_toml)],
        env=clock.env(paths, record),
        log=paths.log_of("io-autotuned"),
        output=paths.log_of("io-autotuned"),
        account=accounts.find(SERVICE_USER),
        inputs=[paths.service_toml, paths.accelerators],
        port=port,
        prepare=prepare,
        probe=probe,
    )
