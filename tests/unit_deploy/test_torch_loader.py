"""The helper that a training script takes for its DataLoader."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HELPERS = Path(__file__).resolve().parents[2] / "deploy/contrib/python"
DEBIAN = Path("/usr/bin/python3")
GIVEN = {"TORCH_LOADER_WORKERS": "3", "TORCH_LOADER_PREFETCH": "4"}

ARGUMENTS = """
import json, sys
from torch_loader import tuned
print(json.dumps(tuned(**json.loads(sys.argv[1]))))
"""
LOADED = """
import json, os, sys
from torch.utils.data import DataLoader, Dataset
from torch_loader import tuned

class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, number):
        return number, os.getpid()

loader = DataLoader(Numbers(), batch_size=2, **tuned(**json.loads(sys.argv[1])))
numbers, readers = zip(*loader)
order = [number for batch in numbers for number in batch.tolist()]
assert order == list(range(12)), order
print(json.dumps([len({reader for batch in readers for reader in batch.tolist()})]))
"""


def printed(python: str, program: str, own: dict[str, int], given: dict[str, str]) -> object:
    """Return what a program prints that has these arguments itself and was given variables."""
    done = subprocess.run(
        [python, "-W", "ignore", "-c", program, json.dumps(own)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HELPERS), **given},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        ({}, {}, {}),
        ({"num_workers": 2}, {}, {"num_workers": 2}),
        ({"num_workers": 2}, GIVEN, {"num_workers": 3, "prefetch_factor": 4}),
        ({}, {"TORCH_LOADER_PREFETCH": "4"}, {}),
        ({"num_workers": 0, "prefetch_factor": 8}, {}, {"num_workers": 0}),
    ],
)
def test_what_is_given_goes_before_what_a_script_has(
    own: dict[str, int], given: dict[str, str], expected: dict[str, int]
) -> None:
    assert printed(sys.executable, ARGUMENTS, own, given) == expected


@pytest.mark.parametrize(
    ("own", "given", "readers"),
    [({}, {}, 1), ({}, GIVEN, 3), ({}, {"TORCH_LOADER_PREFETCH": "4"}, 1)],
)
def test_the_real_loader_has_so_many_workers(
    own: dict[str, int], given: dict[str, str], readers: int
) -> None:
    if not list(Path("/usr/lib/python3/dist-packages").glob("torch")):
        pytest.skip("Debian's python3-torch is not installed")
    assert printed(str(DEBIAN), LOADED, own, given) == [readers]
