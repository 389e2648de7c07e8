"""What watches the service: Prometheus by /metrics, systemd by its socket."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from devcluster import files, process
from devcluster.network import Namespace
from harness import Json, Site, await_true
from services import service_beside

ADDRESS = "127.0.0.1:9464"
PROMETHEUS = "127.0.0.1:9090"
RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/io-autotune.rules.yml"


@contextmanager
def watched(site: Site) -> Iterator[Path]:
    """Run a service that Prometheus can read."""
    text = site.paths.service_toml.read_text(encoding="utf-8")
    text = text.replace("[listen]\n", f'[listen]\nmetrics = "{ADDRESS}"\n')
    with service_beside(site, "watched", text) as unix:
        yield unix


def health(unix: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(unix))
        client.sendall(b"GET /v1/health HTTP/1.0\r\n\r\n")
        assert client.recv(64).startswith(b"HTTP/1.")


def test_systemd_is_told_of_the_start_the_work_and_the_end(site: Site) -> None:
    path = site.paths.scratch / "notify.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(path))
        path.chmod(0o666)
        supervisor.settimeout(20.0)
        env = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "500000"}
        text = site.paths.service_toml.read_text(encoding="utf-8")
        with service_beside(site, "supervised", text, env):
            assert supervisor.recv(256) == b"READY=1\n"
            for _ in range(3):
                assert supervisor.recv(256) == b"WATCHDOG=1\n"
        told = supervisor.recv(256)
        while told == b"WATCHDOG=1\n":
            told = supervisor.recv(256)
        assert told == b"STOPPING=1\n"


@pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="prometheus is not installed: make test-monitoring installs it",
)
def test_an_alert_fires_when_the_service_is_down_and_ends_when_it_is_back(site: Site) -> None:
    directory = site.paths.scratch / "prometheus"
    directory.mkdir()
    tested = str(RULES).replace(".rules.yml", ".rules.test.yml")
    subprocess.run(["promtool", "test", "rules", tested], check=True)
    # The rules as deployed, but for how long something must last.
    rules = re.sub(r"for: \d+m", "for: 1s", RULES.read_text(encoding="utf-8"))
    files.write(directory / "rules.yml", rules, mode=0o644)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(directory / "rules.yml")],
        "scrape_configs": [{"job_name": "io-autotune", "static_configs": [{"targets": [ADDRESS]}]}],
    }
    # JSON is YAML.
    files.write(directory / "prometheus.yml", json.dumps(config), mode=0o644)
    argv = ["prometheus", f"--config.file={directory}/prometheus.yml"]
    argv += [f"--storage.tsdb.path={directory}/data", f"--web.listen-address={PROMETHEUS}"]
    with Namespace(site.paths.root).inside():
        prometheus = process.spawn(argv, env={}, output=site.paths.log_of("prometheus"))
    try:
        for _ in range(2):
            with watched(site):
                await_true("the service to be up", lambda: alerts(site) == set())
            await_true("the alert", lambda: alerts(site) == {"IoAutotuneDown"})
    finally:
        assert process.end(prometheus, signal.SIGTERM, 20.0)


def alerts(site: Site) -> set[str] | None:
    """Return the alerts that fire; `None` while Prometheus has read nothing yet."""
    with Namespace(site.paths.root).inside():
        try:
            up = _ask("query?query=up")["data"]["result"]
            found = _ask("alerts")["data"]["alerts"]
        except OSError:
            return None
    if not up:
        return None
    return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


def _ask(path: str) -> Json:
    with urllib.request.urlopen(f"http://{PROMETHEUS}/api/v1/{path}", timeout=5.0) as answer:
        read: Json = json.load(answer)
    return read
