"""The program that was built, in PATH."""

import os
from pathlib import Path

import matplotlib

TREE = Path(__file__).resolve().parents[3]
PROGRAMS = Path(os.environ.get("IO_AUTOTUNE_PROGRAMS", TREE / "build/stage/bin"))
os.environ["PATH"] = f"{PROGRAMS}:{os.environ['PATH']}"
matplotlib.use("Agg")
