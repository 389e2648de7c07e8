"""Which Rust programs link which parts of TLS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TLS = {"rustls", "ring", "rustls-native-certs", "rustls-webpki", "openssl-sys", "native-tls"}


def linked(package: str) -> set[str]:
    """Return the crates that a program of a package is linked from."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo is not there")
    tree = [cargo, "tree", "--locked", "--offline", "--package", package]
    shown = ["--edges", "normal", "--prefix", "none", "--format", "{p}"]
    done = subprocess.run([*tree, *shown], cwd=ROOT, check=True, capture_output=True, text=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize(
    "package", ["io-autotune-node", "io-autotune-collector", "io-autotune-cli"]
)
def test_what_runs_on_nodes_and_submit_hosts_links_one_and_no_hosts_roots(package: str) -> None:
    assert linked(package) & TLS == {"rustls", "ring", "rustls-webpki"}


def test_what_reaches_no_network_links_none() -> None:
    assert not linked("io-autotune-engine") & TLS


def test_the_service_links_one() -> None:
    assert linked("io-autotuned") & TLS == {
        "rustls",
        "ring",
        "rustls-native-certs",
        "rustls-webpki",
    }
