"""The wheel installs into empty environments, and tunes there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WHEELS = Path(__file__).resolve().parents[3] / "build" / "wheel"
SCRIPT = """
import io_autotune as it, sys
study = it.Study({"x": it.Int(-10, 10, default=9)}, storage="runs", runs=12)
study.optimize(lambda params: (params["x"] - 3) ** 2)
print(sys.version_info.minor, len(study.runs))
"""


def interpreter(version: str) -> str | None:
    """Return an interpreter of this version: in PATH, or one of pyenv's."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    places = [
        place for root in roots if root for place in Path(root).glob(f"versions/{version}.*/bin")
    ]
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    found = shutil.which(f"python{version}", path=path)
    # pyenv has a name for each version, whether it is there or not.
    works = (
        found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0
    )
    return found if works else None


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_installs_into_an_empty_environment_and_tunes(
    version: str, tmp_path: Path
) -> None:
    wheels = list(WHEELS.glob("*.whl"))
    assert len(wheels) == 1, "make wheel builds it"
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    theirs = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--isolated", f"--python={theirs}", "install", "--no-index"]
    subprocess.run([*pip, "--quiet", str(wheels[0])], check=True)
    words = [str(theirs), "-c", SCRIPT]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"{version[2:]} 12\n", done.stderr
    typed = tmp_path / f"venv/lib/python{version}/site-packages/io_autotune/py.typed"
    assert typed.is_file()
