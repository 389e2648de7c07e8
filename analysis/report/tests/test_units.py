"""The report's units are such as systemd takes them, and fit the sample and the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNITS = ROOT / "deploy" / "systemd"
SERVICE = "io-autotune-report.service"
TIMER = "io-autotune-report.timer"


def test_the_service_runs_the_packages_program_on_the_sample() -> None:
    told = (UNITS / SERVICE).read_text()
    (start,) = re.findall(r"^ExecStart=(\S+) --config (\S+)$", told, flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "analysis" / "report" / "pyproject.toml").read_text())[
        "project"
    ]
    assert Path(start[0]).name in project["scripts"]
    sample = (ROOT / "deploy" / "etc" / "report.toml").read_text()
    assert sample.startswith(f"# {start[1]}:")
    directory = re.search(r"^StateDirectory=(\S+)$", told, flags=re.MULTILINE)
    assert directory is not None
    settings = tomllib.loads(sample)["report"]
    for name in ("state", "nights"):
        assert Path(settings[name]).parent == Path("/var/lib") / directory[1]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    for unit in (SERVICE, TIMER):
        told = (UNITS / unit).read_text()
        # The program and the documentation are not installed here.
        told = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", told, flags=re.MULTILINE)
        (tmp_path / unit).write_text(re.sub(r"^Documentation=.*\n", "", told, flags=re.MULTILINE))
    argv = ["systemd-analyze", "verify", "--man=no", *(str(tmp_path / u) for u in (SERVICE, TIMER))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""
    assert done.returncode == 0
