"""On what is measured."""

from __future__ import annotations

import datetime
import os
from pathlib import Path


def measured_on() -> str:
    """Return today's date, and this machine with its load."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        "an unknown processor",
    )
    today = datetime.datetime.now(tz=datetime.UTC).date()
    return f"{today}, {os.cpu_count()} processors ({model}), load {os.getloadavg()[0]:.1f}"
