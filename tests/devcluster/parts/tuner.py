"""io-autotuned, the tuner service."""

from __future__ import annotations

import http.client
from http import HTTPStatus

from devcluster import accounts, clock
from devcluster.parts.part import Part
from devcluster.paths import Paths
from devcluster.ports import HOST
from devcluster.record import Record
from devcluster.users import SERVICE_USER

READY = "/v1/ready"
"""Answers 200 when the service can take requests."""


def part(paths: Paths, record: Record) -> Part:
    """Return the part; the service's user runs it."""
    port = record.ports.service

    def probe() -> str | None:
        connection = http.client.HTTPConnection(HOST, port, timeout=2.0)
        try:
            connection.request("GET", READY)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return f"http://{HOST}:{port}{READY}: {error}"
        finally:
            connection.close()
        return None if status == HTTPStatus.OK else f"http://{HOST}:{port}{READY} answers {status}"

    return Part(
        name="io-autotuned",
        argv=[str(paths.bin / "io-autotuned"), "--config", str(paths.service_toml)],
        env=clock.env(paths, record),
        log=paths.log_of("io-autotuned"),
        output=paths.log_of("io-autotuned"),
        account=accounts.find(SERVICE_USER),
        inputs=[paths.service_toml, paths.accelerators],
        port=port,
        probe=probe,
    )
